"""What is wrong, incomplete or loose in Sections 1-3 of the paper, and what holds instead.

The mathematics alone: small loops in NumPy, with omega and the bounds as the only things imported.
"""

import itertools
import math

import numpy as np
import pytest

from restpoint.bounds import corollary_3_2, theorem_3_1, theorem_3_3
from restpoint.omega import omega, omega_inverse, step_length

EXPONENTS = (1.1, 4 / 3, 1.5, 1.9, 2.0)


# --- helpers: an l1 penalty on the box [-1, 1]^n, where everything is separable -------------------


def signed_power(x, s):
    return np.sign(x) * np.abs(x) ** s


def linear_oracle(g, rho):
    """The argmin of g'y + rho ||y||_1 over the box [-1, 1]^n."""
    return np.where(np.abs(g) > rho, -np.sign(g), 0.0)


def linear_gap(g, z, rho):
    """Delta L(z) = max over the box of g'(z - y) + rho (||z||_1 - ||y||_1)."""
    y = linear_oracle(g, rho)
    return g @ (z - y) + rho * (np.sum(np.abs(z)) - np.sum(np.abs(y)))


def prox_move(g, z, rho, weight, p):
    """The d = y - z at the argmin of g'(y - z) + (weight/2) ||y - z||_p^p + rho ||y||_1 over the box.

    Convex and piecewise smooth in each coordinate, so its minimiser is an end, the kink at 0, or a
    zero of the derivative on one side of 0: the best of these candidates. In d, not in y = z + d:
    for p close to 1 the answer is far below the rounding of z.
    """
    zeros = [
        signed_power(-2.0 * (g + sign * rho) / (weight * p), 1.0 / (p - 1.0)) for sign in (1, -1)
    ]
    candidates = np.stack([np.clip(d, -1.0 - z, 1.0 - z) for d in (*zeros, -z, 2.0, -2.0)])
    decreases = -g * candidates - weight / 2 * np.abs(candidates) ** p - rho * growth(candidates, z)
    return np.take_along_axis(candidates, np.argmax(decreases, axis=0)[None], axis=0)[0]


def growth(d, z):
    """|z + d| - |z|, without cancellation where the sign stays."""
    return np.where(np.abs(d) <= np.abs(z), np.sign(z) * d, np.abs(z + d) - np.abs(z))


def prox_gap(g, z, d, rho, weight, p):
    """Delta U(z), d being the answer of ``prox_move``."""
    return np.sum(-g * d - weight / 2 * np.abs(d) ** p - rho * growth(d, z))


def diameter_power(n, p):
    """diam_p([-1, 1]^n)^p."""
    return n * 2.0**p


# --- E1 ------------------------------------------------------------------------------------------


def test_e1_psi_as_printed_depends_on_y():
    """E1: the right side of the printed psi_S depends on y; psi_S = min_y [...] = -DL <= 0."""
    rng = np.random.default_rng(0)
    z, g, rho = rng.uniform(-1, 1, 4), rng.normal(size=4), 0.3

    def printed(y):
        return g @ (y - z) + rho * (np.sum(np.abs(y)) - np.sum(np.abs(z)))

    first, second = printed(np.ones(4)), printed(-np.ones(4))
    assert abs(first - second) > 0.1
    corners = np.asarray(list(itertools.product([-1.0, 0.0, 1.0], repeat=4)))
    psi = min(printed(y) for y in corners)
    assert psi == pytest.approx(-linear_gap(g, z, rho), abs=1e-14)
    assert psi <= 0 < first
    assert min(printed(y) for y in rng.uniform(-1, 1, (2000, 4))) >= psi


