"""The nonnegative part of the ball with separable sublinear penalties."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_sum, expand, namespace, norm, parameter
from restpoint.errors import CapabilityError
from restpoint.oracles._ball_multiplier import ball_prox
from restpoint.oracles.ball import CenteredBallSublinear
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.oracles.multiplier import curvature_scale, power_gradient
from restpoint.penalties import SeparableSublinear
from restpoint.sets import L2Ball, NonnegativeBall


@dataclass(frozen=True)
class NonnegativeBallSeparable(Oracle):
    r"""S = {y >= 0, ||y||_2 <= r} with h(y) = sum_j max(low y_j, high y_j), for every p > 1.

    On S the penalty is linear, h(y) = high'y. With s = weight z - g - high and u = max(s, 0), the prox for p = 2 is
    y = r u / max(weight r, ||u||), and weight 0 gives the linear oracle, with value -r ||u||; both cost O(n).

    Theorem: for a closed convex cone K and u = P_K(s), the minimum of (weight/2) ||y||^2 - s'y over y in K, ||y|| <= r
    is at y = t u / ||u||, t = min(r, ||u|| / weight). (For weight 1: project onto the cone, then onto the ball.)
    Proof: by Moreau s - u lies in the polar cone and (s - u)'u = 0. So s'y <= u'y <= ||u|| ||y|| on K: the objective
    is at least (weight/2) t^2 - ||u|| t with t = ||y|| <= r, with equality for y along u.

    For other p: h may be replaced by H(y) = sum_j max(steep_j y_j, high_j y_j) with steep_j = min(high_j,
    -max(0, d_j)), d_j the slope at y_j = 0 of all but the penalty. H = h on S, and adding any (mu/2) ||y||^2 leaves
    every coordinate nonincreasing up to 0 (d_j + steep_j <= 0): the minimum over the whole ball is in S, and the same.
    It is found by the multiplier of the ball; the lower bound is dual (theory A2).

    >>> import numpy as np
    >>> from restpoint.penalties import L1
    >>> from restpoint.sets import NonnegativeBall
    >>> answer = NonnegativeBallSeparable(NonnegativeBall(), L1(1.0)).linear(
    ...     np.array([-4.0, 0.5, -5.0])
    ... )
    >>> answer.point, float(answer.lower)
    (array([0.6, 0. , 0.8]), -5.0)
    """

    conditions = (
        Condition(
            "the set is a NonnegativeBall", lambda set, penalty: isinstance(set, NonnegativeBall)
        ),
        Condition(
            "the penalty is a sum of max(low x_j, high x_j)",
            lambda set, penalty: isinstance(penalty, SeparableSublinear),
        ),
    )

    set: NonnegativeBall
    penalty: SeparableSublinear

    def linear(self, g: Array) -> Answer:
        slope = g + self.penalty.slopes()[1]
        value = -self.set.support(-slope)
        return Answer(self.set.extreme(slope), value, value)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if not self.can_prox(p):
            raise CapabilityError(f"{self.name}: the prox is defined for p > 1, got p = {p}")
        if p != 2.0:
            return self._multiplier_prox(g, z, weight, p)
        xp, ndim, radius = namespace(g), self.set.event_ndim, self.set.radius
        above = xp.maximum(expand(weight, ndim) * z - g - self.penalty.slopes()[1], 0.0)
        bound = xp.maximum(norm(above, ndim), weight * radius + 0.0 * norm(above, ndim))
        point = above * expand(radius / xp.where(bound > 0, bound, 1.0 + 0.0 * bound), ndim)
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p > 1.0

    def _multiplier_prox(self, g: Array, z: Array, weight: Array, p: float) -> Answer:
        xp, ndim, high = namespace(g), self.set.event_ndim, self.penalty.slopes()[1] + 0.0 * g
        at_zero = g + power_gradient(curvature_scale(weight, p, ndim), -z, p)
        steep = xp.minimum(high, -xp.maximum(at_zero, 0.0))
        wall = _Wall(steep, high, event_ndim=ndim)
        found = ball_prox(
            CenteredBallSublinear(L2Ball(self.set.radius, event_ndim=ndim), wall), g, z, weight, p
        )
        point = xp.maximum(found.point, 0.0)
        value = self.prox_value(g, z, weight, p, point)
        return Answer(point, value, xp.minimum(found.lower, value))


@dataclass(frozen=True)
class _Wall(SeparableSublinear):
    """H(y) = sum_j max(steep_j y_j, high_j y_j): so steep that no minimiser has a negative entry."""

    steep: Array = parameter(event=True)
    high: Array = parameter(event=True)
    event_ndim: int = 1

    def value(self, x: Array) -> Array:
        return event_sum(namespace(x).maximum(self.steep * x, self.high * x), self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        xp, t = namespace(v), expand(step, self.event_ndim)
        return v - xp.minimum(xp.maximum(v, t * self.steep), t * self.high)

    def magnitude(self, x: Array) -> Array:
        xp = namespace(x)
        steepest = xp.maximum(xp.abs(self.steep), xp.abs(self.high))
        return event_sum(steepest * xp.abs(x), self.event_ndim)

    def slopes(self) -> tuple[Array, Array]:
        return self.steep, self.high
