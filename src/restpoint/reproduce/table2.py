r"""Table 2: zero-variance discriminant analysis, -x'N'BNx + gamma sum_i sigma_i |(DNx)_i| on the unit ball.

The recipe that fits what is printed (theory E36): m = 2n; D a Haar-distributed orthogonal matrix, N an orthonormal
basis of n independent standard normal vectors in R^m, B = GG' with G of independent standard normal entries; the
objective without the factor 1/2; gamma sigma_i = .2 for all i, which leaves the penalty almost inactive; a random unit
vector to start from. Algorithm 1 takes full steps and ends when Phi changes by at most 1e-6 of itself; the ADMM of Ames
and Hong has beta = 2.5 L, L = 2 lambda_max(N'BN), and ends by its own rule with eps_abs = eps_rel = 1e-4.

Weights of kappa L / sqrt(m), kappa = .2 and .4, make solutions sparse, which those of the paper are not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from restpoint.array import require_memory
from restpoint.certificates import certify
from restpoint.errors import DataError
from restpoint.methods import ConditionalGradient, FullStep, Method, Momentum
from restpoint.penalties import AnalysisL1
from restpoint.problem import Block, Problem
from restpoint.reproduce import instances as jobs
from restpoint.reproduce.admm import Explicit
from restpoint.run import Relative, Result, Stop, solve
from restpoint.run.solve import CTRL_C
from restpoint.sets import L2Ball
from restpoint.smooth import Quadratic

SIZES = (50, 100, 200)
WEIGHT, CHANGE, CAP = 0.2, 1e-6, 10_000
ADMM_TOLERANCE, ADMM_CAP = 1e-4, 20_000
# Penalties: the paper's, and the two that leave zeros, by kappa.
PAPER = "paper"
KAPPAS = {"kappa = .2": 0.2, "kappa = .4": 0.4}
PENALTIES = (PAPER, *KAPPAS)
ALGORITHM_1, MOMENTUM = "Algorithm 1", "with momentum"
BETAS = (2.05, 2.2, 2.5, 3.0, 5.0)
ADMMS = {f"ADMM, {beta:g} L": beta for beta in BETAS}
ADMM = "ADMM, 2.5 L"
METHODS = (ALGORITHM_1, *ADMMS, MOMENTUM)
# To what the accelerated method is certified, in units of |Phi| or the gap at the start.
EPS = 1e-8
# How near to the end of Algorithm 1 the objective of another method has to come, of |Phi|.
NEAR = 1e-6
# End points nearer than that are the same: Algorithm 1 itself ends some hundredths from where it goes.
SAME, ZERO = 0.1, 1e-6
# No certificate is that small, rounding included, so it is the rule of the paper that ends a run.
NO_EPS = math.ulp(0.0)
PLAIN = ConditionalGradient(smoothness=FullStep())


@dataclass(frozen=True)
class Instance:
    """The matrices H = 2 N'BN and K = DN, and where to start."""

    H: np.ndarray
    K: np.ndarray
    start: np.ndarray
    L: float  # lambda_max(H)

    def weight(self, penalty: str) -> float:
        """gamma sigma_i."""
        if penalty == PAPER:
            return WEIGHT
        return KAPPAS[penalty] * self.L / math.sqrt(len(self.K))

    def problem(self, penalty: str) -> Problem:
        """-x'Hx/2 + weight ||Kx||_1 on the unit ball."""
        f = Quadratic(-self.H, concave=True)
        return Problem(f, Block(L2Ball(), AnalysisL1(self.K, self.weight(penalty))))


@dataclass(frozen=True)
class Row:
    """One run. Every figure but those of the way there is about the last iterate, ADMM's pulled into the ball."""

    n: int
    instance: int
    penalty: str
    method: str
    status: str  # how the run ended
    phi: float
    gap: float  # certified afresh
    iterations: int
    near: float  # iterations until Phi is as low as where Algorithm 1 ended, up to 1e-6; NaN if it never is
    milliseconds: float  # with what is computed beforehand, in this very run
    distance: float  # to the end of Algorithm 1, up to the sign
    zeros: float  # share of the (DNx)_i
    start: float  # Phi there


