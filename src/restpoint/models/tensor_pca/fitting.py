"""From data and options to components: greedy, then refined together where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.errors import DataError
from restpoint.models.tensor_pca import component, conventions, deflation, joint, selection
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.component import Found
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.options import Options
from restpoint.models.tensor_pca.task import Task
from restpoint.models.tensor_pca.together import gram_of, refined
from restpoint.problem import Blocks
from restpoint.run import Status

# Less than this share of ||X||^2 is rounding, not a tensor.
NOTHING = 1e-13
# And so is a component of less than this, in units of the largest one before.
NOISE = 1e-13
# Components whose squares add up to more than so many times that of their sum nearly cancel.
CANCELLING = 25.0


@dataclass(frozen=True)
class Fit:
    """Components in their conventions: ``rows`` holds one array (R, n) for each mode, ``points`` those of the sets."""

    rows: tuple[np.ndarray, ...]
    points: tuple[np.ndarray, ...]
    weights: np.ndarray
    ratio: np.ndarray
    certificate: Any
    certified: bool
    reason: str
    iterations: int
    rho: np.ndarray
    found: tuple[Found, ...]
    joint: joint.JointFit | None
    convergence: tuple[Convergence, ...]
    advice: str = "raise tol"  # where it is not certified


def fitted(data: Data, options: Options) -> Fit:
    """The components, in their conventions."""
    so_far = greedy(data, options)
    several = len(so_far.found) > 1
    alive = not all(one.empty for one in so_far.found)
    if alive and ((several and options.deflation == "joint") or data.observed is not None):
        return _together(data, options, so_far)
    found, weights = so_far.found, np.array(so_far.weights)
    gram = gram_of(data, [np.stack([v[m] for v in so_far.vectors]) for m in range(len(data.sizes))])
    if several:  # found in what others left, they are weighed together
        weights = best_weights(gram, np.zeros(len(found)), weights)
    order = np.argsort(-weights, kind="stable")
    certificates = [found[r].certificate for r in order]
    reasons = [str(f.status.value) for f in found if f.status is not Status.CERTIFIED]
    rows = [np.stack([v[m] for v in so_far.vectors])[order] for m in range(len(data.sizes))]
    rho = np.array([[f.rho[k] for k in data.form.block_of] for f in found])
    return Fit(
        rows=tuple(rows),
        points=tuple(np.stack([found[r].xs[k] for r in order]) for k in data.form.block_of),
        weights=weights[order],
        ratio=_explained(
            data, Gram(gram.pairs[np.ix_(order, order)], gram.data[order]), weights[order]
        ),
        certificate=certificates if several else certificates[0],
        certified=not reasons,
        reason="; ".join(reasons[:1]),
        iterations=sum(f.iterations for f in found),
        rho=rho[order],
        found=tuple(found),
        joint=None,
        convergence=tuple(
            replace(found[r].convergence, proved=float(found[r].certificate.max)) for r in order
        ),
    )


def _together(data: Data, options: Options, so_far: Progress) -> Fit:
    """All components refined; the weights of their vectors are then those of least squares, not shrunk by l1."""
    found = so_far.found
    start = so_far.vectors, np.array(so_far.weights)
    fit, weights, rho = refined(data, options, found, start)
    gram = gram_of(data, fit.factors)
    return Fit(
        rows=fit.factors,
        points=fit.factors,
        weights=weights,
        ratio=_explained(data, gram, weights),
        certificate=fit.certificate,
        certified=fit.certified,
        reason=str(fit.status.value),
        advice=_cancelling(gram, weights),
        iterations=fit.iterations + sum(f.iterations for f in found),
        rho=rho,
        found=tuple(found),
        joint=fit,
        convergence=(fit.convergence,),
    )


@dataclass
class Progress:
    """Components so far, one after the other; ``vectors`` by mode, of length 1, and weights are what is subtracted."""

    found: list[Found]
    vectors: list[Blocks]
    weights: list[float]

    def repeat_last(self) -> None:
        """The same once more: where rho leaves only zero, it does so for all that follow."""
        self.found.append(self.found[-1])
        self.vectors.append(self.vectors[-1])
        self.weights.append(0.0)


def greedy(data: Data, options: Options, so_far: Progress | None = None) -> Progress:
    """One component after the other; those to be refined later are subtracted as their least-squares refits.

    ``so_far`` is gone on with, in place.
    """
    task, so_far = options.task, Progress([], [], []) if so_far is None else so_far
    several = options.components > 1 or data.observed is not None
    later = options.deflation == "joint" and several
    for _ in range(options.components - len(so_far.found)):
        if so_far.found and so_far.found[-1].empty:
            so_far.repeat_last()
            continue
        if so_far.found:
            _refuse_nothing(data, options, so_far)
            task = _next(data, options, so_far)
        least = NOISE * max(so_far.weights, default=0.0)
        sought = component.sought(task, options.wish, data.observed, least)
        if sought is None:
            raise DataError(_nothing(options, len(so_far.found)))
        one = _oriented(options, sought)
        unit, _ = conventions.unit_rows(one.xs)
        if options.plain:  # rounding apart they are the same; what is certified is what is returned
            one = component.at_point(one, unit)
        weight = 0.0 if one.empty else max(0.0, float(-task.form.value(unit)))
        by_mode = tuple(unit[k] for k in data.form.block_of)
        if later and not one.empty:
            w, xs = selection.refitted(task, tuple(x[None] for x in one.xs))
            weight, by_mode = float(w[0]), tuple(x[0] for x in xs)
        so_far.found.append(one)
        so_far.vectors.append(by_mode)
        so_far.weights.append(weight)
    return so_far


def _next(data: Data, options: Options, so_far: Progress) -> Task:
    """The task of the next component."""
    first = options.task
    if options.deflation == "orthogonal":
        rows = [conventions.unit_rows(f.xs)[0] for f in so_far.found]
        task = deflation.projected(first, first.form, rows)
    else:
        task = deflation.subtracted(
            first, first.form, so_far.weights, so_far.vectors, data.form.block_of
        )
    return task if first.norm2 is None else replace(task, norm2=_rest(data, so_far))


def _rest(data: Data, so_far: Progress) -> float:
    """||A||^2 less what the components so far explain."""
    rows = [np.stack([xs[m] for xs in so_far.vectors]) for m in range(len(data.sizes))]
    gram, w = gram_of(data, rows, whole=True), np.array(so_far.weights)
    return max(0.0, float((data.norm2 or 0.0) - 2.0 * w @ gram.data + w @ gram.pairs @ w))


def _refuse_nothing(data: Data, options: Options, so_far: Progress) -> None:
    if data.norm2 is None or _rest(data, so_far) > NOTHING * data.norm2:
        return
    raise DataError(_nothing(options, len(so_far.found)))


def _nothing(options: Options, count: int) -> str:
    """What to say where no further component is found."""
    clock = options.task.clock
    if clock.over:
        return f"no point with A(x) > 0 was met before the end ({clock.reason}); give it more time"
    if count:
        return (
            f"after {count} component(s) nothing is left of X, or nothing with A(x) > 0 on these sets, but "
            f"n_components={options.components}; ask for at most {count}"
        )
    return (
        "X has no component: no point with A(x) > 0 was found on these sets (is X negative where the sets ask for "
        "nonnegative vectors?)"
    )


def _oriented(options: Options, one: Found) -> Found:
    task = options.task
    turns = conventions.may_turn(task.sets, task.fixed, task.untied)
    return component.at_point(one, conventions.oriented(one.xs, turns))


def _cancelling(gram: Gram, weights: np.ndarray) -> str:
    """What to say of components that grow while their sum does not: a best fit need not exist."""
    together = float(weights @ gram.pairs @ weights)
    if not float(np.sum(weights**2)) > CANCELLING * together:
        return Fit.advice
    return (
        f"components nearly cancel (weights up to {np.max(weights):.3g} for a sum of norm {together**0.5:.3g}), so "
        "that there may be no best fit: take fewer of them, rho > 0, or nonneg"
    )


def _explained(data: Data, gram: Gram, weights: np.ndarray) -> np.ndarray:
    """Increments of 1 - ||A - fit_k||^2 / ||A||^2, fit_k of the first k components."""
    if not data.norm2:
        return np.full(len(weights), np.nan)
    total = []
    for k in range(1, len(weights) + 1):
        w = weights[:k]
        total.append(2.0 * w @ gram.data[:k] - w @ gram.pairs[:k, :k] @ w)
    return np.diff(np.array([0.0, *total])) / data.norm2
