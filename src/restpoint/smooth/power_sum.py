"""Weighted sums of powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import (
    UNIT_ROUNDOFF,
    Array,
    asarray,
    event_sum,
    gamma,
    is_array,
    namespace,
    to_host,
)
from restpoint.errors import DataError, ShapeError
from restpoint.smooth import _bounds, _checks
from restpoint.smooth._rounding import FUNCTION_ROUNDINGS, SLACK, is_double, underflow
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class PowerSum(Smooth):
    r"""f(x) = sum_j a_j |x_j|^p, 1 < p <= 2: the model of a gradient that is Hoelder and not Lipschitz.

    ``weights`` a_j is an array of the event shape, or a number together with ``shape``; weights may be negative.
    Constant in the p-norm (theory E5): 2 max_j a_j^+ on sets without negative entries, which is optimal, and
    2 K_p max_j a_j^+ otherwise, K_p in [1, 2^(2-p)]; concave summands are free. Convex where all a_j >= 0, concave
    where all a_j <= 0. Costs O(n).

    >>> f = PowerSum(1.5, shape=2)
    >>> value, (gradient,) = f.value_and_gradient((np.array([4.0, -1.0]),))
    >>> float(value), gradient
    (9.0, array([ 3. , -1.5]))
    """

    _data = ("weights",)

    def __init__(self, p: float, weights: Any = 1.0, *, shape: Any = None) -> None:
        self.p = _checks.exponent(p)
        weights = asarray("weights", weights)
        if shape is not None:
            events = _checks.event_shape("shape", shape)
        elif weights.ndim:
            events = tuple(int(size) for size in weights.shape)
        else:
            raise ShapeError(
                "PowerSum does not know the shape of its block; give shape=(n,), or an array of weights"
            )
        if weights.ndim and tuple(weights.shape) != events:
            raise ShapeError(
                f"weights has shape {tuple(weights.shape)}; expected a number or {events}"
            )
        if 0 in events:
            raise DataError("weights is empty; give one weight per entry of the block")
        self.shapes = (events,)
        self.weights: Array = weights if weights.ndim else float(weights)

    @property
    def like(self) -> Array | None:
        return self.weights if is_array(self.weights) else None

    def converted(self, like: Array) -> Smooth:
        return super().converted(like) if is_array(self.weights) else self

    def value(self, xs: Blocks) -> Array:
        return self.value_and_gradient(xs)[0]

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        (x,) = xs
        xp = namespace(x)
        size = xp.abs(x)
        slope = self.weights * (size if self.p == 2.0 else size ** (self.p - 1.0))
        return event_sum(slope * size, len(self.shapes[0])), (self.p * xp.sign(x) * slope,)

    def facts(self, sets: Sequence[Set]) -> Facts:
        weights = self._host_weights()
        largest = max(0.0, float(np.max(weights)))
        factor = 2.0
        if largest > 0.0 and self.p < 2.0 and not _bounds.in_orthant(sets[0], self.shapes[0]):
            factor *= two_sided_factor(self.p)
        curvature = Curvature((_up(factor * largest),), self.p)
        return Facts(
            joint=curvature,
            blockwise=curvature,
            concave=largest == 0.0,
            block_concave=largest == 0.0,
            convex=bool(np.all(weights >= 0.0)),
            lower_bound=self._lower_bound(sets[0], weights),
        )

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """A few roundings relative to each entry, and the depth of the sum relative to sum_j |a_j||x_j|^p."""
        (x,) = xs
        if not is_double(x, *([self.weights] if is_array(self.weights) else [])):
            return None
        xp, ndim = namespace(x), len(self.shapes[0])
        size = xp.abs(x)
        slope = abs(self.weights) * size ** (self.p - 1.0)  # p - 1 is exact (Sterbenz)
        count = math.prod(self.shapes[0])
        tiny = underflow(x, 4) * (1.0 + abs(self.weights) + 0.0 * size)
        entries = SLACK * gamma(FUNCTION_ROUNDINGS + 3) * self.p * slope + self.p * tiny
        value = SLACK * gamma(FUNCTION_ROUNDINGS + 2 + count) * event_sum(slope * size, ndim)
        return value + event_sum(tiny * (1.0 + size), ndim), (entries,)

    def _host_weights(self) -> np.ndarray:
        weights = to_host(self.weights) if is_array(self.weights) else self.weights
        return np.broadcast_to(np.asarray(weights, dtype=np.float64), self.shapes[0])

    def _lower_bound(self, set: Set, weights: np.ndarray) -> float | None:
        """Minus the better of two bounds on sum_j a_j^- |x_j|^p, with R >= ||x||_2 >= |x_j|.

        R^p times the Hoelder conjugate norm of a^-; and R^(p-1) max over the set of (a^-)'|x|.
        """
        negative = np.maximum(-weights, 0.0)
        if not np.any(negative):
            return 0.0
        radius, p = _bounds.largest_norm(set, self.shapes[0]), self.p
        largest = float(np.max(negative))
        # ||a^-||_s with s = 2 / (2 - p), scaled against overflow of the power
        spread = float(np.sum((negative / largest) ** (2.0 / (2.0 - p)))) if p < 2.0 else 1.0
        by_norm = largest * spread ** (1.0 - 0.5 * p) * _bounds.power(radius, p)
        by_support = _bounds.power(radius, p - 1.0) * _bounds.largest_absolute_product(
            set, negative
        )
        bound = -min(by_norm, by_support) * (1.0 + gamma(64 + 8 * weights.size))
        return bound if math.isfinite(bound) else None


@lru_cache
def two_sided_factor(p: float) -> float:
    r"""K_p = max over t >= 0 of (t^p - 1 + p (t + 1)) / (t + 1)^p, rounded up (theory E5).

    The derivative vanishes where t^(p-1) - (p-1) t + 2 - p does; that function is concave, starts at 2 - p > 0 and
    has a single root, found by bisection. An error of the root counts squared.

    >>> round(two_sided_factor(1.5), 4)
    1.3066
    """
    if p == 2.0:
        return 1.0

    def stationary(t: float) -> float:
        return t ** (p - 1.0) - (p - 1.0) * t + 2.0 - p

    low, high = 0.0, 1.0
    while stationary(high) > 0.0:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stationary(middle) > 0.0 else (low, middle)
    t = 0.5 * (low + high)
    # t^p / (t + 1)^p as one power: t is about 2 / (p - 1), and p may be close to 1.
    rest = (p * (t + 1.0) - 1.0) / (t + 1.0) ** p
    return ((t / (t + 1.0)) ** p + rest) * (1.0 + 256.0 * UNIT_ROUNDOFF)


def _up(number: float) -> float:
    """Twice a number is exact; times K_p is not."""
    return math.nextafter(number, math.inf) if number > 0.0 else 0.0
