"""What is wrong, incomplete or loose in the Hoelder constants of Section 1 and in Proposition 2.1, and what holds.

The mathematics alone, and ``measures``, whose inequalities are those of the corrected proposition.
"""

import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import tensor
from restpoint.smooth.power_sum import two_sided_factor

EXPONENTS = (1.1, 1.25, 1.5, 1.75, 2.0)


def signed_power(x, s):
    return np.sign(x) * np.abs(x) ** s


# --- E4 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EXPONENTS)
def test_e4_a_hoelder_gradient_gives_lambda_two_m_over_p(p):
    """E4: ||grad f(x) - grad f(y)||_q <= M ||x - y||_p^(p-1) implies (1.1) with lambda = 2 M / p."""
    rng, q = np.random.default_rng(0), p / (p - 1.0)
    for _ in range(200):
        n = int(rng.integers(1, 5))
        a, x, y = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
        # |phi_s(u) - phi_s(v)| <= 2^(1-s) |u - v|^s for s = p - 1 <= 1, so M = p 2^(2-p) max |a| will do.
        M = p * 2.0 ** (2.0 - p) * float(np.max(np.abs(a)))
        change = a * p * (signed_power(y, p - 1) - signed_power(x, p - 1))
        assert np.sum(np.abs(change) ** q) ** (1 / q) <= M * np.sum(np.abs(y - x) ** p) ** (
            1 / q
        ) * (1 + 1e-12)
        constant = rp.Majorant.from_gradient_constant(M, p).constant
        assert constant == 2.0 * M / p
        linear = a @ np.abs(x) ** p + (a * p * signed_power(x, p - 1)) @ (y - x)
        room = constant / 2 * np.sum(np.abs(y - x) ** p)
        assert a @ np.abs(y) ** p <= linear + room + 1e-12


def test_e4_the_two_meanings_of_m_are_not_the_same():
    """E4: the body's M is the q-th power of the abstract's; put in its place, lambda is too small.

    f = 50 x^2, p = 2: M_a = 100 is true and gives lambda = 100; 2 M^(1/q) / p with M = 100 gives 10.
    """
    right, wrong = 2 * 100.0 / 2, 2 * 100.0**0.5 / 2
    x, y = 0.0, 1.0
    assert 50 * y**2 <= 50 * x**2 + 100 * x * (y - x) + right / 2 * (y - x) ** 2
    assert 50 * y**2 > 50 * x**2 + 100 * x * (y - x) + wrong / 2 * (y - x) ** 2


# --- E5 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EXPONENTS)
def test_e5_on_the_orthant_lambda_is_two_and_no_less(p):
    """E5: f = sum x_j^p needs lambda = 2 on x >= 0, by u = 0, and 2 is enough."""
    rng = np.random.default_rng(1)
    u, v = 10.0 ** rng.uniform(-6, 2, (2, 20_000))
    near = 1e-12 * (u**p + v**p)
    assert np.all(v**p <= u**p + p * u ** (p - 1) * (v - u) + np.abs(v - u) ** p + near)
    assert 1.0**p > 0.5 * 1.999  # u = 0, v = 1: v^p <= (lambda/2) v^p needs lambda >= 2
    facts = rp.smooth.PowerSum(p, shape=3).facts([rp.sets.Box(0.0, 2.0)])
    assert facts.joint.p == p
    assert 2.0 <= facts.joint.constants[0] <= 2.0 * (1 + 1e-14)


@pytest.mark.parametrize(
    ("p", "K"), [(1.1, 1.724), (1.25, 1.524), (1.5, 1.3066), (1.75, 1.141), (2.0, 1.0)]
)
def test_e5_on_the_whole_line_two_fails_and_two_k_holds(p, K):
    """E5: on R^n lambda = 2 K_p, K_p = max over t >= 0 of (t^p - 1 + p (t + 1)) / (t + 1)^p."""
    t = np.concatenate([np.linspace(0.0, 50.0, 2_000_001), 10.0 ** np.linspace(1.5, 8, 1000)])
    on_grid = float(np.max((t / (t + 1)) ** p + (p * (t + 1) - 1) / (t + 1) ** p))
    assert two_sided_factor(p) == pytest.approx(K, abs=5e-4)
    assert two_sided_factor(p) == pytest.approx(on_grid, rel=1e-9)
    assert 1.0 <= two_sided_factor(p) <= 2.0 ** (2.0 - p)
    # From u = -1 to v = t at the maximiser: what holds on the orthant fails here for p < 2.
    worst = t[np.argmax((t / (t + 1)) ** p + (p * (t + 1) - 1) / (t + 1) ** p)]
    rise = worst**p - 1.0 + p * (worst + 1.0)  # f(v) - f(u) - f'(u) (v - u)
    assert (rise > (worst + 1.0) ** p * (1 + 1e-6)) == (p < 2.0)
    assert rise <= two_sided_factor(p) * (worst + 1.0) ** p * (1 + 1e-12)


