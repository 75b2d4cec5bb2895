"""What multilinear forms of every kind take in, and what they refuse: tensors of other libraries, and vectors."""

import os
import re
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import DataError, ShapeError
from restpoint.kernels import choice, dense, moments
from restpoint.smooth import FactoredTensor, MomentTensor, Multilinear, SparseTensor

SIZES = (40, 30, 50)  # larger than what products are chosen for


def forms():
    rng = np.random.default_rng(0)
    A = rng.standard_normal(SIZES)
    few = tuple(rng.integers(0, n, 500) for n in SIZES)
    factors = [rng.standard_normal((n, 3)) for n in SIZES]
    X = rng.standard_normal((60, 30))
    return {
        "dense": Multilinear(A),
        "dense, float32": Multilinear(A.astype(np.float32)),
        "sparse": SparseTensor(few, np.ones(500), SIZES),
        "factored": FactoredTensor((None, factors)),
        "third moments": MomentTensor(X, 3),
        "fourth cumulant, whitened": MomentTensor(X, 4, cumulant=True, whiten=7),
    }


WAYS = ("one-pass", "support", "products", "reference")


@pytest.fixture(params=[*forms(), *(f"dense, {way}" for way in WAYS)])
def form(request, monkeypatch):
    """Every form, through compiled loops where there are any."""
    monkeypatch.setattr(moments, "LEAST_COMPILED", 0)
    name = request.param
    if name.endswith(WAYS):
        name, way = name.split(", ")
        monkeypatch.setenv(choice.VARIABLE, way)
    return forms()[name]


def test_vectors_of_the_wrong_length_are_refused_before_a_loop_reads_them(form):
    sizes = form.kernel.sizes
    xs = tuple(np.ones(n) for n in sizes)
    for wrong in (
        (xs[0][:-1], *xs[1:]),
        (*xs[:-1], np.ones(sizes[-1] + 1)),
        (xs[0], xs[1][:1], *xs[2:]),
        tuple(np.ones((2, n + 1)) for n in sizes),
        xs[:-1],
        (*xs, xs[0]),
        (np.array(1.0), *xs[1:]),
    ):
        message = r"vectors have shapes .*; expected last axes " + re.escape(str(sizes))
        for call in (
            form.kernel.all_partials,
            form.kernel.value,
            form.kernel.magnitudes,
            lambda xs: form.kernel.partial(xs, 1),
            lambda xs: form.kernel.keep(xs).partial(0),
        ):
            with pytest.raises(ShapeError, match=message):
                call(wrong)
    with pytest.raises(ShapeError, match="vectors have shapes"):
        form.gradient(xs[::-1][1:])
    with pytest.raises(DataError, match="vectors must be arrays, got list"):
        form.kernel.all_partials(([1.0] * sizes[0], *xs[1:]))


def test_vectors_that_fit_the_rows_but_not_the_modes_are_refused():
    """Two lengths exchanged: their products are as long as they should be."""
    A = np.ones((2, 3, 5, 1))
    for kernel in (dense(A), rp.kernels.Reference(A)):
        with pytest.raises(ShapeError, match="vectors have shapes"):
            kernel.all_partials(tuple(np.ones(n) for n in (3, 2, 5, 1)))


def test_whole_numbers_are_not_cut_off(form):
    rng = np.random.default_rng(1)
    whole = tuple(rng.integers(-3, 4, n) for n in form.kernel.sizes)
    floating = tuple(x.astype(float) for x in whole)
    value, gradient = form.value_and_gradient(whole)
    wanted, wanted_gradient = form.value_and_gradient(floating)
    assert float(value) == float(wanted)
    for g, h in zip(gradient, wanted_gradient, strict=True):
        assert g.dtype == np.float64
        assert np.array_equal(g, h)
    sweep = form.sweep(whole)
    for i, h in enumerate(wanted_gradient):
        np.testing.assert_allclose(sweep.partial(i), h, rtol=0, atol=1e-11 * np.max(abs(h)))


