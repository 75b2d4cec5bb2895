"""ZeroVarianceDiscriminant and its CV: what is proved, what is kept out of samples, and what is refused."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import restpoint as rp
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV
from restpoint.models.discriminant.bases import basis_of
from restpoint.models.discriminant.directions import Wish
from restpoint.models.discriminant.fitting import along, fitted
from restpoint.models.discriminant.options import plan_of
from restpoint.models.discriminant.rule import aligned, out_of_fold

CLASSES = np.array(["blue", "green", "red"])


def made(seed, samples=60, features=400, signal=3.0):
    """Three classes, two features each that tell it."""
    rng = np.random.default_rng(seed)
    code = np.arange(samples) % 3
    X = rng.standard_normal((samples, features)) * np.linspace(0.5, 2.0, features) + 5.0
    X[:, :6] += signal * np.eye(3)[code].repeat(2, axis=1)
    return X, CLASSES[code]


@pytest.fixture(scope="module")
def data():
    return made(0)


@pytest.fixture(scope="module")
def model(data):
    return ZeroVarianceDiscriminant(gamma=0.7).fit(*data)


# --- what is proved -----------------------------------------------------------------------------------


def test_samples_of_a_class_do_not_vary_along_the_directions(data, model):
    X, y = data
    scores = model.transform(X)
    within = (
        scores
        - np.stack([scores[y == c].mean(axis=0) for c in model.classes_])[
            np.searchsorted(model.classes_, y)
        ]
    )
    assert np.max(np.abs(within)) < 1e-11 * np.max(np.abs(scores))
    assert np.linalg.norm(model.components_, axis=1) == pytest.approx([1.0, 1.0])
    assert model.components_[0] @ model.components_[1] == pytest.approx(0.0, abs=1e-12)


def test_each_vector_is_certified_for_the_problem_of_the_docstring(data, model):
    """Recomputed from the definitions: standardized samples, B, sigma, and an oracle by cvxpy."""
    import cvxpy

    X, y = data
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    code = np.searchsorted(model.classes_, y)
    means = np.stack([Z[code == c].mean(axis=0) for c in range(3)])
    W = Z - means[code]
    sigma = np.sqrt((W**2).sum(axis=0) / (len(y) - 3))
    B = means.T @ np.diag(np.bincount(code) / len(y)) @ means
    w, gamma = model.components_[0], model.gamma_[0]
    assert model.certificates_[0].value == pytest.approx(
        -0.5 * w @ B @ w + gamma * sigma @ np.abs(w), rel=1e-9
    )
    v = cvxpy.Variable(len(w))
    objective = -(B @ w) @ v + gamma * sigma @ cvxpy.abs(v)
    Q = np.linalg.qr(W.T)[0][:, : len(y) - 3]
    best = cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.norm(v) <= 1, Q.T @ v == 0])
    best.solve(solver="CLARABEL")
    gap = -(B @ w) @ w + gamma * sigma @ np.abs(w) - best.value
    scale = 0.5 * np.linalg.norm(B, 2)
    assert abs(gap) < 1e-6 * scale
    assert model.certified_
    assert all(c.max <= 1e-8 * scale for c in model.certificates_)


def test_sparser_with_a_larger_penalty_down_to_a_vertex(data):
    X, y = data
    counts = [
        int(ZeroVarianceDiscriminant(1, gamma=g, oof=0).fit(X, y).support_.sum())
        for g in (0.0, 0.3, 0.6, 0.9, 0.99)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 400
    # A nonzero w with Q'w = 0 has generically at least samples - classes + 1 nonzeros.
    assert 58 <= counts[-1] <= 75


def test_a_number_of_features(data):
    model = ZeroVarianceDiscriminant(n_features=(120, 90), oof=0).fit(*data)
    first, second = model.support_.sum(axis=1)
    assert 100 <= first <= 120
    assert 75 <= second <= 90
    assert model.certified_


def test_fewer_features_than_samples_bound_the_variance():
    rng = np.random.default_rng(3)
    code = np.arange(120) % 3
    X = rng.standard_normal((120, 12)) @ rng.standard_normal((12, 12))
    X[:, 0] += 8.0 * code
    model = ZeroVarianceDiscriminant(gamma=0.2, shrinkage=0.1, oof=0).fit(X, code)
    assert not model.zero_variance_
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W = Z - np.stack([Z[code == c].mean(axis=0) for c in range(3)])[code]
    S = W.T @ W / 117
    S = 0.9 * S + 0.1 * np.trace(S) / 12 * np.eye(12)
    assert np.einsum("rp,pq,rq->r", model.components_, S, model.components_) == pytest.approx(
        [1.0, 1.0], rel=1e-6
    )
    assert model.certified_
    assert np.mean(model.predict(X) == code) > 0.6


def test_units_and_names_of_things_do_not_matter(data, model):
    X, y = data
    scaled = ZeroVarianceDiscriminant(gamma=0.7).fit(X * 1e6, y)
    np.testing.assert_array_equal(scaled.support_, model.support_)
    np.testing.assert_allclose(scaled.scalings_ * 1e6, model.scalings_, rtol=1e-5, atol=1e-9)
    codes = np.searchsorted(CLASSES, y)
    numbered = ZeroVarianceDiscriminant(gamma=0.7).fit(X, codes)
    np.testing.assert_array_equal(CLASSES[numbered.predict(X)], model.predict(X))


def test_sparse_samples_are_those_of_the_dense_array():
    X, y = made(4)
    X[np.abs(X) < 5.0] = 0.0
    dense = ZeroVarianceDiscriminant(gamma=0.6).fit(X, y)
    thin = ZeroVarianceDiscriminant(gamma=0.6).fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(thin.support_, dense.support_)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(thin.predict(scipy.sparse.csr_array(X)), dense.predict(X))


@pytest.mark.parametrize("kind", ["dct", "haar"])
@pytest.mark.parametrize("size", [1, 2, 7, 16, 45])
def test_bases_are_orthogonal(kind, size):
    basis = basis_of(kind, size)
    D = basis.forward(np.eye(size)).T
    np.testing.assert_allclose(D @ D.T, np.eye(size), atol=1e-13)
    x = np.random.default_rng(size).standard_normal((3, size))
    np.testing.assert_allclose(basis.backward(basis.forward(x)), x, atol=1e-13)
    np.testing.assert_allclose(basis.backward(x), x @ D, atol=1e-13)


def test_a_basis_turns_everything_along(data):
    X, y = data
    D = basis_of("dct", X.shape[1]).forward(np.eye(X.shape[1])).T
    named = ZeroVarianceDiscriminant(gamma=0.5, basis="dct", oof=0).fit(X, y)
    given = ZeroVarianceDiscriminant(gamma=0.5, basis=D, oof=0).fit(X, y)
    np.testing.assert_allclose(named.scalings_, given.scalings_, atol=1e-7)
    assert named.support_.sum() < 2 * X.shape[1]
    assert np.count_nonzero(named.scalings_) == named.scalings_.size


def test_columns_to_be_orthogonal_to(data):
    X, y = data
    first = ZeroVarianceDiscriminant(1, gamma=0.5, oof=0).fit(X, y)
    other = ZeroVarianceDiscriminant(1, gamma=0.5, oof=0, orthogonal_to=first.components_.T).fit(
        X, y
    )
    assert abs(float(first.components_[0] @ other.components_[0])) < 1e-12
    second = ZeroVarianceDiscriminant(2, gamma=0.5, oof=0).fit(X, y)
    assert other.certificates_[0].value == pytest.approx(second.certificates_[1].value, rel=1e-3)


# --- honest probabilities -----------------------------------------------------------------------------


def test_training_accuracy_says_nothing_and_probabilities_know_it():
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 300)), rng.permutation(np.arange(60) % 4)
        fitted = ZeroVarianceDiscriminant(oof=0).fit(X, y)
        assert np.mean(fitted.predict(X) == y) == 1.0
        honest = ZeroVarianceDiscriminant().fit(X, y)
        new, labels = rng.standard_normal((500, 300)), rng.integers(0, 4, 500)
        losses.append(-np.mean(honest.predict_log_proba(new)[np.arange(500), labels]))
    assert np.mean(losses) < np.log(4) + 0.1


def test_held_out_scores_are_those_of_new_samples(data, model):
    """Their spread within classes is about that of fresh samples; that of training samples is 0."""
    new, labels = made(100, samples=300)
    scores = model.transform(new)
    code = np.searchsorted(model.classes_, labels)
    means = np.stack([scores[code == c].mean(axis=0) for c in range(3)])
    spread = np.trace(np.cov((scores - means[code]).T))
    assert 0.5 * spread < np.trace(model.oof_covariance_) < 2.0 * spread
    assert np.mean(model.predict(new) == labels) > 0.9
    probabilities = model.predict_proba(new)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(300))
    loss = -np.mean(np.log(probabilities[np.arange(300), code]))
    assert loss < 0.5


def test_no_folds_no_probabilities(data):
    model = ZeroVarianceDiscriminant(oof=0).fit(*data)
    assert model.oof_scores_ is None
    with pytest.raises(CapabilityError, match=r"training samples cannot tell.*oof=5"):
        model.predict_proba(data[0])


def test_scores_of_folds_are_turned_to_those_of_all():
    rng = np.random.default_rng(0)
    centroids, turn = rng.standard_normal((4, 3)), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    scores = rng.standard_normal((10, 3))
    np.testing.assert_allclose(
        aligned(scores @ turn, centroids @ turn, centroids), scores, atol=1e-12
    )


def test_a_rule_without_evidence_gives_the_priors():
    rng = np.random.default_rng(1)
    scores, code = rng.standard_normal((400, 2)), rng.permutation(np.arange(400) % 2)
    priors = np.array([0.8, 0.2])
    rule, _ = out_of_fold(scores, code, np.array([0.5, 0.5]), priors)
    posterior = np.exp(scores @ rule.slopes.T + rule.intercepts)
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert np.max(np.abs(posterior - priors)) < 0.1


# --- scikit-learn's manners ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*SCIPY_ARRAY_API.*")
@pytest.mark.parametrize(
    "estimator",
    [
        ZeroVarianceDiscriminant(oof=2, starts=1, tol=1e-5),
        ZeroVarianceDiscriminantCV(
            ZeroVarianceDiscriminant(oof=2, starts=1, tol=1e-5), gamma=(0.5,), cv=2
        ),
    ],
    ids=["plain", "CV"],
)
def test_scikit_learn_checks(estimator):
    """All of them; one is skipped by scikit-learn itself where SciPy's array API is off."""
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert [r for r in results if r["status"] == "failed"] == []


