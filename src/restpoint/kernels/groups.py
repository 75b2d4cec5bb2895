"""The two groups of modes, and the small contractions that are left once the tensor has been read.

With the modes split in two, A is a matrix M with one row for each index of the first group. With u and v the outer
products of the groups' vectors, w = M v and s = M'u give all partial contractions of A.
"""

from __future__ import annotations

import math

import numpy as np

from restpoint.array import Array, namespace
from restpoint.kernels.base import Vectors


def split(sizes: tuple[int, ...]) -> int:
    """How many modes form the first group: w and s together are then as small as possible."""
    return min(range(1, len(sizes)), key=lambda k: math.prod(sizes[:k]) + math.prod(sizes[k:]))


def outer(vectors: Vectors, into: np.ndarray | None = None) -> Array:
    """The outer product of the vectors as one axis, per start; into memory of its shape, where that is given."""
    product = vectors[0]
    if into is not None:
        last = vectors[-1]
        if len(vectors) == 1:
            into[...] = last
        else:
            table = into.reshape(*into.shape[:-1], -1, last.shape[-1])
            np.multiply(outer(vectors[:-1])[..., :, None], last[..., None, :], out=table)
        return into
    for vector in vectors[1:]:
        table = product[..., :, None] * vector[..., None, :]
        size = product.shape[-1] * vector.shape[-1]
        product = namespace(table).reshape(table, (*table.shape[:-2], size))
    return product


def one_partial(w: Array, vectors: Vectors, i: int) -> Array:
    """w, seen as a tensor, contracted with all vectors but the i-th."""
    for vector in reversed(vectors[i + 1 :]):
        w = _contract_last(w, vector)
    for vector in vectors[:i]:
        w = _contract_first(w, vector)
    return w


def partials(w: Array, vectors: Vectors) -> Vectors:
    """``one_partial`` for every i, sharing what comes after i."""
    found = []
    for i in reversed(range(len(vectors))):
        found.append(one_partial(w, vectors[: i + 1], i))
        if i:
            w = _contract_last(w, vectors[i])
    return tuple(reversed(found))


def depth(sizes: tuple[int, ...], first: int, i: int) -> int:
    """The summation depth of a partial through the two groups: one long sum, then sums over single modes.

    For mode i of one group, the other group's vectors are multiplied (one rounding each but the first), its product is
    summed in one sum, and the group's own other modes are summed one after the other.
    """
    own, other = (sizes[:first], sizes[first:]) if i < first else (sizes[first:], sizes[:first])
    return math.prod(other) + len(other) - 1 + sum(own) - sizes[i]


# Products of larger matrices with a vector may go to threads of the linear algebra library, which then wait in a loop,
# for some 20 milliseconds, on the cores where the compiled loops want to run.
LARGEST_ALONE = 9000


def _contract_last(w: Array, vector: Array) -> Array:
    size = vector.shape[-1]
    if type(w) is np.ndarray and w.shape[-1] > LARGEST_ALONE:
        return np.einsum("...ij,...j->...i", w.reshape(*w.shape[:-1], -1, size), vector)
    w = namespace(w).reshape(w, (*w.shape[:-1], w.shape[-1] // size, size))
    return w @ vector if vector.ndim == 1 else (w @ vector[..., None])[..., 0]


def _contract_first(w: Array, vector: Array) -> Array:
    size = vector.shape[-1]
    if type(w) is np.ndarray and w.shape[-1] > LARGEST_ALONE:
        return np.einsum("...i,...ij->...j", vector, w.reshape(*w.shape[:-1], size, -1))
    w = namespace(w).reshape(w, (*w.shape[:-1], size, w.shape[-1] // size))
    return vector @ w if vector.ndim == 1 else (vector[..., None, :] @ w)[..., 0, :]
