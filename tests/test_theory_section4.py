"""What is wrong in Section 4 of the paper (sampling and smoothing), and what ``bounds`` says instead.

The mathematics alone: exact enumeration where expectations are concerned, no sampling.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from restpoint import bounds
from restpoint.omega import conjugate


def signed_power(x, s):
    return np.sign(x) * np.abs(x) ** s


# --- E11 -------------------------------------------------------------------------------------------


def slack_of_lemma_4_1(a, b, c, p):
    """Left minus right side of Lemma 4.1."""
    left = (signed_power(a - c, p - 1) - signed_power(b - c, p - 1)) * (a - b)
    return left - 0.5 ** (p - 2) * np.abs(a - b) ** p


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, math.pi, 5.5])
def test_e11_lemma_4_1_holds_for_every_real_p_from_2_on_and_is_tight(p):
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 50_000)) * 10.0 ** rng.uniform(-2, 1, 50_000)
    size = (np.abs(a) + np.abs(b) + np.abs(c)) ** p
    assert np.min(slack_of_lemma_4_1(a, b, c, p) / size) >= -1e-12
    assert slack_of_lemma_4_1(3.0, 1.0, 2.0, p) == pytest.approx(0.0, abs=1e-12)  # c in the middle


def test_e11_the_first_case_of_its_proof_is_wrong():
    """E11: "(a-c)^(p-1) - (b-c)^(p-1) >= (a-c)^(p-1)" is printed; p = 3, a = 2, b = 1, c = 0: 3 >= 4 is false."""
    a, b, c, p = 2.0, 1.0, 0.0, 3.0
    left = ((a - c) ** (p - 1) - (b - c) ** (p - 1)) * (a - b)
    assert left == 3.0 < (a - c) ** (p - 1) * (a - b)
    assert left >= (a - b) ** (p - 1) * (a - b)  # what was meant


@pytest.mark.parametrize("p", [1.05, 1.25, 1.5, 1.9])
def test_e11_below_2_it_is_false_and_another_bound_holds(p):
    """E11: for 1 < p < 2 the left side is >= (p-1) |a-b|^2 max(|a-c|, |b-c|)^(p-2)."""
    a, b, c = 1.01, 1.0, 0.0
    assert slack_of_lemma_4_1(a, b, c, p) < 0.0
    if p == 1.5:
        left = (signed_power(a - c, p - 1) - signed_power(b - c, p - 1)) * (a - b)
        assert left == pytest.approx(4.99e-5, rel=1e-3)
        assert left - slack_of_lemma_4_1(a, b, c, p) == pytest.approx(1.41e-3, rel=5e-3)
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 50_000)) * 10.0 ** rng.uniform(-2, 2, 50_000)
    left = (signed_power(a - c, p - 1) - signed_power(b - c, p - 1)) * (a - b)
    far = np.maximum(np.abs(a - c), np.abs(b - c))
    assert np.all(left >= (p - 1) * (a - b) ** 2 * far ** (p - 2) * (1 - 1e-9))


# --- E12 -------------------------------------------------------------------------------------------


def prox_on_the_box(g, z, rho, weight, p):
    """argmin of g'(y - z) + (weight/2) ||y - z||_p^p + rho ||y||_1 over [-1, 1]^n, coordinate by coordinate."""
    up, down = (
        np.clip(z + signed_power(-2.0 * (g + s * rho) / (weight * p), 1 / (p - 1)), -1, 1)
        for s in (1.0, -1.0)
    )
    return np.where(up > 0.0, up, np.where(down < 0.0, down, 0.0))


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, math.e + 1.0])
def test_e12_lemma_4_2_holds_for_every_real_p_from_2_on_and_is_attained(p):
    """E12: (1/2)^p ||x1 - x2||_p^p <= ||g1 - g2||_q^q / (lambda p)^q; "integer p" is not needed."""
    rng, q, worst = np.random.default_rng(2), conjugate(p), 0.0
    for _ in range(2000):
        n, weight, rho = int(rng.integers(1, 5)), 10.0 ** rng.uniform(-1, 1), rng.choice([0.0, 0.3])
        z, (g1, g2) = rng.uniform(-1, 1, n), rng.normal(size=(2, n))
        x1, x2 = (prox_on_the_box(g, z, rho, weight, p) for g in (g1, g2))
        left = 0.5**p * np.sum(np.abs(x1 - x2) ** p)
        right = np.sum(np.abs(g1 - g2) ** q) / (weight * p) ** q
        worst = max(worst, left / right)
    assert worst <= 1.0 + 1e-12
    # z in the middle of the two answers: equality.
    weight, g = 5.0, np.array([0.4])
    x1, x2 = (prox_on_the_box(s * g, np.zeros(1), 0.0, weight, p) for s in (1.0, -1.0))
    left, right = 0.5**p * np.abs(x1 - x2) ** p, np.abs(2 * g) ** q / (weight * p) ** q
    assert left[0] == pytest.approx(right[0], rel=1e-12)