def test_e5_weights_and_concave_summands():
    """E5: with weights lambda = 2 max a_j (2 K_p max a_j on R^n), and negative weights are free."""
    weights = np.array([0.3, -7.0, 2.5])
    orthant = rp.smooth.PowerSum(1.5, weights).facts([rp.sets.Simplex()]).joint.constants[0]
    line = rp.smooth.PowerSum(1.5, weights).facts([rp.sets.L2Ball()]).joint.constants[0]
    assert orthant == pytest.approx(5.0, rel=1e-14)
    assert line == pytest.approx(5.0 * two_sided_factor(1.5), rel=1e-14)
    assert rp.smooth.PowerSum(1.5, -np.abs(weights)).facts([rp.sets.L2Ball()]).concave


# --- E6 --------------------------------------------------------------------------------------------


def random_problem(rng):
    n = int(rng.integers(1, 7))
    kind = rng.integers(4)
    if kind == 0 and n > 1:
        own = rp.sets.Simplex(float(rng.uniform(0.2, 4.0)))
    elif kind == 1:
        own = rp.sets.Box(-rng.uniform(0.1, 2.0, n), rng.uniform(0.0, 2.0, n))
    elif kind == 2:
        own = rp.sets.L2Ball(float(rng.uniform(0.1, 4.0)), rng.normal(size=n))
    else:
        own = rp.sets.L2Ball(float(rng.uniform(0.1, 4.0)))
    penalty = rp.penalties.L1(float(rng.uniform(0.0, 1.0))) if rng.random() < 0.6 else None
    Q = rng.normal(size=(n, n))
    size = 10.0 ** rng.uniform(-2, 2)
    f = rp.smooth.Quadratic(size * (Q + Q.T), size * rng.normal(size=n))
    return rp.Problem(f, rp.Block(own, penalty))


def random_points(rng, problem, count=6):
    draws = [
        np.stack([s.sample(rng, n) for _ in range(count)])
        for s, n in zip(problem.sets, problem.shapes, strict=True)
    ]
    middle = problem.project(tuple(draw * rng.random((count, 1)) for draw in draws))
    stop = rp.Stop(max_iterations=int(rng.integers(0, 40)), patience=None)
    near = rp.solve(problem, x0=tuple(draws), eps=1e-300, stop=stop).last
    return tuple(np.concatenate(parts) for parts in zip(draws, middle, near, strict=True))


def holds(inequality, scale):
    """Up to rounding, in units of the gap's own terms; omega^{-1} takes the root of what Triangle U is rounded by."""
    known = ~np.isnan(inequality.larger)
    excess = (inequality.smaller - inequality.larger)[known]
    allowed = 1e-10 * (scale + np.abs(inequality.smaller))[known]
    if "by_improvement" in inequality.words:
        allowed = allowed + 1e-7 * scale[known]
    assert np.all(excess <= allowed), (inequality.words, float(np.max(excess - allowed)))
    return int(np.sum(known))


@pytest.mark.parametrize("seed", range(6))
def test_e6_every_inequality_between_the_measures_holds(seed):
    """E6, E7, A1, on random problems, at random and at nearly stationary points, for gamma over six decades."""
    rng = np.random.default_rng([2, seed])
    seen = {}
    for _ in range(12):
        problem = random_problem(rng)
        xs = random_points(rng, problem)
        gamma = float(10.0 ** rng.uniform(-3, 3))
        found = rp.measures(problem, xs, gamma)
        (g,) = problem.smooth.gradient(xs)
        scale = np.sum(np.abs(g), axis=-1) * (1.0 + found.reach) * (1.0 + 1.0 / gamma + gamma)
        scale = scale + 1e-3 * found.reach**2 / gamma  # what rounding of x+ does where g = 0
        assert np.all(found.chi_lower <= found.chi * (1 + 1e-9) + 1e-12 * scale)
        for inequality in found.inequalities:
            seen[inequality.words] = seen.get(inequality.words, 0) + holds(inequality, scale)
    assert len(seen) == 8
    assert min(seen.values()) > 0


