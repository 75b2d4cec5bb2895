"""Which point of a path to take: BIC of least-squares refits on the supports; and supports of a given size."""

from __future__ import annotations

import math

import numpy as np

from restpoint.models.tensor_pca.starts import unit
from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks
from restpoint.sets import L2Ball, NonnegativeBall

# Small tensors on supports are gathered up to this many entries; above, the form is contracted as a whole.
GATHERED = 2_000_000
SWEEPS = 6


def criterion(task: Task, weights: np.ndarray, counts: np.ndarray, norm2: float) -> np.ndarray:
    r"""N log(RSS/N) + sum over modes of nnz_m (log N + 2 log n_m), RSS = ||A||^2 - w^2.

    The extended BIC (Chen and Chen, 2008): log N a parameter, as in BIC, and 2 log n for the choice among n entries,
    without which the largest of n entries of noise are taken in too often. N counts observed entries. Zero has
    ``N log(||A||^2/N)``.
    """
    rss = np.maximum(norm2 - weights**2, 1e-14 * norm2)
    return task.count * np.log(rss / task.count) + counts @ prices(task)


def prices(task: Task) -> np.ndarray:
    """What a nonzero of every block costs."""
    return np.array([math.log(task.count) + 2.0 * math.log(max(2, n)) for n in task.sizes])


def supports(xs: Blocks) -> np.ndarray:
    """The nonzeros of every block, per point: shape (points, blocks)."""
    return np.stack([np.count_nonzero(x, axis=1) for x in xs], axis=1)


def refitted(
    task: Task, xs: Blocks, observed: np.ndarray | None = None
) -> tuple[np.ndarray, Blocks]:
    """The least-squares rank-one fits on the supports of the points ``xs``: their weights, and unit vectors.

    Alternating least squares on the small tensor A[supports] from x itself; one for each distinct support. Where the
    sets are not balls the point itself is kept, with the weight that fits best.
    """
    xs = tuple(unit(x) for x in xs)
    balls = all(isinstance(s, (L2Ball, NonnegativeBall)) for s in task.sets)
    live = np.all([x.any(axis=1) for x in xs], axis=0)
    weights = np.where(live, -task.form.value(xs), 0.0)
    if not balls:
        return np.maximum(weights, 0.0), xs
    moved = tuple(np.array(x) for x in xs)
    small = np.prod(supports(xs).astype(float), axis=1) <= GATHERED
    dense = task.untied and task.entries is not None and task.entries.tensor is not None
    seen: dict[bytes, tuple[float, list[np.ndarray]]] = {}
    for p in np.flatnonzero(live & small) if dense else ():
        index = [np.flatnonzero(x[p]) for x in xs]
        key = b"|".join(i.tobytes() for i in index)
        if key not in seen:
            own = [x[p][i] for x, i in zip(xs, index, strict=True)]
            seen[key] = _alternating(task, index, own, observed)
        weights[p], found = seen[key]
        for x, i, y in zip(moved, index, found, strict=True):
            x[p, i] = y
    whole = np.all(
        supports(xs) == np.array(task.sizes), axis=1
    )  # these are least-squares fits already
    rest = np.flatnonzero(live & ~whole & ~small) if dense else np.flatnonzero(live & ~whole)
    if len(rest) and observed is None:
        weights[rest], parts = _masked(task, tuple(x[rest] for x in xs))
        for x, part in zip(moved, parts, strict=True):
            x[rest] = part
    return np.maximum(weights, 0.0), moved


def _alternating(
    task: Task, index: list[np.ndarray], xs: list[np.ndarray], observed: np.ndarray | None
) -> tuple[float, list[np.ndarray]]:
    """Alternating least squares on one small tensor; with holes, every entry by its own normal equation."""
    cut = np.ix_(*index)
    small = task.entries.at(cut)  # type: ignore[union-attr]
    seen = None if observed is None else (~np.isnan(observed[cut])).astype(float)
    weight = 0.0
    for _ in range(SWEEPS):
        for m in range(len(xs)):
            g = _contract(small, xs, m)
            if seen is not None:
                size = _contract(seen, [x**2 for x in xs], m)
                g = np.where(size > 0, g / np.where(size > 0, size, 1.0), 0.0)
            if isinstance(task.sets[m], NonnegativeBall):
                g = np.maximum(g, 0.0)
            weight = float(np.linalg.norm(g))
            if weight == 0.0:
                return 0.0, xs
            xs[m] = g / weight
    if seen is not None:  # ||w x_1 o ... o x_d||^2 on what is observed: what the fit explains
        weight *= math.sqrt(float(_contract(seen, [x**2 for x in xs], 0) @ xs[0] ** 2))
    return weight, xs


def _contract(small: np.ndarray, xs: list[np.ndarray], mode: int) -> np.ndarray:
    left = small
    for m in reversed(range(len(xs))):
        if m != mode:
            left = np.tensordot(left, xs[m], axes=(m, 0))
    return left


def _masked(task: Task, xs: Blocks, sweeps: int = 3) -> tuple[np.ndarray, Blocks]:
    """The same on the supports, for many points at once, through the form."""
    masks = [x != 0 for x in xs]
    sweep = task.form.sweep(xs)
    found, moved = xs, list(xs)
    weight = -task.form.value(xs)
    for _ in range(sweeps if task.untied else 3 * sweeps):
        for m, mask in enumerate(masks):
            g = np.where(mask, -sweep.partial(m), 0.0)
            if isinstance(task.sets[m], NonnegativeBall):
                g = np.maximum(g, 0.0)
            moved[m] = unit(g)
            sweep.update(m, moved[m])
        now = -task.form.value(tuple(moved))
        better = now > weight  # with tied modes a sweep may lower it
        weight = np.where(better, now, weight)
        found = tuple(
            np.where(better[:, None], new, old) for new, old in zip(moved, found, strict=True)
        )
    return weight, found
