"""Singular values and eigenvalues of many matrices; one that holds NaN spoils none of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from restpoint.array import Array, namespace


def singular(x: Array) -> tuple[Array, Array, Array]:
    """U, sigma, V' of every matrix, sigma descending."""
    xp, known, safe = _finite(x)
    left, sizes, right = xp.linalg.svd(safe, full_matrices=False)
    return left, _unknown(sizes, known), right


def singular_values(x: Array) -> Array:
    """The singular values of every matrix, descending."""
    xp, known, safe = _finite(x)
    return _unknown(xp.linalg.svdvals(safe), known)


def eigen(x: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of the symmetric part of every square matrix."""
    xp, known, safe = _finite(x)
    values, vectors = xp.linalg.eigh(0.5 * (safe + xp.matrix_transpose(safe)))
    return _unknown(values, known), vectors


def with_singular_values(x: Array, change: Callable[[Array], Array]) -> Array:
    """The matrices with the same singular vectors and changed singular values."""
    left, sizes, right = singular(x)
    return (left * change(sizes)[..., None, :]) @ right


def with_eigenvalues(x: Array, change: Callable[[Array], Array]) -> Array:
    """The symmetric matrices with the eigenvectors of the symmetric part of x, and changed eigenvalues."""
    values, vectors = eigen(x)
    xp = namespace(x)
    made = (vectors * change(values)[..., None, :]) @ xp.matrix_transpose(vectors)
    return 0.5 * (made + xp.matrix_transpose(made))


def _finite(x: Array) -> tuple[Any, Array, Array]:
    xp = namespace(x)
    known = xp.all(xp.isfinite(x), axis=(-2, -1))
    return xp, known, xp.where(known[..., None, None], x, xp.zeros_like(x))


def _unknown(values: Array, known: Array) -> Array:
    xp = namespace(values)
    return xp.where(known[..., None], values, xp.nan * xp.ones_like(values))
