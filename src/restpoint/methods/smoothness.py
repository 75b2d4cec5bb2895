"""What a step relies on: which curvature constants are in force."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from restpoint.array import is_array, real_number, to_host, truth
from restpoint.errors import CapabilityError, DataError
from restpoint.smooth import Curvature, Facts

if TYPE_CHECKING:
    from restpoint.methods.base import BlockMethod
    from restpoint.methods.state import Look, State
    from restpoint.problem import Blocks, Problem


class Smoothness(ABC):
    """Settles the constants once, from facts and declarations."""

    examples: ClassVar[str] = (
        "Majorant(), Majorant(constant), FullStep(), Armijo(), Doubling() or Universal()"
    )

    @abstractmethod
    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        """The constants; ``together`` says that several blocks move from one gradient.

        ``strict`` refuses what theory does not cover; WithoutGuarantee asks without it.
        """

    def check(self, method: BlockMethod, problem: Problem) -> None:  # noqa: B027 - most fit every method
        """Refuse a method that the rule cannot serve."""

    def remembered(self, xs: Blocks, look: Look) -> Any:
        """What the rule remembers from one iteration to the next, at the start."""
        del xs, look

    def step(self, method: BlockMethod, problem: Problem, state: State) -> State:
        """One iteration of the method under this rule."""
        return method.take_step(problem, state)


@dataclass(frozen=True)
class Majorant(Smoothness):
    r"""f(y) <= f(x) + grad f(x)'(y - x) + sum_i (constant_i/2) ||y_i - x_i||_p^p (paper, Assumption 1.1).

    ``constant=None`` takes what f declares. A number is your declaration for all blocks moving together, and so for
    one at a time; a tuple (one per block) declares the inequality for one block moving at a time, or, with
    ``joint=True``, for all together (the weighted form of theory E27). If the trajectory disproves a
    declaration, the result says so and withdraws its bound.

    1 < p <= 2; p > 2 is meaningful for concave f alone (theory E2).
    """

    constant: float | tuple[float, ...] | None = None
    p: float = 2.0
    joint: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_power(self.p))
        object.__setattr__(self, "joint", truth("joint", self.joint))
        if self.constant is not None:
            object.__setattr__(self, "constant", _constants(self.constant))

    @classmethod
    def from_gradient_constant(cls, constant: float, p: float = 2.0) -> Majorant:
        """From ||grad f(x) - grad f(y)||_q <= constant ||x - y||_p^(p-1): lambda = 2 constant / p (theory E4)."""
        of_gradient = real_number("constant", constant, "a finite number >= 0")
        return cls(2.0 * of_gradient / checked_power(p), p)

    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        if self.p > 2.0 and strict and not facts.concave:
            raise CapabilityError(
                f"p = {self.p} > 2: then the inequality holds only if f is concave (theory E2), and f does not "
                "declare that; use 1 < p <= 2, or declare concave=True"
            )
        if self.constant is None:
            found = self._declared_by(facts, together)
            if self.p not in (2.0, found.p) and any(found.constants):
                raise CapabilityError(
                    f"Majorant(p={self.p}) names no constant, and f declares one for p = {found.p} only; give "
                    f"Majorant(constant, p={self.p}), or leave p out to take what f declares"
                )
            return found
        if isinstance(self.constant, float):
            return Curvature((self.constant,) * blocks, self.p)
        if len(self.constant) != blocks:
            raise DataError(
                f"constant has {len(self.constant)} entries; the problem has {blocks} blocks"
            )
        if together and strict and not self.joint:
            raise CapabilityError(
                "Jacobi moves all blocks from one gradient and needs a joint constant; blockwise constants do not "
                "imply one (theory E26, E27: x1 x2 has blockwise constants 0 and joint constant 1). Give one "
                "number, or joint=True if the inequality holds with all blocks moving, or use GaussSeidel() or "
                "MaxImprovement()"
            )
        return Curvature(self.constant, self.p)

    @staticmethod
    def _declared_by(facts: Facts, together: bool) -> Curvature:
        found = facts.joint if together else (facts.blockwise or facts.joint)
        if found is None:
            needed = "joint constant" if together else "constant"
            raise CapabilityError(
                f"f declares no {needed}; give Majorant(constant), or constant= where f is defined"
            )
        return found


def checked_power(value: Any) -> float:
    """The exponent of a majorant: p > 1."""
    p = real_number("p", value, "a number in (1, 2]")
    if not p > 1.0:
        raise DataError(
            f"p must be in (1, 2], got {p}; for concave f any p > 1 is accepted (theory E2)"
        )
    return p


def _constants(constant: Any) -> float | tuple[float, ...]:
    """One number >= 0, or a tuple of such, one per block."""
    expected = "a finite number >= 0, or a tuple of one per block"
    if is_array(constant) and constant.ndim == 1:
        constant = tuple(to_host(constant))
    several = isinstance(constant, (tuple, list))
    numbers = tuple(
        real_number("constant", c, expected) for c in (constant if several else [constant])
    )
    if not numbers or min(numbers) < 0:
        raise DataError(f"constant must be {expected}, got {constant}")
    return numbers if several else numbers[0]


@dataclass(frozen=True)
class FullStep(Smoothness):
    """No curvature: f is concave, or concave in each block and moved one block at a time (theory A6, A13)."""

    def curvature(self, facts: Facts, blocks: int, together: bool, strict: bool) -> Curvature:
        covered = facts.concave or (not together and facts.block_concave)
        if strict and not covered:
            reason = (
                "f is concave in each block only, and Jacobi moves them together (theory E26); use GaussSeidel() or "
                "MaxImprovement()"
                if facts.block_concave
                else "f does not declare itself concave; use Majorant(constant), or declare concave=True"
            )
            raise CapabilityError(f"FullStep is not covered: {reason}")
        return Curvature((0.0,) * blocks, 2.0)