# --- E13 -------------------------------------------------------------------------------------------


def moment_of_the_mean(m, pi, q):
    """E|mean of m samples|^q over E|one sample|^q m^(1-q), X = 1 w.p. pi, else -pi/(1-pi), by the binomial law."""
    one = pi + (1 - pi) * (pi / (1 - pi)) ** q
    total, log_weight = 0.0, m * math.log1p(-pi)
    for k in range(m + 1):
        mean = (k - (m - k) * pi / (1 - pi)) / m
        total += math.exp(log_weight) * abs(mean) ** q
        if k < m:
            log_weight += math.log((m - k) / (k + 1)) + math.log(pi) - math.log1p(-pi)
    return total / (one * m ** (1 - q))


@pytest.mark.parametrize(
    ("q", "m", "pi", "ratio"), [(1.5, 2, 0.02, 1.029), (1.25, 2000, 2.5e-5, 1.306)]
)
def test_e13_the_printed_moment_of_a_mean_is_exceeded_and_the_corrected_one_is_not(q, m, pi, ratio):
    found = moment_of_the_mean(m, pi, q)
    assert found == pytest.approx(ratio, abs=5e-4)
    assert 1.0 < found <= 2.0 ** (2.0 - q)


# --- E14, E15 --------------------------------------------------------------------------------------


def test_e14_the_smallest_sampled_decrease_is_biased_and_a_uniform_index_is_not():
    """E14 (a): f = x/2 on [-100, 1], lambda = 1, p = 2, x^1 = 1, G in {0, 1} w.p. 1/2, N = 3, all 8 paths.

    E[Triangle U~ at the argmin] = 1/16 < E[Triangle U there] = 1/8, against the first inequality of Theorem 4.3.
    """
    N, paths = 3, []
    for samples in itertools.product((Fraction(0), Fraction(1)), repeat=N):
        x, sampled, true = Fraction(1), [], []
        for G in samples:
            sampled.append(G * G / 2)  # the step is -G, inside of the set
            true.append(Fraction(1, 8))  # Triangle U of the slope 1/2
            x -= G
        paths.append((sampled, true))
    weight = Fraction(1, len(paths))
    smallest = [min(range(N), key=lambda k, s=s: s[k]) for s, _ in paths]
    seen = sum(weight * s[k] for (s, _), k in zip(paths, smallest, strict=True))
    real = sum(weight * t[k] for (_, t), k in zip(paths, smallest, strict=True))
    assert (seen, real) == (Fraction(1, 16), Fraction(1, 8))
    uniform = [weight * Fraction(1, N) * v for _, t in paths for v in t]
    mean = [weight * Fraction(1, N) * v for s, _ in paths for v in s]
    assert (
        sum(uniform) == Fraction(1, 8) <= sum(mean) == Fraction(1, 4)
    )  # Jensen, for a uniform index
    # Phi falls by at most (1 + 100)/2; noise variance 1/4: E15 bounds the uniform index, m = 1.
    bound = bounds.theorem_4_3(
        iterations=N, samples=1, sigma=0.5, delta=50.5, constant=1.0, diameter=101.0
    )
    assert float(sum(uniform)) <= bound.count


# --- E16 -------------------------------------------------------------------------------------------


