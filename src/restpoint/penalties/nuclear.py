"""The nuclear norm."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_sum, expand, namespace, parameter
from restpoint.kernels.decompositions import singular_values, with_singular_values
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty
from restpoint.penalties.l1 import L1


@dataclass(frozen=True)
class Nuclear(Penalty):
    r"""h(X) = weight sum_i sigma_i(X), the sum of the singular values of an m x n matrix.

    ``weight`` >= 0 is a number or has the batch shape. Sublinear (the support function of the spectral ball of radius
    weight). prox: soft thresholding of the singular values; one singular value decomposition each.

    >>> import numpy as np
    >>> Nuclear(1.0).prox(np.array([[3.0, 0.0], [0.0, 0.5]]), 1.0)
    array([[2., 0.], [0., 0.]])
    """

    sublinear = True
    event_ndim = 2

    weight: Array = parameter()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))

    def value(self, x: Array) -> Array:
        return self.weight * event_sum(singular_values(x))

    def prox(self, v: Array, step: Array) -> Array:
        most = expand(step * self.weight)
        return with_singular_values(v, lambda sizes: namespace(v).maximum(sizes - most, 0.0))

    def scaled(self, factor: Array) -> Nuclear:
        return Nuclear(self.weight * factor)

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def of_singular_values(self) -> L1:
        return L1(self.weight)
