"""The comparator of Table 2: its formulas, its forms, and its stops."""

import numpy as np
import pytest

from restpoint.errors import DataError
from restpoint.reproduce.admm import Explicit, Thin


def matrices(n=12, seed=0):
    rng = np.random.default_rng(seed)
    K = np.linalg.qr(rng.standard_normal((2 * n, n)))[0]
    F = rng.standard_normal((n, 2 * n))
    H = F @ F.T
    x = rng.standard_normal(n)
    L = float(np.linalg.eigvalsh(H)[-1])
    return H, K, np.full(2 * n, 0.1 * L / np.sqrt(2 * n)), x / np.linalg.norm(x), L


def literal(H, K, w, beta, x, count):
    """The three updates as they are printed, one after the other."""
    y, z = K @ x, np.zeros(len(K))
    for _ in range(count):
        t = beta * K @ x + z
        s = np.sign(t) * np.maximum(np.abs(t) - w, 0.0)
        y = s / max(beta, np.linalg.norm(s))
        x = np.linalg.solve(beta * np.eye(len(H)) - H, K.T @ (beta * y - z))
        z = z + beta * (K @ x - y)
    return x / max(1.0, np.linalg.norm(x)), y


@pytest.mark.parametrize("n", [12, 70])  # one product an iteration, and two
@pytest.mark.parametrize("count", [1, 2, 30])
def test_steps_are_the_printed_updates(n, count):
    H, K, w, x, L = matrices(n)
    found = Explicit(H, K, w, 2.5 * L).steps(x, count)
    np.testing.assert_allclose(found, literal(H, K, w, 2.5 * L, x, count)[0], rtol=0, atol=1e-12)


def test_thin_factors_take_the_same_steps_as_the_explicit_null_space():
    rng = np.random.default_rng(1)
    p, k, r = 60, 8, 3
    Q = np.linalg.qr(rng.standard_normal((p, k)))[0]
    F = rng.standard_normal((p, r))
    N = np.linalg.svd(Q.T)[2][k:].T
    H = N.T @ F @ F.T @ N
    L = float(np.linalg.eigvalsh(H)[-1])
    w = rng.uniform(0.5, 1.5, p) * 0.05 * L / np.sqrt(p)
    x = rng.standard_normal(p - k)
    x /= np.linalg.norm(x)
    explicit, thin = Explicit(H, N, w, 2.5 * L), Thin(F, Q, w, 2.5 * L)
    for count in (1, 5, 60):
        w_thin = thin.steps(N @ x, count)
        np.testing.assert_allclose(w_thin, N @ explicit.steps(x, count), rtol=0, atol=1e-12)
        assert np.max(np.abs(Q.T @ w_thin)) <= 1e-14
    ends = explicit.settled(x, 1e-6, 5000), thin.settled(N @ x, 1e-6, 5000)
    assert ends[0].reached
    assert ends[0].iterations == ends[1].iterations
    assert thin.phi(ends[1].x) == pytest.approx(explicit.phi(ends[0].x), rel=1e-12)


def test_its_own_rule_is_that_of_both_residuals():
    H, K, w, x, L = matrices()
    runner, tolerance = Explicit(H, K, w, 2.5 * L), 1e-4
    end = runner.settled(x, tolerance, 5000)
    assert end.reached

    def holds(count):
        beta, z = 2.5 * L, np.zeros(len(K))
        here, y = x, K @ x
        for _ in range(count):
            last = y
            t = beta * K @ here + z
            s = np.sign(t) * np.maximum(np.abs(t) - w, 0.0)
            y = s / max(beta, np.linalg.norm(s))
            here = np.linalg.solve(beta * np.eye(len(H)) - H, K.T @ (beta * y - z))
            z = z + beta * (K @ here - y)
        small = np.sqrt(len(K)) * tolerance
        sizes = max(np.linalg.norm(here), np.linalg.norm(y))
        apart, moved = np.linalg.norm(K @ here - y), beta * np.linalg.norm(y - last)
        return apart <= small + tolerance * sizes and moved <= small + tolerance * np.linalg.norm(y)

    assert holds(end.iterations)
    assert not holds(end.iterations - 1)
    short = runner.settled(x, tolerance, 3)
    assert (short.reached, short.iterations) == (False, 3)


def test_an_oracle_stops_it_where_phi_is_first_low_enough():
    H, K, w, x, L = matrices()
    runner = Explicit(H, K, w, 3.0 * L)
    target = runner.phi(runner.steps(x, 20))
    end = runner.until(x, target + 1e-12, 500)
    assert end.reached
    assert end.iterations <= 20
    assert runner.phi(end.x) <= target + 1e-9
    values = np.array([phi for phi, _ in zip(runner.values(x), range(20), strict=False)])
    assert int(np.flatnonzero(values <= target + 1e-12)[0]) + 1 == end.iterations
    assert runner.phi(runner.steps(x, end.iterations - 1)) > target
    never = runner.until(x, -1e9, 7)
    assert (never.reached, never.iterations) == (False, 7)
    assert np.linalg.norm(never.x) <= 1.0 + 1e-15


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_beta_below_the_largest_eigenvalue_is_refused(beta):
    H, K, w, _, L = matrices()
    with pytest.raises(DataError, match="beta must exceed the largest eigenvalue"):
        Explicit(H, K, w, beta * L)
    Q = np.linalg.qr(np.ones((12, 1)))[0]
    F = np.random.default_rng(0).standard_normal((12, 2))
    largest = float(np.linalg.norm(F - Q @ (Q.T @ F), 2) ** 2)
    with pytest.raises(DataError, match="beta must exceed the largest eigenvalue"):
        Thin(F, Q, np.ones(12), beta * largest)
