"""Orthonormal bases of tall matrices from small eigenvalue problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array import Array, asarray, convert, real_number, to_host
from restpoint.errors import DataError, ShapeError

# Of the largest singular value: what one eigenvalue problem of A'A can tell from rounding.
ONE_ROUND = 1e-6


def column_basis(A: Any, tolerance: float = 1e-10) -> Array:
    """An orthonormal basis of the column space of A, p x m: directions of singular values > tolerance * largest.

    By rounds of eigenvalue problems of A'A, each for singular values down to 1e-6 of the largest that is left, and a
    last one that removes what rounding did to orthogonality. Costs a few products with A, O(p m^2).
    """
    given = asarray("A", A)
    if given.ndim != 2:
        raise ShapeError(f"A has shape {tuple(given.shape)}; expected (features, columns)")
    tolerance = real_number("tolerance", tolerance, "a number in (0, 1)")
    if not 0.0 < tolerance < 1.0:
        raise DataError(f"tolerance must be a number in (0, 1), got {tolerance}")
    rest = to_host(given).astype(np.float64, copy=False)
    basis, largest = np.empty((rest.shape[0], 0)), 0.0
    while rest.shape[1]:
        squares, V = np.linalg.eigh(rest.T @ rest)
        sizes = np.sqrt(np.maximum(squares, 0.0))
        largest = max(largest, sizes[-1])
        if not sizes[-1] > tolerance * largest:
            break
        kept = sizes > max(ONE_ROUND * sizes[-1], tolerance * largest)
        new = rest @ (V[:, kept] / sizes[kept])
        new = _straightened(new - basis @ (basis.T @ new))
        rest = rest @ V[:, ~kept]
        basis = np.concatenate([basis, new], axis=1)
        rest = rest - basis @ (basis.T @ rest)
    return convert(_straightened(basis), given)


def _straightened(Q: np.ndarray) -> np.ndarray:
    """Nearly orthonormal columns made orthonormal to rounding, by the Cholesky factor of Q'Q."""
    if Q.shape[1] == 0:
        return Q
    from scipy.linalg import solve_triangular

    factor = np.linalg.cholesky(Q.T @ Q)
    return np.ascontiguousarray(solve_triangular(factor, Q.T, lower=True, check_finite=False).T)
