"""From data and options to components: greedy, then refined together where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.certificates import Certificate
from restpoint.errors import DataError
from restpoint.models.tensor_pca import component, conventions, deflation, joint, selection
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.component import Found
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.options import Options
from restpoint.problem import Blocks
from restpoint.sets import NonnegativeBall

# Less than this share of ||X||^2 is rounding, not a tensor.
NOTHING = 1e-13
# A component is not asked to bear more than this share of its own rho_max.
BEARABLE = 0.9
# Gaps are quadratic in the distance from a solution: a small one costs few sweeps more, and hardly any error is left.
TIGHTER = 1e-2


@dataclass(frozen=True)
class Fit:
    """Components in their conventions: ``rows`` holds one array (R, n) for each mode."""

    rows: tuple[np.ndarray, ...]
    weights: np.ndarray
    ratio: np.ndarray
    certificate: Any
    certified: bool
    reason: str
    iterations: int
    rho: np.ndarray
    found: tuple[Found, ...]
    joint: joint.JointFit | None


def fitted(data: Data, options: Options) -> Fit:
    """All of it."""
    found, vectors, weights = _greedy(data, options)
    refined = None
    several = len(found) > 1
    alive = not all(one.empty for one in found)
    if alive and ((several and options.deflation == "joint") or data.observed is not None):
        refined, rho = _refined(data, options, found, (vectors, weights))
        rows = [refined.factors[m] for m in range(len(data.sizes))]
        certificate: Any = refined.certificate
        certified, reason = refined.certified, str(refined.status.value)
        iterations = refined.iterations + sum(f.iterations for f in found)
        rows = _turned(rows)
    else:
        rho = np.array(
            [[f.rho[data.form.block_of[m]] for m in range(len(data.sizes))] for f in found]
        )
        rows = [np.stack([v[m] for v in vectors]) for m in range(len(data.sizes))]
        certificates: list[Certificate] = [f.certificate for f in found]
        certificate = certificates if several else certificates[0]
        certified = all(f.status.name == "CERTIFIED" for f in found)
        reason = next((str(f.status.value) for f in found if f.status.name != "CERTIFIED"), "")
        iterations = sum(f.iterations for f in found)
    gram = _gram(data, rows)
    if refined is not None:
        weights = best_weights(gram, np.zeros(len(weights)), np.array(refined.weights))
    order = np.argsort(-weights, kind="stable")
    rows, weights, rho = [x[order] for x in rows], weights[order], rho[order]
    gram = Gram(gram.pairs[np.ix_(order, order)], gram.data[order])
    if isinstance(certificate, list):
        certificate = [certificate[r] for r in order]
    return Fit(
        tuple(rows), weights, _explained(data, gram, weights), certificate, certified, reason, iterations, rho,
        tuple(found), refined,
    )  # fmt: skip


def _greedy(
    data: Data, options: Options
) -> tuple[list[Found], list[tuple[np.ndarray, ...]], np.ndarray]:
    """One component after the other; vectors by mode, of length 1."""
    task, first = options.task, options.task.form
    found: list[Found] = []
    vectors: list[tuple[np.ndarray, ...]] = []
    taken: list[
        tuple[np.ndarray, ...]
    ] = []  # what is subtracted: refits where all are refined later
    weights: list[float] = []
    whole = task.norm2
    for r in range(options.components):
        if found and found[-1].empty:  # zero is all that this rho leaves: of the rest, too
            found.append(found[-1])
            vectors.append(vectors[-1])
            taken.append(taken[-1])
            weights.append(0.0)
            continue
        if r:
            _refuse_nothing(data, options, whole, taken, np.array(weights))
            task = _next(task, first, data, options, taken, weights, found)
        one = component.sought(task, options.wish, data.observed)
        one = _oriented(options, one)
        found.append(one)
        unit, size = conventions.unit_rows(one.xs)
        by_mode = tuple(unit[k] for k in data.form.block_of)
        weight = 0.0 if one.empty else float(-task.form.value(unit))
        del size
        vectors.append(by_mode)
        taken.append(by_mode)
        weights.append(max(0.0, weight))
        if options.deflation == "joint" and options.components > 1 and not one.empty:
            w, xs = selection.refitted(task, tuple(x[None] for x in one.xs))
            taken[-1], weights[-1] = tuple(x[0] for x in xs), float(w[0])
    if options.deflation == "joint" and options.components > 1:
        vectors = taken
    return found, vectors, np.array(weights)


def _next(
    task: Any,
    first: Any,
    data: Data,
    options: Options,
    taken: Sequence[Blocks],
    weights: Sequence[float],
    found: Sequence[Found],
) -> Any:
    if options.deflation == "orthogonal":
        task = deflation.projected(task, first, [conventions.unit_rows(f.xs)[0] for f in found])
        return task if task.norm2 is None else replace(task, norm2=_rest(data, taken, weights))
    tied = data.form.block_of
    task = deflation.subtracted(task, first, weights, taken, tied)
    return task if task.norm2 is None else replace(task, norm2=_rest(data, taken, weights))


def _rest(data: Data, rows: Sequence[Blocks], weights: Sequence[float]) -> float:
    gram = _gram(
        data, [np.stack([xs[m] for xs in rows]) for m in range(len(data.sizes))], whole=True
    )
    w = np.asarray(weights)
    return max(0.0, float(data.norm2 - 2.0 * w @ gram.data + w @ gram.pairs @ w))


def _refuse_nothing(
    data: Data, options: Options, whole: float | None, rows: Sequence[Blocks], weights: np.ndarray
) -> None:
    if whole is None:
        return
    if _rest(data, rows, list(weights)) <= NOTHING * whole:
        raise DataError(
            f"after {len(rows)} component(s) nothing is left of X, but n_components={options.components}; ask for at "
            f"most {len(rows)}"
        )


def _oriented(options: Options, one: Found) -> Found:
    task = options.task
    turns = conventions.may_turn(task.sets, task.fixed, task.untied)
    turned = conventions.oriented(one.xs, turns)
    if all(np.array_equal(a, b) for a, b in zip(turned, one.xs, strict=True)):
        return one
    return component.from_point(task, one, turned)


def _refined(
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

    With missing entries l1 does not shrink all alike: an entry of x_i loses the more, the less of its slice is observed.
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
    gram = _gram(data, fit.factors)
    w = best_weights(gram, np.zeros(len(fit.weights)), np.array(fit.weights))
    explained = max(0.0, float(2.0 * w @ gram.data - w @ gram.pairs @ w))
    counts = np.array([[np.count_nonzero(x) for x in fit.factors]])
    norm2 = float(data.norm2 or 0.0)
    return float(selection.criterion(options.task, np.sqrt([explained]), counts, norm2)[0])


def _turned(rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Signs as the conventions want them; nonnegative rows have them already."""
    turned = [np.array(x) for x in rows]
    for r in range(len(rows[0])):
        one = conventions.oriented(tuple(x[r] for x in rows), (True,) * len(rows))
        for x, own in zip(turned, one, strict=True):
            x[r] = own
    return turned


def _gram(data: Data, rows: Sequence[np.ndarray], *, whole: bool = False) -> Gram:
    """Inner products of the components with each other and with X, over the observed entries."""
    if data.observed is not None and not whole:
        return joint.observed_gram(data.observed, list(rows))
    pairs = np.ones((len(rows[0]), len(rows[0])))
    for x in rows:
        pairs = pairs * (x @ x.T)
    blocks = tuple(rows[modes[0]] for modes in data.form.modes_of)
    return Gram(pairs, -np.asarray(data.form.value(blocks)))


def _explained(data: Data, gram: Gram, weights: np.ndarray) -> np.ndarray:
    """Increments of 1 - ||A - fit_k||^2 / ||A||^2, fit_k of the first k components."""
    if not data.norm2:
        return np.full(len(weights), np.nan)
    total = []
    for k in range(1, len(weights) + 1):
        w = weights[:k]
        total.append(2.0 * w @ gram.data[:k] - w @ gram.pairs[:k, :k] @ w)
    return np.diff(np.array([0.0, *total])) / data.norm2
