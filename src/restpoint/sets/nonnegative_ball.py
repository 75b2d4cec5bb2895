"""The part of the Euclidean ball that lies in the nonnegative orthant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restpoint.array import (
    Array,
    event_max,
    expand,
    namespace,
    norm,
    parameter,
    power_sum,
    whole_number,
)
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class NonnegativeBall(Set):
    r"""S = {x >= 0 : ||x||_2 <= radius}.

    ``radius`` is a number or has the batch shape. Points of S differ by at most max(x_j, y_j) in coordinate j, so
    diam_p(S) <= sqrt(2) r n^(1/p - 1/2) for p <= 2 and 2^(1/p) r for p >= 2 (r for a single entry): never above
    that of the ball. Every operation costs O(n).

    >>> NonnegativeBall(2.0).project(np.array([3.0, 4.0, -1.0]))
    array([1.2, 1.6, 0. ])
    """

    nonnegative: ClassVar[bool] = True

    radius: Array = parameter(1.0)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        hint = "a ball of radius 0 is one point; fix that variable instead"
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius, hint))

    @property
    def has_interior(self) -> bool:
        return True

    def support(self, g: Array) -> Array:
        """radius ||max(g, 0)||: Cauchy-Schwarz, with equality at ``extreme(-g)``."""
        return self.radius * norm(namespace(g).maximum(g, 0.0), self.event_ndim)

    def extreme(self, g: Array) -> Array:
        """radius z / ||z|| with z = max(-g, 0), and 0 where z = 0."""
        xp = namespace(g)
        z = xp.maximum(-g, 0.0)
        size = norm(z, self.event_ndim)
        return z * expand(self.radius / xp.where(size > 0, size, 1.0 + 0.0 * size), self.event_ndim)

    def absolute_support(self, a: Array) -> Array:
        return self.radius * norm(a, self.event_ndim)

    def project(self, x: Array) -> Array:
        """Onto the orthant, then onto the ball (proof: ``oracles.NonnegativeBallSeparable``)."""
        xp = namespace(x)
        above = xp.maximum(x, 0.0)
        size = norm(above, self.event_ndim)
        inside = size <= self.radius
        scale = self.radius / xp.where(inside, xp.ones_like(size), size)
        pulled = above * expand(scale, self.event_ndim)
        return xp.where(expand(inside, self.event_ndim), above, pulled)

    def inside(self, x: Array) -> Array:
        """No negative entry, and the norm up to its rounding: a normalised point is not moved by a last digit."""
        xp, count = namespace(x), math.prod(x.shape[x.ndim - self.event_ndim :])
        slack = (count + 8) * float(xp.finfo(x.dtype).eps)
        short = norm(x, self.event_ndim) <= self.radius * (1.0 + slack)
        return (event_max(-x, self.event_ndim) <= 0.0) & short

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape)
        if size == 1:
            return 1.0 * self.radius
        return self.radius * (2.0 ** (1.0 / p) if p >= 2.0 else math.sqrt(2.0) * _ratio(size, p))

    def reach(self, z: Array, p: float) -> Array:
        """(||z||_p^p + max ||y||_p^p)^(1/p), because |y - z|^p <= max(y, z)^p <= y^p + z^p, entry by entry."""
        size = math.prod(z.shape[z.ndim - self.event_ndim :])
        return (power_sum(z, p, self.event_ndim) + (self.radius * _ratio(size, p)) ** p) ** (1 / p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        del shape
        return self.radius

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform on the part of the sphere that bounds the set: |Gaussian|, normalised."""
        direction = np.abs(rng.standard_normal(shape))
        return np.asarray(direction * (self.radius / float(np.sqrt(np.sum(direction**2)))))


def _ratio(size: int, p: float) -> float:
    """max ||u||_p over ||u||_2 <= 1 in R^size."""
    return size ** max(0.0, 1.0 / p - 0.5)
