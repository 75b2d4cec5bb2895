"""Which theorem bounds a run: the map from (problem, method) to a statement of ``bounds``."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from restpoint import bounds
from restpoint.array import to_host
from restpoint.bounds import Bound
from restpoint.methods import (
    Armijo,
    BlockMethod,
    ConditionalGradient,
    Continuation,
    Doubling,
    GaussSeidel,
    Jacobi,
    MaxImprovement,
    Method,
    WithoutGuarantee,
)
from restpoint.penalties import SeparableSublinear
from restpoint.problem import Blocks, Problem
from restpoint.run.stop import Measure
from restpoint.smooth import Curvature

Number = float | np.ndarray

# The loop asks for a certificate a hair below eps, so that the one issued at the end, in another batch and so with
# other rounding, cannot fall on the other side. The count of iterations is for two hairs below: the certificate's
# allowance for rounding is the second. It is true as long as that allowance is at most 1e-9 eps.
MARGIN = 1.0 - 1e-9


def lower_bound(problem: Problem) -> Number | None:
    """A lower bound on Phi over the sets, or None."""
    smooth = problem.facts().lower_bound
    if smooth is None:
        return None
    return _host(smooth) + sum(block.penalty.lower_bound for block in problem.blocks)


def guarantee(
    problem: Problem,
    method: Method,
    xs: Blocks,
    *,
    eps: Number,
    value: np.ndarray,
    measure: Measure = "max",
) -> Bound:
    """The iteration bound for reaching ``eps`` from the starts ``xs`` of objective ``value``."""
    if isinstance(method, WithoutGuarantee):
        return Bound.none("the method runs without guarantee, because the user asked for it")
    if isinstance(method, Continuation):
        highest = _largest_penalty(problem)
        if highest is None:
            return Bound.none("continuation: no upper bound on the penalties is known")
        value = value + (1.0 - method.shares[0]) * highest
        bound = guarantee(problem, method.method, xs, eps=eps, value=value, measure=measure)
        # What the stages leave to a rule of trials is undone by as many trials at most as they took.
        times = 2 if isinstance(method.method.smoothness, (Armijo, Doubling)) else 1
        return bound.later(times * method.delay, "after continuation in the penalties")
    if not isinstance(method, BlockMethod):
        return Bound.none(f"no theorem is known for {type(method).__name__}")
    if not method.exact:
        return Bound.none("sampled gradients are bounded in expectation only (theory E15)")
    lower, eps = lower_bound(problem), eps * MARGIN**2
    delta = None if lower is None else _delta(problem, xs, value, lower)
    if delta is not None and np.all(np.isnan(delta)):
        return Bound.none("Phi is not finite at the starting points")
    rule = method.smoothness
    if isinstance(rule, Armijo):
        bound = _armijo(problem, eps, delta)
    elif isinstance(rule, Doubling):
        bound = _doubling(problem, method, rule, eps, delta, measure)
    else:
        curvature = method.curvature(problem)
        bound = _majorised(problem, method, curvature, eps, delta, measure)
        needed = problem.facts().needed
        if curvature.p == 2.0 and max(curvature.constants) < needed:
            return bound.withdraw(
                f"the constant {max(curvature.constants):.6g} is not true of f, which needs {needed:.6g}"
            )
    bound = bound.assuming(
        "rounding, with the certificate's allowance for it, stays below 1e-9 eps",
        *(words for block in problem.blocks for words in block.oracle.assumptions),
    )
    return bound if lower is None else _unless_below(bound, lower, value)


def _largest_penalty(problem: Problem) -> Number | None:
    """An upper bound on sum_i h_i over the sets, where every h_i is separable and sublinear."""
    total: Number = 0.0
    for block, shape in zip(problem.blocks, problem.shapes, strict=True):
        if not isinstance(block.penalty, SeparableSublinear):
            return None
        slopes = [np.abs(_host(slope)) for slope in block.penalty.slopes()]
        steepest = np.broadcast_to(*_aligned(np.maximum(*slopes), shape))
        total = total + _host(block.set.converted(steepest).absolute_support(steepest))
    return total * (1.0 + 1e-9)


def _aligned(slope: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """A slope and the shape (*batch, *event) that it has for every entry."""
    batch = slope.shape[: max(0, slope.ndim - len(shape))]
    return slope, (*batch, *shape)


def _majorised(
    problem: Problem,
    method: BlockMethod,
    curvature: Curvature,
    eps: Number,
    delta: Number | None,
    measure: Measure,
) -> Bound:
    if len(problem.blocks) == 1:
        return _one_block(problem, method, curvature, eps, delta)
    return _many_blocks(problem, method, curvature, eps, delta, measure)


def _armijo(problem: Problem, eps: Number, delta: Number | None) -> Bound:
    facts = problem.facts()
    constants, p = (None, 2.0) if facts.joint is None else (facts.joint.constants, facts.joint.p)
    diameters = _diameters(problem, p)
    return bounds.addition_3(
        eps=eps, delta=delta, constants=constants, diameters=diameters, p=p, concave=facts.concave
    )


def _doubling(
    problem: Problem,
    method: BlockMethod,
    rule: Doubling,
    eps: Number,
    delta: Number | None,
    measure: Measure,
) -> Bound:
    """The theorem for max(initial, 2 lambda), with lambda as f declares it, in trials (theory A3)."""
    facts, blocks = problem.facts(), len(problem.blocks)
    known = facts.joint if method.moves_together and blocks > 1 else facts.blockwise or facts.joint
    if known is None or (known.p != rule.p and any(known.constants)):
        return Bound.none(
            f"lambda is found by trial, and f declares no constant for p = {rule.p:g} that would limit it"
        )
    largest = max(rule.initial, *(2.0 * constant for constant in known.constants))
    curvature = Curvature((largest,) * blocks, rule.p)
    bound = _majorised(problem, method, curvature, eps, delta, measure)
    return bound.with_trials("lambda found by trial", math.log2(largest / rule.initial))


def _delta(problem: Problem, xs: Blocks, value: np.ndarray, lower: Number) -> np.ndarray:
    """Phi(x1) - lower bound, rounded up: by what f proves of its own rounding, else by 64 units."""
    size = np.abs(value) + np.abs(lower)
    rounding = 64.0 * np.finfo(value.dtype).eps * size
    proved = problem.smooth.rounding(xs)
    if proved is not None:
        rounding = to_host(proved[0]) + 8.0 * np.finfo(value.dtype).eps * size
    return np.asarray(np.maximum(value - lower, 0.0) + rounding, dtype=np.float64)


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


def unless_exceeded(bound: Bound, used: np.ndarray) -> Bound:
    """The bound, withdrawn if some start has looked at more points than it allows: its assumptions are not all true."""
    if bound.count is None or not np.any(used > bound.count):
        return bound
    allowed = np.broadcast_to(bound.count, used.shape)
    i = int(np.argmax(used > allowed))
    return bound.withdraw(
        f"start {i} has looked at {used[i]} points where {allowed[i]:.6g} should do: something that the bound assumes, "
        "rounding included, is not so"
    )


def below(value: Number, lower: Number) -> np.ndarray:
    """Whether a value is smaller than its lower bound by more than rounding can explain."""
    units = 1e4 * np.finfo(np.asarray(value).dtype).eps
    return np.asarray(value < lower - units * (np.abs(value) + np.abs(lower)))


def _one_block(
    problem: Problem, method: BlockMethod, curvature: Curvature, eps: Number, delta: Number | None
) -> Bound:
    if curvature.constants[0] == 0.0:
        return bounds.corollary_3_2(eps=eps, delta=delta)
    theorem = bounds.theorem_3_1 if isinstance(method, ConditionalGradient) else bounds.theorem_3_3
    return theorem(
        eps=eps,
        delta=delta,
        constant=curvature.constants[0],
        diameter=_diameters(problem, curvature.p)[0],
        p=curvature.p,
        concave=problem.facts().concave,
    )


def _many_blocks(
    problem: Problem,
    method: BlockMethod,
    curvature: Curvature,
    eps: Number,
    delta: Number | None,
    measure: Measure,
) -> Bound:
    blocks = len(problem.blocks)
    full = all(constant == 0.0 for constant in curvature.constants)
    sizes: dict[str, Any] = {
        "constants": curvature.constants,
        "diameters": _diameters(problem, curvature.p),
        "p": curvature.p,
    }
    if isinstance(method.order, GaussSeidel) and method.order.first == "largest-gap":
        if curvature.p > 2.0 and not full:
            return Bound.none(
                "Gauss-Seidel is covered for p <= 2; f is concave, so FullStep() needs no constants and has a bound"
            )
        more: dict[str, Any] = {} if full else sizes
        return bounds.addition_13(eps=eps, delta=delta, blocks=blocks, measure=measure, **more)
    if isinstance(method.order, MaxImprovement) and full:
        return bounds.addition_6(eps=eps, delta=delta, blocks=blocks, measure=measure)
    if isinstance(method.order, (Jacobi, MaxImprovement)):
        theorem = (
            bounds.theorem_5_2 if isinstance(method, ConditionalGradient) else bounds.theorem_5_3
        )
        order: Literal["jacobi", "max-improvement"] = (
            "jacobi" if isinstance(method.order, Jacobi) else "max-improvement"
        )
        concave = problem.facts().concave
        return theorem(eps=eps, delta=delta, order=order, measure=measure, concave=concave, **sizes)
    if isinstance(method.order, GaussSeidel):
        return Bound.none(
            "cyclic Gauss-Seidel is bounded through a cross-Hoelder constant (theory A7), which f does not declare; "
            'GaussSeidel(first="largest-gap") needs none'
        )
    return Bound.none("none is known for blocks in random order")


def _diameters(problem: Problem, p: float) -> tuple[Number | None, ...]:
    """diam_p of every set; None where a user's set knows no finite one for this p."""
    found = (
        _host(block.set.diameter(p, shape))
        for block, shape in zip(problem.blocks, problem.shapes, strict=True)
    )
    return tuple(diameter if np.all(np.isfinite(diameter)) else None for diameter in found)


def _host(value: object) -> Number:
    return value if isinstance(value, (int, float)) else to_host(value)
