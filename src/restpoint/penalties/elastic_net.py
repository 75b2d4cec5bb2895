"""The elastic net."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, expand, inner, parameter, whole_number
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty
from restpoint.penalties.l1 import L1


@dataclass(frozen=True)
class ElasticNet(Penalty):
    r"""h(x) = weight ||x||_1 + (ridge / 2) ||x||_2^2.

    ``weight``, ``ridge`` >= 0 are numbers or have the batch shape. prox: soft thresholding, then division by
    1 + step ridge. Separable, not sublinear. Wherever a rule has a prox for p = 2 with ``L1``, this has both oracles.

    >>> import numpy as np
    >>> ElasticNet(1.0, ridge=1.0).prox(np.array([3.0, -0.5]), 1.0)
    array([1., 0.])
    """

    separable = True

    weight: Array = parameter()
    ridge: Array = parameter()
    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))
        object.__setattr__(self, "ridge", nonnegative_weight(self.ridge, "ridge"))

    @property
    def rest(self) -> L1:
        """All but the square."""
        return L1(self.weight, self.event_ndim)

    def value(self, x: Array) -> Array:
        square = 0.5 * self.ridge * inner(x, x, self.event_ndim)
        return self.rest.value(x) + square

    def prox(self, v: Array, step: Array) -> Array:
        shrunk = self.rest.prox(v, step)
        return shrunk / expand(1.0 + step * self.ridge, self.event_ndim)

    def scaled(self, factor: Array) -> ElasticNet:
        return ElasticNet(self.weight * factor, self.ridge * factor, self.event_ndim)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)
