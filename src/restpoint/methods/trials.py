"""Steps for f whose constants nobody knows: try, compare Phi, and be more careful where it did not fall enough.

Each start tries at its own pace. An iteration is one trial; a refused one leaves the point, and what was seen there, as
they are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from restpoint.array import Array, expand, inner, namespace, power_sum, real_number, where
from restpoint.errors import CapabilityError, DataError
from restpoint.methods.smoothness import Smoothness, checked_power
from restpoint.methods.state import Look, Seen, State
from restpoint.methods.steps import ConditionalGradient
from restpoint.problem import Block, Blocks
from restpoint.smooth import Curvature, Facts

if TYPE_CHECKING:
    from restpoint.methods.base import BlockMethod
    from restpoint.problem import Problem

# What rounding of two values of Phi may hide, in units of their last digit (theory A5, A12), and what it may hide in
# their difference by gradients, in units of the terms of that.
ROUNDING, ROUNDING_OF_SLOPES = 64.0, 8.0
# What is tried next allows for so many times the curvature that the last trial met.
MARGIN = 1.25


class Verdict(NamedTuple):
    """Whether a trial is accepted, by how much Phi fell, and where rounding of Phi hides that."""

    accepted: Array
    fallen: Array
    hidden: Array


class Trials(Smoothness):
    """What the rules share: a number per start that says how careful to be, and the test of a trial."""

    def check(self, method: BlockMethod, problem: Problem) -> None:
        del problem
        if not method.exact:
            raise CapabilityError(f"{self} compares values of Phi, so it needs gradient=Exact()")

    def step(self, method: BlockMethod, problem: Problem, state: State) -> State:
        tried, wanted = self.attempt(method, problem, state)
        verdict = _judged(state, tried, wanted)
        memory = self.next(state, tried, verdict)
        accepted = verdict.accepted
        # A refused trial promises nothing, and what f kept along it is true elsewhere.
        old = replace(state, promised=None, carried=None, trail=None)
        new = where(accepted, replace(tried, promised=None, carried=None, trail=None), old)
        return replace(
            new, curvature=state.curvature, key=tried.key, work=tried.work, memory=memory
        )

    @abstractmethod
    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        """A trial, and by how much it must lower Phi."""

    @abstractmethod
    def next(self, old: State, tried: State, verdict: Verdict) -> Array:
        """What to remember after a trial from ``old``; ``tried`` is where the accepted are now."""


@dataclass(frozen=True)
class Armijo(Trials):
    r"""Conditional gradient with one step length for all blocks, found by trial (theory A3).

    With y_i from the linear oracles, blocks go to (1 - s) x_i + s y_i, and the trial is accepted when Phi falls by at
    least s/2 times the gaps of the blocks that moved. Within [s_last, 2 s_last] after an accepted trial, and up to half
    of a refused one, s is where a parabola through what was seen is lowest. Neither lambda nor p is used, and for every
    pair that is true of f the gap is at most eps after

        N = ceil((2 delta / eps) max{1, 2 (D / eps)^(q-1)})

    accepted steps: the sum of the gaps with ``Jacobi``, the largest with ``GaussSeidel`` (a sweep is one trial) and
    ``MaxImprovement``.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.Function(lambda x: -x @ x, lambda x: -2 * x, shapes=3)
    >>> method = rp.ConditionalGradient(smoothness=rp.Armijo())
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
                "Armijo() shortens the step of ConditionalGradient; for ProximalGradient use Universal() or Doubling()"
            )

    def remembered(self, xs: Blocks, look: Look) -> Any:
        """The step length to try."""
        return namespace(look.value).ones_like(look.value)

    def next(self, old: State, tried: State, verdict: Verdict) -> Array:
        """Where the parabola through what was seen is lowest, within what theory A3 asks.

        After a refusal that is at most half. It stays above the s_min of the theorem: with G, the gaps that the trial
        saw, s G - fallen <= s^p D/2 and s^(p-1) > G/D, so the lowest point s^2 G / (2 (s G - fallen)) of the
        parabola is at least (G/D)^(q-1), for p <= 2. (A pair with p > 2 is true of concave f alone, of which nothing
        is refused: theory E2.)
        """
        xp, s = namespace(old.memory), old.memory
        promised: Array = tried.promised  # s G / 2
        bent = 2.0 * promised - verdict.fallen  # what curvature took: s^2/2 times that along y - x
        known = (bent > 0.0) & xp.isfinite(bent) & ~verdict.hidden
        bent = MARGIN * xp.where(known, bent, 1.0)
        shorter = s * xp.minimum(xp.where(known, promised / bent, 0.5), 0.5)
        # The same curvature along what is to be gone next.
        gap, gone, ahead = reduce(xp.add, tried.look.gaps), _apart(old), _apart(tried)
        least = 0.5 * s * s * gap * gone / xp.where(ahead > 0.0, bent * ahead, 1.0)
        longer = xp.where(known & (ahead > 0.0), least, 1.0)
        longer = xp.minimum(xp.maximum(longer, s), xp.minimum(2.0 * s, 1.0))
        return xp.where(verdict.accepted, longer, shorter)

    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        shortened = _Shortened(method.order, self, method.gradient, state.memory)
        tried = shortened.take_step(problem, state)
        return tried, tried.promised


