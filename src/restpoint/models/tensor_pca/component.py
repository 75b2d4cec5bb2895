"""From the wish of the user to one certified component."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.certificates import Certificate
from restpoint.errors import DataError
from restpoint.models.tensor_pca import rank_one, selection
from restpoint.models.tensor_pca.rank_one import Path, Pool
from restpoint.models.tensor_pca.starts import Starts, unit
from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks, Problem
from restpoint.run import Status

# The grid of an automatic rho, in units of rho_max: from nearly the first nonzero solution down to little sparsity.
HIGHEST, LOWEST, GRID = 0.98, 0.1, 16
# To choose among points, they need not be solved to the end: tolerance and iterations. The one that is taken is.
ROUGHLY, ROUGH_SWEEPS = 1e-3, 60
# Attempts at a number of nonzeros.
ATTEMPTS = 12


@dataclass(frozen=True)
class Wish:
    """What decides about sparsity: rho ("auto" or a number that multiplies the ratios), or numbers of nonzeros."""

    rho: Any = "auto"
    counts: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class TensorPath:
    """What is known along the path: one row for each rho, one column for each solution followed."""

    rho: np.ndarray
    value: np.ndarray
    gap: np.ndarray
    certified: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    bic: np.ndarray
    zero_bic: float
    xs: Blocks
    certificate: Certificate


@dataclass(frozen=True)
class Found:
    """One component: the point, the problem that it solves, and what is proved."""

    xs: Blocks
    rho: tuple[float, ...]
    problem: Problem
    certificate: Certificate
    status: Status
    iterations: int
    eps: float
    bound: Any
    ends: Starts
    rho_max: float
    table: TensorPath | None = None

    @property
    def empty(self) -> bool:
        """Whether the component is zero."""
        return not all(np.any(x) for x in self.xs)


def sought(task: Task, wish: Wish, observed: np.ndarray | None = None) -> Found:
    """The component that is wished for."""
    pool = rank_one.search(task)
    rho_max, pool = rank_one.ceiling(task, pool)
    if pool.scale <= 0.0:
        raise DataError(
            "X has no component: no point with A(x) > 0 was found on these sets (is X zero, or negative where the sets "
            "ask for nonnegative vectors?)"
        )
    if wish.counts is not None:
        return _counted(task, pool, wish.counts, rho_max)
    if not task.penalised:
        return _best(task, rank_one.at_rho(task, pool, 0.0), pool, rho_max)
    if wish.rho == "auto":
        return _selected(task, pool, rho_max, observed)
    return _at(task, pool, float(wish.rho), rho_max)


def table(
    task: Task, path: Path, observed: np.ndarray | None = None, norm2: float | None = None
) -> TensorPath:
    """The columns of a path, with BIC where ||A||^2 is known."""
    result = path.result
    shape = result.value.shape if result.value.ndim == 2 else (1, *result.value.shape)
    xs = rank_one._rows(result)
    counts = selection.supports(xs)
    norm2 = task.norm2 if norm2 is None else norm2
    weights, _ = selection.refitted(task, xs, observed)
    if norm2 is None:
        bic, zero = np.full(len(weights), np.nan), float("nan")
    else:
        bic = selection.criterion(task, weights, counts, norm2)
        none = np.zeros((1, counts.shape[1]), dtype=int)
        zero = float(selection.criterion(task, np.zeros(1), none, norm2)[0])
    return TensorPath(
        path.rho,
        result.value.reshape(shape),
        result.gap.reshape(shape),
        result.certified.reshape(shape),
        counts.reshape(*shape, -1),
        weights.reshape(shape),
        bic.reshape(shape),
        zero,
        tuple(x.reshape(*shape, -1) for x in xs),
        result.certificate.reshape(shape),
    )


def grid_of(rho_max: float, count: int = GRID) -> np.ndarray:
    """Falling geometrically, and 0 at the end."""
    return np.append(rho_max * np.geomspace(HIGHEST, LOWEST, count), 0.0)


def _selected(task: Task, pool: Pool, rho_max: float, observed: np.ndarray | None) -> Found:
    """The path's point of least BIC; of equal ones, which have the same support, that with the smallest rho."""
    if task.norm2 is None:
        raise DataError(
            'rho="auto" needs ||X||, which is too expensive for a moment tensor of this size; give rho or n_nonzero '
            "(path() shows what every rho leads to)"
        )
    tol = max(task.tol, ROUGHLY)
    path = rank_one.path(task, pool, grid_of(rho_max), tol, ROUGH_SWEEPS)
    rows = table(task, path, observed)
    alive = rows.counts.min(axis=-1) > 0
    if not alive.any():
        return _best(task, path, pool, rho_max, rows)
    score = np.where(alive, rows.bic, np.inf)
    least = float(score.min())
    ties = score <= least + 1e-9 * abs(least)
    g = int(np.flatnonzero(ties.any(axis=1))[-1])  # the grid falls
    k = int(np.flatnonzero(ties[g])[0])
    return _finished(task, pool, _found(task, path, g, k, pool, rho_max, rows))


