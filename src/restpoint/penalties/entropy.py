"""Negative entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from restpoint.array import Array, event_sum, expand, is_array, namespace, parameter, to_host
from restpoint.kernels.scalar_equations import logarithmic_root
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class Entropy(Penalty):
    r"""h(x) = weight sum_j x_j log x_j for x >= 0, with 0 log 0 = 0: it draws x towards equal entries.

    ``weight`` >= 0 is a number or has the batch shape. Convex and separable, not sublinear, infinite at negative
    entries; at least -weight n / e. prox: the root y of y + step weight (1 + log y) = v, entry by entry, by Newton's
    method in log y.

    >>> import numpy as np
    >>> float(Entropy(2.0).value(np.array([0.0, 1.0, np.e]))) / np.e
    2.0
    """

    separable = True
    nonnegative = True
    lower_bound = -math.inf

    weight: Array = parameter()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))

    def least(self, shape: tuple[int, ...]) -> float:
        weight = to_host(self.weight) if is_array(self.weight) else self.weight
        return -float(np.max(weight)) * math.prod(shape) / math.e * (1.0 + 1e-15)

    def value(self, x: Array) -> Array:
        return self.weight * event_sum(_terms(x))

    def prox(self, v: Array, step: Array) -> Array:
        weight = expand(step * self.weight) + 0.0 * v
        return logarithmic_root(v - weight, weight)

    def scaled(self, factor: Array) -> Entropy:
        return Entropy(self.weight * factor)

    def magnitude(self, x: Array) -> Array:
        """Entries may be on either side of 1; those a rounding error below 0 count as 0."""
        return self.weight * event_sum(namespace(x).abs(_terms(x)) + namespace(x).abs(x))


def _terms(x: Array) -> Array:
    """x log x; 0 at 0, and infinite below."""
    xp = namespace(x)
    inside = x > 0
    terms = x * xp.log(xp.where(inside, x, xp.ones_like(x)))
    return xp.where(x >= 0, terms, xp.inf + 0.0 * x)
