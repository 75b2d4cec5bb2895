"""The counts of steps found by trial, of inexact and sampled gradients, and of cyclic sweeps, in exact arithmetic."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from restpoint import bounds
from restpoint.errors import DataError, ShapeError

EXPONENTS = (1.1, 1.25, 1.5, 1.9, 2.0)
mpf = mpmath.mpf


def omega_exact(a, D, p):
    """omega_D in the working precision of mpmath."""
    a, D, p = mpf(a), mpf(D), mpf(p)
    if a <= 0:
        return mpf(0)
    q = p / (p - 1)
    return a / q * (2 * a / (p * D)) ** (q - 1) if a <= p * D / 2 else a - D / 2


def root(function, target, high):
    """The v in (0, high] with function(v) = target, function increasing."""
    low, high = mpf(0), mpf(high)
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) <= target else (low, middle)
    return low


def omega_inverse_exact(v, D, p):
    v, D, p = mpf(v), mpf(D), mpf(p)
    q = p / (p - 1)
    if D == 0 or v > (p - 1) * D / 2:
        return v + D / 2
    return (q * v) ** (1 / q) * (p * D / 2) ** (1 / p)


def ceiling(quotient):
    return max(1, int(mpmath.ceil(quotient)))


def draws(seed, count):
    """(eps, delta, constants, diameters, p), small enough that every count is an exact float."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p = EXPONENTS[rng.integers(len(EXPONENTS))]
        constants, diameters = rng.uniform(0.1, 2.0, 2), rng.uniform(0.2, 2.0, 2)
        D = float(np.max(constants * diameters**p))
        eps = D * rng.uniform(0.3 if p < 1.4 else 0.05, 1.5)
        yield rng, eps, rng.uniform(0.0, 20.0), tuple(constants), tuple(diameters), p


# --- A3 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel", "max-improvement"])
@pytest.mark.parametrize("measure", ["max", "sum"])
def test_addition_3_in_fifty_digits(order, measure):
    for _, eps, delta, constants, diameters, p in draws(1, 60):
        found = bounds.addition_3(
            eps=eps,
            delta=delta,
            constants=constants,
            diameters=diameters,
            p=p,
            order=order,
            measure=measure,
        )
        with mpmath.workdps(60):
            parts = [mpf(c) * mpf(d) ** mpf(p) for c, d in zip(constants, diameters, strict=True)]
            D = {
                "jacobi": sum(parts),
                "gauss-seidel": sum(parts) + max(parts),
                "max-improvement": max(parts),
            }[order]
            gap = mpf(eps) / (2 if measure == "sum" and order != "jacobi" else 1)
            power = (D / gap) ** (1 / (mpf(p) - 1))
            N = ceiling(2 * mpf(delta) / gap * max(1, 2 * power))
            looks = 2 * N - 1 + int(mpmath.ceil(mpmath.log(max(1, 2 * power), 2)))
        assert looks <= found.count <= (looks if p == 2.0 else looks * (1 + 1e-11) + 3)
        assert found.counts == "trials"
        assert found.paper_bound is None


def test_addition_3_by_hand_and_for_concave_f():
    # D = 3 * 2^2 + 1 = 13, eps = 1/2: s >= 1/52, N = ceil(2 * 7.1 / (1/2) * 52)
    found = bounds.addition_3(eps=0.5, delta=7.1, constants=(3.0, 1.0), diameters=(2.0, 1.0))
    N = math.ceil(2 * Fraction(7.1) / Fraction(1, 2) * 52)
    assert found.count == 2 * N - 1 + 6  # log2 of 52 is between 5 and 6
    assert isinstance(found.count, float)
    flat = bounds.addition_3(eps=0.3, delta=1.0, constants=(0.0,), diameters=(1.0,))
    assert (flat.count, flat.rate) == (2 * 7 - 1, "O(1/eps)")
    unknown = bounds.addition_3(eps=0.25, delta=1.0, constants=None, diameters=(1.0,))
    assert (unknown.count, unknown.missing) == (None, ("the constant lambda",))


