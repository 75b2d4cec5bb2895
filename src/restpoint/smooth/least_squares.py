"""Least squares."""

from __future__ import annotations

from typing import Any

from restpoint.array import Array, gamma, namespace
from restpoint.smooth import _checks
from restpoint.smooth._linear_terms import LinearTerms
from restpoint.smooth._rounding import SLACK, is_double, underflow
from restpoint.smooth.base import Blocks


class LeastSquares(LinearTerms):
    r"""f(x) = ||Ax - b||_2^2 / 2, a sum of N = len(b) terms (``MiniBatch`` can sample them).

    Convex, lower bound 0. Joint constant, p = 2: ||A||_2^2 (theory E4), an upper bound from the smaller of AA'
    and A'A, computed when first asked for. A gradient costs two products with A, and is more accurate than
    one with A'A. Where only one of A and b is float64, the other becomes float64 too: give b in float32 to keep a large
    float32 A as it is. Rounding: theory A12.

    >>> import numpy as np
    >>> f = LeastSquares([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, 1.0, 2.0])
    >>> value, (gradient,) = f.value_and_gradient((np.array([1.0, 2.0]),))
    >>> float(value), gradient
    (4.0, array([2., 6.]))
    """

    _data = ("A", "b")
    _curvature = 1.0

    def __init__(self, A: Any, b: Any) -> None:
        super().__init__(A)
        rows = int(self.A.shape[0])
        b = _checks.vector("b", b, rows, self.A, because=f"A has {rows} rows")
        self.A, self.b = _checks.together(self.A, b)

    def _terms_of(self, t: Array) -> tuple[Array, Array]:
        residual = t - self.b
        return 0.5 * namespace(residual).vecdot(residual, residual), residual

    def _slopes(self, t: Array, index: Array) -> Array:
        xp = namespace(t)
        return t - xp.reshape(xp.take(self.b, xp.reshape(index, (-1,)), axis=0), index.shape)

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """|A|'(e + gamma_N |r|) per entry, e = gamma_{n+1} (|A||x| + |b|) the error of the residual r."""
        (x,) = xs
        if not is_double(x, self.A):
            return None
        xp, (rows, columns) = namespace(x), self.A.shape
        absolute, tiny = xp.abs(self.A), underflow(x, 4 * (rows + columns))
        residual = xp.abs(x @ self.A.T - self.b)
        error = SLACK * gamma(columns + 1) * (xp.abs(x) @ absolute.T + xp.abs(self.b)) + tiny
        entries = SLACK * ((error + gamma(rows) * residual) @ absolute) + tiny
        value = xp.vecdot(residual + 0.5 * error, error)
        value = value + 0.5 * gamma(rows + 1) * xp.vecdot(residual, residual)
        return SLACK * value + tiny, (entries,)
