"""omega_D, its inverse and the step length against their definitions."""

import math

import array_api_strict as strict
import mpmath
import numpy as np
import pytest

from restpoint.errors import DataError
from restpoint.omega import conjugate, leading_constant, omega, omega_inverse, step_length

EXPONENTS = (1.05, 1.1, 4 / 3, 1.5, 1.9, 2.0)
CURVATURES = (1e-3, 0.7, 4.0, 1e4)
# Gaps as multiples of D, on both sides of the branch point p/2 and at it.
SHARES = (1e-4, 0.03, 0.4, 0.5, 0.66, 0.75, 0.999, 1.0, 1.001, 3.0)


def maximiser(a, D, p):
    """The s in [0, 1] that maximises s a - s^p D / 2, by bisection on its derivative in 60 digits."""
    with mpmath.workdps(60):
        a, D, p = mpmath.mpf(a), mpmath.mpf(D), mpmath.mpf(p)
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        if a - p * D / 2 >= 0:
            return high
        for _ in range(400):
            middle = (low + high) / 2
            if a - p * middle ** (p - 1) * D / 2 > 0:
                low = middle
            else:
                high = middle
        return low


def omega_by_definition(a, D, p):
    with mpmath.workdps(60):
        s = maximiser(a, D, p)
        return s * mpmath.mpf(a) - s ** mpmath.mpf(p) * mpmath.mpf(D) / 2


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("D", CURVATURES)
def test_omega_and_step_length_equal_their_definition(p, D):
    for share in SHARES:
        a = share * D
        exact = float(omega_by_definition(a, D, p))
        assert omega(a, D, p) == pytest.approx(exact, rel=1e-12, abs=0)
        assert float(omega(np.asarray([a]), D, p)[0]) == pytest.approx(exact, rel=1e-12, abs=0)
        s = float(maximiser(a, D, p))
        assert step_length(a, D, p) == pytest.approx(s, rel=1e-11, abs=0)
        assert float(step_length(np.asarray([a]), D, p)[0]) == pytest.approx(s, rel=1e-11, abs=0)


@pytest.mark.parametrize("p", EXPONENTS)
def test_omega_equals_a_dense_grid(p):
    s = np.linspace(0.0, 1.0, 200_001)
    for a, D in ((0.3, 1.0), (2.0, 3.0), (5.0, 1.0)):
        on_grid = np.max(s * a - 0.5 * D * s**p)
        assert -1e-15 <= omega(a, D, p) - on_grid <= 1e-9
        best = s[np.argmin(-s * a + 0.5 * D * s**p)]
        assert step_length(a, D, p) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("p", [2.5, 3.0, 7.0])
def test_omega_above_two(p):
    """For concave f the formulas serve p > 2 as well."""
    for share in (0.01, 0.9, p / 2, 4.0):
        assert omega(share, 1.0, p) == pytest.approx(
            float(omega_by_definition(share, 1.0, p)), rel=1e-13
        )
        assert omega_inverse(omega(share, 1.0, p), 1.0, p) == pytest.approx(share, rel=1e-13)
    assert omega(0.3, 0.0, p) == 0.3
    assert step_length(0.3, 0.0, p) == 1.0


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("D", CURVATURES)
def test_inverse_on_both_branches(p, D):
    for share in SHARES:
        a = share * D
        assert omega_inverse(omega(a, D, p), D, p) == pytest.approx(a, rel=1e-11, abs=0)
        v = share * D
        assert omega(omega_inverse(v, D, p), D, p) == pytest.approx(v, rel=1e-11, abs=0)
        assert omega(omega_inverse(np.asarray([v]), D, p), D, p)[0] == pytest.approx(v, rel=1e-11)
    # The branches meet: at a = p D / 2, v = (p - 1) D / 2.
    assert omega(0.5 * p * D, D, p) == pytest.approx(0.5 * (p - 1) * D, rel=1e-13)
    assert omega_inverse(0.5 * (p - 1) * D, D, p) == pytest.approx(0.5 * p * D, rel=1e-13)


