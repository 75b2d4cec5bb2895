"""From the wish of the user to one certified component."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.array import to_host
from restpoint.certificates import Certificate, certify
from restpoint.errors import DataError
from restpoint.models.tensor_pca import rank_one, selection
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.models.tensor_pca.rank_one import Path, Pool
from restpoint.models.tensor_pca.starts import Starts
from restpoint.models.tensor_pca.task import Task
from restpoint.penalties import L1
from restpoint.problem import Blocks, Problem
from restpoint.run import Result, Status

# The grid of an automatic rho, in units of rho_max: from nearly the first nonzero solution down to little sparsity.
HIGHEST, LOWEST, GRID = 0.98, 0.1, 16
# To choose among points, they need not be solved to the end: tolerance and iterations. The best few
# are, before one is taken.
ROUGHLY, ROUGH_SWEEPS, FINISHED = 1e-3, 60, 6
# How often the rho that was chosen may be halved below the grid.
HALVINGS = 8


@dataclass(frozen=True)
class Wish:
    """What decides about sparsity: rho ("auto" or a number that multiplies the ratios), or numbers of nonzeros."""

    rho: Any = "auto"
    counts: tuple[int | None, ...] | None = None


@dataclass(frozen=True, eq=False)
class TensorPath:
    """What is known along the path: one row for each rho, one column for each solution followed.

    value, gap, certified, weights, bic : (rows, columns); bic is NaN where ||A||^2 is not known
    counts : (rows, columns, blocks), how many nonzeros
    zero_bic : of no component at all
    xs : for each block, an array (rows, columns, n)
    names, labels : of the modes, and of the entries of each
    modes : of each block, several where modes are tied
    """

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
    names: tuple[str, ...]
    labels: tuple[Any, ...]
    modes: tuple[tuple[int, ...], ...]

    def __repr__(self) -> str:
        return (
            f"TensorPath({len(self.rho)} rho from {self.rho[0]:.3g} to {self.rho[-1]:.3g}, "
            f"{self.value.shape[1]} solutions, {self.certified.mean():.0%} certified)"
        )

    @property
    def best(self) -> np.ndarray:
        """The column of least value in every row, among the certified ones where there are any."""
        sure = self.certified | ~self.certified.any(axis=1, keepdims=True)
        return np.argmin(np.where(sure & ~np.isnan(self.value), self.value, np.inf), axis=1)

    @property
    def followed(self) -> Blocks:
        """The points of these columns, one array (rows, n) for each block; signs do not change without need."""
        rows, columns = np.arange(len(self.rho)), self.best
        found = [np.array(x[rows, columns]) for x in self.xs]
        odd = [i for i, modes in enumerate(self.modes) if len(modes) % 2]
        order = np.argsort(self.rho, kind="stable")
        like = [np.arange(x.shape[1]) == np.argmax(np.abs(x[order[0]])) for x in found]
        for g in order:
            for i, x in enumerate(found):
                if [i] == odd[:1] or x[g] @ like[i] >= 0.0:
                    continue
                x[g] *= -1.0
                if i in odd:  # two signs together leave A(x) as it is
                    found[odd[0]][g] *= -1.0
            like = [x[g] for x in found]
        return tuple(found)

    def plot(self, axes: Any = None) -> np.ndarray:
        """Nonzeros, BIC (the weight, where it is unknown) and loadings of the best solution, over rho: one axes each.

        A star is at the least BIC; the dashed line is that of no component. The entries with the largest loadings are
        named where rho is smallest. Draws into the axes given, or into those of a new figure, and returns them.

        >>> from restpoint.models import SparseTensorPCA
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3])
        >>> from matplotlib.figure import Figure
        >>> axes = SparseTensorPCA().path(A, rho=[4.0, 2.0, 1.0]).plot(Figure().subplots(5))
        >>> len(axes), axes[0].get_ylabel(), axes[0].lines[0].get_ydata().tolist()
        (5, 'nonzeros', [1, 1, 1])
        """
        from restpoint.models.tensor_pca.drawing import draw_path

        return draw_path(self, axes)


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
    convergence: Convergence
    table: TensorPath | None = None
    remark: str = ""  # what the user should be told

    @classmethod
    def of(cls, one: Result, pool: Pool, rho_max: float, eps: float) -> Found:
        """The point of a single run."""
        xs = tuple(np.asarray(to_host(x)) for x in one.xs)
        rho = tuple(
            float(block.penalty.weight) if isinstance(block.penalty, L1) else 0.0
            for block in one.problem.blocks
        )
        status, iterations = one.status, int(one.iterations)
        return cls(
            xs,
            rho,
            one.problem,
            one.certificate,
            status,
            iterations,
            eps,
            one.bound,
            pool.ends,
            rho_max,
            Convergence.of(one, eps),
        )

    @property
    def empty(self) -> bool:
        """Whether the component is zero."""
        return not all(np.any(x) for x in self.xs)


def sought(
    task: Task, wish: Wish, observed: np.ndarray | None = None, least: float = 0.0
) -> Found | None:
    """The component that is wished for; None where no point with A(x) > ``least`` is found."""
    pool = rank_one.search(task)
    rho_max, pool = rank_one.ceiling(task, pool)
    if pool.scale <= least:
        return None
    if wish.counts is not None:
        from restpoint.models.tensor_pca.counted import counted

        return counted(task, pool, wish.counts, rho_max)
    if not task.penalised:
        return _best(rank_one.at_rho(task, pool, 0.0), pool, rho_max)
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
        task.names,
        task.labels,
        task.modes,
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
        return _best(path, pool, rho_max, rows)
    found: Found | None = None
    best = np.inf
    for g, k, rough in _candidates(np.where(alive, rows.bic, np.inf), path.rho):
        if found is not None and (best <= rough + _slack(rough) or task.clock.over):
            break
        one = _finished(task, pool, _found(path, (g, k), pool, rho_max, rows))
        score = np.inf if one.empty else float(_bic(task, one.xs, observed))
        if found is None or score < best:
            found, best = one, score
    assert found is not None
    return found if task.clock.over else _relieved(task, pool, found, (best, rho_max, observed))


def _relieved(task: Task, pool: Pool, found: Found, known: tuple[float, float, Any]) -> Found:
    """The same support with less shrinkage, if that can be had.

    A mode in which nothing is zero is not penalised: l1 only biases it. And where the smallest rho of the grid was
    taken, smaller ones are tried as long as BIC does not rise.
    """
    best, rho_max, observed = known
    full = [bool(np.all(x)) for x in found.xs]
    trials = 0
    if any(full) and not all(full) and any(found.rho):
        rho = tuple(0.0 if whole else r for r, whole in zip(found.rho, full, strict=True))
        found, kept = _if_no_worse(task, pool, found, rho, (best, observed))
        trials = HALVINGS if kept else 0
    elif 0.0 < max(found.rho) <= 1.01 * LOWEST * rho_max:
        trials = HALVINGS
    for _ in range(trials):
        halves = tuple(0.5 * r for r in found.rho)
        found, kept = _if_no_worse(task, pool, found, halves, (best, observed))
        if not kept or task.clock.over:
            break
    return found


def _if_no_worse(
    task: Task, pool: Pool, found: Found, rho: tuple[float, ...], known: tuple[float, Any]
) -> tuple[Found, bool]:
    best, observed = known
    other = _finished(task, pool, replace(found, rho=rho, eps=np.inf))
    if other.status is not Status.CERTIFIED or other.empty:
        return found, False
    same = all(np.array_equal(a != 0, b != 0) for a, b in zip(found.xs, other.xs, strict=True))
    if not same and _bic(task, other.xs, observed) > best + _slack(best):
        return found, False
    return other, True


def _candidates(score: np.ndarray, rho: np.ndarray) -> list[tuple[int, int, float]]:
    """Row, column and score of the best few, of equal ones (they have one support) that with the smallest rho first."""
    rows, columns = np.indices(score.shape).reshape(2, -1)
    flat = score.ravel()
    rounded = np.round((flat - flat.min()) / _slack(float(flat.min())))
    order = np.lexsort((rho[rows], rounded))[:FINISHED]
    return [(int(rows[i]), int(columns[i]), float(flat[i])) for i in order if np.isfinite(flat[i])]


def _slack(score: float) -> float:
    return 1e-9 * (1.0 + abs(score))


def _bic(task: Task, xs: Blocks, observed: np.ndarray | None) -> np.ndarray:
    rows = tuple(x[None] for x in xs)
    weights, _ = selection.refitted(task, rows, observed)
    return selection.criterion(task, weights, selection.supports(rows), task.norm2 or 0.0)[0]


def _finished(task: Task, pool: Pool, found: Found) -> Found:
    """The same solution, followed until it is certified to tol."""
    eps = task.tol * pool.scale
    if found.eps <= eps:
        return found
    one = task.run(found.rho, eps, x0=found.xs)
    convergence = Convergence.of(one, eps)
    if np.isfinite(found.eps):  # the same problem, solved roughly so far
        convergence = found.convergence.then(convergence)
    return replace(
        found,
        xs=tuple(np.asarray(to_host(x)) for x in one.xs),
        problem=one.problem,
        certificate=one.certificate,
        status=one.status,
        iterations=found.iterations + int(one.iterations),
        eps=eps,
        bound=one.bound,
        convergence=convergence,
    )


def _at(task: Task, pool: Pool, rho: float, rho_max: float) -> Found:
    """The best certified solution at one rho: zero where nothing better is known."""
    found = _best(rank_one.at_rho(task, pool, rho), pool, rho_max)
    if rho > 0.0 and (found.empty or float(found.certificate.value) > 0.0):
        zero = tuple(np.zeros_like(x) for x in found.xs)
        if all(bool(np.all(s.inside(x))) for s, x in zip(task.sets, zero, strict=True)):
            remark = (
                f"rho = {rho:.6g} leaves only the zero component (certified); the largest rho at which a better point "
                f"is known is rho_max_ = {rho_max:.6g}: choose a smaller rho"
            )
            found = at_point(found, zero)
            still = Convergence.at(found.certificate, found.eps)
            return replace(found, convergence=still, remark=remark)
    return found


def at_point(found: Found, xs: Blocks) -> Found:
    """The same problem's certificate at another point; nothing is evaluated where it is the same point."""
    if all(np.array_equal(a, b) for a, b in zip(xs, found.xs, strict=True)):
        return found
    certificate = certify(found.problem, xs)
    holds = bool(np.all(certificate.holds(np.asarray(found.eps))))
    status = (
        Status.CERTIFIED
        if holds
        else (Status.STALLED if found.status is Status.CERTIFIED else found.status)
    )
    return replace(found, xs=xs, certificate=certificate, status=status)


def _best(path: Path, pool: Pool, rho_max: float, rows: TensorPath | None = None) -> Found:
    """The certified point of least value, in the last row of the path."""
    result = path.result
    value = result.value.reshape(-1)
    certified = result.certified.reshape(-1)
    score = np.where(certified, value, np.inf) if certified.any() else result.gap.reshape(-1)
    flat = int(np.argmin(np.where(np.isnan(score), np.inf, score)))
    width = result.value.shape[-1]
    return _found(path, (flat // width, flat % width), pool, rho_max, rows)


def _found(
    path: Path, place: tuple[int, int], pool: Pool, rho_max: float, rows: TensorPath | None
) -> Found:
    """The component at one place (row, column) of a path."""
    (g, k), width = place, path.result.value.shape[-1]
    one = Found.of(path.result._at(g * width + k), pool, rho_max, path.eps)
    rho = tuple(float(path.rho[g]) * r for r in path.ratios)
    return replace(one, rho=rho, iterations=int(np.sum(path.result.iterations)), table=rows)
