"""One component: explore, find the largest useful rho, follow the path, certify."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from restpoint.array import to_host
from restpoint.models.tensor_pca import screening
from restpoint.models.tensor_pca import starts as starting
from restpoint.models.tensor_pca.starts import Starts
from restpoint.models.tensor_pca.task import RETIRE, Task
from restpoint.problem import Blocks
from restpoint.run import Relative, Result

# Solutions that are followed along the path, and the share of the best one's gain that others need for that.
FOLLOWED, COMPETITIVE = 3, 0.6
# Exploration: multiplications spent on random starts at rho = 0, and their iterations at least and at most.
EXPLORED, FEWEST, MOST = 1e9, 6, 300
# Of the ends of random starts and of those grown from strong entries, so many are compared.
COMPARED = 6
# In noise of size sigma, a threshold of 2 sigma lets 5 % of the entries pass.
SIGMAS = 2.0


@dataclass(frozen=True)
class Pool:
    """Promising points: blocks of unit rows, best first; ``rho`` is where they were compared.

    ``scale`` is the largest A(x) seen, in which tolerances are measured; ``ends`` tells where starts led to.
    """

    xs: Blocks
    rho: float
    scale: float
    ends: Starts


@dataclass(frozen=True)
class Path:
    """Certified solutions over a grid of rho: one row for each rho, one column for each solution followed."""

    rho: np.ndarray
    ratios: tuple[float, ...]
    result: Result
    eps: float


def search(task: Task) -> Pool:
    """Random starts at rho = 0 and starts grown from the strongest entries, compared at one rho.

    Both kinds are followed for a limited number of sweeps and the best distinct ends are kept; nothing is claimed of
    them. rho = 2 sigma, sigma^2 = ||A||^2 / N, or half of the largest rho known to be useful, if that is less.
    """
    work = task.work * task.starts
    iterations = int(np.clip(EXPLORED / work, FEWEST, MOST))
    x0 = starting.given(task.init, task)
    known = {"x0": x0} if x0 is not None else {"starts": task.starts}
    first = task.run(0.0, Relative(task.tol), iterations=iterations, retire=RETIRE, **known)
    xs = _rows(first)
    value = first.value.reshape(-1)
    order = np.argsort(value, kind="stable")
    leaders, _ = starting.distinct(xs, order)
    kept = tuple(x[leaders[: task.starts]] for x in xs)
    ends = starting.summarised(value, first.gap.reshape(-1), xs)
    sigma = math.sqrt(task.norm2 / task.count) if task.norm2 else 0.0
    grown = None if task.clock.over else screening.screened(task, SIGMAS * sigma)
    if grown is not None:
        few = COMPARED if task.work * COMPARED <= EXPLORED / 50 else COMPARED // 2
        kept = tuple(
            np.concatenate((k[:few], g[:COMPARED])) for k, g in zip(kept, grown, strict=True)
        )
    kept = starting.signed(task.problem(0.0).project(kept), task)
    kept = tuple(np.array(x) for x in kept)
    rho = _largest_ratio(task, kept)[0] * 0.5
    rho = min(rho, SIGMAS * sigma) if sigma else rho
    if task.penalised and rho > 0 and not task.clock.over:
        iterations = int(np.clip(EXPLORED / (task.work * len(kept[0])), 6, 50))
        second = task.run(rho, Relative(task.tol), x0=kept, iterations=iterations, retire=RETIRE)
        moved = _rows(second)
        dense = tuple(x[: min(len(kept[0]), 1)] for x in kept)
        xs = tuple(np.concatenate(pair) for pair in zip(moved, dense, strict=True))
    else:
        rho, xs = 0.0, kept
    return _pool(task, xs, rho, ends)


def _pool(task: Task, xs: Blocks, rho: float, ends: Starts) -> Pool:
    alive = np.flatnonzero(np.all([np.any(x != 0, axis=1) for x in xs], axis=0))
    if not len(alive):
        return Pool(tuple(x[:0] for x in xs), rho, 0.0, ends)
    xs = tuple(x[alive] for x in xs)
    gain = task.gain(xs)
    order = np.argsort(rho * task.weighted(xs) - gain, kind="stable")
    leaders, _ = starting.distinct(xs, order)
    return Pool(tuple(x[leaders] for x in xs), rho, float(np.max(gain)), ends)


def ceiling(task: Task, pool: Pool) -> tuple[float, Pool]:
    """rho_max: the largest rho at which a point better than zero is known, and the pool with that point in it.

    With S(x) = sum_i r_i ||x_i||_1, Phi(x) = rho S(x) - A(x) < 0 exactly where rho < A(x)/S(x). This ratio is raised
    as Dinkelbach does: a descent at rho = ratio from the point that attains it ends at a Phi <= 0, hence at a ratio at
    least as large, until it gains no more. (Within the unit balls nothing is lost by looking at spheres only: along a
    ray, A is of degree d and S of degree 1, so that Phi is concave there and least at an end.)
    """
    if not task.penalised or not len(pool.xs[0]):
        return 0.0, pool
    xs = pool.xs
    if task.entries is not None and task.untied:
        axes = screening.axes(task.entries.strongest(1), task)
        if axes is not None:
            axes = task.problem(0.0).project(axes)
            xs = tuple(np.concatenate(pair) for pair in zip(xs, axes, strict=True))
    ratio, best = _largest_ratio(task, xs)
    for _ in range(20):
        if task.clock.over or ratio <= 0.0:
            break
        start = tuple(x[best] for x in xs)
        result = task.run(ratio, 1e-3 * ratio, x0=start, iterations=20)
        moved = _rows(result)
        found, places = _largest_ratio(task, moved)
        if not found > ratio * (1.0 + 1e-6):
            break
        ratio, best, xs = found, places, moved
    top = tuple(np.concatenate((p, x[best[:1]])) for p, x in zip(pool.xs, xs, strict=True))
    return max(0.0, ratio), _pool(task, top, pool.rho, pool.ends)


def _largest_ratio(task: Task, xs: Blocks) -> tuple[float, np.ndarray]:
    """max A(x)/S(x) and the rows of the two largest."""
    size = task.weighted(xs)
    ratio = np.where(size > 0, task.gain(xs) / np.where(size > 0, size, 1.0), -np.inf)
    order = np.argsort(-ratio, kind="stable")[:2]
    return float(ratio[order[0]]), order


def followed(task: Task, pool: Pool) -> Blocks:
    """The points that a path starts from: the best of the pool and its serious competitors."""
    gain = task.gain(pool.xs) - pool.rho * task.weighted(pool.xs)
    serious = np.flatnonzero(gain >= COMPETITIVE * gain[0])[:FOLLOWED]
    return tuple(x[serious] for x in pool.xs)


def path(
    task: Task, pool: Pool, grid: np.ndarray, tol: float | None = None, iterations: int = 2000
) -> Path:
    """All rho of the grid times the points followed, in one batched solve, certified to tol times the best A(x)."""
    xs = followed(task, pool)
    x0 = tuple(np.broadcast_to(x, (len(grid), *x.shape)).copy() for x in xs)
    eps = (task.tol if tol is None else tol) * pool.scale
    several = task.penalised and bool(np.any(grid))
    if several:
        result = task.run(grid, eps, x0=x0, iterations=iterations, retire=RETIRE)
    else:
        result = task.run(0.0, eps, x0=xs, iterations=iterations, retire=RETIRE)
    return Path(grid if several else np.zeros(1), task.free, result, eps)


def at_rho(task: Task, pool: Pool, rho: float) -> Path:
    """The solution at one rho, from every point of the pool, the most promising ones followed to the end."""
    xs = tuple(x[: max(FOLLOWED, task.starts)] for x in pool.xs)
    eps = task.tol * pool.scale
    x0 = tuple(x[None] for x in xs)
    result = task.run(np.array([rho]), eps, x0=x0, retire=RETIRE) if task.penalised else None
    result = result or task.run(0.0, eps, x0=xs, retire=RETIRE)
    return Path(np.array([rho]), task.free, result, eps)


def _rows(result: Result) -> Blocks:
    """The points of a result on one axis, of length 1 where the set allows it."""
    shapes = result.problem.shapes
    return tuple(
        np.asarray(to_host(x)).reshape(-1, *shape)
        for x, shape in zip(result.xs, shapes, strict=True)
    )
