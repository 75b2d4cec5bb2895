"""Methods around methods."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.errors import CapabilityError, described
from restpoint.methods.base import BlockMethod, Method
from restpoint.methods.state import Key, State
from restpoint.problem import Blocks, Problem


@dataclass(frozen=True)
class WithoutGuarantee(Method):
    """Run a method although theory does not cover it: no descent is promised and no bound given.

    The paper's own experiments need this (theory E26, E30, E32, E37). Certificates are what they always are.
    """

    method: BlockMethod

    def __post_init__(self) -> None:
        if not isinstance(self.method, BlockMethod):
            raise CapabilityError(
                "method must be ConditionalGradient(...) or ProximalGradient(...), "
                f"got {described(self.method)}"
            )

    @property
    def exact(self) -> bool:
        return self.method.exact

    @property
    def moves_together(self) -> bool:
        return self.method.moves_together

    def check(self, problem: Problem) -> None:
        """Only what the step cannot do without: a constant, a prox, a sum to sample."""
        self.method.check_abilities(problem, self.method.curvature(problem, strict=False))

    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        return self.method.init(problem, xs, key, strict=False)

    def step(self, problem: Problem, state: State) -> State:
        return self.method.step(problem, state)
