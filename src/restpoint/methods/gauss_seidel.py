"""Block after block, each from the newest gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from restpoint.array import Array, namespace, real_number, where, whole_number
from restpoint.errors import CapabilityError, DataError
from restpoint.methods.orders import Advance, Order, all_moves, only_best, prox_calls
from restpoint.methods.state import Seen, State, Work, see, seen_in
from restpoint.problem import Blocks, Problem
from restpoint.smooth import Curvature

if TYPE_CHECKING:
    from restpoint.methods.base import BlockMethod


@dataclass(frozen=True)
class GaussSeidel(Order):
    r"""One block after the other, each from the gradient at the newest point; blockwise constants suffice.

    ``first="largest-gap"`` opens every sweep with the block whose gap is largest, which makes the sweep at least
    as good as a step of MaxImprovement (theory A13). ``"cyclic"`` does not, and without curvature it may cycle
    forever from d = 3 blocks on (theory E30): then it is refused.

    After its first block a sweep moves group by group those blocks whose gradients f keeps while only blocks of the
    group change (the halves of the modes of a tensor, see ``Sweep.groups``). What is done beyond that costs little, and
    theory A13 stays in force, because it allows whatever does not raise Phi after the first block:

    repeats   each group is moved so many more times
    momentum  the blocks of the first group, x after it moved and x_last one sweep ago, go on to the projection of
              x + momentum (x - x_last), zeros of x kept, before the other groups move. Where Phi is then higher than
              before the extrapolation, the start goes back and moves the other groups from x. Only for f whose sweep
              knows its value, such as multilinear forms, for blocks whose sets have a projection, and not with
              ``Doubling``.
    """

    takes_samples: ClassVar[bool] = False

    first: str = "largest-gap"
    repeats: int = 0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if self.first not in ("largest-gap", "cyclic"):
            raise DataError(f'first must be "largest-gap" or "cyclic", got {self.first!r}')
        object.__setattr__(self, "repeats", whole_number("repeats", self.repeats, 0))
        momentum = real_number("momentum", self.momentum, "a finite number >= 0")
        if momentum < 0.0:
            raise DataError(f"momentum must be a finite number >= 0, got {momentum}")
        object.__setattr__(self, "momentum", momentum)
        if self.first == "cyclic" and (self.repeats or momentum):
            raise DataError('repeats and momentum belong to first="largest-gap"; leave them out')

    def check(self, problem: Problem, curvature: Curvature) -> None:
        if self.first == "cyclic" and len(problem.blocks) > 2 and 0.0 in curvature.constants:
            raise CapabilityError(
                "cyclic Gauss-Seidel with constant 0 has no guarantee for 3 or more blocks: it can cycle "
                'forever (theory E30); use GaussSeidel(first="largest-gap"), or a positive Majorant constant'
            )

    def advance(self, method: BlockMethod, problem: Problem, state: State) -> Advance:
        walk = _Walk(method, problem, state)
        if self.first == "cyclic":
            walk.visit(0, seen_in(state.look, 0))  # nothing has moved yet
            walk.visit_all(range(1, len(state.xs)))
            return walk.done()
        walk.move_largest()
        first, *others = walk.sweep.groups
        rest = [i for group in others for i in self._rounds(group)]
        walk.visit_all(self._rounds(first))
        if not self.momentum or not rest:
            walk.visit_all(rest)
            return walk.done()
        trail = tuple(walk.xs[i] for i in first)
        before = walk.phi() if state.trail is not None else None
        if before is None:
            walk.visit_all(rest)
            return walk.done(trail)
        start, promise = walk.xs, walk.promise
        for i, last in zip(first, state.trail, strict=True):
            walk.put(i, self._beyond(problem, i, walk.xs[i], last))
        walk.visit_all(rest)
        after = walk.phi()
        higher = ~(after <= before)  # so that NaN counts as higher
        if bool(namespace(higher).any(higher)):
            for i, (old, new) in enumerate(zip(start, walk.xs, strict=True)):
                walk.put(i, where(higher, old, new))
            walk.visit_all(rest, only=higher)
        walk.promise = promise  # nothing is promised of what follows the extrapolation but that Phi does not rise
        return walk.done(trail)

    def _rounds(self, group: tuple[int, ...]) -> list[int]:
        """A group as often as it is moved; a single block is where it should be after one move."""
        return list(group) * (1 + self.repeats * (len(group) > 1))

    def _beyond(self, problem: Problem, i: int, x: Array, last: Array) -> Array:
        """Where block i goes on to: zeros kept first and projected then, so that the point is in its set."""
        further = namespace(x).where(x == 0.0, x, x + self.momentum * (x - last))
        try:
            return problem.blocks[i].set.project(further)
        except CapabilityError:  # a user's set need not have a projection
            return x


class _Walk:
    """One sweep under way."""

    def __init__(self, method: BlockMethod, problem: Problem, state: State) -> None:
        self.method, self.problem, self.state = method, problem, state
        self.xs: Blocks = state.xs
        self.answers = list(state.look.answers)  # the newest of every block
        self.sweep = problem.smooth.sweep(state.xs, state.carried)
        self.errors = problem.smooth.gradient_errors
        self.promise: Array = 0.0
        self.work = Work()

    def move_largest(self) -> None:
        """The block of largest gap, from what the look saw (theory A13)."""
        moved, promised = all_moves(self.method, self.problem, self.state)
        xs, self.promise = only_best(self.state.look.gaps, moved, promised, self.xs)
        self.work = self.work.plus(oracle_calls=prox_calls(self.method, len(xs)))
        for i, x in enumerate(xs):
            self.put(i, x)

    def visit_all(self, blocks: range | list[int], only: Array | None = None) -> None:
        """Move these blocks, each from its newest gradient, in all starts or ``only`` in some."""
        for i in blocks:
            block, x = self.problem.blocks[i], self.xs[i]
            g, h = self.sweep.partial(i), block.penalty.value(x)
            error = 0.0 if self.errors is None else self.errors[i]
            seen = see(block, x, g, h, self.answers[i], error=error)
            self.answers[i] = seen.answer
            self.work = self.work.plus(oracle_calls=1.0)
            self.visit(i, seen, only)

    def visit(self, i: int, seen: Seen, only: Array | None = None) -> None:
        """Move block i by what was seen of it."""
        curvature = self.state.curvature
        x, decrease = self.method.move(
            self.problem.blocks[i], self.xs[i], seen, curvature.constants[i], curvature.p
        )
        self.work = self.work.plus(oracle_calls=prox_calls(self.method, 1))
        self.promise = self.promise + decrease
        self.put(i, x if only is None else where(only, x, self.xs[i]))

    def put(self, i: int, x: Array) -> None:
        """Block i is now x."""
        self.sweep.update(i, x)
        self.xs = (*self.xs[:i], x, *self.xs[i + 1 :])

    def phi(self) -> Array | None:
        """Phi at the current blocks, if f is known there."""
        total = self.sweep.value()
        if total is not None:
            for block, x in zip(self.problem.blocks, self.xs, strict=True):
                total = total + block.penalty.value(x)
        return total

    def done(self, trail: Blocks | None = None) -> Advance:
        return Advance(self.xs, self.promise, self.work, self.sweep, trail)
