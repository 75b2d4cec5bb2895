"""What the solvers of shrinking problems share.

To shrink v is to minimise ||s - v||^2 / 2 + H(s) for a sublinear H: the support function of some C. The answer is
v - P_C(v), which has a closed form for few H. The solvers walk in C instead: every q in C proves ||v - q|| >= the norm
of the answer, so that what rests on them is sound wherever they stop (theory A2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array, is_array, to_host

# Of the mean diagonal: rows that determine no direction leave a Newton matrix singular.
RIDGE = 1e-12


class Shrunk(NamedTuple):
    """A point near the shrunk v, ||v - q|| for some q in C, and where a later solve may begin."""

    point: Array
    bound: Array
    hint: Any


def per_start(value: Array, shape: tuple[int, ...]) -> np.ndarray:
    """A number or an array, on the host, spread over ``shape``."""
    return np.broadcast_to(to_host(value) if is_array(value) else value, shape)


def solve_ridged(matrix: np.ndarray, right: np.ndarray, damping: float = 0.0) -> np.ndarray:
    """(matrix + damping I)^-1 right for a positive semidefinite matrix; nearly the least solution if it is singular."""
    from scipy.linalg.lapack import dposv, dpotrs

    size = len(right)
    shift = damping + RIDGE * float(np.trace(matrix)) / max(size, 1)
    if not shift > 0.0:
        return np.zeros(size)
    for _ in range(8):
        shifted = matrix.copy()
        shifted.flat[:: size + 1] += shift
        factor, solution, trouble = dposv(shifted, right, lower=True, overwrite_a=True)
        if trouble == 0:
            if damping > 0.0:
                return np.asarray(solution)
            # Once more, to remove what the ridge has changed.
            correction, _ = dpotrs(factor, right - matrix @ solution, lower=True)
            return np.asarray(solution + correction)
        shift *= 1e3
    return np.zeros(size)
