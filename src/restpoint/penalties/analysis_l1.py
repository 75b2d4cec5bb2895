"""The l1 norm of analysis coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from restpoint.array import Array, asarray, convert, event_sum, inner, namespace, parameter
from restpoint.errors import ShapeError
from restpoint.kernels.analysis import Analysis
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class AnalysisL1(Penalty):
    r"""h(x) = weight ||Kx||_1 = weight sum_i |(Kx)_i|, for a dense m x n matrix K.

    ``weight`` >= 0 is a number or has the batch shape; weights of rows go into K. K is data: not copied, and the same
    for all starts. Sublinear (the support function of {K'u : |u_i| <= weight}), and separable only where K is diagonal.
    prox: v - K'u with u a minimiser of ||v - K'u||_2 over the box |u_i| <= step weight (theory E36), found by Newton's
    method to rounding; the first one computes KK'. A closed form exists for square orthogonal K alone.

    >>> import numpy as np
    >>> smooth = AnalysisL1(np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]), 1.0)
    >>> smooth.prox(np.array([0.0, 3.0, 3.0]), 0.5)
    array([0.5 , 2.75, 2.75])
    """

    K: Array
    weight: Array = parameter()

    sublinear: ClassVar[bool] = True
    exact_prox: ClassVar[bool] = False

    def __post_init__(self) -> None:
        K = asarray("K", self.K)
        if K.ndim != 2 or 0 in K.shape:
            raise ShapeError(
                f"K has shape {tuple(K.shape)}; expected a matrix, (coefficients, entries)"
            )
        object.__setattr__(self, "K", K)
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))

    @cached_property
    def kernel(self) -> Analysis:
        """What solves problems with K."""
        return Analysis(self.K)

    def value(self, x: Array) -> Array:
        return self.weight * event_sum(namespace(x).abs(x @ self.K.T))

    def prox(self, v: Array, step: Array) -> Array:
        return self.kernel.shrink(v, step * self.weight).point

    def scaled(self, factor: Array) -> AnalysisL1:
        return self._with(AnalysisL1(self.K, self.weight * factor))

    def magnitude(self, x: Array) -> Array:
        """Weight |x|'(|K|'1), and more: where the depth of sums counts as n, those here are m + n deep."""
        sums = self.kernel.deeper * self.kernel.column_sums
        return self.weight * inner(namespace(x).abs(x), sums)

    def converted(self, like: Array) -> Self:
        other, K = super().converted(like), convert(self.K, like)
        if K is self.K:
            return other
        twin = object.__new__(type(self))
        twin.__dict__.update(K=K, weight=other.weight)
        return twin

    def _rebuild(self, change: Any, recurse: Any) -> Self:
        other = super()._rebuild(change, recurse)
        return other if other is self else self._with(other)

    def _with(self, other: Any) -> Any:
        """``other``, which has the same K, with what was computed from it."""
        if "kernel" in self.__dict__:
            other.__dict__["kernel"] = self.__dict__["kernel"]
        return other
