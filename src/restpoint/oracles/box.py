"""Boxes with separable sublinear penalties."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, expand, namespace
from restpoint.errors import CapabilityError
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.oracles.multiplier import bounded_step
from restpoint.penalties import SeparableSublinear
from restpoint.sets import Box


@dataclass(frozen=True)
class BoxSeparable(Oracle):
    r"""S = {lower <= y <= upper} with h(y) = sum_j max(low y_j, high y_j): exact for every p > 1, in O(n).

    A convex function on an interval is smallest at the clipped minimiser over the line, which is, with
    t(s) = -sgn(s) (2|s| / (weight p))^(1/(p-1)): z + t(g + high) if positive, z + t(g + low) if negative,
    else 0. For the linear oracle the steps are infinite.

    >>> import numpy as np
    >>> from restpoint.penalties import L1
    >>> from restpoint.sets import Box
    >>> oracle = BoxSeparable(Box(-1.0, 2.0), L1(1.0))
    >>> oracle.linear(np.array([3.0, 0.5, -3.0])).point
    array([-1.,  0.,  2.])
    >>> oracle.prox(np.array([3.0, 0.5, -3.0]), np.zeros(3), 4.0).point
    array([-0.5,  0. ,  0.5])
    """

    conditions = (
        Condition("the set is a Box", lambda set, penalty: isinstance(set, Box)),
        Condition(
            "the penalty is a sum of max(low x_j, high x_j)",
            lambda set, penalty: isinstance(penalty, SeparableSublinear),
        ),
    )

    set: Box
    penalty: SeparableSublinear

    def linear(self, g: Array) -> Answer:
        xp, zero = namespace(g), 0.0 * g
        low, high = self.penalty.slopes()
        upper, lower = self.set.upper + zero, self.set.lower + zero
        rest = self.set.project(zero)
        point = xp.where(g + high < 0, upper, xp.where(g + low > 0, lower, rest))
        value = self.linear_value(g, point)
        return Answer(point, value, value)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if not self.can_prox(p):
            raise CapabilityError(f"{self.name}: the prox is defined for p > 1, got p = {p}")
        xp = namespace(g)
        low, high = self.penalty.slopes()
        # Further than this no step can matter: it ends outside of the box, and beyond 0.
        farthest = xp.abs(z) + abs(self.set.lower) + abs(self.set.upper)
        scale = expand(0.5 * p * weight, self.set.event_ndim) * farthest ** (p - 1.0)
        above = z + bounded_step(g + high, scale, farthest, p)
        below = z + bounded_step(g + low, scale, farthest, p)
        free = xp.maximum(above, 0.0) + xp.minimum(below, 0.0)  # at most one of the two is not 0
        point = self.set.project(free)
        value = self.prox_value(g, z, weight, p, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p > 1.0
