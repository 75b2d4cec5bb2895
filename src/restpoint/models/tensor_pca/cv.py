"""The number of components and rho, chosen by entries that were held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from restpoint.array import real_number, whole_number
from restpoint.errors import CapabilityError, DataError, described
from restpoint.models._shared import seed_of
from restpoint.models.tensor_pca import data as intake
from restpoint.models.tensor_pca import rank_one
from restpoint.models.tensor_pca.cv_plots import ComparisonPlots
from restpoint.models.tensor_pca.estimator import SparseTensorPCA, remember_features
from restpoint.models.tensor_pca.folds import Column, Study, columns, of_all, replicability
from restpoint.models.tensor_pca.holdout import halves, masks
from restpoint.models.tensor_pca.options import listed_rho
from restpoint.models.tensor_pca.table import Table

# The grid of an automatic rho, in units of rho_max_.
FRACTIONS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.0)
# Errors that differ by less are the same: the fits are not settled to more.
RESOLVED = 1e-6
# How many times the samples are split in two halves.
SPLITS = 3
# Options of the estimator that the missing-data path does not have.
NOT_HERE = {"n_nonzero": None, "sets": None, "penalties": None, "deflation": "joint"}


class SparseTensorPCACV(ComparisonPlots, TransformerMixin, BaseEstimator):
    r"""``SparseTensorPCA`` with the number of components and rho that predict held-out entries best.

    Observed entries are held out (taken as missing, never as zero), the rest is fitted, and

        error = sum over held-out (A - fit)^2 / sum over held-out A^2

    is compared: 1 is what no component at all would reach. No slice loses so many entries that the largest model has
    fewer than n_components left there.

    Parameters
    ----------
    n_components : numbers of components to compare
    rho : "auto", the numbers to compare, or {mode: "auto"}
        "auto": fractions of ``rho_max_``; by mode, the others stay dense. Absolute, as in the estimator, and meant for
        all observed entries: a fit of a share s of them, whose F is s times as large, is given s rho.
    folds : how many parts the observed entries are dealt into, each held out once
    holdout : a share in (0, 1), default none
        Instead of the parts, each of the folds holds out this share at random.
    repeats : how many times all that is done, with new random parts
    random_state : of the parts, and of the estimator
    one_se : True
        Takes the fewest components, and of these the largest rho, whose mean error is within one standard error (over
        the held-out parts) of the least. False takes the least.
    refit : True keeps the estimator fitted to all of X in ``best_estimator_``
    n_jobs : processes (joblib); results do not depend on it
    options : everything else is passed to ``SparseTensorPCA``: nonneg, starts, init, tol, max_seconds (of each fit),
        center, scale, sample_mode, mode_names

    Attributes
    ----------
    cv_results_ : one line for each (n_components, rho): mean and se of the error, ``errors`` of every held-out part,
        how many components were ``alive`` and what share of the fits ended ``certified``. ``to_dataframe()``
    by_components_ : one line for each number of components, at the rho that the same rule takes for it: error and its
        se; ``fit``, the explained variance of the estimator fitted to all of X; its ``core_consistency`` (Bro and
        Kiers); and ``replicability``, the mean congruence of the components of two random halves of the samples,
        best matched (the product of cosines over the other modes; over 3 splits; NaN if there are too few samples)
    best_params_, best_index_ (line of cv_results_), best_estimator_, rho_max_

    The standard errors take the parts for independent, which they are not quite.

    Pictures: ``plot_errors``, ``plot_components``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = [np.linalg.qr(rng.standard_normal((6, 2)))[0].T for _ in range(3)]
    >>> A = np.einsum("r,ra,rb,rc->abc", [9.0, 7.0], *rows) + 0.1 * rng.standard_normal((6, 6, 6))
    >>> search = SparseTensorPCACV((1, 2), rho=[0.0, 0.3], folds=3).fit(A)
    >>> search.best_params_["n_components"], search.by_components_["error"].round(2)
    (2, array([0.44, 0.03]))
    """

    def __init__(
        self,
        n_components: Sequence[int] = (1, 2, 3),
        *,
        rho: Any = "auto",
        folds: int = 5,
        holdout: float | None = None,
        repeats: int = 1,
        random_state: Any = 0,
        one_se: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        self.n_components = n_components
        self.rho = rho
        self.folds = folds
        self.holdout = holdout
        self.repeats = repeats
        self.random_state = random_state
        self.one_se = one_se
        self.refit = refit
        self.n_jobs = n_jobs
        unknown = _unknown(options)
        if unknown:
            raise TypeError(unknown)
        self.options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {**super().get_params(deep), **self.options}

    def set_params(self, **params: Any) -> Self:
        own = {name: params[name] for name in params if name in self._get_param_names()}
        more = {name: params[name] for name in params if name not in own}
        unknown = _unknown(more)
        if unknown:
            raise ValueError(unknown)
        self.options = {**self.options, **more}
        return super().set_params(**own)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compare, choose, and fit what was chosen to all of X.

        X is an array (NaN or masked: missing), a .npy name, a DataFrame or a DataArray. Ctrl-C ends it all.
        """
        self._check()
        counts = self._counts()
        seed = seed_of(self.random_state)
        study, self.rho_max_ = self._study(X, seed, counts)
        parts = self._parts(study, seed, max(counts))
        jobs = [delayed(columns)(study, held, counts) for held in parts]
        self.cv_results_ = _tabulated(study, counts, Parallel(n_jobs=self.n_jobs)(jobs))
        lines = [self._chosen(self.cv_results_["n_components"] == rank) for rank in counts]
        best = self._chosen(self.cv_results_["n_components"] > 0)
        if best is None:
            raise DataError(f"no fit succeeded: {self.cv_results_.reason}")
        self.best_index_ = self.cv_results_.chosen = best
        self.best_params_ = self._params(study, best)
        if self.refit:
            self.best_estimator_ = self._refitted(X, seed)
        self.by_components_ = self._compared(study, counts, lines, seed)
        for table in (self.cv_results_, self.by_components_):
            if table.reason:
                text = f"some fits failed, their entries are NaN: {table.reason}"
                warnings.warn(text, UserWarning, stacklevel=2)
                break
        return self

    def transform(self, X: Any) -> np.ndarray:
        """``best_estimator_.transform(X)``."""
        return self._best().transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``best_estimator_.get_feature_names_out()``."""
        return np.asarray(self._best().get_feature_names_out(input_features))

    def _best(self) -> SparseTensorPCA:
        check_is_fitted(self, "by_components_")
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                "with refit=False there is no best_estimator_; fit SparseTensorPCA(**search.best_params_), or search "
                "with refit=True"
            )
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False
        return tags

    def _check(self) -> None:
        """Refuse what could not be meant."""
        for name, value in (("one_se", self.one_se), ("refit", self.refit)):
            if not isinstance(value, (bool, np.bool_)):
                raise DataError(f"{name} must be True or False, got {value!r}")
        jobs, whole = self.n_jobs, isinstance(self.n_jobs, (int, np.integer))
        if jobs is not None and (not whole or isinstance(jobs, bool) or jobs == 0):
            raise DataError(
                f"n_jobs must be a number of processes, -1 for all cores, or None, got {jobs!r}"
            )
        for name, only in NOT_HERE.items():
            if self.options.get(name, only) != only:
                raise DataError(
                    f"{name}={self.options[name]!r} is not available here: held-out entries are missing ones, for "
                    f"which SparseTensorPCA has unit balls (nonneg), l1 and joint refinement alone; leave {name} out"
                )

    def _counts(self) -> list[int]:
        given = self.n_components
        listed = given if isinstance(given, (list, tuple, range, np.ndarray)) else [given]
        counts = sorted({whole_number("n_components", one, 1) for one in listed})
        if not counts:
            raise DataError("n_components is empty; give the numbers to compare, as in (1, 2, 3)")
        return counts

    def _parts(self, study: Study, seed: int, most: int) -> list[np.ndarray]:
        """What is held out, ``folds`` times ``repeats`` times."""
        folds = whole_number("folds", self.folds, 2 if self.holdout is None else 1)
        repeats = whole_number("repeats", self.repeats, 1)
        share = None
        if self.holdout is not None:
            share = real_number("holdout", self.holdout, "a share in (0, 1), or None")
            if not 0.0 < share < 1.0:
                raise DataError(f"holdout must be a share in (0, 1), or None, got {share}")
        seen = ~np.isnan(study.array)
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng((seed, 0, repeat))
            found += masks(
                seen,
                rng,
                folds=folds,
                share=share,
                keep=most,
                centred=study.center,
                sample=study.sample,
            )
        return found

    def _study(self, X: Any, seed: int, counts: list[int]) -> tuple[Study, float]:
        """The data and the grid, checked as the estimator checks them."""
        array = _entries(X)
        by_mode = isinstance(self.rho, (str, dict))
        model = SparseTensorPCA(
            max(counts),
            **{**self.options, "rho": self.rho if by_mode else "auto", "random_state": seed},
        )
        data, options = model._prepared(X, remember=False)
        if options.wish.rho != "auto":
            raise DataError(
                f'rho must be "auto", numbers to compare, or "auto" by mode, got {self.rho!r}; give numbers as a list'
            )
        task = options.task
        pool = rank_one.search(task)
        rho_max, pool = rank_one.ceiling(task, pool)
        grid = rho_max * np.array(FRACTIONS) if by_mode else listed_rho(self.rho)
        study = Study(
            array=array,
            names=data.names,
            center=data.modes(self.options.get("center"), "center"),
            scale=data.modes(self.options.get("scale"), "scale"),
            rho=np.unique(grid),
            ratios=task.ratios,
            sample=data.mode(self.options.get("sample_mode", 0), "sample_mode"),
            params={
                **_without(self.options, ("center", "scale", "sample_mode")),
                "random_state": seed,
                "mode_names": data.names,
            },
        )
        remember_features(self, X, data, study.sample)
        return study, rho_max

    def _chosen(self, among: np.ndarray) -> int | None:
        """The line of the table that the rule takes, None where no fit succeeded."""
        table = self.cv_results_
        error = np.where(among & ~np.isnan(table["error"]), table["error"], np.inf)
        least = int(np.argmin(error))
        if not np.isfinite(error[least]):
            return None
        near = max(RESOLVED, float(np.nan_to_num(table["se"][least])) if self.one_se else 0.0)
        allowed = error[least] + near
        lines = np.flatnonzero(error <= allowed)
        return int(lines[np.lexsort((-table["rho"][lines], table["n_components"][lines]))[0]])

    def _refitted(self, X: Any, seed: int) -> SparseTensorPCA:
        """The estimator that was chosen, fitted to all of X; what it warns of is the user's to know."""
        model = SparseTensorPCA(**{**self.options, **self.best_params_, "random_state": seed})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        for one in caught:
            warnings.warn(one.message, one.category, stacklevel=3)
        return model

    def _compared(
        self, study: Study, counts: list[int], lines: list[int | None], seed: int
    ) -> Table:
        """For every number of components, at its own rho: how a fit to all of the data does, and one to halves."""
        table = self.cv_results_
        rho, error, se = (
            np.array([np.nan if line is None else table[name][line] for line in lines])
            for name in ("rho", "error", "se")
        )
        known = [(k, float(r)) for k, r in zip(counts, rho, strict=True) if not np.isnan(r)]
        rng = np.random.default_rng((seed, 1))
        pairs = [halves(~np.isnan(study.array), study.sample, rng) for _ in range(SPLITS)]
        pairs = [pair for pair in pairs if pair is not None]
        run = Parallel(n_jobs=self.n_jobs)
        whole = run([delayed(of_all)(study, k, r) for k, r in known])
        alike = run([delayed(replicability)(study, pair, k, r) for k, r in known for pair in pairs])
        at = {k: i for i, (k, _) in enumerate(known)}
        found = {
            "n_components": np.array(counts),
            "rho": rho,
            "error": error,
            "se": se,
            "fit": np.array([whole[at[k]][0] if k in at else np.nan for k in counts]),
            "core_consistency": np.array([whole[at[k]][1] if k in at else np.nan for k in counts]),
            "replicability": np.array(
                [
                    np.mean(alike[at[k] * len(pairs) : (at[k] + 1) * len(pairs)])
                    if k in at and pairs
                    else np.nan
                    for k in counts
                ]
            ),
        }
        by_components = Table(found)
        by_components.chosen = counts.index(int(table["n_components"][self.best_index_]))
        by_components.reason = next((why for *_, why in whole if why), table.reason)
        return by_components

    def _params(self, study: Study, line: int) -> dict[str, Any]:
        """What the estimator is given: one rho, or one by mode where some stay dense."""
        table = self.cv_results_
        rho: Any = float(table["rho"][line])
        if min(study.ratios) < 1.0:
            rho = {
                name: rho for name, ratio in zip(study.names, study.ratios, strict=True) if ratio
            }
        return {"n_components": int(table["n_components"][line]), "rho": rho}


