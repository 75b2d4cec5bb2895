"""The l1 norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_sum,
    expand,
    namespace,
    parameter,
    parameter_value,
    whole_number,
)
from restpoint.errors import DataError
from restpoint.penalties.base import SeparableSublinear


@dataclass(frozen=True)
class L1(SeparableSublinear):
    r"""h(x) = weight ||x||_1, weight >= 0: a number, or one per start.

    An array of weights is a batch of problems (a path of penalties), not one weight for each entry of x.

    prox: soft thresholding. Sublinear (the support function of the box [-weight, weight]^n) and separable.

    >>> import numpy as np
    >>> L1(0.5).prox(np.array([2.0, -0.25, -1.0]), 1.0)
    array([ 1.5,  0. , -0.5])
    """

    weight: Array = parameter()
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        weight = parameter_value("weight", self.weight)
        smallest = weight if isinstance(weight, float) else float(namespace(weight).min(weight))
        if smallest < 0:
            raise DataError(
                f"weight must be >= 0, got {smallest}: a negative l1 weight is not convex"
            )
        object.__setattr__(self, "weight", weight)

    def value(self, x: Array) -> Array:
        return self.weight * event_sum(namespace(x).abs(x), self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        """v - clip(v, -t, t), t = step weight: exact zeros, and v - prox is exactly dual feasible."""
        xp, threshold = namespace(v), expand(step * self.weight, self.event_ndim)
        return v - xp.minimum(xp.maximum(v, -threshold), threshold)

    def scaled(self, factor: Array) -> L1:
        return L1(self.weight * factor, self.event_ndim)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def slopes(self) -> tuple[Array, Array]:
        weight = expand(self.weight, self.event_ndim)
        return -weight, weight
