"""Convex hulls of finitely many points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restpoint.array import Array, asarray, convert, namespace, power_sum, to_host
from restpoint.errors import ShapeError
from restpoint.sets._by_oracle import OracleSet


@dataclass(frozen=True)
class ConvexHull(OracleSet):
    r"""S = the convex hull of the rows of ``vertices``, m x n; the same for all starts, and not copied.

    Points inside the hull among them do no harm. The linear oracle is one product with the matrix. diam_p(S) is at
    most twice the largest distance of a vertex from their mean. Projections take as many products as their point has
    vertices.

    >>> ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]).extreme(np.array([-1.0, -1.0]))
    array([2., 0.])
    """

    vertices: Array

    def __post_init__(self) -> None:
        vertices = asarray("vertices", self.vertices)
        if vertices.ndim != 2 or 0 in vertices.shape:
            raise ShapeError(
                f"vertices has shape {tuple(vertices.shape)}; expected (points, entries), one point at least"
            )
        object.__setattr__(self, "vertices", vertices)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != tuple(self.vertices.shape[1:]):
            raise ShapeError(
                f"ConvexHull: vertices has shape {tuple(self.vertices.shape)}, but the block has event shape "
                f"{tuple(shape)}"
            )

    def minimiser(self, g: Array) -> tuple[Array, Array]:
        xp, vertices = namespace(g), convert(self.vertices, g)
        products = g @ vertices.T
        index = xp.argmin(products, axis=-1)
        points = xp.take(vertices, xp.reshape(index, (-1,)), axis=0)
        return xp.reshape(points, g.shape), xp.min(products, axis=-1)

    def minimisers(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points, lower = self.minimiser(g)
        return np.asarray(points), np.asarray(lower)

    def absolute_support(self, a: Array) -> Array:
        xp = namespace(a)
        return xp.max(a @ xp.abs(convert(self.vertices, a)).T, axis=-1)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        host = np.asarray(to_host(self.vertices), dtype=np.float64)
        return 2.0 * float(np.max(power_sum(host - np.mean(host, axis=0), p) ** (1.0 / p)))

    def reach(self, z: Array, p: float) -> Array:
        """The farthest point is a vertex; that would cost m n numbers for each start, so the diameter stands for it."""
        return self.diameter(p, ()) + 0.0 * power_sum(z, 2.0)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        host = np.asarray(to_host(self.vertices), dtype=np.float64)
        return float(np.max(np.sqrt(power_sum(host, 2.0))))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A random mixture of all vertices."""
        host = np.asarray(to_host(self.vertices), dtype=np.float64)
        shares = rng.standard_exponential(len(host)) ** 3
        return np.asarray(shares / shares.sum() @ host)
