"""Several components refined together: at which rho, and from incomplete data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from restpoint.models.tensor_pca import joint, selection
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.component import Found
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.options import Options
from restpoint.problem import Blocks
from restpoint.sets import NonnegativeBall

# A component is not asked to bear more than this share of its own rho_max.
BEARABLE = 0.9
# Gaps are quadratic in the distance from a solution: a small one costs few sweeps more, and hardly any error is left.
TIGHTER = 1e-2


def refined(
    data: Data, options: Options, found: Sequence[Found], start: tuple[Sequence[Blocks], np.ndarray]
) -> tuple[joint.JointFit, np.ndarray]:
    """All components together, at one rho for each mode.

    The smallest of theirs is what all of them bear. Where rho is automatic, BIC with least-squares weights decides
    between that, a larger one that still leaves each well below its own rho_max, and smaller ones: while other
    components were noise to it, each of them was shown sparser than it need be.
    """
    own = np.array([f.rho for f in found])
    if data.observed is not None and len(found) == 1 and options.wish.rho == "auto":
        unbiased = _on_supports(data, options, start)
        if unbiased is not None:
            return unbiased, own
    low, high = own.min(axis=0), own.max(axis=0)
    best = _joint(data, options, low, start), low
    if options.wish.rho == "auto" and data.norm2:
        best = _by_bic(data, options, best, _others(found, high, low))
    return best[0], np.tile(best[1], (len(found), 1))


def _others(found: Sequence[Found], high: np.ndarray, low: np.ndarray) -> list[np.ndarray]:
    """Further rho to try: the largest that all bear, and smaller ones as long as these are better."""
    room = min(f.rho_max for f in found) * BEARABLE
    high = high * min(1.0, room / max(float(high.max()), 1e-300))
    return ([high] if np.any(high > 1.02 * low) else []) + [low / 2, low / 4, low / 8, 0.0 * low]


def _by_bic(
    data: Data,
    options: Options,
    first: tuple[joint.JointFit, np.ndarray],
    others: Sequence[np.ndarray],
) -> tuple[joint.JointFit, np.ndarray]:
    best, least = first, _price(data, options, first[0])
    for rho in others:
        if options.task.clock.over:
            break
        fit = best[0]
        start = [tuple(x[r] for x in fit.factors) for r in range(len(fit.weights))]
        trial = _joint(data, options, rho, (start, np.array(fit.weights)))
        price = _price(data, options, trial)
        if price < least:
            best, least = (trial, rho), price
        elif np.all(rho <= first[1]):
            break
    return best


def _on_supports(
    data: Data, options: Options, start: tuple[Sequence[Blocks], np.ndarray]
) -> joint.JointFit | None:
    """Least squares over the observed entries on the supports that l1 chose; None where a slice of these has none.

    With missing entries l1 does not shrink all alike: an entry of x_i loses the more, the less of
    its slice is observed.
    """
    vectors, weights = start
    index = [np.flatnonzero(x) for x in vectors[0]]
    small = data.observed[np.ix_(*index)]  # type: ignore[index]
    seen = ~np.isnan(small)
    axes = range(seen.ndim)
    if not all(seen.any(axis=tuple(k for k in axes if k != m)).all() for m in axes):
        return None
    task = options.task
    sets = list(task.sets) if any(isinstance(s, NonnegativeBall) for s in task.sets) else None
    fit = joint.refine(
        small,
        weights,
        [x[None, i] for x, i in zip(vectors[0], index, strict=True)],
        sets=sets,
        eps=_tolerance(data, options, weights),
        max_seconds=task.clock.left,
    )
    whole = [np.zeros((1, n)) for n in data.sizes]
    for x, i, own in zip(whole, index, fit.factors, strict=True):
        x[:, i] = own
    return replace(fit, factors=tuple(whole))


def _joint(
    data: Data, options: Options, rho: np.ndarray, start: tuple[Sequence[Blocks], np.ndarray]
) -> joint.JointFit:
    vectors, weights = start
    factors = [np.stack([v[m] for v in vectors]) for m in range(len(data.sizes))]
    ordinary = not any(isinstance(s, NonnegativeBall) for s in options.task.sets)
    return joint.refine(
        data.form if data.observed is None else data.observed,
        weights,
        factors,
        rho=list(rho),
        sets=None if ordinary else list(options.task.sets),
        eps=_tolerance(data, options, weights),
        max_seconds=options.task.clock.left,
    )


def _tolerance(data: Data, options: Options, weights: np.ndarray) -> float:
    """tol in units of the largest component: where there is much noise, ||X||^2 is no scale for what is found in it."""
    share = float(np.max(weights)) ** 2 / data.norm2 if data.norm2 else 1.0
    return float(np.clip(options.task.tol * share * TIGHTER, 1e-14, options.task.tol))


def _price(data: Data, options: Options, fit: joint.JointFit) -> float:
    """The criterion of the whole fit; infinite where a component died."""
    if not np.all(fit.weights > 0):
        return np.inf
    gram = gram_of(data, fit.factors)
    w = best_weights(gram, np.zeros(len(fit.weights)), np.array(fit.weights))
    explained = max(0.0, float(2.0 * w @ gram.data - w @ gram.pairs @ w))
    counts = np.array([[np.count_nonzero(x) for x in fit.factors]])
    norm2 = float(data.norm2 or 0.0)
    return float(selection.criterion(options.task, np.sqrt([explained]), counts, norm2)[0])


def gram_of(data: Data, rows: Sequence[np.ndarray], *, whole: bool = False) -> Gram:
    """Inner products of the components with each other and with X, over the observed entries."""
    if data.observed is not None and not whole:
        return joint.observed_gram(data.observed, list(rows))
    pairs = np.ones((len(rows[0]), len(rows[0])))
    for x in rows:
        pairs = pairs * (x @ x.T)
    blocks = tuple(rows[modes[0]] for modes in data.form.modes_of)
    return Gram(pairs, -np.asarray(data.form.value(blocks)))
