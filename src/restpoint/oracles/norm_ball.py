"""The ball of a norm with the same norm as the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import Array, expand, is_array, namespace, to_host
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.oracles.projected import is_zero, steepest_slope, step_length
from restpoint.penalties import OWL, Group, L2Norm, LInfinity, Penalty
from restpoint.sets import GroupBall, LpBall, OWLBall, Set

# A ball, its penalty, and when the two mean the same norm.
SAME_NORM: tuple[tuple[type[Set], type[Penalty], Any], ...] = (
    (LpBall, LInfinity, lambda ball, norm: ball.power == np.inf),
    (LpBall, L2Norm, lambda ball, norm: ball.power == 2.0),
    (OWLBall, OWL, lambda ball, norm: _equal(ball.profile, norm.profile)),
    (
        GroupBall,
        Group,
        lambda ball, norm: (
            _equal(ball.groups, norm.groups)
            and _equal(ball.scales, norm.scales)
            and _equal(norm.sparsity, 0.0)
        ),
    ),
)


def _equal(a: Any, b: Any) -> bool:
    """Whether two parameters mean the same: a number stands for as many of it as there are entries."""
    a, b = (np.asarray(to_host(value) if is_array(value) else value) for value in (a, b))
    fits = a.shape == b.shape or not a.shape or not b.shape
    return fits and bool(np.all(a == b))


def _same(set: Set, penalty: Penalty) -> bool:
    return any(
        isinstance(set, ball) and isinstance(penalty, norm) and agree(set, penalty)
        for ball, norm, agree in SAME_NORM
    )


@dataclass(frozen=True)
class NormBallSameNorm(Oracle):
    r"""S = {||y|| <= r} with h(y) = weight ||y|| for the same norm.

    linear(g): on the sphere of radius t <= r, g'y is at least -t ||g||_*, so the minimum over S is r min(weight -
    ||g||_*, 0): the extreme point for g, or 0. For p = 2 the prox at v = z - g/weight is that of h alone, if it lies
    in S, and else the projection of v onto S.

    Proof of the second: where the minimiser of the whole space is outside, the constrained one has ||y|| = r by
    convexity, h is constant there, and the projection of v (outside as well, because prox does not increase the norm)
    is the point of that sphere nearest to v.

    >>> import numpy as np
    >>> oracle = NormBallSameNorm(LpBall(np.inf, 2.0), LInfinity(1.0))
    >>> oracle.linear(np.array([3.0, -1.0])).point, oracle.linear(np.array([0.5, 0.4])).point
    (array([-2.,  2.]), array([0., 0.]))
    """

    conditions = (Condition("the penalty is the norm whose ball the set is", _same),)

    set: LpBall | OWLBall | GroupBall
    penalty: LInfinity | L2Norm | OWL | Group

    def linear(self, g: Array) -> Answer:
        xp, ndim = namespace(g), self.set.event_ndim
        point, lower = self.set.minimiser(g)
        whole = lower + self._largest_penalty
        best = xp.minimum(whole, xp.zeros_like(whole))
        point = xp.where(expand(whole < 0.0, ndim), point, 0.0 * g)
        value = self.linear_value(g, point)
        return Answer(point, value, xp.minimum(best, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            return super().prox(g, z, weight, p)
        xp, ndim = namespace(g), self.set.event_ndim
        shape = tuple(g.shape[g.ndim - ndim :])
        if is_zero(weight):
            point = self.linear(g).point
        else:
            # The slopes of h: weight times the norm of a unit vector, at most.
            slope = self._largest_penalty / self.set.norm_bound(shape)
            steepest = steepest_slope(g, ndim) + slope
            step = step_length(self.set, weight, steepest, shape)
            pulled = z - g * expand(step, ndim)
            shrunk = self.penalty.prox(pulled, step)
            within = self.set.size(shrunk) <= self.set.radius
            point = xp.where(expand(within, ndim), shrunk, self.set.project(pulled))
        value = self.prox_value(g, z, weight, 2.0, point)
        return Answer(point, value, value)

    def can_prox(self, p: float) -> bool:
        return p == 2.0

    @property
    def _largest_penalty(self) -> Array:
        return self.penalty.weight * self.set.radius
