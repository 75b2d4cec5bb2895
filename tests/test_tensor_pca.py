"""SparseTensorPCA: planted components, conventions, certificates."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import restpoint as rp
from planted import planted, planted_rank, same_supports
from restpoint.models import SparseTensorPCA

# Checks of scikit-learn that do not apply, and why.
EXEMPT = {
    "check_array_api_input": "runs only where SCIPY_ARRAY_API is set",
}


@pytest.fixture(scope="module")
def cube():
    return planted((40, 40, 40), 4, 25.0, seed=0)


@pytest.fixture(scope="module")
def fit(cube):
    return SparseTensorPCA().fit(cube[0])


@pytest.mark.parametrize(
    ("shape", "nonzeros", "strength"),
    [((60, 50, 40), 5, 25.0), ((24, 24, 24, 24), 4, 28.0), ((90, 80), 6, 32.0)],
)
def test_defaults_find_a_planted_support_exactly(shape, nonzeros, strength):
    A, xs = planted(shape, nonzeros, strength, seed=3)
    model = SparseTensorPCA().fit(A)
    assert model.certified_
    assert same_supports(model, xs)
    assert np.prod([abs(c[0] @ x) for c, x in zip(model.components_, xs, strict=True)]) > 0.95


def test_strong_entries_show_what_unfoldings_do_not():
    A, xs = planted((100, 100, 100), 6, 24.0, seed=5)  # singular vectors need 100^(3/4) = 31.6
    M = A.reshape(100, -1)
    assert abs(np.linalg.eigh(M @ M.T)[1][:, -1] @ xs[0]) < 0.4
    model = SparseTensorPCA().fit(A)
    assert same_supports(model, xs)


def test_units_of_the_data_change_nothing(cube):
    fits = [SparseTensorPCA().fit(c * cube[0]) for c in (1e-9, 1.0, 1e9)]
    for c, other in zip((1e-9, 1.0, 1e9), fits, strict=True):
        assert other.certified_
        for mine, theirs in zip(fits[1].support_, other.support_, strict=True):
            assert np.array_equal(mine, theirs)
        assert other.weights_ / c == pytest.approx(fits[1].weights_, rel=1e-6)
        assert other.rho_max_ / c == pytest.approx(fits[1].rho_max_, rel=1e-6)


def test_certificate_is_about_the_vectors_returned(cube, fit):
    A, _ = cube
    problem = rp.Problem(
        rp.smooth.Multilinear(A),
        [rp.Block(rp.sets.L2Ball(), rp.penalties.L1(float(r))) for r in fit.rho_[0]],
    )
    xs = tuple(c[0] for c in fit.components_)
    again = rp.certify(problem, xs)
    assert fit.certificate_.value == pytest.approx(float(again.value), rel=1e-12)
    assert float(again.max) <= 1.01e-6 * fit.weights_[0] * 1.2
    assert float(again.value) < 0.0


def test_conventions():
    A, _, _ = planted_rank(24, 3, 30.0, seed=1)
    model = SparseTensorPCA(3).fit(A)
    assert [c.shape for c in model.components_] == [(3, 24)] * 3
    for mode, rows in enumerate(model.components_):
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
        if mode:
            assert all(row[np.argmax(np.abs(row))] > 0 for row in rows)
    assert np.all(model.weights_ > 0)
    assert np.all(np.diff(model.weights_) <= 0)
    whole = np.einsum("r,ra,rb,rc->abc", model.weights_, *model.components_)
    explained = 1 - np.sum((A - whole) ** 2) / np.sum(A**2)
    assert model.explained_variance_ratio_.sum() == pytest.approx(explained)
    assert model.explained_variance_ratio_[0] > 0
    assert np.array_equal(model.support_[1], model.components_[1] != 0)


@pytest.mark.parametrize("deflation", ["joint", "subtract", "orthogonal"])
def test_several_components(deflation):
    A, factors, weights = planted_rank(30, 3, 30.0, seed=0)
    model = SparseTensorPCA(3, deflation=deflation).fit(A)
    assert model.certified_
    for r in range(3):
        match = max(
            np.prod([abs(F[r] @ c[q]) for F, c in zip(factors, model.components_, strict=True)])
            for q in range(3)
        )
        assert match > (0.85 if deflation == "orthogonal" else 0.95)
    if deflation == "joint":
        assert model.weights_ == pytest.approx(weights, rel=0.06)
        assert model.joint_.certified
    if deflation == "orthogonal":
        assert len(model.certificate_) == 3


def test_a_number_is_absolute_and_a_mode_can_be_named(cube):
    A, _ = cube
    model = SparseTensorPCA(rho={"gene": 2.0}, mode_names=["subject", "gene", "time"]).fit(A)
    assert model.rho_.tolist() == [[0.0, 2.0, 0.0]]
    dense, sparse, also_dense = (int(s.sum()) for s in model.support_)
    assert dense == also_dense == 40
    assert sparse < 20
    problem = rp.Problem(
        rp.smooth.Multilinear(A),
        [rp.Block(rp.sets.L2Ball(), p) for p in (None, rp.penalties.L1(2.0), None)],
    )
    others = rp.solve(problem, starts=20, eps=1e-5)
    assert float(model.certificate_.value) <= others.value.min() + 1e-4


def test_a_rho_that_leaves_only_zero(cube, fit):
    with pytest.warns(UserWarning, match=f"rho_max_ = {fit.rho_max_:.6g}"):
        zero = SparseTensorPCA(rho=1.1 * fit.rho_max_).fit(cube[0])
    assert zero.certified_
    assert not any(c.any() for c in zero.components_)
    assert zero.weights_.tolist() == [0.0]
    nearly = SparseTensorPCA(rho=0.98 * fit.rho_max_).fit(cube[0])
    assert nearly.weights_[0] > 20
    with pytest.warns(UserWarning, match="leaves only the zero component"):
        several = SparseTensorPCA(2, rho=2.0 * fit.rho_max_).fit(cube[0])
    assert several.components_[0].shape == (2, 40)


@pytest.mark.parametrize("wanted", [4, [2, 5, None], {"mode1": 3}, 1])
def test_numbers_of_nonzeros(cube, wanted):
    model = SparseTensorPCA(n_nonzero=wanted).fit(cube[0])
    got = [int(s.sum()) for s in model.support_]
    if isinstance(wanted, dict):
        assert got == [40, 3, 40]
    else:
        listed = wanted if isinstance(wanted, list) else [wanted] * 3
        assert got == [40 if k is None else k for k in listed]
    assert model.certified_
    if wanted == 1:
        assert model.weights_[0] == pytest.approx(np.abs(cube[0]).max())


def test_nonnegative_modes(cube):
    model = SparseTensorPCA(nonneg=["mode1"]).fit(cube[0])
    assert model.components_[1].min() >= 0.0
    assert model.components_[0].min() < 0.0
    assert model.certified_
    both = SparseTensorPCA(2, nonneg=True, rho=0.0).fit(np.abs(cube[0]))
    assert min(c.min() for c in both.components_) >= 0.0
    assert both.certified_


def test_sets_and_penalties_of_the_catalogue():
    A = np.abs(planted((12, 10, 8), 3, 20.0, seed=2)[0])
    model = SparseTensorPCA(
        sets={"mode0": rp.sets.Simplex()}, penalties={"mode1": rp.penalties.L1(0.5)}, rho=0.2
    ).fit(A)
    assert model.certified_
    assert model.components_[0].min() >= 0
    assert np.isnan(model.upper_bound_)


def test_path_is_certified_and_shrinks(cube, fit):
    path = SparseTensorPCA().path(cube[0])
    assert path.certified.all()
    assert path.rho[0] == pytest.approx(0.98 * fit.rho_max_, rel=1e-6)
    assert path.rho[-1] == 0.0
    sizes = path.counts[:, 0].sum(axis=1)
    assert sizes[-1] == 120
    assert sizes[0] == 12
    assert np.mean(np.diff(sizes) >= 0) > 0.9
    assert np.all(np.diff(path.value.min(axis=1)) < 0)
    assert np.argmin(path.bic.min(axis=1)) < 5
    own = SparseTensorPCA().path(cube[0], rho=[1.0, 2.0])
    assert own.rho.tolist() == [2.0, 1.0]


def test_what_is_known_about_other_solutions(cube, fit):
    A, _ = cube
    spectral = np.linalg.norm(A.reshape(40, -1), 2)
    assert fit.upper_bound_ >= -float(fit.certificate_.value)
    assert fit.upper_bound_ <= 1.01 * (spectral - fit.rho_.sum()) + 1e-9
    starts = fit.starts_
    assert sum(s.count for s in starts.solutions) == starts.starts == 20
    assert starts.solutions[0].value == min(s.value for s in starts.solutions)
    assert 0.0 <= starts.unseen <= 1.0
    assert "20 starts" in str(starts)


def test_starting_points(cube, fit):
    A, xs = cube
    for init in ("svd", list(xs), [np.stack([x, x[::-1]]) for x in xs]):
        other = SparseTensorPCA(init=init).fit(A)
        assert other.weights_ == pytest.approx(fit.weights_, rel=1e-6)
    again = SparseTensorPCA().fit(A)
    assert all(
        np.array_equal(a, b) for a, b in zip(again.components_, fit.components_, strict=True)
    )


def test_out_of_time_is_said(cube):
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = SparseTensorPCA(max_seconds=1e-9, rho=1.0).fit(cube[0])
    assert not model.certified_
    assert model.components_[0].shape == (1, 40)


def test_noise_is_called_that():
    A = np.random.default_rng(1).standard_normal((15, 15, 15))
    with pytest.warns(UserWarning, match="stands out from noise"):
        model = SparseTensorPCA().fit(A)
    assert model.weights_[0] > 0


def test_pickle_clone_and_parameters(fit, cube):
    copy = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(copy.transform(cube[0]), fit.transform(cube[0]))
    twin = clone(SparseTensorPCA(3, rho={"a": 0.1}, n_jobs=1))
    assert twin.get_params()["rho"] == {"a": 0.1}
    assert twin.set_params(tol=1e-3).tol == 1e-3
    assert len(pickle.dumps(fit)) < 200_000  # not the data


@pytest.mark.filterwarnings(
    "ignore"
)  # noise, constants and the like are warned about, as they should be
def test_scikit_learn_checks_apply():
    for check in check_estimator(SparseTensorPCA(), on_fail=None):
        ok = check["status"] == "passed" or check["check_name"] in EXEMPT
        assert ok, f"{check['check_name']}: {check['exception']}"