def test_frames_pipelines_and_copies(data, model):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(X.shape[1])])
    named = ZeroVarianceDiscriminant(gamma=0.7).set_output(transform="pandas").fit(frame, y)
    table = named.transform(frame)
    assert list(table.columns) == ["zerovariancediscriminant0", "zerovariancediscriminant1"]
    signature = named.signature()
    assert len(signature) == named.support_.sum()
    assert signature["feature"].str.startswith("gene").all()
    assert set(signature.loc[signature["component"] == 1, "feature"][:4]) <= {
        f"gene{j}" for j in range(6)
    }
    assert signature["selection_frequency"].between(0, 1).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    twin = clone(model).fit(X, y)
    np.testing.assert_array_equal(twin.coef_, model.coef_)
    piped = make_pipeline(StandardScaler(), ZeroVarianceDiscriminant(gamma=0.7, oof=0))
    assert cross_val_score(piped, X, y, cv=3).mean() > 0.85
    grid = GridSearchCV(ZeroVarianceDiscriminant(oof=0), {"gamma": [0.3, 0.8]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.8


def test_decision_function_is_linear_in_x_as_it_is(data, model):
    X, _ = data
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
    scores = model.transform(X)
    np.testing.assert_allclose(scores, (X - model.mean_) @ model.scalings_, atol=1e-10)
    two = ZeroVarianceDiscriminant(gamma=0.5).fit(X[:40], np.arange(40) % 2)
    assert two.coef_.shape == (1, X.shape[1])
    assert two.decision_function(X).shape == (60,)


def test_cv_chooses_and_shows(data):
    X, y = data
    search = ZeroVarianceDiscriminantCV(gamma=(0.2, 0.6, 0.9), cv=2, repeats=2).fit(X, y)
    table = search.cv_results_
    assert table["scores"].shape == (6, 4)
    np.testing.assert_allclose(table["score"], table["scores"].mean(axis=1))
    assert search.best_params_["n_components"] == 2
    assert (table["certified"] == 1.0).all()
    fewer = table["features"].reshape(2, 3)
    assert (np.diff(fewer, axis=1) < 0).all()
    best = np.max(table["score"])
    slack = table["se"][int(np.argmax(table["score"]))]
    assert table["score"][search.best_index_] >= best - slack
    loose = ZeroVarianceDiscriminantCV(gamma=(0.2, 0.6, 0.9), cv=2, repeats=2, one_se=False).fit(
        X, y
    )
    assert loose.best_score_ == best
    assert search.best_estimator_.gamma == search.best_params_["gamma"]
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_a_path_of_penalties_finds_what_single_searches_find(data):
    """Begun at the vectors of a larger penalty and the two best starts, in place of all starts."""
    X, y = data
    code = np.searchsorted(CLASSES, y)
    model = ZeroVarianceDiscriminant(n_components=2)
    plan = plan_of(model.get_params(deep=False), X, 3)
    wishes = [(Wish(g), Wish(g)) for g in (0.9, 0.6, 0.3)]
    shares = np.full(3, 1.0 / 3.0)
    for found, asked in zip(along((X, code, shares), plan, wishes), wishes, strict=True):
        alone = fitted(X, code, shares, replace(plan, wishes=asked))
        assert all(one.certified for one in found.components)
        first, second = (
            abs(float(one.w @ other.w))
            for one, other in zip(found.components, alone.components, strict=True)
        )
        assert first > 1.0 - 1e-8
        assert (
            second > 1.0 - 1e-3
        )  # its largest penalty is sought in a space that is a little turned


def test_cv_keeps_groups_together(data):
    X, y = data
    groups = np.arange(60) // 6
    seen = []

    def score(truth, chosen):
        seen.append(len(truth))
        return float(np.mean(truth == chosen))

    ZeroVarianceDiscriminantCV(gamma=(0.5,), cv=3, scoring=score, refit=False).fit(
        X, y, groups=groups
    )
    assert all(count % 6 == 0 for count in seen)


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        (
            {"n_components": 3},
            DataError,
            "n_components=3, but 3 classes and 400 features have at most 2",
        ),
        ({"gamma": -0.1}, DataError, "gamma must be"),
        ({"gamma": (0.1, 0.2, 0.3)}, ShapeError, "gamma has 3 entries; expected one number, or 2"),
        ({"gamma": 0.3, "n_features": 9}, DataError, "n_features and gamma=0.3 both decide"),
        ({"n_features": 401}, DataError, "n_features=401, but X has 400 features"),
        ({"sigma": "between"}, DataError, 'sigma must be "within", None'),
        ({"sigma": np.ones(3)}, ShapeError, r"sigma has shape \(3,\); expected \(400,\)"),
        ({"sigma": -np.ones(400)}, DataError, "sigma must hold positive"),
        ({"basis": "fourier"}, DataError, "basis must be None, 'dct', 'haar'"),
        ({"basis": np.ones((400, 400))}, DataError, "differs from the identity"),
        ({"shrinkage": 2.0}, DataError, r"shrinkage must be a number in \(0, 1\]"),
        (
            {"orthogonal_to": np.ones(3)},
            ShapeError,
            r"orthogonal_to has shape \(3, 1\); expected \(400, k\)",
        ),
        ({"orthogonal_to": np.ones(400), "shrinkage": 0.5}, DataError, "zero variance"),
        ({"priors": [0.5, 0.5]}, DataError, "priors must be 3 numbers"),
        ({"class_weight": {"mauve": 2.0}}, DataError, "class_weight names 'mauve'"),
        ({"class_weight": "heavy"}, DataError, "class_weight must be None"),
        ({"oof": 1}, DataError, "oof=1 leaves nothing to fit"),
        ({"tol": 0.0}, DataError, "tol must be a number > 0"),
        ({"starts": 0}, DataError, "starts"),
        ({"max_seconds": -1.0}, DataError, "max_seconds must be a number > 0"),
    ],
)
def test_what_is_refused_and_how(data, params, error, words):
    with pytest.raises(error, match=words):
        ZeroVarianceDiscriminant(**params).fit(*data)


