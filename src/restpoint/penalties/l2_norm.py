"""The Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, expand, namespace, norm, parameter, whole_number
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class L2Norm(Penalty):
    r"""h(x) = weight ||x||_2, the norm itself, not its square: x is 0 as a whole, or not at all.

    ``weight`` >= 0 is a number or has the batch shape. prox: v (1 - step weight / ||v||)^+. Sublinear (the support
    function of the ball of radius weight). Of matrices it is the Frobenius norm.

    >>> import numpy as np
    >>> L2Norm(5.0).prox(np.array([6.0, 8.0]), 1.0)
    array([3., 4.])
    """

    sublinear = True

    weight: Array = parameter()
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))

    def value(self, x: Array) -> Array:
        return self.weight * norm(x, self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        xp, size = namespace(v), norm(v, self.event_ndim)
        left = xp.maximum(size - step * self.weight, 0.0)
        return v * expand(left / xp.where(size > 0, size, xp.ones_like(size)), self.event_ndim)

    def scaled(self, factor: Array) -> L2Norm:
        return L2Norm(self.weight * factor, self.event_ndim)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def of_singular_values(self) -> L2Norm | None:
        """||X||_F = ||sigma(X)||_2."""
        return L2Norm(self.weight) if self.event_ndim == 2 else None