@pytest.mark.parametrize("order", ["jacobi", "gauss-seidel", "max-improvement"])
def test_addition_3_known_p_in_fifty_digits(order):
    for rng, eps, delta, constants, diameters, p in draws(2, 80):
        initial = float(10.0 ** rng.uniform(-2, 1))
        measure = ("max", "sum")[rng.integers(2)]
        found = bounds.addition_3_known_p(
            eps=eps,
            delta=delta,
            constants=constants,
            diameters=diameters,
            initial=initial,
            p=p,
            order=order,
            measure=measure,
        )
        with mpmath.workdps(60):
            largest = max(mpf(initial), 2 * mpf(max(constants)))
            parts = [largest * mpf(d) ** mpf(p) for d in diameters]
            joined = order == "jacobi" and measure == "sum"
            gap = mpf(eps) / (2 if measure == "sum" and not joined else 1)
            N = ceiling(mpf(delta) / omega_exact(gap, sum(parts) if joined else max(parts), p))
            growth = int(mpmath.ceil(mpmath.log(largest / mpf(initial), 2)))
        looks = 2 * N - 1 + growth
        assert looks <= found.count <= (looks if p == 2.0 else looks * (1 + 1e-11) + 3)


# --- A4 --------------------------------------------------------------------------------------------


def test_addition_4_in_fifty_digits():
    for rng, eps, delta, constants, diameters, p in draws(3, 150):
        initial, size = float(10.0 ** rng.uniform(-2, 1)), int(rng.integers(1, 9))
        found = bounds.addition_4(
            eps=eps,
            delta=delta,
            constants=constants[:1],
            diameters=diameters[:1],
            size=size,
            initial=initial,
            p=p,
        )
        with mpmath.workdps(60):
            square = mpf(diameters[0]) ** 2
            D2 = mpf(constants[0]) * mpf(size) ** (1 - mpf(p) / 2) * square ** (mpf(p) / 2)
            steep = max(1, (D2 / mpf(eps)) ** ((2 - mpf(p)) / (mpf(p) - 1)))
            K = max(mpf(initial) * square, 2 * D2 * steep)
            N = ceiling(2 * mpf(delta) / omega_exact(eps, K, 2.0))
            growth = int(mpmath.ceil(mpmath.log(K / (mpf(initial) * square), 2)))
            looks = 2 * N - 1 + growth
            loose = mpmath.ceil(
                8 * mpf(delta) / mpf(eps) * max(1, (D2 / mpf(eps)) ** (1 / (mpf(p) - 1)))
            )
            if mpf(initial) * square <= 2 * D2 * steep:
                assert loose >= N or delta == 0.0  # the form that theory prints is never smaller
        assert looks <= found.count <= looks * (1 + 1e-11) + 3


def test_addition_4_by_hand():
    # p = 2, lambda = diam = 1: K = 2, omega_2(1/2) = 1/16, half of it: N = 32, and log2(2 / (1/2)) = 2.
    data = {"eps": 0.5, "delta": 1.0, "constants": (1.0,), "diameters": (1.0,), "size": 3}
    assert bounds.addition_4(**data, initial=0.5).count == 2 * 32 - 1 + 2
    # A first weight that is far too large is what counts: K = 64, omega_64(1/2) = 1/512.
    far = bounds.addition_4(**data | {"delta": 0.999}, initial=64.0)
    assert far.count == 2 * 1023 - 1
    several = bounds.addition_4(
        eps=0.5, delta=1.0, constants=(1.0, 0.5), diameters=(3.0, 4.0), size=3, initial=0.5
    )
    assert several.constants["diameter_2"] == pytest.approx(5.0, rel=1e-14)
    assert bounds.addition_4(**data | {"constants": None}, initial=0.5).count is None
    assert bounds.addition_4(**data, initial=None).missing == ("the weight that is tried first",)


# --- A5 --------------------------------------------------------------------------------------------


