"""Fits without the held-out entries, along rho, and their errors on these."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from restpoint.errors import DataError
from restpoint.models.tensor_pca._weights import best_weights
from restpoint.models.tensor_pca.diagnostics import factor_match
from restpoint.models.tensor_pca.joint import JointFit, observed_gram, refine
from restpoint.models.tensor_pca.standardising import standardised
from restpoint.sets import L2Ball, NonnegativeBall, Set
from restpoint.smooth import CanonicalPolyadic

# A fit that is only asked for its held-out error need not be settled to more than this.
SETTLED = 1e-5


@dataclass(frozen=True)
class Study:
    """What is held out from, and how it is fitted.

    array     the data as they came, NaN where an entry is missing
    center, scale   the modes that are standardised, by the entries that are fitted
    rho       the grid, rising; times ``ratios``, one a mode, it is the l1 weight on all observed entries
    positive  the modes whose vectors are nonnegative
    sample    the mode of the samples
    params    what else the estimator is given
    """

    array: np.ndarray
    names: tuple[str, ...]
    center: tuple[int, ...]
    scale: tuple[int, ...]
    rho: np.ndarray
    ratios: tuple[float, ...]
    positive: tuple[bool, ...]
    sample: int
    params: dict[str, Any]

    @property
    def observed(self) -> int:
        """How many entries are observed."""
        return int(np.count_nonzero(~np.isnan(self.array)))

    @property
    def sets(self) -> tuple[Set, ...]:
        """One for each mode."""
        return tuple(NonnegativeBall() if own else L2Ball() for own in self.positive)


class Column(NamedTuple):
    """What one number of components and one set of held-out entries came to: one value for each rho.

    error      sum over held-out (A - fit)^2 / sum over held-out A^2
    alive      components with a weight
    certified  whether the fit was
    reason     why there are no values, where there are none
    """

    error: np.ndarray
    alive: np.ndarray
    certified: np.ndarray
    reason: str = ""


def column(study: Study, held: np.ndarray, rank: int) -> Column:
    """Fit without ``held`` at every rho, and compare with what was held out.

    Of N observed entries n are fitted, and F(w, x) is their error: the rho of all N goes with rho n/N here. The
    smallest rho is fitted by the estimator; from there on every fit is ``refine`` from that at the rho before, as the
    estimator refines what it found first.
    """
    fitted, target, places = _parted(study, held)
    share = 1.0 - len(held) / study.observed
    size = float(np.sum(target**2))
    values: list[tuple[float, float, bool]] = []
    one: JointFit | None = None
    try:
        data = CanonicalPolyadic(fitted, [1.0])
        for rho in study.rho * share:
            one = _next(study, (fitted, data), rank, float(rho), one)
            weights, rows = prediction(data, one)
            rest = target - composed(weights, rows, places)
            error = float(np.sum(rest**2)) / size if size > 0 else np.nan
            values.append((error, float(np.count_nonzero(weights)), one.certified))
    except DataError as error:  # too many components for what is left of the data, say
        empty = np.full(len(study.rho), np.nan)
        return Column(empty, empty, np.zeros(len(study.rho), dtype=bool), str(error))
    found = np.array(values)
    return Column(found[:, 0], found[:, 1], found[:, 2] > 0)


def _next(
    study: Study,
    data: tuple[np.ndarray, CanonicalPolyadic],
    rank: int,
    rho: float,
    before: JointFit | None,
) -> JointFit:
    rhos = [rho * ratio for ratio in study.ratios]
    tol = max(float(study.params.get("tol", 0.0)), SETTLED)
    if before is not None:
        return refine(data[1], before.weights, before.factors, rho=rhos, sets=study.sets, eps=tol)
    return _quiet_fit(data[0], rank, {**study.params, "rho": rhos, "tol": tol}).joint_


def replicability(
    study: Study, halves: tuple[np.ndarray, np.ndarray], rank: int, rho: float
) -> float:
    """How alike the components of two halves of the samples are, the mode of the samples aside; NaN if a fit fails.

    A share s of the samples has s of ||A||^2 and, beside unit vectors, weights smaller by the root of s; the l1 norm of
    a unit vector of samples is smaller by that root, too. So that F is s times F throughout, the samples go with rho,
    the other modes with rho times the root of s.
    """
    found = []
    for half in halves:
        array = np.take(study.array, half, axis=study.sample)
        share = np.count_nonzero(~np.isnan(array)) / study.observed
        rhos = [
            rho * ratio * (1.0 if m == study.sample else np.sqrt(share))
            for m, ratio in enumerate(study.ratios)
        ]
        params = {**study.params, "rho": rhos, "center": study.center, "scale": study.scale}
        if not isinstance(params.get("init", ""), str):
            params["init"] = "random"  # starting points for all samples do not fit a half
        try:
            model = _quiet_fit(array, rank, params)
        except DataError:
            return float("nan")
        alive = model.weights_ > 0
        found.append(
            [
                np.where(alive[:, None], x, 0.0)
                for m, x in enumerate(model.components_)
                if m != study.sample
            ]
        )
    return factor_match(*found)


def _quiet_fit(array: np.ndarray, rank: int, params: dict[str, Any]) -> Any:
    """A fit whose end goes into a table, so that it need not warn."""
    from restpoint.models.tensor_pca.estimator import SparseTensorPCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseTensorPCA(rank, **params).fit(array)


def prediction(data: CanonicalPolyadic, one: JointFit) -> tuple[np.ndarray, list[np.ndarray]]:
    """The weights that the estimator reports, and the vectors."""
    rows = list(one.factors)
    gram = observed_gram(data, rows)
    return best_weights(gram, np.zeros(len(one.weights)), np.array(one.weights)), rows


def composed(
    weights: np.ndarray, rows: list[np.ndarray], places: tuple[np.ndarray, ...]
) -> np.ndarray:
    """sum_r w_r prod_i x_ir[j_i] at the entries j."""
    product = np.broadcast_to(weights[:, None], (len(weights), len(places[0])))
    for x, index in zip(rows, places, strict=True):
        product = product * x[:, index]
    return product.sum(axis=0)


def _parted(
    study: Study, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """The array without the held-out entries, these entries, and where they are: standardised as the former asks."""
    fitted = np.array(study.array, dtype=np.float64)
    places = np.unravel_index(held, fitted.shape)
    target = fitted[places]
    fitted[places] = np.nan
    fitted, used = standardised(fitted, study.center, study.scale, study.names)
    for mean in used.get("center", {}).values():
        target = target - np.broadcast_to(mean, fitted.shape)[places]
    for size in used.get("scale", {}).values():
        target = target / np.broadcast_to(size, fitted.shape)[places]
    return fitted, target, places
