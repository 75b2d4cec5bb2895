"""Positive semidefinite matrices of one trace."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, parameter
from restpoint.sets import _checks
from restpoint.sets._symmetric import SymmetricSet, entrywise
from restpoint.sets.simplex import Simplex


@dataclass(frozen=True)
class Spectraplex(SymmetricSet):
    r"""S = {X = X' positive semidefinite, trace X = total}: density matrices, relaxed rank-one matrices.

    The convex hull of total u u' with ||u|| = 1. ``total`` is a number or has the batch shape. Support function:
    total times the largest eigenvalue of G. diam_p(S) = 2^(1/p) total for p >= 2, and at most 2^(1/2) n^(2/p - 1)
    total below. Both oracles cost an eigenvalue decomposition.

    >>> import numpy as np
    >>> Spectraplex().extreme(np.array([[1.0, 0.0], [0.0, -1.0]])) + 0.0
    array([[0., 0.],
           [0., 1.]])
    """

    total: Array = parameter(1.0)

    def __post_init__(self) -> None:
        hint = "only the zero matrix would be left; fix that variable instead"
        object.__setattr__(self, "total", _checks.positive("total", self.total, hint))

    def eigenvalues(self) -> Simplex:
        return Simplex(self.total)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        if shape[0] == 1:
            return 0.0 * self.total
        return self.total * entrywise(2.0**0.5, 1.0, p, shape[0])

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        del shape
        return self.total