@pytest.mark.parametrize("kind", [complex, np.float16, np.longdouble])
def test_vectors_of_other_kinds_are_refused(form, kind):
    xs = tuple(np.ones(n) for n in form.kernel.sizes)
    with pytest.raises(DataError, match=r"vectors have dtype .*float32 or float64"):
        form.gradient((xs[0].astype(kind), *xs[1:]))


def test_axes_of_starts_are_welcome(form):
    rng = np.random.default_rng(2)
    xs = tuple(rng.standard_normal((2, 1, n)) for n in form.kernel.sizes)
    for g, n in zip(form.gradient(xs), form.kernel.sizes, strict=True):
        assert g.shape == (2, 1, n)


def test_tensors_that_are_not_dense_are_sent_to_their_form():
    cp = SimpleNamespace(weights=np.ones(1), factors=[np.ones((2, 1))] * 2)
    for A, form in (
        (SimpleNamespace(subs=np.zeros((1, 2)), vals=np.ones(1), shape=(2, 2)), "SparseTensor"),
        (SimpleNamespace(todense=None, shape=(2, 2)), "SparseTensor"),
        (SimpleNamespace(toarray=None, shape=(2, 2)), "SparseTensor"),
        (cp, "FactoredTensor"),
    ):
        with pytest.raises(DataError, match=rf"A is not dense .* give {form}\(A\)"):
            Multilinear(A)


def test_tensors_of_pyttb_tensorly_and_sparse():
    pyttb = pytest.importorskip("pyttb")
    tensorly = pytest.importorskip("tensorly")
    sparse = pytest.importorskip("sparse")
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, 4, 2)) * (rng.random((3, 4, 2)) < 0.5)
    xs = tuple(rng.standard_normal(n) for n in A.shape)
    wanted = Multilinear(A).gradient(xs)
    given = pyttb.tensor(A)
    form = Multilinear(given)
    if os.environ.get("RESTPOINT_KERNEL") != "reference":  # which needs the order of C
        assert np.shares_memory(form.A, given.data)  # in Fortran's order, and not copied
    for other in (
        form,
        Multilinear(tensorly.tensor(A)),
        rp.smooth.SparseTensor(given.to_sptensor()),
        *(SparseTensor(kind.from_numpy(A)) for kind in (sparse.COO, sparse.GCXS, sparse.DOK)),
    ):
        for g, h in zip(other.gradient(xs), wanted, strict=True):
            np.testing.assert_allclose(g, h, rtol=0, atol=1e-14)
    for wrong in (given.to_sptensor(), sparse.COO.from_numpy(A), sparse.GCXS.from_numpy(A)):
        with pytest.raises(DataError, match=r"give SparseTensor\(A\)"):
            Multilinear(wrong)
    with pytest.raises(DataError, match=r"A is sparse \(COO\); give SparseTensor"):
        rp.smooth.CanonicalPolyadic(sparse.COO.from_numpy(A), [1.0])
    with pytest.raises(DataError, match=r"Q is sparse \(COO\); expected a dense array"):
        rp.smooth.Quadratic(sparse.COO.from_numpy(np.eye(2)))
    assert rp.smooth.CanonicalPolyadic(given, [1.0]).sizes == (3, 4, 2)

    weights, factors = np.array([2.0, -1.0]), [rng.standard_normal((n, 2)) for n in A.shape]
    full = tensorly.cp_to_tensor((weights, factors))
    cp = tensorly.cp_tensor.CPTensor((weights, factors))
    wanted = Multilinear(full).gradient(xs)
    for given in (cp, pyttb.ktensor(factors, weights)):
        for g, h in zip(FactoredTensor(given).gradient(xs), wanted, strict=True):
            np.testing.assert_allclose(g, h, rtol=0, atol=1e-13)
        with pytest.raises(DataError, match=r"give FactoredTensor\(A\)"):
            Multilinear(given)
    out = tensorly.cp_tensor.CPTensor(rp.smooth.rank_one(xs, 3.0))
    outer = 3.0 * np.einsum("i,j,k", *xs)
    np.testing.assert_allclose(tensorly.cp_to_tensor(out), outer, rtol=1e-14)


