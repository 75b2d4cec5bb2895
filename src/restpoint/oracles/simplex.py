"""The simplex with separable sublinear penalties."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_max, event_sum, expand, namespace
from restpoint.errors import CapabilityError
from restpoint.kernels.scalar_equations import FLAT, STEEP, monotone_root
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.oracles.multiplier import (
    Slopes,
    bounded_step,
    curvature_scale,
    dual_bound,
    power_gradient,
)
from restpoint.penalties import SeparableSublinear
from restpoint.sets import Simplex


@dataclass(frozen=True)
class SimplexSeparable(Oracle):
    r"""S = {y >= 0, sum_j y_j = total} with h(y) = sum_j max(low y_j, high y_j), for every p > 1.

    On S the penalty is linear, h(y) = high'y, so it joins the gradient: the linear oracle is a vertex, and
    the prox for p = 2 a projection, O(n log n). For other p, y_j = max(0, z_j + phi_{1/(p-1)}(2 (u - g_j -
    high_j) / (weight p))) with the multiplier u of the sum, found to rounding; the lower bound is dual (theory A2).

    >>> import numpy as np
    >>> from restpoint.penalties import Zero
    >>> from restpoint.sets import Simplex
    >>> SimplexSeparable(Simplex(), Zero()).linear(np.array([0.3, -0.2, 0.1])).point
    array([0., 1., 0.])
    """

    conditions = (
        Condition("the set is a Simplex", lambda set, penalty: isinstance(set, Simplex)),
        Condition(
            "the penalty is a sum of max(low x_j, high x_j)",
            lambda set, penalty: isinstance(penalty, SeparableSublinear),
        ),
    )

    set: Simplex
    penalty: SeparableSublinear

    def linear(self, g: Array) -> Answer:
        slope = g + self.penalty.slopes()[1]
        value = -self.set.support(-slope)
        return Answer(self.set.extreme(slope), value, value)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if not self.can_prox(p):
            raise CapabilityError(f"{self.name}: the prox is defined for p > 1, got p = {p}")
        slope = g + self.penalty.slopes()[1]
        if p != 2.0:
            return self._multiplier_prox(g, z, weight, p, slope)
        point = self.set.project(z - self._bounded_ratio(_shifted(slope), z, weight))
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p > 1.0

    def _bounded_ratio(self, slope: Array, z: Array, weight: Array) -> Array:
        """slope / weight, cut off where the coordinate is 0 anyway, so that a weight of 0 needs no case."""
        xp = namespace(slope)
        limit = expand(2.0 * event_max(xp.abs(z)) + self.set.total)
        weight = expand(weight)
        far = slope >= weight * limit
        beyond = xp.where(slope > 0, limit + 0.0 * slope, 0.0 * slope)
        return xp.where(far, beyond, slope / xp.where(far, 1.0 + 0.0 * slope, weight + 0.0 * slope))

    def _multiplier_prox(self, g: Array, z: Array, weight: Array, p: float, slope: Array) -> Answer:
        """Solve sum_j y_j(u) = total; every y_j increases with the multiplier u."""
        xp, total, zero = namespace(g), expand(self.set.total), 0.0 * z
        shifted, k = _shifted(slope), curvature_scale(weight, p, 1)
        farthest = xp.abs(z) + total
        scale = k * farthest ** (p - 1.0)

        def coordinates(u: Array) -> tuple[Array, Array]:
            step = bounded_step(shifted - expand(u), scale, farthest, p)
            return xp.maximum(z + step, 0.0), xp.maximum(step, -z)

        def probe(u: Array) -> tuple[Array, Array]:
            y, step = coordinates(u)
            excess = event_sum(y) - self.set.total
            apart = xp.abs(expand(u) - shifted)
            answering = (y > 0) & (apart > 0)
            rates = xp.where(answering, xp.abs(step) / xp.where(answering, apart, 1.0 + zero), zero)
            rate = event_sum(rates) / (p - 1.0)
            usable = rate > 0
            # Without a slope to follow, propose what lies outside of the bracket: it is then halved.
            return excess >= 0, u - xp.where(usable, excess / xp.where(usable, rate, 1.0), xp.inf)

        def level(height: Array) -> Array:
            """The smallest u at which some coordinate reaches ``height``."""
            return -event_max(-(shifted + power_gradient(k, height - z, p)))

        ends = level(total / g.shape[-1]), level(total)
        if p < 2.0:
            found = monotone_root(probe, *ends, _midpoint, FLAT)
            y, step = coordinates(found.root)
            size = expand(event_sum(y))
            y = y * (total / xp.where(size > 0, size, 1.0))
        else:
            # A coordinate may answer with infinite slope, so neighbouring numbers u enclose the sum.
            found = monotone_root(probe, *ends, _midpoint, STEEP)
            (y_low, step_low), (y_high, step_high) = coordinates(found.low), coordinates(found.high)
            missing = total - expand(event_sum(y_low))
            span = expand(event_sum(y_high - y_low))
            part = xp.where(span > 0, missing / xp.where(span > 0, span, 1.0), 0.0 * missing)
            y, step = y_low + part * (y_high - y_low), step_low + part * (step_high - step_low)
        point = xp.where(k + zero > 0, y, self.set.extreme(shifted))
        value = self.prox_value(g, z, weight, p, point)
        lower = dual_bound(self.set, z, Slopes(g, slope - g, step), weight, p)
        return Answer(point, value, xp.minimum(lower, value))


def _midpoint(low: Array, high: Array) -> Array:
    return low + 0.5 * (high - low)


def _shifted(slope: Array) -> Array:
    """The slope with its smallest entry moved to 0: on S only a constant, and no digits are lost to it."""
    return slope + expand(event_max(-slope))