def test_e16_the_printed_batch_and_total_can_be_far_too_small():
    """E16: p = 2, f = x on [0, 1], x^1 = 1, sigma = 1e-3, eps = .1: printed N = m = 1, Triangle U(x^1) = .5 > .005."""
    data = {"eps": 0.1, "sigma": 1e-3, "delta": 1.0, "constant": 1.0, "diameter": 1.0}
    bound = bounds.corollary_4_4(**data)
    assert bound.paper_bound == 1.0
    target = 0.5 * 0.1**2
    decrease = max(x - 0.5 * x * x for x in np.linspace(0.0, 1.0, 1001))
    assert decrease == pytest.approx(0.5)
    assert decrease > 90 * target
    assert bound.constants["iterations"] == 400.0  # 2 delta / target
    assert bound.constants["samples"] == 1.0


@pytest.mark.parametrize("p", [2.0, 3.0, 5.0, 10.0])
def test_e16_the_corrected_plan_meets_its_target_exactly_where_the_printed_one_fails(p):
    """E16: with N = ceil(p delta / T), m = ceil((q A / T)^(p-1)) the bound of E15 is at most T."""
    q, eps = conjugate(p), 0.2
    data = {"delta": 1.0, "sigma": 1.0, "constant": 1.0, "diameter": 1.0, "p": p}
    plan = bounds.corollary_4_4(eps=eps, concave=p > 2.0, **data)
    N, m = (int(plan.constants[name]) for name in ("iterations", "samples"))
    reached = bounds.theorem_4_3(iterations=N, samples=m, concave=p > 2.0, **data)
    T = reached.constants["gap"]
    assert eps * (1 + 1e-9) >= T
    assert (
        bounds.theorem_4_3(
            iterations=max(1, int(0.9 * N)), samples=m, concave=p > 2.0, **data
        ).count
        > 0.5 * eps**q
    )  # and hardly less would do
    if p > 4.0:  # the printed total and batch miss the printed target, by the printed bound
        total = math.ceil(4**p / p / eps ** (p * q) * (1 + (q - 1) ** (1 / q - 1 / p)) ** p)
        batch = math.ceil(min(max(1.0, ((q - 1) * total) ** (1 / q) / p ** (1 / p)), total))
        N = total // batch
        printed = 2 / p ** (q / p) / batch ** (q - 1) + 1 / N
        assert printed > 0.5 * eps**q


def test_e16_defaults_by_hand():
    plan = bounds.corollary_4_4(eps=0.05, sigma=1.0, delta=1.0, constant=1.0, diameter=1.0)
    assert (plan.constants["iterations"], plan.constants["samples"]) == (1600.0, 1600.0)
    exactly = bounds.theorem_4_3(
        iterations=1600, samples=1600, sigma=1.0, delta=1.0, constant=1.0, diameter=1.0
    )
    assert exactly.count == pytest.approx(0.00125, rel=1e-12)


# --- E17, E18 --------------------------------------------------------------------------------------


def test_e17_smoothing_lowers_a_concave_function():
    """E17: h - M r n/(n+1) <= h_r <= h for concave h; the printed direction, h <= h_r, is the convex case."""
    t = (np.arange(200_000) + 0.5) / 100_000 - 1.0  # uniform on [-1, 1]
    for x, r in ((0.0, 1.0), (0.3, 1.0), (2.0, 0.5)):
        h, smooth = -abs(x), float(np.mean(-np.abs(x + r * t)))
        assert h - r / 2 - 1e-9 <= smooth <= h + 1e-9
    assert float(np.mean(-np.abs(t))) == pytest.approx(-0.5, abs=1e-9)  # h_r(0) = -r/2 < 0


def test_e17_the_slope_is_bounded_not_its_square():
    """E17: h = -|x|/2 has ||g||^2 <= 1/4 =: M; the variance of the sampled slopes at 0 is 1/4 > M^2 = 1/16."""
    slopes = np.array([0.5, -0.5])
    assert float(np.var(slopes)) == 0.25
    assert float(np.max(slopes**2)) ** 2 == 0.0625
    assert np.var(slopes) <= np.max(np.abs(slopes)) ** 2


