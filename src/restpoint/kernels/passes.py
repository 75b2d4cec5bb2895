"""Passes over the rows of a matrix: which loop, over which rows and columns, on how many threads."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from restpoint.kernels import threads
from restpoint.kernels.layout import Layout, Panel

# Columns read at a time, so that the vectors stay in cache: more for one start than where several share the cache.
RANGE, RANGE_OF_MANY = 16_384, 2048
# Rows of a matrix product at a time where the panel has to be converted or made absolute.
BYTES_CONVERTED = 16_000_000


def depth(length: int) -> int:
    """The depth of a sum of ``length`` terms that is taken range by range (of the longest kind)."""
    return min(length, RANGE) + -(-length // RANGE_OF_MANY)


class Passes:
    """One read of a tensor for both groups of modes, or for one of them, in a working precision.

    ``u`` and ``v``, of shape (starts, rows) and (starts, columns), are the outer products of the groups' vectors.
    """

    def __init__(self, layout: Layout, working: np.dtype) -> None:
        self.layout, self.working = layout, working

    @property
    def all(self) -> np.ndarray:
        """The list of all rows."""
        return np.arange(self.layout.rows)

    def both(
        self, u: np.ndarray, v: np.ndarray, rows: np.ndarray, *, absolute: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """w = M v and s = M'u over the listed rows (the others count as 0), or with |M|."""
        w, s = self._zeros(u), self._zeros(v)
        loops = self._loops()
        loop = loops.both_absolute if absolute else loops.both
        length = _length(u)
        for panel in self.layout.panels():
            parts = self._parts(panel, rows, v.shape[1])
            u_, w_ = _columns(u, panel), _columns(w, panel)
            sums = [s, *(np.zeros_like(s) for _ in parts[1:])]
            threads.run(
                [
                    partial(loop, panel.matrix, part, u_, v, w_, own, length)
                    for part, own in zip(parts, sums, strict=True)
                ]
            )
            for own in sums[1:]:
                s += own
            _put_back(w, w_, panel)
        return w, s

    def onto_rows(
        self, v: np.ndarray, rows: np.ndarray, ranges: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """w = M v over the listed rows and over the columns in the ranges (begins, ends)."""
        w = np.zeros((v.shape[0], self.layout.rows), dtype=self.working)
        loop, length = self._loops().onto_rows, _length(v)
        begins, ends = self._ranges(length) if ranges is None else ranges
        share = int(np.sum(ends - begins))
        for panel in self.layout.panels():
            parts = self._parts(panel, rows, share)
            w_ = _columns(w, panel)
            threads.run(
                [partial(loop, panel.matrix, part, v, w_, begins, ends, length) for part in parts]
            )
            _put_back(w, w_, panel)
        return w

    def onto_columns(self, u: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """s = M'u over the listed rows."""
        s = np.zeros((u.shape[0], self.layout.columns), dtype=self.working)
        loop, length = self._loops().onto_columns, _length(u)
        for panel in self.layout.panels():
            parts = self._parts(panel, rows, self.layout.columns)
            u_ = _columns(u, panel)
            sums = [s, *(np.zeros_like(s) for _ in parts[1:])]
            threads.run(
                [
                    partial(loop, panel.matrix, part, u_, own, length)
                    for part, own in zip(parts, sums, strict=True)
                ]
            )
            for own in sums[1:]:
                s += own
        return s

    def products(
        self, u: np.ndarray | None, v: np.ndarray | None, *, absolute: bool = False
    ) -> tuple[Any, Any]:
        """w (if v is given) and s (if u is) by matrix products: for many starts, and for small tensors."""
        w = None if v is None else np.empty((v.shape[0], self.layout.rows), dtype=self.working)
        s: np.ndarray | float = 0.0
        for panel in self.layout.panels():
            for begin, end, rows in self._converted(panel, absolute):
                if u is not None:
                    s = s + u[:, begin:end] @ rows
                if w is not None and v is not None:
                    w[:, begin:end] = _product(v, rows)
        return w, s

    def _converted(self, panel: Panel, absolute: bool) -> Any:
        """Rows in the working precision, made absolute if asked: a view of them all where nothing has to change."""
        if panel.matrix.dtype == self.working and not absolute:
            yield panel.begin, panel.end, panel.matrix
            return
        step = max(1, BYTES_CONVERTED // (self.working.itemsize * self.layout.columns))
        for i in range(0, len(panel.matrix), step):
            rows = panel.matrix[i : i + step].astype(self.working)
            if absolute:
                np.abs(rows, out=rows)
            yield panel.begin + i, panel.begin + i + len(rows), rows

    def _parts(self, panel: Panel, rows: np.ndarray, columns: int) -> list[np.ndarray]:
        """The listed rows that lie in the panel, counted from its first one, dealt out to threads."""
        if len(rows) != self.layout.rows or panel.begin or panel.end != self.layout.rows:
            low, high = np.searchsorted(rows, (panel.begin, panel.end))
            rows = rows[low:high] - panel.begin
        size = len(rows) * columns * panel.matrix.itemsize
        parts = np.array_split(rows, threads.useful(size))
        return [part for part in parts if len(part)] or [rows]

    def _ranges(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        begins = np.arange(0, self.layout.columns, length)
        return begins, np.minimum(begins + length, self.layout.columns)

    def _zeros(self, like: np.ndarray) -> np.ndarray:
        return np.zeros(like.shape, dtype=self.working)

    def _loops(self) -> Any:
        from restpoint.kernels._dense_loops import loops

        return loops(self.layout.stored.dtype.name, self.working.name)


def _length(starts: np.ndarray) -> int:
    return RANGE if len(starts) == 1 else RANGE_OF_MANY


def _product(v: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """v rows', the sums taken range by range."""
    total = v[:, :RANGE] @ rows[:, :RANGE].T
    for left in range(RANGE, rows.shape[1], RANGE):
        total += v[:, left : left + RANGE] @ rows[:, left : left + RANGE].T
    return total


def _columns(table: np.ndarray, panel: Panel) -> np.ndarray:
    """The entries of the panel's rows, contiguous: a view where the panel is the whole matrix."""
    return np.ascontiguousarray(table[:, panel.begin : panel.end])


def _put_back(table: np.ndarray, part: np.ndarray, panel: Panel) -> None:
    if not np.shares_memory(table, part):
        table[:, panel.begin : panel.end] = part
