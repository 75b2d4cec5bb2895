"""Sparse tensor PCA in scikit-learn's manners: the numerics are next door."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from restpoint.array import real_number, whole_number
from restpoint.errors import DataError, ShapeError
from restpoint.kernels.threads import use_threads
from restpoint.models.tensor_pca import component, rank_one
from restpoint.models.tensor_pca.bound import global_bound
from restpoint.models.tensor_pca.clock import Clock
from restpoint.models.tensor_pca.component import TensorPath
from restpoint.models.tensor_pca.conversions import Conversions
from restpoint.models.tensor_pca.data import Data, dense_array, refuse_scale, take_in
from restpoint.models.tensor_pca.fitting import Fit, fitted
from restpoint.models.tensor_pca.options import Options, listed_rho, options_of
from restpoint.models.tensor_pca.plots import Plots
from restpoint.models.tensor_pca.scores import scores
from restpoint.models.tensor_pca.standardising import restandardised


class SparseTensorPCA(
    Plots, Conversions, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Sparse principal components of a tensor: sum_r w_r x_1r o ... o x_dr with few nonzeros in every x_ir.

    One component minimises -A(x_1, ..., x_d) + sum_i rho_i ||x_i||_1 over unit balls, with a certificate.

    Parameters
    ----------
    n_components : int
    rho : "auto", a number, or numbers by mode
        The l1 weight, absolute; {'gene': 0.1} leaves the other modes dense. "auto" chooses it, the same for all modes,
        from a path of fractions of ``rho_max_`` by the extended BIC of least-squares refits on the supports: log N
        for a nonzero and 2 log n_i for its choice among n_i.
    n_nonzero : number of nonzeros, or numbers by mode; instead of rho
    sets, penalties : by mode
        From the catalogue, in place of the unit ball and of the l1 norm.
    nonneg : bool, or the modes whose vectors are nonnegative
    deflation : "joint", "subtract" or "orthogonal"
        "joint" finds components one after the other and refines all of them together: at the smallest of their rho, or
        with "auto" at the one that BIC prefers. "subtract" stops before. "orthogonal" looks for each in X projected off
        the vectors before it in every mode; with l1 or nonneg its own vectors need not be orthogonal to them.
    starts, init, random_state
        How many random starts, uniform on the spheres, keyed by ``random_state``; init="svd" begins at singular
        vectors of the unfoldings, arrays (starts, n), one a block, where you like. As many more are grown
        from the strongest entries of the tensor, where it has entries to look at.
    tol : the certified gap, in units of the largest A(x) (where components are refined together: of its square / 2)
    max_seconds : time for the whole fit; then, as at Ctrl-C, the best so far is returned
    n_jobs : threads of the contractions; -1: all cores, None: the usual number
    center, scale : modes, default none
        center takes off the mean over each of these modes; scale then divides the slices of each by their root mean
        square. Both copy the data.
    sample_mode : the mode of the samples, for ``transform``
    mode_names : names, where the data bring none

    Attributes
    ----------
    components_ : list of arrays (n_components, n_mode), one a mode: rows of length 1, or 0 where rho leaves nothing.
        The largest entry is positive in every mode but the first that may be negative, which carries the sign
    points_ : like components_, what the certificates are about; the same, but for ``sets`` whose points are no unit
        vectors
    weights_ : (n_components,), >= 0 and falling. The least-squares weights of these vectors: l1 shrinks weights, which
        the certificate, speaking of vectors, is not about (``joint_.weights`` holds the penalised ones)
    explained_variance_ratio_ : increments of 1 - ||A - fit_k||^2 / ||A||^2, over observed entries
    certificate_, certified_ : of exactly these vectors; a list where components were found one by one, each in what
        those before left of X
    joint_ : the ``JointFit``, with the certificate of the weights, where components were refined together; else None
    support_ : list of boolean arrays like components_
    starts_ : the distinct ends of the random starts of the first component, and how likely an unseen one is
    convergence_ : for each certificate, ``Convergence``: value and gap over the sweeps that led to it
    upper_bound_ : no unit vectors have a larger A(x) - sum_i rho_i ||x_i||_1, rho = rho_[0] and i over the vectors
        (tied modes share one, and pay once): proved, by the norms of unfoldings. NaN where entries are missing
    bound_ : the theorem that bounds the sweeps, with its constants: theory A13, for f concave in each block (complete
        data, one by one: of the component found first) or with majorants (``joint_.bound``)
    rho_ : (n_components, n_modes), absolute; rho_max_ : the largest rho at which a better point than zero is known
    path_ : for rho="auto", the table that the component found first was chosen from
    n_iter_ (sweeps), mode_names_, labels_, n_features_in_

    Pictures: ``plot_loadings``, ``plot_path``, ``plot_starts``, ``plot_convergence``.

    Missing entries (NaN, masked) are never filled in: starting points come from the observed entries alone, and the
    components minimise the squared error on these (``joint.refine``), for one component too. F is convex in each mode,
    not concave: theory A6 does not apply, A13 with majorants does (``bound_``). l1 would shrink most what is observed
    least; so with rho="auto" it only proposes the supports of one component, entries are exchanged while BIC falls,
    and the component is, certified, the least-squares fit on them.

    >>> import numpy as np
    >>> x = np.zeros(30)
    >>> x[:3] = 1 / np.sqrt(3)
    >>> A = 30.0 * np.einsum("a,b,c->abc", x, x, x)
    >>> A += np.random.default_rng(0).standard_normal(A.shape)
    >>> model = SparseTensorPCA().fit(A)
    >>> [np.flatnonzero(own[0]).tolist() for own in model.support_], model.certified_
    ([[0, 1, 2], [0, 1, 2], [0, 1, 2]], True)
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's manner: every choice a parameter, checked in fit
        self,
        n_components: int = 1,
        *,
        rho: Any = "auto",
        n_nonzero: Any = None,
        sets: Any = None,
        penalties: Any = None,
        nonneg: Any = False,
        deflation: str = "joint",
        starts: int = 20,
        init: Any = "random",
        random_state: Any = 0,
        tol: float = 1e-6,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        center: Any = None,
        scale: Any = None,
        sample_mode: Any = 0,
        mode_names: Any = None,
    ) -> None:
        self.n_components = n_components
        self.rho = rho
        self.n_nonzero = n_nonzero
        self.sets = sets
        self.penalties = penalties
        self.nonneg = nonneg
        self.deflation = deflation
        self.starts = starts
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.center = center
        self.scale = scale
        self.sample_mode = sample_mode
        self.mode_names = mode_names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of X.

        X is an array of order >= 2 (NaN or masked: missing), the name of a .npy file, a DataFrame, a DataArray, a
        sparse tensor, or a Multilinear, SparseTensor or MomentTensor.
        """
        data, options = self._prepared(X)
        with self._threads(), options.task.clock.listening():
            fit = fitted(data, options)
            self._keep(data, options, fit)
        self._warn(options, fit)
        return self

    def path(self, X: Any, y: Any = None, *, rho: Any = None) -> TensorPath:
        """One component over a grid of rho (default: fractions of rho_max and 0), in one batched, certified solve.

        Rows of the answer belong to ``rho``, columns to the distinct solutions that were followed. Where entries are
        missing they solve -A(x) + rho ... with A summed over the observed ones: proposals of supports, whose refits by
        least squares over the observed entries have the weights and BIC that are shown.
        """
        data, options = self._prepared(X, remember=False)
        task = options.task
        if not task.penalised:
            raise DataError('path() needs a mode that rho acts on; leave rho "auto", or name modes')
        given = None if rho is None else np.unique(listed_rho(rho))[::-1]
        with self._threads(), task.clock.listening():
            pool = rank_one.search(task)
            rho_max, pool = rank_one.ceiling(task, pool)
            grid = component.grid_of(rho_max) if given is None else given
            return component.table(task, rank_one.path(task, pool, grid), data.observed)

    def transform(self, X: Any) -> np.ndarray:
        """Least-squares scores of samples along ``sample_mode``, the vectors of the other modes fixed.

        Row i minimises || A_i - sum_r T[i, r] (o of x_jr, j the other modes) || over the observed entries of sample i;
        it is NaN where there are none.
        """
        check_is_fitted(self)
        mode, rows = self._sample_mode, self.components_
        array = self._new(X)
        return scores(array, rows, mode)

    def fit_transform(self, X: Any, y: Any = None, **more: Any) -> np.ndarray:
        """``fit(X).transform(X)``."""
        return self.fit(X, y, **more).transform(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False
        return tags

    def _prepared(self, X: Any, *, remember: bool = True) -> tuple[Data, Options]:
        seconds = self.max_seconds
        if seconds is not None and not real_number("max_seconds", seconds, "a number > 0") > 0:
            raise DataError(f"max_seconds must be a number > 0 or None, got {seconds}")
        clock = Clock(seconds)
        data, used = take_in(X, mode_names=self.mode_names, center=self.center, scale=self.scale)
        options = options_of(self.get_params(deep=False), data, clock)
        mode = data.mode(self.sample_mode, "sample_mode")
        if (
            remember
            and data.entries is not None
            and data.observed is None
            and data.entries.constant
        ):
            warnings.warn(
                "X is constant: its one component is the constant itself; center takes it off",
                UserWarning,
                stacklevel=3,
            )
        refuse_scale(data, " after centring" if self.center is not None else "")
        if remember:
            self._sample_mode, self._standardised = mode, used
            remember_features(self, X, data, mode)
        return data, options

    def _threads(self) -> Any:
        if self.n_jobs is None:
            return nullcontext()
        import os

        jobs = os.cpu_count() or 1 if self.n_jobs == -1 else self.n_jobs
        try:
            return use_threads(whole_number("n_jobs", jobs, 1))
        except DataError as error:
            raise DataError(f"{error}; -1 means all cores, None the usual number") from None

    def _keep(self, data: Data, options: Options, fit: Fit) -> None:
        self.components_, self.points_ = list(fit.rows), list(fit.points)
        self.weights_ = fit.weights
        self.explained_variance_ratio_ = fit.ratio
        self.certificate_, self.certified_ = fit.certificate, fit.certified
        self.joint_, self.convergence_ = fit.joint, fit.convergence
        self.support_ = [x != 0 for x in fit.rows]
        self.rho_ = fit.rho
        first = fit.found[0]
        self.rho_max_, self.starts_ = first.rho_max, first.ends
        self.bound_ = first.bound if fit.joint is None else fit.joint.bound
        self.path_ = first.table
        self.n_iter_ = fit.iterations
        self.mode_names_, self.labels_ = data.names, data.labels
        self._modes_of = data.form.modes_of
        self.upper_bound_ = global_bound(data, options, fit.rho[0])

    def _warn(self, options: Options, fit: Fit) -> None:
        clock = options.task.clock
        if not fit.certified:
            advice = "raise max_seconds" if clock.over else fit.advice
            warnings.warn(
                f"SparseTensorPCA ended without a certificate: {clock.reason or fit.reason}. The best point so far is "
                f"returned{'' if clock.interrupted else f'; {advice}'}",
                ConvergenceWarning,
                stacklevel=3,
            )
        for remark in dict.fromkeys(one.remark for one in fit.found if one.remark):
            warnings.warn(remark, UserWarning, stacklevel=3)
        table = fit.found[0].table
        if not clock.over and table is not None and np.nanmin(table.bic) > table.zero_bic:
            warnings.warn(
                "no component of X stands out from noise: BIC prefers none at all. The best one is returned; set rho "
                "or n_nonzero if you know better",
                UserWarning,
                stacklevel=3,
            )

    def _new(self, X: Any) -> np.ndarray:
        """New samples, standardised as the data of ``fit`` were."""
        from restpoint.models.tensor_pca import data as intake

        mode = self._sample_mode
        bare, names, labels = intake._unlabelled(X)
        if names is not None and self.mode_names is None and names != self.mode_names_:
            raise DataError(f"X has the modes {names}; fit saw {self.mode_names_}")
        if intake._is_form(bare):
            raise DataError("X is a ready-made form, which has no samples to score; give an array")
        if intake._is_sparse(bare):
            bare = bare.toarray() if hasattr(bare, "toarray") else bare.todense()
        elif isinstance(bare, str):
            bare = intake._mapped(bare)
        array = dense_array(bare)
        sizes = [x.shape[1] for x in self.components_]
        if array.ndim == 2 and len(sizes) == 2 and mode == 0:
            validate_data(self, X, skip_check_array=True, reset=False)
        expected = [n if m != mode else -1 for m, n in enumerate(sizes)]
        wrong = array.ndim != len(sizes) or any(
            n not in (-1, own) for n, own in zip(expected, array.shape, strict=False)
        )
        if wrong:
            raise ShapeError(
                f"X has shape {array.shape}; expected {tuple(sizes)} but for mode {mode}, the samples"
            )
        for m, (old, new) in enumerate(
            zip(self.labels_, labels or (None,) * array.ndim, strict=True)
        ):
            if m != mode and old is not None and new is not None and not np.array_equal(old, new):
                j = int(np.argmax(np.asarray(old) != np.asarray(new)))
                raise DataError(
                    f"X has other labels in mode {self.mode_names_[m]!r} than the data of fit: {new[j]} where there "
                    f"was {old[j]} (place {j}); bring its entries into the order of labels_[{m}]"
                )
        if bool(np.isinf(array).any()):
            raise DataError(
                "X contains infinity; expected finite numbers, or NaN where an entry is missing"
            )
        return restandardised(array, self._standardised, mode, self.mode_names_)


def remember_features(estimator: Any, X: Any, data: Data, mode: int) -> None:
    """``n_features_in_``, and for matrices of samples ``feature_names_in_``, as scikit-learn has them."""
    if len(data.sizes) == 2 and mode == 0 and hasattr(X, "shape"):
        validate_data(estimator, X, skip_check_array=True)
    else:
        estimator.n_features_in_ = int(np.prod(data.sizes)) // data.sizes[mode]
