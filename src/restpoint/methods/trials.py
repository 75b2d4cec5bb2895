"""Steps for f whose constants nobody knows: try, compare Phi, and be more careful where it did not fall enough.

Each start tries at its own pace. An iteration is one trial; a refused one leaves the point, and what was seen there, as
they are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from restpoint.array import Array, expand, namespace, power_sum, real_number, where
from restpoint.errors import CapabilityError, DataError
from restpoint.methods.smoothness import Smoothness, checked_power
from restpoint.methods.state import Look, State, Work, seen_in
from restpoint.smooth import Curvature, Facts

if TYPE_CHECKING:
    from restpoint.methods.base import BlockMethod
    from restpoint.problem import Problem

# What rounding of two values of Phi may hide, in units of their last digit (theory A5, A12).
ROUNDING = 64.0


class Trials(Smoothness):
    """What the two rules share: a number per start that says how careful to be, and the test of a trial."""

    def check(self, method: BlockMethod, problem: Problem) -> None:
        del problem
        if not method.exact:
            raise CapabilityError(f"{self} compares values of Phi, so it needs gradient=Exact()")

    def step(self, method: BlockMethod, problem: Problem, state: State) -> State:
        tried, wanted = self.attempt(method, problem, state)
        accepted = lowered(state.look, tried.look, wanted)
        memory = self.next(state.memory, accepted, tried)
        # A refused trial promises nothing, and what f kept along it is true elsewhere.
        old = replace(state, promised=None, carried=None, trail=None)
        new = where(accepted, replace(tried, promised=None, carried=None, trail=None), old)
        return replace(new, key=state.key.next(), work=tried.work, memory=memory)

    @abstractmethod
    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        """A trial, and by how much it must lower Phi."""

    @abstractmethod
    def next(self, memory: Array, accepted: Array, tried: State) -> Array:
        """What to remember after it; ``tried`` is where the accepted are now."""


@dataclass(frozen=True)
class Armijo(Trials):
    r"""Conditional gradient with one step length for all blocks, found by halving (theory A3).

    With d_i = y_i - x_i from the linear oracles and DL the sum of their gaps, x + s d is accepted when
    Phi(x) - Phi(x + s d) >= s DL / 2, tried with s = min(1, 2 s_last) first. Neither lambda nor p is used, and for
    every pair that is true of f, DL <= eps after at most N = ceil((2 delta / eps) max{1, 2 (D / eps)^(q-1)}) accepted
    steps. For ``order=Jacobi()`` or a single block.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.Function(lambda x: -x @ x, lambda x: -2 * x, shapes=3)
    >>> method = rp.ConditionalGradient(rp.Jacobi(), rp.Armijo())
    >>> rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), method).status
    CERTIFIED
    """

    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        del facts, together, strict
        return Curvature((0.0,) * blocks, 2.0)  # none is used

    def check(self, method: BlockMethod, problem: Problem) -> None:
        super().check(method, problem)
        if method.calls_prox:
            raise CapabilityError(
                "Armijo() shortens the step of ConditionalGradient; for ProximalGradient use Doubling()"
            )
        if len(problem.blocks) > 1 and not method.moves_together:
            raise CapabilityError(
                f"Armijo() finds one step length for all blocks, but {method.order} moves them one by one; "
                "use order=Jacobi(), or Doubling()"
            )

    def remembered(self, look: Look) -> Any:
        """The step length to try."""
        return namespace(look.value).ones_like(look.value)

    def next(self, memory: Array, accepted: Array, tried: State) -> Array:
        xp = namespace(memory)
        return xp.where(accepted, xp.minimum(2.0 * memory, 1.0), 0.5 * memory)

    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        s, seen = state.memory, [seen_in(state.look, i) for i in range(len(state.xs))]
        xs = []
        for block, x, one in zip(problem.blocks, state.xs, seen, strict=True):
            share = expand(s, block.set.event_ndim)
            xs.append((1.0 - share) * x + share * one.answer.point)
        look, samples = method.look(problem, tuple(xs), state.key, last=state.look)
        gap = sum(one.attained for one in seen)
        work = Work(1.0, len(xs), samples)
        return replace(state, xs=tuple(xs), look=look, work=work), 0.5 * s * gap


@dataclass(frozen=True)
class Doubling(Trials):
    r"""A constant lambda for known p, found by doubling: any step, any order of blocks (theory A3).

    A step (or sweep) with lambda is accepted when Phi falls by what lambda would guarantee. Then lambda is halved,
    but not below where steps are full anyway; where a step was refused it is doubled. Once lambda >= the true constant
    nothing is refused, so lambda never exceeds max(initial, 2 lambda_true), and the theorem for ``Majorant`` holds
    with that in its place.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.Function(lambda x: np.sum(np.cos(x)), lambda x: -np.sin(x), shapes=3)
    >>> method = rp.ProximalGradient(smoothness=rp.Doubling())
    >>> rp.solve(rp.Problem(f, rp.Block(rp.sets.Box(-3.0, 4.0))), method).status
    CERTIFIED
    """

    initial: float = 1.0
    p: float = 2.0

    def __post_init__(self) -> None:
        initial = real_number("initial", self.initial, "a finite number > 0")
        if not initial > 0.0:
            raise DataError(f"initial must be a finite number > 0, got {initial}")
        object.__setattr__(self, "initial", initial)
        object.__setattr__(self, "p", checked_power(self.p))

    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        del together
        if self.p > 2.0 and strict and not facts.concave:
            raise CapabilityError(f"p = {self.p} > 2 is for concave f (theory E2); use 1 < p <= 2")
        return Curvature((self.initial,) * blocks, self.p)

    def remembered(self, look: Look) -> Any:
        """The constant to try."""
        return self.initial * namespace(look.value).ones_like(look.value)

    def next(self, memory: Array, accepted: Array, tried: State) -> Array:
        xp = namespace(memory)
        lower = xp.maximum(0.5 * memory, xp.minimum(memory, _full_below(tried, self.p)))
        return xp.where(accepted, lower, 2.0 * memory)

    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        constants = Curvature((state.memory,) * len(state.xs), self.p)
        tried = method.take_step(problem, replace(state, curvature=constants))
        return replace(tried, curvature=state.curvature), tried.promised


def _full_below(state: State, p: float) -> Array:
    """The lambda below which no step from here is longer: 2 gap / (p ||y - x||_p^p), of the block with the largest."""
    look, found = state.look, []
    for x, answer, gap in zip(state.xs, look.answers, look.gaps, strict=True):
        xp, far = namespace(x), power_sum(answer.point - x, p, x.ndim - gap.ndim)
        found.append(xp.where(far > 0.0, 2.0 * gap / (p * xp.where(far > 0.0, far, 1.0)), 0.0))
    return reduce(namespace(state.xs[0]).maximum, found)


def lowered(old: Look, new: Look, wanted: Array) -> Array:
    """Whether Phi fell by what was wanted, up to rounding; False where it is not finite."""
    before: Array = old.value  # known, because gradients are exact
    after: Array = new.value
    xp = namespace(before, after)
    slack = ROUNDING * float(xp.finfo(before.dtype).eps) * (xp.abs(before) + xp.abs(after))
    return xp.isfinite(after) & (before - after >= wanted - slack)
