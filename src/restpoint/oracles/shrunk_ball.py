"""The centred ball, whole or within a null space, with penalties whose shrinking problem takes an iteration."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from restpoint.array import Array, expand, namespace, norm
from restpoint.errors import CapabilityError
from restpoint.kernels.shrinking import Shrunk
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.penalties import AnalysisL1, SeparableSublinear
from restpoint.sets import L2Ball, NullSpaceBall


@dataclass(frozen=True)
class ShrunkBall(Oracle):
    r"""S = {||y||_2 <= r, y in a subspace V}, h sublinear: H = h + (0 on V, infinite elsewhere) is sublinear too.

    As in theory E34: with z = prox_H(-g) the linear oracle is r z/||z|| (0 where z = 0), and its value -r ||z||. Here z
    is found by an iteration in C = {q : q'y <= H(y) for all y}. Each of its q gives the lower bound -r ||g + q||, for
    g'y + h(y) >= (g + q)'y on S (theory A2, E36), so the answer is sound wherever it stops.
    """

    remembers: ClassVar[bool] = True

    set: L2Ball | NullSpaceBall

    @property
    def kind(self) -> str:
        return "dual bound"

    @abstractmethod
    def shrink(
        self, v: Array, near: Array | None = None, hint: Any = None, slack: Array = 0.0
    ) -> Shrunk:
        """A point near prox_H(v), within the subspace, and ||v - q|| for a q in C."""

    @abstractmethod
    def rest(self, v: Array, hint: Any) -> Array:
        """||v - q|| for a q in C that the hint of an earlier answer stands for."""

    def linear(self, g: Array) -> Answer:
        return self.linear_near(g)

    def bound_near(self, g: Array, last: Answer) -> Array:
        return -self.set.radius * self.rest(-g, last.hint)

    def linear_near(
        self, g: Array, near: Array | None = None, hint: Any = None, slack: Array = 0.0
    ) -> Answer:
        xp, radius = namespace(g), self.set.radius
        shrunk = self.shrink(-g, near, hint, slack / radius)
        size = norm(shrunk.point)
        point = shrunk.point * expand(radius / xp.where(size > 0, size, 1.0))
        value = self.linear_value(g, point)
        # Where the solver stopped early, 0 may be the better answer.
        point = xp.where(expand(value > 0), xp.zeros_like(point), point)
        value = xp.minimum(value, xp.where(value > 0, xp.zeros_like(value), value))
        return Answer(point, value, xp.minimum(-radius * shrunk.bound, value), shrunk.hint)

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        """p = 2 alone: y = r s / max(weight r, ||s||) with s = prox_H(weight z - g)."""
        if not self.can_prox(p):
            raise CapabilityError(
                f"{self.name} has no prox for p = {p}; use p = 2, or ConditionalGradient"
            )
        pulled = expand(weight) * z - g
        shrunk = self.shrink(pulled)
        xp = namespace(g)
        point = shrunk.point * expand(self._length(norm(shrunk.point), weight, 1.0))
        # As in ``linear_near``; what is left of a solution 0 is rounding, of any direction.
        here = self.linear_value(0.5 * expand(weight) * point - pulled, point)
        point = xp.where(expand(here > 0), xp.zeros_like(point), point)
        here = xp.minimum(here, xp.where(here > 0, xp.zeros_like(here), here))
        value = self.prox_value(g, z, weight, 2.0, point)
        # On S the objective is (weight/2) ||y||^2 - pulled'y + h(y) and a constant, and at least
        # (weight/2) t^2 - ||pulled - q|| t for some t = ||y|| <= r.
        size = shrunk.bound
        t = self._length(size, weight, size)
        least = (0.5 * weight * t - size) * t
        return Answer(point, value, value - xp.maximum(here - least, 0.0))

    def can_prox(self, p: float) -> bool:
        return p == 2.0

    def _length(self, size: Array, weight: Array, times: Array) -> Array:
        """r times / max(weight r, size): divide by the weight, then pull into the ball; 0 where both are 0."""
        xp, radius = namespace(size), self.set.radius
        largest = xp.maximum(size, weight * radius + 0.0 * size)
        return radius * times / xp.where(largest > 0, largest, xp.ones_like(size))


@dataclass(frozen=True)
class CenteredBallAnalysis(ShrunkBall):
    r"""S = {||y||_2 <= r} with h(y) = weight ||Ky||_1 (theory E36).

    C = {K'u : |u_i| <= weight}: with b = -g and u a minimiser of ||b - K'u|| over the box, y = r z/||z||, z = b - K'u.
    Newton's method on the box, a few products with K and small linear systems; the prox for p = 2 costs the same.

    >>> import numpy as np
    >>> from restpoint.sets import L2Ball
    >>> fused = AnalysisL1(np.array([[-1.0, 1.0]]), 1.0)
    >>> answer = CenteredBallAnalysis(L2Ball(), fused).linear(np.array([-5.0, -2.0]))
    >>> answer.point, float(answer.lower)
    (array([0.8, 0.6]), -5.0)
    """

    conditions = (
        Condition("the set is an L2Ball", lambda set, penalty: isinstance(set, L2Ball)),
        Condition("its center is 0", lambda set, penalty: isinstance(set, L2Ball) and set.centered),
        Condition(
            "the penalty is AnalysisL1", lambda set, penalty: isinstance(penalty, AnalysisL1)
        ),
    )

    set: L2Ball
    penalty: AnalysisL1

    def shrink(
        self, v: Array, near: Array | None = None, hint: Any = None, slack: Array = 0.0
    ) -> Shrunk:
        return self.penalty.kernel.shrink(v, self.penalty.weight, near, hint, slack)

    def rest(self, v: Array, hint: Any) -> Array:
        xp, most = namespace(v), expand(self.penalty.weight)
        return norm(v - xp.minimum(xp.maximum(hint, -most), most) @ self.penalty.K)

    def magnitude(self, g: Array, point: Array) -> Array:
        """The bound subtracts K'u: r weight || |K|'1 || is the most that its terms add up to."""
        kernel = self.penalty.kernel
        largest = kernel.deeper * self.penalty.weight * norm(kernel.column_sums)
        return super().magnitude(g, point) + self.set.radius * largest


@dataclass(frozen=True)
class NullSpaceBallSeparable(ShrunkBall):
    r"""S = {Q'y = 0, ||y||_2 <= r} with h(y) = sum_j max(low_j y_j, high_j y_j), such as weighted l1.

    C = {w + Q nu : low <= w <= high}: with b = -g, minimise ||soft(b - Q nu)||_2 over nu, as many variables as Q has
    columns, by a semismooth Newton method; a step costs about one product with Q. The point has the zeros of the
    thresholded vector, exactly, and is put back into the null space within its support (theory A2).

    >>> import numpy as np
    >>> from restpoint.penalties import L1
    >>> ball = NullSpaceBall(np.array([[0.6], [0.8], [0.0], [0.0]]))
    >>> h = L1(1.0, scales=np.array([0.0, 0.0, 1.0, 1.0]))
    >>> answer = NullSpaceBallSeparable(ball, h).linear(np.array([-3.0, 1.0, -0.5, -5.0]))
    >>> answer.point, float(answer.lower)
    (array([ 0.48, -0.36,  0.  ,  0.8 ]), -5.0)
    """

    conditions = (
        Condition(
            "the set is a NullSpaceBall", lambda set, penalty: isinstance(set, NullSpaceBall)
        ),
        Condition(
            "the penalty is a sum of max(low x_j, high x_j)",
            lambda set, penalty: isinstance(penalty, SeparableSublinear),
        ),
    )

    set: NullSpaceBall
    penalty: SeparableSublinear

    def shrink(
        self, v: Array, near: Array | None = None, hint: Any = None, slack: Array = 0.0
    ) -> Shrunk:
        return self.set.kernel.shrink(v, self.penalty.slopes(), near, hint, slack)

    def rest(self, v: Array, hint: Any) -> Array:
        t = v - hint.nu @ self.set.Q.T
        return norm(self.penalty.prox(t, 1.0))

    def magnitude(self, g: Array, point: Array) -> Array:
        """The bound subtracts Q nu with ||nu|| <= 2 ||g|| + ||slopes||; the terms it sums are sqrt(k) times larger."""
        xp, columns = namespace(g), self.set.Q.shape[1]
        steepest = xp.maximum(*[xp.abs(slope + 0.0 * g) for slope in self.penalty.slopes()])
        terms = self.set.absolute_support(2.0 * xp.abs(g) + steepest)
        return super().magnitude(g, point) + columns**0.5 * terms
