"""What the balls of a norm share."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from restpoint.array import Array, expand, namespace, power_sum, whole_number
from restpoint.sets import _checks
from restpoint.sets.base import Set


class NormBall(Set):
    r"""S = {x : ||x|| <= radius} for a norm of |x|, so that S is solid.

    A ball says how large a point is, which point is the farthest in a direction, and how it projects. Its fields
    ``radius`` and ``event_ndim`` are its own, so that other parameters may come first.
    """

    solid: ClassVar[bool] = True

    radius: Array

    def __post_init__(self) -> None:
        hint = "a ball of radius 0 is one point; fix that variable instead"
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius, hint))

    @abstractmethod
    def size(self, x: Array) -> Array:
        """||x||, per start."""

    @abstractmethod
    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        """max ||y||_p over S, or an upper bound."""

    @property
    def has_interior(self) -> bool:
        return True

    def inside(self, x: Array) -> Array:
        """Up to the rounding of the norm: a normalised point is not moved by a last digit."""
        xp, count = namespace(x), math.prod(x.shape[x.ndim - self.event_ndim :])
        slack = (count + 8) * float(xp.finfo(x.dtype).eps)
        return self.size(x) <= self.radius * (1.0 + slack)

    def absolute_support(self, a: Array) -> Array:
        return self.support(a)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        """2 max ||y||_p: S is symmetric."""
        return 2.0 * self.largest(p, shape)

    def reach(self, z: Array, p: float) -> Array:
        """||z||_p + max ||y||_p."""
        shape = tuple(z.shape[z.ndim - self.event_ndim :])
        return power_sum(z, p, self.event_ndim) ** (1.0 / p) + self.largest(p, shape)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return self.largest(2.0, shape)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A Gaussian direction, to the boundary."""
        direction = rng.standard_normal(shape)
        return np.asarray(direction * (self.radius / float(self.size(direction))))

    def _kept(self, x: Array, projected: Array) -> Array:
        """``x`` where it is inside, else its projection: a point of S comes back unchanged."""
        within = self.size(x) <= self.radius
        return namespace(x).where(expand(within, self.event_ndim), x, projected)


def stretch(size: int, p: float, power: float) -> float:
    """max ||u||_p over ||u||_power <= 1 in R^size."""
    return float(size ** max(0.0, 1.0 / p - 1.0 / power))
