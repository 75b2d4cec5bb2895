"""No penalty."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_sum, whole_number
from restpoint.penalties.base import SeparableSublinear


@dataclass(frozen=True)
class Zero(SeparableSublinear):
    """h(x) = 0."""

    event_ndim: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event_ndim", whole_number("event_ndim", self.event_ndim, 1))

    def value(self, x: Array) -> Array:
        return 0.0 * event_sum(x, self.event_ndim)

    def prox(self, v: Array, step: Array) -> Array:
        del step
        return v

    def scaled(self, factor: Array) -> Zero:
        del factor
        return self

    def magnitude(self, x: Array) -> Array:
        return self.value(x)

    def slopes(self) -> tuple[Array, Array]:
        return 0.0, 0.0

    def of_singular_values(self) -> Zero | None:
        return Zero() if self.event_ndim == 2 else None