def _tabulated(study: Study, counts: Sequence[int], parts: Sequence[list[Column]]) -> Table:
    """One line for each number of components and rho."""
    lines = len(study.rho)
    error, alive, certified = (
        np.array([[getattr(column, name) for column in part] for part in parts])
        .transpose(1, 2, 0)
        .reshape(len(counts) * lines, len(parts))
        for name in ("error", "alive", "certified")
    )
    se = (
        np.std(error, axis=1, ddof=1) / np.sqrt(len(parts))
        if len(parts) > 1
        else np.full(len(error), np.nan)
    )
    table = Table(
        n_components=np.repeat(counts, lines),
        rho=np.tile(study.rho, len(counts)),
        error=error.mean(axis=1),
        se=se,
        alive=alive.mean(axis=1),
        certified=certified.mean(axis=1),
        errors=error,
    )
    table.reason = next((own.reason for part in parts for own in part if own.reason), "")
    return table


def _entries(X: Any) -> np.ndarray:
    """The array of entries, NaN where one is missing."""
    bare = intake._unlabelled(X)[0]
    if isinstance(bare, (str, Path)):
        bare = intake._mapped(bare)
    if intake._is_form(bare) or intake._is_sparse(bare):
        raise CapabilityError(
            f"X is {described(bare)}; sparse input and ready-made forms are not supported here, because entries are "
            "held out of a dense array, DataFrame or DataArray"
        )
    return intake.dense_array(bare)


def _without(options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _unknown(options: dict[str, Any]) -> str:
    """What to say of a parameter that nobody has."""
    own, theirs = SparseTensorPCACV._get_param_names(), SparseTensorPCA._get_param_names()
    for name in options:
        if name not in theirs:
            more = ", ".join(word for word in theirs if word not in own)
            return (
                f"SparseTensorPCACV has no parameter {name!r}; it has {', '.join(own)}, and passes on to "
                f"SparseTensorPCA: {more}"
            )
    return ""
