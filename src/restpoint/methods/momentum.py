"""Steps by extrapolated gradients, kept where they lower Phi by what a plain step guarantees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from restpoint.array import Array, expand, inner, namespace, where, whole_number
from restpoint.errors import CapabilityError, described
from restpoint.methods.base import BlockMethod, Method
from restpoint.methods.compiled import advanced, compiled
from restpoint.methods.extrapolation import Anderson, Extrapolation, Nesterov
from restpoint.methods.orders import Jacobi
from restpoint.methods.smoothness import FullStep, Majorant
from restpoint.methods.state import Key, Look, Seen, State, Work, see
from restpoint.methods.steps import is_zero
from restpoint.methods.trials import lowered
from restpoint.omega import omega
from restpoint.oracles import Answer
from restpoint.problem import Block, Blocks, Problem

# How far from optimal the answer to an extrapolated gradient may be, in units of the gap (theory A2): whether the step
# is kept depends on what it does to Phi.
SLACK = 0.25


class Past(NamedTuple):
    """What is remembered of every start.

    Where ``plain`` holds, the answers of the look are answers to the gradients at the point itself, and the next step
    goes there and is kept, as a step of the method would be.
    """

    plain: Array
    points: Blocks  # one step ago, for proximal steps; else ()
    trail: Any  # what the extrapolation needs


class Trial(NamedTuple):
    """Where a step leads."""

    xs: Blocks
    look: Look
    asked: Blocks  # the gradients that it is by
    promised: Array  # the decrease of Phi that it guarantees where it is plain
    work: Work


@dataclass(frozen=True)
class Momentum(Method):
    r"""Step by an extrapolated gradient, and keep the step if Phi falls by what the plain step guarantees.

    ``memory=1`` is Nesterov's rule, g + (t_k - 1)/t_(k+1) (g - g_last), t_(k+1) = (1 + sqrt(1 + 4 t_k^2))/2. For
    quadratic f this is the gradient at the extrapolated point; for others an estimate of it. It asks nothing of f
    outside of the sets, and for no further gradient. A longer ``memory`` is Anderson's rule, a mixture of the last
    gradients, for full steps: of use where the gradient depends on a few numbers alone, as in ``ConcaveQuadratic``.

    Such a step is a trial. It is kept where Phi falls by sum_i omega_{D_i}(gap_i), D_i = lambda_i diam_p(S_i)^p (full
    steps: by the sum of the gaps). Else the start stays, forgets, and its next step is a plain one. So Phi never rises,
    every step that is kept satisfies the theorem of ``method``, and the refused trials, each followed by a plain step,
    at most double its count. Each start goes at its own pace.

    An iteration takes ``burst`` such steps: for small problems, where a step costs less than what the run does between
    two iterations. Full steps of concave quadratic f on the ball with ``AnalysisL1`` are compiled.

    A trial costs one gradient and one oracle call, answered as well as the gap asks for (theory A2): gaps rest on what
    that answer proves at the new point, where the oracle can tell.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.ConcaveQuadratic(np.diag(np.linspace(1.0, 1.2, 30)))
    >>> problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.01)))
    >>> plain = rp.ConditionalGradient(smoothness=rp.FullStep())
    >>> slow, fast = (rp.solve(problem, method) for method in (plain, rp.Momentum(plain)))
    >>> bool(fast.certified), bool(2 * fast.iterations < slow.iterations)
    (True, True)
    """

    method: BlockMethod
    memory: int = 1
    burst: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.method, BlockMethod):
            raise CapabilityError(
                "method must be ConditionalGradient(...) or ProximalGradient(...), "
                f"got {described(self.method)}"
            )
        if not isinstance(self.method.smoothness, (FullStep, Majorant)):
            raise CapabilityError(
                f"Momentum compares values of Phi, and so does {self.method.smoothness}: they cannot both decide; "
                "use FullStep() or Majorant(constant)"
            )
        object.__setattr__(self, "memory", whole_number("memory", self.memory, 1))
        object.__setattr__(self, "burst", whole_number("burst", self.burst, 1))

    @property
    def exact(self) -> bool:
        return self.method.exact

    @property
    def moves_together(self) -> bool:
        return self.method.moves_together

    @property
    def rule(self) -> Extrapolation:
        """How gradients are extrapolated."""
        return Nesterov() if self.memory == 1 else Anderson(self.memory)

    def check(self, problem: Problem) -> None:
        self.method.check(problem)
        if problem.smooth.gradient_errors is not None:
            raise CapabilityError(
                "Momentum relies on the gradients that it extrapolates, and those of f have a declared error (theory "
                "A5); use the method without this wrapper"
            )
        if not self.exact:
            raise CapabilityError("Momentum compares values of Phi, so it needs gradient=Exact()")
        if len(problem.blocks) > 1 and not isinstance(self.method.order, Jacobi):
            raise CapabilityError(
                f"Momentum extrapolates the gradients of all blocks, but {self.method.order} moves them one by one; "
                "use order=Jacobi(), or GaussSeidel(momentum=...) without this wrapper"
            )
        if self.memory > 1 and any(self.method.curvature(problem).constants):
            raise CapabilityError(
                "memory > 1 mixes gradients of full steps, which depend on nothing else; use FullStep(), or memory=1"
            )

    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        state = self.method.init(problem, xs, key)
        ones = namespace(state.look.value).ones_like(state.look.value)
        trail = self.rule.begun(state.look.gradients, ones)
        return replace(state, memory=Past(ones > 0.0, xs if self.method.calls_prox else (), trail))

    def step(self, problem: Problem, state: State) -> State:
        fast = None
        if self.memory == 1 and isinstance(self.method.smoothness, FullStep):
            fast = compiled(problem, state)
        if fast is not None:
            return advanced(fast, state, self.burst, SLACK)
        work = Work()
        for _ in range(self.burst):
            state = self._step(problem, state)
            work = work.plus(*state.work)
        return replace(state, work=work)

    def _step(self, problem: Problem, state: State) -> State:
        old, past = state.look, state.memory
        trial = self._trial(problem, state)
        new, key = trial.look, state.key.next()
        assert old.value is not None  # gradients are exact
        assert new.value is not None
        fell = lowered(old, new, _guaranteed(problem, state)) & (new.value <= old.value)
        kept, xp = past.plain | fell, namespace(fell)
        never = -xp.inf + 0.0 * trial.promised
        trail = self.rule.went(old.gradients, trial.asked, new.gradients, past.trail)
        none = self.rule.forgotten(past.trail)
        # Where Phi stays as it is there is nothing to extrapolate; then what is remembered stays too.
        trail = where(new.value < old.value, trail, none)
        moved = replace(
            state,
            xs=trial.xs,
            look=new,
            promised=xp.where(past.plain, trial.promised, never),
            work=trial.work,
            key=key,
            memory=Past(past.plain & ~past.plain, state.xs if past.points else (), trail),
        )
        if bool(xp.all(kept)):
            return moved
        look, calls = self._again(problem, state)
        memory = Past(past.plain | ~past.plain, past.points, none)
        stayed = replace(moved, xs=state.xs, look=look, promised=never, memory=memory)
        work = trial.work.plus(oracle_calls=calls)
        return replace(where(kept, moved, stayed), key=key, work=work)

    def _trial(self, problem: Problem, state: State) -> Trial:
        """The step by the gradients ahead; where it is plain, by the answers of the look."""
        look, past = state.look, state.memory
        plain = bool(namespace(past.plain).all(past.plain))
        asked, share = look.gradients, 0.0
        if not plain:
            asked, share = self.rule.ahead(look.gradients, past.trail)
            asked = where(past.plain, look.gradients, asked)
            share = where(past.plain, 0.0 * share, share)
        xs, answers, promised, calls = [], [], 0.0, 0.0
        for i, (block, x, g) in enumerate(zip(problem.blocks, state.xs, asked, strict=True)):
            constant, answer = state.curvature.constants[i], look.answers[i]
            if self.method.calls_prox and not is_zero(constant):
                begin = x if plain else _beyond(block, x, past.points[i], share)
                seen = Seen(g, look.penalties[i], answer, look.gaps[i])
                calls += 1.0
            else:
                begin = x
                if not plain:
                    answer = _answered(block, g, answer, look.gaps[i], past.plain)
                    calls += 1.0
                gap = inner(g, x, block.set.event_ndim) + look.penalties[i] - answer.lower
                seen = Seen(g, look.penalties[i], answer, gap)
            y, decrease = self.method.move(block, begin, seen, constant, state.curvature.p)
            xs.append(y)
            answers.append(answer)
            promised = promised + decrease
        seen_there, samples, more = self._look(problem, tuple(xs), state.key, answers)
        return Trial(tuple(xs), seen_there, asked, promised, Work(1.0, calls + more, samples))

    def _look(
        self, problem: Problem, xs: Blocks, key: Key, answers: list[Answer]
    ) -> tuple[Look, float, float]:
        """What is seen at ``xs``, with gaps by what answers to gradients nearby prove; samples and oracle calls."""
        value, gradients, samples = self.method.gradient.evaluate(problem, xs, key)
        assert value is not None  # gradients are exact
        penalties, found, gaps, calls = [], [], [], 0.0
        for block, x, g, answer in zip(problem.blocks, xs, gradients, answers, strict=True):
            h = block.penalty.value(x)
            if block.oracle.remembers and answer.hint is not None:
                here = inner(g, x, block.set.event_ndim) + h
                lower = namespace(here).minimum(block.oracle.bound_near(g, answer), here)
                there, gap = Answer(x, here, lower, answer.hint), here - lower
            else:
                seen, calls = see(block, x, g, h, answer), calls + 1.0
                there, gap = seen.answer, seen.gap
            value = value + h
            penalties.append(h)
            found.append(there)
            gaps.append(gap)
        return Look(value, tuple(penalties), gradients, tuple(found), tuple(gaps)), samples, calls

    def _again(self, problem: Problem, state: State) -> tuple[Look, float]:
        """The look where a start stays, with answers to its own gradients; and how many calls that took."""
        look, answers, gaps, calls = state.look, [], [], 0.0
        for i, (block, x) in enumerate(zip(problem.blocks, state.xs, strict=True)):
            answer, gap = look.answers[i], look.gaps[i]
            if block.oracle.remembers:
                seen = see(block, x, look.gradients[i], look.penalties[i], answer)
                answer, gap, calls = seen.answer, seen.gap, calls + 1.0
            answers.append(answer)
            gaps.append(gap)
        return replace(look, answers=tuple(answers), gaps=tuple(gaps)), calls


def _guaranteed(problem: Problem, state: State) -> Array:
    """sum_i omega_{D_i}(gap_i): by how much the method's own step lowers Phi at least."""
    total: Array = 0.0
    p = state.curvature.p
    for block, shape, constant, gap in zip(
        problem.blocks, problem.shapes, state.curvature.constants, state.look.gaps, strict=True
    ):
        if not is_zero(constant):
            gap = omega(gap, constant * block.set.diameter(p, shape) ** p, p)  # noqa: PLW2901
        total = total + gap
    return total


def _answered(block: Block, g: Array, last: Answer, gap: Array, plain: Array) -> Answer:
    """The answer to a gradient ahead, about as good as the gap asks for; where the step is plain, the last one."""
    xp = namespace(gap)
    slack = xp.where(plain, 0.0, SLACK * xp.maximum(gap, 0.0))
    return where(plain, last, block.oracle.linear_near(g, last.point, last.hint, slack))


def _beyond(block: Block, x: Array, last: Array, share: Array) -> Array:
    """x + share (x - last), in the set."""
    return block.set.project(x + expand(share, block.set.event_ndim) * (x - last))
