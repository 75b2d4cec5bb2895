"""From weaker penalties to the penalties themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array, convert, namespace, real_number, to_host, whole_number
from restpoint.errors import CapabilityError, DataError, described
from restpoint.methods.base import BlockMethod, Method
from restpoint.methods.state import Key, Look, State, look_from
from restpoint.problem import Block, Blocks, Problem


class Stages(NamedTuple):
    """Where every start is; one entry a start."""

    inner: Any  # what the method remembers
    stage: np.ndarray
    spent: np.ndarray  # iterations in this stage
    first: np.ndarray  # the gap with which it began


@dataclass(frozen=True)
class Continuation(Method):
    r"""Begin under weaker penalties: stage s of a start minimises f + shares[s] sum_i h_i, the last one Phi itself.

    Each start goes on to its next stage when the largest gap of the stage has fallen to ``fall`` times its first, or
    after ``most`` iterations. Values, gaps and certificates are those of Phi throughout; Phi may rise in the stages.
    Sparse solutions found this way are better on average, for some more work: zero, which is always stationary for a
    penalised multilinear form (theory E35), does not attract under a weak penalty. Not for starts that are good
    already: the first stage leads away from them.

    The bound of ``method`` holds for the last stage, from a point where Phi <= Phi(x1) + (1 - shares[0]) max h: a stage
    does not raise f + shares[s] h, and going on to the next raises it by at most the difference of shares times max h.
    With ``Doubling`` or ``Armijo`` the stages count twice: as iterations, and because the last stage begins with what
    they left of lambda or of the step length, at most a factor 2 an iteration away from where the method itself begins.

    >>> import numpy as np, restpoint as rp
    >>> A = np.random.default_rng(0).standard_normal((6, 6, 6))
    >>> block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.5))
    >>> problem = rp.Problem(rp.smooth.Multilinear(A), [block] * 3)
    >>> method = rp.Continuation(rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep()))
    >>> rp.solve(problem, method, starts=4).status
    array([CERTIFIED, CERTIFIED, CERTIFIED, CERTIFIED], dtype=object)
    """

    method: BlockMethod
    shares: tuple[float, ...] = (0.0, 1.0 / 3.0, 2.0 / 3.0)
    fall: float = 0.2
    most: int = 20

    def __post_init__(self) -> None:
        if not isinstance(self.method, BlockMethod):
            raise CapabilityError(
                "method must be ConditionalGradient(...) or ProximalGradient(...), "
                f"got {described(self.method)}"
            )
        shares = tuple(real_number("shares", s, "numbers in [0, 1)") for s in self.shares)
        if not shares or not all(
            0.0 <= a < b for a, b in zip(shares, (*shares[1:], 1.0), strict=True)
        ):
            raise DataError(f"shares must be numbers in [0, 1) that grow, got {self.shares}")
        fall = real_number("fall", self.fall, "a number in (0, 1)")
        if not 0.0 < fall < 1.0:
            raise DataError(f"fall must be a number in (0, 1), got {fall}")
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "fall", fall)
        object.__setattr__(self, "most", whole_number("most", self.most, 1))

    @property
    def exact(self) -> bool:
        return self.method.exact

    @property
    def moves_together(self) -> bool:
        return self.method.moves_together

    @property
    def delay(self) -> int:
        """How many iterations may pass before the last stage."""
        return len(self.shares) * self.most

    def check(self, problem: Problem) -> None:
        self.method.check(problem)
        if not self.exact:
            raise CapabilityError("Continuation follows gaps, so it needs gradient=Exact()")
        for block in problem.blocks:
            block.penalty.scaled(0.5)  # refused where it cannot be

    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        """The first stage; a run that is taken up again later on stays in its last one."""
        state = self.method.init(problem, xs, key)
        count = len(to_host(state.look.value))
        stages = Stages(
            state.memory,
            np.full(count, len(self.shares) if key.iteration else 0, np.int64),
            np.zeros(count, np.int64),
            np.full(count, np.inf),
        )
        return replace(state, memory=stages)

    def step(self, problem: Problem, state: State) -> State:
        inner, stage, spent, first = state.memory
        last = stage == len(self.shares)
        if last.all():
            new = self.method.step(problem, replace(state, memory=inner))
            return replace(new, memory=Stages(new.memory, stage, spent, first))
        shares = convert(np.array([*self.shares, 1.0])[stage], state.look.value)
        weaker = _scaled(problem, shares)
        look = _again(weaker, state)
        first = np.where(spent == 0, _largest(look), first)
        new = self.method.step(weaker, replace(state, look=look, memory=inner))
        over = ~last & ((_largest(new.look) <= self.fall * first) | (spent + 1 >= self.most))
        stages = Stages(new.memory, stage + over, np.where(last | over, 0, spent + 1), first)
        promised = new.promised
        if promised is not None:  # of Phi nothing is, before the last stage
            xp = namespace(promised)
            promised = xp.where(convert(1.0 * last, promised) > 0.0, promised, -xp.inf)
        return replace(new, look=_again(problem, new), promised=promised, memory=stages)


def _scaled(problem: Problem, shares: Array) -> Problem:
    """The same f, every penalty times the start's share."""
    return problem.with_blocks(tuple(_weaker(block, shares) for block in problem.blocks))


def _weaker(block: Block, shares: Array) -> Block:
    penalty = block.penalty.scaled(shares)
    return block if penalty is block.penalty else Block(block.set, penalty)


def _again(problem: Problem, state: State) -> Look:
    """What would be seen at ``state.xs`` with the penalties of ``problem``; f and its gradient are known."""
    look = state.look
    assert look.value is not None  # gradients are exact
    value = look.value - sum(look.penalties)
    penalties = tuple(b.penalty.value(x) for b, x in zip(problem.blocks, state.xs, strict=True))
    value = reduce(lambda a, b: a + b, penalties, value)
    return look_from(problem, state.xs, look.gradients, penalties, value, look)


def _largest(look: Look) -> np.ndarray:
    return np.max([to_host(gap) for gap in look.gaps], axis=0)
