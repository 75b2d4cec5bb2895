"""What sets that are known by their linear oracle share: one row at a time on the host, and projections through it."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from restpoint.array import Array, convert, flatten_event, inner, to_host
from restpoint.kernels.corrective import Linear, corrective
from restpoint.sets.base import Set


class OracleSet(Set):
    """A compact convex set whose linear oracle is all that there is."""

    projects: ClassVar[bool] = False

    @abstractmethod
    def minimisers(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points of S that minimise g'y for every row of g, (rows, *event), and lower bounds on the minima."""

    def minimiser(self, g: Array) -> tuple[Array, Array]:
        batch, event = g.shape[: g.ndim - self.event_ndim], g.shape[g.ndim - self.event_ndim :]
        rows = np.asarray(to_host(g), dtype=np.float64).reshape(-1, *event)
        known = np.all(np.isfinite(rows), axis=tuple(range(1, rows.ndim)))
        points, lower = self.minimisers(np.where(_lifted(known, rows), rows, 0.0))
        points = np.where(_lifted(known, rows), points, np.nan)
        lower = np.where(known, lower, np.nan)
        return convert(points.reshape(g.shape), g), convert(lower.reshape(batch), g)

    def support(self, g: Array) -> Array:
        """max g'y, or what is proved to be above it."""
        return -self.minimiser(-g)[1]

    def extreme(self, g: Array) -> Array:
        return self.minimiser(g)[0]

    def project(self, x: Array) -> Array:
        """By fully corrective conditional gradient: a mixture of extreme points, near the nearest one to rounding."""
        batch = x.shape[: x.ndim - self.event_ndim]
        event = tuple(x.shape[x.ndim - self.event_ndim :])
        rows = np.asarray(to_host(flatten_event(x, self.event_ndim)), dtype=np.float64)
        rows = rows.reshape(-1, rows.shape[-1])

        def linear(g: np.ndarray, _: np.ndarray) -> Linear:
            points, lower = self.minimisers(g.reshape(-1, *event))
            return Linear(points.reshape(g.shape), np.zeros(len(g)), lower)

        found = corrective(linear, 0.0 * rows, rows, np.ones(len(rows)))
        return convert(found.points.reshape((*batch, *event)), x)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A random mixture of two extreme points."""
        first, second = self.minimisers(rng.standard_normal((2, *shape)))[0]
        share = rng.random()
        return np.asarray(share * first + (1.0 - share) * second)


def value(g: np.ndarray, points: np.ndarray) -> np.ndarray:
    """g'y for every row."""
    return np.asarray(inner(g, points, g.ndim - 1))


def _lifted(known: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return known[(..., *([None] * (rows.ndim - 1)))]
