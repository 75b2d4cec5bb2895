"""SparseTensorPCACV: what is held out stays out, the right rank and rho, and what the tables say."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from planted import planted
from restpoint.errors import CapabilityError, DataError
from restpoint.models import SparseTensorPCA, SparseTensorPCACV
from restpoint.models.tensor_pca import cv, folds
from restpoint.models.tensor_pca.clock import Clock
from restpoint.models.tensor_pca.folds import Column
from restpoint.models.tensor_pca.holdout import masks
from restpoint.models.tensor_pca.table import Table


def orthogonal(sizes, weights, noise, seed):
    """Orthogonal dense components in noise of this size an entry."""
    rng = np.random.default_rng(seed)
    rows = [np.linalg.qr(rng.standard_normal((n, len(weights))))[0].T for n in sizes]
    A = np.einsum("r,ra,rb,rc->abc", weights, *rows)
    return A + noise * rng.standard_normal(sizes)


TWO = orthogonal((12, 6, 5), [9.0, 7.0], 0.1, seed=0)
QUICK = {"rho": [0.0, 0.1], "folds": 3, "starts": 2}
BRIEF = {"rho": [0.1], "folds": 2, "starts": 1}


@pytest.fixture(scope="module")
def search():
    return SparseTensorPCACV((1, 2, 3), **QUICK).fit(TWO)


@pytest.fixture(autouse=True)
def _without_halves(monkeypatch):
    """Replicability is seen in ``search``, which is made before this."""
    monkeypatch.setattr(cv, "SPLITS", 0)


# -- what is chosen ----------------------------------------------------------------------------------------------------


def test_the_planted_rank_and_what_speaks_for_it(search):
    assert search.best_params_["n_components"] == 2
    table = search.by_components_
    assert table["n_components"].tolist() == [1, 2, 3]
    one, two, three = table["error"]
    assert two < 0.2 * one
    assert three > two - table["se"][1]
    fit, core, alike = (table[k] for k in ("fit", "core_consistency", "replicability"))
    assert np.all(np.diff(fit) > 0)
    assert fit[1] > 0.8
    assert core[0] == pytest.approx(100.0)
    assert core[1] > 90.0
    assert core[2] < 50.0
    assert alike[1] > 0.9
    assert alike[2] < alike[1] - 0.05
    assert search.best_estimator_.certified_
    assert search.cv_results_["certified"].min() > 0.5
    assert search.cv_results_["alive"][:2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rank", [1, 3])
def test_other_planted_ranks(rank):
    A = orthogonal((9, 7, 6), [9.0, 8.0, 7.0][:rank], 0.1, seed=1)
    found = SparseTensorPCACV((rank - 1 or 1, rank, rank + 1), **BRIEF, refit=False).fit(A)
    assert found.best_params_["n_components"] == rank


def test_the_rho_that_recovers_the_support():
    A, xs = planted((14, 12, 10), 3, 25.0, seed=0)
    found = SparseTensorPCACV((1,), folds=2, starts=3).fit(A)
    assert found.best_params_["rho"] > 0.1 * found.rho_max_
    for support, x in zip(found.best_estimator_.support_, xs, strict=True):
        assert np.array_equal(support[0], x != 0)


def test_modes_that_stay_dense():
    names = ["who", "gene", "when"]
    found = SparseTensorPCACV((2,), rho={"gene": "auto"}, mode_names=names, folds=2, starts=1)
    found.fit(TWO)
    assert list(found.best_params_["rho"]) == ["gene"]
    assert found.best_estimator_.rho_[:, [0, 2]].max() == 0.0


def test_the_rule_of_one_standard_error():
    search = SparseTensorPCACV()
    search.cv_results_ = Table(
        n_components=np.array([1, 1, 2, 2, 3, 3]),
        rho=np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
        error=np.array([9.0, np.nan, 4.4, 4.6, 4.0, 4.7]),
        se=np.array([0.1, np.nan, 0.1, 0.1, 0.5, 0.1]),
    )
    assert search._chosen(np.ones(6, dtype=bool)) == 2  # within .5 of 4, fewest components
    search.cv_results_["error"][3] = 4.5
    assert search._chosen(np.ones(6, dtype=bool)) == 3  # and the largest rho of these
    assert search.set_params(one_se=False)._chosen(np.ones(6, dtype=bool)) == 4
    assert search._chosen(np.arange(6) == 1) is None


# -- nothing leaks -----------------------------------------------------------------------------------------------------


def by_hand(A, held, rank, rho, **options):
    """The error of the estimator, fitted without these entries, about these."""
    B = np.array(A)
    B[held] = np.nan
    center = np.nanmean(B, axis=0, keepdims=True) if "center" in options else 0.0
    size = np.ones((1, A.shape[1], 1))
    if "scale" in options:
        size = np.sqrt(np.nanmean((B - center) ** 2, axis=(0, 2), keepdims=True))
    share = np.mean(~np.isnan(B))
    model = SparseTensorPCA(rank, rho=rho * share, starts=3, tol=1e-8).fit((B - center) / size)
    fitted = np.einsum("r,ra,rb,rc->abc", model.weights_, *model.components_)
    rest = ((A - center) / size - fitted)[held]
    return np.sum(rest**2) / np.sum(((A - center) / size)[held] ** 2)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("options", [{}, {"center": 0, "scale": 1}])
def test_the_error_is_that_of_a_fit_without_the_held_out_entries(order, options):
    A = np.asarray(TWO + 3.0, order=order) if options else np.asarray(TWO, order=order)
    search = SparseTensorPCACV((2,), rho=[0.1], folds=2, starts=3, refit=False, **options).fit(A)
    centred = [0] if options else []
    parts = masks(
        np.ones(A.shape, bool), np.random.default_rng((0, 0, 0)), folds=2, keep=2, centred=centred
    )
    expected = [by_hand(A, np.unravel_index(p, A.shape), 2, 0.1, **options) for p in parts]
    assert search.cv_results_["errors"][0] == pytest.approx(expected, rel=1e-3)


def test_what_is_held_out_has_no_say_in_the_fit():
    A = np.asfortranarray(TWO)
    search = SparseTensorPCACV((2,), **QUICK, center=0, scale=[1])
    study, _ = search._study(A, 0, [2])
    held = search._parts(study, 0, 2)[0]
    fitted, target, places = folds._parted(study, held)
    assert np.isnan(fitted[places]).all()
    assert np.isnan(fitted).sum() == len(held)
    spoiled = np.array(A)
    spoiled[places] = 1e6
    again, _, _ = folds._parted(folds.replace(study, array=spoiled), held)
    assert np.array_equal(fitted, again, equal_nan=True)
    assert np.array_equal(study.array, A)
    assert np.isfinite(target).all()


def test_every_slice_keeps_what_the_largest_model_needs():
    seen = np.random.default_rng(0).random((9, 6, 5)) < 0.6
    parts = masks(seen, np.random.default_rng(1), folds=3, keep=3, centred=[0])
    assert not np.intersect1d(*parts[:2]).size
    for part in parts:
        left = seen.copy()
        assert left.ravel()[part].all()
        left.ravel()[part] = False
        for mode in range(3):
            axes = tuple(m for m in range(3) if m != mode)
            assert np.all(left.sum(axis=axes) >= np.minimum(3, seen.sum(axis=axes)))
        assert np.all(left.any(axis=0) == seen.any(axis=0))
    twice = masks(seen, np.random.default_rng(1), folds=4, share=0.1, keep=1)
    assert {len(part) for part in twice} == {round(0.1 * seen.sum())}


# -- how it runs -------------------------------------------------------------------------------------------------------


def test_seeds_decide_and_workers_do_not():
    one = SparseTensorPCACV((1, 2), **BRIEF, refit=False).fit(TWO)
    with joblib.parallel_config(backend="threading"):
        other = SparseTensorPCACV((1, 2), **BRIEF, refit=False, n_jobs=2).fit(TWO)
    for table in ("cv_results_", "by_components_"):
        for name, column in getattr(one, table).items():
            assert np.array_equal(column, getattr(other, table)[name], equal_nan=True), name
    different = SparseTensorPCACV((1,), **BRIEF, random_state=1, refit=False).fit(TWO)
    assert not np.array_equal(different.cv_results_["errors"], one.cv_results_["errors"][:1])


def test_parts_and_repeats():
    found = SparseTensorPCACV((1,), rho=[0.1], folds=2, repeats=2, holdout=0.15, starts=2).fit(TWO)
    errors = found.cv_results_["errors"]
    assert errors.shape == (1, 4)
    assert len(set(errors[0])) == 4
    assert found.cv_results_["error"] == pytest.approx(errors.mean(axis=1))
    assert found.cv_results_["se"] == pytest.approx(errors.std(axis=1, ddof=1) / 2)


def test_missing_entries_are_neither_fitted_nor_held_out():
    A = TWO.copy()
    A[:6, :, 4:] = np.nan  # half of the samples leave early
    found = SparseTensorPCACV((1, 2), **BRIEF).fit(A)
    assert found.best_params_["n_components"] == 2
    assert found.by_components_["error"][1] < 0.2
    masked = SparseTensorPCACV((1, 2), **BRIEF, refit=False).fit(np.ma.masked_invalid(A))
    assert np.array_equal(found.cv_results_["error"], masked.cv_results_["error"])


def test_fits_that_fail_are_named(monkeypatch):
    def greedy(data, options, so_far):
        if options.components > 1:
            raise DataError("after 1 component(s) nothing is left")
        return whole(data, options, so_far)

    whole = folds.greedy
    monkeypatch.setattr(folds, "greedy", greedy)
    with pytest.warns(UserWarning, match="some fits failed, .* after 1 component"):
        found = SparseTensorPCACV((1, 2, 3), **BRIEF).fit(TWO)
    assert found.best_params_["n_components"] == 1
    assert np.isnan(found.cv_results_["error"]).tolist() == [False, True, True]
    assert np.isnan(found.by_components_["fit"]).tolist() == [False, True, True]
    assert "nan: after 1 component(s) nothing is left" in str(found.by_components_)
    monkeypatch.undo()
    with pytest.raises(DataError, match="no fit succeeded: X has no component"):
        SparseTensorPCACV((1,), **BRIEF, nonneg=True).fit(-np.abs(TWO))


def test_a_fit_to_all_of_the_data_may_fail_too():
    x = np.ones((3, 5)) / np.sqrt(5)
    A = 10.0 * np.einsum("a,b,c->abc", *x)
    with pytest.warns(UserWarning, match="constant|nothing is left") as warned:
        found = SparseTensorPCACV((1, 2), **{**BRIEF, "rho": [0.0]}).fit(A)
    said = [str(one.message) for one in warned]
    assert said[0].startswith("X is constant")
    assert "after 1 component(s) nothing is left" in said[1]
    assert {one.filename for one in warned} == {__file__}
    assert found.best_params_["n_components"] == 1
    assert np.isnan(found.by_components_["fit"][1])


def test_a_rho_that_leaves_only_zero_has_error_one():
    with pytest.warns(UserWarning, match="leaves only the zero component"):
        found = SparseTensorPCACV((1, 2), rho=[50.0], folds=2, starts=2).fit(TWO)
    assert found.cv_results_["error"] == pytest.approx([1.0, 1.0])
    assert found.cv_results_["alive"].tolist() == [0.0, 0.0]


def test_control_c_ends_the_comparison():
    with pytest.raises(KeyboardInterrupt):
        folds._pass_on(Clock(interrupted=True))
    folds._pass_on(Clock())


# -- manners -----------------------------------------------------------------------------------------------------------


def test_tables_print(search):
    lines = str(search.by_components_).splitlines()
    assert lines[0].split() == [
        "n_components",
        "rho",
        "error",
        "se",
        "fit",
        "core_consistency",
        "replicability",
    ]
    assert len(lines) == 4
    assert [line.startswith("*") for line in lines] == [False, False, True, False]
    assert repr(search.cv_results_).count("\n") == 6
    assert search.by_components_._repr_html_().count("<tr>") == 4
    frame = search.cv_results_.to_dataframe()
    assert list(frame.columns[-3:]) == ["errors_0", "errors_1", "errors_2"]
    assert len(frame) == 6
    copy = pickle.loads(pickle.dumps(search.by_components_))
    assert str(copy) == str(search.by_components_)


def test_it_is_used_like_a_grid_search(search):
    again = SparseTensorPCA(**search.best_params_, starts=2, random_state=0).fit(TWO)
    assert np.array_equal(again.weights_, search.best_estimator_.weights_)
    assert search.cv_results_["n_components"][search.best_index_] == 2
    assert search.transform(TWO[:4]) == pytest.approx(again.transform(TWO)[:4])
    assert search.get_feature_names_out().tolist() == ["sparsetensorpca0", "sparsetensorpca1"]
    assert search.n_features_in_ == 30
    copy = pickle.loads(pickle.dumps(search))
    assert np.array_equal(copy.transform(TWO), search.transform(TWO))
    bare = SparseTensorPCACV((2,), **BRIEF, refit=False)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        bare.transform(TWO)
    with pytest.raises(NotFittedError, match="refit=False"):
        bare.fit(TWO).transform(TWO)
    assert bare.best_params_ == {"n_components": 2, "rho": 0.1}


def test_in_a_pipeline():
    M = planted((20, 9), 3, 30.0, seed=2)[0]
    pipe = make_pipeline(SparseTensorPCACV((1,), rho=[0.5, 1.0], folds=2, starts=2))
    scores = pipe.set_output(transform="pandas").fit_transform(M)
    assert list(scores.columns) == ["sparsetensorpca0"]
    assert pipe[0].n_features_in_ == 9


def test_parameters_are_passed_on():
    search = SparseTensorPCACV((1, 2), nonneg=True, folds=3)
    assert search.get_params()["nonneg"] is True
    twin = clone(search).set_params(starts=4, folds=2, nonneg=["mode0"])
    assert (twin.folds, twin.options) == (2, {"nonneg": ["mode0"], "starts": 4})
    assert search.options == {"nonneg": True}
    assert "nonneg=True" in repr(search)
    with pytest.raises(
        TypeError, match=r"no parameter 'foo'.*passes on to SparseTensorPCA: center"
    ):
        SparseTensorPCACV(foo=1)
    with pytest.raises(ValueError, match="no parameter 'foo'"):
        search.set_params(foo=1)


X = TWO[:6, :5, :4]


@pytest.mark.parametrize(
    ("options", "data", "error", "words"),
    [
        ({"n_components": []}, X, DataError, "n_components is empty"),
        ({"n_components": [0]}, X, DataError, "n_components must be a whole number >= 1"),
        ({"n_components": [21]}, X, DataError, "rank above 20"),
        ({"rho": []}, X, DataError, "rho must be"),
        ({"rho": [-1.0]}, X, DataError, "rho must be"),
        ({"rho": [np.nan]}, X, DataError, "rho must be"),
        ({"rho": "bic"}, X, DataError, 'rho must be "auto"'),
        ({"rho": {"gene": "auto"}}, X, DataError, "names the mode 'gene'"),
        ({"rho": {0: 0.3}}, X, DataError, "give numbers as a list"),
        ({"folds": 1}, X, DataError, "folds must be a whole number >= 2"),
        ({"folds": 10**9}, X, DataError, "120 observed entries in 6 sample.*fewer folds"),
        ({"holdout": 1.0}, X, DataError, "holdout must be a share"),
        ({"repeats": 0}, X, DataError, "repeats"),
        ({"one_se": "yes"}, X, DataError, "one_se must be True or False"),
        ({"refit": 1}, X, DataError, "refit must be True or False"),
        ({"n_jobs": 0}, X, DataError, "n_jobs must be a number of processes"),
        ({"random_state": "x"}, X, DataError, "random_state"),
        ({"n_nonzero": 2}, X, DataError, "n_nonzero=2 is not available here"),
        ({"deflation": "subtract"}, X, DataError, "deflation='subtract' is not available"),
        ({"tol": 2.0}, X, DataError, "tol"),
        ({"center": "gene"}, X, DataError, "center names the mode 'gene'"),
        ({}, np.zeros((3, 4, 5)), DataError, "zero in all observed"),
        ({}, np.where(X > 1, np.inf, X), DataError, "infinity"),
        ({}, np.where(np.arange(4) == 1, np.nan, X), DataError, "slice 1 of mode 'mode2'"),
        ({}, SparseTensorPCA, CapabilityError, "no number"),
    ],
)
def test_what_is_refused_and_how(options, data, error, words):
    with pytest.raises(error, match=words):
        SparseTensorPCACV(**{"n_components": (1, 2), "starts": 2, **options}).fit(data)


def test_ready_made_forms_are_refused():
    import sparse

    with pytest.raises(CapabilityError, match="X is COO; sparse input"):
        SparseTensorPCACV().fit(sparse.COO(X))


def test_errors_are_in_the_order_of_the_table():
    def column(k, part):
        return Column(np.array([k + part, k + part + 0.5]), np.ones(2), np.ones(2, dtype=bool))

    study = folds.Study(X, (), (), (), np.array([0.0, 1.0]), (1.0,), 0, {})
    table = cv._tabulated(study, [1, 2], [[column(10, p), column(20, p)] for p in (0, 1, 2)])
    assert table["n_components"].tolist() == [1, 1, 2, 2]
    assert table["rho"].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert table["errors"][3].tolist() == [20.5, 21.5, 22.5]
    assert table["error"].tolist() == [11.0, 11.5, 21.0, 21.5]