def _finished(task: Task, pool: Pool, found: Found) -> Found:
    """The same solution, followed until it is certified to tol."""
    eps = task.tol * pool.scale
    if found.eps <= eps:
        return found
    one = task.run(found.rho, eps, x0=found.xs)
    return replace(
        found,
        xs=tuple(np.asarray(x) for x in one.xs),
        certificate=one.certificate,
        status=one.status,
        iterations=found.iterations + int(one.iterations),
        eps=eps,
        bound=one.bound,
    )


def _at(task: Task, pool: Pool, rho: float, rho_max: float) -> Found:
    """The best certified solution at one rho: zero where nothing better is known."""
    found = _best(task, rank_one.at_rho(task, pool, rho), pool, rho_max)
    if rho > 0.0 and (found.empty or float(found.certificate.value) > 0.0):
        zero = tuple(np.zeros_like(x) for x in found.xs)
        if all(bool(np.all(s.inside(x))) for s, x in zip(task.sets, zero, strict=True)):
            warnings.warn(
                f"rho = {rho:.6g} leaves only the zero component (certified); the largest rho at which a better point "
                f"is known is rho_max_ = {rho_max:.6g}: choose a smaller rho",
                UserWarning,
                stacklevel=2,
            )
            return from_point(task, found, zero)
    return found


def from_point(task: Task, found: Found, xs: Blocks) -> Found:
    """The same problem's certificate at another point."""
    from restpoint.certificates import certify

    certificate = certify(found.problem, xs)
    holds = bool(np.all(certificate.holds(np.asarray(found.eps))))
    status = (
        Status.CERTIFIED
        if holds
        else (Status.STALLED if found.status is Status.CERTIFIED else found.status)
    )
    return replace(found, xs=xs, certificate=certificate, status=status)


def _best(
    task: Task, path: Path, pool: Pool, rho_max: float, rows: TensorPath | None = None
) -> Found:
    """The certified point of least value, in the last row of the path."""
    result = path.result
    value = result.value.reshape(-1)
    certified = result.certified.reshape(-1)
    score = np.where(certified, value, np.inf) if certified.any() else result.gap.reshape(-1)
    flat = int(np.argmin(np.where(np.isnan(score), np.inf, score)))
    width = result.value.shape[-1]
    return _found(task, path, flat // width, flat % width, pool, rho_max, rows)


def _found(
    task: Task, path: Path, g: int, k: int, pool: Pool, rho_max: float, rows: TensorPath | None
) -> Found:
    width = path.result.value.shape[-1]
    one = path.result._at(g * width + k)
    rho = float(path.rho[g])
    free = task._free
    return Found(
        tuple(np.asarray(x) for x in one.xs),
        tuple(rho * r for r in free),
        one.problem,
        one.certificate,
        one.status,
        int(np.sum(path.result.iterations)),
        path.eps,
        one.bound,
        pool.ends,
        rho_max,
        rows,
    )


def _counted(task: Task, pool: Pool, counts: tuple[int | None, ...], rho_max: float) -> Found:
    """Certified solutions with k_i nonzeros in block i: rho_i between the k_i-th and the next of |A(x without i)|.

    The points of the pool are first swept with this rule until their supports stay; then the problem with these rho_i,
    fixed, is solved from there and certified, and the rho_i are corrected where a count differs.
    """
    xs = rank_one.followed(task, pool)
    for _ in range(20):
        for i, k in enumerate(counts):
            g = -task.form.partial(xs, i)
            level = _level(g, k)[:, None]
            shrunk = np.sign(g) * np.maximum(np.abs(g) - level, 0.0)
            xs = (*xs[:i], unit(shrunk), *xs[i + 1 :])
    best: tuple[tuple[float, float], Found] | None = None
    eps = task.tol * pool.scale
    for row in range(len(xs[0])):
        x = tuple(b[row] for b in xs)
        for _ in range(ATTEMPTS):
            g = task.form.partial
            rho = tuple(float(_level(-g(x, i)[None], k)[0]) for i, k in enumerate(counts))
            result = task.run(rho, eps, x0=x)
            one = result.best()
            x = tuple(np.asarray(b) for b in one.xs)
            found = Found(
                x, rho, one.problem, one.certificate, one.status, int(one.iterations), eps, one.bound,
                pool.ends, rho_max,
            )  # fmt: skip
            missed = _missed(x, counts)
            weight = 0.0 if found.empty else float(-task.form.value(tuple(unit(b) for b in x)))
            score = (float(missed), -weight)
            if best is None or score < best[0]:
                best = (score, found)
            if missed == 0 or found.empty or task.clock.over:
                break
    assert best is not None
    if best[0][0] > 0:
        got = [int(np.count_nonzero(x)) for x in best[1].xs]
        warnings.warn(
            f"n_nonzero = {list(counts)} was not reached exactly: the certified component nearest to it has {got} "
            "nonzeros (counts between may belong to no stationary point)",
            UserWarning,
            stacklevel=2,
        )
    return best[1]


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
