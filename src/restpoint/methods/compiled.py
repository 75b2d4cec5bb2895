"""Accelerated full steps on a ball with an analysis penalty, compiled: the way there and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array
from restpoint.kernels.analysis import Analysis
from restpoint.kernels.outer_loop import Form, Walk, walked
from restpoint.methods.state import Look, State, Work
from restpoint.methods.trials import ROUNDING
from restpoint.oracles import Answer, CenteredBallAnalysis
from restpoint.problem import Problem
from restpoint.smooth import ConcaveQuadratic, Quadratic


class Compiled(NamedTuple):
    """x'Qx/2 or -||F'x||^2/2, with weight ||Kx||_1: a step is a few products with small matrices."""

    kernel: Analysis
    form: Form
    weight: Array
    radius: Array


def compiled(problem: Problem, state: State) -> Compiled | None:
    """None where the problem is of another kind, or its arrays are not rows of float64 in NumPy."""
    if len(problem.blocks) > 1 or type(problem.blocks[0].oracle) is not CenteredBallAnalysis:
        return None
    block, form = problem.blocks[0], _form(problem.smooth)
    kernel: Analysis = block.penalty.kernel  # type: ignore[attr-defined]
    if form is None or not (kernel.compiled and _rows(state.xs[0])):
        return None
    return Compiled(kernel, form, block.penalty.weight, block.set.radius)  # type: ignore[attr-defined]


def advanced(kind: Compiled, state: State, steps: int, slack: float) -> State:
    """``steps`` iterations of ``Momentum`` with Nesterov's rule later."""
    look, past, key = state.look, state.memory, state.key
    (x,), (g,), (h,), (gap,), (answer,) = (
        state.xs, look.gradients, look.penalties, look.gaps, look.answers,
    )  # fmt: skip
    ones = np.ones(len(x))
    assert look.value is not None  # gradients are exact
    numbers = np.stack([look.value, h, gap, answer.value, answer.lower, past.trail.t], axis=-1)
    walk = Walk(x, g, past.trail.last[0], answer.point, answer.hint, numbers, past.plain)
    scale = (kind.weight * ones, kind.radius * ones)
    rules = (slack, ROUNDING * float(np.finfo(np.float64).eps))
    new, counts = walked(kind.kernel, kind.form, scale, walk, steps, rules)
    value, h, gap, at, lower, t = np.ascontiguousarray(new.numbers.T)
    found = Answer(new.point, at, lower, new.dual)
    for _ in range(steps):
        key = key.next()
    return replace(
        state,
        xs=(new.x,),
        look=Look(value, (h,), (new.gradient,), (found,), (gap,)),
        promised=np.full(len(x), -np.inf),
        work=Work(float(steps), float(np.max(counts[:, 2])), 0.0),
        key=key,
        memory=past._replace(plain=new.answered, trail=past.trail._replace(t=t, last=(new.last,))),
    )


def _form(f: Any) -> Form | None:
    if type(f) is Quadratic and f.b is None:
        M = f.Q.T if isinstance(f.Q, np.ndarray) and not f.Q.flags.c_contiguous else f.Q
        return Form(M, 0) if _rows(M) else None
    if type(f) is ConcaveQuadratic and isinstance(f.F, np.ndarray):
        M, kind = (f.F, 1) if f.F.flags.c_contiguous else (f.F.T, 2)
        return Form(M, kind) if _rows(M) else None
    return None


def _rows(array: Any) -> bool:
    """Whether an array is as the loops read it."""
    plain = isinstance(array, np.ndarray) and array.dtype == np.float64
    return plain and array.ndim == 2 and array.flags.c_contiguous
