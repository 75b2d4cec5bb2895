"""Least-squares scores of new samples, the other modes fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def scores(array: np.ndarray, rows: Sequence[np.ndarray], mode: int) -> np.ndarray:
    """The T of shape (samples, R) that minimises || A - sum_r T[:, r] (o of the other modes' vectors) ||.

    Over observed entries: every sample with holes has normal equations of its own; where nothing is observed the scores
    are NaN. Of several solutions it is the shortest.

    >>> A = np.multiply.outer(np.array([1.0, 2.0]), np.array([0.6, 0.8]))
    >>> scores(A, [np.zeros((1, 2)), np.array([[0.6, 0.8]])], 0)
    array([[1.], [2.]])
    """
    others = [x for m, x in enumerate(rows) if m != mode]
    samples = np.moveaxis(array, mode, 0)
    holes = np.isnan(samples)
    rank = len(rows[0])
    if not holes.any():
        right = np.stack([_against(samples, [x[r] for x in others]) for r in range(rank)], axis=1)
        gram = np.ones((rank, rank))
        for x in others:
            gram = gram * (x @ x.T)
        return right @ np.linalg.pinv(gram, hermitian=True)
    patterns = np.stack([_outer([x[r] for x in others]) for r in range(rank)])
    flat = samples.reshape(len(samples), -1)
    seen = ~holes.reshape(flat.shape)
    right = np.where(seen, flat, 0.0) @ patterns.T
    pairs = (patterns[:, None] * patterns[None, :]).reshape(rank * rank, -1)
    grams = (seen.astype(np.float64) @ pairs.T).reshape(-1, rank, rank)
    found = (np.linalg.pinv(grams, hermitian=True) @ right[..., None])[..., 0]
    return np.where(seen.any(axis=1, keepdims=True), found, np.nan)


def _against(samples: np.ndarray, xs: Sequence[np.ndarray]) -> np.ndarray:
    left = samples
    for x in reversed(xs):
        left = left @ x
    return np.asarray(left, dtype=np.float64)


def _outer(xs: Sequence[np.ndarray]) -> np.ndarray:
    product = xs[0]
    for x in xs[1:]:
        product = np.multiply.outer(product, x)
    return product.ravel()
