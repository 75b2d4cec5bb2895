"""Balls of norms of groups of entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restpoint.array import (
    Array,
    check_group_scales,
    check_labels,
    convert,
    event_max,
    event_sum,
    expand,
    first_largest,
    flatten_event,
    group_labels,
    is_array,
    namespace,
    parameter,
)
from restpoint.kernels.segments import Segments
from restpoint.kernels.thresholds import shifted_to_total
from restpoint.sets import _checks
from restpoint.sets._norm_ball import NormBall, stretch


@dataclass(frozen=True)
class GroupBall(NormBall):
    r"""S = {x : sum_g scales_g ||x_g||_2 <= radius}, over groups g that do not overlap.

    ``groups`` numbers the group of every entry (an event of whole numbers 0, 1, ...); ``scales`` > 0, one per group,
    is 1 by default; both are the same for all starts. ``radius`` is a number or has the batch shape. Support
    function: radius max_g ||g_g||_2 / scales_g. The projection is that of the norms onto a weighted l1 ball.
    diam_p(S) = 2 radius max_g size_g^max(0, 1/p - 1/2) / scales_g. O(n) and a sort of the groups.

    >>> import numpy as np
    >>> GroupBall([0, 0, 1], 5.0).extreme(np.array([3.0, 4.0, 1.0]))
    array([-3., -4.,  0.])
    """

    groups: np.ndarray
    radius: Array = parameter(1.0)
    scales: Array = 1.0
    event_ndim: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "groups", group_labels("groups", self.groups, self.event_ndim))
        scales = _checks.positive("scales", self.scales, "a group that costs nothing is unbounded")
        check_group_scales(scales, len(self.segments.lengths))
        object.__setattr__(self, "scales", scales)

    @cached_property
    def segments(self) -> Segments:
        """What sums over groups."""
        return Segments(self.groups)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_labels("GroupBall", self.groups, shape)

    def size(self, x: Array) -> Array:
        return event_sum(self._scales_like(x) * self._norms(x))

    def support(self, g: Array) -> Array:
        return self.radius * event_max(self._norms(g) / self._scales_like(g))

    def extreme(self, g: Array) -> Array:
        xp, sizes, scales = namespace(g), self._norms(g), self._scales_like(g)
        chosen = first_largest(sizes / scales) & (sizes > 0)
        length = expand(self.radius) / (scales * xp.where(sizes > 0, sizes, xp.ones_like(sizes)))
        factors = self.segments.spread(xp.where(chosen, -length, 0.0 * sizes))
        return xp.reshape(flatten_event(g, self.event_ndim) * factors, g.shape)

    def project(self, x: Array) -> Array:
        xp, sizes = namespace(x), self._norms(x)
        shrunk = shifted_to_total(sizes, self.radius, self._scales_like(x))
        shares = shrunk / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        flat = flatten_event(x, self.event_ndim) * self.segments.spread(shares)
        return self._kept(x, xp.reshape(flat, x.shape))

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        del shape
        stretches = [stretch(int(length), p, 2.0) for length in self.segments.lengths]
        if is_array(self.scales):
            stretched = convert(np.asarray(stretches), self.scales) / self.scales
            return self.radius * float(namespace(stretched).max(stretched))
        return self.radius * (max(stretches) / self.scales)

    def _norms(self, x: Array) -> Array:
        return self.segments.norms(flatten_event(x, self.event_ndim))

    def _scales_like(self, x: Array) -> Array:
        return convert(self.scales, x) if is_array(self.scales) else self.scales
