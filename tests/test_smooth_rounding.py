"""Rounding bounds: sound against exact arithmetic on data of every scale, and not absurdly loose (theory A12)."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from restpoint.array import UNIT_ROUNDOFF
from restpoint.smooth import Multilinear, Quadratic
from smooth_cases import cases

NAMES = [name for name in cases() if name != "user code"]


def errors_and_bounds(case, xs):
    """(true errors, bounds) of the value and of all gradient entries, as two lists."""
    smooth = case.smooth()
    value, gradient = smooth.value_and_gradient(xs)
    bound, bounds = smooth.rounding(xs)
    errors = [abs(mpmath.mpf(float(value)) - case.exact_value(xs))]
    allowed = [mpmath.mpf(float(bound))]
    for g, exact, e in zip(gradient, case.exact_gradient(xs), bounds, strict=True):
        assert e.shape == g.shape
        errors += [
            abs(mpmath.mpf(float(a)) - b) for a, b in zip(g.ravel(), exact.ravel(), strict=True)
        ]
        allowed += [mpmath.mpf(float(b)) for b in e.ravel()]
    return errors, allowed


@pytest.mark.parametrize("spread", [0.0, 3.0, 12.0])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_sound(name, spread):
    case = cases(spread)[name]
    rng = np.random.default_rng(0)
    for _ in range(4):
        xs = tuple(
            x * 10.0 ** rng.uniform(-spread, spread, x.shape) if spread else x
            for x in case.points(rng)
        )
        errors, allowed = errors_and_bounds(case, xs)
        assert all(e <= a for e, a in zip(errors, allowed, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_not_absurdly_loose(name):
    case = cases()[name]
    rng = np.random.default_rng(1)
    worst_errors, worst_allowed = [], []
    for _ in range(12):
        errors, allowed = errors_and_bounds(case, case.points(rng))
        worst_errors.append(max(errors[1:]))
        worst_allowed.append(max(allowed[1:]))
    assert max(worst_allowed) <= 300 * max(worst_errors)


def test_zero_and_tiny_points():
    for name in NAMES:
        case = cases()[name]
        for scale in (0.0, 1e-160, 1e-310):
            xs = tuple(scale * x for x in case.points(np.random.default_rng(2)))
            value, gradient = case.smooth().value_and_gradient(xs)
            bound, bounds = case.smooth().rounding(xs)
            assert abs(mpmath.mpf(float(value)) - case.exact_value(xs)) <= float(bound)
            assert all(np.all(np.isfinite(g)) for g in gradient)
            assert all(np.all(e >= 0) for e in bounds)


def test_cancellation_is_seen():
    """x'Qx/2 with a huge cancelling pair: the bound follows |Q||x|, not the small result."""
    smooth = Quadratic(np.array([[1e16, 1.0], [1.0, -1e16]]))
    bound, (entries,) = smooth.rounding((np.array([1.0, 1.0]),))
    assert bound > UNIT_ROUNDOFF * 1e16
    assert np.all(entries > UNIT_ROUNDOFF * 1e16)


def test_the_depth_is_the_real_one():
    """Order 4, n = 10: far below gamma_{n^3}, which a single long sum of all entries would need."""
    form = Multilinear(np.ones((10, 10, 10, 10)))
    xs = (np.ones(10),) * 4
    _, entries = form.rounding(xs)
    relative = max(float(e.max()) for e in entries) / 1000.0
    assert 100 * UNIT_ROUNDOFF < relative < 120 * UNIT_ROUNDOFF
