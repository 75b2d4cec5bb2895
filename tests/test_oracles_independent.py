"""Oracle answers against slow solvers that share no code with them, and bounds in 50-digit arithmetic."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from restpoint.oracles import find
from restpoint.oracles.multiplier import Slopes, dual_bound
from restpoint.penalties import L1
from restpoint.sets import Box, L2Ball, Simplex

N = 3
CENTER = np.array([0.5, -0.25, 0.0])
LOWER, UPPER = np.array([-1.0, 0.2, -0.5]), np.array([0.5, 0.9, -0.1])
SETS = {
    "ball": (L2Ball(1.5), {"type": "ineq", "fun": lambda y: 2.25 - y @ y}),
    "ball with centre": (
        L2Ball(1.5, CENTER),
        {"type": "ineq", "fun": lambda y: 2.25 - (y - CENTER) @ (y - CENTER)},
    ),
    "box": (
        Box(LOWER, UPPER),
        {"type": "ineq", "fun": lambda y: np.concatenate([y - LOWER, UPPER - y])},
    ),
    "simplex": (Simplex(2.0), None),
}


def _slow(name, g, z, weight, p, rho):
    """The optimum by sequential quadratic programming on y = u - v with u, v >= 0."""
    constraint = SETS[name][1]

    def objective(w):
        y = w[:N] - w[N:]
        power = 0.5 * weight * np.sum(np.abs(y - z) ** p)
        return g @ (y - z) + power + rho * np.sum(w)

    def slope(w):
        d = w[:N] - w[N:] - z
        s = g + 0.5 * weight * p * np.sign(d) * np.abs(d) ** (p - 1.0)
        return np.concatenate([s + rho, rho - s])

    if name == "simplex":
        constraints = [
            {"type": "eq", "fun": lambda w: np.sum(w[:N]) - 2.0},
            {"type": "eq", "fun": lambda w: w[N:]},
        ]
    else:
        constraints = [
            {"type": "ineq", "fun": lambda w: np.atleast_1d(constraint["fun"](w[:N] - w[N:]))}
        ]
    best = np.inf
    for first in (z, SETS[name][0].project(z - g), SETS[name][0].project(0.1 * np.ones(N))):
        start = np.concatenate([np.maximum(first, 0), np.maximum(-first, 0)])
        found = minimize(
            objective,
            start,
            jac=slope,
            bounds=[(0.0, None)] * (2 * N),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        y = found.x[:N] - found.x[N:]
        if SETS[name][0].violation(y) <= 1e-9:
            best = min(best, objective(found.x))
    return best


@pytest.mark.parametrize("p", [2.0, 1.4, 3.0])
@pytest.mark.parametrize("name", SETS)
def test_no_slow_solver_does_better(name, p):
    rng = np.random.default_rng(20)
    close = 0
    for _ in range(12):
        g, weight = 2.0 * rng.standard_normal(N), float(rng.choice([0.0, 0.3, 1.0, 5.0]))
        rho, z = float(rng.choice([0.0, 0.5, 2.0])), SETS[name][0].project(rng.standard_normal(N))
        answer = find(SETS[name][0], L1(rho)).prox(g, z, weight, p)
        slow = _slow(name, g, z, weight, p, rho)
        assert answer.value <= slow + 1e-7
        assert answer.lower <= slow + 1e-7
        close += slow - answer.value <= 1e-5
    assert close >= 10  # the comparison is with a solver that mostly finds the optimum


def _exactly(name, g, z, weight, p, rho, y):
    """The prox objective in 50 digits, at a point that is first put strictly into S."""
    with mpmath.workdps(50):
        y = [mpmath.mpf(float(v)) for v in y]
        y = _inside(name, y)
        total = mpmath.mpf(0)
        for gj, zj, yj in zip(g, z, y, strict=True):
            d = yj - mpmath.mpf(float(zj))
            total += mpmath.mpf(float(gj)) * d + mpmath.mpf(rho) * abs(yj)
            total += mpmath.mpf(weight) / 2 * abs(d) ** mpmath.mpf(p)
        return total


def _inside(name, y):
    """The nearest way into S along the natural direction, in 50 digits."""
    if name == "box":
        bounds = zip(y, LOWER, UPPER, strict=True)
        return [min(max(v, mpmath.mpf(float(a))), mpmath.mpf(float(b))) for v, a, b in bounds]
    if name == "simplex":
        y = [max(v, mpmath.mpf(0)) for v in y]
        return [2 * v / mpmath.fsum(y) for v in y]
    c = [mpmath.mpf(float(v)) for v in (CENTER if name == "ball with centre" else np.zeros(N))]
    size = mpmath.sqrt(mpmath.fsum((a - b) ** 2 for a, b in zip(y, c, strict=True)))
    scale = min(mpmath.mpf(1), mpmath.mpf(1.5) / size) if size else mpmath.mpf(1)
    return [b + scale * (a - b) for a, b in zip(y, c, strict=True)]


number = st.floats(-4.0, 4.0).map(lambda v: round(v, 3))
vector = st.lists(number, min_size=N, max_size=N).map(np.array)


@settings(max_examples=25, derandomize=True, deadline=None, database=None)
@given(
    name=st.sampled_from(sorted(SETS)),
    g=vector,
    z=vector,
    rho=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    weight=st.sampled_from([0.0, 1e-6, 0.4, 1.0, 1e4]),
    p=st.sampled_from([1.1, 1.5, 2.0, 4.0]),
)
def test_bounds_hold_in_fifty_digits(name, g, z, rho, weight, p):
    region = SETS[name][0]
    z = region.project(z)
    answer = find(region, L1(rho)).prox(g, z, weight, p)
    rng = np.random.default_rng(21)
    points = [answer.point, z, *(region.sample(rng, (N,)) for _ in range(5))]
    points += [region.project(answer.point + s * rng.standard_normal(N)) for s in (0.1, 1e-4, 1e-8)]
    # Rounding of the bound itself: certificates add theirs (theory A12).
    size = np.sum(np.abs(g)) * 4 + rho * 8 + weight * 4.0**p
    for y in points:
        exact = _exactly(name, g, z, weight, p, rho, y)
        assert float(mpmath.mpf(float(answer.lower)) - exact) <= 2e-15 * size
    at_point = _exactly(name, g, z, weight, p, rho, answer.point)
    assert abs(float(at_point - mpmath.mpf(float(answer.value)))) <= 2e-15 * size
    assert answer.value - answer.lower <= 4e-15 * size / (p - 1.0)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("name", SETS)
def test_the_dual_bound_is_below_every_point_whatever_step_and_subgradient_it_is_made_from(name, p):
    """Theory A2: a multiplier that was not found to rounding makes the bound weaker, never false."""
    region, rng, tight = SETS[name][0], np.random.default_rng(23), 0
    for _ in range(100):
        g, step = rng.standard_normal((2, N)) * np.exp(rng.normal(size=(2, 1)))
        weight, rho = float(rng.exponential()), float(rng.exponential())
        z = region.project(rng.standard_normal(N))
        oracle = find(region, L1(rho))
        slopes = Slopes(g, np.clip(2.0 * rho * rng.standard_normal(N), -rho, rho), step)
        bound = float(dual_bound(region, z, slopes, weight, p))
        least = float(oracle.prox(g, z, weight, p).value)
        assert bound <= least + 1e-13 * (abs(least) + abs(bound) + 1.0)
        tight += least - bound <= 0.5 * (abs(least) + 1.0)
    assert tight >= 10  # the steps are not so wild that any number would be below


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0])
def test_the_multiplier_of_the_ball_in_fifty_digits(p):
    """Without penalty and at z = 0 the optimality condition is scalar per coordinate: solve it slowly."""
    g, weight = np.array([3.0, -1.0, 0.25]), 0.7
    answer = find(L2Ball(1.0), L1(0.0)).prox(g, np.zeros(N), weight, p)
    with mpmath.workdps(50):
        k, e = mpmath.mpf(weight) * mpmath.mpf(p) / 2, mpmath.mpf(p) - 1

        def bisect(increasing, low, high):
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
            return (low + high) / 2

        def coordinates(mu):
            return [
                bisect(lambda t, s=abs(gj): k * t**e + mu * t - s, mpmath.mpf(0), mpmath.mpf(1000))
                for gj in g
            ]

        mu = bisect(
            lambda m: 1 - mpmath.fsum(t**2 for t in coordinates(m)), mpmath.mpf(0), mpmath.mpf(10)
        )
        exact = [-float(np.sign(gj)) * float(t) for gj, t in zip(g, coordinates(mu), strict=True)]
    np.testing.assert_allclose(answer.point, exact, rtol=0, atol=5e-15 / (p - 1.0))


def test_algorithm_6_needs_the_shifted_gradient():
    """Theory E34: y = z / max(lambda, ||z||) with z = soft(b + lambda x, rho), not soft(b, rho)."""
    rng = np.random.default_rng(22)
    suboptimal, oracle = 0, find(L2Ball(), L1(0.3))
    for _ in range(100):
        b, x = rng.standard_normal((2, 5))
        x = oracle.set.project(x)
        right = oracle.prox(-b, x, 1.5)
        z = oracle.penalty.prox(b, 1.0)
        printed = z / max(1.5, np.linalg.norm(z))
        suboptimal += oracle.prox_value(-b, x, 1.5, 2.0, printed) > right.value + 1e-9
        shrunk = oracle.penalty.prox(b + 1.5 * x, 1.0)
        expected = shrunk / max(1.5, np.linalg.norm(shrunk))
        np.testing.assert_allclose(right.point, expected, rtol=0, atol=1e-15)
    assert suboptimal > 50
