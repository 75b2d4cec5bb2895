"""The bound of a run: from eps, a starting point and a lower bound to what a theorem promises."""

from __future__ import annotations

import numpy as np

from restpoint.array import to_host
from restpoint.bounds import Bound
from restpoint.methods import (
    ROUNDING,
    BlockMethod,
    Continuation,
    Method,
    Momentum,
    State,
    Trials,
    Universal,
    Weighted,
    WithoutGuarantee,
)
from restpoint.penalties import SeparableSublinear
from restpoint.problem import Blocks, Problem
from restpoint.run.covering import Number, Question, answer, host
from restpoint.run.stop import Measure

# The loop asks for a certificate a hair below eps, so that the one issued at the end, in another batch and so with
# other rounding, cannot fall on the other side. The count of iterations is for two hairs below: the certificate's
# allowance for rounding is the second. It is true as long as that is at most ALLOWANCE times eps.
ALLOWANCE = 1e-9
MARGIN = 1.0 - ALLOWANCE


def lower_bound(problem: Problem) -> Number | None:
    """A lower bound on Phi over the sets, or None."""
    smooth = problem.facts().lower_bound
    if smooth is None:
        return None
    return host(smooth) + sum(
        block.penalty.least(shape)
        for block, shape in zip(problem.blocks, problem.shapes, strict=True)
    )


def first_tried(method: Method, state: State) -> np.ndarray | None:
    """The constant that a rule of trials tries first at every start: its bound depends on it."""
    memory = state.memory
    if isinstance(method, Continuation):
        method, memory = method.method, memory.inner
    weighted = isinstance(method, BlockMethod) and isinstance(method.smoothness, Weighted)
    return to_host(memory) if weighted else None


def guarantee(
    problem: Problem,
    method: Method,
    xs: Blocks,
    *,
    eps: Number,
    value: np.ndarray,
    tried: np.ndarray | None = None,
    measure: Measure = "max",
) -> Bound:
    """The iteration bound for reaching ``eps`` from the starts ``xs`` of objective ``value``; see ``first_tried``."""
    if isinstance(method, WithoutGuarantee):
        return Bound.none("the method runs without guarantee, because the user asked for it")
    if isinstance(method, Continuation):
        return _after_continuation(
            problem, method, xs, eps=eps, value=value, tried=tried, measure=measure
        )
    if isinstance(method, Momentum):  # at most as many steps are refused as are kept
        return guarantee(
            problem, method.method, xs, eps=eps, value=value, measure=measure
        ).with_trials(0.0)
    if not isinstance(method, BlockMethod):
        return Bound.none(f"no theorem is known for {type(method).__name__}")
    if not method.exact:
        return Bound.none("sampled gradients are bounded in expectation only (theory E15)")
    lower, eps = lower_bound(problem), eps * MARGIN**2
    delta = None if lower is None else _delta(problem, xs, value, lower)
    if delta is not None and np.all(np.isnan(delta)):
        return Bound.none("Phi is not finite at the starting points")
    slack = 0.0 if lower is None else _slack(value, lower)
    bound = answer(Question(problem, method, eps, delta, measure, tried, slack))
    if not isinstance(method.smoothness, Trials):
        curvature, needed = method.curvature(problem), problem.facts().needed
        if curvature.p == 2.0 and max(curvature.constants) < needed:
            return bound.withdraw(
                f"the constant {max(curvature.constants):.6g} is not true of f, which needs {needed:.6g}"
            )
    bound = bound.assuming(
        "rounding, with the certificate's allowance for it, stays below 1e-9 eps",
        *(words for block in problem.blocks for words in block.oracle.assumptions),
    )
    return bound if lower is None else _unless_below(bound, lower, value)


