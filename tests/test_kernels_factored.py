"""CP tensors against the dense tensor that they stand for."""

import mpmath
import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import DataError, ShapeError
from restpoint.kernels import Reference
from restpoint.kernels.factored import Factored

SIZES = [(3, 4), (2, 1, 5), (3, 2, 4, 2)]


def made(sizes, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(rank)
    factors = tuple(rng.standard_normal((n, rank)) for n in sizes)
    letters = "abcd"[: len(sizes)]
    rule = ",".join(f"{letter}r" for letter in letters) + ",r->" + letters
    return weights, factors, np.einsum(rule, *factors, weights)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_contractions_equal_those_of_the_dense_tensor(sizes, batch):
    weights, factors, dense = made(sizes)
    rng = np.random.default_rng(1)
    xs = tuple(rng.standard_normal((*batch, n)) for n in sizes)
    found = Factored(weights, factors).all_partials(xs)
    wanted = Reference(dense).all_partials(xs)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.max(np.abs(dense)) * 30)


def test_kept_coefficients_follow_updates():
    weights, factors, dense = made((3, 2, 4))
    rng = np.random.default_rng(2)
    xs = [rng.standard_normal(n) for n in (3, 2, 4)]
    kept = Factored(weights, factors).keep(tuple(xs))
    for i in (1, 0, 2, 0):
        xs[i] = rng.standard_normal(len(xs[i]))
        kept.update(i, xs[i])
        for m in range(3):
            wanted = Reference(dense).partial(tuple(xs), m)
            np.testing.assert_allclose(kept.partial(m), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_spectral_bound_holds_and_is_exact_for_rank_one(sizes):
    for seed in range(20):
        weights, factors, dense = made(sizes, rank=4, seed=seed)
        bound = Factored(weights, factors).spectral_bound()
        rng = np.random.default_rng(seed)
        for _ in range(20):
            xs = [rng.standard_normal(n) for n in sizes]
            xs = tuple(x / np.linalg.norm(x) for x in xs)
            assert abs(Reference(dense).value(xs)) <= bound
    weights, factors, _ = made(sizes, rank=1)
    exact = abs(weights[0]) * np.prod([np.linalg.norm(f) for f in factors])
    assert exact <= Factored(weights, factors).spectral_bound() <= exact * (1 + 1e-13)


def test_orthogonal_factors_have_the_bound_of_their_largest_weight():
    eye = np.eye(5)
    bound = Factored(np.array([3.0, 2.0, 1.0, 1.0, 1.0]), (eye, eye, eye)).spectral_bound()
    assert 3.0 <= bound <= 3.0 * (1 + 1e-10)


def test_the_rounding_bound_is_sound_in_fifty_digits():
    for seed in range(10):
        weights, factors, _ = made((4, 3, 5), seed=seed)
        smooth = rp.smooth.FactoredTensor((weights, factors))
        rng = np.random.default_rng(seed)
        xs = tuple(rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3, n) for n in (4, 3, 5))
        _, gradient = smooth.value_and_gradient(xs)
        _, errors = smooth.rounding(xs)
        with mpmath.workdps(50):
            for i in range(3):
                others = [m for m in range(3) if m != i]
                products = [mpmath.mpf(float(w)) for w in weights]
                for m in others:
                    for r in range(len(products)):
                        products[r] *= mpmath.fsum(
                            mpmath.mpf(float(a)) * mpmath.mpf(float(b))
                            for a, b in zip(factors[m][:, r], xs[m], strict=True)
                        )
                for j in range(len(xs[i])):
                    exact = -mpmath.fsum(
                        p * mpmath.mpf(float(factors[i][j, r])) for r, p in enumerate(products)
                    )
                    assert abs(exact - mpmath.mpf(float(gradient[i][j]))) <= errors[i][j]


def test_the_form_solves_as_the_dense_tensor_does():
    weights, factors, dense = made((6, 5, 4), rank=2, seed=3)
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    method = rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep())
    runs = [
        rp.solve(rp.Problem(f, [block] * 3), method, starts=6)
        for f in (rp.smooth.FactoredTensor((weights, factors)), rp.smooth.Multilinear(dense))
    ]
    assert runs[0].certified.all()
    assert runs[1].certified.all()
    np.testing.assert_allclose(runs[0].value, runs[1].value, atol=1e-6)


def test_laws():
    weights, factors, _ = made((4, 3, 5))
    smooth = rp.smooth.FactoredTensor((weights, factors))
    rp.testing.check_smooth(smooth, [rp.sets.L2Ball()] * 3)
    tied = rp.smooth.FactoredTensor((weights, (factors[0],) * 3), tied=(0, 0, 0))
    rp.testing.check_smooth(tied, [rp.sets.L2Ball()])


def test_rank_one_round_trip():
    xs = (np.array([0.6, 0.8]), np.array([1.0, 0.0, 0.0]))
    f = rp.smooth.FactoredTensor(rp.smooth.rank_one(xs, 2.0), sign=1.0)
    assert float(f.value(xs)) == pytest.approx(2.0, rel=1e-15)
    with pytest.raises(ShapeError, match="one vector"):
        rp.smooth.rank_one((np.ones((2, 3)), np.ones(2)))


@pytest.mark.parametrize(
    ("cp", "error", "message"),
    [
        (3.0, ShapeError, r"pair \(weights, factors\)"),
        ((None, [np.eye(2)]), ShapeError, "at least 2 factors"),
        ((None, [np.eye(2), np.ones((3, 3))]), ShapeError, "same number of columns"),
        ((np.ones(3), [np.eye(2), np.eye(2)]), ShapeError, "weights has shape"),
        ((None, [np.eye(2), np.full((2, 2), np.nan)]), DataError, r"factors\[1\] contains NaN"),
    ],
)
def test_bad_input(cp, error, message):
    with pytest.raises(error, match=message):
        rp.smooth.FactoredTensor(cp)


def test_tied_modes_are_checked():
    weights, factors, _ = made((3, 3, 2))
    with pytest.raises(ShapeError, match="one size"):
        rp.smooth.FactoredTensor((weights, factors), tied=(0, 0, 0))
    with pytest.raises(DataError, match="order of appearance"):
        rp.smooth.FactoredTensor((weights, factors), tied=(1, 0, 0))
    with pytest.raises(ShapeError, match="has 2 entries"):
        rp.smooth.FactoredTensor((weights, factors), tied=(0, 1))
