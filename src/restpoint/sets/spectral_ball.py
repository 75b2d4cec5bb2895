"""The ball of the spectral norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restpoint.array import Array, event_sum, norm, parameter
from restpoint.kernels.decompositions import singular_values, with_singular_values
from restpoint.sets._norm_ball import NormBall
from restpoint.sets.lp_ball import LpBall


@dataclass(frozen=True)
class SpectralBall(NormBall):
    r"""S = {X : sigma_1(X) <= radius}, the largest singular value of an m x n matrix.

    The convex hull of radius times the matrices with orthonormal columns (rows, if wide). ``radius`` is a number or has
    the batch shape. Support function: radius times the sum of the singular values. With k = min(m, n),
    diam_p(S) = 2 radius k^(1/p) for p >= 2, and at most 2 radius k^(1/2) (m n)^(1/p - 1/2) below. Both oracles cost a
    singular value decomposition.

    >>> import numpy as np
    >>> SpectralBall(2.0).project(np.array([[3.0, 0.0], [0.0, 1.0]]))
    array([[2., 0.],
           [0., 1.]])
    """

    solid = False
    event_ndim = 2

    radius: Array = parameter(1.0)

    def singular_values(self) -> LpBall:
        return LpBall(math.inf, self.radius)

    def size(self, x: Array) -> Array:
        return singular_values(x)[..., 0]

    def support(self, g: Array) -> Array:
        return self.radius * event_sum(singular_values(g))

    def extreme(self, g: Array) -> Array:
        return with_singular_values(g, self.singular_values().extreme)

    def project(self, x: Array) -> Array:
        return self._kept(x, with_singular_values(x, self.singular_values().project))

    def absolute_support(self, a: Array) -> Array:
        """Radius k^(1/2) ||a||_F, that of the Frobenius ball around it."""
        return self.radius * math.sqrt(min(a.shape[-2:])) * norm(a, 2)

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        k, power = min(shape), math.prod(shape) ** max(0.0, 1.0 / p - 0.5)
        return self.radius * (k ** (1.0 / p) if p >= 2.0 else math.sqrt(k) * power)
