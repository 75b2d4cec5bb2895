"""What a method knows: where it is, and what it saw there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array, inner
from restpoint.oracles import Answer
from restpoint.problem import Block, Blocks
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


class Seen:
    """What a step needs to know of one block."""

    __slots__ = ("answer", "gap", "gradient", "penalty")

    def __init__(self, gradient: Array, penalty: Array, answer: Answer, gap: Array) -> None:
        self.gradient, self.penalty, self.answer, self.gap = gradient, penalty, answer, gap

    @property
    def attained(self) -> Array:
        """What the oracle's point itself gains: the gap less what the oracle leaves open."""
        return self.gap - (self.answer.value - self.answer.lower)


def see(
    block: Block, x: Array, g: Array, penalty: Array, last: Answer | None = None, slack: Array = 0.0
) -> Seen:
    """Ask the linear oracle: gap = g'x + h(x) - lower bound of min over y of g'y + h(y).

    ``last`` is its answer to an earlier gradient, near which an iterative oracle may begin; ``slack`` is how far from
    optimal the answer may be.
    """
    answer = block.oracle.linear_near(g, last, slack)
    gap = inner(g, x, block.set.event_ndim) + penalty - answer.lower
    return Seen(g, penalty, answer, gap)


def seen_in(look: Look, i: int) -> Seen:
    """Block i of a look."""
    return Seen(look.gradients[i], look.penalties[i], look.answers[i], look.gaps[i])
