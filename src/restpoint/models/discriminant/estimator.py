"""Zero-variance discriminant analysis in scikit-learn's manners: the numerics are next door."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from restpoint.errors import CapabilityError
from restpoint.models._shared import needed
from restpoint.models.discriminant import rule as rules
from restpoint.models.discriminant.fitting import Directions, HeldOut, fitted, held_out
from restpoint.models.discriminant.options import (
    classes_of,
    folds_of,
    plan_of,
    priors_of,
    refuse_scale,
    shares_of,
)
from restpoint.models.discriminant.plots import DiscriminantPlots

# The largest useful share is 1; it is known to a thousandth.
USEFUL = 0.999


class ZeroVarianceDiscriminant(
    DiscriminantPlots,
    ClassNamePrefixFeaturesOutMixin,
    ClassifierMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Sparse discriminant vectors along which samples of a class do not vary at all (Ames and Hong; paper, 6.2).

    With more features than samples there are many w with no variance within classes, Q'w = 0. Of these,

        minimise  -w'Bw / 2 + gamma sum_j sigma_j |w_j|    subject to  Q'w = 0, ||w|| <= 1

    finds one that separates the class means (B is the scatter between classes) by few features. It is concave plus
    convex: full conditional gradient steps, Corollary 3.2, each vector with a certificate. The null space is never
    formed.

    Training samples lie on their class means by construction, random labels or not. So what ``predict`` and
    ``predict_proba`` know about spread, and what ``plot_projections`` draws, comes from samples that the directions had
    not seen (``oof``).

    Parameters
    ----------
    n_components : int, default the number of classes - 1 (and no more than the features have room for)
    gamma : "auto" (0.5), a number in [0, 1), or one for each component
        A share of the largest penalty at which a vector better than 0 is known, in the form of the problem that is of
        degree 1, -||B^(1/2)'w|| + t sum_j sigma_j |w_j|: stationary points are the same, with gamma_ = t ||B^(1/2)'w||.
    n_features : int, or one for each component; instead of gamma
        The most features with a coefficient. Nonzero vectors have at least about n_samples - n_classes + 1.
    sigma : "within", None, or an array (n_features,)
        Weights of the features in the penalty: their standard deviation within classes; 1; given.
    standardize : features are divided by their standard deviation; implicit for sparse X
    basis : None, "dct", "haar", or an orthogonal matrix D: D w is sparse instead of w
    shrinkage : "auto", or a number in (0, 1]
        "auto" asks for zero variance where that leaves anything, p > n_samples - n_classes say. Else, and where a
        number is given, w'S w <= 1 takes its place, S = (1 - s) W + s (tr W / p) I with W the covariance within classes
        ("auto": s = 0.1). This costs a p x p eigenvalue problem.
    orthogonal_to : (n_features, k), columns to which w is to be orthogonal (in standardized features)
    priors : (n_classes,), default the shares of the classes
    class_weight : None, "balanced" or a dict: what a class counts for in B and the mean
    starts : starting points of each component: leading directions, contrasts, mixtures drawn with ``random_state``
    oof : folds whose held-out scores tell the spread; 0: none, then ``predict`` takes the nearest class mean
    tol : the certified gap, in units of the largest w'Bw / 2
    max_seconds : time for the directions; then the best so far
    n_jobs : processes (joblib) for the folds

    Attributes
    ----------
    components_ : (n_components, n_features) the certified vectors, of standardized features (in ``basis``)
    scalings_ : (n_features, n_components) the same for X as it is: transform(X) = (X - mean_) @ scalings_
    coef_, intercept_ : of decision_function, for X as it is
    support_ : (n_components, n_features), which coefficients are not 0
    certificates_, certified_, bounds_, gamma_ (of the display above), shares_, n_iter_ : one for each component
    oof_scores_, oof_covariance_ : scores of held-out samples, and their covariance within classes
    selection_frequency_ : in which share of the folds a coefficient is not 0
    classes_, priors_, means_ and feature_means_ (of classes: scores, standardized features), mean_, n_features_in_

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b", "c"], 20)
    >>> X = rng.standard_normal((60, 500))
    >>> X[:, :6] += 3.0 * np.eye(3)[np.repeat([0, 1, 2], 20)].repeat(2, axis=1)
    >>> model = ZeroVarianceDiscriminant().fit(X, y)
    >>> model.certified_, model.predict(X[::20]).tolist()
    (True, ['a', 'b', 'c'])
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's manner: every choice a parameter, checked in fit
        self,
        n_components: int | None = None,
        *,
        gamma: Any = "auto",
        n_features: Any = None,
        sigma: Any = "within",
        standardize: bool = True,
        basis: Any = None,
        shrinkage: Any = "auto",
        orthogonal_to: Any = None,
        priors: Any = None,
        class_weight: Any = None,
        starts: int = 5,
        oof: int = 5,
        random_state: Any = 0,
        tol: float = 1e-8,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.n_features = n_features
        self.sigma = sigma
        self.standardize = standardize
        self.basis = basis
        self.shrinkage = shrinkage
        self.orthogonal_to = orthogonal_to
        self.priors = priors
        self.class_weight = class_weight
        self.starts = starts
        self.oof = oof
        self.random_state = random_state
        self.tol = tol
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions, then how scores of samples that these had not seen are spread."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(y)
        refuse_scale(X)
        self.classes_, code, counts = classes_of(y)
        plan = plan_of(self.get_params(deep=False), X, len(counts))
        folds = folds_of("oof", self.oof, counts, self.classes_)
        shares = shares_of(self.class_weight, code, self.classes_)
        self.priors_ = priors_of(self.priors, shares, self.classes_)
        found = fitted(X, code, shares, plan)
        self._keep(found)
        unseen = None
        if folds:
            unseen = held_out((X, code, shares), plan, folds, found.centroids, self.n_jobs)
        self._judge_spread(unseen, found, code, shares)
        self._code = code
        self._seen = found.centroids if found.zero_variance else found.scores(X)
        self._explain_rule()
        self._warn(found)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The scores (X - mean_) @ scalings_."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.scalings_) - self.mean_ @ self.scalings_

    def decision_function(self, X: Any) -> np.ndarray:
        """Log posteriors up to a number common to all classes; of the second class over the first, if there are two."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        found = np.asarray(X @ self.coef_.T) + self.intercept_
        return found.ravel() if len(self.classes_) == 2 else found

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest decision value."""
        found = self.decision_function(X)
        chosen = (found > 0).astype(int) if found.ndim == 1 else np.argmax(found, axis=1)
        return self.classes_[chosen]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        return np.asarray(log_softmax(self._posterior(X), axis=1))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posteriors of Gaussian classes whose means and covariance are those of held-out scores."""
        return np.asarray(softmax(self._posterior(X), axis=1))

    def _posterior(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if self.oof_scores_ is None:
            raise CapabilityError(
                "predict_proba needs to know how scores of new samples are spread, which training samples cannot tell: "
                "along these directions they do not vary within classes, whatever the labels. Fit with oof=5, say"
            )
        found = self.decision_function(X)
        return np.column_stack([np.zeros(len(found)), found]) if found.ndim == 1 else found

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def signature(self) -> Any:
        """A pandas table of the features in use: one line for each (feature, component) with a coefficient.

        Columns: feature, component (from 1), coefficient (of the standardized feature, or of the basis), the share of
        the folds whose component of that number uses it, and the class means of the standardized feature.
        """
        check_is_fitted(self)
        pandas = needed("pandas", "signature()", extra="frames")
        names = getattr(self, "feature_names_in_", None)
        names = np.arange(self.n_features_in_) if names is None else names
        rows, columns = np.nonzero(self.support_)
        order = np.lexsort((-np.abs(self.components_[rows, columns]), rows))
        rows, columns = rows[order], columns[order]
        table = {
            "feature": np.asarray(names)[columns],
            "component": rows + 1,
            "coefficient": self.components_[rows, columns],
        }
        if self.selection_frequency_ is not None:
            table["selection_frequency"] = self.selection_frequency_[rows, columns]
        for label, means in zip(self.classes_.tolist(), self.feature_means_, strict=True):
            table[f"mean of {label}"] = means[columns]
        return pandas.DataFrame(table)

    # -- what was found ----------------------------------------------------------------------------------

    def _keep(self, found: Directions) -> None:
        one = found.components
        self.components_, self.scalings_, self.mean_ = found.vectors, found.scalings, found.mean
        self.support_ = self.components_ != 0
        self.certificates_ = [c.certificate for c in one]
        self.certified_ = all(c.certified for c in one)
        self.bounds_ = [c.bound for c in one]
        self.gamma_ = np.array([c.gamma for c in one])
        self.shares_ = np.array([c.share for c in one])
        self.n_iter_ = sum(c.iterations for c in one)
        self.zero_variance_ = found.zero_variance
        self.means_, self.feature_means_ = found.centroids, found.scatter.centroids

    def _judge_spread(
        self, unseen: HeldOut | None, found: Directions, code: np.ndarray, shares: np.ndarray
    ) -> None:
        """The rule of classification: from scores of samples that the directions had not seen, if there are any."""
        self.oof_scores_ = None if unseen is None else unseen.scores
        self.selection_frequency_ = None if unseen is None else unseen.frequency
        if unseen is None:
            self._rule, self.oof_covariance_ = (
                rules.nearest_centroid(found.centroids, self.priors_),
                None,
            )
        else:
            self._rule, self.oof_covariance_ = rules.out_of_fold(
                unseen.scores, code, shares, self.priors_
            )

    def _explain_rule(self) -> None:
        """coef_ and intercept_ for X as it is; of the second class less the first, where there are two."""
        slopes = self._rule.slopes @ self.scalings_.T
        intercepts = self._rule.intercepts - slopes @ self.mean_
        if len(self.classes_) == 2:
            with np.errstate(invalid="ignore"):
                slopes, intercepts = slopes[1:] - slopes[:1], intercepts[1:] - intercepts[:1]
        self.coef_, self.intercept_ = slopes, intercepts

    def _warn(self, found: Directions) -> None:
        empty = [(number, one) for number, one in enumerate(found.components, 1) if one.empty]
        crushed = [(number, one.share) for number, one in empty if one.share > USEFUL]
        if crushed:
            warnings.warn(
                f"{_listed([number for number, _ in crushed])}: gamma = {crushed[0][1]:.3g} leaves only the zero "
                "vector; the largest useful share is 1: choose a smaller one",
                UserWarning,
                stacklevel=3,
            )
        if len(empty) > len(crushed):
            where = ", as long as samples of a class must not" if found.zero_variance else ""
            warnings.warn(
                f"{_listed([number for number, one in empty if one.share <= USEFUL])}: zero, because the class means "
                f"do not differ along any direction that is left{where}",
                UserWarning,
                stacklevel=3,
            )
        for number, one in enumerate(found.components, 1):
            if not one.certified and one.eps > 0.0:
                warnings.warn(
                    f"component {number} ended without a certificate: {one.status.value}; its gap is "
                    f"{float(one.certificate.max):.2g}, of {one.eps:.2g} allowed. Raise max_seconds or tol",
                    ConvergenceWarning,
                    stacklevel=3,
                )


def _listed(numbers: list[int]) -> str:
    """Components, in words.

    >>> _listed([2]), _listed([1, 2]), _listed([3, 4, 5])
    ('component 2', 'components 1, 2', 'components 3, 4, 5')
    """
    return f"component{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
