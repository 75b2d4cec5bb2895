"""The paper's Figure 1: how three measures of stationarity are related, from points of random problems.

Nothing is in the paper but the caption; its proposition says what the figure means to show. Here the measures are those
of many points, and the lines are the inequalities between them, as they are true (theory E6, E7, A1).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from restpoint.array import whole_number
from restpoint.certificates import Measures, measures
from restpoint.methods import ProximalGradient
from restpoint.penalties import L1
from restpoint.problem import Block, Problem
from restpoint.run import Stop, iterate
from restpoint.sets import Box, L2Ball, Set, Simplex
from restpoint.smooth import Quadratic

# The diameters of the sets, and gamma in units of 1/lambda.
DIAMETERS = (0.5, 4.0, 32.0)
GAMMAS = (0.1, 1.0, 10.0)
# Iterations at which points are taken: gaps from the first to the last fall over many powers of ten.
AT = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
SETS = ("ball", "box", "simplex")
# What rounding of the measures may look like, in units of the terms that they are summed from.
ROUNDING = 1e-11


@dataclass(frozen=True)
class Row:
    """The measures at one point."""

    instance: int
    set: str
    penalised: bool
    n: int
    iteration: int
    lipschitz: float  # a constant of the gradient of f
    gamma: float
    diameter: float
    reach: float
    slope: float
    gap: float  # Triangle L = -psi
    chi: float  # from above
    chi_lower: float
    residual: float  # ||P||
    improvement: float  # Triangle U
    by_step: float  # the bound on Triangle L by theory A1
    by_improvement: float  # by theory E7
    near: float  # what rounding explains

    def relations(self) -> dict[str, tuple[float, float]]:
        """The two sides of every inequality, the one that is no larger first."""
        found = self.as_measures().inequalities
        return {one.words: (float(one.smaller), float(one.larger)) for one in found}

    def as_measures(self) -> Measures:
        """The measures themselves."""
        names = (
            "gap", "chi", "chi_lower", "residual", "improvement", "by_step", "by_improvement",
            "slope", "reach", "diameter", "gamma",
        )  # fmt: skip
        return Measures(**{name: np.asarray(getattr(self, name)) for name in names})


def instance(number: int, seed: int = 0) -> tuple[Problem, str, float]:
    """A random indefinite quadratic on one of three sets, with and without l1; the set's name, and lambda."""
    rng = np.random.default_rng([seed, number])
    name, diameter = SETS[number % 3], DIAMETERS[number // 3 % 3]
    n = int(rng.integers(2, 21))
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectrum = rng.standard_normal(n) * 10.0 ** rng.uniform(-1.0, 0.0, n)
    Q, b = (basis * spectrum) @ basis.T, rng.standard_normal(n) * 0.2 * diameter
    lipschitz = float(np.max(np.abs(spectrum)))
    penalty = L1(float(0.1 * np.mean(np.abs(b)))) if number % 2 else None
    own: dict[str, Set] = {
        "ball": L2Ball(diameter / 2.0),
        "box": Box(-0.5 * diameter / n**0.5, 0.5 * diameter / n**0.5),
        "simplex": Simplex(diameter / 2.0**0.5),
    }
    return Problem(Quadratic(0.5 * (Q + Q.T), b), Block(own[name], penalty)), name, lipschitz


def rows(number: int, seed: int = 0) -> list[Row]:
    """The points of a run from one start, with three gamma each."""
    problem, name, lipschitz = instance(number, seed)
    stop = Stop(max_iterations=AT[-1], patience=None)
    steps = iterate(problem, ProximalGradient(), eps=1e-13, rng=seed, stop=stop)
    points = {view.iteration: np.array(view.xs[0]) for view in steps if view.iteration in AT}
    at, xs = list(points), np.stack(list(points.values()))
    found = []
    for factor in GAMMAS:
        gamma = factor / lipschitz
        measured = measures(problem, xs, gamma)
        (g,) = problem.smooth.gradient((xs,))
        terms = np.abs(g).sum(-1) * (1.0 + measured.reach) + measured.reach**2 / gamma
        for k, iteration in enumerate(at):
            one = {
                field: float(getattr(measured, field)[k])
                for field in (*Measures.__dataclass_fields__,)
            }
            found.append(
                Row(
                    instance=number,
                    set=name,
                    penalised=bool(number % 2),
                    n=problem.shapes[0][0],
                    iteration=iteration,
                    lipschitz=lipschitz,
                    near=ROUNDING * float(terms[k]) * (1.0 + 1.0 / gamma),
                    **one,
                )
            )
    return found


def run(instances: int = 180, *, seed: int = 0) -> Generator[list[Row], None, None]:
    """The rows of every instance, as they are done."""
    instances, seed = whole_number("instances", instances, 1), whole_number("seed", seed, 0)
    return (rows(number, seed) for number in range(instances))


@dataclass(frozen=True)
class Summary:
    """One inequality over all points."""

    words: str
    source: str
    points: int
    violated: int  # by more than rounding explains
    tightest: float  # the largest share of the larger side that the smaller one takes
    median: float


def summaries(found: Sequence[Row]) -> list[Summary]:
    """How sharp every inequality is, over the points whose gap rounding does not touch."""
    lines = []
    for k, one in enumerate(found[0].as_measures().inequalities):
        sides = [(row, *list(row.relations().values())[k]) for row in found]
        clear = [(small, large) for row, small, large in sides if row.gap > 1e4 * row.near]
        shares = [small / large for small, large in clear if large > 0.0]
        lines.append(
            Summary(
                words=one.words,
                source=one.source,
                points=len(sides),
                violated=sum(not _holds(row, small, large) for row, small, large in sides),
                tightest=max(shares, default=float("nan")),
                median=float(np.median(shares)) if shares else float("nan"),
            )
        )
    return lines


def _holds(row: Row, small: float, large: float) -> bool:
    # omega^{-1} takes the root of what Triangle U is rounded by (theory E7).
    near = row.near + (row.near * row.reach**2 / row.gamma) ** 0.5 * (large == row.by_improvement)
    return small <= large + near


def decades(found: Iterable[Row]) -> tuple[float, float]:
    """The smallest and the largest gap that rounding does not touch."""
    gaps = [row.gap for row in found if row.gap > 1e4 * row.near]
    return (min(gaps), max(gaps)) if gaps else (float("nan"), float("nan"))
