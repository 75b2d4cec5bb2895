"""The two convex subproblems of a block, answered by a point and a lower bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from restpoint.array import Array, Parametric, expand, inner, namespace, power_sum
from restpoint.errors import CapabilityError
from restpoint.penalties import Penalty, SeparableSublinear
from restpoint.sets import Set


class Answer(NamedTuple):
    """A feasible point, its objective value, and a lower bound on the minimum (the value, if exact).

    ``hint`` is where an iterative oracle ended, for ``linear_near``: arrays with the batch first; None for nothing.
    """

    point: Array
    value: Array
    lower: Array
    hint: Any = None


class Condition(NamedTuple):
    """Something that a rule needs of a pair, in words and as a test."""

    words: str
    holds: Callable[[Set, Penalty], bool]


@dataclass(frozen=True)
class Oracle(Parametric, ABC):
    """How one (set, penalty) pair answers two convex subproblems.

        linear(g)              minimise g'y + h(y)                                       over y in S
        prox(g, z, weight, p)  minimise g'(y - z) + (weight/2) ||y - z||_p^p + h(y)      over y in S

    A weaker oracle has a lower ``lower``: certificates become weaker, never false (theory A2).
    """

    set: Set
    penalty: Penalty

    conditions: ClassVar[tuple[Condition, ...]] = ()
    remembers: ClassVar[bool] = (
        False  # answers have hints, and ``bound_near`` tells what they prove
    )

    @property
    def kind(self) -> str:
        """What the lower bound of ``linear`` rests on; certificates repeat it."""
        return "exact oracle"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What an iteration bound takes on trust about this oracle; certificates do not."""
        return ()

    @classmethod
    def missing(cls, set: Set, penalty: Penalty) -> tuple[str, ...]:
        """The conditions of this rule that the pair does not meet, in words."""
        return tuple(need.words for need in cls.conditions if not need.holds(set, penalty))

    @classmethod
    def fits(cls, set: Set, penalty: Penalty) -> bool:
        """Whether this rule answers for the pair; decided from types and facts, before any data."""
        return not cls.missing(set, penalty)

    @abstractmethod
    def linear(self, g: Array) -> Answer:
        """Minimise g'y + h(y) over S."""

    def linear_near(
        self, g: Array, near: Array | None = None, hint: Any = None, slack: Array = 0.0
    ) -> Answer:
        """``linear(g)``, begun at ``near``, a point that may be close to the answer.

        ``hint`` is that of the answer ``near`` to a gradient nearby, if it is one. With value - lower at most ``slack``
        an answer will do (theory A2). Rules with a closed form have no use for any of this; with the others, what an
        answer proves does not depend on where it began.
        """
        del near, hint, slack
        return self.linear(g)

    def bound_near(self, g: Array, last: Answer) -> Array:
        """A lower bound on the minimum of g'y + h(y): what ``last``, an answer to a gradient nearby, ended with proves.

        Less than the minimum by the square of the distance between the two gradients only, and no more work than two
        products: where ``remembers``. Elsewhere ``linear`` itself costs little.
        """
        del last
        return self.linear(g).lower

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        """Minimise g'(y - z) + (weight/2) ||y - z||_p^p + h(y) over S."""
        del g, z, weight
        raise CapabilityError(f"{self.name} has no prox for p = {p}; use ConditionalGradient")

    def can_prox(self, p: float) -> bool:
        """Whether ``prox`` answers for this p."""
        del p
        return False

    def prox_kind(self, p: float) -> str:
        """What the lower bound of ``prox`` rests on."""
        del p
        return self.kind

    @property
    def name(self) -> str:
        """Set x penalty, for messages."""
        return f"{type(self.set).__name__} x {type(self.penalty).__name__}"

    def magnitude(self, g: Array, point: Array) -> Array:
        """The size of the numbers that ``linear(g)`` adds up: what its rounding error is relative to.

        Twice max over S of |g|'|y| covers a wrong choice between two candidates that rounding cannot tell apart.
        """
        xp = namespace(g)
        size = xp.abs(g)
        total = 2.0 * self.set.absolute_support(size) + self.penalty.magnitude(point)
        if self.kind == "dual bound" and isinstance(self.penalty, SeparableSublinear):
            # The bound adds a subgradient of h to g: it may be large beside g, and cancel where h(y) is small.
            steepest = [xp.abs(slope + 0.0 * size) for slope in self.penalty.slopes()]
            total = total + self.set.absolute_support(xp.maximum(*steepest))
        return total

    def linear_value(self, g: Array, y: Array) -> Array:
        """g'y + h(y)."""
        return inner(g, y, self.set.event_ndim) + self.penalty.value(y)

    def prox_value(self, g: Array, z: Array, weight: Array, p: float, y: Array) -> Array:
        """g'(y - z) + (weight/2) ||y - z||_p^p + h(y)."""
        d, ndim = y - z, self.set.event_ndim
        if p == 2.0:  # one reduction instead of two: this line is in every proximal step
            return inner(g + expand(0.5 * weight, ndim) * d, d, ndim) + self.penalty.value(y)
        return inner(g, d, ndim) + 0.5 * weight * power_sum(d, p, ndim) + self.penalty.value(y)
