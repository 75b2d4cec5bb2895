"""Every public set and penalty, with random parameters: what the laws are run on.

A new piece costs one line here; a test fails as long as a public piece is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restpoint.penalties import L1, AnalysisL1, Penalty, Zero
from restpoint.sets import Box, L2Ball, NonnegativeBall, NullSpaceBall, Set, Simplex


@dataclass(frozen=True)
class Draw:
    """Random parameters: numbers per start and events per start, or one for all where ``batch`` is ()."""

    rng: np.random.Generator
    shape: tuple[int, ...] = (4,)
    batch: tuple[int, ...] = ()
    scale: float = 1.0

    def positive(self) -> float | np.ndarray:
        """A positive number per start."""
        value = self.scale * (0.5 + self.rng.random(self.batch))
        return value if self.batch else float(value)

    def event(self) -> np.ndarray:
        """An event per start."""
        return self.scale * self.rng.standard_normal((*self.batch, *self.shape))

    def widths(self) -> np.ndarray:
        """A nonnegative event per start, with some entries 0."""
        full = (*self.batch, *self.shape)
        return self.scale * self.rng.random(full) * (self.rng.random(full) < 0.8)


class SetCase(NamedTuple):
    """A public set and a way to draw one."""

    name: str
    kind: type[Set]
    make: Callable[[Draw], Set]


class PenaltyCase(NamedTuple):
    """A public penalty and a way to draw one."""

    name: str
    kind: type[Penalty]
    make: Callable[[Draw], Penalty]


def _box(draw: Draw) -> Box:
    lower = draw.event()
    return Box(lower, lower + draw.widths())


def _null_space_ball(draw: Draw) -> NullSpaceBall:
    """Of half as many dimensions as the space; the whole ball where there is one dimension only."""
    (size,) = draw.shape
    columns = np.linalg.qr(draw.rng.standard_normal((size, size)))[0][:, : size // 2]
    return NullSpaceBall(columns, draw.positive())


def _analysis(draw: Draw) -> AnalysisL1:
    """More coefficients than entries."""
    (size,) = draw.shape
    return AnalysisL1(draw.rng.standard_normal((2 * size, size)), draw.positive())


SETS: tuple[SetCase, ...] = (
    SetCase("ball", L2Ball, lambda draw: L2Ball(draw.positive())),
    SetCase("ball with centre", L2Ball, lambda draw: L2Ball(draw.positive(), draw.event())),
    SetCase("cube", Box, lambda draw: Box(-1.0 * draw.scale, 2.0 * draw.scale)),
    SetCase("box", Box, _box),
    SetCase("nonnegative ball", NonnegativeBall, lambda draw: NonnegativeBall(draw.positive())),
    SetCase("null space ball", NullSpaceBall, _null_space_ball),
    SetCase("simplex", Simplex, lambda draw: Simplex(draw.positive())),
)

PENALTIES: tuple[PenaltyCase, ...] = (
    PenaltyCase("zero", Zero, lambda draw: Zero()),
    PenaltyCase("l1", L1, lambda draw: L1(draw.positive())),
    PenaltyCase("l1 of weight 0", L1, lambda draw: L1(0.0 * draw.positive())),
    PenaltyCase(
        "l1 with scales",
        L1,
        lambda draw: L1(draw.positive(), scales=np.abs(draw.widths()) / draw.scale),
    ),
    PenaltyCase("analysis l1", AnalysisL1, _analysis),
)