def test_bad_samples(data):
    X, y = data
    with pytest.raises(DataError, match="y holds one class, 'a'"):
        ZeroVarianceDiscriminant().fit(X, np.repeat("a", 60))
    rare = y.copy()
    rare[0] = "mauve"
    with pytest.raises(DataError, match=r"class 'mauve' has one sample.*oof=0"):
        ZeroVarianceDiscriminant().fit(X, rare)
    assert "mauve" in ZeroVarianceDiscriminant(oof=0).fit(X, rare).classes_
    with pytest.raises(ValueError, match="NaN"):
        ZeroVarianceDiscriminant().fit(np.where(X > 7, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ZeroVarianceDiscriminant().fit(X, y[:-1])
    with pytest.raises(DataError, match="mixes all features"):
        ZeroVarianceDiscriminant(basis="dct").fit(scipy.sparse.csr_matrix(X), y)
    with pytest.raises(DataError, match="gamma must hold shares"):
        ZeroVarianceDiscriminantCV(gamma=(0.5, 1.5)).fit(X, y)
    with pytest.raises(DataError, match="scoring must be 'balanced_accuracy'"):
        ZeroVarianceDiscriminantCV(scoring="f1").fit(X, y)
    with pytest.warns(UserWarning, match=r"has 2 samples, so that there are 2 folds instead of 5"):
        ZeroVarianceDiscriminantCV(gamma=(0.5,)).fit(X[:8], y[:8])


def test_constant_features_and_duplicated_rows_are_harmless(data):
    X, y = data
    X = np.concatenate([X, X[:6]])
    X[:, 7], X[:, 8] = 3.0, np.concatenate([y, y[:6]]) == "red"
    model = ZeroVarianceDiscriminant(gamma=0.5).fit(X, np.concatenate([y, y[:6]]))
    assert model.certified_
    assert not model.support_[:, 7].any()
    assert model.support_[:, 8].any()  # tells red from the others, and never varies within a class


def test_a_penalty_that_leaves_only_zero_is_said_to():
    X, y = made(5, samples=12, features=60)
    with pytest.warns(
        UserWarning, match=r"gamma = 3 leaves only the zero vector; the largest useful share is 1"
    ):
        model = ZeroVarianceDiscriminant(1, gamma=3.0, priors=[0.2, 0.5, 0.3], oof=2).fit(X, y)
    assert not model.components_.any()
    assert model.certified_
    assert set(model.predict(X)) == {"green"}  # by the priors
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.2, 0.5, 0.3], (12, 1)))


def test_out_of_time_is_said(data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ZeroVarianceDiscriminant(oof=0, max_seconds=1e-3).fit(*data)
    assert not model.certified_
    assert any(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert model.predict(data[0]).shape == (60,)


def test_the_search_has_the_stationary_points_of_the_problem():
    """-||F'x|| + t S(x) and -||F'x||^2 / 2 + t ||F'x|| S(x): gaps differ by the factor ||F'x||."""
    from restpoint.models.discriminant.direction import Separation

    rng = np.random.default_rng(0)
    F = rng.standard_normal((30, 3))
    x = rng.standard_normal(30)
    x /= np.linalg.norm(x)
    size, t = float(np.linalg.norm(F.T @ x)), 0.3
    search = rp.Problem(Separation(F), rp.Block(rp.sets.L2Ball(), rp.penalties.L1(t)))
    problem = rp.Problem(
        rp.smooth.ConcaveQuadratic(F), rp.Block(rp.sets.L2Ball(), rp.penalties.L1(t * size))
    )
    gaps = [float(rp.certify(p, x).max) for p in (search, problem)]
    assert gaps[1] == pytest.approx(size * gaps[0], rel=1e-9)
    rp.testing.check_smooth(Separation(F), [rp.sets.L2Ball()])
