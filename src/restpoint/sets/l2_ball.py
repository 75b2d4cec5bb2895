"""The Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from restpoint.array import (
    Array,
    event_sum,
    expand,
    namespace,
    norm,
    parameter,
    power_sum,
    scaled_norm,
    whole_number,
)
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class L2Ball(Set):
    r"""S = {x : ||x - center||_2 <= radius}.

    ``radius`` is a number or has the batch shape; ``center`` is a number or an event (per start), whose axes of
    length 1 stand for all entries.
    diam_p(S) = 2 r n^(1/p - 1/2) for p <= 2 and 2 r for p >= 2. Every operation costs O(n).

    >>> L2Ball(2.0).project(np.array([3.0, 4.0]))
    array([1.2, 1.6])
    """

    radius: Array = parameter(1.0)
    center: Array = parameter(0.0, event=True)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        hint = "a ball of radius 0 is one point; fix that variable instead"
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius, hint))
        object.__setattr__(self, "center", _checks.event("center", self.center, self.event_ndim))

    @property
    def centered(self) -> bool:
        """Whether the centre is the origin, which several closed forms need."""
        return isinstance(self.center, float) and self.center == 0.0

    @property
    def has_interior(self) -> bool:
        return True

    @property
    def solid(self) -> bool:  # type: ignore[override]
        """Whether |y| <= |x| keeps y inside: around the origin."""
        return self.centered

    def singular_values(self) -> L2Ball | None:
        """Of matrices around the origin, the ball of the Frobenius norm."""
        return L2Ball(self.radius) if self.centered and self.event_ndim == 2 else None

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _checks.same_event("L2Ball", "center", self.center, shape)

    def support(self, g: Array) -> Array:
        return self._at_center(g) + self.radius * norm(g, self.event_ndim)

    def extreme(self, g: Array) -> Array:
        return self.center - self._scaled(g)

    def absolute_support(self, a: Array) -> Array:
        """|center|'a + radius ||a||_2."""
        return self._at_center(a, absolute=True) + self.radius * norm(a, self.event_ndim)

    def project(self, x: Array) -> Array:
        """center + d min(1, radius / ||d||), d = x - center; a point inside comes back unchanged."""
        xp, d = namespace(x), x - self.center
        size = norm(d, self.event_ndim)
        inside = size <= self.radius
        outside = xp.where(inside, xp.ones_like(size), size)
        pulled = self.center + d * expand(self.radius / outside, self.event_ndim)
        return xp.where(expand(inside, self.event_ndim), x, pulled)

    def inside(self, x: Array) -> Array:
        """Up to the rounding of ||x - center||: a normalised point is not moved by a last digit."""
        xp, count = namespace(x), math.prod(x.shape[x.ndim - self.event_ndim :])
        slack = (count + 8) * float(xp.finfo(x.dtype).eps)
        return norm(x - self.center, self.event_ndim) <= self.radius * (1.0 + slack)

    def violation(self, x: Array) -> Array:
        """max(0, ||x - center|| - radius)."""
        xp = namespace(x)
        return xp.maximum(norm(x - self.center, self.event_ndim) - self.radius, 0.0)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return 2.0 * self.radius * _norm_ratio(math.prod(shape), p)

    def reach(self, z: Array, p: float) -> Array:
        """||z - center||_p + radius max ||u||_p over ||u||_2 <= 1."""
        size = math.prod(z.shape[z.ndim - self.event_ndim :])
        offset = power_sum(z - self.center, p, self.event_ndim) ** (1.0 / p)
        return offset + self.radius * _norm_ratio(size, p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        if isinstance(self.center, float):
            return abs(self.center) * math.sqrt(math.prod(shape)) + self.radius
        batch = self.center.shape[: self.center.ndim - self.event_ndim]
        center = namespace(self.center).broadcast_to(self.center, (*batch, *shape))
        return scaled_norm(center, event_ndim=self.event_ndim) + self.radius

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform on the sphere that bounds the ball: where sparse problems have their solutions."""
        direction = rng.standard_normal(shape)
        size = float(np.sqrt(np.sum(direction**2)))
        return np.asarray(self.center + direction * (self.radius / size))

    def _scaled(self, g: Array) -> Array:
        """radius g / ||g||, and 0 where g = 0."""
        xp, size = namespace(g), norm(g, self.event_ndim)
        safe = xp.where(size > 0, size, xp.ones_like(size))
        return g * expand(self.radius / safe, self.event_ndim)

    def _at_center(self, g: Array, *, absolute: bool = False) -> Array:
        """g'center, or |g|'|center|."""
        if self.centered:
            return 0.0
        if isinstance(self.center, float):
            return (abs(self.center) if absolute else self.center) * event_sum(g, self.event_ndim)
        center = namespace(g).abs(self.center) if absolute else self.center
        return event_sum(g * center, self.event_ndim)


def _norm_ratio(size: int, p: float) -> float:
    """max ||u||_p over ||u||_2 <= 1 in R^size."""
    return size ** max(0.0, 1.0 / p - 0.5)
