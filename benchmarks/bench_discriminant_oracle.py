"""The two oracles of zero-variance discriminant analysis: against CVXPY, Newton steps, and cost in the features.

In sample space (paper, section 6.2): K = DN with m = 2n, B = 2GG', kappa = weight sqrt(m) / (2 lambda_max(N'BN)). Cold
starts are those of one gradient, warm ones those of Algorithm 1 with full steps. In feature space: 60 samples of 3
classes, weights gamma sigma_j with gamma a share of the value that the leading direction loses.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from timing import interleaved, judged, missed, write

import restpoint as rp
from restpoint.kernels import _box_loops
from restpoint.kernels.analysis import Analysis

KAPPAS = (0.004, 0.05, 0.2, 0.4, 0.8)
FEATURES = (1_000, 5_000, 20_000, 100_000)
SAMPLES, CLASSES, SHARE = 60, 3, 0.5

FLOORS = {
    "cvxpy / restpoint, n = 50": (">=", 15.0),
    "cvxpy / restpoint, n = 200": (">=", 50.0),
    "cold Newton steps, most": ("<=", 15.0),
    "warm Newton steps, mean": ("<=", 3.0),
    "largest gap / ||b||": ("<=", 1e-8),
    "disagreement with cvxpy": ("<=", 1e-6),
    "exponent of cost in p": ("<=", 1.25),
}


def instance(n: int, kappa: float, seed: int) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """K, N'BN, the weight and a starting point."""
    rng = np.random.default_rng(seed)
    m = 2 * n
    N = np.linalg.qr(rng.standard_normal((m, n)))[0]
    K = np.linalg.qr(rng.standard_normal((m, m)))[0] @ N
    half = N.T @ rng.standard_normal((m, m))
    B = 2.0 * half @ half.T
    x = rng.standard_normal(n)
    weight = kappa * float(np.linalg.eigvalsh(B)[-1]) / np.sqrt(m)
    return K, B, weight, x / np.linalg.norm(x)


def newton(n: int, kappa: float, seed: int, outer: int = 60) -> dict[str, Any]:
    """Linear systems from a cold start, to 1e-8 ||b||, and from warm ones along Algorithm 1; the largest gap."""
    K, B, weight, x = instance(n, kappa, seed)
    matrices, solve = Analysis(K).prepared, _box_loops.shrink()
    warm, gap, u, cold = [], 0.0, np.empty(0), 0
    for k in range(outer):
        b = B @ x
        allowed = 1e-8 * float(np.linalg.norm(b))
        if k == 0:
            u = np.clip(K @ b / matrices[2], -weight, weight)
        z = np.empty(n)
        size, solved = solve(*matrices, False, b, weight, allowed, u, z)
        rest = b - u @ K
        w, norm = K @ rest, float(np.linalg.norm(rest))
        open_ = (weight * float(np.sum(np.abs(w))) - float(u @ w)) / norm if norm > 0 else 0.0
        gap = max(gap, min(open_, norm) / float(np.linalg.norm(b)))
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
    K, B, weight, x = instance(n, kappa, 0)
    b = B @ x
    given, y = cp.Parameter(n), cp.Variable(n)
    given.value = b
    problem = cp.Problem(cp.Minimize(-given @ y + weight * cp.norm1(K @ y)), [cp.norm(y) <= 1.0])
    oracle = rp.Block(rp.sets.L2Ball(), rp.penalties.AnalysisL1(K, weight)).oracle
    candidates: dict[str, Callable[[], object]] = {
        "cvxpy": lambda: problem.solve(solver=cp.CLARABEL),
        "restpoint": lambda: oracle.linear(-b),
    }
    seconds = interleaved(candidates, rounds=rounds, repeats=1)
    value = float(oracle.linear(-b).value)
    far = abs(value - float(problem.value)) / max(abs(value), 1e-300)
    return {name: t["median"] for name, t in seconds.items()} | {"disagreement": far}


def samples(p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Within-class deviations, the factor of the between-class matrix, and standard deviations."""
    rng = np.random.default_rng(seed)
    y = np.arange(SAMPLES) % CLASSES
    centres = np.where(rng.random((CLASSES, p)) < 0.02, rng.standard_normal((CLASSES, p)), 0.0)
    X = rng.standard_normal((SAMPLES, p)) + centres[y]
    means = np.stack([X[y == c].mean(axis=0) for c in range(CLASSES)])
    within = X - means[y]
    F = (means - X.mean(axis=0)).T * np.sqrt(SAMPLES / CLASSES)
    return within.T, F, np.sqrt(np.mean(within**2, axis=0))


def features(p: int, calls: int = 12) -> dict[str, float]:
    """Milliseconds of a cold answer, of a warm one along Algorithm 1, and of one from the point alone."""
    columns, F, sigma = samples(p)
    ball = rp.sets.NullSpaceBall.of(columns)
    w = np.linalg.svd(ball.kernel.project(F.T).T, full_matrices=False)[0][:, 0]
    weight = SHARE * float(np.sum((F.T @ w) ** 2) / np.sum(sigma * np.abs(w)))
    oracle = rp.Block(ball, rp.penalties.L1(weight, scales=sigma)).oracle
    path = []
    answer = oracle.linear(-F @ (F.T @ w))
    for _ in range(calls):
        g = -F @ (F.T @ answer.point)
        path.append((g, answer))
        answer = oracle.linear_near(g, answer.point, answer.hint)
    g = path[-1][0]
    candidates: dict[str, Callable[[], object]] = {
        "cold": lambda: oracle.linear(g),
        "warm": lambda: [oracle.linear_near(g, a.point, a.hint) for g, a in path],
        "near": lambda: oracle.linear_near(g, answer.point),
    }
    seconds = interleaved(candidates, rounds=5, repeats=2)
    found = {name: 1e3 * t["median"] for name, t in seconds.items()}
    found["warm"] /= calls
    found["nonzeros"] = int(np.count_nonzero(answer.point))
    found["largest |Q'w|"] = float(np.max(np.abs(answer.point @ ball.Q)))
    found["gap / ||b||"] = float((answer.value - answer.lower) / np.linalg.norm(g))
    return found


def main() -> int:
    steps = {
        f"n = {n}, kappa = {kappa}": [newton(n, kappa, seed) for seed in range(5)]
        for n in (50, 100, 200)
        for kappa in KAPPAS
    }
    peers = {n: against_cvxpy(n, 0.2, rounds) for n, rounds in ((50, 15), (200, 5))}
    in_p = {p: features(p) for p in FEATURES}
    everyone = [one for several in steps.values() for one in several]
    exponent = np.polyfit(np.log(FEATURES), np.log([in_p[p]["warm"] for p in FEATURES]), 1)[0]
    found = {
        **{f"cvxpy / restpoint, n = {n}": t["cvxpy"] / t["restpoint"] for n, t in peers.items()},
        "cold Newton steps, most": max(one["cold"] for one in everyone),
        "warm Newton steps, mean": statistics.fmean(one["warm"] for one in everyone),
        "largest gap / ||b||": max(one["gap"] for one in everyone),
        "disagreement with cvxpy": max(t["disagreement"] for t in peers.values()),
        "exponent of cost in p": float(exponent),
    }
    verdicts = judged(found, FLOORS)
    write(
        {
            "Newton steps": steps,
            "seconds, kappa = 0.2": {f"n = {n}": t for n, t in peers.items()},
            "milliseconds in feature space": {f"p = {p}": t for p, t in in_p.items()},
            "floors": verdicts,
        }
    )
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
