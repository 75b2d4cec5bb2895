"""Accelerated full steps on instances of the paper's Table 2, and on sparse ones, against the ADMM of Ames and Hong.

Ours is ``solve`` from a problem that was just made, with checks, iteration bound and certificate, to a certified gap of
1e-8 of Phi or of the gap at the start, whichever is larger. ADMM is given what nobody has: beta in units of the largest
eigenvalue, and the iteration at which Phi is first as low as ours or, if it never is, as low as where it ends, up to
1e-6 of it. It has the null space in matrices that are factored once, within its time, makes no array in an iteration
and tests nothing on the way. One thread, the same starts: one start a call, and ten, of which ADMM takes the first
three one after the other, its factors counted as those of ten.

The subproblem alone: Newton steps from a cold start and along Algorithm 1, the gap that is left, and CVXPY (Clarabel).
RESTPOINT_BENCH_SMALL=1 tries the program out.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from threadpoolctl import threadpool_limits
from timing import interleaved, judged, missed, write

import restpoint as rp
from restpoint.kernels import _box_loops
from restpoint.kernels.analysis import Analysis
from restpoint.reproduce import admm, table2

SMALL = bool(os.environ.get("RESTPOINT_BENCH_SMALL"))
SIZES, KAPPAS = (50, 100) if SMALL else (50, 100, 200), (0.004, 0.2, 0.4)
MOST_ITERATIONS = {50: 60, 100: 80, 200: 100}
INSTANCES = int(os.environ.get("RESTPOINT_BENCH_INSTANCES", "4" if SMALL else "20"))
SEED, EPS, NEAR, STARTS, OF_ADMM = 20262, rp.Relative(1e-8), 1e-6, 10, 3
REPEATS, REPEATS_OF_ADMM = 3, 2
CAP = 6000
PLAIN = rp.ConditionalGradient(smoothness=rp.FullStep())
FAST = rp.Momentum(PLAIN, burst=24)
BETAS = table2.BETAS
# The subproblem: penalties, seeds, and how many gradients of Algorithm 1.
STEEP, SEEDS, OUTER = (*KAPPAS, 0.6, 0.8), 2 if SMALL else 5, 60


class Case(NamedTuple):
    """An instance with one of the penalties."""

    given: table2.Instance
    weights: np.ndarray

    def problem(self) -> rp.Problem:
        f = rp.smooth.Quadratic(-self.given.H, concave=True)
        penalty = rp.penalties.AnalysisL1(self.given.K, float(self.weights[0]))
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(), penalty))

    def admm(self, beta: float) -> admm.Explicit:
        return admm.Explicit(self.given.H, self.given.K, self.weights, beta * self.given.L)


def case(n: int, number: int, kappa: float) -> Case:
    given = table2.instance(n, number, SEED)
    return Case(given, np.full(2 * n, kappa * given.L / np.sqrt(2 * n)))


def starts(here: Case, number: int) -> np.ndarray:
    """That of the instance, and others."""
    n = len(here.given.start)
    x = np.random.default_rng([SEED, n, number]).standard_normal((STARTS, n))
    x[0] = here.given.start
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


# --- B6: the subproblem --------------------------------------------------------------------------------


def newton(n: int, kappa: float, number: int) -> dict[str, Any]:
    """Linear systems from a cold start, to 1e-8 ||b||, and from warm ones along Algorithm 1; the largest gap."""
    here = case(n, number, kappa)
    H, x, weight = here.given.H, here.given.start, float(here.weights[0])
    matrices, solve = Analysis(here.given.K).prepared, _box_loops.shrink()
    K, squared = matrices[0], matrices[2]
    warm, gap, cold, u = [], 0.0, 0, np.empty(0)
    for k in range(OUTER):
        b = H @ x
        allowed = 1e-8 * float(np.linalg.norm(b))
        if k == 0:
            u = np.clip(K @ b / squared, -weight, weight)
        z = np.empty(n)
        begin = (
            _box_loops.BY_GRADIENT if k else _box_loops.BY_DESCENT
        )  # as ``Analysis.shrink`` does
        size, solved = solve(*matrices, begin, b, weight, allowed, u, z)
        rest = b - u @ K
        w, norm = K @ rest, float(np.linalg.norm(rest))
        left = (weight * float(np.sum(np.abs(w))) - float(u @ w)) / norm if norm > 0 else 0.0
        gap = max(gap, min(left, norm) / float(np.linalg.norm(b)))
        if k == 0:
            cold = solved
        else:
            warm.append(solved)
        if size <= allowed:
            break
        x = z / size
    return {"cold": cold, "warm": statistics.fmean(warm) if warm else 0.0, "gap": gap}


def against_cvxpy(n: int, kappa: float, rounds: int) -> dict[str, float]:
    """Seconds of one cold subproblem; CVXPY has compiled its problem before."""
    here = case(n, 0, kappa)
    b, y, given = here.given.H @ here.given.start, cp.Variable(n), cp.Parameter(n)
    given.value, weight = b, float(here.weights[0])
    problem = cp.Problem(
        cp.Minimize(-given @ y + weight * cp.norm1(here.given.K @ y)), [cp.norm(y) <= 1.0]
    )
    oracle = here.problem().blocks[0].oracle
    seconds = interleaved(
        {
            "cvxpy": lambda: problem.solve(solver=cp.CLARABEL),
            "restpoint": lambda: oracle.linear(-b),
        },
        rounds=rounds,
        repeats=1,
    )
    value = float(oracle.linear(-b).value)
    apart = abs(value - float(problem.value)) / max(abs(value), 1e-300)
    return {name: t["median"] for name, t in seconds.items()} | {"apart": apart}


# --- B7 and B9: iterations, certificates, monotone values, bounds --------------------------------------


def quality(n: int, kappa: float) -> dict[str, float]:
    """Accelerated and plain."""
    rows = []
    for number in range(INSTANCES):
        here = case(n, number, kappa)
        problem = here.problem()
        row = []
        for method in (rp.Momentum(PLAIN), PLAIN):
            run = rp.solve(problem, method, eps=EPS, x0=here.given.start)
            values = np.asarray(run.trace.value)
            row += [
                run.iterations,
                bool(run.certified) and run.gap <= 1e-8 * abs(run.value),
                np.max(np.diff(values), initial=0.0) / abs(run.value),
                run.used <= run.bound.count,
                run.value,
            ]
        rows.append(row)
    table = np.array(rows, dtype=float)
    return {
        "iterations, median": float(np.median(table[:, 0])),
        "iterations, 90 %": float(np.percentile(table[:, 0], 90)),
        "iterations / plain, median": float(np.median(table[:, 0]) / np.median(table[:, 5])),
        "certified to 1e-8 |Phi|": float(table[:, 1].mean()),
        "largest rise of Phi / |Phi|": float(max(table[:, 2].max(), table[:, 7].max())),
        "within the bound": float(min(table[:, 3].mean(), table[:, 8].mean())),
        "Phi, mean": float(table[:, 4].mean()),
        "Phi of plain, mean": float(table[:, 9].mean()),
    }


# --- B8: times ------------------------------------------------------------------------------------------


def timed(
    call: Callable[[Any], Any], made: Callable[[], Any] = lambda: None, times: int = REPEATS
) -> tuple[float, Any]:
    """Milliseconds of a call with what was made for it, the best of several, and what came back."""
    best, found = np.inf, None
    for _ in range(times):
        given = made()
        began = time.perf_counter()
        found = call(given)
        best = min(best, 1e3 * (time.perf_counter() - began))
    return best, found


def needed(runner: admm.AmesHong, x0: np.ndarray, phi: float) -> tuple[int, float]:
    """The iterations of ADMM until Phi is as low as ours or, if it never is, where it ends; and Phi there."""
    end = runner.until(x0, phi + NEAR * abs(phi), CAP)
    if not end.reached:
        own = runner.phi(end.x)
        end = runner.until(x0, own + NEAR * abs(own), CAP)
    return end.iterations, runner.phi(end.x)


class Times(NamedTuple):
    """Of one instance: ours a start; ADMM by beta: a start, iterations, and the share that its Phi is higher by."""

    ours: float
    theirs: dict[float, tuple[float, float, float]]


def times(n: int, kappa: float, number: int) -> dict[str, Times]:
    """One start a call, and several."""
    here = case(n, number, kappa)
    points = starts(here, number)
    found = {}
    for name, x0 in (("one start", points[0]), ("starts", points)):
        spent, result = timed(lambda p, x=x0: rp.solve(p, FAST, eps=EPS, x0=x), here.problem)
        if not np.all(result.certified):
            raise AssertionError(f"n = {n}, kappa = {kappa}, instance {number}: not certified")
        found[name] = (spent, result)
    one, several = {}, {}
    phis = np.atleast_1d(found["starts"][1].value)[:OF_ADMM]
    for beta in BETAS:
        setup, runner = timed(lambda _, b=beta: here.admm(b), times=REPEATS_OF_ADMM)
        rows = []
        for x, phi in zip(points, phis, strict=False):
            steps, own = needed(runner, x, phi)
            spent, _ = timed(lambda _, r=runner, x=x, s=steps: r.steps(x, s), times=REPEATS_OF_ADMM)
            rows.append((spent, steps, (own - phi) / abs(phi)))
        one[beta] = (setup + rows[0][0], *rows[0][1:])
        mean = np.mean(rows, axis=0)
        several[beta] = (setup / STARTS + mean[0], *mean[1:])
    return {
        "one start": Times(found["one start"][0], one),
        "starts": Times(found["starts"][0] / STARTS, several),
    }


def summed(rows: list[Times]) -> dict[str, float]:
    """Medians over the instances: milliseconds a start, and ratios to ours instance by instance."""
    ours = np.array([row.ours for row in rows])
    table = {beta: np.array([row.theirs[beta] for row in rows]) for beta in BETAS}
    best = np.min([columns[:, 0] for columns in table.values()], axis=0)
    figures = {
        "ours, ms": float(np.median(ours)),
        "best beta / ours": float(np.median(best / ours)),
    }
    for beta, columns in table.items():
        name = f"{beta:g} L"
        figures[f"{name}, ms"] = float(np.median(columns[:, 0]))
        figures[f"{name} / ours"] = float(np.median(columns[:, 0] / ours))
        figures[f"{name}, iterations"] = float(np.median(columns[:, 1]))
        figures[f"{name}, Phi higher than ours, mean share"] = float(np.mean(columns[:, 2]))
    return figures


# --- what was asked for ---------------------------------------------------------------------------------


def floors(figures: dict[str, Any]) -> dict[str, Any]:
    """B6; B7 and B9 at every place; B8 as the median over the instances of one place, in both ways of calling."""
    found: dict[str, float] = {}
    asked: dict[str, tuple[str, float]] = {}

    def floor(name: str, figure: float, relation: str, number: float) -> None:
        found[name], asked[name] = figure, (relation, number)

    everyone = [one for several in figures["Newton steps"].values() for one in several]
    floor("cold Newton steps, most", max(one["cold"] for one in everyone), "<=", 15)
    floor("warm Newton steps, mean", statistics.fmean(o["warm"] for o in everyone), "<=", 3)
    floor("largest gap / ||b||", max(one["gap"] for one in everyone), "<=", 1e-8)
    for n, least in ((50, 15.0), (200, 50.0)):
        if n in SIZES:
            peer = figures["seconds of a subproblem, kappa = 0.2"][f"n = {n}"]
            floor(f"cvxpy / restpoint, n = {n}", peer["cvxpy"] / peer["restpoint"], ">=", least)
            floor(f"cvxpy and restpoint apart, n = {n}", peer["apart"], "<=", 1e-6)
    for n in SIZES:
        for kappa in KAPPAS:
            place = f"n = {n}, kappa = {kappa:g}"
            for name, relation, number in (
                ("iterations, median", "<=", MOST_ITERATIONS[n]),
                ("iterations / plain, median", "<=", 0.75),
                ("certified to 1e-8 |Phi|", ">=", 1.0),
                ("largest rise of Phi / |Phi|", "<=", 1e-13),
                ("within the bound", ">=", 1.0),
            ):
                floor(f"{place}: {name}", figures["quality"][place][name], relation, number)
            for part in ("one start", "starts"):
                least = 2.3 if kappa == KAPPAS[0] else 1.4
                ratios = figures[part][place]
                floor(f"{place}, {part}: 3 L / ours", ratios["3 L / ours"], ">=", least)
                floor(f"{place}, {part}: best beta / ours", ratios["best beta / ours"], ">=", 1.0)
    return judged(found, asked)


def measured() -> dict[str, Any]:
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {words}", file=sys.stderr, flush=True)

    say("the subproblem")
    figures: dict[str, Any] = {
        "instances": INSTANCES,
        "Newton steps": {
            f"n = {n}, kappa = {kappa:g}": [newton(n, kappa, number) for number in range(SEEDS)]
            for n in SIZES
            for kappa in STEEP
        },
        "seconds of a subproblem, kappa = 0.2": {
            f"n = {n}": against_cvxpy(n, 0.2, 15 if n == 50 else 5) for n in SIZES if n != 100
        },
        "quality": {},
        "one start": {},
        "starts": {},
    }
    for n in SIZES:
        for kappa in KAPPAS:
            place = f"n = {n}, kappa = {kappa:g}"
            figures["quality"][place] = quality(n, kappa)
            rows = [times(n, kappa, number) for number in range(INSTANCES)]
            for part in ("one start", "starts"):
                figures[part][place] = summed([row[part] for row in rows])
            say(
                f"{place}: 3 L / ours, best beta / ours "
                + "; ".join(
                    f"{part}: {figures[part][place]['3 L / ours']:.2f}, "
                    f"{figures[part][place]['best beta / ours']:.2f}"
                    for part in ("one start", "starts")
                )
            )
    return figures


def main() -> int:
    with threadpool_limits(1):
        figures = measured()
    verdicts = floors(figures)
    write(figures | {"floors": verdicts})
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