def test_addition_5_in_fifty_digits():
    finite = 0
    for rng, eps, delta, constants, diameters, p in draws(4, 200):
        errors = tuple(rng.uniform(0.0, 0.3, 2) * eps / np.array(diameters))
        reaches = tuple(np.array(diameters) * rng.uniform(0.7, 1.0, 2))
        step = ("conditional-gradient", "proximal-gradient")[rng.integers(2)]
        found = bounds.addition_5(
            eps=eps,
            delta=delta,
            constants=constants,
            diameters=diameters,
            errors=errors,
            reaches=reaches,
            p=p,
            step=step,
        )
        with mpmath.workdps(60):
            parts = []
            for numbers in zip(constants, diameters, errors, reaches, strict=True):
                c, d, eta, R = map(mpf, numbers)
                D = c * d ** mpf(p)
                if step == "conditional-gradient":
                    parts.append(omega_exact(mpf(eps) - 2 * eta * R, D, p))
                else:
                    u = omega_exact(mpf(eps) - eta * R, D, p)
                    parts.append(u - eta * (2 * u / ((mpf(p) - 1) * c)) ** (1 / mpf(p)))
            least = min(parts)
            if least <= mpf(10) ** -10:
                continue
            true = ceiling(mpf(delta) / least)
        finite += 1
        assert true <= found.count <= true * (1 + 1e-9) + 1
    assert finite > 80


def test_addition_5_knows_when_errors_are_too_large():
    data = {"delta": 1.0, "constants": (1.0,), "diameters": (1.0,), "errors": (0.25,)}
    assert bounds.addition_5(eps=0.5, **data).count == math.inf  # eps = 2 eta R
    assert math.isfinite(bounds.addition_5(eps=0.51, **data).count)
    proximal = {"step": "proximal-gradient", **data}
    assert bounds.addition_5(eps=0.75, **proximal).count == math.inf  # eps = 3 eta R
    assert math.isfinite(bounds.addition_5(eps=0.76, **proximal).count)
    assert "no finite count" in str(bounds.addition_5(eps=0.5, **data))
    exact = bounds.theorem_3_1(eps=0.3, delta=1.7, constant=1.0, diameter=1.0)
    assert (
        bounds.addition_5(eps=0.3, **data | {"delta": 1.7, "errors": (0.0,)}).count == exact.count
    )
    with pytest.raises(DataError, match=r"errors is -0\.1"):
        bounds.addition_5(eps=0.5, **data | {"errors": (-0.1,)})
    with pytest.raises(ShapeError, match="expected one per block, 1"):
        bounds.addition_5(eps=0.5, **data | {"errors": (0.1, 0.1)})
    with pytest.raises(DataError, match="step is 'newton'"):
        bounds.addition_5(eps=0.5, **data, step="newton")


def test_slack_is_taken_from_the_decrease():
    """Theory A5(i): N = ceil(delta / (decrease - slack)), and none once nothing is left."""
    data = {"eps": 0.5, "delta": 1.0, "constants": (1.0,), "diameters": (1.0,), "initial": 2.0}
    decrease = 1 / 16  # omega_2(1/2)
    for slack in (0.0, 1 / 64, 1 / 32, 1 / 17):
        N = math.ceil(1 / (Fraction(decrease) - Fraction(slack)))
        assert bounds.addition_3_known_p(**data, slack=slack).count == 2 * N - 1
    assert bounds.addition_3_known_p(**data, slack=decrease).count == math.inf
    assert bounds.addition_3_known_p(**data | {"delta": 0.0}, slack=decrease).count == 1.0
    with pytest.raises(DataError, match="slack is -1"):
        bounds.addition_3_known_p(**data, slack=-1.0)


# --- A7 --------------------------------------------------------------------------------------------


def test_addition_7_in_fifty_digits_and_never_above_its_closed_form():
    for rng, eps, delta, constants, diameters, p in draws(5, 60):
        cross = tuple(rng.uniform(0.0, 2.0, 2))
        measure = ("max", "sum")[rng.integers(2)]
        found = bounds.addition_7(
            eps=eps,
            delta=delta,
            constants=constants,
            diameters=diameters,
            cross=cross,
            p=p,
            measure=measure,
        )
        with mpmath.workdps(60):
            power, q = mpf(p), mpf(p) / (mpf(p) - 1)
            least = mpf(min(constants))
            D = [mpf(c) * mpf(d) ** power for c, d in zip(constants, diameters, strict=True)]

            def gaps(v, D=D, least=least, power=power, q=q, p=p, cross=cross, diameters=diameters):
                return [
                    omega_inverse_exact(v, Di, p)
                    + mpf(H) * mpf(d) * (2 * v / ((power - 1) * least)) ** (1 / q)
                    for Di, d, H in zip(D, diameters, cross, strict=True)
                ]

            total = sum if measure == "sum" else max
            v = root(lambda v, gaps=gaps, total=total: total(gaps(v)), mpf(eps), eps)
            true = ceiling(mpf(delta) / v)
            if measure == "max" and mpf(eps) <= power / 2 * max(D):
                c_p = (2 / power) ** (q - 1) / q
                C = max(
                    (max(D) ** (q - 1) / c_p) ** (1 / q)
                    + mpf(H) * mpf(d) * (2 / ((power - 1) * least)) ** (1 / q)
                    for d, H in zip(diameters, cross, strict=True)
                )
                assert true <= ceiling(mpf(delta) * (C / mpf(eps)) ** q)
        assert true <= found.count <= true * (1 + 1e-9) + 1
        assert found.counts == "sweeps"


