"""Balls of the p-norms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restpoint.array import (
    Array,
    event_max,
    event_sum,
    expand,
    namespace,
    norm,
    parameter,
    real_number,
    scaled_norm,
)
from restpoint.errors import DataError
from restpoint.kernels.scalar_equations import FLAT, monotone_root, power_root
from restpoint.sets._norm_ball import NormBall, stretch
from restpoint.sets.l1_ball import L1Ball


@dataclass(frozen=True)
class LpBall(NormBall):
    r"""S = {x : ||x||_power <= radius} for 1 <= power <= infinity.

    ``radius`` is a number or has the batch shape. With 1/power + 1/dual = 1 the support function is radius
    ||g||_dual, attained at -radius sgn(g) |g|^(dual-1) / || |g|^(dual-1) ||. diam_p(S) = 2 radius n^max(0, 1/p -
    1/power). The projection is a closed form for 1, 2 and infinity; else every |y_j| solves y + mu y^(power-1) =
    |x_j|, with the one mu for which ||y||_power = radius, both to rounding. (``L2Ball`` has a centre, ``L1Ball``
    weights, and both more oracles.)

    >>> import numpy as np
    >>> LpBall(np.inf, 2.0).extreme(np.array([1.0, -3.0]))
    array([-2.,  2.])
    >>> LpBall(4.0).project(np.array([2.0, 0.0, -2.0])) ** 4
    array([0.5, 0. , 0.5])
    """

    power: float
    radius: Array = parameter(1.0)
    event_ndim: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "a number >= 1, or infinity"
        power = real_number("power", self.power, expected, finite=False)
        if not power >= 1.0:
            raise DataError(f"power must be {expected}, got {power}: the ball would not be convex")
        object.__setattr__(self, "power", power)

    @property
    def dual_power(self) -> float:
        """1/power + 1/dual = 1."""
        if self.power == 1.0:
            return math.inf
        return 1.0 if math.isinf(self.power) else self.power / (self.power - 1.0)

    def size(self, x: Array) -> Array:
        return self._norm(x, self.power)

    def support(self, g: Array) -> Array:
        return self.radius * self._norm(g, self.dual_power)

    def extreme(self, g: Array) -> Array:
        xp, radius = namespace(g), expand(self.radius, self.event_ndim)
        if self.power == 1.0:
            return self._l1.extreme(g)
        if math.isinf(self.power):
            return -radius * xp.sign(g)
        size = xp.abs(g)
        # In units of the largest entry: the power dual - 1 = 1 / (power - 1) may be large.
        unit = expand(event_max(size, self.event_ndim), self.event_ndim)
        sizes = (size / xp.where(unit > 0, unit, 1.0)) ** (1.0 / (self.power - 1.0))
        length = expand(self._norm(sizes, self.power), self.event_ndim)
        scale = radius / xp.where(length > 0, length, 1.0)
        return xp.where(unit > 0, -xp.sign(g) * sizes * scale, 0.0 * g)

    def project(self, x: Array) -> Array:
        xp, ndim = namespace(x), self.event_ndim
        if self.power == 1.0:
            return self._l1.project(x)
        radius = expand(self.radius, ndim)
        if math.isinf(self.power):
            return xp.minimum(xp.maximum(x, -radius + 0.0 * x), radius + 0.0 * x)
        if self.power == 2.0:
            size = norm(x, ndim)
            longest = xp.maximum(size, self.radius + 0.0 * size)
            return self._kept(x, x * expand(self.radius / longest, ndim))
        y = radius * xp.sign(x) * self._shrunk(xp.abs(x) / radius)
        return self._kept(x, y)

    def largest(self, p: float, shape: tuple[int, ...]) -> Array:
        return self.radius * stretch(math.prod(shape), p, self.power)

    @property
    def _l1(self) -> L1Ball:
        return L1Ball(self.radius, event_ndim=self.event_ndim)

    def _norm(self, x: Array, power: float) -> Array:
        xp = namespace(x)
        if power == 1.0:
            return event_sum(xp.abs(x), self.event_ndim)
        if power == 2.0:
            return norm(x, self.event_ndim)
        if math.isinf(power):
            return event_max(xp.abs(x), self.event_ndim)
        return scaled_norm(x, power, self.event_ndim)

    def _shrunk(self, a: Array) -> Array:
        """The nearest y >= 0 with ||y||_power = 1 to an a >= 0 outside of the unit ball."""
        xp, ndim, power = namespace(a), self.event_ndim, self.power
        count = math.prod(a.shape[a.ndim - ndim :])
        farthest = event_max(a, ndim)
        farthest = xp.where(farthest > 0, farthest, xp.ones_like(farthest))
        # The largest entry of y is at least n^(-1/power), and mu = (a_j - y_j) / y_j^(power - 1) there.
        high = farthest * count ** (1.0 - 1.0 / power)
        low = xp.minimum(high, xp.ones_like(high)) * (float(xp.finfo(a.dtype).eps) / 64)

        def entries(mu: Array) -> Array:
            return power_root(a, expand(mu, ndim) + 0.0 * a, xp.ones_like(a), power - 1.0)

        def probe(mu: Array) -> tuple[Array, Array]:
            """Newton's method for 1 / ||y(mu)||."""
            y, lifted = entries(mu), expand(mu, ndim)
            powers = y**power
            total = event_sum(powers, ndim)
            total = xp.where(total > 0, total, xp.ones_like(total))
            # -dy/dmu = y^(power-1) / (1 + mu (power-1) y^(power-2)), times y^(power-1).
            curved = y + lifted * (power - 1.0) * y ** (power - 1.0)
            falls = xp.where(curved > 0, powers * y ** (power - 1.0), 0.0 * y)
            fall = event_sum(falls / xp.where(curved > 0, curved, xp.ones_like(y)), ndim)
            usable = fall > 0
            size = total ** (1.0 / power)
            step = (size - 1.0) * total / xp.where(usable, fall, xp.ones_like(fall))
            return size <= 1.0, mu + xp.where(usable, step, 2.0 * high)

        mu = monotone_root(probe, low, high, lambda a, b: xp.sqrt(a) * xp.sqrt(b), FLAT).root
        y = entries(mu)
        length = self._norm(y, power)
        return y / expand(xp.where(length > 0, length, xp.ones_like(length)), ndim)