@pytest.mark.parametrize("p", EXPONENTS)
def test_monotone_and_convex(p):
    a = np.linspace(-0.5, 3.0, 4001)
    values = omega(a, 1.3, p)
    first = np.diff(values)
    assert np.all(first >= 0)
    assert np.all(first[a[:-1] > 0.3] > 0)
    assert np.all(np.diff(first) >= -1e-14)
    v = np.linspace(0.0, 3.0, 4001)
    inverse = np.diff(omega_inverse(v, 1.3, p))
    assert np.all(inverse > 0)
    assert np.all(np.diff(inverse) <= 1e-14)
    # Larger curvature, smaller guaranteed decrease.
    assert np.all(np.diff(omega(0.7, np.linspace(0.0, 5.0, 1001), p)) <= 1e-16)


def test_leading_constant():
    assert leading_constant(2.0) == 0.5
    gains = {1.1: 71.8, 1.2: 4.29, 4 / 3: 1.6875, 1.5: 1.1852}
    for p, gain in gains.items():
        assert 2 * leading_constant(p) == pytest.approx(gain, rel=5e-3 if p < 1.2 else 2e-3)
    grid = np.linspace(1.01, 2.0, 500)
    assert all(leading_constant(float(p)) >= 0.5 for p in grid)
    assert leading_constant(1.0001) == math.inf
    for p in (1.05, 1.5, 1.9):
        short = leading_constant(p) * 0.1 ** conjugate(p) / 2.0 ** (conjugate(p) - 1)
        assert omega(0.1, 2.0, p) == pytest.approx(short, rel=1e-12)
    assert conjugate(1.5) == pytest.approx(3.0, rel=1e-15)


def test_p_two_closed_form():
    a, D = np.asarray([0.1, 1.0, 2.0, 3.5]), 2.0
    np.testing.assert_allclose(omega(a, D), [0.0025, 0.25, 1.0, 2.5], rtol=1e-15)
    np.testing.assert_allclose(omega_inverse(np.asarray([0.25, 1.0, 2.5]), D), [1.0, 2.0, 3.5])
    assert omega(1.0, 4.0) == 0.125
    assert omega_inverse(0.125, 4.0) == 1.0


def both(function, a, D, p):
    """The value from Python numbers, from arrays, and from mixtures of the two, which must agree."""
    number = function(a, D, p)
    assert isinstance(number, (int, float))
    array = float(function(np.asarray([a]), np.asarray([D]), p)[0])
    assert float(function(np.asarray([float(a)]), D, p)[0]) == pytest.approx(array, nan_ok=True)
    assert float(function(a, np.asarray([float(D)]), p)[0]) == pytest.approx(array, nan_ok=True)
    assert number == pytest.approx(array, rel=1e-14, abs=0, nan_ok=True)
    return number


@pytest.mark.parametrize("p", EXPONENTS)
def test_edges(p):
    assert both(omega, 3.0, 0.0, p) == 3.0
    assert both(omega, 0.0, 0.0, p) == 0.0
    assert both(omega, 0.0, 2.0, p) == 0.0
    assert both(omega, -1.0, 2.0, p) == 0.0
    assert both(omega, -1.0, 0.0, p) == 0.0
    assert both(omega, math.inf, 2.0, p) == math.inf
    assert both(omega, -math.inf, 2.0, p) == 0.0
    assert both(omega, 1.0, math.inf, p) == 0.0
    assert both(omega_inverse, 3.0, 0.0, p) == 3.0
    assert both(omega_inverse, 0.0, 0.0, p) == 0.0
    assert both(omega_inverse, 0.0, 2.0, p) == 0.0
    assert both(omega_inverse, -1.0, 2.0, p) == 0.0
    assert both(omega_inverse, math.inf, 2.0, p) == math.inf
    assert both(step_length, 3.0, 0.0, p) == 1.0
    assert both(step_length, 0.0, 0.0, p) == 0.0
    assert both(step_length, 0.0, 2.0, p) == 0.0
    assert both(step_length, -1.0, 2.0, p) == 0.0
    assert both(step_length, -1.0, 0.0, p) == 0.0
    assert both(step_length, math.inf, 2.0, p) == 1.0
    assert both(step_length, 1e-300, 1e300, p) == 0.0


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("function", [omega, omega_inverse, step_length])
def test_nan_is_never_hidden(function, p):
    for other in (-1.0, 0.0, 0.5, 10.0, math.inf):
        assert math.isnan(both(function, math.nan, abs(other), p))
    for other in (-1.0, 0.0, 0.5, 10.0):
        assert math.isnan(both(function, other, math.nan, p))
    assert math.isnan(both(function, math.nan, math.nan, p))