@pytest.mark.parametrize("cp", [(None, None), (None, 3), (None,), 3.0])
def test_factors_are_a_list_of_matrices(cp):
    with pytest.raises(ShapeError, match=r"pair \(weights, factors\) with one matrix"):
        FactoredTensor(cp)


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ((0.0, 0.0), r"tied\[0\] must be a whole number"),
        ((False, True), r"tied\[0\] must be a whole number"),
        ((-1, 0), r"tied\[0\] must be a whole number >= 0, got -1"),
        ((0, None), r"tied\[1\] must be a whole number"),
        (np.zeros((2, 1), int), "tied must be a list"),
        ("00", "tied must be a list"),
    ],
)
def test_ties_are_block_numbers(tied, message):
    with pytest.raises(DataError, match=message):
        Multilinear(np.eye(2), tied=tied)


def test_ties_may_be_an_array():
    assert Multilinear(np.eye(2), tied=np.array([0, 0])).shapes == ((2,),)


# --- files and memory ------------------------------------------------------------------------------


def test_archives_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "several.npz", first=np.eye(2), second=np.eye(3))
    for make in (Multilinear, lambda path: MomentTensor(path, 3)):
        with pytest.raises(DataError, match=r"archive of arrays \('first', 'second'\)"):
            make(tmp_path / "several.npz")


def test_samples_are_mapped_from_a_file(tmp_path):
    X = np.random.default_rng(4).standard_normal((30, 4))
    np.save(tmp_path / "X.npy", X)
    xs = (np.ones(4),) * 3
    assert float(MomentTensor(tmp_path / "X.npy", 3).value(xs)) == float(
        MomentTensor(X, 3).value(xs)
    )
    with pytest.raises(DataError, match="X names a file that does not exist"):
        MomentTensor(str(tmp_path / "absent.npy"), 3)


@pytest.mark.parametrize("kind", [np.int8, bool])
def test_whole_numbers_that_outgrow_memory_as_floats_are_refused_with_the_bytes(tmp_path, kind):
    shape = (10**4, 10**4, 10**5)
    huge = np.broadcast_to(np.zeros((), kind), shape)
    with pytest.raises(DataError, match=r"A, converted from .*, needs 80,000,000,000,000 bytes"):
        Multilinear(huge)


def test_covariances_that_outgrow_memory_are_refused_with_the_bytes():
    wide = np.broadcast_to(np.arange(2.0)[:, None], (2, 10**6))
    with pytest.raises(
        DataError, match=r"covariance of 1,000,000 features needs 24,000,000,000,000"
    ):
        MomentTensor(wide, 3, whiten=1)


def test_starts_that_outgrow_memory_in_their_products_are_refused_with_the_bytes(monkeypatch):
    monkeypatch.setattr("restpoint.array._memory.available_memory", lambda: 10**9)
    blocks = [rp.Block(rp.sets.L2Ball())] * 4
    problem = rp.Problem(Multilinear(np.zeros((100,) * 4)), blocks)
    with pytest.raises(DataError, match=r"a run from 10,000 starts needs 6,666,000,000 bytes"):
        rp.solve(problem, starts=10_000)  # vectors alone would take a thirtieth of that
    both = rp.Problem(rp.smooth.Sum(problem.smooth, problem.smooth), blocks)
    with pytest.raises(DataError, match=r"needs 13,066,000,000 bytes"):
        rp.solve(both, starts=10_000)


# --- numbers of any size ---------------------------------------------------------------------------


def scaled(exponents, rank=2, n=3, seed=5):
    """Factors times powers of 2 that cancel in their product, or nearly."""
    rng = np.random.default_rng(seed)
    factors = [np.ldexp(rng.standard_normal((n, rank)), e) for e in exponents]
    return rng.standard_normal(rank), factors