def test_e1_for_convex_f_the_gap_bounds_the_error():
    """E1: if f is convex, DL(x) >= Phi(x) - Phi*."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        target, z, rho = rng.normal(size=5), rng.uniform(-1, 1, 5), 0.2
        best = np.clip(np.sign(target) * np.maximum(np.abs(target) - rho, 0), -1, 1)

        def phi(x, target=target, rho=rho):
            return 0.5 * np.sum((x - target) ** 2) + rho * np.sum(np.abs(x))

        assert linear_gap(z - target, z, rho) >= phi(z) - phi(best) - 1e-14


# --- E2, E3 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [1.0, 1e3, 1e6])
def test_e2_above_two_a_nonconcave_f_fails_for_every_constant(constant):
    """E2: for p > 2 Assumption 1.1 holds iff f is concave: f = x^2 fails p = 3 at a close pair."""
    p = 3.0
    x, y = 0.0, 1.0 / constant  # f(y) = y^2 > (constant/2) y^3 for 0 < y < 2/constant
    assert y**2 > x**2 + 2 * x * (y - x) + constant / 2 * abs(y - x) ** p
    assert -(y**2) <= -(x**2) - 2 * x * (y - x) + constant / 2 * abs(y - x) ** p


def test_e2_chain_argument():
    """E2: n pieces give g'(1) - g'(0) <= 2 C n^(2-p), which tends to 0: g' cannot increase."""
    p, C = 3.0, 10.0
    pieces = np.asarray([1, 10, 100, 1000])
    allowed = 2 * C * pieces ** (2 - p)
    np.testing.assert_allclose(allowed, 2 * C / pieces)
    increase = 2.0  # of g'(t) = 2 t over [0, 1]
    assert allowed[0] > increase > allowed[-1]


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 3.0])
def test_e3_concave_needs_no_constant(p):
    """E3: a concave f satisfies (1.1) for every p > 0 and lambda >= 0; lambda = 0 gives Cor. 3.2."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(4, 4))
    Q = -A @ A.T
    for _ in range(200):
        x, y = rng.uniform(-1, 1, (2, 4))
        linear = 0.5 * x @ Q @ x + (Q @ x) @ (y - x)
        for constant in (0.0, 2.0):
            majorant = linear + constant / 2 * np.sum(np.abs(y - x) ** p)
            assert 0.5 * y @ Q @ y <= majorant + 1e-13


def test_e3_rate_with_lambda_zero():
    """E3: omega_0(a) = a, so that Theorem 3.1 with lambda = 0 is Corollary 3.2, and it is kept."""
    for eps, delta in ((0.1, 3.0), (2.0, 1.0), (0.01, 7.7)):
        as_theorem = theorem_3_1(eps=eps, delta=delta, constant=0.0, diameter=2.0, p=1.5)
        assert as_theorem.count == corollary_3_2(eps=eps, delta=delta).count
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = rng.normal(size=(6, 6))
        Q, rho, x, eps = -A @ A.T, 0.5, rng.uniform(-1, 1, 6), 1e-3
        lower = -0.5 * np.sum(np.abs(Q))
        delta = 0.5 * x @ Q @ x + rho * np.sum(np.abs(x)) - lower
        allowed, used = corollary_3_2(eps=eps, delta=delta).count, 1
        while linear_gap(Q @ x, x, rho) > eps:
            x, used = linear_oracle(Q @ x, rho), used + 1
        assert used <= allowed


# --- E7, A1 --------------------------------------------------------------------------------------


def test_e7_the_condition_on_eps_is_needed():
    """E7: f = -4x on [0, 1], p = 2, lambda = 1, z = 0, eps = 3 satisfies Lemma 2.2(ii) but DL = 4."""
    y = np.linspace(0.0, 1.0, 100_001)
    gap_u = np.max(4 * y - 0.5 * y**2)
    gap_l = np.max(4 * y)
    D, eps = 1.0, 3.0
    threshold = 0.5 * eps**2 / D
    assert gap_u == pytest.approx(3.5, abs=1e-12)
    assert threshold == 4.5
    assert gap_u <= threshold
    assert gap_l == 4.0 > eps
    assert eps > D
    # The unconditional form gives the truth: omega^{-1}(3.5) = 4.
    assert omega_inverse(3.5, D) == 4.0


def random_box_problem(rng, p):
    n = int(rng.integers(1, 7))
    z = rng.uniform(-1, 1, n)
    z[rng.uniform(size=n) < 0.2] = 0.0
    g = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    rho = rng.choice([0.0, 0.1, 1.0]) * float(np.mean(np.abs(g)))
    weight = 10.0 ** rng.uniform(-2, 2)
    return z, g, rho, weight


@pytest.mark.parametrize("p", EXPONENTS)
def test_e7_sandwich(p):
    """E7: omega_D(DL) <= DU <= DL always, with D from diam, from R(z), or from the step z_L - z."""
    rng = np.random.default_rng(4)
    for _ in range(400):
        z, g, rho, weight = random_box_problem(rng, p)
        gap_l = linear_gap(g, z, rho)
        gap_u = prox_gap(g, z, prox_move(g, z, rho, weight, p), rho, weight, p)
        scale = 1e-12 * (abs(gap_l) + np.sum(np.abs(g)))
        radius = np.sum((1 + np.abs(z)) ** p)
        step = np.sum(np.abs(linear_oracle(g, rho) - z) ** p)
        for power in (diameter_power(len(z), p), radius, step):
            assert omega(gap_l, weight * power, p) <= gap_u + scale
            assert gap_l <= omega_inverse(gap_u, weight * power, p) + scale * 10
        assert gap_u <= gap_l + scale


@pytest.mark.parametrize("p", EXPONENTS)
def test_e7_equality_on_a_segment(p):
    """E7: equality for linear f on a segment from z, so nothing better holds in (DU, D)."""
    for slope in (0.05, 0.5, 1.0, 4.0):
        s = np.linspace(0.0, 1.0, 400_001)
        gap_u = np.max(slope * s - 0.5 * s**p)  # S = [0, 1], z = 0, lambda = 1, so D = 1
        assert omega(slope, 1.0, p) == pytest.approx(gap_u, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("p", EXPONENTS)
def test_a1_free_certificate(p):
    """A1: DL <= B := DU - (p-1)(w/2)||d||_p^p + (w p/2) R_w <= omega^{-1}_{w R(z)^p}(DU), any w > 0.

    The weights here have nothing to do with f, of which only a gradient enters.
    """
    rng = np.random.default_rng(5)
    improved = 0
    for _ in range(400):
        z, g, rho, weight = random_box_problem(rng, p)
        d = prox_move(g, z, rho, weight, p)
        gap_l, gap_u = linear_gap(g, z, rho), prox_gap(g, z, d, rho, weight, p)
        moved = np.sum(np.abs(d) ** p)
        direction = signed_power(d, p - 1)
        largest = np.sum(np.abs(direction)) - direction @ z  # max over the box of direction'(y - z)
        free = gap_u - (p - 1) * weight / 2 * moved + weight * p / 2 * largest
        by_diameter = omega_inverse(gap_u, weight * np.sum((1 + np.abs(z)) ** p), p)
        scale = 1e-11 * (abs(gap_l) + np.sum(np.abs(g)) + by_diameter)
        assert gap_l <= free + scale
        assert free <= by_diameter + scale
        assert gap_u >= (p - 1) * weight / 2 * moved - scale
        improved += free < 0.9 * by_diameter
    assert improved > 40


def test_a1_rounding_of_the_answer_is_amplified():
    """A1, A12: omega^{-1} is Hoelder with exponent 1/q, so for p < 2 a rounded prox answer is no proof.

    f = x/10 near z = 1/2, p = 1.1, weight 1: the answer is z - (.2/1.1)^10 = z - 4e-8, whose move
    survives; with slope 1/100 it is 4e-18, z itself in float64. Then DU is 0 and so would be the
    certificate, but DL = .015. The same move known as a number gives the truth.
    """
    p, z, slope, weight = 1.1, np.asarray([0.5]), np.asarray([0.01]), 1.0
    d = prox_move(slope, z, 0.0, weight, p)
    D, gap_l = weight * 1.5**p, linear_gap(slope, z, 0.0)
    assert gap_l == pytest.approx(0.015, rel=1e-14)
    assert z + d == z
    assert d != 0.0
    rounded = (z + d) - z
    assert omega_inverse(float(prox_gap(slope, z, rounded, 0.0, weight, p)), D, p) == 0.0
    assert omega_inverse(float(prox_gap(slope, z, d, 0.0, weight, p)), D, p) >= gap_l


# --- E8, E9 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EXPONENTS)
def test_e8_step_formula(p):
    """E8: alpha = min{1, (2 DL/(p lambda ||d||_p^p))^(1/(p-1))}; the decrease is omega of DL."""
    grid = np.linspace(0.0, 1.0, 100_001)
    rng = np.random.default_rng(6)
    for _ in range(50):
        gap, weight = 10.0 ** rng.uniform(-2, 1, 2)
        values = -grid * gap + 0.5 * weight * grid**p
        alpha = min(1.0, (2 * gap / (p * weight)) ** (1 / (p - 1)))
        assert alpha == pytest.approx(grid[np.argmin(values)], abs=2e-5)
        assert step_length(gap, weight, p) == pytest.approx(alpha, rel=1e-12)
        model = alpha * gap - 0.5 * weight * alpha**p
        assert model == pytest.approx(omega(gap, weight, p), rel=1e-9, abs=1e-300)
    assert step_length(0.0, 0.0, p) == 0.0  # d = 0: stop
    assert step_length(1.0, 0.0, p) == 1.0  # lambda = 0: the full step


def box_quadratic(rng, n):
    A = rng.normal(size=(n, n))
    Q, b = (A + A.T) / 2, rng.normal(size=n)
    constant = float(np.max(np.abs(np.linalg.eigvalsh(Q))))
    lower = -0.5 * np.sum(np.abs(Q)) - np.sum(np.abs(b))
    return Q, b, constant, lower


@pytest.mark.parametrize("method", ["conditional gradient", "proximal gradient"])
def test_e9_the_count_holds_for_every_eps(method):
    """E9: N = max{1, ceil(Delta/omega_D(eps))}, also for eps > D, and the anytime form."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        n, rho = 3, 0.1
        Q, b, constant, lower = box_quadratic(rng, n)
        x, D = rng.uniform(-1, 1, n), constant * diameter_power(n, 2)
        delta = 0.5 * x @ Q @ x + b @ x + rho * np.sum(np.abs(x)) - lower
        theorem = theorem_3_1 if method == "conditional gradient" else theorem_3_3
        gaps = []
        for k in range(1, 301):
            g = Q @ x + b
            gaps.append(linear_gap(g, x, rho))
            assert min(gaps) <= omega_inverse(delta / k, D) + 1e-12
            if method == "conditional gradient":
                d = linear_oracle(g, rho) - x
                x = x + step_length(float(gaps[-1]), float(constant * d @ d)) * d
            else:
                x = x + prox_move(g, x, rho, constant, 2.0)
        for eps in (0.3 * D, D, 2.0 * D):
            allowed = theorem(eps=eps, delta=delta, constant=constant, diameter=math.sqrt(4 * n))
            assert min(gaps[: int(allowed.count)]) <= eps