def _after_continuation(
    problem: Problem,
    method: Continuation,
    xs: Blocks,
    *,
    eps: Number,
    value: np.ndarray,
    tried: np.ndarray | None,
    measure: Measure,
) -> Bound:
    """The bound of the last stage, later and from a higher Phi."""
    highest = _largest_penalty(problem)
    if highest is None:
        return Bound.none("continuation: no upper bound on the penalties is known")
    if isinstance(method.method.smoothness, Universal):
        return Bound.none(
            "none is known for the weights that the stages of continuation leave to Universal()"
        )
    value = value + (1.0 - method.shares[0]) * highest
    bound = guarantee(
        problem, method.method, xs, eps=eps, value=value, tried=tried, measure=measure
    )
    # What the stages leave to a rule of trials is undone by as many trials at most as they took.
    times = 2 if isinstance(method.method.smoothness, Trials) else 1
    return bound.later(times * method.delay, "after continuation in the penalties")


def _largest_penalty(problem: Problem) -> Number | None:
    """An upper bound on sum_i h_i over the sets, where every h_i is separable and sublinear."""
    total: Number = 0.0
    for block, shape in zip(problem.blocks, problem.shapes, strict=True):
        if not isinstance(block.penalty, SeparableSublinear):
            return None
        slopes = [np.abs(host(slope)) for slope in block.penalty.slopes()]
        steepest = np.broadcast_to(*_aligned(np.maximum(*slopes), shape))
        total = total + host(block.set.converted(steepest).absolute_support(steepest))
    return total * (1.0 + 1e-9)


def _aligned(slope: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """A slope and the shape (*batch, *event) that it has for every entry."""
    batch = slope.shape[: max(0, slope.ndim - len(shape))]
    return slope, (*batch, *shape)


def _delta(problem: Problem, xs: Blocks, value: np.ndarray, lower: Number) -> np.ndarray:
    """Phi(x1) - lower bound, rounded up: by what f proves of its own rounding, else by 64 units."""
    size = np.abs(value) + np.abs(lower)
    rounding = 64.0 * np.finfo(value.dtype).eps * size
    proved = problem.smooth.rounding(xs)
    if proved is not None:
        rounding = to_host(proved[0]) + 8.0 * np.finfo(value.dtype).eps * size
    return np.asarray(np.maximum(value - lower, 0.0) + rounding, dtype=np.float64)


def _slack(value: np.ndarray, lower: Number) -> np.ndarray:
    """By how much less than its test says an accepted trial may lower Phi: its allowance for rounding, and rounding."""
    largest = np.maximum(np.abs(value), np.abs(lower))
    slack = 1.5 * ROUNDING * np.finfo(value.dtype).eps * 2.0 * largest
    return np.asarray(np.where(np.isfinite(slack), slack, np.finfo(np.float64).max), np.float64)


def _unless_below(bound: Bound, lower: Number, value: Number) -> Bound:
    """The bound, withdrawn if Phi at a start disproves the lower bound that it rests on."""
    low, start = np.broadcast_arrays(lower, value)
    wrong = below(start, low)
    if not np.any(wrong):
        return bound
    i = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return bound.withdraw(
        f"Phi = {start[i]:.6g} at a starting point lies below its declared lower bound {low[i]:.6g}"
    )


def unless_exceeded(bound: Bound, used: np.ndarray, floor: np.ndarray, eps: np.ndarray) -> Bound:
    """The bound, withdrawn if some start has looked at more points than it allows: its assumptions are not all true.

    Starts are left out whose certificate allows for rounding (``floor``, per block) more than the bound assumes.
    """
    if bound.count is None:
        return bound
    exceeded = (used > bound.count) & (np.sum(floor, axis=-1) <= ALLOWANCE * eps)
    if not np.any(exceeded):
        return bound
    i, allowed = int(np.argmax(exceeded)), np.broadcast_to(bound.count, used.shape)
    return bound.withdraw(
        f"start {i} has looked at {used[i]} points where {allowed[i]:.6g} should do: something that the bound assumes, "
        "rounding included, is not so"
    )


def below(value: Number, lower: Number) -> np.ndarray:
    """Whether a value is smaller than its lower bound by more than rounding can explain."""
    units = 1e4 * np.finfo(np.asarray(value).dtype).eps
    return np.asarray(value < lower - units * (np.abs(value) + np.abs(lower)))
