"""The two steps of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restpoint.array import Array, expand, is_array, namespace, norm, power_sum
from restpoint.errors import CapabilityError
from restpoint.methods.base import BlockMethod
from restpoint.methods.state import Seen
from restpoint.omega import step_length
from restpoint.problem import Block, Problem
from restpoint.smooth import Curvature


@dataclass(frozen=True)
class ConditionalGradient(BlockMethod):
    r"""Algorithms 1, 4 and 5: go towards the answer y of the linear oracle, d = y - x.

    x+ = (1 - s) x + s y with s = argmin over [0, 1] of -s gap + s^p (lambda/2) ||d||_p^p (theory E8), which
    guarantees the decrease s gap - s^p (lambda/2) ||d||_p^p. With lambda = 0 the step is full and the decrease
    is the gap (Corollary 3.2). Here the gap is that of y, which only an inexact oracle tells from the certified one
    (theory A2), less what declared errors of the gradient can add (theory A5).
    """

    def move(
        self, block: Block, x: Array, seen: Seen, constant: Array, p: float
    ) -> tuple[Array, Array]:
        y = seen.answer.point
        gap = seen.attained
        ndim = block.set.event_ndim
        if is_zero(constant):
            return (y, gap) if seen.doubt is None else stay_unless(gap, y, x, ndim)
        weight = constant * power_sum(y - x, p, ndim)
        s = step_length(gap, weight, p)
        promised = s * gap - 0.5 * s**p * weight
        s = expand(s, ndim)
        return (1.0 - s) * x + s * y, promised  # exactly y at a full step: zeros stay zeros


@dataclass(frozen=True)
class ProximalGradient(BlockMethod):
    r"""Algorithms 2, 3 and 6: minimise the upper model.

    x+ = argmin over y in S of g'(y - x) + (lambda/2) ||y - x||_p^p + h(y), which guarantees the decrease
    Triangle U = h(x) - (the minimum), less error ||x+ - x||_2 where the gradient has a declared error (theory A5). At
    p = 2 this is gradient projection, or ISTA.
    """

    calls_prox: ClassVar[bool] = True

    def check_blocks(self, problem: Problem, curvature: Curvature) -> None:
        for i, block in enumerate(problem.blocks):
            if curvature.constants[i] > 0 and not block.oracle.can_prox(curvature.p):
                raise CapabilityError(
                    f"block {i} ({block.oracle.name}) has no prox for p = {curvature.p}; "
                    "use ConditionalGradient, which needs the linear oracle only"
                )

    def move(
        self, block: Block, x: Array, seen: Seen, constant: Array, p: float
    ) -> tuple[Array, Array]:
        ndim = block.set.event_ndim
        if is_zero(constant):  # the model is linear, and its minimiser is already known
            y, gap = seen.answer.point, seen.attained
            return (y, gap) if seen.doubt is None else stay_unless(gap, y, x, ndim)
        answer = block.oracle.prox(seen.gradient, x, constant, p)
        decrease = seen.penalty - answer.value
        if seen.doubt is None:
            return answer.point, decrease
        decrease = decrease - seen.doubt.error * norm(answer.point - x, ndim)
        return stay_unless(decrease, answer.point, x, ndim)


def stay_unless(decrease: Array, y: Array, x: Array, ndim: int) -> tuple[Array, Array]:
    """y and what it guarantees, or x where errors of the gradient leave nothing of that (theory A5)."""
    xp = namespace(x)
    useful = decrease > 0.0
    return xp.where(expand(useful, ndim), y, x), xp.where(useful, decrease, 0.0)


def is_zero(constant: Array) -> bool:
    """Whether f is linear for the step; one constant per start (``Doubling``) is never 0."""
    return not is_array(constant) and constant == 0.0
