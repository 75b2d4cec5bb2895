"""Several components refined together: at which rho, and from incomplete data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from restpoint.models.tensor_pca import conventions, joint, selection
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.component import Found
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.options import Options
from restpoint.problem import Blocks
from restpoint.run import Status
from restpoint.sets import NonnegativeBall
from restpoint.smooth import CanonicalPolyadic

# A component is not asked to bear more than this share of its own rho_max.
BEARABLE = 0.9
# Gaps are quadratic in the distance from a solution: a small one costs few sweeps more, and hardly any error is left.
TIGHTER, SMALLEST = 1e-2, 1e-14


class Refined(NamedTuple):
    """Components refined together, their least-squares weights, and rho (R, modes)."""

    fit: joint.JointFit
    weights: np.ndarray
    rho: np.ndarray


def refined(
    data: Data, options: Options, found: Sequence[Found], start: tuple[Sequence[Blocks], np.ndarray]
) -> Refined:
    """All components together, at one rho for each mode; in their order, with their signs.

    The smallest of theirs is what all of them bear. Where rho is automatic, BIC with least-squares weights decides
    between that, a larger one that still leaves each well below its own rho_max, and smaller ones: while other
    components were noise to it, each of them was shown sparser than it need be.
    """
    own = np.array([f.rho for f in found])
    if data.observed is not None and len(found) == 1 and options.wish.rho == "auto":
        unbiased = _on_supports(data, options, start)
        if unbiased is not None:
            return Refined(*unbiased, own)
    low, high = own.min(axis=0), own.max(axis=0)
    best = _joint(data, options, low, start), low
    if options.wish.rho == "auto" and data.norm2:
        best = _by_bic(data, options, best, _others(found, high, low))
    fit, rho = best
    arranged = _arranged(data.polyadic, fit, options, rho, tolerance_of(data, options, start[1]))
    return Refined(*arranged, np.tile(rho, (len(found), 1)))


def _others(found: Sequence[Found], high: np.ndarray, low: np.ndarray) -> list[np.ndarray]:
    """Further rho to try: the largest that all bear, and smaller ones as long as these are better."""
    room = min(f.rho_max for f in found) * BEARABLE
    high = high * min(1.0, room / max(float(high.max()), 1e-300))
    smaller = [low / 2, low / 4, low / 8, 0.0 * low] if np.any(low) else []
    return ([high] if np.any(high > 1.02 * low) else []) + smaller


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
) -> tuple[joint.JointFit, np.ndarray] | None:
    """Least squares over the observed entries on the supports that l1 chose; None where a slice of these has none.

    With missing entries l1 does not shrink all alike: an entry of x_i loses the more, the less of its slice is
    observed, and may have been left out for that. So entries are exchanged as long as the criterion falls.
    """
    vectors, weights = start
    best, price = _least_squares_on(data, options, vectors[0], weights), np.inf
    while best is not None:
        now = _price(data, options, best[0])
        if not now < price or options.task.clock.over:
            break
        kept, price = best, now
        chosen = _worth_their_price(data, options, best[0])
        if all(
            np.array_equal(x != 0, y[0] != 0) for x, y in zip(chosen, best[0].factors, strict=True)
        ):
            break
        best = _least_squares_on(data, options, chosen, best[1])
    return None if price == np.inf else kept


def _worth_their_price(data: Data, options: Options, fit: joint.JointFit) -> Blocks:
    """The entries of every vector that lower the error by more than the criterion asks of a nonzero.

    The other modes fixed, the entry j of the vector a is best at b_j / Q_j, which lowers the squared error by b_j^2 /
    Q_j: more than is needed where N log(1 + that / RSS) exceeds its price. Modes without l1 keep all entries.
    """
    task, (w,) = options.task, fit.weights
    smooth, found = data.polyadic.reweighted(fit.weights), []
    sweep, rss = smooth.sweep(fit.xs), 2.0 * float(smooth.value(fit.xs))
    for i, (x, ratio, price) in enumerate(
        zip(fit.xs, task.free, selection.prices(task), strict=True)
    ):
        terms = sweep.mode(i)
        b, Q = terms.linear[0], terms.pairs[0, 0]
        known = (Q > 0.0) & ((b > 0.0) | (not isinstance(task.sets[i], NonnegativeBall)))
        a = np.where(known, b / np.where(known, Q, 1.0), 0.0)
        worth = task.count * np.log1p(a * b / rss) > price if ratio else known
        found.append(np.where(worth, a, 0.0) if worth.any() else w * x)
    return tuple(found)


def _least_squares_on(
    data: Data, options: Options, xs: Blocks, weights: np.ndarray
) -> tuple[joint.JointFit, np.ndarray] | None:
    """Least squares over the observed entries on the supports of ``xs``, from there."""
    index = [np.flatnonzero(x) for x in xs]
    small = data.observed[np.ix_(*index)]  # type: ignore[index]
    seen = ~np.isnan(small)
    axes = range(seen.ndim)
    if not all(seen.any(axis=tuple(k for k in axes if k != m)).all() for m in axes):
        return None
    A, rho = CanonicalPolyadic(small, [1.0]), np.zeros(len(index))
    tolerance = tolerance_of(data, options, weights)
    own = [x[None, i] for x, i in zip(xs, index, strict=True)]
    fit, found = _arranged(
        A, refine(A, options, (weights, own), rho, tolerance), options, rho, tolerance
    )
    whole = [np.zeros((1, n)) for n in data.sizes]
    for x, i, y in zip(whole, index, fit.factors, strict=True):
        x[:, i] = y
    return replace(fit, factors=tuple(whole)), found


def _joint(
    data: Data, options: Options, rho: np.ndarray, start: tuple[Sequence[Blocks], np.ndarray]
) -> joint.JointFit:
    vectors, weights = start
    factors = [np.stack([v[m] for v in vectors]) for m in range(len(data.sizes))]
    tolerance = tolerance_of(data, options, weights)
    return refine(data.polyadic, options, (weights, factors), rho, tolerance)


def refine(
    A: CanonicalPolyadic,
    options: Options,
    start: tuple[np.ndarray, list[np.ndarray]],
    rho: np.ndarray,
    tolerance: float,
    aim: float | None = None,
) -> joint.JointFit:
    """From there, to ``tolerance``, and on to ``aim``: default: to what costs little more."""
    clock = options.task.clock

    def run() -> joint.JointFit:
        return joint.refine(
            A,
            *start,
            rho=rho,
            sets=options.task.sets,
            eps=tolerance,
            aim=max(TIGHTER * tolerance, SMALLEST) if aim is None else aim,
            max_outer=options.sweeps,
            max_seconds=clock.left,
        )

    fit = clock.interruptible(run)
    clock.interrupted = clock.interrupted or fit.status is Status.INTERRUPTED
    return fit


def _arranged(
    A: CanonicalPolyadic, fit: joint.JointFit, options: Options, rho: np.ndarray, tolerance: float
) -> tuple[joint.JointFit, np.ndarray]:
    """In the order of the least-squares weights, with the signs of the conventions; and these weights."""
    task, gram = options.task, joint.observed_gram(A, fit.factors)
    weights = best_weights(gram, np.zeros(len(fit.weights)), np.array(fit.weights))
    order = np.argsort(-weights, kind="stable")
    turns = conventions.may_turn(task.sets, task.fixed, task.untied)
    one_by_one = [
        conventions.oriented(tuple(x[r] for x in fit.factors), turns) for r in order.tolist()
    ]
    rows = [np.stack(of_mode) for of_mode in zip(*one_by_one, strict=True)]
    asked = {"rho": rho, "sets": task.sets, "eps": tolerance}
    return joint.rearranged(fit, A, fit.weights[order], rows, **asked), weights[order]


def tolerance_of(data: Data, options: Options, weights: np.ndarray) -> float:
    """tol in units of the largest component: where there is much noise, ||X||^2 is no scale for what is found in it."""
    share = (float(np.max(weights)) ** 2 / data.norm2 if data.norm2 else 0.0) or 1.0
    return float(np.clip(options.task.tol * share, SMALLEST, options.task.tol))


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
        return joint.observed_gram(data.polyadic, list(rows))
    pairs = np.ones((len(rows[0]), len(rows[0])))
    for x in rows:
        pairs = pairs * (x @ x.T)
    blocks = tuple(rows[modes[0]] for modes in data.form.modes_of)
    return Gram(pairs, -np.asarray(data.form.value(blocks)))
