"""Products of intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restpoint.array import (
    Array,
    event_sum,
    is_array,
    namespace,
    parameter,
    power_sum,
    scaled_norm,
    whole_number,
)
from restpoint.errors import DataError
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class Box(Set):
    r"""S = {x : lower <= x <= upper}, entry by entry.

    The bounds are numbers or events (per start) and must be finite, because S must be compact; where they
    coincide the coordinate is fixed. diam_p(S) = ||upper - lower||_p. Every operation costs O(n).

    >>> Box(-1.0, 1.0).extreme(np.array([2.0, -3.0]))
    array([-1.,  1.])
    """

    lower: Array = parameter(event=True)
    upper: Array = parameter(event=True)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        for name in ("lower", "upper"):
            value = _checks.event(name, getattr(self, name), self.event_ndim)
            object.__setattr__(self, name, value)
        _checks.alike("Box", lower=self.lower, upper=self.upper)
        gap = self.upper - self.lower
        if not bool(namespace(gap).all(gap >= 0) if is_array(gap) else gap >= 0):
            raise DataError(
                "the box is empty: lower must be <= upper in every entry; are they exchanged?"
            )

    @property
    def has_interior(self) -> bool:
        width = self.upper - self.lower
        return bool(namespace(width).min(width) > 0) if is_array(width) else width > 0

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _checks.same_event("Box", "lower", self.lower, shape)
        _checks.same_event("Box", "upper", self.upper, shape)

    def support(self, g: Array) -> Array:
        return event_sum(namespace(g).maximum(g * self.lower, g * self.upper), self.event_ndim)

    def extreme(self, g: Array) -> Array:
        xp = namespace(g)
        return xp.where(g > 0, self.lower + 0 * g, self.upper + 0 * g)

    def absolute_support(self, a: Array) -> Array:
        return event_sum(a * self._largest(), self.event_ndim)

    def project(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.minimum(xp.maximum(x, self.lower), self.upper)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return self._power_norm(self.upper - self.lower, p, shape)

    def reach(self, z: Array, p: float) -> Array:
        xp = namespace(z)
        far = xp.maximum(self.upper - z, z - self.lower)
        return power_sum(far, p, self.event_ndim) ** (1.0 / p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return self._power_norm(self._largest(), 2.0, shape)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform."""
        return np.asarray(self.lower + (self.upper - self.lower) * rng.random(shape))

    def _largest(self) -> Array:
        """max(|lower|, |upper|), entry by entry."""
        if not (is_array(self.lower) or is_array(self.upper)):
            return max(abs(self.lower), abs(self.upper))
        xp = namespace(self.lower, self.upper)
        return xp.maximum(abs(self.lower), abs(self.upper))

    def _power_norm(self, width: Array, p: float, shape: tuple[int, ...]) -> Array:
        if isinstance(width, float):
            return width * np.prod(shape) ** (1.0 / p)
        xp, batch = namespace(width), width.shape[: width.ndim - self.event_ndim]
        return scaled_norm(xp.broadcast_to(width, (*batch, *shape)), p, self.event_ndim)
