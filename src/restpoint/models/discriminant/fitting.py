"""From samples to discriminant vectors: one fit, which the folds repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed

from restpoint.errors import DataError
from restpoint.models.discriminant.bases import Basis
from restpoint.models.discriminant.directions import Budget, Component, Opening, Wish, sought
from restpoint.models.discriminant.rule import aligned
from restpoint.models.discriminant.scatter import Scatter
from restpoint.models.discriminant.spaces import BoundedVariance, Space, ZeroVariance

# The share of a sphere in the covariance where there is no direction of zero variance.
SHRINKAGE = 0.1


@dataclass(frozen=True)
class Plan:
    """Everything that a fit needs to know beside samples; checked.

    ``shrinkage`` is None for "auto"; ``sigma`` None for standard deviations within classes.
    """

    wishes: tuple[Wish, ...]
    standardize: bool
    basis: Basis
    sigma: np.ndarray | None
    shrinkage: float | None
    orthogonal_to: np.ndarray | None
    budget: Budget


@dataclass(frozen=True)
class Directions:
    """The vectors, and how to score samples with them: (X - mean) @ scalings."""

    components: list[Component]
    mean: np.ndarray
    scalings: np.ndarray
    scatter: Scatter
    zero_variance: bool

    @property
    def vectors(self) -> np.ndarray:
        """One row for each component."""
        return np.stack([one.w for one in self.components])

    @property
    def centroids(self) -> np.ndarray:
        """The scores of the class means."""
        return np.asarray(self.scatter.centroids @ self.vectors.T)

    def scores(self, X: Any) -> np.ndarray:
        """One row for each sample."""
        return np.asarray(X @ self.scalings) - self.mean @ self.scalings


def fitted(X: Any, code: np.ndarray, shares: np.ndarray, plan: Plan) -> Directions:
    """All components, one after the other."""
    return next(along((X, code, shares), plan, [plan.wishes]))


def along(
    data: tuple[Any, np.ndarray, np.ndarray], plan: Plan, several: Iterable[tuple[Wish, ...]]
) -> Iterator[Directions]:
    """Directions for several wishes in the place of the plan's, each begun at those before; the rest is done once."""
    X, code, shares = data
    scatter = Scatter.of(X, code, shares, standardize=plan.standardize, basis=plan.basis)
    space, zero_variance = space_of(scatter, plan)
    opening = Opening.of(space, 0, plan.budget) if space.strongest > 0.0 else None
    components: list[Component] = []
    for wishes in several:
        components = sought(space, list(wishes), plan.budget, opening, components)
        vectors = np.stack([one.w for one in components])
        scalings = (plan.basis.backward(vectors) / scatter.scale).T
        yield Directions(components, scatter.mean, scalings, scatter, zero_variance)


def space_of(scatter: Scatter, plan: Plan) -> tuple[Space, bool]:
    """Zero variance where that leaves room for all components, unless a shrinkage was asked for."""
    sigma = weights(scatter, plan.sigma)
    if plan.shrinkage is None:
        more = 0 if plan.orthogonal_to is None else plan.orthogonal_to.shape[1]
        if scatter.size - scatter.rows.shape[1] - more >= len(plan.wishes):
            return ZeroVariance.of(scatter, sigma, plan.orthogonal_to), True
    if plan.orthogonal_to is not None:
        raise DataError(
            f"orthogonal_to needs directions of zero variance within classes, but {scatter.size} features and "
            f"{len(scatter.code)} samples leave too few"
            + ("" if plan.shrinkage is None else " (shrinkage was given)")
            + "; leave it out"
        )
    share = SHRINKAGE if plan.shrinkage is None else plan.shrinkage
    return BoundedVariance.of(scatter, sigma, share), False


def weights(scatter: Scatter, given: np.ndarray | None) -> np.ndarray:
    """One positive weight for each feature: a feature without variance within classes counts as the quietest other."""
    if given is not None:
        return given
    found = scatter.deviations
    quiet = found <= 1e-10 * float(np.max(found, initial=0.0))
    if np.all(quiet):
        return np.ones(scatter.size)
    return np.where(quiet, float(np.min(found[~quiet])), found)


@dataclass(frozen=True)
class HeldOut:
    """What samples that the directions had not seen look like along them.

    scores      (n, n_components), turned to the directions of all samples
    frequency   (n_components, p): in which share of the folds a coefficient is not 0
    """

    scores: np.ndarray
    frequency: np.ndarray


def held_out(
    data: tuple[Any, np.ndarray, np.ndarray],
    plan: Plan,
    folds: int,
    centroids: np.ndarray,
    jobs: int | None,
) -> HeldOut:
    """Every sample scored by the directions of a fit without its fold; ``data`` is X, code and shares."""
    _, code, _ = data
    split = StratifiedKFold(folds, shuffle=True, random_state=plan.budget.seed)
    parts = list(split.split(code, code))
    found = Parallel(n_jobs=jobs)(delayed(_unseen)(data, plan, part, centroids) for part in parts)
    scores = np.zeros((len(code), len(plan.wishes)))
    for (_, held), (own, _) in zip(parts, found, strict=True):
        scores[held] = own
    return HeldOut(scores, np.mean([support for _, support in found], axis=0))


def _unseen(
    data: tuple[Any, np.ndarray, np.ndarray],
    plan: Plan,
    part: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    (X, code, shares), (train, held) = data, part
    found = fitted(X[train], code[train], shares, plan)
    return aligned(found.scores(X[held]), found.centroids, wanted), found.vectors != 0