@pytest.mark.parametrize("p", [1.0 + 1e-9, 1.0001, 1.001, 1.01])
def test_p_close_to_one(p):
    """q is huge: nothing overflows, and what is left is the limit p = 1, max(0, a - D/2)."""
    for a, D in ((0.4, 1.0), (0.6, 1.0), (1e200, 1e200), (1e-200, 1e200), (1e200, 1e-200)):
        limit = max(0.0, a - 0.5 * D)
        value = both(omega, a, D, p)
        assert limit * (1 - 1e-14) <= value <= limit + 6 * (p - 1) * max(a, D)
        assert 0.0 <= both(step_length, a, D, p) <= 1.0
    for v, D in ((0.4, 1.0), (1e-300, 1.0), (1e200, 1e200), (1e-200, 1e200)):
        inverse = both(omega_inverse, v, D, p)
        assert math.isfinite(inverse)
        assert inverse <= v + 0.5 * p * D * (1 + 1e-12)


def test_inverse_does_not_underflow():
    """A certificate that underflows to 0 would be false."""
    assert both(omega_inverse, 1e-300, 1e300, 2.0) == pytest.approx(math.sqrt(2.0), rel=1e-14)
    assert both(omega_inverse, 1e-300, 1e-300, 1.5) > 1e-300


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("function", [omega, omega_inverse, step_length])
def test_float32_stays_float32(function, p):
    a = np.asarray([-1.0, 0.0, 1e-30, 0.1, 1.0, 50.0, 1e30, np.inf], dtype=np.float32)
    for D in (np.full(a.shape, 2.0, dtype=np.float32), np.zeros(a.shape, np.float32), 2.0, 0.0):
        single = function(a, D, p)
        assert single.dtype == np.float32
        double = function(a.astype(np.float64), np.asarray(D, dtype=np.float64), p)
        np.testing.assert_allclose(single, double, rtol=2e-5, atol=1e-38)
    assert function(1.0, a[2:-1], p).dtype == np.float32


@pytest.mark.parametrize("p", [1.5, 2.0])
@pytest.mark.parametrize("function", [omega, omega_inverse, step_length])
def test_standard_arrays(function, p):
    a = np.asarray([-1.0, 0.0, 0.3, 5.0, math.nan])
    D = np.asarray([1.0, 0.0, 2.0, 2.0, 2.0])
    answer = function(strict.asarray(a), strict.asarray(D), p)
    np.testing.assert_array_equal(np.asarray(answer), function(a, D, p))
    mixed = np.asarray(function(strict.asarray(a), 2.0, p))
    np.testing.assert_array_equal(mixed, function(a, 2.0, p))
    mixed = np.asarray(function(0.3, strict.asarray(D), p))
    np.testing.assert_array_equal(mixed, function(0.3, D, p))


@pytest.mark.parametrize("function", [omega, omega_inverse, step_length])
def test_broadcasting_and_inputs_untouched(function):
    a, D = np.asarray([[0.1], [3.0], [-1.0]]), np.asarray([0.0, 1.0, 2.0, 9.0])
    kept = a.copy(), D.copy()
    values = function(a, D, 1.5)
    assert values.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            one = function(float(a[i, 0]), float(D[j]), 1.5)
            assert values[i, j] == pytest.approx(one, rel=1e-14)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(D, kept[1])


@pytest.mark.parametrize("function", [omega, omega_inverse])
def test_what_is_no_number_is_refused(function):
    for wrong in ("x", None, [1.0, 2.0], 1j, True, np.asarray(["x"]), np.asarray([1j])):
        with pytest.raises(DataError, match=r"[av] must be a real number or an array of such, got"):
            function(wrong, 2.0)
        with pytest.raises(DataError, match="curvature must be a real number or an array of such"):
            function(1.0, wrong)
    for curvature in (-1.0, np.asarray([1.0, -1.0]), strict.asarray([-2.0])):
        with pytest.raises(DataError, match="curvature must be >= 0, got"):
            function(1.0, curvature)
    for p in (1.0, -1, 0.5, math.nan, math.inf, "2", None, [2]):
        with pytest.raises(DataError, match="p must be a number > 1, got"):
            function(1.0, 2.0, p)
    assert function(np.float32(1.0), np.int64(4)) == pytest.approx(function(1.0, 4.0), rel=1e-6)
