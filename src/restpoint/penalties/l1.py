"""The l1 norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_sum,
    expand,
    namespace,
    parameter,
    whole_number,
)
from restpoint.errors import ShapeError
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import SeparableSublinear


@dataclass(frozen=True)
class L1(SeparableSublinear):
    r"""h(x) = weight sum_j scales_j |x_j|, weight >= 0: a number, or one per start.

    An array of weights is a batch of problems (a path of penalties), not one weight for each entry of x: those are the
    ``scales``, an event (or one per start), 1 for all entries by default.

    prox: soft thresholding. Sublinear (the support function of the box |u_j| <= weight scales_j) and separable.

    >>> import numpy as np
    >>> L1(0.5).prox(np.array([2.0, -0.25, -1.0]), 1.0)
    array([ 1.5,  0. , -0.5])
    >>> float(L1(0.5, scales=np.array([1.0, 0.0, 3.0])).value(np.array([2.0, -0.25, -1.0])))
    2.5
    """

    weight: Array = parameter()
    event_ndim: int = 1
    scales: Array = parameter(1.0, event=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))
        scales = nonnegative_weight(self.scales, "scales")
        if not isinstance(scales, float) and scales.ndim < self.event_ndim:
            raise ShapeError(
                f"scales has shape {tuple(scales.shape)}; expected a number, or at least {self.event_ndim} axes"
            )
        object.__setattr__(self, "scales", scales)

    def value(self, x: Array) -> Array:
        size = namespace(x).abs(x)
        if self.uniform:
            return self.weight * event_sum(size, self.event_ndim)
        return self.weight * event_sum(self.scales * size, self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        """v - clip(v, -t, t), t = step weight scales: exact zeros, and v - prox is exactly dual feasible."""
        xp, threshold = namespace(v), expand(step * self.weight, self.event_ndim) * self.scales
        return v - xp.minimum(xp.maximum(v, -threshold), threshold)

    def scaled(self, factor: Array) -> L1:
        return L1(self.weight * factor, self.event_ndim, self.scales)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def slopes(self) -> tuple[Array, Array]:
        weight = expand(self.weight, self.event_ndim) * self.scales
        return -weight, weight

    @property
    def uniform(self) -> bool:
        """Whether all entries weigh the same."""
        return isinstance(self.scales, float) and self.scales == 1.0
