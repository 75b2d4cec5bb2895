"""The ball of the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restpoint.array import Array, event_sum, norm, parameter
from restpoint.kernels.decompositions import singular_values, with_singular_values
from restpoint.sets._norm_ball import NormBall, stretch
from restpoint.sets.l1_ball import L1Ball


@dataclass(frozen=True)
class NuclearBall(NormBall):
    r"""S = {X : sum_i sigma_i(X) <= radius}, the sum of the singular values of an m x n matrix.

    The convex hull of the matrices radius u v' with ||u|| = ||v|| = 1, of rank one: sparse in its singular values.
    ``radius`` is a number or has the batch shape. Support function: radius sigma_1(G). diam_p(S) =
    2 radius (m n)^max(0, 1/p - 1/2), entrywise. Both oracles cost a singular value decomposition.

    >>> import numpy as np
    >>> NuclearBall(2.0).extreme(np.array([[3.0, 0.0], [0.0, 1.0]])) + 0.0
    array([[-2.,  0.],
           [ 0.,  0.]])
    """

    solid = False
    event_ndim = 2

    radius: Array = parameter(1.0)

    def singular_values(self) -> L1Ball:
        return L1Ball(self.radius)

    def size(self, x: Array) -> Array:
        return event_sum(singular_values(x))

    def support(self, g: Array) -> Array:
        return self.radius * singular_values(g)[..., 0]

    def extreme(self, g: Array) -> Array:
        return with_singular_values(g, self.singular_values().extreme)

    def project(self, x: Array) -> Array:
        return self._kept(x, with_singular_values(x, self.singular_values().project))

    def absolute_support(self, a: Array) -> Array:
        """Radius ||a||_F, that of the Frobenius ball around it."""
        return self.radius * norm(a, 2)

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        return self.radius * stretch(math.prod(shape), p, 2.0)
