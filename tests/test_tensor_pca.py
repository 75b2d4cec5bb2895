"""SparseTensorPCA: planted components, conventions, certificates."""

import pickle
import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import restpoint as rp
from planted import planted, planted_rank, same_supports
from restpoint.errors import DataError
from restpoint.models import SparseTensorPCA
from restpoint.models.tensor_pca import joint, screening, selection
from restpoint.models.tensor_pca.clock import Clock
from restpoint.run.loop import Loop

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


SMALL, _, _ = planted_rank(14, 2, 24.0, seed=1, nonzeros=3)


def holes(A, share=0.3):
    """The same with missing entries."""
    return np.where(np.random.default_rng(0).random(A.shape) < share, np.nan, A)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": 2},
        {"n_components": 2, "nonneg": ["mode0"]},
        {"n_components": 2, "deflation": "orthogonal"},
        {"n_nonzero": 3},
        {"n_components": 2, "n_nonzero": [3, None, 2], "deflation": "subtract"},
    ],
)
def test_units_change_neither_supports_nor_status(options, missing):
    if missing and ("n_nonzero" in options or "deflation" in options):
        return
    A = holes(SMALL) if missing else SMALL
    fits = [SparseTensorPCA(starts=5, **options).fit(c * A) for c in (1.0, 1e-9, 1e9)]
    for c, other in zip((1e-9, 1e9), fits[1:], strict=True):
        assert other.certified_
        assert other.weights_ / c == pytest.approx(fits[0].weights_, rel=1e-6)
        assert other.rho_ / c == pytest.approx(fits[0].rho_, rel=1e-6)
        assert other.rho_max_ / c == pytest.approx(fits[0].rho_max_, rel=1e-6)
        for mine, theirs in zip(fits[0].support_, other.support_, strict=True):
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("seed", [0, 2])
def test_certificate_is_about_the_vectors_returned(seed):
    A, _ = planted((20, 18, 16), 4, 22.0, seed=seed)
    fit = SparseTensorPCA().fit(A)
    problem = rp.Problem(
        rp.smooth.Multilinear(A),
        [rp.Block(rp.sets.L2Ball(), rp.penalties.L1(float(r))) for r in fit.rho_[0]],
    )
    again = rp.certify(problem, tuple(c[0] for c in fit.components_))
    assert float(fit.certificate_.value) == float(again.value) < 0.0
    assert np.array_equal(fit.certificate_.per_block, again.per_block)
    assert float(again.max) <= 1.01e-6 * fit.weights_[0] * 1.2
    assert all(np.array_equal(a, b) for a, b in zip(fit.points_, fit.components_, strict=True))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("nonneg", [False, ["mode0"], ["mode0", "mode2"]])
