"""Quadratic functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array, gamma, namespace, product_up, to_host, truth
from restpoint.errors import DataError, ShapeError
from restpoint.kernels.spectra import largest_eigenvalue_between, semidefinite_bound
from restpoint.smooth import _bounds, _checks
from restpoint.smooth._rounding import SLACK, is_double, underflow
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class Quadratic(Smooth):
    r"""f(x) = x'Qx/2 + b'x, convex or not.

    Only the symmetric part of Q matters and only it is kept: Q itself if it is symmetric, else (Q + Q')/2 in float64,
    because the mean of two float32 numbers rarely is one. Joint constant, p = 2: lambda_max(Q)^+, proved in spite of
    rounding; it costs one eigenvalue problem, when first asked for (none where f is declared concave). Concave if
    lambda_max <= 0, convex if lambda_min >= 0; a semidefinite matrix that rounding cannot tell from an indefinite one
    (Q = -A'A) may be declared ``concave`` or ``convex``. A gradient costs one product with Q.
    Theory E2 to E4 (constants), A12 (rounding: gamma_{n+2} (|Q||x| + |b|)).

    >>> f = Quadratic([[2.0, 0.0], [0.0, -1.0]], [1.0, 0.0])
    >>> value, (gradient,) = f.value_and_gradient((np.array([1.0, 2.0]),))
    >>> float(value), gradient
    (0.0, array([ 3., -2.]))
    """

    _data = ("Q", "b")

    def __init__(
        self, Q: Any, b: Any = None, *, concave: bool = False, convex: bool = False
    ) -> None:
        Q = _checks.tensor("Q", Q, order=2)
        size = Q.shape[0]
        if Q.shape[1] != size:
            raise ShapeError(f"Q has shape {tuple(Q.shape)}; expected a square matrix")
        self.Q, self._lost = _symmetric_part(Q)
        self.b = None
        if b is not None:
            b = _checks.vector("b", b, size, Q, because=f"Q is {size} x {size}")
            self.Q, self.b = _checks.together(self.Q, b)
        self.shapes = ((size,),)
        self._declared_concave = truth("concave", concave)
        self._declared_convex = truth("convex", convex)

    def value(self, xs: Blocks) -> Array:
        return self.value_and_gradient(xs)[0]

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        (x,) = xs
        gradient = x @ self.Q
        if self.b is None:
            return 0.5 * namespace(x).vecdot(x, gradient), (gradient,)
        gradient = gradient + self.b
        return 0.5 * namespace(x).vecdot(x, gradient + self.b), (gradient,)

    def gradient(self, xs: Blocks) -> Blocks:
        gradient = xs[0] @ self.Q
        return (gradient if self.b is None else gradient + self.b,)

    def facts(self, sets: Sequence[Set]) -> Facts:
        smallest, largest, attained = self._spectrum
        curvature = Curvature((max(largest, 0.0),)) if math.isfinite(largest) else None
        return Facts(
            joint=curvature,
            blockwise=curvature,
            concave=largest <= 0.0,
            block_concave=largest <= 0.0,
            convex=smallest >= 0.0,
            lower_bound=self._lower_bound(sets[0]),
            # Along the top eigenvector f attains its curvature, if the set lets it move that way. The factor leaves
            # room for a constant that was rounded.
            needed=max(0.0, attained) * (1.0 - 1e-6) if sets[0].has_interior else 0.0,
        )

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """gamma_{n+2} (|Q||x| + |b|) per entry, and what becomes of it in x'(g + b)/2."""
        (x,) = xs
        if not is_double(x, self.Q):
            return None
        xp, size = namespace(x), self.shapes[0][0]
        magnitude, offset = xp.abs(x), 0.0 if self.b is None else xp.abs(self.b)
        terms = magnitude @ xp.abs(self.Q) + offset
        # Where Q is not symmetric, halving a subnormal entry of Q loses what x then multiplies.
        tiny = underflow(x, 4 * size) * (1.0 + xp.sum(magnitude, axis=-1))
        # n products and sums, adding b, and halving Q + Q' (a rounded sum) where Q is not symmetric.
        entries = SLACK * gamma(size + 2) * terms + tiny[..., None]
        value = SLACK * gamma(2 * size + 4) * xp.vecdot(magnitude, terms + offset)
        return value + tiny * (1.0 + xp.sum(magnitude, axis=-1)), (entries,)

    @cached_property
    def _spectrum(self) -> tuple[float, float, float]:
        """A lower bound on the smallest eigenvalue, an upper and a lower bound on the largest one."""
        Q = np.asarray(to_host(self.Q), dtype=np.float64)
        # What rounding the entries of Q, to its dtype, can have moved an eigenvalue by, and more.
        unit = max(1e-10, 4.0 * float(namespace(self.Q).finfo(self.Q.dtype).eps)) * Q.shape[0]
        if self._declared_concave and self._lost == 0.0:
            bound = semidefinite_bound(-Q, unit)
            if bound is not None:
                return -bound, 0.0, 0.0
        attained, largest = self._widened(*largest_eigenvalue_between(Q))
        attained_down, largest_down = self._widened(*largest_eigenvalue_between(-Q))
        smallest = -largest_down
        invisible = unit * max(-smallest, largest)
        for name, declared, excess in (
            ("concave", self._declared_concave, attained),
            ("convex", self._declared_convex, attained_down),
        ):
            if declared and excess > invisible:
                raise DataError(
                    f"Q was declared {name}, but its eigenvalues reach from {smallest:.6g} to {largest:.6g}; "
                    f"drop {name}=True"
                )
        return (
            max(smallest, 0.0) if self._declared_convex else smallest,
            min(largest, 0.0) if self._declared_concave else largest,
            min(attained, 0.0) if self._declared_concave else attained,
        )

    def _widened(self, attained: float, largest: float) -> tuple[float, float]:
        """Bounds on an eigenvalue of the Q that was given, from those of its rounded symmetric part (Weyl)."""
        if self._lost == 0.0:
            return attained, largest
        return (
            math.nextafter(attained - self._lost, -math.inf),
            math.nextafter(largest + self._lost, math.inf),
        )

    def _lower_bound(self, set: Set) -> float | None:
        """The better of two bounds: by norms alone, and with the exact minimum of b'x over the set."""
        radius = _bounds.largest_norm(set, self.shapes[0])
        smallest = self._spectrum[0]
        bowl = 0.5 * min(smallest, 0.0) * radius * radius
        if self.b is None:
            bound = bowl
        else:
            b = np.asarray(to_host(self.b), dtype=np.float64)
            direction, unit = _bounds.scaled(b)
            norm = float(np.linalg.norm(direction)) * (1.0 + gamma(b.size + 4))
            slope = product_up(unit, norm)
            # min over 0 <= r <= R of smallest r^2/2 - slope r
            deepest = slope / smallest if smallest * radius > slope else radius
            by_norms = (0.5 * smallest * deepest - slope) * deepest
            by_support = bowl - _bounds.largest_product(set, -b)
            by_norms -= 8.0 * UNIT_ROUNDOFF * (abs(smallest) * deepest + slope) * deepest
            bound = max(by_norms, by_support - 4.0 * UNIT_ROUNDOFF * (abs(bowl) + abs(by_support)))
        bound -= 8.0 * UNIT_ROUNDOFF * abs(bound)
        return bound if math.isfinite(bound) else None


def _symmetric_part(Q: Array) -> tuple[Array, float]:
    """(Q + Q')/2 in float64, and a bound on the spectral norm of its rounding error; Q itself if it is symmetric.

    What a sum of two floating-point numbers loses is a floating-point number, and known (Knuth's TwoSum); so is what
    halving a subnormal number loses. Where nothing was lost, the bound is 0, and the signs of eigenvalues stay exact.
    """
    xp = namespace(Q)
    if bool(xp.all(Q == Q.T)):
        return Q, 0.0
    Q = xp.astype(Q, xp.float64, copy=False)
    half = 0.5 * Q
    mean = half + half.T
    other = mean - half
    lost = xp.abs((half - (mean - other)) + (half.T - other))
    halved = xp.abs(Q - 2.0 * half)
    rows = xp.sum(lost + halved + halved.T, axis=-1)  # ||E||_2 <= ||E||_inf for symmetric E
    return mean, float(xp.max(rows)) * (1.0 + 2.0 * gamma(Q.shape[0] + 2))
