"""Total variation in one dimension."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_sum, expand, namespace, parameter
from restpoint.kernels.row_solvers import denoised
from restpoint.penalties._checks import nonnegative_weight
from restpoint.penalties.base import Penalty


@dataclass(frozen=True)
class TotalVariation(Penalty):
    r"""h(x) = weight sum_j |x_(j+1) - x_j| + sparsity ||x||_1: piecewise constant x, the fused lasso.

    ``weight``, ``sparsity`` >= 0 are numbers or have the batch shape. Sublinear. prox: dynamic programming along x,
    O(n), compiled, and soft thresholding of the result. They compose because differences that are positive (0,
    negative) are not negative (are 0, are not positive) after thresholding, so that a subgradient of the first term
    stays one. (Graphs other than the line: ``AnalysisL1``.)

    >>> import numpy as np
    >>> TotalVariation(0.5).prox(np.array([0.0, 3.0, 3.0]), 1.0)
    array([0.5 , 2.75, 2.75])
    """

    sublinear = True

    weight: Array = parameter()
    sparsity: Array = parameter(0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", nonnegative_weight(self.weight))
        object.__setattr__(self, "sparsity", nonnegative_weight(self.sparsity, "sparsity"))

    def value(self, x: Array) -> Array:
        xp = namespace(x)
        jumps = event_sum(xp.abs(x[..., 1:] - x[..., :-1]))
        return self.weight * jumps + self.sparsity * event_sum(xp.abs(x))

    def prox(self, v: Array, step: Array) -> Array:
        xp, most = namespace(v), expand(step * self.sparsity)
        smooth = denoised(v, step * self.weight)
        return smooth - xp.minimum(xp.maximum(smooth, -most), most + 0.0 * smooth)

    def scaled(self, factor: Array) -> TotalVariation:
        return TotalVariation(self.weight * factor, self.sparsity * factor)

    def magnitude(self, x: Array) -> Array:
        """(2 weight + sparsity) ||x||_1: differences cancel."""
        return (2.0 * self.weight + self.sparsity) * event_sum(namespace(x).abs(x))
