"""The worst cases of both algorithms for p = 2, as semidefinite programs: no bound lies below, some are attained.

After N looks and N updates, with Phi(x^1) - Phi* <= Delta, performance estimation finds the largest min_k gap_k over
all f with a Lipschitz gradient and all convex sets of a given diameter, in any dimension. Such f fulfil the paper's
Assumption 1.1 with p = 2, so that no theorem may promise less.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import PEPit
import pytest
from PEPit.functions import ConvexIndicatorFunction, SmoothFunction
from PEPit.primitive_steps import linear_optimization_step, proximal_step

import restpoint as rp

pytestmark = pytest.mark.prove

# All numbers are in units of lambda = 1 and diameter 1, and the theorems are asked in these and other units.
LOOKS = (1, 2, 3, 5)
DELTAS = (3.0, 0.5, 0.1, 0.01)  # from far above the bend of omega to far below
UNITS = ((1.0, 1.0), (2.0, 1.5), (0.03, 40.0))
ACCURACY = 1e-6  # that the conic solver is asked for
SOLVED = 1e-4  # and that is relied on


class Run:
    """Any f with Lipschitz constant 1, on any convex set of diameter 1; the least of its gaps is to be maximised."""

    def __init__(self) -> None:
        self.problem = PEPit.PEP()
        self.f = self.problem.declare_function(SmoothFunction, L=1.0)
        self.set = self.problem.declare_function(ConvexIndicatorFunction, D=1.0)
        self.first = self.problem.set_initial_point()
        self.set.oracle(self.first)

    def look(self, x: Any) -> tuple[Any, Any, Any]:
        """The gradient, the answer of the linear oracle and the gap at x."""
        g = self.f.gradient(x)
        y, _, _ = linear_optimization_step(g, self.set)
        gap = g * (x - y)
        self.problem.set_performance_metric(gap)
        return g, y, gap

    def worst(self, last: Any, delta: float) -> float:
        """The largest min_k gap_k with f(first) - f(last) <= delta; -inf where there is no such run."""
        self.problem.set_initial_condition(self.f(self.first) - self.f(last) <= delta)
        accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), ACCURACY)
        found = self.problem.solve(verbose=0, solver="CLARABEL", **accuracy)
        return -math.inf if found is None else float(found)


def projection(delta: float, looks: int) -> float:
    """x+ = P_S(x - grad f(x))."""
    run = Run()
    x = run.first
    for _ in range(looks):
        g, _, _ = run.look(x)
        x, _, _ = proximal_step(x - g, run.set, 1.0)
    return run.worst(x, delta)


def frank_wolfe(delta: float, steps: tuple[float, ...]) -> float:
    """x+ = x + s (y - x), with gap = s ||y - x||^2 where s < 1, and at least that where s = 1."""
    run = Run()
    x = run.first
    for s in steps:
        _, y, gap = run.look(x)
        curved = s * (y - x) ** 2
        run.problem.add_constraint(gap == curved if s < 1.0 else gap >= curved)
        x = x + s * (y - x)
    return run.worst(x, delta)


def share(theorem: Any, worst: float, delta: float, looks: int) -> float:
    """A gap of ``worst`` may be left after so many looks, so no theorem may say that they are enough for less."""
    for constant, diameter in UNITS:
        curvature = constant * diameter**2
        data = {"constant": constant, "diameter": diameter, "delta": delta * curvature}
        assert theorem(eps=worst * curvature * (1.0 - SOLVED), **data).count > looks
    promised = float(rp.omega_inverse(delta / looks, 1.0, 2.0))
    assert worst <= promised * (1.0 + SOLVED)
    return worst / promised


@pytest.mark.parametrize("looks", LOOKS)
def test_theorem_3_3_allows_what_gradient_projection_can_do(looks, figures):
    for delta in DELTAS:
        worst = projection(delta, looks)
        found = share(rp.bounds.theorem_3_3, worst, delta, looks)
        columns = {"largest": ("largest", found), "least": ("least", found)}
        figures("worst case / promised, gradient projection", f"{looks} looks", **columns)
        assert found > (1.0 - SOLVED if looks == 1 else 0.2)


@pytest.mark.parametrize("looks", LOOKS)
def test_theorem_3_1_allows_what_frank_wolfe_can_do(looks, figures):
    """The step lengths are those that attain the theorem, multiples of them, and others around them."""
    rng = np.random.default_rng(looks)
    for delta in DELTAS:
        attained = float(rp.omega_inverse(delta / looks, 1.0, 2.0))
        factors = [np.full(looks, c) for c in (0.5, 0.9, 1.0, 1.1, 2.0)]
        factors += [np.exp(rng.uniform(-0.7, 0.7, looks)) for _ in range(3)]
        shares = []
        for factor in factors:
            steps = tuple(float(s) for s in np.minimum(1.0, attained * factor))
            try:
                worst = frank_wolfe(delta, steps)
            except UserWarning:  # the solver cannot tell whether there are runs with such steps
                continue
            if worst > 0.01 * delta:
                shares.append(share(rp.bounds.theorem_3_1, worst, delta, looks))
        columns = {"largest": ("largest", max(shares)), "runs": ("sum", len(shares))}
        figures("worst case / promised, Frank-Wolfe", f"{looks} looks", **columns)
        assert max(shares) > (1.0 - SOLVED if looks == 1 else 0.2)