@dataclass(frozen=True)
class _Shortened(ConditionalGradient):
    """Conditional gradient with step lengths that are given; it promises half of what is linear."""

    share: Array = 1.0

    def move(
        self, block: Block, x: Array, seen: Seen, constant: Array, p: float
    ) -> tuple[Array, Array]:
        share = expand(self.share, block.set.event_ndim)
        gain = namespace(seen.attained).maximum(seen.attained, 0.0)
        return (1.0 - share) * x + share * seen.answer.point, 0.5 * self.share * gain


class Weighted(Trials):
    """The rules that try a constant: raised where a trial was refused, lowered where it was not."""

    share: ClassVar[float]  # of the model's decrease that Phi has to achieve
    initial: float | None

    @property
    @abstractmethod
    def power(self) -> float:
        """The p of the model."""

    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        del together
        if self.power > 2.0 and strict and not facts.concave:
            raise CapabilityError(
                f"p = {self.power} > 2 is for concave f (theory E2); use 1 < p <= 2"
            )
        return Curvature((self.initial or 1.0,) * blocks, self.power)

    def remembered(self, xs: Blocks, look: Look) -> Any:
        """The constant to try first: the one given, else that below which no step is longer."""
        xp = namespace(look.value)
        if self.initial is not None:
            return xp.full_like(look.value, self.initial)
        first: Array = _full_below(xs, look, self.power)
        return xp.where((first > 0.0) & xp.isfinite(first), first, 1.0)

    def next(self, old: State, tried: State, verdict: Verdict) -> Array:
        xp, constant = namespace(old.memory), old.memory
        met = MARGIN * self._met(old, tried, verdict.fallen)
        half = 0.5 * constant
        lower = xp.where(met > half, xp.minimum(met, constant), half)  # NaN is no reason to stay
        floor = xp.minimum(constant, _full_below(tried.xs, tried.look, self.power))
        tiny = float(xp.finfo(constant.dtype).smallest_normal)
        lower = xp.maximum(xp.maximum(lower, floor), tiny)
        return xp.where(verdict.accepted, lower, constant * self._growth(tried, verdict))

    def _growth(self, tried: State, verdict: Verdict) -> Array:
        """Twice, or as far as the refused trial proves that the true constant is away.

        With a constant c the promise is at least (p-1) (c/2) moved, where moved is the sum of ||y_i - x_i||_p^p, and
        Phi falls by promised - ((true - c)/2) moved at least: true >= c (1 + (p-1) (1 - fallen / promised)).
        """
        promised: Array = tried.promised
        xp = namespace(promised)
        known = (promised > 0.0) & xp.isfinite(verdict.fallen) & ~verdict.hidden
        if self.power > 2.0 or tried.look.doubts is not None:  # of these the promise says less
            return xp.full_like(promised, 2.0)
        kept = xp.where(known, verdict.fallen / xp.where(known, promised, 1.0), 1.0)
        return xp.maximum(1.0 + (self.power - 1.0) * (1.0 - kept), 2.0)

    def attempt(self, method: BlockMethod, problem: Problem, state: State) -> tuple[State, Array]:
        constants = Curvature((state.memory,) * len(state.xs), self.power)
        tried = method.take_step(problem, replace(state, curvature=constants))
        promised: Array = tried.promised
        return tried, self.share * promised

    def _met(self, old: State, tried: State, fallen: Array) -> Array:
        """The constant with which the model's decrease would have been the one of Phi."""
        moved: Array = 0.0
        for before, after, gap in zip(old.xs, tried.xs, old.look.gaps, strict=True):
            moved = moved + power_sum(after - before, self.power, before.ndim - gap.ndim)
        xp = namespace(moved)
        promised: Array = tried.promised
        return old.memory + 2.0 * (promised - fallen) / xp.where(moved > 0.0, moved, 1.0)


@dataclass(frozen=True)
class Doubling(Weighted):
    r"""A constant lambda for known p, found by doubling: any step, any order of blocks (theory A3).

    A step (or sweep) with lambda is accepted when Phi falls by what lambda would guarantee. Then lambda is lowered
    towards the curvature that the step met, at most by half, and not below where steps are full anyway; where a
    step was refused it is doubled, or raised as far as the refusal proves the true constant to be away. Once lambda
    >= the true constant nothing is refused, so lambda never exceeds max(initial, 2 lambda_true), and the theorem
    for ``Majorant`` holds with that in its place. ``initial=None`` begins with the constant below which the first
    step of conditional gradient would be full, per start.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.Function(lambda x: np.sum(np.cos(x)), lambda x: -np.sin(x), shapes=3)
    >>> method = rp.ProximalGradient(smoothness=rp.Doubling())
    >>> rp.solve(rp.Problem(f, rp.Block(rp.sets.Box(-3.0, 4.0))), method).status
    CERTIFIED
    """

    share: ClassVar[float] = 1.0

    initial: float | None = None
    p: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", _positive_or_none(self.initial))
        object.__setattr__(self, "p", checked_power(self.p))

    @property
    def power(self) -> float:
        return self.p


