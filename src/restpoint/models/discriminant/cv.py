"""The number of components and the penalty, chosen by samples that were held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedGroupKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from restpoint.array import real_number, truth, whole_number
from restpoint.errors import DataError, ShapeError
from restpoint.models._shared import seed_of
from restpoint.models.discriminant import rule as rules
from restpoint.models.discriminant.directions import Wish
from restpoint.models.discriminant.estimator import ZeroVarianceDiscriminant
from restpoint.models.discriminant.fitting import Directions, Plan, along
from restpoint.models.discriminant.options import (
    classes_of,
    components_of,
    folds_of,
    plan_of,
    refuse_scale,
    shares_of,
)
from restpoint.models.discriminant.plots import DiscriminantSearchPlots

# Shares of the largest penalty that are compared.
GRID = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)
SCORES: dict[str, Callable[..., float]] = {
    "balanced_accuracy": balanced_accuracy_score,
    "accuracy": accuracy_score,
}


class ZeroVarianceDiscriminantCV(
    DiscriminantSearchPlots, ClassifierMixin, TransformerMixin, BaseEstimator
):
    r"""``ZeroVarianceDiscriminant`` with the number of components and the penalty that classify held-out samples best.

    In every split the directions are found anew, standardisation included, and held-out samples get the class of the
    nearest class mean.

    Parameters
    ----------
    estimator : a ZeroVarianceDiscriminant, what it is to be but for n_components and gamma
    n_components : numbers to compare, or one; default all up to the number of classes - 1
    gamma : shares of the largest penalty to compare
    cv, repeats : folds, and how many times they are drawn anew (stratified; by ``groups`` of fit, if given)
    scoring : "balanced_accuracy", "accuracy", or a function of (y_true, y_pred), larger is better
    one_se : True
        Takes the sparsest model (fewest components, then the largest penalty) whose mean score is within one standard
        error, over the held-out parts, of the best. False takes the best; of equal ones the sparsest.
    refit : True keeps the estimator fitted to all samples in ``best_estimator_``
    random_state, n_jobs : of the splits; processes (joblib)

    Attributes
    ----------
    cv_results_ : dict of columns, one line for each (n_components, gamma): mean score and its standard error,
        ``scores`` of every held-out part, mean number of ``features`` in use, the share of parts ``certified``
    best_params_, best_index_, best_score_, best_estimator_, classes_

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = rng.standard_normal((60, 300))
    >>> X[:, :6] += 3.0 * np.eye(3)[y].repeat(2, axis=1)
    >>> search = ZeroVarianceDiscriminantCV(gamma=(0.5, 0.9), cv=3).fit(X, y)
    >>> search.best_params_["n_components"]
    2
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's manner: every choice a parameter, checked in fit
        self,
        estimator: Any = None,
        *,
        n_components: Any = None,
        gamma: Sequence[float] = GRID,
        cv: int = 5,
        repeats: int = 1,
        scoring: Any = "balanced_accuracy",
        one_se: bool = True,
        refit: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.gamma = gamma
        self.cv = cv
        self.repeats = repeats
        self.scoring = scoring
        self.one_se = one_se
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Compare, choose, and fit what was chosen to all samples."""
        given = X
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(y)
        base = ZeroVarianceDiscriminant() if self.estimator is None else self.estimator
        if not isinstance(base, ZeroVarianceDiscriminant):
            raise DataError(
                f"estimator must be a ZeroVarianceDiscriminant or None, got {type(base).__name__}"
            )
        refuse_scale(X)
        self.classes_, code, counts = classes_of(y)
        plan = plan_of(
            {
                **base.get_params(deep=False),
                "n_components": None,
                "gamma": "auto",
                "n_features": None,
            },
            X,
            len(counts),
        )
        ranks, shares = self._ranks(X.shape[1], len(counts)), self._shares()
        class_shares = shares_of(base.class_weight, code, self.classes_)
        parts = list(self._parts(code, counts, groups))
        score = self._score()
        jobs = (
            delayed(_scored)(
                (X, code, class_shares),
                replace(plan, wishes=(Wish(),) * max(ranks)),
                part,
                (shares, ranks, score),
            )
            for part in parts
        )
        found = Parallel(n_jobs=self.n_jobs)(jobs)
        self.cv_results_ = _tabulated(ranks, shares, found, len(parts))
        if np.isnan(self.cv_results_["score"]).any():
            raise DataError("scoring gave NaN for a held-out part; it must give a number for each")
        self.best_index_ = self._chosen()
        line = self.best_index_
        self.best_params_ = {
            "n_components": int(self.cv_results_["n_components"][line]),
            "gamma": float(self.cv_results_["gamma"][line]),
        }
        self.best_score_ = float(self.cv_results_["score"][line])
        if truth("refit", self.refit):
            self.best_estimator_ = (
                clone(base).set_params(**self.best_params_, n_features=None).fit(given, y)
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """``best_estimator_.predict(X)``."""
        return np.asarray(self._best().predict(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """``best_estimator_.decision_function(X)``."""
        return np.asarray(self._best().decision_function(X))

    def transform(self, X: Any) -> np.ndarray:
        """``best_estimator_.transform(X)``."""
        return self._best().transform(X)

    @available_if(lambda self: self.estimator is None or getattr(self.estimator, "oof", 0) != 0)
    def predict_proba(self, X: Any) -> np.ndarray:
        """``best_estimator_.predict_proba(X)``."""
        return np.asarray(self._best().predict_proba(X))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``best_estimator_.get_feature_names_out()``."""
        return np.asarray(self._best().get_feature_names_out(input_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _best(self) -> ZeroVarianceDiscriminant:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                "with refit=False nothing was fitted to all samples; say refit=True, or fit "
                f"ZeroVarianceDiscriminant(**search.best_params_), here {self.best_params_}"
            )
        return self.best_estimator_

    def _ranks(self, size: int, classes: int) -> list[int]:
        if self.n_components is None:
            return list(range(1, components_of(None, size, classes) + 1))
        listed = np.atleast_1d(np.asarray(self.n_components, dtype=object)).tolist()
        if not listed:
            raise DataError("n_components is empty; give the numbers to compare, as in (1, 2)")
        return sorted({components_of(k, size, classes) for k in listed})

    def _shares(self) -> list[float]:
        found = [
            real_number("gamma", g, "shares in [0, 1)") for g in np.atleast_1d(self.gamma).tolist()
        ]
        if not found or not all(0.0 <= g < 1.0 for g in found):
            raise DataError(
                f"gamma must hold shares in [0, 1) of the largest penalty, got {self.gamma!r}"
            )
        return sorted(set(found))

    def _parts(
        self, code: np.ndarray, counts: np.ndarray, groups: Any
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        folds = folds_of("cv", self.cv, counts, self.classes_)
        if folds < self.cv:
            rare = self.classes_.tolist()[int(np.argmin(counts))]
            warnings.warn(
                f"class {rare!r} has {counts.min()} samples, so that there are {folds} folds instead of {self.cv}",
                UserWarning,
                stacklevel=3,
            )
        repeats, seed = whole_number("repeats", self.repeats, 1), seed_of(self.random_state)
        if groups is None:
            splits = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
            yield from splits.split(code, code)
            return
        groups = np.asarray(groups)
        if groups.shape != code.shape:
            raise ShapeError(
                f"groups has shape {groups.shape}; expected {code.shape}, one entry for each sample"
            )
        for k in range(repeats):
            split = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=seed + k)
            for train, held in split.split(code, code, groups):
                if len(np.unique(code[train])) < len(counts):
                    raise DataError(
                        "groups leave a class without samples in a training part; ask for other folds, or join groups"
                    )
                yield train, held

    def _score(self) -> Callable[..., float]:
        if callable(self.scoring):
            return self.scoring
        if self.scoring not in SCORES:
            raise DataError(
                f"scoring must be {', '.join(map(repr, SCORES))} or a function of (y_true, y_pred), "
                f"got {self.scoring!r}"
            )
        return SCORES[self.scoring]

    def _chosen(self) -> int:
        table = self.cv_results_
        best = int(np.argmax(table["score"]))
        slack = table["se"][best] if truth("one_se", self.one_se) else 0.0
        lines = np.flatnonzero(table["score"] >= table["score"][best] - np.nan_to_num(slack))
        return int(lines[np.lexsort((-table["gamma"][lines], table["n_components"][lines]))[0]])


def _scored(
    data: tuple[Any, np.ndarray, np.ndarray],
    plan: Plan,
    part: tuple[np.ndarray, np.ndarray],
    asked: tuple[list[float], list[int], Callable[..., float]],
) -> list[list[tuple[float, int, bool]]]:
    """Score, features in use and whether certified, for each share and number of components."""
    (X, code, shares), (train, held), (penalties, ranks, score) = data, part, asked
    # From the largest penalty down: the sparsest vectors are found at the least cost, and the next ones are near.
    several = [tuple(replace(wish, share=g) for wish in plan.wishes) for g in reversed(penalties)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # certified or not is in the table
        path = list(along((X[train], code[train], shares), plan, several))
    held_out = X[held], code[held]
    return [_lines(found, held_out, shares, (ranks, score)) for found in reversed(path)]


def _lines(
    found: Directions,
    held: tuple[Any, np.ndarray],
    shares: np.ndarray,
    asked: tuple[list[int], Callable[..., float]],
) -> list[tuple[float, int, bool]]:
    """For each number of components."""
    (X, code), (ranks, score) = held, asked
    scores, lines = found.scores(X), []
    for rank in ranks:
        rule = rules.nearest_centroid(found.centroids[:, :rank], shares)
        chosen = np.argmax(scores[:, :rank] @ rule.slopes.T + rule.intercepts, axis=1)
        features = int(np.count_nonzero(np.any(found.vectors[:rank] != 0, axis=0)))
        certified = all(one.certified for one in found.components[:rank])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a small held-out part may lack a class
            lines.append((float(score(code, chosen)), features, certified))
    return lines


def _tabulated(
    ranks: list[int],
    shares: list[float],
    found: list[list[list[tuple[float, int, bool]]]],
    parts: int,
) -> dict[str, np.ndarray]:
    """One line for each number of components and share."""
    table = np.array(found, dtype=np.float64).reshape(parts, len(shares), len(ranks), 3)
    scores, features, certified = (
        table[..., k].transpose(2, 1, 0).reshape(-1, parts) for k in range(3)
    )
    return {
        "n_components": np.repeat(ranks, len(shares)),
        "gamma": np.tile(shares, len(ranks)),
        "score": scores.mean(axis=1),
        "se": scores.std(axis=1, ddof=1) / np.sqrt(parts),
        "features": features.mean(axis=1),
        "certified": certified.mean(axis=1),
        "scores": scores,
    }
