"""The Euclidean ball with sublinear penalties."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, expand, namespace, norm
from restpoint.errors import CapabilityError
from restpoint.oracles._ball_multiplier import ball_prox
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.penalties import SeparableSublinear, Zero
from restpoint.sets import L2Ball

_BALL = Condition("the set is an L2Ball", lambda set, penalty: isinstance(set, L2Ball))
_CENTERED = Condition(
    "its center is 0", lambda set, penalty: isinstance(set, L2Ball) and set.centered
)
_SUBLINEAR = Condition("the penalty is sublinear", lambda set, penalty: penalty.sublinear)
_EXACT = Condition("its prox is a closed form", lambda set, penalty: penalty.exact_prox)
_SEPARABLE = Condition(
    "the penalty is a sum of max(low x_j, high x_j)",
    lambda set, penalty: isinstance(penalty, SeparableSublinear),
)


@dataclass(frozen=True)
class CenteredBallSublinear(Oracle):
    r"""S = {||y||_2 <= r} with any sublinear h (theory E34, for every support function h).

    With z = prox_h(-g): the linear oracle is r z/||z|| (0 where z = 0), its value -r ||z||. The prox for
    p = 2 composes: with s = prox_h(weight z - g), y = r s/max(weight r, ||s||). Both cost one prox of h and O(n).
    For other p > 1 and separable h: a scalar equation in the multiplier of the ball, O(n) per step of it.

    >>> import numpy as np
    >>> from restpoint.penalties import L1
    >>> from restpoint.sets import L2Ball
    >>> answer = CenteredBallSublinear(L2Ball(), L1(1.0)).linear(np.array([4.0, 0.5, -5.0]))
    >>> answer.point, float(answer.lower)
    (array([-0.6,  0. ,  0.8]), -5.0)
    """

    conditions = (_BALL, _CENTERED, _SUBLINEAR, _EXACT)

    set: L2Ball

    def linear(self, g: Array) -> Answer:
        ndim, radius = self.set.event_ndim, self.set.radius
        shrunk = self.penalty.prox(-g, 1.0)
        size = norm(shrunk, ndim)
        scale = radius / namespace(g).where(size > 0, size, 1.0)
        value = -radius * size
        return Answer(shrunk * expand(scale, ndim), value, value)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            self._check_power(p)
            return ball_prox(self, g, z, weight, p)
        ndim, radius = self.set.event_ndim, self.set.radius
        shrunk = self.penalty.prox(expand(weight, ndim) * z - g, 1.0)
        point = shrunk * expand(_pull(radius, weight, norm(shrunk, ndim)), ndim)
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p == 2.0 or (p > 1.0 and isinstance(self.penalty, SeparableSublinear))

    def _check_power(self, p: float) -> None:
        if not self.can_prox(p):
            raise CapabilityError(
                f"{self.name} has no prox for p = {p}; use p = 2, a separable penalty, "
                "or ConditionalGradient, which needs no prox"
            )


@dataclass(frozen=True)
class BallSeparable(Oracle):
    r"""S = {||y - c||_2 <= r} with h(y) = sum_j max(low y_j, high y_j), for every p > 1.

    The multiplier mu of the ball solves ||y(mu) - c|| = r, where y(mu) minimises the objective plus
    (mu/2) ||y - c||^2 coordinate by coordinate; it is found to rounding, and the lower bound is dual
    (theory A2), so nothing rests on it. With h = 0, the linear oracle and the prox for p = 2 are closed forms.

    >>> import numpy as np
    >>> from restpoint.penalties import Zero
    >>> from restpoint.sets import L2Ball
    >>> BallSeparable(L2Ball(1.0, np.array([3.0, 0.0])), Zero()).linear(np.array([0.0, 2.0])).point
    array([ 3., -1.])
    """

    conditions = (_BALL, _SEPARABLE)

    set: L2Ball
    penalty: SeparableSublinear

    @property
    def kind(self) -> str:
        return "exact oracle" if isinstance(self.penalty, Zero) else "dual bound"

    def linear(self, g: Array) -> Answer:
        if isinstance(self.penalty, Zero):
            value = -self.set.support(-g)
            return Answer(self.set.extreme(g), value, value)
        return ball_prox(self, g, 0 * g, 0.0, 2.0)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if not self.can_prox(p):
            raise CapabilityError(f"{self.name}: the prox is defined for p > 1, got p = {p}")
        if p != 2.0 or not isinstance(self.penalty, Zero):
            return ball_prox(self, g, z, weight, p)
        ndim, radius, center = self.set.event_ndim, self.set.radius, self.set.center
        moved = expand(weight, ndim) * (z - center) - g
        point = center + moved * expand(_pull(radius, weight, norm(moved, ndim)), ndim)
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p > 1.0


def _pull(radius: Array, weight: Array, size: Array) -> Array:
    """radius / max(weight radius, size): divide by the weight, then pull into the ball; any weight >= 0."""
    xp = namespace(size)
    bound = xp.maximum(size, weight * radius)
    return radius / xp.where(bound > 0, bound, 1.0)
