"""A component with a given number of nonzeros in each mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from restpoint.array import to_host
from restpoint.models.tensor_pca import screening
from restpoint.models.tensor_pca.component import Found
from restpoint.models.tensor_pca.rank_one import FOLLOWED, Pool
from restpoint.models.tensor_pca.starts import distinct, unit
from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks
from restpoint.sets import NonnegativeBall

# Sweeps of truncation, and attempts at a count for each point.
SWEEPS, ATTEMPTS = 20, 12

Counts = tuple[int | None, ...]


def counted(task: Task, pool: Pool, counts: Counts, rho_max: float) -> Found:
    """A certified solution with k_i nonzeros in block i: rho_i between the k_i-th and the next of |A(x without i)|.

    The points of the pool are first swept with this rule; from the best few of them the problem with the rho_i that
    they arrive at is solved and certified, and the rho_i are corrected where a count differs. Such a rho_i may exceed
    ``rho_max``: the component is stationary all the same, if not better than zero.
    """
    xs, eps = _truncated(task, pool, counts), task.tol * pool.scale
    best: tuple[tuple[int, float], Found] | None = None
    sweeps = SWEEPS
    for row in range(len(xs[0])):
        x = tuple(b[row] for b in xs)
        for _ in range(ATTEMPTS):
            one = task.run(_levels(task, x, counts), eps, x0=x)
            x = tuple(np.asarray(to_host(b)) for b in one.xs)
            found = Found.of(one, pool, rho_max, eps)
            sweeps += found.iterations
            missed = _missed(x, counts)
            weight = 0.0 if found.empty else float(-task.form.value(tuple(unit(b) for b in x)))
            if best is None or (missed, -weight) < best[0]:
                best = ((missed, -weight), found)
            if missed == 0 or found.empty or task.clock.over:
                break
    assert best is not None
    (missed, _), found = best
    remark = ""
    if missed:
        got = [int(np.count_nonzero(x)) for x in found.xs]
        remark = (
            f"n_nonzero = {list(counts)} was not reached exactly: the certified component nearest to it has {got} "
            "nonzeros (counts between may belong to no stationary point)"
        )
    return replace(found, iterations=sweeps, remark=remark)


def _truncated(task: Task, pool: Pool, counts: Counts) -> Blocks:
    """Sweeps of x_i <- soft(A(x without i), its level) / norm from the pool and the strongest entry; the best ends."""
    xs = pool.xs
    if task.entries is not None and task.untied:
        axes = screening.axes(task.entries.strongest(1), task)
        if axes is not None:
            axes = task.problem(0.0).project(axes)
            xs = tuple(np.concatenate(pair) for pair in zip(xs, axes, strict=True))
    sweep = task.form.sweep(xs)
    for _ in range(SWEEPS):
        for i, k in enumerate(counts):
            g = _signed(task, i, -sweep.partial(i))
            level = _level(g, k)[:, None]
            x = unit(np.sign(g) * np.maximum(np.abs(g) - level, 0.0))
            xs = (*xs[:i], x, *xs[i + 1 :])
            sweep.update(i, x)
    order = np.argsort(-task.gain(xs), kind="stable")
    leaders, _ = distinct(xs, order)
    return tuple(x[leaders[:FOLLOWED]] for x in xs)


def _signed(task: Task, i: int, g: np.ndarray) -> np.ndarray:
    """What of A(x without i) can pull x_i away from zero."""
    return np.maximum(g, 0.0) if isinstance(task.sets[i], NonnegativeBall) else g


def _levels(task: Task, x: Blocks, counts: Counts) -> tuple[float, ...]:
    gradient = task.form.gradient(x)
    return tuple(
        float(_level(_signed(task, i, -g)[None], k)[0])
        for i, (g, k) in enumerate(zip(gradient, counts, strict=True))
    )


def _missed(xs: Blocks, counts: tuple[int | None, ...]) -> int:
    """How far the nonzeros are from what was wished; too many count more than too few."""
    off = 0
    for x, k in zip(xs, counts, strict=True):
        if k is not None:
            more = int(np.count_nonzero(x)) - min(k, x.size)
            off += 1000 * more if more > 0 else -more
    return off


def _level(g: np.ndarray, k: int | None) -> np.ndarray:
    """Between the k-th and the (k+1)-th largest modulus of every row; 0 where all may stay."""
    n = g.shape[1]
    if k is None or k >= n:
        return np.zeros(len(g))
    sizes = np.sort(np.abs(g), axis=1)[:, ::-1]
    # Nearer to the lower one: less is taken off, and both sides keep a margin.
    return 0.25 * sizes[:, k - 1] + 0.75 * sizes[:, k]
