r"""How the number of iterations grows as eps falls: measured, beside what the theorems allow.

Two kinds of problems. Those that resist (``resisting``) are made anew for every eps, all of one class: the same
lambda, the same diameter, the same Phi(x^1) - Phi*. The first x^k with a gap of at most eps comes as late as the
theorem allows, or at half of that, and so the exponent is the theorem's: q with 1/p + 1/q = 1, and 1 for concave f. The
usual ones (quadratics and a tensor with random entries) are one problem each, solved to smaller and smaller eps.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint import paper
from restpoint.array import whole_number
from restpoint.methods import ConditionalGradient, FullStep, Majorant, Method
from restpoint.penalties import L1
from restpoint.problem import Block, Problem
from restpoint.reproduce.resisting import Sawtooth, Staircase, separable
from restpoint.run import Status, Stop, solve
from restpoint.run.solve import CTRL_C
from restpoint.sets import Box, L2Ball, Simplex
from restpoint.smooth import Multilinear, Quadratic

RESISTING, USUAL = "resisting", "usual"
POWERS = (1.25, 1.5, 2.0)
# The longest run, unless told otherwise, and the number of eps for each case.
MOST, POINTS = 1000, 6
# An interval so many times as long as all teeth of a saw: along them the gap hardly changes.
ROOM = 500.0
# The eps of a run lies below the smallest gap of its problem by this share, and what f declares above lambda.
BELOW, ROUNDED = 1e-6, 1e-13
BLOCKS = 2
# How far the exponent of the runs may be from the theorem's.
SLOPE = 0.03
# In units of |Phi(x^1)|, for the usual problems.
ACCURACIES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Case:
    """A column of the study: a method, and the class of functions."""

    algorithm: int
    order: str  # "", "jacobi" or "mbi"
    p: float  # NaN: concave f, full steps

    @property
    def concave(self) -> bool:
        """Whether f is concave, and the steps full."""
        return math.isnan(self.p)

    @property
    def name(self) -> str:
        """The method in words."""
        orders = {"": "", "jacobi": ", Jacobi", "mbi": ", MBI"}
        return f"Algorithm {self.algorithm}{orders[self.order]}"

    @property
    def of(self) -> str:
        """The class of functions in words."""
        return "concave" if self.concave else f"p = {self.p:g}"

    @property
    def exponent(self) -> float:
        """N = O(1 / eps^exponent)."""
        return 1.0 if self.concave else self.p / (self.p - 1.0)


@dataclass(frozen=True)
class Row:
    """One run: the first x^k with a certified gap of at most eps is x^looks."""

    method: str
    of: str
    problem: str  # resisting or usual
    exponent: float
    eps: float
    looks: int
    allowed: float  # sharp form
    paper: float
    delta: float  # Phi(x^1) less a lower bound
    status: str

    @property
    def certified(self) -> bool:
        """Whether the run ended with a certificate."""
        return self.status == Status.CERTIFIED.name


CASES = (
    *(Case(k, "", p) for k in (1, 2) for p in POWERS),
    *(Case(k, order, p) for k in (5, 6) for order in ("jacobi", "mbi") for p in POWERS),
    Case(1, "", math.nan),
    Case(5, "mbi", math.nan),
)


def run(most: int = MOST) -> Generator[list[Row], None, None]:
    """The runs of every case, as they are done; the longest takes about ``most`` iterations."""
    most = whole_number("most", most, 100)
    return ([*_resisting(case, most), *_usual(case)] for case in CASES)


@dataclass(frozen=True)
class Summary:
    """One case on one kind of problems."""

    method: str
    of: str
    problem: str
    exponent: float  # of the theorem
    slope: float  # of the runs: - d log looks / d log eps, by least squares
    share: float  # the largest looks / allowed
    eps: float  # the smallest, and what it took
    looks: int
    allowed: float
    paper: float
    proved: bool  # every run certified, within what is allowed

    @property
    def fits(self) -> bool:
        """Whether the runs on resisting problems show the exponent of the theorem, up to 3 %."""
        return self.proved and abs(self.slope / self.exponent - 1.0) <= SLOPE


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """The cases in the order of the rows."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.of, row.problem), []).append(row)
    return [_summary(own) for own in groups.values()]


def _summary(rows: list[Row]) -> Summary:
    last = min(rows, key=lambda row: row.eps)
    logs = np.log([[row.eps, max(row.looks, 1)] for row in rows])
    slope = -float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]) if len(rows) > 1 else math.nan
    return Summary(
        method=last.method,
        of=last.of,
        problem=last.problem,
        exponent=last.exponent,
        slope=slope,
        share=max(row.looks / row.allowed for row in rows),
        eps=last.eps,
        looks=last.looks,
        allowed=last.allowed,
        paper=last.paper,
        proved=all(row.certified and row.looks <= row.allowed for row in rows),
    )


# --- problems that resist -----------------------------------------------------------------------------


def _resisting(case: Case, most: int) -> Iterator[Row]:
    """Runs of about most/30 to most iterations."""
    for looks in np.geomspace(most / 30.0, most, POINTS).round().astype(int):
        make = _staircase if case.concave else _saw
        problem, x0, eps = make(case, int(looks), most)
        yield _row(case, RESISTING, problem, x0, eps)


