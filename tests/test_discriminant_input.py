"""What ZeroVarianceDiscriminant and its CV do with samples and labels that leave little to find, or nothing."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from restpoint.errors import DataError, ShapeError
from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV


def made(seed=0, samples=30, features=60):
    rng = np.random.default_rng(seed)
    code = np.arange(samples) % 3
    X = rng.standard_normal((samples, features))
    X[:, :6] += 3.0 * np.eye(3)[code].repeat(2, axis=1)
    return X, np.array(["a", "b", "c"])[code]


def single(**params):
    return ZeroVarianceDiscriminant(starts=2, **params)


def compared(**params):
    return ZeroVarianceDiscriminantCV(single(**params), gamma=(0.5, 0.9), cv=2)


@pytest.fixture(params=[single, compared], ids=["single", "compared"])
def estimator(request):
    return request.param


def fit_of(fitted):
    """The fit to all samples."""
    return getattr(fitted, "best_estimator_", fitted)


# -- labels ------------------------------------------------------------------------------------------------------------


def test_one_class(estimator):
    X, _ = made()
    with pytest.raises(DataError, match=r"y holds one class, 'a'; .* at least 2 classes"):
        estimator().fit(X, np.repeat("a", 30))


def test_a_class_with_one_sample(estimator):
    X, y = made()
    y = np.where(np.arange(30) == 0, "mauve", y)
    with pytest.raises(DataError, match=r"class 'mauve' has one sample.*drop the class"):
        estimator().fit(X, y)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_as_many_classes_as_samples(estimator):
    X, _ = made()
    with pytest.raises(DataError, match=r"30 classes for 30 samples.*more samples than classes"):
        estimator().fit(X, np.arange(30))
    with pytest.raises(DataError, match="30 classes for 30 samples"):
        single(oof=0).fit(X, np.arange(30))


def test_half_as_many_classes_as_samples(estimator):
    X, _ = made(features=40)
    fitted = fit_of(estimator().fit(X[:12], np.arange(12) % 6))
    assert fitted.certified_
    assert fitted.support_.any(axis=1).all()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.arange(29) % 3, "inconsistent numbers of samples"),
        (np.stack([np.arange(30) % 3] * 2, axis=1), "1d array"),
        (np.where(np.arange(30) % 2 == 0, np.nan, 1.0), "y contains NaN"),
        (np.linspace(0.0, 1.0, 30), "continuous"),
    ],
)
def test_labels_that_are_none(estimator, labels, words):
    X, _ = made()
    with pytest.raises(ValueError, match=words):
        estimator().fit(X, labels)


# -- samples -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_samples_that_are_no_numbers(estimator, value, words):
    X, y = made()
    X[3, 4] = value
    with pytest.raises(ValueError, match=words):
        estimator().fit(X, y)
    with pytest.raises(ValueError, match=words):
        estimator().fit(scipy.sparse.csr_matrix(X), y)
    fitted = single(oof=2).fit(*made())
    with pytest.raises(ValueError, match=words):
        fitted.predict(X)


@pytest.mark.parametrize(("scale", "word"), [(1e200, "overflow"), (1e-200, "underflow")])
def test_samples_whose_squares_leave_the_range_of_numbers(estimator, scale, word):
    X, y = made()
    for given in (X * scale, scipy.sparse.csr_matrix(X * scale)):
        with pytest.raises(DataError, match=rf"largest entry, so that squares {word}; divide X by"):
            estimator().fit(given, y)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_far_from_one_are_no_matter(scale):
    X, y = made()
    plain, scaled = (single(oof=2).fit(X * c, y) for c in (1.0, scale))
    np.testing.assert_array_equal(scaled.support_, plain.support_)
    assert scaled.certified_


def test_constant_features_have_no_coefficient(estimator):
    X, y = made()
    X[:, [7, 30]] = 3.1, 1e9 / 3.0
    model = fit_of(estimator().fit(X, y))
    assert model.certified_
    assert not model.support_[:, [7, 30]].any()
    thin = fit_of(estimator().fit(scipy.sparse.csr_matrix(X), y))
    np.testing.assert_array_equal(thin.support_, model.support_)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e9 / 3.0])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("standardize", [True, False])
def test_features_that_are_all_constant(estimator, value, kind, standardize):
    _, y = made()
    X = kind(np.full((30, 20), value))
    with pytest.warns(UserWarning, match=r"zero, because the class means do not differ") as caught:
        model = fit_of(estimator(standardize=standardize).fit(X, y))
    assert not any("gamma" in str(w.message) or "max_seconds" in str(w.message) for w in caught)
    assert not model.support_.any()
    np.testing.assert_allclose(model.predict_proba(X), 1.0 / 3.0)


def test_duplicated_rows(estimator):
    X, y = made()
    once = fit_of(estimator().fit(X, y))
    twice = fit_of(estimator().fit(np.concatenate([X, X]), np.concatenate([y, y])))
    assert once.certified_
    assert twice.certified_
    assert twice.zero_variance_


@pytest.mark.parametrize("gamma", [0.3, 0.95])
def test_copies_of_one_sample_for_each_class(gamma):
    """Nothing varies within classes, but for the rounding of their means, which must not be taken for variance."""
    X, y = made()
    X, y = X[:3].repeat(10, axis=0), y[:3].repeat(10)
    for given in (X, scipy.sparse.csr_matrix(X)):
        model = single(gamma=gamma).fit(given, y)
        assert model.certified_
        assert model.support_.any(axis=1).all()
        np.testing.assert_array_equal(model.predict(given), y)
    sparser = single(n_components=1, gamma=0.95, oof=0).fit(X, y)
    assert (
        sparser.support_.sum() < single(n_components=1, gamma=0.3, oof=0).fit(X, y).support_.sum()
    )


def test_copies_with_other_labels_leave_nothing_to_find(estimator):
    """Along w with no variance within classes all samples agree, so that class means do, too."""
    X, y = made()
    X, y = np.concatenate([X, X]), np.concatenate([y, np.roll(y, 1)])
    with pytest.warns(UserWarning, match="as long as samples of a class must not"):
        model = fit_of(estimator().fit(X, y))
    assert not model.support_.any()
    np.testing.assert_allclose(model.predict_proba(X), 1.0 / 3.0)


# -- gamma -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.1, 5.0, (5.0, 5.0)])
@pytest.mark.parametrize("oof", [0, 2])
def test_gamma_that_leaves_only_zero(gamma, oof):
    X, y = made()
    with pytest.warns(
        UserWarning,
        match=r"components 1, 2: gamma = [\d.]+ leaves only .* largest useful share is 1",
    ) as caught:
        model = single(gamma=gamma, oof=oof, priors=[0.2, 0.3, 0.5]).fit(X, y)
    assert len(caught) == 1
    assert not model.support_.any()
    assert model.certified_
    assert set(model.predict(X)) == {"c"}
    if oof:
        np.testing.assert_allclose(model.predict_proba(X), np.tile([0.2, 0.3, 0.5], (30, 1)))


def test_just_below_one_something_is_left():
    X, y = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert single(gamma=0.99, oof=2).fit(X, y).support_.any(axis=1).all()


@pytest.mark.parametrize("gamma", ["big", None, np.nan, -0.5, {"a": 1.0}, True])
def test_gamma_that_is_none(gamma):
    X, y = made()
    with pytest.raises(DataError, match='gamma must be "auto", or shares >= 0'):
        single(gamma=gamma).fit(X, y)


# -- the rest ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"priors": "even"}, "priors must hold numbers"),
        ({"priors": [-1.0, 1.0, 1.0]}, "priors must be 3 numbers >= 0"),
        ({"sigma": ["a"] * 60}, "sigma must hold numbers"),
        ({"orthogonal_to": "batch"}, "orthogonal_to must hold numbers"),
        ({"standardize": "no"}, "standardize must be True or False"),
        ({"class_weight": {"a": -1.0}}, "class_weight must be positive"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_parameters_that_mean_nothing(params, words):
    X, y = made()
    with pytest.raises(DataError, match=words):
        single(**params).fit(X, y)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"cv": 1}, "cv must be a whole number >= 2, got 1"),
        ({"gamma": ()}, r"gamma must hold shares in \[0, 1\)"),
        ({"gamma": (1.0,)}, r"gamma must hold shares in \[0, 1\)"),
        ({"n_components": ()}, "n_components is empty"),
        ({"n_components": (1, 5)}, "n_components=5, but 3 classes"),
        ({"estimator": "lda"}, "estimator must be a ZeroVarianceDiscriminant"),
        ({"repeats": 0}, "repeats must be a whole number >= 1"),
        ({"refit": 1, "gamma": (0.9,), "cv": 2}, "refit must be True or False"),
        ({"one_se": "yes", "gamma": (0.9,), "cv": 2}, "one_se must be True or False"),
        ({"scoring": lambda *_: np.nan, "gamma": (0.9,), "cv": 2}, "scoring gave NaN"),
    ],
)
def test_comparisons_that_mean_nothing(params, words):
    X, y = made()
    with pytest.raises(DataError, match=words):
        ZeroVarianceDiscriminantCV(**{"estimator": single(), **params}).fit(X, y)


def test_groups_that_do_not_fit():
    X, y = made()
    search = ZeroVarianceDiscriminantCV(single(), gamma=(0.5,), cv=2)
    with pytest.raises(ShapeError, match=r"groups has shape \(2,\); expected \(30,\)"):
        search.fit(X, y, groups=[1, 2])
    with pytest.raises(DataError, match="groups leave a class without samples"):
        search.fit(X, y, groups=np.arange(30) % 3)


def test_a_comparison_without_a_refit_says_what_to_do():
    X, y = made()
    search = ZeroVarianceDiscriminantCV(single(), gamma=(0.5,), cv=2, refit=False).fit(X, y)
    with pytest.raises(NotFittedError, match=r"refit=False.*'gamma': 0.5"):
        search.predict(X)