@dataclass(frozen=True)
class Universal(Weighted):
    r"""The proximal step for f of which neither p nor lambda is known (theory A4).

    The weight (w/2) ||y - x||_2^2 is accepted when Phi falls by half of the model's decrease M; it is raised and
    lowered as in ``Doubling``. For every 1 < p <= 2 and lambda that are true of f the gap is at most eps
    after N = ceil((8 delta / eps) max{1, (D_2 / eps)^(q-1)}) accepted steps, D_2 = lambda n^(1-p/2) diam_2(S)^p: the
    rate is that of the best p. At every step omega^{-1}(M), for p = 2 and D = w diam_2(S)^2, bounds the gap whatever f
    is; ``measures(problem, xs, gamma=1/w)`` tells it.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.PowerSum(1.25, weights=np.array([1.0, -2.0, 0.5]))
    >>> method = rp.ProximalGradient(smoothness=rp.Universal())
    >>> rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), method).status
    CERTIFIED
    """

    share: ClassVar[float] = 0.5

    initial: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", _positive_or_none(self.initial))

    @property
    def power(self) -> float:
        return 2.0

    def check(self, method: BlockMethod, problem: Problem) -> None:
        super().check(method, problem)
        if not method.calls_prox:
            raise CapabilityError(
                "Universal() weighs the step of ProximalGradient; for ConditionalGradient use Armijo() or Doubling()"
            )


def _positive_or_none(initial: Any) -> float | None:
    if initial is None:
        return None
    value = real_number("initial", initial, "a finite number > 0, or None")
    if not value > 0.0:
        raise DataError(f"initial must be a finite number > 0, or None, got {value}")
    return value


def _full_below(xs: Blocks, look: Look, p: float) -> Array:
    """The lambda below which no step from here is longer: 2 gap / (p ||y - x||_p^p), of the block with the largest."""
    found = []
    for x, answer, gap in zip(xs, look.answers, look.gaps, strict=True):
        xp, far = namespace(x), power_sum(answer.point - x, p, x.ndim - gap.ndim)
        found.append(xp.where(far > 0.0, 2.0 * gap / (p * xp.where(far > 0.0, far, 1.0)), 0.0))
    return reduce(namespace(xs[0]).maximum, found)


def _apart(state: State) -> Array:
    """sum_i ||y_i - x_i||_2^2, y_i the answers of the linear oracles."""
    found = [
        power_sum(answer.point - x, 2.0, x.ndim - gap.ndim)
        for x, answer, gap in zip(state.xs, state.look.answers, state.look.gaps, strict=True)
    ]
    return reduce(namespace(state.xs[0]).add, found)


def _judged(old: State, new: State, wanted: Array) -> Verdict:
    """Whether Phi fell by what was wanted, as far as rounding lets it be seen; False where it is not finite.

    Where rounding of Phi hides all that was wanted, the mean slope tells, with the penalties:
    -(grad f(x) + grad f(x+))'(x+ - x) / 2. By the inequality of the majorant from either end, it is at least what the
    model promises once the constant is true, exactly as the decrease itself.
    """
    before: Array = old.look.value  # known, because gradients are exact
    after: Array = new.look.value
    xp, slack = namespace(before, after), _slack(before, after)
    fallen, hidden = before - after, wanted <= slack
    accepted = lowered(old.look, new.look, wanted)
    if bool(xp.any(hidden)):
        slope, size = _by_slopes(old, new)
        near = ROUNDING_OF_SLOPES * float(xp.finfo(before.dtype).eps) * size
        accepted = accepted & (~hidden | (slope >= wanted - near))
        fallen = xp.where(hidden, slope, fallen)
    return Verdict(accepted, fallen, hidden)


def lowered(old: Look, new: Look, wanted: Array) -> Array:
    """Whether Phi fell by what was wanted, up to rounding; False where it is not finite."""
    before: Array = old.value  # known, because gradients are exact
    after: Array = new.value
    slack = _slack(before, after)
    return namespace(after).isfinite(after) & (before - after >= wanted - slack)


def _slack(before: Array, after: Array) -> Array:
    """What rounding of two values of Phi may hide in their difference."""
    xp = namespace(before, after)
    return ROUNDING * float(xp.finfo(before.dtype).eps) * (xp.abs(before) + xp.abs(after))


def _by_slopes(old: State, new: State) -> tuple[Array, Array]:
    """The decrease of Phi by the mean slope, and the size of the terms that it is summed from."""
    fallen: Array = 0.0
    size: Array = 0.0
    for i, (x, y) in enumerate(zip(old.xs, new.xs, strict=True)):
        ndim = x.ndim - old.look.gaps[i].ndim
        mean = 0.5 * (old.look.gradients[i] + new.look.gradients[i])
        h, after = old.look.penalties[i], new.look.penalties[i]
        xp = namespace(x)
        fallen = fallen - inner(mean, y - x, ndim) + (h - after)
        size = size + inner(xp.abs(mean), xp.abs(y - x), ndim) + xp.abs(h) + xp.abs(after)
    return fallen, size
