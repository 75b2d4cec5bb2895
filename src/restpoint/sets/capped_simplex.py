"""The simplex with upper bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restpoint.array import (
    Array,
    event_max,
    event_sum,
    expand,
    is_array,
    namespace,
    parameter,
    power_sum,
    to_host,
)
from restpoint.errors import DataError
from restpoint.kernels.thresholds import shifted_to_total
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class CappedSimplex(Set):
    r"""S = {x : 0 <= x <= upper, sum_j x_j = total}.

    With upper = 1 and a whole total k: the hypersimplex, whose extreme points are the 0-1 vectors with k ones.
    ``total`` is a number or has the batch shape, ``upper`` a number or an event (per start). Linear oracle (the
    cheapest entries are filled up first) and projection (clip(v - tau, 0, upper)) cost O(n log n). Points differ by
    at most upper_j in entry j and by 2 total in sum, so diam_p(S)^p <= min(sum upper^p, 2 total (max upper)^(p-1)).

    >>> import numpy as np
    >>> hypersimplex = CappedSimplex(2.0)
    >>> hypersimplex.extreme(np.array([3.0, -1.0, 0.0, 2.0]))
    array([0., 1., 1., 0.])
    >>> hypersimplex.project(np.array([3.0, 1.0, 0.5, 0.0]))
    array([1.  , 0.75, 0.25, 0.  ])
    """

    nonnegative: ClassVar[bool] = True

    total: Array = parameter(1.0)
    upper: Array = parameter(1.0, event=True)

    def __post_init__(self) -> None:
        hint = "only 0 would be left; fix that variable instead"
        object.__setattr__(self, "total", _checks.positive("total", self.total, hint))
        upper = _checks.positive("upper", self.upper, "leave out the entries that are 0")
        object.__setattr__(self, "upper", upper)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _checks.same_event("CappedSimplex", "upper", self.upper, shape)
        room = self.upper * shape[0]
        if is_array(self.upper):
            xp = namespace(self.upper)
            room = event_sum(xp.broadcast_to(self.upper, (*self.upper.shape[:-1], *shape)))
        short = to_host(room - self.total) if is_array(room - self.total) else room - self.total
        if not np.all(short >= 0.0):
            raise DataError(
                f"CappedSimplex is empty: the upper bounds of {shape[0]} entries add up to less than the total, by "
                f"{-float(np.min(short)):.3g}; raise upper, or lower the total"
            )

    def support(self, g: Array) -> Array:
        return event_sum(g * self.extreme(-g))

    def extreme(self, g: Array) -> Array:
        """Entries are filled in the order of g; the last of them takes the rest."""
        xp = namespace(g)
        order = xp.argsort(g, axis=-1)
        if is_array(self.upper):
            room = xp.take_along_axis(self.upper + 0.0 * g, order, axis=-1)
        else:
            room = self.upper + 0.0 * g
        before = xp.cumulative_sum(room, axis=-1) - room
        rest = expand(self.total) - before
        filled = xp.minimum(xp.maximum(rest, 0.0), room)
        return xp.take_along_axis(filled, xp.argsort(order, axis=-1), axis=-1)

    def absolute_support(self, a: Array) -> Array:
        return self.support(a)

    def project(self, x: Array) -> Array:
        upper = self.upper + 0.0 * x
        return shifted_to_total(x, self.total, upper=upper)

    def inside(self, x: Array) -> Array:
        """Entries within their bounds, and the total up to the rounding of a sum."""
        xp, total = namespace(x), event_sum(x)
        slack = (x.shape[-1] + 8) * float(xp.finfo(x.dtype).eps)
        within = event_max(xp.maximum(-x, x - self.upper)) <= 0.0
        return within & (abs(total - self.total) <= slack * self.total)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        if shape[0] == 1:
            return 0.0 * self.total
        return self._bound(2.0 * self.total, p, shape)

    def reach(self, z: Array, p: float) -> Array:
        """At most max(z_j, upper_j - z_j) in each entry."""
        xp = namespace(z)
        return power_sum(xp.maximum(z, self.upper - z), p) ** (1.0 / p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return self._bound(self.total, 2.0, shape)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A random mixture of two extreme points."""
        first, second = self.extreme(rng.standard_normal((2, *shape)))
        share = rng.random()
        return np.asarray(share * first + (1.0 - share) * second)

    def _bound(self, total: Array, p: float, shape: tuple[int, ...]) -> Array:
        """||d||_p for any d with |d| <= upper and sum |d| <= total."""
        if not is_array(self.upper):
            return (self.upper ** (p - 1.0) * _smaller(total, self.upper * shape[0])) ** (1.0 / p)
        xp = namespace(self.upper)
        upper = xp.broadcast_to(self.upper, (*self.upper.shape[:-1], *shape))
        largest = event_max(upper)
        all_of_them = largest * event_sum((upper / largest[..., None]) ** p)
        return largest ** (1.0 - 1.0 / p) * _smaller(total, all_of_them) ** (1.0 / p)


def _smaller(a: Array, b: Array) -> Array:
    if not (is_array(a) or is_array(b)):
        return min(a, b)
    xp = namespace(a, b)
    return xp.where(a < b, a + 0.0 * b, b + 0.0 * a)