# --- E21 to E23, A11 -------------------------------------------------------------------------------


def smoothed_gaps(x, N, weight, slope=1.0001, r=1.0):
    """Algorithm 4 without noise on f = slope x, h = -|x|, S = [0, 2]: Triangle L of Phi_r at its iterates."""
    gaps = []
    for _ in range(N):
        g = slope - max(-1.0, min(1.0, x / r))  # the mean of -sign(x + r u)
        y = 0.0 if g > 0 else 2.0
        gap = g * (x - y)
        gaps.append(gap)
        if gap <= 0:
            break
        x += min(1.0, gap / (weight * (y - x) ** 2)) * (y - x)
    return gaps


def test_e21_phi_r_may_fall_further_than_phi():
    """E21: f = (1 + 1e-4) x, h = -|x|, S = [0, 2], r = 1, x^1 = 1/2, lambda = 100, eps = .05: N = 32 is too small."""
    x, eps = 0.5, 0.05
    delta = 1.0001 * x - x  # Phi* = 0, Phi(x^1) = 5e-5
    D = 100.0 * 4.0
    printed = math.ceil(4 * delta * D / eps**2)
    assert printed == 32
    gaps = smoothed_gaps(x, 200, 100.0)
    assert min(gaps[:printed]) == pytest.approx(0.217, abs=2e-3)
    assert next(k for k, gap in enumerate(gaps, 1) if gap <= eps) == 66
    data = {"eps": eps, "delta": delta, "constant": 100.0, "diameter": 2.0, "diameter_2": 2.0}
    for theorem in (bounds.theorem_4_6, bounds.addition_11):
        bound = theorem(**data, slope=1.0, radius=1.0)
        assert min(gaps[: int(bound.constants["iterations"])]) <= eps
    printed_samples = math.ceil((2.0 * printed / delta) ** 2)
    assert bounds.theorem_4_6(**data, slope=1.0, radius=1.0).paper_bound == pytest.approx(
        printed * printed_samples, rel=1e-9
    )
    nothing = bounds.theorem_4_6(**data | {"delta": 0.0}, slope=1.0, radius=1.0)
    assert nothing.paper_bound is None  # printed N = 0, m = 0/0
    assert nothing.count >= 1.0


def test_e22_the_smallest_sampled_gap_is_biased():
    """E22: f = 0, h = -|x|, S = [-1, 1], r = 1, m = 4: an even sample has gap 0, whatever the true one is."""
    x = 0.5
    slope = -x  # of h_r at |x| <= r = 1
    true_gap = abs(slope) + slope * x  # max over y in [-1, 1] of slope (x - y)
    signs = [
        (np.sign(s), weight)
        for s, weight in ((1.0, (1 + x) / 2), (-1.0, (1 - x) / 2))  # P(x + u > 0)
    ]
    seen = []
    for draw in itertools.product(signs, repeat=4):
        g = -float(np.mean([s for s, _ in draw]))
        seen.append((math.prod(w for _, w in draw), abs(g) + g * x))
    assert sum(w for w, _ in seen) == pytest.approx(1.0)
    assert min(gap for _, gap in seen) == 0.0 < true_gap
    assert (
        sum(w * gap for w, gap in seen) >= true_gap
    )  # Jensen: for a fixed index the mean is no smaller


def test_e23_the_capped_step_needs_far_smaller_batches():
    """E23: D = 200, eps = 1: N = 400 with m = 2.56e6 as printed in form, m = 64 with the cap of A11."""
    data = {"eps": 1.0, "delta": 0.5, "constant": 200.0, "diameter": 1.0, "diameter_2": 2.0}
    printed = bounds.theorem_4_6(**data, slope=1.0, radius=1e-9)
    assert printed.paper_bound == 400.0 * 2.56e6
    capped = bounds.addition_11(**data, slope=1.0, radius=1e-9)
    assert capped.constants["samples"] == 64.0
    assert capped.constants["iterations"] == pytest.approx(400.0, abs=1.0)
    assert capped.constants["longest_step"] == 1.0 / 200.0
    assert capped.count < 1e-4 * printed.paper_bound
