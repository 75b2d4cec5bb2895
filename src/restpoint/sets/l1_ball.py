"""The weighted l1 ball."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_max,
    event_sum,
    expand,
    first_largest,
    flatten_event,
    is_array,
    namespace,
    parameter,
)
from restpoint.kernels.thresholds import shifted_to_total
from restpoint.sets import _checks
from restpoint.sets._norm_ball import NormBall


@dataclass(frozen=True)
class L1Ball(NormBall):
    r"""S = {x : sum_j scales_j |x_j| <= radius}, scales > 0.

    ``radius`` is a number or has the batch shape; ``scales`` is a number or an event (per start), 1 by default.
    Extreme points: 0 but for one entry, +-radius / scales_j. diam_p(S) = 2 radius / min scales for every p >= 1. The
    linear oracle costs O(n), the projection O(n log n): v - clip(v, -tau scales, tau scales) with tau by sorting.

    >>> import numpy as np
    >>> L1Ball(2.0).project(np.array([3.0, -2.0, 0.5]))
    array([ 1.5, -0.5,  0. ])
    """

    radius: Array = parameter(1.0)
    scales: Array = parameter(1.0, event=True)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        hint = "an entry that costs nothing is unbounded"
        scales = _checks.positive("scales", self.scales, hint)
        object.__setattr__(self, "scales", _checks.event("scales", scales, self.event_ndim))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _checks.same_event("L1Ball", "scales", self.scales, shape)

    def size(self, x: Array) -> Array:
        return event_sum(self.scales * namespace(x).abs(x), self.event_ndim)

    def support(self, g: Array) -> Array:
        return self.radius * event_max(namespace(g).abs(g) / self.scales, self.event_ndim)

    def extreme(self, g: Array) -> Array:
        """-+radius / scales_j at the first entry where |g_j| / scales_j is largest."""
        xp = namespace(g)
        vertex = first_largest(flatten_event(xp.abs(g) / self.scales, self.event_ndim))
        length = expand(self.radius, self.event_ndim) / self.scales
        return xp.where(xp.reshape(vertex, g.shape), -xp.sign(g) * length, 0.0 * g)

    def project(self, x: Array) -> Array:
        xp = namespace(x)
        scales = self.scales
        if is_array(scales):
            scales = flatten_event(scales + 0.0 * x, self.event_ndim)
        flat = flatten_event(xp.abs(x), self.event_ndim)
        shrunk = xp.reshape(shifted_to_total(flat, self.radius, scales), x.shape)
        return self._kept(x, xp.sign(x) * shrunk)

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        del p, shape
        if not is_array(self.scales):
            return self.radius / self.scales
        return self.radius * event_max(1.0 / self.scales, self.event_ndim)