def test_the_joint_certificate_is_about_the_vectors_returned(nonneg, missing):
    A, _, _ = planted_rank(15, 3, 30.0, seed=1)  # the weights that l1 shrinks are not in this order
    A = holes(A) if missing else A
    fit = SparseTensorPCA(3, rho=1.0, nonneg=nonneg, starts=5).fit(A)
    own, rank = fit.joint_, 3
    for rows, mine in zip(own.factors, fit.components_, strict=True):
        assert np.array_equal(rows, mine)
    smooth = rp.smooth.CanonicalPolyadic(A, own.weights)
    assert not nonneg or fit.components_[0].min() >= 0.0
    sets = [
        rp.sets.NonnegativeBall() if nonneg and f"mode{m}" in nonneg else rp.sets.L2Ball()
        for m in range(3)
    ]
    problem = rp.Problem(
        smooth,
        [rp.Block(s, rp.penalties.L1(float(w))) for s in sets for w in own.weights],
    )
    again = rp.certify(problem, tuple(x[r] for x in fit.components_ for r in range(rank)))
    assert np.array_equal(again.per_block, fit.certificate_.per_block)
    assert bool(again.holds(own.eps))
    assert np.all(np.diff(fit.weights_) <= 0)
    share = fit.weights_[0] ** 2 / np.nansum(
        A**2
    )  # tol is in units of the largest weight's square / 2
    assert own.eps == pytest.approx(1e-6 * 0.5 * share * np.nansum(A**2), rel=0.5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("nonneg", "carrier"), [([], 0), ([0], 1), ([1], 0), ([0, 1], 2), ([0, 1, 2], None)]
)
def test_one_mode_carries_the_sign(nonneg, carrier, missing):
    A = holes(SMALL) if missing else SMALL
    model = SparseTensorPCA(2, nonneg=nonneg, starts=5).fit(A)
    for mode, rows in enumerate(model.components_):
        if mode in nonneg:
            assert rows.min() >= 0.0
        elif mode != carrier:
            assert all(row[np.argmax(np.abs(row))] > 0 for row in rows)
    one = SparseTensorPCA(1, nonneg=nonneg, starts=5).fit(A)
    assert min((one.components_[m].min() for m in nonneg), default=0.0) >= 0.0


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
    whole = np.einsum("ra,rb,rc->rabc", *model.components_).reshape(3, -1)
    assert model.weights_ == pytest.approx(np.linalg.lstsq(whole.T, A.ravel())[0], rel=1e-6)
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
    assert model.n_iter_ > 0
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
    assert np.linalg.norm(model.components_[0]) == pytest.approx(1.0)
    assert np.isnan(model.upper_bound_)
    blocks = [
        rp.Block(s, rp.penalties.L1(r))
        for s, r in ((rp.sets.Simplex(), 0.2), (rp.sets.L2Ball(), 0.5), (rp.sets.L2Ball(), 0.2))
    ]
    problem = rp.Problem(rp.smooth.Multilinear(A), blocks)
    again = rp.certify(problem, tuple(x[0] for x in model.points_))
    assert np.array_equal(again.per_block, model.certificate_.per_block)
    assert model.points_[0].sum() == pytest.approx(1.0)


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
    own = SparseTensorPCA().path(cube[0], rho=[1.0, 2.0, 2.0])
    assert own.rho.tolist() == [2.0, 1.0]
    dense = SparseTensorPCA().path(SMALL, rho=0.0)
    assert dense.rho.tolist() == [0.0]
    assert dense.certified.all()
    assert repr(dense).startswith("TensorPath(1 rho from 0 to 0, ")
    for rho in ([], "auto", [-1.0], [[1.0]]):
        with pytest.raises(DataError, match="rho must be finite numbers >= 0"):
            SparseTensorPCA().path(SMALL, rho=rho)


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
    with pytest.warns(
        ConvergenceWarning, match="max_seconds = 1e-09 was over.*raise max_seconds"
    ) as warned:
        model = SparseTensorPCA(max_seconds=1e-9).fit(cube[0])
    assert [one.filename for one in warned] == [__file__]  # not of noise, which was not looked at
    assert not model.certified_
    assert model.components_[0].shape == (1, 40)
    with pytest.raises(DataError, match="met before the end"):
        SparseTensorPCA(max_seconds=1e-9, nonneg=True, starts=1, rho=0.1).fit(
            -(cube[0] ** 2) + 0.01
        )


@pytest.mark.parametrize("deflation", ["joint", "subtract"])
@pytest.mark.parametrize("moment", ["search", "selection", "run", "refinement"])
def test_control_c_keeps_the_best(moment, deflation, monkeypatch):
    """Wherever it comes: between runs, where nothing else would catch it, and within them."""
    pressed = []

    def once(function):
        def pressing(*args, **more):
            answer = function(*args, **more)
            if not pressed:
                pressed.append(moment)
                signal.raise_signal(signal.SIGINT)
            return answer

        return pressing

    place, name = {
        "search": (screening, "screened"),
        "selection": (selection, "refitted"),
        "run": (Loop, "advance"),
        "refinement": (joint._Run, "_swept"),
    }[moment]
    monkeypatch.setattr(place, name, once(getattr(place, name)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            model = SparseTensorPCA(2, deflation=deflation, starts=5).fit(SMALL)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert bool(pressed) == (moment != "refinement" or deflation == "joint")
    assert model.components_[0].shape == (2, 14)
    assert model.weights_[0] > 10.0
    told = [str(one.message) for one in warned]
    assert model.certified_ or "Ctrl-C came first. The best point so far is returned" in told[0]


def test_a_second_control_c_is_raised():
    clock = Clock()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with clock.listening():
            signal.raise_signal(signal.SIGINT)
            assert clock.interrupted
            assert clock.over
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_components_that_cancel_are_told_of():
    e, f = np.eye(4)[0], np.eye(4)[1]
    A = sum(
        np.einsum("a,b,c->abc", *v) for v in ((e, e, f), (e, f, e), (f, e, e))
    )  # rank 3, border rank 2
    with pytest.warns(ConvergenceWarning, match="components nearly cancel .* rho > 0, or nonneg"):
        model = SparseTensorPCA(2, rho=0.0).fit(A)
    assert model.weights_.min() > 3.0
    assert SparseTensorPCA(2, rho=0.05).fit(A).certified_


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
