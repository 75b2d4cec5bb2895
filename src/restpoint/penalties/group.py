"""Norms of groups of entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restpoint.array import (
    Array,
    check_group_scales,
    check_labels,
    convert,
    event_sum,
    expand,
    flatten_event,
    group_labels,
    is_array,
    namespace,
    parameter,
    whole_number,
)
from restpoint.kernels.segments import Segments
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class Group(Penalty):
    r"""h(x) = weight sum_g scales_g ||x_g||_2 + sparsity ||x||_1, over groups g that do not overlap.

    ``groups`` numbers the group of every entry (an event of whole numbers 0, 1, ...); it is the same for all starts.
    ``weight``, ``sparsity`` >= 0 are numbers or have the batch shape; ``scales`` >= 0, one per group, is 1 by default
    (the root of the group's length is usual). ``sparsity`` > 0 makes it the sparse group penalty. Sublinear. prox:
    soft thresholding of the entries, then of the norms; O(n). They compose because a subgradient of ||.||_1 at x is
    one at every c x, c >= 0: with s = prox_l1(v), v - s is a subgradient at s and so at the shrunk c s, too.

    >>> import numpy as np
    >>> Group([0, 0, 1], 1.0).prox(np.array([3.0, 4.0, 0.5]), 1.0)
    array([2.4, 3.2, 0. ])
    """

    sublinear = True

    groups: np.ndarray
    weight: Array = parameter()
    scales: Array = 1.0
    sparsity: Array = parameter(0.0)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "groups", group_labels("groups", self.groups, self.event_ndim))
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))
        object.__setattr__(self, "sparsity", nonnegative_weight(self.sparsity, "sparsity"))
        scales = nonnegative_weight(self.scales, "scales")
        check_group_scales(scales, len(self.segments.lengths))
        object.__setattr__(self, "scales", scales)

    @cached_property
    def segments(self) -> Segments:
        """What sums over groups."""
        return Segments(self.groups)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_labels("Group", self.groups, shape)

    def value(self, x: Array) -> Array:
        flat = flatten_event(x, self.event_ndim)
        sizes = self._scales_like(x) * self.segments.norms(flat)
        return self.weight * event_sum(sizes) + self.sparsity * event_sum(namespace(x).abs(flat))

    def prox(self, v: Array, step: Array) -> Array:
        xp, flat = namespace(v), flatten_event(v, self.event_ndim)
        most = expand(step * self.sparsity)
        flat = flat - xp.minimum(xp.maximum(flat, -most), most + 0.0 * flat)
        sizes = self.segments.norms(flat)
        left = xp.maximum(sizes - expand(step * self.weight) * self._scales_like(v), 0.0)
        shares = left / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        return xp.reshape(flat * self.segments.spread(shares), v.shape)

    def scaled(self, factor: Array) -> Group:
        weight, sparsity = self.weight * factor, self.sparsity * factor
        return Group(self.groups, weight, self.scales, sparsity, self.event_ndim)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def _scales_like(self, x: Array) -> Array:
        return convert(self.scales, x) if is_array(self.scales) else self.scales
