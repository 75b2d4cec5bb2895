"""Fits without the held-out entries, along rho, and their errors on these; and what else speaks for a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from restpoint.errors import DataError
from restpoint.models.tensor_pca import together
from restpoint.models.tensor_pca._weights import best_weights
from restpoint.models.tensor_pca.clock import Clock
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.diagnostics import core_consistency, factor_match
from restpoint.models.tensor_pca.fitting import Fit, Progress, fitted, greedy
from restpoint.models.tensor_pca.joint import JointFit, observed_gram
from restpoint.models.tensor_pca.options import Options
from restpoint.models.tensor_pca.standardising import standardised

# A fit that is only asked for its error need not be settled to more than this.
SETTLED = 1e-4
# Sweeps after which it is taken as it is: components that nearly cancel may go on for ever.
SWEEPS = 300


@dataclass(frozen=True)
class Study:
    """What is held out from, and how it is fitted.

    array     the data as they came, NaN where an entry is missing
    center, scale   the modes that are standardised, by the entries that are fitted
    rho       the grid, rising; times ``ratios``, one a mode, it is the l1 weight on all observed entries
    sample    the mode of the samples
    params    what else the estimator is given
    """

    array: np.ndarray
    names: tuple[str, ...]
    center: tuple[int, ...]
    scale: tuple[int, ...]
    rho: np.ndarray
    ratios: tuple[float, ...]
    sample: int
    params: dict[str, Any]

    @property
    def observed(self) -> int:
        """How many entries are observed."""
        return int(np.count_nonzero(~np.isnan(self.array)))


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


def columns(study: Study, held: np.ndarray, ranks: Sequence[int]) -> list[Column]:
    """Fit without ``held`` at every number of components (rising) and every rho, and compare with what was held out.

    Of N observed entries n are fitted, and F(w, x) is their error: the rho of all N goes with rho n/N here. As the
    estimator does, components are found one after the other, at the smallest rho, once for all numbers of them; from
    there they are refined at this rho, and from there at the next.
    """
    fitted_part, target, places = _parted(study, held)
    grid = study.rho * (1.0 - len(held) / study.observed)
    size = float(np.sum(target**2))
    found: list[Column] = []
    so_far, reason = Progress([], [], []), ""
    try:
        data, options = _prepared(study, fitted_part, max(ranks), float(grid[0]))
    except DataError as error:
        return [_failed(study, str(error))] * len(ranks)
    for rank in ranks:
        if not reason:
            try:
                greedy(data, replace(_fresh(options), components=rank), so_far)
            except DataError as error:  # too many components for what is left of the data, say
                reason = str(error)
        if reason:
            found.append(_failed(study, reason))
            continue
        values = []
        factors = [np.stack([v[m] for v in so_far.vectors[:rank]]) for m in range(len(data.sizes))]
        start = np.array(so_far.weights[:rank]), factors
        for rho in grid:
            one = _refined(data, _fresh(options), start, float(rho) * np.array(study.ratios))
            start = one.weights, list(one.factors)
            rest = target - composed(_weights(data, one), one.factors, places)
            missed = float(np.sum(rest**2)) / size if size > 0 else np.nan
            values.append((missed, float(np.count_nonzero(one.weights)), one.certified))
        table = np.array(values)
        found.append(Column(table[:, 0], table[:, 1], table[:, 2] > 0))
    return found


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
        factors = np.where(np.arange(array.ndim) == study.sample, 1.0, np.sqrt(share))
        params = {**study.params, "rho": list(rho * factors * study.ratios)}
        if not isinstance(params.get("init", ""), str):
            params["init"] = "random"  # starting points for all samples do not fit a half
        try:
            fit = _fit(array, rank, {**params, "center": study.center, "scale": study.scale})
        except DataError:
            return float("nan")
        alive = (fit.weights > 0)[:, None]
        rows = [np.where(alive, x, 0.0) for x in fit.rows]
        found.append([x for m, x in enumerate(rows) if m != study.sample])
    return factor_match(*found)


def of_all(study: Study, rank: int, rho: float) -> tuple[float, float, str]:
    """Explained variance and core consistency of a fit to all of the data; NaN, and why, if it fails."""
    array = standardised(study.array, study.center, study.scale, study.names)[0]
    try:
        fit = _fit(array, rank, {**study.params, "rho": list(rho * np.array(study.ratios))})
    except DataError as error:
        return float("nan"), float("nan"), str(error)
    return float(np.sum(fit.ratio)), core_consistency(array, fit.weights, fit.rows), ""


def composed(
    weights: np.ndarray, rows: Sequence[np.ndarray], places: tuple[np.ndarray, ...]
) -> np.ndarray:
    """sum_r w_r prod_i x_ir[j_i] at the entries j."""
    product = np.broadcast_to(weights[:, None], (len(weights), len(places[0])))
    for x, index in zip(rows, places, strict=True):
        product = product * x[:, index]
    return product.sum(axis=0)


def _fit(array: np.ndarray, rank: int, params: dict[str, Any]) -> Fit:
    """A fit whose end goes into a table: it warns of nothing, and is not settled to the last digit."""
    from restpoint.models.tensor_pca.estimator import SparseTensorPCA

    data, options = SparseTensorPCA(rank, **_loosely(params))._prepared(array, remember=False)
    fit = fitted(data, replace(options, sweeps=SWEEPS))
    _pass_on(options.task.clock)
    return fit


def _prepared(study: Study, array: np.ndarray, rank: int, rho: float) -> tuple[Data, Options]:
    from restpoint.models.tensor_pca.estimator import SparseTensorPCA

    params = {**_loosely(study.params), "rho": [rho * ratio for ratio in study.ratios]}
    return SparseTensorPCA(rank, **params)._prepared(array, remember=False)


def _loosely(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "tol": max(float(params.get("tol", 0.0)), SETTLED)}


def _refined(
    data: Data, options: Options, start: tuple[np.ndarray, list[np.ndarray]], rho: np.ndarray
) -> JointFit:
    tolerance = together.tolerance_of(data, options, start[0])
    fit = together.refine(data.polyadic, options, start, rho, tolerance, aim=tolerance)
    _pass_on(options.task.clock)
    return fit


def _fresh(options: Options) -> Options:
    """The same with a clock of its own: max_seconds is meant for each fit."""
    clock = Clock(options.task.clock.max_seconds)
    return replace(options, task=replace(options.task, clock=clock), sweeps=SWEEPS)


def _pass_on(clock: Clock) -> None:
    """Ctrl-C ends the whole comparison: its parts would not be comparable."""
    if clock.interrupted:
        raise KeyboardInterrupt


def _failed(study: Study, reason: str) -> Column:
    empty = np.full(len(study.rho), np.nan)
    return Column(empty, empty, np.zeros(len(study.rho), dtype=bool), reason)


def _weights(data: Data, one: JointFit) -> np.ndarray:
    """Those of least squares, which the estimator reports."""
    gram = observed_gram(data.polyadic, one.factors)
    return best_weights(gram, np.zeros(len(one.weights)), np.array(one.weights))


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
