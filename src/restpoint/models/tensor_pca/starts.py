"""Where runs begin, and which of their ends are the same solution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.errors import DataError, ShapeError, described
from restpoint.models.tensor_pca.conventions import may_turn
from restpoint.models.tensor_pca.task import Task
from restpoint.problem import Blocks

# Two solutions are one where the cosines of all their blocks exceed this.
SAME = 0.99


@dataclass(frozen=True)
class Solution:
    """One of the distinct solutions that starts led to.

    value     Phi; gap: its certified bound, ``inf`` where the start was given up before it had one
    count     how many starts ended there
    """

    value: float
    gap: float
    count: int


@dataclass(frozen=True)
class Starts:
    """The distinct solutions of one component, best first, and how likely it is that a start would find another one.

    ``unseen`` is the Good-Turing estimate (solutions seen once) / starts of the chance that one more start ends at a
    solution not seen so far; a better one is at most as likely.
    """

    solutions: tuple[Solution, ...]
    starts: int

    @property
    def unseen(self) -> float:
        return sum(s.count == 1 for s in self.solutions) / max(1, self.starts)

    def __len__(self) -> int:
        return len(self.solutions)

    def plot(self, axes: Any = None) -> np.ndarray:
        """Draw them, as ``SparseTensorPCA.plot_starts`` does: the two axes.

        >>> from matplotlib.figure import Figure
        >>> starts = Starts((Solution(-2.0, 1e-9, 4), Solution(-1.0, 0.1, 1)), 5)
        >>> [axis.get_xlabel() for axis in starts.plot(Figure().subplots(1, 2))]
        ['value', 'starts that ended there']
        """
        from restpoint.models.tensor_pca.drawing import draw_starts

        return draw_starts(self, axes)

    def __str__(self) -> str:
        lines = [
            f"{self.starts} starts, {len(self)} distinct ends; chance of an unseen one {self.unseen:.0%}"
        ]
        lines += [
            f"  value {s.value:.6g}  gap {s.gap:.1e}  {s.count} times" for s in self.solutions[:10]
        ]
        return "\n".join(lines)


def given(init: Any, task: Task) -> Blocks | None:
    """The starting points that ``init`` asks for beside the screened ones; None for random ones."""
    if isinstance(init, str):
        if init == "random":
            return None
        if init == "svd":
            return singular_vectors(task)
        raise DataError(f'init must be "random", "svd" or arrays, one a mode, got {init!r}')
    if not isinstance(init, (tuple, list)) or len(init) != len(task.modes):
        raise DataError(
            f'init must be "random", "svd" or a list of {len(task.modes)} arrays, one a block, got {described(init)}'
        )
    arrays = []
    for i, (value, n) in enumerate(zip(init, task.sizes, strict=True)):
        try:
            x = np.atleast_2d(np.asarray(value, dtype=np.float64))
        except (TypeError, ValueError):
            x = np.full((1, n), np.nan)
        if x.shape[-1] != n or x.ndim != 2 or not np.isfinite(x).all():
            raise ShapeError(
                f"init[{i}] has shape {np.shape(value)}; expected finite numbers of shape ({n},) or (starts, {n})"
            )
        arrays.append(unit(x))
    if len({len(x) for x in arrays}) > 1:
        raise ShapeError(
            "the arrays of init hold different numbers of starts; give all of them the same"
        )
    return tuple(arrays)


def singular_vectors(task: Task) -> Blocks:
    """Leading left singular vectors of the unfoldings, the k-th ones of all modes together as start k."""
    tensor = None if task.entries is None else task.entries.tensor
    if tensor is None:
        raise DataError('init="svd" needs a dense array; use init="random" or give arrays')
    count = min(task.starts, *task.sizes)
    blocks = []
    for own in task.modes:
        axis, side = own[0], tensor.shape[own[0]]
        gram = np.zeros((side, side))
        other = 0 if axis else 1
        step = max(1, 2_000_000 // max(1, tensor.size // tensor.shape[other]))
        for begin in range(0, tensor.shape[other], step):
            piece = tensor[(slice(None),) * other + (slice(begin, begin + step),)]
            M = np.moveaxis(piece, axis, 0).reshape(side, -1).astype(np.float64, copy=False)
            gram += M @ M.T
        blocks.append(np.linalg.eigh(gram)[1][:, ::-1][:, :count].T.copy())
    return signed(tuple(blocks), task)


def signed(xs: Blocks, task: Task) -> Blocks:
    """The first block that may turn turned so that A(xs) >= 0."""
    turns = may_turn(task.sets, task.fixed, task.untied)
    if True not in turns:
        return xs
    i = turns.index(True)
    turn = np.where(task.form.value(xs) > 0, -1.0, 1.0)[:, None]
    return (*xs[:i], xs[i] * turn, *xs[i + 1 :])


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of length 1; zero rows stay."""
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(size > 0, size, 1.0)


def distinct(xs: Blocks, order: np.ndarray, same: float = SAME) -> tuple[np.ndarray, np.ndarray]:
    """The first of each group of equal solutions, in ``order``, and the group of every point.

    Equal are two points whose blocks have cosines above ``same`` in modulus; zero equals zero.
    """
    alike = np.ones((len(order), len(order)), dtype=bool)
    for x in xs:
        u = unit(x)
        none = np.all(u == 0.0, axis=1)
        alike &= (np.abs(u @ u.T) > same) | np.logical_and.outer(none, none)
    group = np.full(len(order), -1)
    leaders: list[int] = []
    for i in order:
        if group[i] >= 0:
            continue
        members = alike[i] & (group < 0)
        members[i] = True
        group[members] = len(leaders)
        leaders.append(int(i))
    return np.asarray(leaders, dtype=np.int64), group


def summarised(value: np.ndarray, gap: np.ndarray, xs: Blocks) -> Starts:
    """The distinct ends of runs, best first."""
    order = np.argsort(value, kind="stable")
    leaders, group = distinct(xs, order)
    found = [
        Solution(float(value[i]), float(gap[i]), int(np.sum(group == g)))
        for g, i in enumerate(leaders)
    ]
    return Starts(tuple(found), math.prod(value.shape))
