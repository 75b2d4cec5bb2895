"""What a method knows: where it is, and what it saw there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array, inner
from restpoint.oracles import Answer
from restpoint.problem import Block, Blocks, Problem
from restpoint.smooth import Curvature


class Work(NamedTuple):
    """What one start has spent. A gradient counts all blocks; a partial gradient is 1/d of one."""

    gradients: float = 0.0
    oracle_calls: float = 0.0
    samples: float = 0.0

    def plus(self, gradients: float = 0.0, oracle_calls: float = 0.0, samples: float = 0.0) -> Work:
        return Work(
            self.gradients + gradients, self.oracle_calls + oracle_calls, self.samples + samples
        )


class Key:
    """Names the random draws of this iteration; opaque to the selection of starts, which the loop applies itself."""

    __slots__ = ("iteration", "seed", "starts")

    def __init__(self, seed: int, starts: np.ndarray, iteration: int = 0) -> None:
        self.seed, self.starts, self.iteration = seed, starts, iteration

    def next(self) -> Key:
        return Key(self.seed, self.starts, self.iteration + 1)

    def take(self, index: np.ndarray) -> Key:
        return Key(self.seed, self.starts[index], self.iteration)


@dataclass(frozen=True)
class Look:
    """Everything seen at one point, and at no other."""

    value: Array | None  # Phi per start; None where only samples of the gradient were seen
    penalties: tuple[Array, ...]  # h_i(x_i)
    gradients: Blocks  # grad_i f, or its estimate
    answers: tuple[Answer, ...]  # of the linear oracles at these gradients
    gaps: tuple[Array, ...]  # per block, with these gradients
    doubts: tuple[Doubt | None, ...] | None = (
        None  # what errors of the gradients can do; None: exact
    )


@dataclass(frozen=True)
class State:
    """One iterate of every start. ``look`` belongs to ``xs``."""

    xs: Blocks
    look: Look
    curvature: Curvature  # the constants in force, settled once from facts or declarations
    promised: (
        Array | None
    )  # the decrease of Phi that the last step guarantees if ``curvature`` is true
    work: Work  # of the last step
    key: Key
    carried: Any  # what f kept along the last sweep, true at ``xs``; None for nothing
    trail: Any = None  # blocks that the order wants to see again; None for nothing
    memory: Any = None  # what the smoothness rule remembers; None for nothing


class Doubt(NamedTuple):
    """How wrong the gradient of a block may be, in the Euclidean norm, and what that can do to its gap (theory A5)."""

    error: float
    of_gap: Array


class Seen:
    """What a step needs to know of one block."""

    __slots__ = ("answer", "doubt", "gap", "gradient", "penalty")

    def __init__(
        self,
        gradient: Array,
        penalty: Array,
        answer: Answer,
        gap: Array,
        doubt: Doubt | None = None,
    ) -> None:
        self.gradient, self.penalty, self.answer, self.gap = gradient, penalty, answer, gap
        self.doubt = doubt

    @property
    def attained(self) -> Array:
        """What the oracle's point itself gains: the gap less what the oracle, and the gradient, leave open."""
        gain = self.gap - (self.answer.value - self.answer.lower)
        return gain if self.doubt is None else gain - 2.0 * self.doubt.of_gap


def see(
    block: Block,
    x: Array,
    g: Array,
    penalty: Array,
    last: Answer | None = None,
    slack: Array = 0.0,
    *,
    error: float = 0.0,
) -> Seen:
    """Ask the linear oracle: gap = g'x + h(x) - lower bound of min over y of g'y + h(y).

    ``last`` is its answer to an earlier gradient, near which an iterative oracle may begin; ``slack`` is how far from
    optimal the answer may be. Where the gradient has a declared ``error``, the gap includes what that can add.
    """
    oracle = block.oracle
    near, hint = (None, None) if last is None else (last.point, last.hint)
    answer = oracle.linear_near(g, near, hint, slack)
    gap = inner(g, x, block.set.event_ndim) + penalty - answer.lower
    if error == 0.0:
        return Seen(g, penalty, answer, gap)
    doubt = Doubt(error, error * block.set.reach(x, 2.0))
    return Seen(g, penalty, answer, gap + doubt.of_gap, doubt)


def look_from(
    problem: Problem,
    xs: Blocks,
    gradients: Blocks,
    penalties: tuple[Array, ...],
    value: Any,
    last: Look | None = None,
) -> Look:
    """All blocks at a point whose gradients are known; ``last`` is a look nearby, where iterative oracles begin."""
    errors = problem.smooth.gradient_errors
    ended = (None,) * len(xs) if last is None else last.answers
    seen = [
        see(block, x, g, h, answer, error=error)
        for block, x, g, h, answer, error in zip(
            problem.blocks,
            xs,
            gradients,
            penalties,
            ended,
            errors or (0.0,) * len(xs),
            strict=True,
        )
    ]
    doubts = None if errors is None else tuple(one.doubt for one in seen)
    answers, gaps = tuple(one.answer for one in seen), tuple(one.gap for one in seen)
    return Look(value, penalties, gradients, answers, gaps, doubts)


def seen_in(look: Look, i: int) -> Seen:
    """Block i of a look."""
    doubt = None if look.doubts is None else look.doubts[i]
    return Seen(look.gradients[i], look.penalties[i], look.answers[i], look.gaps[i], doubt)
