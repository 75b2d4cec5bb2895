"""Which statement of ``bounds`` covers a problem, a method and a starting point."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import numpy as np

from restpoint import bounds
from restpoint.array import to_host
from restpoint.bounds import Bound
from restpoint.methods import (
    Armijo,
    BlockMethod,
    ConditionalGradient,
    GaussSeidel,
    Jacobi,
    MaxImprovement,
    Universal,
    Weighted,
)
from restpoint.problem import Problem
from restpoint.run.stop import Measure
from restpoint.smooth import Curvature

Number = float | np.ndarray
Covered = Literal["jacobi", "max-improvement", "gauss-seidel"]

_COUNTS = {
    "jacobi": "iterations",
    "max-improvement": "block updates",
    "gauss-seidel": "sweeps",
}


class Question(NamedTuple):
    """How soon a gap of ``eps`` is reached, from ``delta`` above the lower bound."""

    problem: Problem
    method: BlockMethod
    eps: Number
    delta: Number | None
    measure: Measure
    tried: np.ndarray | None = None  # what a rule of trials tries first
    slack: Number = 0.0  # what an accepted trial may fall short by (theory A5(i))


def answer(question: Question) -> Bound:
    """The bound, or why there is none."""
    rule = question.method.smoothness
    if isinstance(rule, (Armijo, Weighted)):
        return _found_by_trial(question)
    curvature = question.method.curvature(question.problem)
    if question.problem.smooth.gradient_errors is not None:
        return _inexact(question, curvature)
    if len(question.problem.blocks) == 1:
        return _one_block(question, curvature)
    return _many_blocks(question, curvature)


def _order(question: Question) -> Covered | None:
    """How the blocks move, if a theorem speaks of it whatever the step is."""
    order = question.method.order
    if len(question.problem.blocks) == 1 or isinstance(order, Jacobi):
        return "jacobi"
    if isinstance(order, MaxImprovement):
        return "max-improvement"
    return "gauss-seidel" if isinstance(order, GaussSeidel) and order.first != "cyclic" else None


def _uncovered(question: Question) -> Bound:
    if isinstance(question.method.order, GaussSeidel):
        return Bound.none(
            "cyclic Gauss-Seidel is bounded through a cross-Hoelder constant (theory A7), which f does not declare "
            'for this p, or with steps that the theorem does not know; GaussSeidel(first="largest-gap") needs none'
        )
    return Bound.none("none is known for blocks in random order")


# --- steps found by trial --------------------------------------------------------------------------


def _found_by_trial(question: Question) -> Bound:
    """Theory A3 and A4, with the constants that f declares; the method uses none of them."""
    problem, method = question.problem, question.method
    rule, order, facts = method.smoothness, _order(question), problem.facts()
    if order is None:
        return _uncovered(question)
    together = order == "jacobi" and len(problem.blocks) > 1
    known = facts.joint if together else facts.blockwise or facts.joint
    p = 2.0 if known is None else known.p
    if isinstance(rule, Weighted) and not isinstance(rule, Universal):
        p = rule.power
        if known is None or (known.p != p and any(known.constants)):
            return Bound.none(
                f"lambda is found by trial, and f declares no constant for p = {p:g} that would limit it"
            )
    eps = question.eps
    if problem.smooth.gradient_errors is not None:
        if method.calls_prox:
            return Bound.none(
                "none is known for proximal steps found by trial from gradients with a declared error; "
                "Majorant() has one (theory A5), and so has ConditionalGradient"
            )
        eps = _less_errors(problem, eps)
    times = 1 + method.order.repeats if isinstance(method.order, GaussSeidel) else 1
    diameters = _diameters(problem, 2.0 if isinstance(rule, Universal) else p)
    numbers: dict[str, Any] = {
        "eps": eps,
        "delta": question.delta,
        "constants": None if known is None else known.constants,
        "diameters": diameters,
        "p": p,
        "order": order,
        "measure": question.measure,
        "slack": question.slack,
    }
    if isinstance(rule, Universal):
        size = times * sum(math.prod(shape) for shape in problem.shapes)
        bound = bounds.addition_4(**numbers, size=size, initial=question.tried)
    elif isinstance(rule, Weighted):
        bound = bounds.addition_3_known_p(**numbers, initial=question.tried)
    else:
        for name in ("constants", "diameters"):
            numbers[name] = None if numbers[name] is None else numbers[name] * times
        bound = bounds.addition_3(**numbers, concave=facts.concave)
    if problem.smooth.gradient_errors is not None:
        bound = bound.assuming("gradients are as near as f declares (theory A5)")
    return bound.assuming("values of Phi are true to 32 units in their last place")


def _less_errors(problem: Problem, eps: Number) -> np.ndarray:
    """eps less twice what declared errors can add to a gap: what a step may rely on (theory A5)."""
    reaches = _diameters(problem, 2.0)
    errors = problem.smooth.gradient_errors or ()
    off = [
        np.asarray(np.inf if reach is None else error * reach)
        for error, reach in zip(errors, reaches, strict=True)
    ]
    least = eps - 2.0 * (1.0 + 1e-12) * len(off) * np.maximum.reduce(np.broadcast_arrays(*off))
    return np.maximum(least, np.finfo(np.float64).smallest_normal)  # a count that is infinite


# --- constants that are declared --------------------------------------------------------------------


def _one_block(question: Question, curvature: Curvature) -> Bound:
    problem, eps, delta = question.problem, question.eps, question.delta
    if curvature.constants[0] == 0.0:
        return bounds.corollary_3_2(eps=eps, delta=delta)
    conditional = isinstance(question.method, ConditionalGradient)
    theorem = bounds.theorem_3_1 if conditional else bounds.theorem_3_3
    return theorem(
        eps=eps,
        delta=delta,
        constant=curvature.constants[0],
        diameter=_diameters(problem, curvature.p)[0],
        p=curvature.p,
        concave=problem.facts().concave,
    )


def _many_blocks(question: Question, curvature: Curvature) -> Bound:
    problem, order = question.problem, _order(question)
    blocks, full = len(problem.blocks), not any(curvature.constants)
    asked: dict[str, Any] = {
        "eps": question.eps,
        "delta": question.delta,
        "measure": question.measure,
    }
    sizes: dict[str, Any] = {
        "constants": curvature.constants,
        "diameters": _diameters(problem, curvature.p),
        "p": curvature.p,
    }
    if order == "gauss-seidel":
        if curvature.p > 2.0 and not full:
            return Bound.none(
                "Gauss-Seidel is covered for p <= 2; f is concave, so FullStep() needs no constants and has a bound"
            )
        return bounds.addition_13(**asked, blocks=blocks, **({} if full else sizes))
    if order == "max-improvement" and full:
        return bounds.addition_6(**asked, blocks=blocks)
    if order is not None:
        conditional = isinstance(question.method, ConditionalGradient)
        theorem = bounds.theorem_5_2 if conditional else bounds.theorem_5_3
        return theorem(**asked, **sizes, order=order, concave=problem.facts().concave)
    cross = problem.facts().cross
    cyclic = isinstance(question.method.order, GaussSeidel)
    if cyclic and cross is not None and cross.p == curvature.p and all(curvature.constants):
        return bounds.addition_7(**asked, **sizes, cross=cross.constants)
    return _uncovered(question)


def _inexact(question: Question, curvature: Curvature) -> Bound:
    """Theory A5: the same for gradients with a declared error."""
    problem, order = question.problem, _order(question)
    if order is None or (curvature.p > 2.0 and any(curvature.constants)):
        return Bound.none(
            "gradients with a declared error are covered for p <= 2, all blocks at once, the best of them, or "
            'GaussSeidel(first="largest-gap") (theory A5)'
        )
    bound = bounds.addition_5(
        eps=question.eps,
        delta=question.delta,
        constants=curvature.constants,
        diameters=_diameters(problem, curvature.p),
        errors=problem.smooth.gradient_errors or (),
        reaches=_diameters(problem, 2.0),
        p=curvature.p,
        step="proximal-gradient" if question.method.calls_prox else "conditional-gradient",
        measure=question.measure,
    )
    return dataclasses.replace(bound, counts=_COUNTS[order])


def _diameters(problem: Problem, p: float) -> tuple[Number | None, ...]:
    """diam_p of every set; None where a user's set knows no finite one for this p."""
    found = (
        host(block.set.diameter(p, shape))
        for block, shape in zip(problem.blocks, problem.shapes, strict=True)
    )
    return tuple(diameter if np.all(np.isfinite(diameter)) else None for diameter in found)


def host(value: object) -> Number:
    """A Python number, or an array as NumPy."""
    return value if isinstance(value, (int, float)) else to_host(value)
