"""Orthogonal changes of features: sum_j |(Dw)_j| is the plain l1 norm of D w, and everything else turns along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.errors import DataError

NAMES = ("dct", "haar")


@dataclass(frozen=True)
class Basis:
    """An orthogonal D, applied to the last axis; the identity where ``kind`` is None.

    >>> basis = basis_of("haar", 4)
    >>> D = basis.forward(np.eye(4)).T
    >>> (
    ...     bool(np.allclose(D @ D.T, np.eye(4))),
    ...     bool(np.allclose(basis.backward(basis.forward(np.arange(4.0))), np.arange(4.0))),
    ... )
    (True, True)
    """

    kind: str | None = None
    matrix: np.ndarray | None = None

    @property
    def identity(self) -> bool:
        """Whether there is nothing to do."""
        return self.kind is None and self.matrix is None

    @property
    def name(self) -> str:
        """In words."""
        return self.kind or ("a matrix" if self.matrix is not None else "identity")

    def forward(self, x: np.ndarray) -> np.ndarray:
        """D x for each row x."""
        if self.matrix is not None:
            return x @ self.matrix.T
        if self.kind == "dct":
            from scipy.fft import dct

            return np.asarray(dct(x, axis=-1, norm="ortho"))
        return _haar(x) if self.kind == "haar" else x

    def backward(self, x: np.ndarray) -> np.ndarray:
        """D'x for each row x."""
        if self.matrix is not None:
            return x @ self.matrix
        if self.kind == "dct":
            from scipy.fft import idct

            return np.asarray(idct(x, axis=-1, norm="ortho"))
        return _haar_back(x) if self.kind == "haar" else x


def basis_of(given: Any, size: int) -> Basis:
    """A user's ``basis``: None, "dct", "haar", or an orthogonal matrix.

    >>> basis_of("fft", 8)
    Traceback (most recent call last):
        ...
    restpoint.errors.DataError: basis must be None, 'dct', 'haar' or an orthogonal (8, 8) matrix, got 'fft'
    """
    wanted = f"basis must be None, 'dct', 'haar' or an orthogonal ({size}, {size}) matrix"
    if given is None:
        return Basis()
    if isinstance(given, str):
        if given not in NAMES:
            raise DataError(f"{wanted}, got {given!r}")
        return Basis(given)
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.shape != (size, size):
        raise DataError(f"{wanted}, got shape {matrix.shape}")
    error = float(np.max(np.abs(matrix @ matrix.T - np.eye(size))))
    if not error <= 1e-10:
        raise DataError(f"{wanted}; D D' differs from the identity by {error:.2g}")
    return Basis(None, matrix)


def _haar(x: np.ndarray) -> np.ndarray:
    """Sums and differences of neighbours, again and again of the sums; a last odd entry waits for the next round."""
    coarse, found = x, []
    while coarse.shape[-1] > 1:
        even = coarse.shape[-1] // 2 * 2
        left, right, odd = coarse[..., 0:even:2], coarse[..., 1:even:2], coarse[..., even:]
        found.append((left - right) * np.sqrt(0.5))
        coarse = np.concatenate([(left + right) * np.sqrt(0.5), odd], axis=-1)
    return np.concatenate([coarse, *reversed(found)], axis=-1)


def _haar_back(y: np.ndarray) -> np.ndarray:
    sizes = [y.shape[-1]]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)
    coarse, at = y[..., :1], 1
    for size in reversed(sizes[:-1]):
        half = size // 2
        fine, at = y[..., at : at + half], at + half
        sums, odd = coarse[..., :half], coarse[..., half:]
        pairs = np.stack([sums + fine, sums - fine], axis=-1) * np.sqrt(0.5)
        coarse = np.concatenate([pairs.reshape(*pairs.shape[:-2], 2 * half), odd], axis=-1)
    return np.asarray(coarse)
