"""The ordered weighted l1 norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, expand, inner, namespace, parameter, sorted_profile
from restpoint.errors import ShapeError
from restpoint.kernels.row_solvers import nonincreasing
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class OWL(Penalty):
    r"""h(x) = weight sum_i profile_i |x|_(i), |x|_(1) >= |x|_(2) >= ...: SLOPE, OSCAR, and what else is sorted.

    ``profile`` is an event (or one per start), nonincreasing and >= 0; ``weight`` >= 0 is a number or has the batch
    shape. A constant profile is the l1 norm, (1, 0, ..., 0) the l-infinity norm. Sublinear. prox: |v| sorted, less
    step weight profile, its nearest nonincreasing vector cut off at 0, and back in place: O(n log n), compiled.

    >>> import numpy as np
    >>> OWL([2.0, 1.0, 0.0]).prox(np.array([3.0, -2.5, 0.5]), 1.0)
    array([ 1.25, -1.25,  0.5 ])
    """

    sublinear = True

    profile: Array = parameter(event=True)
    weight: Array = parameter(1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))
        object.__setattr__(self, "profile", sorted_profile(self.profile))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.profile.shape[-1] != shape[-1]:
            raise ShapeError(
                f"OWL: profile has shape {tuple(self.profile.shape)}, but the block has event shape {tuple(shape)}"
            )

    def value(self, x: Array) -> Array:
        xp = namespace(x)
        return self.weight * inner(-xp.sort(-xp.abs(x), axis=-1), self.profile + 0.0 * x)

    def prox(self, v: Array, step: Array) -> Array:
        xp = namespace(v)
        size = xp.abs(v)
        order = xp.argsort(-size, axis=-1)
        less = expand(step * self.weight) * self.profile
        sizes = nonincreasing(xp.take_along_axis(size, order, axis=-1) - less)
        back = xp.take_along_axis(sizes, xp.argsort(order, axis=-1), axis=-1)
        return xp.sign(v) * xp.maximum(back, 0.0)

    def scaled(self, factor: Array) -> OWL:
        return OWL(self.profile, self.weight * factor)

    def magnitude(self, x: Array) -> Array:
        """Two neighbours that rounding sorts the wrong way do not matter: they are as good as equal."""
        return self.value(x)