@pytest.mark.parametrize(
    "exponents",
    [(-700, 350, 350), (-1000, 600, 400), (700, -350, -350), (-600, -600, 700, 500), (500, 500, -1000, 1)],
)  # fmt: skip
def test_facts_of_factors_do_not_depend_on_how_the_scale_is_spread(exponents):
    """Squares of entries under- and overflow here; bounds that did were 0, and false."""
    weights, factors = scaled(exponents)
    plain = FactoredTensor(
        (weights, [np.ldexp(F, -e) for F, e in zip(factors, exponents, strict=True)])
    )
    form, total = FactoredTensor((weights, factors)), sum(exponents)
    ratio = form.kernel.spectral_bound() / np.ldexp(plain.kernel.spectral_bound(), total)
    assert 1 - 1e-12 <= ratio <= 1 + 1e-12
    ratio = form.kernel.largest() / np.ldexp(plain.kernel.largest(), total)
    assert 1 - 1e-12 <= ratio <= 1 + 1e-12
    fit = rp.smooth.CanonicalPolyadic(form, [1.0])
    same = rp.smooth.CanonicalPolyadic(plain, [1.0])
    norm, wanted = fit.observed.squared_norm, same.observed.squared_norm
    np.testing.assert_allclose(norm.value, np.ldexp(wanted.value, 2 * total), rtol=1e-12)
    assert norm.error >= np.ldexp(wanted.error, 2 * total) * 0.99


def test_columns_of_very_different_lengths_are_all_counted():
    first = np.array([[1e-300, 1e300], [0.0, 1e300]])
    second = np.array([[1e300, 1e-300], [0.0, 0.0]])
    kernel = FactoredTensor((None, [first, second])).kernel
    assert 1.0 + np.sqrt(2.0) <= kernel.spectral_bound() <= (1.0 + np.sqrt(2.0)) * (1 + 1e-12)
    zero = FactoredTensor((np.zeros(2), [first, second])).kernel
    assert zero.spectral_bound() == zero.largest() == 0.0


@pytest.mark.parametrize(
    "exponents", [(-600, -600, 700, 500), (-700, 350, 350), (-500, -540, 600, 440)]
)
def test_products_of_coefficients_that_underflow_are_in_the_rounding_bound(exponents):
    weights, factors = scaled(exponents)
    form = FactoredTensor((weights, factors))
    rng = np.random.default_rng(6)
    xs = tuple(rng.standard_normal(3) for _ in exponents)
    with np.errstate(over="ignore"):
        value, gradient = form.value_and_gradient(xs)
        error, errors = form.rounding(xs)
    with mpmath.workdps(50):
        c = [
            [mpmath.fsum(mpmath.mpf(float(a)) * float(b) for a, b in zip(F[:, r], x, strict=True)) for r in range(2)]
            for F, x in zip(factors, xs, strict=True)
        ]  # fmt: skip
        exact = -mpmath.fsum(
            mpmath.mpf(float(w)) * mpmath.fprod(row[r] for row in c) for r, w in enumerate(weights)
        )
        assert abs(exact - mpmath.mpf(float(value))) <= mpmath.mpf(float(error))
        for i, (g, e) in enumerate(zip(gradient, errors, strict=True)):
            for j in range(3):
                exact = -mpmath.fsum(
                    mpmath.mpf(float(w))
                    * float(factors[i][j, r])
                    * mpmath.fprod(row[r] for m, row in enumerate(c) if m != i)
                    for r, w in enumerate(weights)
                )
                assert abs(exact - mpmath.mpf(float(g[j]))) <= mpmath.mpf(float(e[j]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cumulant": "yes"}, "cumulant must be True or False, got 'yes'"),
        ({"centered": 0}, "centered must be True or False, got 0"),
    ],
)
def test_options_of_moments_are_true_or_false(options, message):
    with pytest.raises(DataError, match=message):
        MomentTensor(np.eye(3), 4, **options)


@pytest.mark.parametrize("order", [np.array([3, 4]), 3.0, "3", None])
def test_the_order_of_moments_is_a_whole_number(order):
    with pytest.raises(DataError, match="order must be 3 or 4"):
        MomentTensor(np.eye(3), order)
