"""The convex hull of projections of one rank."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restpoint.array import Array, whole_number
from restpoint.sets._symmetric import SymmetricSet, entrywise
from restpoint.sets.capped_simplex import CappedSimplex


@dataclass(frozen=True)
class Fantope(SymmetricSet):
    r"""S = {X = X' : 0 <= X <= I, trace X = rank}, the convex hull of all projections onto subspaces of that dimension.

    Support function: the sum of the ``rank`` largest eigenvalues of G (Fan). With d = min(rank, n - rank), diam_p(S) =
    (2 d)^(1/p) for p >= 2, and at most (2 d)^(1/2) n^(2/p - 1) below. Both oracles cost an eigenvalue decomposition.

    >>> import numpy as np
    >>> Fantope(2).extreme(np.diag([1.0, -1.0, 0.0])) + 0.0
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    rank: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", whole_number("rank", self.rank, 1))

    def eigenvalues(self) -> CappedSimplex:
        return CappedSimplex(float(self.rank))

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        apart = 2.0 * min(self.rank, shape[0] - self.rank)
        return entrywise(math.sqrt(apart), 1.0, p, shape[0])

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        del shape
        return math.sqrt(self.rank)
