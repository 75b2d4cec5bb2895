"""What a convex penalty must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from restpoint.array import Array, Parametric
from restpoint.errors import CapabilityError


class Penalty(Parametric, ABC):
    """A convex, closed function h, finite on the set of its block.

    Subclasses are frozen dataclasses. The facts below choose the oracle rule and are checked by the laws of
    ``restpoint.testing``.
    """

    sublinear: ClassVar[bool] = False  # h(tx) = t h(x) for t >= 0, and h(x + y) <= h(x) + h(y)
    separable: ClassVar[bool] = False  # h(x) = sum_j h_j(x_j)
    lower_bound: ClassVar[float] = 0.0  # of h on the whole space
    exact_prox: ClassVar[bool] = True  # a closed form; False where an iteration finds it
    nonnegative: ClassVar[bool] = False  # finite for x >= 0 alone

    @abstractmethod
    def value(self, x: Array) -> Array:
        """h(x) per start."""

    @abstractmethod
    def prox(self, v: Array, step: Array) -> Array:
        """argmin over y of step h(y) + ||y - v||_2^2 / 2; ``step`` is a number or has the batch shape."""

    def least(self, shape: tuple[int, ...]) -> float:
        """A lower bound of h on blocks of that shape, for all starts."""
        del shape
        return self.lower_bound

    def of_singular_values(self) -> Penalty | None:
        """The penalty of vectors phi with h(X) = phi(sigma(X)), closed under permutations and signs; None elsewhere."""
        return None

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an event shape that the penalty's own arrays contradict; penalties without arrays accept all."""

    def scaled(self, factor: Array) -> Penalty:
        """factor h, for a factor >= 0: a number, or one per start."""
        del factor
        raise CapabilityError(
            f"{type(self).__name__} does not say what it is times a number; give it a method scaled(factor)"
        )

    @abstractmethod
    def magnitude(self, x: Array) -> Array:
        """The size of the terms that ``value`` adds up: what its rounding error is relative to."""


class SeparableSublinear(Penalty):
    """h(x) = sum_j max(low x_j, high x_j) with low <= high: every separable sublinear function is of this form."""

    sublinear: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    @abstractmethod
    def slopes(self) -> tuple[Array, Array]:
        """(low, high), each a Python number or an array that broadcasts against ``(*batch, *event)``."""
