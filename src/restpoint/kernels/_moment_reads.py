"""One read of the samples by compiled loops, for any number of starts, on one thread or several."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from restpoint.kernels import threads
from restpoint.kernels.memory import zeros

# Bytes of samples that a loop works on at a time: they stay in the second cache.
BYTES_IN_CACHE = 2**18
DOUBLE = np.dtype(np.float64)


def sums(X: np.ndarray, mean: np.ndarray | None, Y: np.ndarray, counts: list[int]) -> np.ndarray:
    """(1/N) sum_r p_ru (x_r - mean), as ``_moment_loops.one_read`` says, for Y of shape (starts, U, n), U <= 4.

    Every thread has a range of samples and its own sums, which are added in order: results repeat bit by bit.
    """
    from restpoint.kernels._moment_loops import one_read

    loop = one_read(str(X.dtype))
    (starts, many, n), wide = Y.shape, -(-X.shape[1] // 8) * 8
    padded = 1 if many == 1 else 4  # a vector that no mode has is 0, and nobody looks at its answer
    vectors = zeros(starts, padded, wide, dtype=DOUBLE)
    vectors[:, :many, :n] = Y
    numbers = np.array([*counts, *[0] * (padded - many)], dtype=np.int64)
    mean = np.zeros(n) if mean is None else mean
    rows = max(8, BYTES_IN_CACHE // (8 * wide) // 8 * 8)
    parts = threads.useful(X.nbytes)
    cuts = [len(X) * k // parts for k in range(parts + 1)]
    answers = [zeros(starts, padded, wide, dtype=DOUBLE) for _ in range(parts)]

    def run(k: int) -> None:
        buffer = zeros(rows, wide, dtype=DOUBLE)
        loop(X[cuts[k] : cuts[k + 1]], mean, vectors, numbers, answers[k], buffer, buffer)

    threads.run([partial(run, k) for k in range(parts)])
    total = reduce(np.add, answers)[:, :many, :n] / len(X)
    return total.astype(Y.dtype, copy=False)


def products(matrix: np.ndarray, y: np.ndarray) -> np.ndarray:
    """y times a symmetric matrix, for y of shape (vectors, n)."""
    from restpoint.kernels._moment_loops import products

    count, n = y.shape
    vectors = np.zeros((-(-count // 4), 4, n))
    vectors.reshape(-1, n)[:count] = y
    answers = np.empty_like(vectors)
    products()(matrix, vectors, answers)
    return answers.reshape(-1, n)[:count].astype(y.dtype, copy=False)
