"""A point of the joint refinement, and where to look from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from restpoint.sets import NonnegativeBall, Set
from restpoint.smooth.base import Blocks

# Components of a larger congruence are one.
ALIKE = 0.999


class State(NamedTuple):
    """A point and F there."""

    weights: np.ndarray
    factors: tuple[np.ndarray, ...]
    value: float


def extrapolated(before: State, now: State, push: float, sets: Sequence[Set]) -> State:
    """A point further along, of unit vectors; zeros and components of weight 0 stay, and what is >= 0 stays so."""
    factors = []
    for old, new, s in zip(before.factors, now.factors, sets, strict=True):
        still = (new == 0.0) | (now.weights == 0.0)[:, None]
        X = np.where(still, new, new + push * (new - old))
        X = np.maximum(X, 0.0) if isinstance(s, NonnegativeBall) else X
        sizes = np.linalg.norm(X, axis=1, keepdims=True)
        factors.append(np.where(sizes > 0.0, X / np.where(sizes > 0.0, sizes, 1.0), new))
    return State(now.weights, tuple(factors), np.nan)


def distance(a: State, b: State) -> float:
    """The farthest that a vector of a component with a weight has moved, or a weight relative to the largest."""
    largest = max(float(np.max(a.weights)), float(np.max(b.weights)))
    if largest == 0.0:
        return 0.0
    alive = (a.weights > 0.0) | (b.weights > 0.0)
    moves = [
        np.linalg.norm(x - y, axis=1)[alive] for x, y in zip(a.factors, b.factors, strict=True)
    ]
    return float(max(np.max(moves), np.max(np.abs(a.weights - b.weights)) / largest))


def merged(state: State, sets: Sequence[Set], rng: np.random.Generator) -> State | None:
    """Of components that point the same way one takes all the weight, the others start anew; None if none do.

    Anew is at random: shrinkage leaves a little of every component, and beside it is no place to look for another.
    """
    w = state.weights.copy()
    alike = np.prod([X @ X.T for X in state.factors], axis=0)
    for r, s in zip(*np.nonzero(np.triu(alike > ALIKE, 1)), strict=True):
        if w[r] > 0.0 and w[s] > 0.0:
            w[r], w[s] = w[r] + w[s], 0.0
    gone = (state.weights > 0.0) & (w == 0.0)
    if not np.any(gone):
        return None
    factors = []
    for X, own in zip(state.factors, sets, strict=True):
        fresh = np.stack([own.sample(rng, X.shape[1:]) for _ in X])
        factors.append(np.where(gone[:, None], fresh, X))
    return State(w, tuple(factors), np.nan)


def blocks(factors: Sequence[np.ndarray]) -> Blocks:
    """The vectors of all components, mode by mode."""
    return tuple(row for X in factors for row in X)


def without_dead(state: State) -> tuple[np.ndarray, ...]:
    """The vectors, 0 where the weight is 0."""
    return tuple(np.where(state.weights[:, None] > 0.0, X, 0.0) for X in state.factors)
