"""Doubly stochastic matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restpoint.array import Array, namespace, norm, power_sum
from restpoint.errors import ShapeError
from restpoint.sets._by_oracle import OracleSet, value


@dataclass(frozen=True)
class Birkhoff(OracleSet):
    r"""S = {X >= 0 : rows and columns sum to 1}, the convex hull of the n x n permutation matrices.

    The linear oracle is an assignment problem for each start (SciPy, O(n^3)); its answer is a permutation, so the
    value is exact. diam_p(S) = (2 n)^(1/p). Projections take as many assignments as their point has permutations.

    >>> Birkhoff().extreme(np.array([[1.0, 2.0], [0.0, 5.0]]))
    array([[0., 1.],
           [1., 0.]])
    """

    nonnegative: ClassVar[bool] = True
    event_ndim = 2

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if shape[0] != shape[1]:
            raise ShapeError(
                f"Birkhoff holds square matrices, but the block has event shape {shape}"
            )

    def minimisers(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from scipy.optimize import linear_sum_assignment

        points = np.zeros_like(g)
        for row, point in zip(g, points, strict=True):
            point[linear_sum_assignment(row)] = 1.0
        return points, value(g, points)

    def absolute_support(self, a: Array) -> Array:
        return self.support(a)

    def violation(self, x: Array) -> Array:
        """The distance from where all sums are 1, or from where no entry is negative: not above that from S."""
        xp, n = namespace(x), x.shape[-1]
        rows, columns = (xp.sum(x, axis=axis, keepdims=True) - 1.0 for axis in (-1, -2))
        both = xp.sum(rows, axis=-2, keepdims=True)
        apart = (rows + columns - both / n) / n
        return xp.maximum(norm(apart, 2), norm(xp.minimum(x, 0.0), 2))

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return (2.0 * shape[0]) ** (1.0 / p) if shape[0] > 1 else 0.0

    def reach(self, z: Array, p: float) -> Array:
        return self.diameter(p, tuple(z.shape[-2:])) + 0.0 * power_sum(z, 2.0, 2)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return float(shape[0]) ** 0.5
