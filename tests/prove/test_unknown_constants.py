"""What it costs not to know any constant: against the best fixed one, which nobody knows, and the declared one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import restpoint as rp

pytestmark = pytest.mark.prove

PROBLEMS, EPS = 36, rp.Relative(1e-3)
MOST = 4000  # looks; a run that needs more counts with so many, which flatters what it is compared with
# Fixed constants that are tried: the declared one, its half, ..., to find the best.
HALVINGS = 9


def problems() -> Iterator[tuple[str, rp.Problem]]:
    """Quadratics, logistic regression, least squares, waves, Hoelder powers and tensors, n up to 40."""
    rng = np.random.default_rng(5)
    for k in range(PROBLEMS):
        n, kind = int(rng.integers(5, 40)), k % 6
        own = (
            rp.sets.L2Ball(float(np.exp(rng.uniform(-1, 2)))),
            rp.sets.Box(-1.0, 1.0),
            rp.sets.Simplex(2.0),
        )[rng.integers(3)]
        weight = float(np.exp(rng.uniform(-4, -1)))
        penalty = rp.penalties.L1(weight) if rng.random() < 0.5 else None
        if kind == 5:
            form = rp.smooth.Multilinear(rng.normal(size=(6, 5, 7)))
            yield "tensor", rp.Problem(form, [rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.3))] * 3)
            continue
        name, f = _function(rng, kind, n)
        yield name, rp.Problem(f, rp.Block(own, penalty))


def _function(rng: np.random.Generator, kind: int, n: int) -> tuple[str, rp.smooth.Smooth]:
    if kind == 0:
        basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
        Q = (basis * rng.normal(size=n) * 10 ** rng.uniform(-1.5, 0, n)) @ basis.T
        return "quadratic", rp.smooth.Quadratic(0.5 * (Q + Q.T), rng.normal(size=n))
    if kind == 1:
        A = rng.normal(size=(2 * n, n))
        y = np.sign(A @ rng.normal(size=n) + rng.normal(size=2 * n))
        return "logistic", rp.smooth.Logistic(A, y)
    if kind == 2:
        A = rng.normal(size=(n // 2 + 1, n))
        return "least squares", rp.smooth.LeastSquares(A, rng.normal(size=len(A)))
    if kind == 3:
        w, c = rng.uniform(0.5, 3, n), rng.normal(size=n) * 3
        waves = rp.smooth.Function(
            lambda x: float(np.sum(np.cos(w * x + c))),
            lambda x: -w * np.sin(w * x + c),
            shapes=n,
            constant=float(np.max(w) ** 2),
        )
        return "waves", waves
    powers = rp.smooth.PowerSum((1.25, 1.5, 1.75)[rng.integers(3)], rng.normal(size=n))
    line = rp.smooth.Quadratic(np.zeros((n, n)), rng.normal(size=n))
    return "powers", rp.smooth.Sum(powers, line)


def cost(problem: rp.Problem, method: Any, seed: int) -> np.ndarray:
    """Looks and gradients to a certificate, NaN beyond the budget."""
    stop = rp.Stop(max_iterations=MOST, patience=None)
    result = rp.solve(problem, method, eps=EPS, starts=1, rng=seed, stop=stop)
    if not result.certified[0]:
        return np.full(2, np.nan)
    return np.array([result.used[0], result.work["gradients"][0]], dtype=float)


STEPS = {
    "conditional": (rp.ConditionalGradient, rp.Armijo()),
    "proximal": (rp.ProximalGradient, rp.Universal()),
}


@pytest.mark.parametrize("name", STEPS)
def test_not_to_know_costs_little_and_to_declare_costs_more(name, figures):
    step, neither = STEPS[name]
    ratios: dict[str, list[np.ndarray]] = {"p known": [], "neither known": []}
    for seed, (kind, problem) in enumerate(problems()):
        curvature = problem.facts().joint
        declared, p = max(curvature.constants), curvature.p
        fixed = [
            cost(
                problem,
                rp.WithoutGuarantee(step(rp.Jacobi(), rp.Majorant(declared * 2.0**-j, p))),
                seed,
            )
            for j in range(HALVINGS)
        ]
        best, valid = np.nanmin([*fixed, (MOST, MOST)], axis=0), np.nan_to_num(fixed[0], nan=MOST)
        for rule, smoothness in zip(ratios, (rp.Doubling(p=p), neither), strict=True):
            found = np.nan_to_num(cost(problem, step(rp.Jacobi(), smoothness), seed), nan=2 * MOST)
            ratios[rule].append(np.array([*(found / best), valid[0] / found[0]]))
            figures("looks / those of the best fixed constant", f"{name}, {rule}, {kind}",
                    largest=("largest", found[0] / best[0]))  # fmt: skip
    for rule, rows in ratios.items():
        to_best, gradients, gained = np.median(rows, axis=0)
        figures("medians", f"{name}, {rule}", problems=("sum", len(rows)), looks=("sum", to_best),
                gradients=("sum", gradients), declared=("sum", gained))  # fmt: skip
        assert to_best <= 2.0
        assert gradients <= 2.5
        assert gained >= 1.5
