"""Logistic regression."""

from __future__ import annotations

from typing import Any

from restpoint.array import Array, convert, gamma, namespace
from restpoint.errors import DataError
from restpoint.smooth import _checks
from restpoint.smooth._linear_terms import LinearTerms
from restpoint.smooth._rounding import FUNCTION_ROUNDINGS, SLACK, is_double, underflow
from restpoint.smooth.base import Blocks


class Logistic(LinearTerms):
    r"""f(x) = sum_i log(1 + exp(-y_i a_i'x)), labels y_i = -1 or 1: the logistic loss, a sum of N terms.

    Convex, lower bound 0. Joint constant, p = 2: ||A||_2^2 / 4 (phi'' <= 1/4, theory E4). Stable for margins of any
    size: only exp(-|t|) is computed. A gradient costs two products with diag(y) A, which is what is kept.
    Rounding: theory A12.

    >>> import numpy as np
    >>> f = Logistic([[1.0, 0.0], [0.0, 1.0]], [1, -1])
    >>> value, (gradient,) = f.value_and_gradient((np.zeros(2),))
    >>> float(value), gradient
    (1.3862943611198906, array([-0.5,  0.5]))
    """

    _data = ("A",)
    _curvature = 0.25

    def __init__(self, A: Any, y: Any) -> None:
        super().__init__(A)
        rows = int(self.A.shape[0])
        labels = _checks.vector("y", y, rows, self.A, because=f"A has {rows} rows")
        xp = namespace(labels)
        if not bool(xp.all(xp.abs(labels) == 1.0)):
            zero_one = bool(xp.all((labels == 0.0) | (labels == 1.0)))
            raise DataError(
                "y must hold the labels -1 and 1"
                + ("; it holds 0 and 1: map 0 to -1, as in 2 * y - 1" if zero_one else "")
            )
        self.A = convert(labels, self.A)[:, None] * self.A  # exact

    def _terms_of(self, t: Array) -> tuple[Array, Array]:
        xp = namespace(t)
        small = xp.exp(-xp.abs(t))
        losses = xp.log1p(small) - xp.minimum(t, 0.0 * t)
        return xp.sum(losses, axis=-1), -_opposite_probability(t, small)

    def _slopes(self, t: Array, index: Array) -> Array:
        del index  # the labels are in the rows
        return -_opposite_probability(t, namespace(t).exp(-abs(t)))

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """|A|'(e + gamma_N s) per entry, e the errors of the slopes s that come from the margins and from exp.

        An error h of a margin changes its loss by at most s (e^h - 1), its slope by at most min(s, 1 - s) (e^h - 1),
        and both by at most h.
        """
        (x,) = xs
        if not is_double(x, self.A):
            return None
        xp, (rows, columns) = namespace(x), self.A.shape
        absolute, tiny = xp.abs(self.A), underflow(x, 4 * (rows + columns))
        margins = x @ self.A.T
        shift = SLACK * gamma(columns) * (xp.abs(x) @ absolute.T) + tiny
        small = xp.exp(-xp.abs(margins))
        slopes = _opposite_probability(margins, small)
        growth = xp.expm1(xp.minimum(shift, 1.0 + 0 * shift))
        near, saturated = shift < 1.0, small / (1.0 + small)  # min(s, 1 - s)
        moved = SLACK * xp.where(near, slopes * growth, shift) + tiny
        turned = SLACK * xp.where(near, saturated * growth, shift) + tiny
        losses = xp.log1p(small) - xp.minimum(margins, 0.0 * margins)
        functions = gamma(2 * FUNCTION_ROUNDINGS + 4)
        error = xp.minimum(turned + functions * slopes, 1.0 + 0 * turned)
        entries = SLACK * ((error + gamma(rows) * slopes) @ absolute) + tiny
        value = xp.sum(moved, axis=-1) + gamma(rows + 2 * FUNCTION_ROUNDINGS + 4) * xp.sum(
            losses, axis=-1
        )
        return SLACK * value + tiny, (entries,)


def _opposite_probability(t: Array, small: Array) -> Array:
    """1 / (1 + e^t), with small = e^-|t|."""
    xp = namespace(t)
    return xp.where(t > 0, small, xp.ones_like(small)) / (1.0 + small)
