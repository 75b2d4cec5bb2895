"""All mode gradients of the fourth cumulant of samples, in multiples of one read of them.

Samples 10^4 x 500, float64, 40 MB; the tensor itself would have 500^4 entries, 500 GB. The read is the fastest of
several sums of all entries in the same run, on the same threads. Every candidate is run once a round
(``timing.interleaved``); ratios are of medians. What people do today: einsum over the samples, mode by mode, and the
formula written out in NumPy with four separate partials, both on data that were centred beforehand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from timing import interleaved, judged, missed, write

import restpoint as rp
from restpoint.kernels.moments import Moments
from restpoint.kernels.threads import run, use_threads

N, FEATURES, STARTS, ROUNDS = 10_000, 500, 16, 15
THREADS = int(os.environ.get("OPENBLAS_NUM_THREADS", "1"))
Calls = dict[str, Callable[[], object]]
Points = tuple[np.ndarray, ...]


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True)
def total(flat: np.ndarray) -> float:
    """The sum in a compiled loop."""
    found = 0.0
    for j in range(len(flat)):
        found += flat[j]
    return found


def reads(X: np.ndarray) -> Calls:
    """Ways to read every entry once."""
    flat, ones = X.reshape(-1), np.ones(X.shape[1])
    parts = np.array_split(flat, THREADS)
    return {
        "sum in Numba": lambda: run([partial(total, part) for part in parts]),
        "sum in NumPy": lambda: run([partial(np.sum, part) for part in parts]),
        "sum of squares by BLAS": lambda: np.dot(flat, flat),
        "product with ones": lambda: X @ ones,
    }


def points(*batch: int) -> Points:
    rng = np.random.default_rng(1)
    xs = rng.standard_normal((4, *batch, FEATURES))
    return tuple(xs / np.linalg.norm(xs, axis=-1, keepdims=True))


def by_einsum(A: np.ndarray, xs: Points) -> list[np.ndarray]:
    """Each partial as a user would write it down."""
    found = []
    for i in range(4):
        j, k, m = (x for mode, x in enumerate(xs) if mode != i)
        moment = np.einsum("rn,ra,a,rb,b,rc,c->n", A, A, j, A, k, A, m, optimize=True)
        for one, two, three in ((j, k, m), (k, j, m), (m, j, k)):
            number = np.einsum("ra,a,rb,b->", A, two, A, three, optimize=True) / len(A)
            moment = moment - number * np.einsum("rn,ra,a->n", A, A, one, optimize=True)
        found.append(moment / len(A))
    return found


def by_partials(A: np.ndarray, xs: Points) -> list[np.ndarray]:
    """The formula in NumPy, one partial after the other."""
    found = []
    for i in range(4):
        j, k, m = (A @ x for mode, x in enumerate(xs) if mode != i)
        p = j * k * m - j * np.mean(k * m) - k * np.mean(j * m) - m * np.mean(j * k)
        found.append(p @ A / len(A))
    return found


def one_by_one(kernel: Moments, xs: Points) -> None:
    for k in range(STARTS):
        kernel.all_partials(tuple(x[k] for x in xs))


def main() -> int:
    X = np.random.default_rng(0).standard_normal((N, FEATURES)) + 0.3
    f = rp.smooth.MomentTensor(X, 4, cumulant=True)
    tied = rp.smooth.MomentTensor(X, 4, cumulant=True, tied=(0, 0, 0, 0))
    moment = rp.smooth.MomentTensor(X, 4)
    xs, many, A = points(), points(STARTS), X - f.mean
    for a, b, c in zip(
        f.kernel.all_partials(xs), by_einsum(A, xs), by_partials(A, xs), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a, c, rtol=1e-9, atol=1e-12)
    names = reads(X)
    calls: Calls = {
        **names,
        "all partials": lambda: f.kernel.all_partials(xs),
        "all partials, moment": lambda: moment.kernel.all_partials(xs),
        "gradient, tied": lambda: tied.gradient(xs[:1]),
        f"all partials, {STARTS} starts": lambda: f.kernel.all_partials(many),
        f"{STARTS} starts, one by one": lambda: one_by_one(f.kernel, many),
        "einsum over samples": lambda: by_einsum(A, xs),
        "NumPy, four partials": lambda: by_partials(A, xs),
        "matrix product": lambda: X[:500].T @ X[:500],
    }
    with use_threads(THREADS):
        timed = interleaved(calls, rounds=ROUNDS, repeats=1)
    seconds = {name: times["median"] for name, times in timed.items()}
    read, ours = min(seconds[name] for name in names), seconds["all partials"]
    together = seconds[f"all partials, {STARTS} starts"]
    rate = 2 * 500 * FEATURES**2 / seconds["matrix product"]
    verdicts = judged({"reads, all partials": ours / read}, {"reads, all partials": ("<", 3.0)})
    write(
        {
            "seconds": timed,
            "reads": {name: value / read for name, value in seconds.items()},
            "reads, from the best of each": timed["all partials"]["best"]
            / min(timed[name]["best"] for name in names),
            "einsum over samples / all partials": seconds["einsum over samples"] / ours,
            "NumPy, four partials / all partials": seconds["NumPy, four partials"] / ours,
            "one by one / together": seconds[f"{STARTS} starts, one by one"] / together,
            "flops, 16 starts / matrix product": 16 * STARTS * N * FEATURES / together / rate,
            "bytes": {"samples": X.nbytes, "the tensor, if it were formed": 8 * FEATURES**4},
            "floors": verdicts,
        }
    )
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