def test_e6_chi_is_found_exactly():
    """E6: chi by one multiplier, against a fine search over directions, on a disc and a square in the plane."""
    rng = np.random.default_rng(3)
    angles = np.linspace(0.0, 2.0 * math.pi, 2001)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    for _ in range(10):
        g, rho = rng.normal(size=2) * 3.0, float(rng.choice([0.0, 0.4]))
        x = rng.uniform(-1.5, 1.5, 2)
        f = rp.smooth.Quadratic(np.zeros((2, 2)), g)
        for own, inside in (
            (rp.sets.Box(-2.0, 2.0), lambda y: np.all(np.abs(y) <= 2.0, axis=-1)),
            (rp.sets.L2Ball(2.5), lambda y: np.sum(y**2, axis=-1) <= 6.25),
        ):
            found = rp.measures(rp.Problem(f, rp.Block(own, rp.penalties.L1(rho))), x)
            best = 0.0
            for radius in np.linspace(0.05, 1.0, 20):
                y = x + radius * ring
                gains = (x - y) @ g + rho * (np.sum(np.abs(x)) - np.sum(np.abs(y), axis=-1))
                best = max(best, float(np.max(gains[inside(y)], initial=0.0)))
            assert best <= found.chi + 1e-9
            assert found.chi_lower <= found.chi + 1e-12
            assert found.chi - found.chi_lower <= 1e-6 * (1.0 + found.chi)
            assert found.chi <= best + 0.12 * (1.0 + abs(best))  # the search is on a coarse grid


def test_e6_psi_is_not_more_general_than_chi():
    """E6: for h = 0, chi <= eps implies Triangle L <= eps max{1, diam}: equal up to that factor, and it is attained."""
    for length in (0.5, 1.0, 7.0):
        problem = rp.Problem(
            rp.smooth.Quadratic(np.zeros((1, 1)), np.array([3.0])),
            rp.Block(rp.sets.Box(0.0, length)),
        )
        found = rp.measures(problem, np.array([length]))
        assert found.gap == pytest.approx(3.0 * length, rel=1e-14)
        assert found.chi == pytest.approx(3.0 * min(1.0, length), rel=1e-12)
        assert found.gap == pytest.approx(max(1.0, length) * found.chi, rel=1e-12)
        assert found.psi == -found.gap


def test_e6_the_slopes_of_h_need_not_be_bounded_on_a_compact_set():
    """E6: "varsigma is finite since S is compact" is false: h = -sqrt(x) on [0, 1], with slopes 1/(2 sqrt(x))."""
    x = 10.0 ** -np.arange(2.0, 14.0, 2.0)
    slopes = 0.5 / np.sqrt(x)
    assert np.all(np.diff(slopes) > 0)
    assert slopes[-1] > 1e5
    y = np.linspace(1e-9, 1.0, 1001)
    for a in x:  # convex: above every tangent
        assert np.all(-np.sqrt(y) >= -np.sqrt(a) - 0.5 / np.sqrt(a) * (y - a) - 1e-12)


def test_e6_a_round_trip_between_the_measures_loses_a_square_root():
    """E6: Triangle L <= eps gives ||P|| <= sqrt(eps / gamma), which gives back Triangle L = O(sqrt(eps)) only.

    x^2/2 on [-1, 1]: at a distance t from the minimum Triangle L is about t, and ||P|| is t for gamma = 1. The other
    way, Triangle L = gamma ||P||^2 is attained by a slope on a short interval.
    """
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(1)), rp.Block(rp.sets.Box(-1.0, 1.0)))
    t = np.array([[1e-2], [1e-4], [1e-6]])
    found = rp.measures(problem, t, gamma=1.0)
    np.testing.assert_allclose(found.residual, t[:, 0], rtol=1e-9)
    assert np.all(found.gap > 0.99 * t[:, 0])
    short = rp.Problem(
        rp.smooth.Quadratic(np.zeros((1, 1)), np.ones(1)), rp.Block(rp.sets.Box(0.0, 1e-3))
    )
    found = rp.measures(short, np.array([1e-3]), gamma=1e-3)
    assert found.gap == pytest.approx(found.gamma * found.residual**2, rel=1e-12)


def test_measures_of_several_blocks_are_those_of_their_product():
    """psi of the product is the sum of the blocks' gaps (E25); chi and P are joint, not blockwise."""
    A = tensor(3, 2, 4)
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.2))
    problem = rp.Problem(rp.smooth.Multilinear(A), [block] * 3)
    rng = np.random.default_rng(4)
    xs = random_points(rng, problem, 5)
    found = rp.measures(problem, xs, gamma=0.3)
    certificate = rp.certify(problem, xs)
    np.testing.assert_allclose(found.gap, certificate.sum, rtol=0, atol=1e-12)
    total = np.sum([np.abs(x).sum(-1) for x in xs], axis=0) + 10.0
    for inequality in found.inequalities:
        holds(inequality, total)
    np.testing.assert_allclose(found.diameter, np.sqrt(12.0), rtol=1e-14)
    points = [
        block.oracle.prox(g, x, 1 / 0.3, 2.0).point
        for block, g, x in zip(problem.blocks, problem.smooth.gradient(xs), xs, strict=True)
    ]
    joint = sum(np.sum((y - x) ** 2, axis=-1) for x, y in zip(xs, points, strict=True))
    np.testing.assert_allclose(found.residual, np.sqrt(joint) / 0.3, rtol=1e-12)
