"""Starts grown from the strongest entries, without a read of the tensor."""

from __future__ import annotations

import math

import numpy as np

from restpoint.models.tensor_pca.entries import Entries
from restpoint.models.tensor_pca.starts import signed, unit
from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks

# Strong entries that are looked at, entries of the small tensors around all of them, and nonzeros a mode.
SCREENED, AROUND, SIDE = 2000, 3_000_000, 12
# In a small tensor, one of so many of its entries, and so many times its size.
ONE_OF, TIMES = 16, 30
# The best of them are polished: so many at most, and so many entries gathered at a time.
POLISHED, GATHERED = 40, 4_000_000


def screened(task: Task, least: float) -> Blocks | None:
    """Starts grown from the strongest entries, the best of them first; None where entries cannot be looked at.

    Around each of the strongest entries (i_1, ..., i_d) lie d fibres; their indices of largest modulus make a small
    tensor, on which a few sweeps of x_m <- soft(A(x without m), ``least``) / norm are run, for all entries at once. The
    best are polished by sweeps over whole modes, each vector kept to ``SIDE`` nonzeros, so that only few entries of A
    are needed. A planted sparse component shows here long before it shows in unfoldings: one of its entries must be
    among the largest of the noise, while singular vectors need a norm of N^(1/4).
    """
    entries = task.entries
    if entries is None or not task.untied:
        return None
    total = math.prod(entries.sizes)
    index = entries.strongest(min(SCREENED, 100 * task.starts, max(100, total // ONE_OF)))
    if entries.tensor is None or not len(index[0]):
        return axes(index, task)
    chosen = _around(entries, index)
    small = entries.at(tuple(_open(own, m, len(chosen)) for m, own in enumerate(chosen)))
    xs = _grown(small, least)
    order = np.argsort(-np.sum(_partial(small, xs, 0) * xs[0], axis=1), kind="stable")
    per_start = max(own.shape[1] for own in chosen) ** (len(chosen) - 1) * max(entries.sizes)
    order = order[: max(task.starts, min(POLISHED, GATHERED // per_start))]
    xs, chosen = [x[order] for x in xs], [own[order] for own in chosen]
    xs, chosen, phi = _polished(entries, xs, chosen, least)
    order = np.argsort(phi, kind="stable")[: task.starts]
    blocks = []
    for x, own, n in zip(xs, chosen, entries.sizes, strict=True):
        whole = np.zeros((len(order), n))
        np.put_along_axis(whole, own[order], x[order], axis=1)
        blocks.append(whole)
    return tuple(blocks)


def axes(index: tuple[np.ndarray, ...], task: Task) -> Blocks | None:
    """One start at each of the strongest entries itself."""
    if not len(index[0]):
        return None
    kept = tuple(i[: task.starts] for i in index)
    blocks = tuple(np.eye(n)[i] for n, i in zip(task.sizes, kept, strict=True))
    return signed(blocks, task)


def _around(entries: Entries, index: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """In each mode the indices of the largest entries of the fibres through the strong entries."""
    d = len(entries.sizes)
    gathered = min(AROUND, TIMES * math.prod(entries.sizes))
    side = max(2, min(SIDE, int((gathered / len(index[0])) ** (1.0 / d))))
    return [
        np.argpartition(np.abs(entries.fibres(index, m)), n - min(side, n), axis=1)[
            :, n - min(side, n) :
        ]
        for m, n in enumerate(entries.sizes)
    ]


def _open(own: np.ndarray, mode: int, d: int) -> np.ndarray:
    """Indices (starts, k) of one mode with axes for the others."""
    return own.reshape(len(own), *(-1 if q == mode else 1 for q in range(d)))


def _grown(small: np.ndarray, least: float, sweeps: int = 5) -> list[np.ndarray]:
    """Sweeps on many small tensors at once, from the fibres through their largest entries."""
    d, rows = small.ndim - 1, np.arange(len(small))
    top = np.unravel_index(
        np.argmax(np.abs(small).reshape(len(small), -1), axis=1), small.shape[1:]
    )
    xs = [
        unit(np.moveaxis(small, 1 + m, -1)[(rows, *(top[q] for q in range(d) if q != m))])
        for m in range(d)
    ]
    for _ in range(sweeps):
        for m in range(d):
            xs[m] = _shrunk(_partial(small, xs, m), least)
    return xs


def _polished(
    entries: Entries, xs: list[np.ndarray], chosen: list[np.ndarray], least: float, sweeps: int = 3
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Sweeps over whole modes, with ``SIDE`` nonzeros a vector; and -A(x) + least sum ||x_i||_1 at the end."""
    d, g = len(xs), np.zeros((len(xs[0]), 0))
    for _ in range(sweeps):
        for m, n in enumerate(entries.sizes):
            whole = np.broadcast_to(np.arange(n), (len(xs[m]), n))
            index = tuple(_open(whole if q == m else chosen[q], q, d) for q in range(d))
            g = _partial(entries.at(index), xs, m)
            k = min(SIDE, n)
            chosen[m] = np.argpartition(np.abs(g), n - k, axis=1)[:, n - k :]
            xs[m] = _shrunk(np.take_along_axis(g, chosen[m], axis=1), least)
    value = np.sum(np.take_along_axis(g, chosen[-1], axis=1) * xs[-1], axis=1)
    return xs, chosen, least * sum(np.abs(x).sum(axis=1) for x in xs) - value


def _shrunk(g: np.ndarray, least: float) -> np.ndarray:
    """soft(g, least) / norm, and g / norm where all of it is below."""
    soft = np.sign(g) * np.maximum(np.abs(g) - least, 0.0)
    return unit(np.where(soft.any(axis=1, keepdims=True), soft, g))


def _partial(small: np.ndarray, xs: list[np.ndarray], mode: int) -> np.ndarray:
    """Each small tensor contracted with its vectors in all modes but one."""
    left = small
    for m in reversed(range(len(xs))):
        if m != mode:
            left = np.einsum("z...a,za->z...", np.moveaxis(left, 1 + m, -1), xs[m])
    return left