def test_addition_7_of_the_tensor_form():
    """Theory A7: H = tau sqrt(d-1) and lambda_i = H on unit balls give 32 tau sqrt(d-1) delta / eps^2 sweeps."""
    tau, d, delta, eps = 3.0, 4, 1.3, 0.25
    H = tau * math.sqrt(d - 1)
    found = bounds.addition_7(
        eps=eps, delta=delta, constants=(H,) * d, diameters=(2.0,) * d, cross=H
    )
    assert found.count == math.ceil(32 * H * delta / eps**2)
    without = {"eps": eps, "delta": delta, "constants": (H,) * d, "diameters": (2.0,) * d}
    assert bounds.addition_7(**without, cross=None).missing == ("the cross-Hoelder constant H",)
    with pytest.raises(DataError, match="E30"):
        bounds.addition_7(**without | {"constants": (0.0,) * d}, cross=H)
    with pytest.raises(ShapeError, match="one per block, 4"):
        bounds.addition_7(**without, cross=(1.0, 2.0))


# --- sampling and smoothing --------------------------------------------------------------------------


def test_sampling_plans_in_exact_fractions_for_p_2():
    rng = np.random.default_rng(6)
    for _ in range(100):
        eps, sigma, delta, weight, diameter, far, slope, r = (
            float(v) for v in np.round(rng.uniform(0.1, 2.0, 8), 2)
        )
        e, s, f, w, d, far_, M, r_ = map(
            Fraction, (eps, sigma, delta, weight, diameter, far, slope, r)
        )
        D = w * d * d

        def T(D, e=e):
            return e - D / 2 if e > D else e * e / (2 * D)

        data = {"eps": eps, "delta": delta, "constant": weight, "diameter": diameter}
        smooth = {"diameter_2": far, "slope": slope, "radius": r}
        cap = min(Fraction(1), e / D)
        plans = {
            bounds.corollary_4_4: ({"sigma": sigma}, 2 * f / T(D), 2 * s * s / w / T(D)),
            bounds.addition_8: ({"sigma": sigma}, 2 * f / T(2 * D), s * s / w / T(2 * D)),
            bounds.theorem_4_6: (smooth, 2 * (f + M * r_) / T(D), (2 * far_ * M / T(D)) ** 2),
            bounds.addition_11: (smooth, 4 * (f + M * r_) / (e * cap), (4 * far_ * M / e) ** 2),
        }
        for theorem, (more, N, m) in plans.items():
            bound = theorem(**data, **more)
            assert bound.constants["iterations"] == max(1, math.ceil(N))
            assert bound.constants["samples"] == max(1, math.ceil(m))
            assert bound.count == max(1, math.ceil(N)) * max(1, math.ceil(m))
            assert bound.counts == "samples"


@pytest.mark.parametrize("p", [1.25, 1.5, 1.9])
def test_addition_8_in_fifty_digits_for_p_below_2(p):
    for rng, eps, delta, constants, diameters, _ in draws(7, 40):
        sigma = float(rng.uniform(0.0, 2.0))
        bound = bounds.addition_8(
            eps=eps, sigma=sigma, delta=delta, constant=constants[0], diameter=diameters[0], p=p
        )
        with mpmath.workdps(60):
            power, q = mpf(p), mpf(p) / (mpf(p) - 1)
            D, w, s = mpf(constants[0]) * mpf(diameters[0]) ** power, mpf(constants[0]), mpf(sigma)
            T = omega_exact(eps, 2 * D, p)

            def noise(m, power=power, q=q, w=w, s=s):
                kappa = ((q - 1) / m) ** (q / 2)
                return (2 / (power * w)) ** (q - 1) / q * kappa * s**q

            N, m = ceiling(2 * mpf(delta) / T), int(bound.constants["samples"])
            assert noise(m) <= T / 2 * (1 + mpf(10) ** -12)
            assert m <= 1 + 1e-9 * m or noise(m * (1 - 1e-9) - 1) > T / 2
        assert N <= bound.constants["iterations"] <= N * (1 + 1e-9) + 1