def _saw(case: Case, looks: int, most: int) -> tuple[Problem, Any, float]:
    """Saws whose steepness leaves room for ``looks`` teeth within the delta of the whole class."""
    each = BLOCKS if case.order == "mbi" else 1  # MBI climbs one tooth of one saw at a time
    # At steepness p/2, and lambda = 1, teeth are 1 wide; Phi falls along a tooth by a power q of the steepness.
    slope = 0.5 * case.p * (most / looks) ** (1.0 / case.exponent)
    saw, length = Sawtooth(slope, 1.0, case.p, looks // each), ROOM * (most // each)
    count = BLOCKS if case.order else 1
    facts: dict[str, Any] = {"p": case.p, "lower_bound": count * saw.lowest}
    if count == 1:
        facts["constant"] = 1.0 + ROUNDED
    f = separable([saw.at] * count, shapes=[(1,)] * count, **facts)
    problem = Problem(f, [Block(Box(0.0, length))] * count)
    return problem, tuple(np.zeros(1) for _ in range(count)), saw.gap(length) * (1.0 - BELOW)


def _staircase(case: Case, looks: int, most: int) -> tuple[Problem, Any, float]:
    """Staircases of the same height in all, which ``looks`` steps lead down."""
    count = BLOCKS if case.order else 1
    stairs = Staircase(looks // count + 1, most / looks)
    f = separable(
        [stairs.at] * count,
        shapes=[(stairs.stairs,)] * count,
        concave=True,
        differentiable=False,
        lower_bound=count * stairs.lowest,
    )
    problem = Problem(f, [Block(Simplex())] * count)
    return problem, tuple(stairs.top for _ in range(count)), stairs.height * (1.0 - BELOW)


# --- usual problems -----------------------------------------------------------------------------------


def _usual(case: Case) -> Iterator[Row]:
    """One problem, to smaller and smaller eps; p = 2, and one block with concave f."""
    if case.concave and not case.order:
        problem, x0 = _concave_quadratic()
    elif case.p == 2.0:
        problem, x0 = _tensor() if case.order else _quadratic()
    else:
        return
    scale = abs(float(problem.value(x0)))
    for accuracy in ACCURACIES:
        yield _row(case, USUAL, problem, x0, scale * accuracy)


def _quadratic() -> tuple[Problem, Any]:
    """x'Qx/2 + .2 ||x||_1 on the unit ball, Q symmetric with random entries, n = 50."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((50, 50)) / math.sqrt(2.0)
    x = rng.standard_normal(50)
    problem = Problem(Quadratic(half + half.T), Block(L2Ball(), L1(0.2)))
    return problem, (x / np.linalg.norm(x),)


def _concave_quadratic() -> tuple[Problem, Any]:
    """-||Gx||^2/2 + 4 ||x||_1 on the unit ball, G with random entries, n = 50."""
    rng = np.random.default_rng(1)
    G = rng.standard_normal((50, 50))
    x = rng.standard_normal(50)
    problem = Problem(Quadratic(-G.T @ G, concave=True), Block(L2Ball(), L1(4.0)))
    return problem, (x / np.linalg.norm(x),)


def _tensor() -> tuple[Problem, Any]:
    """The paper's sparse tensor PCA, n = 8, from a start with A(x) > 0."""
    rng = np.random.default_rng(2)
    problem = Problem(Multilinear(rng.standard_normal((8,) * 4)), [Block(L2Ball(), L1(0.85))] * 4)
    x = rng.standard_normal((4, 8))
    return problem, problem.mirrored(tuple(x / np.linalg.norm(x, axis=1, keepdims=True)))


# --- runs ---------------------------------------------------------------------------------------------


def _method(case: Case, kind: str) -> Method:
    """The paper's algorithm, with the constants that f declares; block by block where f does not."""
    order: dict[str, Any] = {"order": case.order} if case.order else {}
    found = paper.algorithm(case.algorithm, p=2.0 if case.concave else case.p, **order)
    if case.concave:
        return ConditionalGradient(found.order, FullStep())
    if kind == USUAL or not case.order:
        return found
    declared = Majorant((1.0 + ROUNDED,) * BLOCKS, case.p, joint=case.order == "jacobi")
    return replace(found, smoothness=declared)


def _row(case: Case, kind: str, problem: Problem, x0: Any, eps: float) -> Row:
    stop = Stop(max_iterations=10_000_000, patience=None)
    result = solve(problem, _method(case, kind), x0=x0, eps=eps, stop=stop)
    if CTRL_C in result.message:
        raise KeyboardInterrupt  # a run cut short is no row
    bound = result.bound
    return Row(
        method=case.name,
        of=case.of,
        problem=kind,
        exponent=case.exponent,
        eps=eps,
        looks=int(result.used),
        allowed=float("nan") if bound.count is None else float(bound.count),
        paper=float("nan") if bound.paper_bound is None else float(bound.paper_bound),
        delta=float(bound.constants["delta"]),
        status=result.status.name,
    )
