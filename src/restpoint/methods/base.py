"""A method is a frozen value: ``look`` at a point, ``init`` there, ``step`` by what was seen and look again.

No tolerance, no clock, no printing: the loop has those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from restpoint.array import Array
from restpoint.errors import CapabilityError, described
from restpoint.methods.gauss_seidel import GaussSeidel
from restpoint.methods.gradients import Exact, Gradient
from restpoint.methods.orders import Jacobi, Order
from restpoint.methods.smoothness import Majorant, Smoothness
from restpoint.methods.state import Key, Look, Seen, State, Work, look_from
from restpoint.problem import Block, Blocks, Problem
from restpoint.smooth import Curvature, Sweep

__all__ = ["BlockMethod", "Key", "Look", "Method", "State", "Work"]


class Method(ABC):
    """What the loop asks of a method."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether ``look`` sees exact gradients, so that its gaps may propose a certificate."""

    @property
    def moves_together(self) -> bool:
        """Whether several blocks move from one gradient, so that the signs of a start matter."""
        return False

    @abstractmethod
    def check(self, problem: Problem) -> None:
        """Refuse, with the reason, a problem or a combination of choices that theory does not cover."""

    @abstractmethod
    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        """Look at the starting points."""

    @abstractmethod
    def step(self, problem: Problem, state: State) -> State:
        """Move by ``state.look``, then look at where that leads."""


@dataclass(frozen=True)
class BlockMethod(Method):
    """The grid of the paper's algorithms: step x order x smoothness x gradient."""

    order: Order = field(default_factory=GaussSeidel)
    smoothness: Smoothness = field(default_factory=Majorant)
    gradient: Gradient = field(default_factory=Exact)

    calls_prox: ClassVar[bool] = False  # whether a move costs an oracle call beyond the look's

    def __post_init__(self) -> None:
        for name, kind in (("order", Order), ("smoothness", Smoothness), ("gradient", Gradient)):
            if not isinstance(getattr(self, name), kind):
                raise CapabilityError(
                    f"{name} must be one of {kind.examples}, got {described(getattr(self, name))}"
                )

    @abstractmethod
    def move(
        self, block: Block, x: Array, seen: Seen, constant: Array, p: float
    ) -> tuple[Array, Array]:
        """The next point of one block, and the decrease of Phi that this guarantees."""

    @property
    def exact(self) -> bool:
        return self.gradient.exact

    @property
    def moves_together(self) -> bool:
        return self.order.moves_together

    def check(self, problem: Problem) -> None:
        curvature = self.curvature(problem)
        self.order.check(problem, curvature)
        self.check_abilities(problem, curvature)

    def check_abilities(self, problem: Problem, curvature: Curvature) -> None:
        """Refuse a problem that lacks what the method cannot do without, guarantee or not."""
        self.gradient.check(problem)
        self.smoothness.check(self, problem)
        if not self.exact and not self.order.takes_samples and len(problem.blocks) > 1:
            raise CapabilityError(
                f"{self.order} asks for partial gradients along its sweep, which {self.gradient} does not sample; "
                "use order=Jacobi(), MaxImprovement() or RandomOrder(), or gradient=Exact()"
            )
        self.check_blocks(problem, curvature)

    def check_blocks(self, problem: Problem, curvature: Curvature) -> None:
        """Refuse blocks that lack what the step needs; the linear oracle is always there."""

    def curvature(self, problem: Problem, *, strict: bool = True) -> Curvature:
        """The constants in force for this order on this problem."""
        together = self.order.moves_together and len(problem.blocks) > 1
        return self.smoothness.curvature(problem.facts(), len(problem.blocks), together, strict)

    def look(
        self,
        problem: Problem,
        xs: Blocks,
        key: Key,
        sweep: Sweep | None = None,
        last: Look | None = None,
    ) -> tuple[Look, float]:
        """Gradient, oracle answers and gaps at ``xs``, and how many samples that took.

        ``sweep`` is the one that led there: what it kept need not be computed again. ``last`` is a look nearby, where
        iterative oracles begin.
        """
        value, gradients, samples = self.gradient.evaluate(problem, xs, key, sweep)
        penalties = tuple(b.penalty.value(x) for b, x in zip(problem.blocks, xs, strict=True))
        if value is not None:
            for penalty in penalties:
                value = value + penalty
        return look_from(problem, xs, gradients, penalties, value, last), samples

    def init(self, problem: Problem, xs: Blocks, key: Key, *, strict: bool = True) -> State:
        curvature = self.curvature(problem, strict=strict)
        look, samples = self.look(problem, xs, key)
        work = Work(1.0, len(xs), samples)
        memory = self.smoothness.remembered(xs, look)
        return State(xs, look, curvature, None, work, key, None, None, memory)

    def step(self, problem: Problem, state: State) -> State:
        return self.smoothness.step(self, problem, state)

    def take_step(self, problem: Problem, state: State) -> State:
        """One iteration with the constants in force."""
        order = self.order if len(state.xs) > 1 else _TOGETHER
        xs, promised, work, sweep, trail = order.advance(self, problem, state)
        key = state.key.next()
        look, samples = self.look(problem, xs, key, sweep, state.look)
        spent, carried = (1.0, None) if sweep is None else (sweep.spent, sweep.carried)
        work = work.plus(spent, len(xs), samples)
        return State(xs, look, state.curvature, promised, work, key, carried, trail, state.memory)


# With one block every order is the same; this one does nothing superfluous.
_TOGETHER = Jacobi()
