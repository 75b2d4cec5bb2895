"""Samples and classes: what varies between classes, and what varies within."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from restpoint.array import require_memory
from restpoint.kernels.orthonormal import column_basis
from restpoint.models.discriminant.bases import Basis

# Directions along which samples vary less than this share of the most, within classes, count as having no variance.
FLAT = 1e-10
# A feature whose deviations within classes are this share of its size has none: that is rounding.
ROUNDING = 1e-14


@dataclass(frozen=True)
class Scatter:
    """Samples, standardised: z = D ((x - mean) / scale) with an orthogonal D.

    samples    (n, p) centred and scaled; sparse samples are kept as they came, centred only in formulas
    code       (n,) the number of each sample's class
    counts     (K,) samples of each class, ``shares`` what each counts for in the mean and between classes
    centroids  (K, p) class means of z
    """

    samples: Any
    code: np.ndarray
    counts: np.ndarray
    shares: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    centroids: np.ndarray
    basis: Basis

    @classmethod
    def of(
        cls,
        X: Any,
        code: np.ndarray,
        shares: np.ndarray,
        *,
        standardize: bool,
        basis: Basis,
    ) -> Scatter:
        """Means, scales and class means of X; ``shares`` sum to 1."""
        counts = np.bincount(code, minlength=len(shares)).astype(np.float64)
        weights = (shares / counts)[code]
        mean = np.asarray(weights @ X).ravel()
        if sparse.issparse(X):
            second = np.asarray(weights @ X.power(2)).ravel()
            scale, constant = _scale(second - mean**2, second, standardize)
            samples = sparse.csr_array(X) @ sparse.diags_array(1.0 / scale)
            centroids = _class_means(samples, code, counts) - mean / scale
            centroids[:, constant] = 0.0
        else:
            samples = X - mean
            squares = weights @ (samples * samples)
            scale, constant = _scale(squares, squares + mean**2, standardize)
            samples[:, constant] = 0.0
            samples = basis.forward(samples / scale)
            centroids = _class_means(samples, code, counts)
        return cls(samples, code, counts, shares, mean, scale, centroids, basis)

    @property
    def size(self) -> int:
        """The number of features."""
        return int(self.centroids.shape[1])

    @cached_property
    def between(self) -> np.ndarray:
        """F, p x K, with FF' the between-class scatter: columns sqrt(share_c) (centroid_c - mean)."""
        centred = self.centroids - self.shares @ self.centroids
        return np.ascontiguousarray((np.sqrt(self.shares)[:, None] * centred).T)

    @cached_property
    def within(self) -> np.ndarray:
        """(p, n): the deviations of the samples from their class means."""
        if sparse.issparse(self.samples):
            shift = self.mean / self.scale
            require_memory(8 * self.size * len(self.code), "deviations from class means")
            own = self.centroids + shift
            return self._cleared(
                np.ascontiguousarray(self.samples.T.toarray() - own.T[:, self.code])
            )
        return self._cleared(np.ascontiguousarray((self.samples - self.centroids[self.code]).T))

    def _cleared(self, found: np.ndarray) -> np.ndarray:
        """Deviations without those that are rounding, as of samples that are copies of each other."""
        away = np.abs(self.mean / self.scale)
        away = away if self.basis.identity else np.full(self.size, np.linalg.norm(away))
        size = np.sqrt(np.einsum("c,cp,cp->p", self.counts, self.centroids, self.centroids))
        size += np.sqrt(len(self.code)) * away
        flat = np.linalg.norm(found, axis=1) <= ROUNDING * size
        found[flat] = 0.0
        return found

    @cached_property
    def rows(self) -> np.ndarray:
        """Q, p x k: an orthonormal basis of what varies within classes."""
        return np.asarray(column_basis(self.within, FLAT))

    @cached_property
    def deviations(self) -> np.ndarray:
        """(p,) the standard deviation of every feature within classes."""
        freedom = max(1, len(self.code) - len(self.counts))
        return np.linalg.norm(self.within, axis=1) / np.sqrt(freedom)


def _scale(
    variance: np.ndarray, second: np.ndarray, standardize: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations, and which features are constant: of these rounding is all that is left, and the scale 1."""
    constant = variance <= 1e-14 * second
    if not standardize:
        return np.ones(len(variance)), constant
    return np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance))), constant


def _class_means(samples: Any, code: np.ndarray, counts: np.ndarray) -> np.ndarray:
    indicator = sparse.csr_array(
        (1.0 / counts[code], (code, np.arange(len(code)))), shape=(len(counts), len(code))
    )
    found = indicator @ samples
    return np.asarray(found.toarray() if sparse.issparse(found) else found)
