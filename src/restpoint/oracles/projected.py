"""Sets that project, with penalties that shrink: any set without a penalty among them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restpoint.array import Array, event_max, expand, is_array, namespace
from restpoint.errors import CapabilityError
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.oracles.declared import DeclaredSet
from restpoint.oracles.inexact import corrective_prox
from restpoint.penalties import SeparableSublinear, Zero
from restpoint.sets import Set


def step_length(set: Set, weight: Array, steepest: Array, shape: tuple[int, ...]) -> Array:
    """1 / weight, but never so long that z is lost beside the step: ``steepest`` is the largest slope, per start.

    A step that is cut off at 2^(t-6) / steepest times the size of S belongs to a weight at which the objective
    differs by less than 2^(8-t) of its terms from the one that was asked for (t bits, float64: 53). So a weight of 0
    needs no case.
    """
    xp = namespace(steepest)
    share = 2.0 ** -(6.0 + math.log2(float(xp.finfo(steepest.dtype).eps)))
    longest = share * set.norm_bound(shape)
    finite = weight * longest > steepest
    floor = float(xp.finfo(steepest.dtype).smallest_normal) * (1.0 + longest) * 4.0
    cut = longest / xp.maximum(steepest, floor + 0.0 * steepest)
    return xp.where(finite, 1.0 / xp.where(finite, weight + 0.0 * cut, 1.0 + 0.0 * cut), cut)


def steepest_slope(g: Array, ndim: int, *others: Array) -> Array:
    """The largest |entry| of g and of other slopes, per start."""
    xp = namespace(g)
    size = xp.abs(g)
    for other in others:
        size = xp.maximum(size, xp.abs(other + 0.0 * g))
    return event_max(size, ndim)


def is_zero(weight: Array) -> bool:
    """Whether the weight is the number 0, for all starts."""
    return not is_array(weight) and weight == 0.0


@dataclass(frozen=True)
class LinearPenalty(Oracle):
    r"""Any S on which h is linear: h = 0, or h(y) = sum_j max(low_j y_j, high_j y_j) where S has no negative entries.

    There h(y) = high'y joins the gradient: linear(g) is the extreme point of S for g + high, and for p = 2 the
    minimum of slope'y + (weight/2) ||y - z||^2 is at the projection of z - slope / weight.

    >>> import numpy as np
    >>> from restpoint.sets import KSparsePolytope
    >>> answer = LinearPenalty(KSparsePolytope(2), Zero()).linear(np.array([1.0, -3.0, 2.0]))
    >>> answer.point, float(answer.lower)
    (array([ 0.,  1., -1.]), -5.0)
    """

    conditions = (
        Condition(
            "the set has a linear oracle of its own",
            lambda set, penalty: not isinstance(set, DeclaredSet),
        ),
        Condition(
            "the penalty is Zero, or a sum of max(low x_j, high x_j) and the set has no negative entries",
            lambda set, penalty: (
                isinstance(penalty, Zero)
                or (isinstance(penalty, SeparableSublinear) and set.nonnegative)
            ),
        ),
    )

    penalty: SeparableSublinear

    @property
    def kind(self) -> str:
        return "exact oracle" if self.set.exact else "dual bound"

    def linear(self, g: Array) -> Answer:
        slope = g + self.penalty.slopes()[1]
        point, lower = self.set.minimiser(slope)
        value = self.linear_value(g, point)
        return Answer(point, value, namespace(g).minimum(lower, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            return super().prox(g, z, weight, p)
        ndim, slope = self.set.event_ndim, g + self.penalty.slopes()[1]
        if is_zero(weight):
            point, lower = self.set.minimiser(slope)
            value = self.prox_value(g, z, 0.0, 2.0, point)
            shifted = lower + (value - self.linear_value(g, point))
            return Answer(point, value, namespace(g).minimum(shifted, value))
        if not self.set.projects:
            return corrective_prox(self, g, z, weight)
        shape = tuple(g.shape[g.ndim - ndim :])
        step = step_length(self.set, weight, steepest_slope(slope, ndim), shape)
        point = self.set.project(z - slope * expand(step, ndim))
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p == 2.0

    def prox_kind(self, p: float) -> str:
        return self.kind if self.set.projects else "dual bound"


@dataclass(frozen=True)
class SolidSeparable(Oracle):
    r"""Solid S (with x, every y with |y| <= |x|) with h(y) = sum_j max(low_j y_j, high_j y_j): shrink, then S.

    linear(g) is the extreme point of S for -prox_h(-g), and for p = 2 the prox is the projection onto S of
    prox_(h/weight)(z - g/weight).

    Proof: a y_j of the sign of -g_j's shrunk entry s_j = prox_h(-g)_j gains |s_j| |y_j|, one of the other sign
    nothing, and so does any y_j where s_j = 0; as S is solid, the minimum is that of -s'y over S. With a weight, per
    entry and for the sign of s_j: (y_j - v_j)^2 / 2 + h_j(y_j) / weight = (y_j - s_j)^2 / 2 and a constant, s =
    prox_(h/weight)(v); where s_j = 0, y_j = 0 is best and allowed, and the projection has it.

    >>> import numpy as np
    >>> from restpoint.penalties import L1
    >>> from restpoint.sets import L1Ball
    >>> answer = SolidSeparable(L1Ball(2.0), L1(1.0)).linear(np.array([3.0, 0.5, -2.0]))
    >>> answer.point, float(answer.lower)
    (array([-2.,  0.,  0.]), -4.0)
    """

    conditions = (
        Condition("the set is solid", lambda set, penalty: set.solid),
        Condition(
            "the penalty is a sum of max(low x_j, high x_j)",
            lambda set, penalty: isinstance(penalty, SeparableSublinear),
        ),
    )

    penalty: SeparableSublinear

    def linear(self, g: Array) -> Answer:
        point, lower = self.set.minimiser(-self.penalty.prox(-g, 1.0))
        value = self.linear_value(g, point)
        return Answer(point, value, namespace(g).minimum(lower, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            raise CapabilityError(
                f"{self.name} has no prox for p = {p}; use p = 2, or ConditionalGradient"
            )
        ndim = self.set.event_ndim
        if is_zero(weight):
            point = self.set.extreme(-self.penalty.prox(-g, 1.0))
        else:
            steepest = steepest_slope(g, ndim, *self.penalty.slopes())
            shape = tuple(g.shape[g.ndim - ndim :])
            step = step_length(self.set, weight, steepest, shape)
            shrunk = self.penalty.prox(z - g * expand(step, ndim), step)
            point = self.set.project(shrunk)
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p == 2.0
