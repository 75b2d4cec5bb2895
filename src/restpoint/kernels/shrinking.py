"""What the solvers of shrinking problems share.

To shrink v is to minimise ||s - v||^2 / 2 + H(s) for a sublinear H: the support function of some C. The answer is
v - P_C(v), which has a closed form for few H. The solvers walk in C instead: every q in C proves ||v - q|| >= the norm
of the answer, so that what rests on them is sound wherever they stop (theory A2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array


class Shrunk(NamedTuple):
    """A point near the shrunk v, ||v - q|| for some q in C, and where a later solve may begin."""

    point: Array
    bound: Array
    hint: Any


def line_search(slope: Any, most: int = 40) -> float:
    """The minimiser in (0, 1] of a convex function of one variable by its increasing ``slope``; slope(0) < 0."""
    low, high = 0.0, 1.0
    first = abs(slope(0.0))
    for _ in range(most):
        middle = 0.5 * (low + high)
        there = slope(middle)
        if abs(there) <= 1e-3 * first:
            return middle
        low, high = (middle, high) if there < 0.0 else (low, middle)
    return high


def solve_ridged(matrix: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    """(matrix + ridge mean-diagonal I)^-1 right for a positive semidefinite matrix, refined once."""
    from scipy.linalg.lapack import dposv, dpotrs

    size = len(right)
    shift = ridge * float(np.trace(matrix)) / max(size, 1)
    if not shift > 0.0:
        return np.zeros(size)
    for _ in range(8):
        factor, solution, trouble = dposv(
            matrix + shift * np.eye(size), right, lower=True, overwrite_a=True
        )
        if trouble == 0:
            correction, _ = dpotrs(factor, right - matrix @ solution, lower=True)
            return np.asarray(solution + correction)
        shift *= 1e3
    return np.zeros(size)
