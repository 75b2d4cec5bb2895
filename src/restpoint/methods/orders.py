"""In which order blocks move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from restpoint.array import Array, generator, namespace, where
from restpoint.errors import DataError
from restpoint.methods.state import State, Work, seen_in
from restpoint.problem import Blocks, Problem
from restpoint.smooth import Curvature, Sweep

if TYPE_CHECKING:
    from restpoint.methods.base import BlockMethod


class Advance(NamedTuple):
    """Where the blocks go, the decrease promised, the work so far, and the sweep that led there, if any."""

    xs: Blocks
    promised: Array
    work: Work
    sweep: Sweep | None = None
    trail: Blocks | None = None  # what the order wants to see again: some of the blocks


class Order(ABC):
    """Which blocks an iteration moves, and from which gradients."""

    moves_together: ClassVar[bool] = False  # several blocks move from one gradient: joint constants
    takes_samples: ClassVar[bool] = True  # every move is by the gradient of the last look
    examples: ClassVar[str] = "Jacobi(), GaussSeidel(), MaxImprovement() or RandomOrder()"

    def check(self, problem: Problem, curvature: Curvature) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse what theory forbids."""

    @abstractmethod
    def advance(self, method: BlockMethod, problem: Problem, state: State) -> Advance:
        """The next blocks; the work is that beyond the closing look and the sweep."""


@dataclass(frozen=True)
class Jacobi(Order):
    """All blocks at once, from the same gradient. Needs the joint constant (theory E26, E27)."""

    moves_together: ClassVar[bool] = True

    def advance(self, method: BlockMethod, problem: Problem, state: State) -> Advance:
        moved, promised = all_moves(method, problem, state)
        total = promised[0]
        for decrease in promised[1:]:
            total = total + decrease
        return Advance(moved, total, Work(0.0, prox_calls(method, len(moved)), 0.0))


@dataclass(frozen=True)
class MaxImprovement(Order):
    """Only the best block (the paper's MBI); blockwise constants suffice.

    ``rule="gap"`` takes the block with the largest gap (Algorithm 5), ``"decrease"`` the one whose step guarantees
    the largest decrease (Algorithm 6; for Algorithm 5 theory E29): same worst case, never a smaller promise.
    """

    rule: str = "decrease"

    def __post_init__(self) -> None:
        if self.rule not in ("gap", "decrease"):
            raise DataError(f'rule must be "gap" or "decrease", got {self.rule!r}')

    def advance(self, method: BlockMethod, problem: Problem, state: State) -> Advance:
        moved, promised = all_moves(method, problem, state)
        scores = state.look.gaps if self.rule == "gap" else promised
        xs, promise = only_best(scores, moved, promised, state.xs)
        return Advance(xs, promise, Work(0.0, prox_calls(method, len(moved)), 0.0))


@dataclass(frozen=True)
class RandomOrder(Order):
    """One block an iteration, drawn uniformly, the same for all starts."""

    def advance(self, method: BlockMethod, problem: Problem, state: State) -> Advance:
        d = len(state.xs)
        i = int(generator(state.key.seed, "order", 0, state.key.iteration).integers(d))
        x, promise = method.move(
            problem.blocks[i],
            state.xs[i],
            seen_in(state.look, i),
            state.curvature.constants[i],
            state.curvature.p,
        )
        xs = (*state.xs[:i], x, *state.xs[i + 1 :])
        return Advance(xs, promise, Work(0.0, prox_calls(method, 1), 0.0))


def all_moves(
    method: BlockMethod, problem: Problem, state: State
) -> tuple[Blocks, tuple[Array, ...]]:
    """Where each block would go by itself, and what that promises."""
    curvature, moved, promised = state.curvature, [], []
    for i, block in enumerate(problem.blocks):
        seen = seen_in(state.look, i)
        x, decrease = method.move(block, state.xs[i], seen, curvature.constants[i], curvature.p)
        moved.append(x)
        promised.append(decrease)
    return tuple(moved), tuple(promised)


def only_best(
    scores: tuple[Array, ...], moved: Blocks, promised: tuple[Array, ...], xs: Blocks
) -> tuple[Blocks, Array]:
    """Move, per start, only the block whose score is largest (the first of equals)."""
    xp = namespace(*scores)
    best = xp.argmax(xp.stack(scores, axis=-1), axis=-1)
    chosen = [best == i for i in range(len(xs))]
    new = tuple(where(c, m, x) for c, m, x in zip(chosen, moved, xs, strict=True))
    promise = xp.zeros_like(promised[0])
    for c, decrease in zip(chosen, promised, strict=True):
        promise = xp.where(c, decrease, promise)
    return new, promise


def prox_calls(method: BlockMethod, blocks: int) -> float:
    """Prox answers cost a call of their own; conditional gradient reuses the look's."""
    return float(blocks) if method.calls_prox else 0.0
