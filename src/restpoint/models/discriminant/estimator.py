"""Zero-variance discriminant analysis in scikit-learn's manners: the numerics are next door."""

from __future__ import annotations

import time
import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from restpoint.array import real_number, whole_number
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models.discriminant import rule as rules
from restpoint.models.discriminant.bases import basis_of
from restpoint.models.discriminant.directions import AUTO, Budget, Wish
from restpoint.models.discriminant.fitting import Directions, Plan, fitted
from restpoint.models.tensor_pca.options import seed_of


class ZeroVarianceDiscriminant(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    r"""Sparse discriminant vectors along which samples of a class do not vary at all (Ames and Hong; paper, 6.2).

    With more features than samples there are many w with no variance within classes, Q'w = 0. Of these,

        minimise  -w'Bw / 2 + gamma sum_j sigma_j |w_j|    subject to  Q'w = 0, ||w|| <= 1

    finds one that separates the class means (B is the scatter between classes) by few features. It is concave plus
    convex: full conditional gradient steps, Corollary 3.2, each vector with a certificate. The null space is never formed.

    Training samples lie on their class means by construction, random labels or not. So what ``predict`` and
    ``predict_proba`` know about spread comes from samples that the directions had not seen (``oof``).

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
    orthogonal_to : (n_features, k), w is to be orthogonal to these columns (in standardized features); zero variance only
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
    classes_, priors_, means_ (of classes, scores), mean_, n_features_in_, feature_names_in_

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
        self.classes_, code = np.unique(y, return_inverse=True)
        counts = np.bincount(code)
        if len(counts) < 2:
            raise DataError(
                f"y holds one class, {self.classes_[0]!r}; a discriminant needs samples of at least 2 classes"
            )
        plan, folds = self._plan(X, len(counts)), self._folds(counts)
        shares = self._shares(code, counts)
        self.priors_ = self._priors(shares)
        found = fitted(X, code, shares, plan)
        self._keep(found)
        if folds:
            seed = plan.budget.seed
            parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(code, code)
            jobs = (
                delayed(_unseen)(X, code, shares, plan, train, held, found.centroids)
                for train, held in parts
            )
            scores = np.zeros((len(code), len(found.components)))
            times = np.zeros(found.vectors.shape)
            for held, own, support in Parallel(n_jobs=self.n_jobs)(jobs):
                scores[held] = own
                times += support
            self.oof_scores_, self.selection_frequency_ = scores, times / folds
            self._rule, self.oof_covariance_ = rules.out_of_fold(scores, code, shares, self.priors_)
        else:
            self.oof_scores_ = self.oof_covariance_ = self.selection_frequency_ = None
            self._rule = rules.nearest_centroid(found.centroids, self.priors_)
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

    # -- what was asked for ------------------------------------------------------------------------------

    def _plan(self, X: Any, classes: int) -> Plan:
        size = X.shape[1]
        most = min(classes - 1, size)
        count = (
            most
            if self.n_components is None
            else whole_number("n_components", self.n_components, 1)
        )
        if count > most:
            raise DataError(
                f"n_components={count}, but {classes} classes of {size} features have at most {most} discriminants"
            )
        basis = basis_of(self.basis, size)
        if sparse.issparse(X) and not basis.identity:
            raise DataError(
                f"basis={basis.name!r} mixes all features, which would make X dense; give X.toarray(), or basis=None"
            )
        shrinkage = None
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            shrinkage = real_number("shrinkage", self.shrinkage, 'a number in (0, 1], or "auto"')
            if not 0.0 < shrinkage <= 1.0:
                raise DataError(f'shrinkage must be a number in (0, 1], or "auto", got {shrinkage}')
        tol = real_number("tol", self.tol, "a number > 0")
        if not tol > 0:
            raise DataError(f"tol must be a number > 0, got {tol}")
        return Plan(
            wishes=self._wishes(count, size),
            standardize=bool(self.standardize),
            basis=basis,
            sigma=self._sigma(size),
            shrinkage=shrinkage,
            orthogonal_to=self._columns(size),
            budget=Budget(
                whole_number("starts", self.starts, 1),
                tol,
                seed_of(self.random_state),
                self._deadline(),
            ),
        )

    def _deadline(self) -> Deadline | None:
        if self.max_seconds is None:
            return None
        seconds = real_number("max_seconds", self.max_seconds, "a number > 0, or None")
        if not seconds > 0:
            raise DataError(f"max_seconds must be a number > 0, or None, got {seconds}")
        return Deadline(time.monotonic() + seconds)

    def _wishes(self, count: int, size: int) -> tuple[Wish, ...]:
        automatic = isinstance(self.gamma, str) and self.gamma == "auto"
        if self.n_features is not None:
            if not automatic:
                raise DataError(
                    f"n_features and gamma={self.gamma!r} both decide about sparsity; give one of them"
                )
            numbers = _each("n_features", self.n_features, count)
            features = [whole_number("n_features", number, 1) for number in numbers]
            if max(features) > size:
                raise DataError(f"n_features={max(features)}, but X has {size} features")
            return tuple(Wish(features=number) for number in features)
        if automatic:
            return (Wish(AUTO),) * count
        shares = [
            real_number("gamma", g, '"auto", or numbers in [0, 1)')
            for g in _each("gamma", self.gamma, count)
        ]
        if not all(0.0 <= g for g in shares):
            raise DataError(
                f'gamma must be "auto", or shares of gamma_max_ >= 0, got {self.gamma!r}'
            )
        return tuple(Wish(g) for g in shares)

    def _sigma(self, size: int) -> np.ndarray | None:
        if isinstance(self.sigma, str) and self.sigma == "within":
            return None
        if self.sigma is None:
            return np.ones(size)
        if isinstance(self.sigma, str):
            raise DataError(
                f'sigma must be "within", None, or an array ({size},), got {self.sigma!r}'
            )
        found = np.asarray(self.sigma, dtype=np.float64)
        if found.shape != (size,):
            raise ShapeError(
                f'sigma has shape {found.shape}; expected ({size},), one weight a feature, "within" or None'
            )
        if not (np.isfinite(found).all() and (found > 0).all()):
            raise DataError(
                "sigma must hold positive finite weights; a feature that is free needs a small one"
            )
        return found

    def _columns(self, size: int) -> np.ndarray | None:
        if self.orthogonal_to is None:
            return None
        found = np.asarray(self.orthogonal_to, dtype=np.float64)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != size:
            raise ShapeError(
                f"orthogonal_to has shape {found.shape}; expected ({size}, k), one column for each vector"
            )
        if not np.isfinite(found).all():
            raise DataError("orthogonal_to contains NaN or infinity; expected finite columns")
        return found

    def _folds(self, counts: np.ndarray) -> int:
        folds = whole_number("oof", self.oof, 0)
        if folds == 1:
            raise DataError("oof=1 leaves nothing to fit; give at least 2 folds, or 0 for none")
        least = int(counts.min())
        if folds and least < 2:
            rare = self.classes_[int(np.argmin(counts))]
            raise DataError(
                f"class {rare!r} has one sample, so that no fold can hold one out and keep one; drop the class, "
                "or say oof=0 (then there are no probabilities)"
            )
        return min(folds, least)

    def _shares(self, code: np.ndarray, counts: np.ndarray) -> np.ndarray:
        from sklearn.utils.class_weight import compute_class_weight

        each = (
            compute_class_weight(self.class_weight, classes=np.arange(len(counts)), y=code)
            if not isinstance(self.class_weight, dict)
            else np.array([float(self.class_weight.get(c, 1.0)) for c in self.classes_.tolist()])
        )
        shares = counts * each
        if not (np.isfinite(shares).all() and (shares > 0).all()):
            raise DataError(
                f"class_weight must be positive for every class, got {self.class_weight!r}"
            )
        return shares / shares.sum()

    def _priors(self, shares: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return shares
        found = np.asarray(self.priors, dtype=np.float64)
        if (
            found.shape != shares.shape
            or not np.isfinite(found).all()
            or (found < 0).any()
            or not found.sum() > 0
        ):
            raise DataError(
                f"priors must be {len(shares)} numbers >= 0, one for each of {self.classes_.tolist()}, got {self.priors!r}"
            )
        return found / found.sum()

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
        self.means_ = found.centroids

    def _explain_rule(self) -> None:
        """coef_ and intercept_ for X as it is; of the second class less the first, where there are two."""
        slopes = self._rule.slopes @ self.scalings_.T
        intercepts = self._rule.intercepts - slopes @ self.mean_
        if len(self.classes_) == 2:
            with np.errstate(invalid="ignore"):
                slopes, intercepts = slopes[1:] - slopes[:1], intercepts[1:] - intercepts[:1]
        self.coef_, self.intercept_ = slopes, intercepts

    def _warn(self, found: Directions) -> None:
        for number, one in enumerate(found.components, 1):
            if one.empty and one.share > 0:
                warnings.warn(
                    f"component {number}: gamma = {one.share:.3g} leaves only the zero vector; the largest useful share is "
                    "1: choose a smaller one",
                    UserWarning,
                    stacklevel=3,
                )
            elif one.empty:
                warnings.warn(
                    f"component {number} is zero: beyond the first {number - 1}, the classes do not differ along any "
                    "direction that is left",
                    UserWarning,
                    stacklevel=3,
                )
            if not one.certified:
                warnings.warn(
                    f"component {number} ended without a certificate: {one.status.value}; its gap is "
                    f"{float(one.certificate.max):.2g}, of {one.eps:.2g} allowed. Raise max_seconds or tol",
                    ConvergenceWarning,
                    stacklevel=3,
                )


class Deadline:
    """Seconds left; a value that processes can be handed."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return max(1e-3, self.at - time.monotonic())


def _unseen(
    X: Any,
    code: np.ndarray,
    shares: np.ndarray,
    plan: Plan,
    train: np.ndarray,
    held: np.ndarray,
    wanted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of held-out samples by the directions of the others, turned to those of all; and the support of these."""
    found = fitted(X[train], code[train], shares, plan)
    scores = rules.aligned(found.scores(X[held]), found.centroids, wanted)
    return held, scores, found.vectors != 0


def _each(name: str, given: Any, count: int) -> list[Any]:
    """One entry for each component."""
    if np.ndim(given) == 0:
        return [given] * count
    found = list(given)
    if len(found) != count:
        raise ShapeError(
            f"{name} has {len(found)} entries; expected one number, or {count}: one for each component"
        )
    return found