def test_e9_delta_zero_needs_one_look():
    """E9: Delta = 0 gives N = 0 as printed, and no iterate would have been looked at."""
    printed = math.ceil(2 * 0.0 * 4.0 / 0.1**2)
    assert printed == 0
    assert theorem_3_1(eps=0.1, delta=0.0, constant=1.0, diameter=2.0).count == 1.0


def test_e9_beyond_d_the_printed_count_is_false():
    """E9, E7: for eps > D, outside its condition, the printed N is too small.

    f = -4x on [0, 1], lambda = 1, eps = 3.99, x^1 = 0: Delta = 4 and 2 Delta D/eps^2 < 1, so that the
    printed N is 1, but DL(x^1) = 4 > eps.
    """
    printed = math.ceil(2 * 4.0 * 1.0 / 3.99**2)
    assert printed == 1
    bound = theorem_3_1(eps=3.99, delta=4.0, constant=1.0, diameter=1.0)
    assert (bound.count, bound.paper_bound) == (2.0, None)


# --- E10 -----------------------------------------------------------------------------------------


def test_e10_any_supergradient_serves():
    """E10: Cor. 3.2 for a nondifferentiable concave f: drop per full step >= DL of a supergradient."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        n, rho, eps = 5, 0.2, 1e-9
        slopes, heights = rng.normal(size=(7, n)), rng.normal(size=7)

        def phi(x, slopes=slopes, heights=heights, rho=rho):
            return np.min(slopes @ x + heights) + rho * np.sum(np.abs(x))

        x = np.zeros(n)
        lower = np.min(heights - np.sum(np.abs(slopes), axis=1))
        allowed, used = corollary_3_2(eps=eps, delta=phi(x) - lower).count, 1
        while True:
            g = slopes[np.argmin(slopes @ x + heights)]
            gap = linear_gap(g, x, rho)
            if gap <= eps:
                break
            after = linear_oracle(g, rho)
            assert phi(x) - phi(after) >= gap - 1e-13
            x, used = after, used + 1
        assert used <= allowed
