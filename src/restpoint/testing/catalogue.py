"""Every public set and penalty, with random parameters: what the laws are run on.

A new piece costs one line here; a test fails as long as a public piece is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restpoint.penalties import (
    L1,
    OWL,
    AnalysisL1,
    ElasticNet,
    Entropy,
    Group,
    L2Norm,
    LInfinity,
    Nuclear,
    Penalty,
    TotalVariation,
    Zero,
)
from restpoint.sets import (
    Birkhoff,
    Box,
    CappedSimplex,
    ConvexHull,
    Ellipsoid,
    Fantope,
    GroupBall,
    KSparsePolytope,
    L1Ball,
    L2Ball,
    LpBall,
    NonnegativeBall,
    NuclearBall,
    NullSpaceBall,
    OWLBall,
    Polytope,
    Set,
    Simplex,
    SpectralBall,
    Spectraplex,
)

MATRIX, SQUARE = (3, 2), (3, 3)


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

    def scales(self) -> np.ndarray:
        """A positive event per start, of the order of 1."""
        return 0.5 + self.rng.random((*self.batch, *self.shape))

    def labels(self) -> np.ndarray:
        """Groups of two neighbours, the last ones first."""
        labels = np.arange(int(np.prod(self.shape))) // 2
        return np.reshape(labels[::-1], self.shape)

    def profile(self) -> np.ndarray:
        """Nonincreasing weights, the last one 0 where there are several, the same for all starts."""
        return np.linspace(1.0, 0.0, self.shape[-1]) ** 2

    def rows(self, count: int) -> np.ndarray:
        """A matrix with so many rows, each of the length of an event."""
        return self.scale * self.rng.standard_normal((count, *self.shape))

    def widths(self) -> np.ndarray:
        """A nonnegative event per start, with some entries 0."""
        full = (*self.batch, *self.shape)
        return self.scale * self.rng.random(full) * (self.rng.random(full) < 0.8)


class SetCase(NamedTuple):
    """A public set and a way to draw one, for blocks of that shape."""

    name: str
    kind: type[Set]
    make: Callable[[Draw], Set]
    shape: tuple[int, ...] = (4,)


class PenaltyCase(NamedTuple):
    """A public penalty and a way to draw one, for blocks of that shape."""

    name: str
    kind: type[Penalty]
    make: Callable[[Draw], Penalty]
    shape: tuple[int, ...] = (4,)


def _box(draw: Draw) -> Box:
    lower = draw.event()
    return Box(lower, lower + draw.widths())


def _null_space_ball(draw: Draw) -> NullSpaceBall:
    """Of half as many dimensions as the space; the whole ball where there is one dimension only."""
    (size,) = draw.shape
    columns = np.linalg.qr(draw.rng.standard_normal((size, size)))[0][:, : size // 2]
    return NullSpaceBall(columns, draw.positive())


def _ellipsoid(draw: Draw) -> Ellipsoid:
    """With axes of different lengths, away from the origin."""
    (size,) = draw.shape
    return Ellipsoid(
        draw.rows(size) + 2.0 * draw.scale * np.eye(size), draw.positive(), draw.event()
    )


def _polytope(draw: Draw) -> Polytope:
    """A slab, a half-space and a box around the origin."""
    sides = draw.scale * np.array([0.5, 0.7])
    return Polytope(
        draw.rows(2) / draw.scale, sides, [-sides[0], -np.inf], lower=-sides[0], upper=sides[1]
    )


def _capped_simplex(draw: Draw) -> CappedSimplex:
    """Half full."""
    upper = draw.scale * draw.scales()
    total = 0.5 * np.sum(upper, axis=-1)
    return CappedSimplex(total if draw.batch else float(total), upper)


def _analysis(draw: Draw) -> AnalysisL1:
    """More coefficients than entries."""
    (size,) = draw.shape
    return AnalysisL1(draw.rng.standard_normal((2 * size, size)), draw.positive())


SETS: tuple[SetCase, ...] = (
    SetCase("ball", L2Ball, lambda draw: L2Ball(draw.positive())),
    SetCase("ball with centre", L2Ball, lambda draw: L2Ball(draw.positive(), draw.event())),
    SetCase("cube", Box, lambda draw: Box(-1.0 * draw.scale, 2.0 * draw.scale)),
    SetCase("box", Box, _box),
    SetCase("l1 ball", L1Ball, lambda draw: L1Ball(draw.positive())),
    SetCase("weighted l1 ball", L1Ball, lambda draw: L1Ball(draw.positive(), draw.scales())),
    SetCase("3/2-ball", LpBall, lambda draw: LpBall(1.5, draw.positive())),
    SetCase("4-ball", LpBall, lambda draw: LpBall(4.0, draw.positive())),
    SetCase("infinity ball", LpBall, lambda draw: LpBall(np.inf, draw.positive())),
    SetCase("k-sparse polytope", KSparsePolytope, lambda draw: KSparsePolytope(2, draw.positive())),
    SetCase("owl ball", OWLBall, lambda draw: OWLBall(draw.profile(), draw.positive())),
    SetCase("group ball", GroupBall, lambda draw: GroupBall(draw.labels(), draw.positive(), 2.0)),
    SetCase("hypersimplex", CappedSimplex, lambda draw: CappedSimplex(0.5 * draw.shape[0])),
    SetCase("capped simplex", CappedSimplex, _capped_simplex),
    SetCase("nonnegative ball", NonnegativeBall, lambda draw: NonnegativeBall(draw.positive())),
    SetCase("null space ball", NullSpaceBall, _null_space_ball),
    SetCase("ellipsoid", Ellipsoid, _ellipsoid),
    SetCase("convex hull", ConvexHull, lambda draw: ConvexHull(draw.rows(6))),
    SetCase("polytope", Polytope, _polytope),
    SetCase("birkhoff", Birkhoff, lambda draw: Birkhoff(), SQUARE),
    SetCase("simplex", Simplex, lambda draw: Simplex(draw.positive())),
    SetCase("nuclear ball", NuclearBall, lambda draw: NuclearBall(draw.positive()), MATRIX),
    SetCase("spectral ball", SpectralBall, lambda draw: SpectralBall(draw.positive()), MATRIX),
    SetCase("frobenius ball", L2Ball, lambda draw: L2Ball(draw.positive(), event_ndim=2), MATRIX),
    SetCase("spectraplex", Spectraplex, lambda draw: Spectraplex(draw.positive()), SQUARE),
    SetCase("fantope", Fantope, lambda draw: Fantope(min(2, draw.shape[0])), SQUARE),
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
    PenaltyCase("l2 norm", L2Norm, lambda draw: L2Norm(draw.positive())),
    PenaltyCase("l-infinity", LInfinity, lambda draw: LInfinity(draw.positive())),
    PenaltyCase("elastic net", ElasticNet, lambda d: ElasticNet(d.positive(), d.positive())),
    PenaltyCase("group", Group, lambda draw: Group(draw.labels(), draw.positive(), 2.0)),
    PenaltyCase(
        "sparse group",
        Group,
        lambda draw: Group(draw.labels(), draw.positive(), sparsity=0.3 * draw.positive()),
    ),
    PenaltyCase("owl", OWL, lambda draw: OWL(draw.profile(), draw.positive())),
    PenaltyCase("total variation", TotalVariation, lambda draw: TotalVariation(draw.positive())),
    PenaltyCase(
        "fused lasso",
        TotalVariation,
        lambda draw: TotalVariation(draw.positive(), 0.3 * draw.positive()),
    ),
    PenaltyCase("entropy", Entropy, lambda draw: Entropy(draw.positive())),
    PenaltyCase("zero of a matrix", Zero, lambda draw: Zero(2), MATRIX),
    PenaltyCase("frobenius", L2Norm, lambda draw: L2Norm(draw.positive(), 2), MATRIX),
    PenaltyCase("nuclear", Nuclear, lambda draw: Nuclear(draw.positive()), MATRIX),
)
