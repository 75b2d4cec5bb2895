"""The convex hull of k-sparse vectors."""

from __future__ import annotations

import math
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
from restpoint.sets._norm_ball import NormBall


@dataclass(frozen=True)
class KSparsePolytope(NormBall):
    r"""S = the convex hull of all vectors with at most k entries other than 0, each +-radius.

    S = {x : ||x||_inf <= radius, ||x||_1 <= k radius}. ``radius`` is a number or has the batch shape. The support
    function is radius times the sum of the k largest |g_j|. diam_p(S) = 2 radius min(k, n)^(1/p). The linear oracle
    costs a sort, and so does the projection: |x| clipped to [0, radius] after a shift that makes the sum k radius.

    >>> import numpy as np
    >>> KSparsePolytope(2).extreme(np.array([1.0, -3.0, 0.5, 2.0]))
    array([ 0.,  1.,  0., -1.])
    """

    k: int
    radius: Array = parameter(1.0)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k", whole_number("k", self.k, 1))

    def size(self, x: Array) -> Array:
        """max(||x||_inf, ||x||_1 / k), the norm whose ball this is."""
        xp = namespace(x)
        magnitude = xp.abs(x)
        total = event_sum(magnitude, self.event_ndim) / self.k
        return xp.maximum(event_max(magnitude, self.event_ndim), total)

    def support(self, g: Array) -> Array:
        xp = namespace(g)
        sizes = -xp.sort(-flatten_event(xp.abs(g), self.event_ndim), axis=-1)
        return self.radius * xp.sum(sizes[..., : self.k], axis=-1)

    def extreme(self, g: Array) -> Array:
        xp = namespace(g)
        order = xp.argsort(flatten_event(-xp.abs(g), self.event_ndim), axis=-1)
        rank = xp.reshape(xp.argsort(order, axis=-1), g.shape)
        radius = expand(self.radius, self.event_ndim)
        return xp.where(rank < self.k, -radius * xp.sign(g), 0.0 * g)

    def project(self, x: Array) -> Array:
        xp, radius = namespace(x), expand(self.radius, self.event_ndim)
        size = xp.abs(x)
        clipped = xp.minimum(size, radius + 0.0 * size)
        room = self.k * self.radius
        within = event_sum(clipped, self.event_ndim) <= room
        flat = flatten_event(size, self.event_ndim)
        upper = flatten_event(radius + 0.0 * size, self.event_ndim)
        if flat.shape[-1] > self.k:  # else the sum takes no part
            shifted = xp.reshape(shifted_to_total(flat, room, upper=upper), x.shape)
            clipped = xp.where(expand(within, self.event_ndim), clipped, shifted)
        return xp.sign(x) * clipped

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        return self.radius * min(self.k, math.prod(shape)) ** (1.0 / p)
