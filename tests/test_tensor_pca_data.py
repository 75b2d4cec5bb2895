"""SparseTensorPCA: what data may be, missing entries, scores, and what is refused."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import pyttb
import scipy.sparse
import sparse
import xarray

import restpoint as rp
from planted import planted, planted_rank, same_supports
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models import SparseTensorPCA


class Labelled:
    """As much of an xarray DataArray as is read."""

    def __init__(self, values, dims, coords):
        self.values, self.dims, self.coords = values, dims, coords


@pytest.fixture(scope="module")
def cube():
    return planted((40, 30, 20), 4, 25.0, seed=0)


# -- missing entries ---------------------------------------------------------------------------------------------------


def test_structured_dropout_does_not_bias_loadings():
    rng = np.random.default_rng(4)
    subjects, genes, times = rng.uniform(0.5, 1.5, 40), np.zeros(25), np.linspace(1.0, 2.0, 10)
    genes[:5] = rng.uniform(0.5, 1.0, 5)
    A = np.einsum("a,b,c->abc", subjects, genes, times) + 0.1 * rng.standard_normal((40, 25, 10))
    A[20:, :, 2:] = np.nan  # half of the subjects leave early: 40 % are missing
    model = SparseTensorPCA().fit(A)
    assert model.certified_
    for c, truth in zip(model.components_, (subjects, genes, times), strict=True):
        assert np.linalg.norm(np.abs(c[0]) - truth / np.linalg.norm(truth)) < 0.05
    stayed, left = (
        np.abs(model.components_[0][0][own]).mean() / subjects[own].mean()
        for own in (slice(20), slice(20, 40))
    )
    assert left / stayed == pytest.approx(1.0, abs=0.05)  # zero-filling: .29
    assert np.flatnonzero(model.support_[1][0]).tolist() == [0, 1, 2, 3, 4]
    fitted = model.weights_[0] * np.einsum("a,b,c->abc", *(c[0] for c in model.components_))
    explained = 1 - np.nansum((A - fitted) ** 2) / np.nansum(A**2)
    assert model.explained_variance_ratio_[0] == pytest.approx(explained)


def test_masked_entries_are_missing_entries(cube):
    A = cube[0].copy()
    A[np.random.default_rng(1).random(A.shape) < 0.2] = np.nan
    model = SparseTensorPCA().fit(A)
    assert same_supports(model, cube[1])
    masked = SparseTensorPCA().fit(np.ma.masked_invalid(A))
    assert np.array_equal(model.weights_, masked.weights_)


def test_rarely_observed_entries_are_not_forgotten():
    """l1 alone shrinks them most, so that with them it would take in noise."""
    rng = np.random.default_rng(5)
    xs = [np.abs(rng.standard_normal(40)) + 0.5, np.repeat([1.0, 0.0], [6, 24]), np.ones(12)]
    A = 30.0 * np.einsum("a,b,c->abc", *(x / np.linalg.norm(x) for x in xs))
    A += rng.standard_normal(A.shape)
    A[:, :3][rng.random((40, 3, 12)) > 0.25] = np.nan  # a quarter is left of three of them
    model = SparseTensorPCA(rho={"mode1": "auto"}).fit(A)
    assert np.flatnonzero(model.support_[1][0]).tolist() == [0, 1, 2, 3, 4, 5]
    assert model.certified_


def test_several_components_from_observed_entries():
    A, factors, weights = planted_rank(24, 2, 35.0, seed=3)
    A[np.random.default_rng(0).random(A.shape) < 0.3] = np.nan
    model = SparseTensorPCA(2).fit(A)
    assert model.certified_
    assert model.weights_ == pytest.approx(weights, rel=0.08)
    for F, c in zip(factors, model.components_, strict=True):
        assert np.abs(F @ c.T).max(axis=1).min() > 0.95


# -- kinds of data -----------------------------------------------------------------------------------------------------


def test_sparse_dense_and_mapped_data_are_one(cube, tmp_path):
    A = np.where(np.abs(cube[0]) > 1.0, cube[0], 0.0)
    dense = SparseTensorPCA().fit(A)
    np.save(tmp_path / "A.npy", A)
    form = rp.smooth.Multilinear(A, sign=1.0)
    for X in (
        sparse.COO(A),
        str(tmp_path / "A.npy"),
        np.load(tmp_path / "A.npy", mmap_mode="r"),
        form,
        A.astype(np.float32),
    ):
        other = SparseTensorPCA().fit(X)
        assert other.certified_
        assert other.weights_ == pytest.approx(dense.weights_, rel=1e-4)
        assert all(
            np.array_equal(a, b) for a, b in zip(other.support_, dense.support_, strict=True)
        )
    assert same_supports(dense, cube[1])


def test_a_sparse_matrix():
    M, xs = planted((50, 40), 4, 30.0, seed=1)
    M = np.where(np.abs(M) > 1.5, M, 0.0)
    model = SparseTensorPCA().fit(scipy.sparse.csr_array(M))
    assert same_supports(model, xs)
    assert model.transform(scipy.sparse.csr_array(M)) == pytest.approx(model.transform(M))
    assert model.n_features_in_ == 40


def test_names_are_kept(cube):
    M = planted((12, 9), 3, 30.0, seed=2)[0]
    frame = pd.DataFrame(M, columns=[f"gene{j}" for j in range(9)]).rename_axis("patient")
    model = SparseTensorPCA(rho={"patient": 0.5}).fit(frame)
    assert model.mode_names_ == ("patient", "mode1")
    assert model.labels_[1].tolist() == list(frame.columns)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.get_feature_names_out().tolist() == ["sparsetensorpca0"]
    array = Labelled(cube[0], ("subject", "gene", "time"), {"time": np.arange(20) / 2})
    labelled = SparseTensorPCA(rho={"gene": 1.0}, sample_mode="time").fit(array)
    assert labelled.mode_names_ == ("subject", "gene", "time")
    assert labelled.labels_[2].tolist() == (np.arange(20) / 2).tolist()
    assert labelled.labels_[0] is None
    assert labelled.transform(cube[0][:, :, :7]).shape == (7, 1)


def test_labels_must_be_those_of_fit(cube):
    genes = {"gene": np.array([f"g{j}" for j in range(30)])}
    array = Labelled(cube[0], ("subject", "gene", "time"), genes)
    model = SparseTensorPCA(rho=1.0).fit(array)
    assert model.transform(array) == pytest.approx(model.transform(cube[0]))
    turned = Labelled(cube[0][:, ::-1], ("subject", "gene", "time"), {"gene": genes["gene"][::-1]})
    with pytest.raises(DataError, match="'gene' than the data of fit: g29 where there was g0"):
        model.transform(turned)
    samples = Labelled(cube[0][:3], ("subject", "gene", "time"), {"subject": np.arange(3), **genes})
    assert model.transform(samples).shape == (3, 1)


def test_other_containers(cube):
    A = np.where(np.abs(cube[0]) > 1.0, cube[0], 0.0)
    dense = SparseTensorPCA(rho=1.0).fit(A)
    for X in (sparse.GCXS(A), pyttb.tensor(A), pyttb.tensor(A).to_sptensor()):
        assert SparseTensorPCA(rho=1.0).fit(X).weights_ == pytest.approx(dense.weights_, rel=1e-4)
    M = cube[0][:, :, 0]
    frame = pd.DataFrame(M).mask(pd.DataFrame(M) > 2.0)
    holes = SparseTensorPCA(rho=0.5).fit(frame)
    assert SparseTensorPCA(rho=0.5).fit(frame.astype("Float64")).weights_ == holes.weights_
    assert np.isnan(holes.upper_bound_)


def test_an_array_may_hold_one_number_for_each_mode(cube):
    listed = SparseTensorPCA(rho=[1.0, 0.5, 2.0]).fit(cube[0])
    assert SparseTensorPCA(rho=np.array([1.0, 0.5, 2.0])).fit(cube[0]).weights_ == listed.weights_
    assert SparseTensorPCA(n_nonzero=np.array([4, 3, 2])).fit(cube[0]).support_[1].sum() == 3


def test_tied_modes_pay_once():
    rng = np.random.default_rng(0)
    A = 5.0 * np.einsum("a,b,c->abc", *[np.eye(6)[0]] * 3) + 0.01 * rng.standard_normal((6, 6, 6))
    A = sum(A.transpose(p) for p in permutations(range(3))) / 6
    tied = rp.smooth.Multilinear(A, tied=(0, 0, 0))
    model = SparseTensorPCA(rho=0.5).fit(tied)
    assert -float(model.certificate_.value) == pytest.approx(4.5, abs=0.05)
    assert -float(model.certificate_.value) <= model.upper_bound_ < 4.7
    for options, words in (
        ({"rho": [0.1, 0.2, 0.3]}, r"rho must say the same .* got \[0.1, 0.2, 0.3\]"),
        ({"rho": {"mode0": 0.1}}, "rho must say the same of the modes 'mode0', 'mode1', 'mode2'"),
        ({"n_nonzero": [1, 2, 3]}, "n_nonzero must say the same"),
        ({"nonneg": ["mode1"]}, "nonneg.* must say the same"),
    ):
        with pytest.raises(DataError, match=words):
            SparseTensorPCA(**options).fit(tied)


def test_moments_and_symmetric_forms():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    X[:, 3] = rng.exponential(size=2000)
    free = SparseTensorPCA().fit(rp.smooth.MomentTensor(X, 3))
    assert np.argmax(np.abs(free.components_[1][0])) == 3
    tied = SparseTensorPCA().fit(rp.smooth.MomentTensor(X, 3, tied=(0, 0, 0)))
    assert tied.certified_
    assert np.array_equal(tied.components_[0], tied.components_[2])
    assert tied.weights_ == pytest.approx(free.weights_, rel=1e-2)
    assert int(np.argmax(tied.components_[0][0])) == 3
    assert SparseTensorPCA(2).fit(rp.smooth.MomentTensor(X, 3)).certified_
    several = SparseTensorPCA(2, deflation="subtract").fit(
        rp.smooth.MomentTensor(X, 3, tied=(0, 0, 0))
    )
    assert several.weights_[1] < 0.3 * several.weights_[0]


def test_centre_and_scale():
    A = np.random.default_rng(0).uniform(1.0, 2.0, (9, 8, 7))
    own = (A - A.mean(axis=0)) / np.sqrt(
        np.mean((A - A.mean(axis=0)) ** 2, axis=(0, 2), keepdims=True)
    )
    by_us = SparseTensorPCA(center="mode0", scale=1, rho=0.1).fit(A)
    assert by_us.weights_ == pytest.approx(SparseTensorPCA(rho=0.1).fit(own).weights_)
    assert by_us.transform(A[:3]) == pytest.approx(by_us.transform(A)[:3])
    twice = SparseTensorPCA(center=[0, "mode0"], scale=1, rho=0.1).fit(A)
    assert twice.transform(A[:3]) == pytest.approx(by_us.transform(A)[:3])
    A[:, 2, 3] = np.nan  # nothing to be centred here
    assert SparseTensorPCA(center=0, rho=0.1).fit(A).certified_
    A[:, 2, 3] = 1.0
    plain = SparseTensorPCA(rho=0.1).fit(A)
    assert plain.weights_[0] > 2 * by_us.weights_[0]  # nothing is taken off unasked


# -- scores ------------------------------------------------------------------------------------------------------------


def test_scores_are_least_squares_over_what_is_observed():
    A, _, _ = planted_rank(15, 2, 30.0, seed=2)
    model = SparseTensorPCA(2, sample_mode=1).fit(A)
    T = model.transform(A)
    patterns = np.einsum("ra,rc->rac", model.components_[0], model.components_[2]).reshape(2, -1)
    flat = np.moveaxis(A, 1, 0).reshape(15, -1)
    assert pytest.approx(np.linalg.lstsq(patterns.T, flat.T)[0].T) == T
    assert SparseTensorPCA(2, sample_mode=1).fit_transform(A) == pytest.approx(T)
    holes = A.copy()
    holes[:7, 4, :] = np.nan
    seen = ~np.isnan(np.moveaxis(holes, 1, 0).reshape(15, -1)[4])
    by_hand = np.linalg.lstsq(patterns[:, seen].T, flat[4, seen])[0]
    assert model.transform(holes)[4] == pytest.approx(by_hand)
    assert model.transform(holes)[3] == pytest.approx(T[3])


def test_nothing_observed_has_no_score():
    A, _, _ = planted_rank(12, 2, 30.0, seed=2)
    model = SparseTensorPCA(2, rho=0.5).fit(A)
    A[3] = np.nan
    scores = model.transform(A)
    assert np.isnan(scores[3]).all()
    assert np.isfinite(np.delete(scores, 3, axis=0)).all()


# -- refusals ----------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((6, 5, 4))
ONE = np.zeros((5, 5, 5))
ONE[0, 0, 0] = 3.0
LOW = np.einsum(
    "ra,rb,rc->abc", *(np.eye(5)[2 * m : 2 * m + 2, :4] + 0.1 for m in range(2)), np.eye(2, 4)
)
UPHILL = ONE - np.where(ONE == 0, np.random.default_rng(0).random((5, 5, 5)), 0.0)


@pytest.mark.parametrize(
    ("options", "data", "error", "words"),
    [
        ({}, np.zeros((3, 4, 5)), DataError, "X is zero in all observed entries"),
        (
            {"center": 0},
            np.ones((3, 4, 5)),
            DataError,
            "zero in all observed entries after centring",
        ),
        ({}, np.where(np.arange(5)[:, None] == 2, np.nan, X), DataError, "slice 2 of mode 'mode1'"),
        ({}, np.where(X > 2, np.inf, X), DataError, "infinity"),
        ({}, X[0, 0], ShapeError, "order 2 or more"),
        ({}, X[:, :0], ShapeError, r"0 feature\(s\)"),
        ({}, [["a", "b"]], DataError, "expected real numbers"),
        ({}, np.array([[1.0, {}]], dtype=object), CapabilityError, "no number"),
        ({}, X + 1j, DataError, "Complex data"),
        ({}, "/nowhere/A.npy", DataError, "does not exist"),
        ({}, 1e200 * X, DataError, "squares overflow"),
        ({}, 1e80 * X, DataError, "products of its squares overflow; divide X by that entry"),
        ({}, 1e-80 * X, DataError, "products of its squares underflow"),
        ({}, 1e-200 * X, DataError, "products of its squares underflow"),
        ({"rho": {"gene": 0.1}}, X, DataError, "names the mode 'gene'; the modes are 'mode0'"),
        ({"mode_names": ["a", "b"]}, X, DataError, "3 different names"),
        ({"sample_mode": 3}, X, DataError, "from 0 to 2"),
        ({"rho": 0.1, "n_nonzero": 3}, X, DataError, "both decide about sparsity"),
        ({"nonneg": True, "sets": rp.sets.L2Ball()}, X, DataError, "nonneg and sets"),
        (
            {"rho": {0: 0.1}, "penalties": {0: rp.penalties.L1(0.2)}},
            X,
            DataError,
            "rho and penalties",
        ),
        (
            {"n_nonzero": 2, "penalties": {0: rp.penalties.L1(0.2)}},
            X,
            DataError,
            "n_nonzero and penalties",
        ),
        ({"n_components": 2, "n_nonzero": 2}, X, DataError, 'use deflation="subtract"'),
        ({"n_components": 2, "sets": rp.sets.Simplex()}, X, DataError, 'use deflation="subtract"'),
        ({"n_components": 5, "deflation": "orthogonal"}, X, DataError, "'mode2' has 4 entries"),
        ({"n_components": 2}, ONE, DataError, r"after 1 component\(s\) nothing is left"),
        ({"n_components": 2, "deflation": "subtract"}, ONE, DataError, "ask for at most 1"),
        ({"n_components": 0}, X, DataError, "n_components"),
        ({"rho": -1.0}, X, DataError, "rho must be >= 0"),
        ({"rho": "bic"}, X, DataError, 'rho must be "auto"'),
        ({"rho": {0: "auto", 1: 0.2}}, X, DataError, "give one kind"),
        ({"n_nonzero": 9}, X, DataError, "which has 6 entries"),
        ({"tol": 0.0}, X, DataError, "tol"),
        ({"starts": 0}, X, DataError, "starts"),
        ({"init": "hosvd"}, X, DataError, "init"),
        ({"init": [np.ones(3)] * 3}, X, ShapeError, r"init\[0\]"),
        ({"deflation": "none"}, X, DataError, "deflation"),
        ({"max_seconds": -1.0}, X, DataError, "max_seconds"),
        ({"random_state": "x"}, X, DataError, "random_state"),
        ({"nonneg": True}, -np.abs(X), DataError, "no component"),
        ({"center": 0}, sparse.COO(np.abs(X)), DataError, "leave both None"),
        ({"n_nonzero": 2}, np.where(X > 1, np.nan, X), DataError, "n_nonzero is not available"),
        ({"n_components": 21}, X, DataError, "rank above 20 .* ask for at most 20"),
        (
            {"n_components": 3, "deflation": "orthogonal", "rho": 0.0},
            LOW,
            DataError,
            "after 2 comp",
        ),
        ({"n_components": 2, "nonneg": True}, UPHILL, DataError, "after 1 component.*at most 1"),
        ({"rho": {0: 0.1, "mode0": 0.2}}, X, DataError, "rho names the mode 'mode0' twice"),
        ({"mode_names": 5}, X, DataError, "mode_names must be a list of 3 names"),
        ({"init": [np.ones(6), "x", np.ones(4)]}, X, ShapeError, r"init\[1\]"),
        ({"n_jobs": -2}, X, DataError, "n_jobs must be a whole number >= 1, got -2; -1 means all"),
        ({}, xarray.Dataset({"a": (("p", "q"), X[0])}), DataError, r"several arrays.* X\['a'\]"),
    ],
)
def test_what_is_refused_and_how(options, data, error, words):
    with pytest.raises(error, match=words):
        SparseTensorPCA(**options).fit(data)


def test_a_constant_tensor_is_told_to_be_one():
    with pytest.warns(UserWarning, match="X is constant"):
        model = SparseTensorPCA().fit(np.full((3, 4, 5), 2.0))
    assert model.weights_ == pytest.approx([2.0 * np.sqrt(60)])


def test_new_samples_must_fit():
    model = SparseTensorPCA(rho=0.1).fit(X)
    with pytest.raises(ShapeError, match="but for mode 0"):
        model.transform(X[:, :3])
    with pytest.raises(DataError, match="infinity"):
        model.transform(np.where(X > 2, np.inf, X))
