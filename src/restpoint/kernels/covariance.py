"""Mean, covariance and whitening of samples, read block by block in float64 wherever they live."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from restpoint.array import Array, require_memory, to_host
from restpoint.errors import DataError

# Numbers in one block of centred samples: 2 MB.
BLOCK = 2**18


def blocks(X: Array, mean: np.ndarray | None) -> Iterator[np.ndarray]:
    """The rows of X less the mean, some at a time."""
    N, rows = int(X.shape[0]), max(1, BLOCK // int(X.shape[1]))
    for low in range(0, N, rows):
        block = np.asarray(to_host(X[low : min(low + rows, N), :]), dtype=np.float64)
        yield block if mean is None else block - mean


def mean(X: Array) -> np.ndarray:
    """The mean of the rows."""
    total = np.zeros(int(X.shape[1]))
    for block in blocks(X, None):
        total += np.sum(block, axis=0)
    return total / int(X.shape[0])


def covariance(
    X: Array, mean: np.ndarray | None, whitening: np.ndarray | None = None
) -> np.ndarray:
    """(1/N) sum_r a_r a_r', a_r = x_r - mean or W'(x_r - mean): the entries err by at most gamma_k s_i s_j.

    s_i^2 is the mean of the squares of |x_ri - mean_i|, and k = N + 6: N products of differences, each rounded once,
    are summed; sum_r |a_ri||a_rj| <= N s_i s_j (Cauchy-Schwarz). With W of n rows, s_i^2 is the mean of the squares of
    (|W|'|x_r - mean|)_i, and k = N + 2n + 6: either factor is a sum of n products.

    W'CW with the covariance C of the features is the same only in exact arithmetic: C has roundings relative to its
    largest deviations, which W enlarges twice, by the square of the condition of X. Here W enlarges them once.
    """
    side = int(X.shape[1]) if whitening is None else whitening.shape[1]
    require_memory(3 * 8 * side**2, f"the covariance of {side:,} features")
    total = np.zeros((side, side))
    for block in blocks(X, mean):
        rows = block if whitening is None else block @ whitening
        total += rows.T @ rows
    return (0.5 / int(X.shape[0])) * (total + total.T)


def whitening(C: np.ndarray, components: int | None) -> np.ndarray:
    """E diag(eigenvalues)^(-1/2), columns in order of falling eigenvalue: W'CW = I up to rounding.

    Each column's largest entry is positive, so that it does not depend on the solver's signs.
    """
    side = C.shape[0]
    eigenvalues, vectors = np.linalg.eigh(C)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    floor = side * np.finfo(np.float64).eps * max(float(eigenvalues[0]), 0.0)
    rank = int(np.sum(eigenvalues > floor))
    wanted = side if components is None else components
    if wanted > rank:
        constant = np.flatnonzero(np.diagonal(C) <= floor)
        because = f" (constant: columns {constant[:5].tolist()})" if constant.size else ""
        raise DataError(
            f"X cannot be whitened to {wanted} components: its covariance has rank {rank}{because}; "
            + (f"say whiten={rank} to keep the leading ones" if rank else "it does not vary")
        )
    kept = vectors[:, :wanted]
    peaks = kept[np.argmax(np.abs(kept), axis=0), np.arange(wanted)]
    return np.ascontiguousarray(kept * (np.sign(peaks) / np.sqrt(eigenvalues[:wanted])))


def largest_entry(X: Array, mean: np.ndarray | None) -> float:
    """max |x_rj - mean_j|."""
    return max(float(np.max(np.abs(block))) for block in blocks(X, mean))
