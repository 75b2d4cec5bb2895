"""Concave quadratic forms of low rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, gamma, namespace, product_up, to_host
from restpoint.smooth import _bounds, _checks
from restpoint.smooth._rounding import SLACK, is_double, underflow
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class ConcaveQuadratic(Smooth):
    r"""f(x) = -||F'x||_2^2 / 2 for F, n x r: minus half a quadratic form of rank r, never formed.

    Concave, so full steps are allowed and no constant is needed (Corollary 3.2). The gradient -F(F'x) depends on the r
    numbers F'x alone and costs two products with F. f >= -R^2 ||F||_2^2 / 2 on a set of points with norm <= R, or minus
    half the sum of the squared supports of the columns of F, if that is better. Rounding: theory A12.

    >>> f = ConcaveQuadratic([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> value, (gradient,) = f.value_and_gradient((np.array([1.0, 2.0, 0.0]),))
    >>> float(value), gradient
    (-6.5, array([-3., -5., -4.]))
    """

    _data = ("F",)

    def __init__(self, F: Any) -> None:
        self.F = _checks.tensor("F", F, order=2)
        self.shapes = ((int(self.F.shape[0]),),)

    def scores(self, x: Array) -> Array:
        """F'x, r numbers per start: all that f and its gradient depend on."""
        return x @ self.F

    def value(self, xs: Blocks) -> Array:
        c = self.scores(xs[0])
        return -0.5 * namespace(c).vecdot(c, c)

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        c = self.scores(xs[0])
        return -0.5 * namespace(c).vecdot(c, c), (-(c @ self.F.T),)

    def facts(self, sets: Sequence[Set]) -> Facts:
        straight = Curvature((0.0,))
        return Facts(
            joint=straight,
            blockwise=straight,
            concave=True,
            block_concave=True,
            convex=not np.any(to_host(self.F)),
            lower_bound=self._lower_bound(sets[0]),
        )

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """|F| (e + gamma_r |c|) per entry, e = gamma_n |F|'|x| the error of c = F'x."""
        (x,) = xs
        if not is_double(x, self.F):
            return None
        xp, (size, rank) = namespace(x), self.F.shape
        absolute, tiny = xp.abs(self.F), underflow(x, 4 * (size + rank))
        c = xp.abs(self.scores(x))
        error = SLACK * gamma(size) * (xp.abs(x) @ absolute) + tiny
        # An entry of F times what underflowed in c, and what underflows in that product.
        entries = SLACK * ((error + gamma(rank) * c) @ absolute.T) + tiny
        value = xp.vecdot(c + 0.5 * error, error) + 0.5 * gamma(rank + 1) * xp.vecdot(c, c)
        return SLACK * value + tiny, (entries,)

    def _lower_bound(self, set: Set) -> float | None:
        """The better of two bounds, rounded down."""
        F, unit = _bounds.scaled(np.asarray(to_host(self.F), dtype=np.float64))
        size, rank = F.shape
        gram = F.T @ F
        # ||F||_2^2 is at most the computed eigenvalue and the errors of the product and of the eigenvalue (Weyl).
        trace = float(np.trace(gram))
        largest = float(np.linalg.eigvalsh(gram)[-1]) + (2 * gamma(size) + gamma(64 * rank)) * trace
        radius = _bounds.largest_norm(set, self.shapes[0])
        by_norm = product_up(0.5, largest, radius, radius, unit, unit)
        by_supports = product_up(
            0.5, _bounds.largest_squares(set, np.ascontiguousarray(F.T)), unit, unit
        )
        bound = -min(by_norm, by_supports)
        return bound if math.isfinite(bound) else None