def instance(n: int, number: int, seed: int = 0) -> Instance:
    """One instance; the penalties share it."""
    m = 2 * n
    require_memory(6 * 8 * m * m, f"matrices of {m} x {m} entries for n = {n}")
    rng = np.random.default_rng([seed, n, number])
    basis = np.linalg.qr(rng.standard_normal((m, n)))[0]
    square, signs = np.linalg.qr(rng.standard_normal((m, m)))
    rotation = square * np.sign(np.diagonal(signs))  # Haar: QR with a positive diagonal is unique
    factor = basis.T @ rng.standard_normal((m, m))
    H = 2.0 * (factor @ factor.T)
    start = rng.standard_normal(n)
    start /= np.linalg.norm(start)
    return Instance(H, rotation @ basis, start, float(np.linalg.eigvalsh(H)[-1]))


def rows(
    n: int,
    number: int,
    *,
    seed: int = 0,
    penalties: Iterable[str] = PENALTIES,
    methods: Iterable[str] = METHODS,
) -> list[Row]:
    """All methods with all penalties on one instance, from the same start, on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        given = instance(n, number, seed)
        return [
            row for penalty in penalties for row in _compared(n, number, given, penalty, methods)
        ]


def _compared(
    n: int, number: int, given: Instance, penalty: str, methods: Iterable[str]
) -> list[Row]:
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise DataError(f"methods must be among {', '.join(METHODS)}, got {unknown[0]!r}")
    problem = given.problem(penalty)
    began = float(problem.value(given.start))
    stop = Stop(max_iterations=CAP, relative_value_change=CHANGE, patience=None)
    plain = _solved(problem, PLAIN, NO_EPS, given, stop)
    target = float(problem.value(plain.last))
    target += NEAR * abs(target)
    found = []
    for name in methods:
        near = math.nan
        if name in ADMMS:
            x, status, count, near, spent = _admm(given, penalty, ADMMS[name], target)
        else:
            result = plain
            if name == MOMENTUM:
                result = _solved(problem, Momentum(PLAIN), Relative(EPS), given, Stop())
                near = _first(result, target)
            (x,), status = result.last, result.status.name
            count, spent = int(result.iterations), 1e3 * result.seconds
        certificate = certify(problem, x)
        found.append(
            Row(
                n=n,
                instance=number,
                penalty=penalty,
                method=name,
                status=status,
                phi=float(certificate.value),
                gap=float(certificate.max),
                iterations=count,
                near=near,
                milliseconds=spent,
                distance=_apart(x, plain.last[0]),
                zeros=float(np.mean(np.abs(given.K @ x) <= ZERO)),
                start=began,
            )
        )
    return found


def _solved(
    problem: Problem, method: Method, eps: float | Relative, given: Instance, stop: Stop
) -> Result:
    result = solve(problem, method, eps=eps, x0=given.start, stop=stop)
    if CTRL_C in result.message:
        raise KeyboardInterrupt  # a run cut short is no row of the table
    return result


def _first(result: Result, target: float) -> float:
    """The iteration in which Phi was first at most the target."""
    below = np.flatnonzero(np.asarray(result.trace.value) <= target)
    return float(below[0]) if len(below) else math.nan


def _admm(
    given: Instance, penalty: str, beta: float, target: float
) -> tuple[np.ndarray, str, int, float, float]:
    """Its end, how it ended, iterations, those until the target, and milliseconds."""
    began = time.perf_counter()
    weights = np.full(len(given.K), given.weight(penalty))
    runner = Explicit(given.H, given.K, weights, beta * given.L)
    end = runner.settled(given.start, ADMM_TOLERANCE, ADMM_CAP)
    spent = 1e3 * (time.perf_counter() - began)
    # Where it has settled nothing new happens: twice as many iterations are enough to come as low, or none are.
    near = runner.until(given.start, target, 2 * end.iterations)
    status = "SETTLED" if end.reached else "ITERATION_LIMIT"
    count = float(near.iterations) if near.reached else math.nan
    return end.x, status, end.iterations, count, spent


def _apart(x: np.ndarray, y: np.ndarray) -> float:
    return float(min(np.linalg.norm(x - y), np.linalg.norm(x + y)))


def run(
    sizes: Sequence[int] = SIZES, instances: int = 40, *, seed: int = 0, workers: int = 1
) -> Generator[list[Row], None, None]:
    """The rows of every instance, size by size, as they are done; with any number of workers the same but for times."""
    return jobs.run(rows, sizes, instances, seed=seed, workers=workers)
