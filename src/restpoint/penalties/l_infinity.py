"""The largest entry."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_max,
    event_sum,
    expand,
    flatten_event,
    namespace,
    parameter,
    whole_number,
)
from restpoint.kernels.thresholds import shifted_to_total
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class LInfinity(Penalty):
    r"""h(x) = weight max_j |x_j|: the largest entries are drawn together.

    ``weight`` >= 0 is a number or has the batch shape. Sublinear (the support function of the l1 ball of radius
    weight), so that the prox is v minus its projection onto that ball, times step (Moreau): O(n log n).

    >>> import numpy as np
    >>> LInfinity(2.0).prox(np.array([3.0, -2.0, 0.5]), 1.0)
    array([ 1.5, -1.5,  0.5])
    """

    sublinear = True

    weight: Array = parameter()
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))

    def value(self, x: Array) -> Array:
        return self.weight * event_max(namespace(x).abs(x), self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        """min(|v|, level) with the signs of v, and 0 where ||v||_1 <= step weight."""
        xp, ndim = namespace(v), self.event_ndim
        size = xp.abs(v)
        total = step * self.weight + 0.0 * event_sum(size, ndim)
        beyond = shifted_to_total(flatten_event(size, ndim), total)
        kept = xp.maximum(size - xp.reshape(beyond, v.shape), 0.0)
        small = event_sum(size, ndim) <= total
        return xp.where(expand(small, ndim), 0.0 * v, xp.sign(v) * kept)

    def scaled(self, factor: Array) -> LInfinity:
        return LInfinity(self.weight * factor, self.event_ndim)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)
