"""The ball of the ordered weighted l1 norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_max,
    expand,
    inner,
    namespace,
    parameter,
    sorted_profile,
)
from restpoint.errors import ShapeError
from restpoint.kernels.row_solvers import sorted_threshold
from restpoint.sets._norm_ball import NormBall


@dataclass(frozen=True)
class OWLBall(NormBall):
    r"""S = {x : sum_i profile_i |x|_(i) <= radius}, |x|_(1) >= |x|_(2) >= ...

    ``profile`` is an event (or one per start), nonincreasing and >= 0; ``radius`` is a number or has the batch shape.
    With W_k = profile_1 + ... + profile_k, extreme points have k entries +-radius / W_k and zeros, and the support
    function is radius max_k (sum of the k largest |g_j|) / W_k. diam_p(S) = 2 radius max_k k^(1/p) / W_k. The linear
    oracle costs a sort; so does the projection, with a few isotonic regressions (compiled).

    >>> import numpy as np
    >>> OWLBall([2.0, 1.0, 0.5], 3.0).extreme(np.array([1.0, -1.0, 0.1]))
    array([-1.,  1.,  0.])
    """

    profile: Array = parameter(event=True)
    radius: Array = parameter(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "profile", sorted_profile(self.profile))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.profile.shape[-1] != shape[-1]:
            raise ShapeError(
                f"OWLBall: profile has shape {tuple(self.profile.shape)}, but the block has event shape {tuple(shape)}"
            )

    def size(self, x: Array) -> Array:
        return inner(_descending(x), self.profile + 0.0 * x)

    def support(self, g: Array) -> Array:
        return self.radius * event_max(self._slopes(_descending(g)))

    def extreme(self, g: Array) -> Array:
        xp = namespace(g)
        size = xp.abs(g)
        order = xp.argsort(-size, axis=-1)
        slopes = self._slopes(xp.take_along_axis(size, order, axis=-1))
        last = xp.argmax(slopes, axis=-1)[..., None]
        room = xp.cumulative_sum(self.profile + 0.0 * g, axis=-1)
        length = expand(self.radius) / xp.take_along_axis(room, last, axis=-1)
        return xp.where(xp.argsort(order, axis=-1) <= last, -xp.sign(g) * length, 0.0 * g)

    def project(self, x: Array) -> Array:
        xp = namespace(x)
        size = xp.abs(x)
        order = xp.argsort(-size, axis=-1)
        sizes = xp.take_along_axis(size, order, axis=-1)
        shrunk = sorted_threshold(sizes, self.profile, self.radius)
        back = xp.take_along_axis(shrunk, xp.argsort(order, axis=-1), axis=-1)
        return self._kept(x, xp.sign(x) * back)

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        xp = namespace(self.profile)
        counts = xp.arange(1, shape[-1] + 1, device=getattr(self.profile, "device", None))
        room = xp.cumulative_sum(self.profile, axis=-1)
        return self.radius * event_max(xp.astype(counts, room.dtype) ** (1.0 / p) / room)

    def _slopes(self, descending: Array) -> Array:
        """The support function for vectors with k entries of one size, for all k."""
        xp = namespace(descending)
        room = xp.cumulative_sum(self.profile, axis=-1)
        return xp.cumulative_sum(descending, axis=-1) / room


def _descending(x: Array) -> Array:
    """|x|, sorted."""
    xp = namespace(x)
    return -xp.sort(-xp.abs(x), axis=-1)