def test_theorem_4_3_for_p_2_and_above():
    data = {"iterations": 7, "samples": 5, "sigma": 0.3, "delta": 1.0, "diameter": 2.0}
    two = bounds.theorem_4_3(**data, constant=4.0)
    # 1/7 + sigma^2 / (4 m): the same as printed, where q = 2.
    assert two.count == pytest.approx(1 / 7 + 0.09 / 20, rel=1e-12)
    assert two.count >= 1 / 7 + 0.09 / 20
    assert two.paper_bound == pytest.approx(two.count, rel=1e-12)
    four = bounds.theorem_4_3(**data, constant=4.0, p=4.0, concave=True)
    q = 4 / 3
    printed = 1 / 7 + 2 / 16 ** (q - 1) * 0.3**q * 5 ** (1 - q)
    assert four.paper_bound == pytest.approx(printed, rel=1e-12)
    assert four.count == pytest.approx(1 / 7 + 2 ** (2 - q) * (printed - 1 / 7), rel=1e-12)
    with pytest.raises(DataError, match="addition_8"):
        bounds.theorem_4_3(**data, constant=1.0, p=1.5)
    with pytest.raises(DataError, match="concave"):
        bounds.theorem_4_3(**data, constant=1.0, p=3.0)
    with pytest.raises(DataError, match="constant must be > 0"):
        bounds.theorem_4_3(**data, constant=0.0)


def test_what_plans_do_not_know_is_named():
    data = {"eps": 0.1, "delta": None, "constant": 1.0, "diameter": None}
    for theorem in (bounds.corollary_4_4, bounds.addition_8):
        bound = theorem(**data, sigma=None)
        assert bound.count is None
        assert bound.missing == (
            "a lower bound on Phi",
            "the diameter of S",
            "the noise sigma of one sample",
        )
    for theorem in (bounds.theorem_4_6, bounds.addition_11):
        bound = theorem(**data, diameter_2=None, slope=None, radius=0.1)
        assert bound.missing[2:] == ("the Euclidean diameter of S", "the slope M of h")
        with pytest.raises(DataError, match="radius is 0; expected > 0"):
            theorem(**data, diameter_2=1.0, slope=1.0, radius=0.0)


def test_plans_take_one_entry_per_start():
    eps, delta = np.array([[0.1], [0.5]]), np.array([0.0, 1.0, 3.0])
    bound = bounds.corollary_4_4(eps=eps, sigma=0.5, delta=delta, constant=1.0, diameter=1.0)
    assert bound.count.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one = bounds.corollary_4_4(
            eps=float(eps[i, 0]), sigma=0.5, delta=float(delta[j]), constant=1.0, diameter=1.0
        )
        assert one.count == bound.count[i, j]


# --- Lemma 2.2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EXPONENTS)
def test_lemma_2_2_in_fifty_digits(p):
    rng = np.random.default_rng(8)
    for _ in range(100):
        weight, diameter = rng.uniform(0.1, 3.0, 2)
        decrease = float(10.0 ** rng.uniform(-8, 2))
        bound = bounds.lemma_2_2(decrease=decrease, constant=weight, diameter=diameter, p=p)
        with mpmath.workdps(60):
            D = mpf(weight) * mpf(diameter) ** mpf(p)
            gap = omega_inverse_exact(decrease, D, p)
            assert gap <= mpf(bound.count) <= gap * (1 + mpf(10) ** -12)
            q = mpf(p) / (mpf(p) - 1)
            printed = (2 * mpf(decrease)) ** (1 / q) * D ** (1 / mpf(p))
        if bound.paper_bound is None:
            assert printed > D * (1 - mpf(10) ** -12)
        else:
            assert bound.paper_bound == pytest.approx(float(printed), rel=1e-12)
            assert bound.count <= bound.paper_bound * (1 + 1e-12)
    assert "gap" in str(bound)
    assert bounds.lemma_2_2(decrease=1.0, constant=None, diameter=1.0).count is None
