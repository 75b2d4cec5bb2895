"""What is left of a tensor when components have been found: nothing is formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks
from restpoint.sets import Set
from restpoint.smooth import FactoredTensor, Facts, Smooth, Sum


def subtracted(
    task: Task, first: Smooth, weights: Sequence[float], rows: Sequence[Blocks], tied: Any
) -> Task:
    """The task of the next component: A less all components so far, each a vector a mode."""
    factors = [np.stack([xs[m] for xs in rows], axis=1) for m in range(len(rows[0]))]
    less = FactoredTensor((np.asarray(weights), factors), sign=1.0, tied=tied)
    entries = task.entries
    if entries is not None:
        entries = replace(entries, less=())
        for weight, xs in zip(weights, rows, strict=True):
            entries = entries.without((float(weight), tuple(xs)))
    return replace(task, form=Sum(first, less), entries=entries)


def remaining(
    norm2: float, products: np.ndarray, weights: np.ndarray, rows: Sequence[Blocks]
) -> float:
    """||A - sum_r w_r X_r||^2 from the A(x_r) and the inner products of the components."""
    gram = np.ones((len(rows), len(rows)))
    for m in range(len(rows[0])):
        X = np.stack([xs[m] for xs in rows])
        gram = gram * (X @ X.T)
    return max(0.0, float(norm2 - 2.0 * weights @ products + weights @ gram @ weights))


class Projected(Smooth):
    r"""f(P_1 x_1, ..., P_b x_b), P_i x = x - Q_i Q_i'x the projection on the complement of vectors found before.

    Projections do not lengthen vectors, so that what f declares on centred balls holds for this function too.
    """

    def __init__(self, inner: Smooth, bases: Sequence[np.ndarray]) -> None:
        self.inner, self.bases, self.shapes = inner, tuple(bases), inner.shapes

    @property
    def like(self) -> Any:
        return self.inner.like

    def converted(self, like: Any) -> Smooth:
        return self

    def value(self, xs: Blocks) -> Any:
        return self.inner.value(self._projected(xs))

    def value_and_gradient(self, xs: Blocks) -> tuple[Any, Blocks]:
        value, gradient = self.inner.value_and_gradient(self._projected(xs))
        return value, self._projected(gradient)

    def facts(self, sets: Sequence[Set]) -> Facts:
        return self.inner.facts(sets)

    def _projected(self, xs: Blocks) -> Blocks:
        return tuple(x - (x @ Q) @ Q.T for x, Q in zip(xs, self.bases, strict=True))


def projected(task: Task, first: Smooth, found: Sequence[Blocks]) -> Task:
    """The task of the next component: every block on the complement of the vectors found in it."""
    bases = [
        np.linalg.qr(np.stack([xs[i] for xs in found], axis=1))[0] for i in range(len(found[0]))
    ]
    return replace(task, form=Projected(first, bases), entries=None)
