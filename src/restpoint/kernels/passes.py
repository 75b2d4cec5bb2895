"""Passes over the rows of a matrix: which loop, over which rows and columns, on how many threads."""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Any

import numpy as np

from restpoint.kernels import groups, threads
from restpoint.kernels.base import Vectors
from restpoint.kernels.layout import Layout, Panel
from restpoint.kernels.memory import LINE, aligned, zeros

# Columns read at a time, so that the vectors stay in cache: more for one start than where several share the cache.
RANGE, RANGE_OF_MANY = 16_384, 2048
# Rows of a matrix product at a time where the panel has to be converted or made absolute.
BYTES_CONVERTED = 16_000_000


def depth(length: int) -> int:
    """The depth of a sum of ``length`` terms that is taken range by range (of the longest kind)."""
    return min(length, RANGE) + -(-length // RANGE_OF_MANY)


class Passes:
    """One read of a tensor for both groups of modes, or for one of them, in a working precision.

    ``first`` and ``second`` are the vectors of the groups, of shape (starts, size); with u and v their outer products
    and M the matrix, w = M v and s = M'u.
    """

    def __init__(self, layout: Layout, working: np.dtype) -> None:
        self.layout, self.working = layout, working

    def both(
        self, first: Vectors, second: Vectors, rows: np.ndarray, *, absolute: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """w and s over the listed rows (the others count as 0), or with |M|."""
        starts, layout = len(first[0]), self.layout
        shape = (starts, layout.columns)
        v, s = aligned(shape, shape, dtype=self.working, lead=self.layout.lead)
        u, w = groups.outer(first), np.zeros((starts, layout.rows), dtype=self.working)
        groups.outer(second, v)
        s.fill(0)
        loops = self._loops()
        loop = loops.both_absolute if absolute else loops.both
        length = _length(starts)
        for panel in layout.panels():
            parts, by_columns = self._shares(panel, rows)
            u_, w_ = _columns(u, panel), _columns(w, panel)
            ws = [w_, *(np.zeros_like(w_) if by_columns else w_ for _ in parts[1:])]
            sums = [s, *(s if by_columns else self._column_sums(starts) for _ in parts[1:])]
            threads.run(
                [
                    partial(loop, panel.matrix, *part, u_, v, own_w, own_s, length, layout.lead)
                    for part, own_w, own_s in zip(parts, ws, sums, strict=True)
                ]
            )
            for own_w, own_s in zip(ws[1:], sums[1:], strict=True):
                if by_columns:
                    w_ += own_w
                else:
                    s += own_s
            _put_back(w, w_, panel)
        return w, s

    def onto_rows(
        self,
        second: Vectors,
        rows: np.ndarray,
        ranges: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """w over the listed rows and over the columns in the ranges (begins, ends)."""
        starts, layout = len(second[0]), self.layout
        (v,) = aligned((starts, layout.columns), dtype=self.working, lead=self.layout.lead)
        groups.outer(second, v)
        w = np.zeros((starts, layout.rows), dtype=self.working)
        loop, length = self._loops().onto_rows, _length(starts)
        begins, ends = self._ranges(length) if ranges is None else ranges
        share = int(np.sum(ends - begins))
        for panel in layout.panels():
            listed = self._listed(panel, rows)
            count = threads.useful(len(listed) * share * panel.matrix.itemsize)
            w_ = _columns(w, panel)
            threads.run(
                [
                    partial(loop, panel.matrix, part, v, w_, begins, ends, length)
                    for part in _dealt(listed, count)
                ]
            )
            _put_back(w, w_, panel)
        return w

    def onto_columns(self, first: Vectors, rows: np.ndarray) -> np.ndarray:
        """s over the listed rows."""
        starts, layout = len(first[0]), self.layout
        u, s = groups.outer(first), self._column_sums(starts)
        loop, length = self._loops().onto_columns, _length(starts)
        for panel in layout.panels():
            parts, by_columns = self._shares(panel, rows)
            u_ = _columns(u, panel)
            sums = [s, *(s if by_columns else self._column_sums(starts) for _ in parts[1:])]
            threads.run(
                [
                    partial(loop, panel.matrix, *part, u_, own, length, layout.lead)
                    for part, own in zip(parts, sums, strict=True)
                ]
            )
            if not by_columns:
                for own in sums[1:]:
                    s += own
        return s

    def products(
        self, first: Vectors | None, second: Vectors | None, *, absolute: bool = False
    ) -> tuple[Any, Any]:
        """w (if ``second`` is given) and s (if ``first`` is) by matrix products: for many starts, small tensors."""
        u = None if first is None else groups.outer(first)
        v = None if second is None else groups.outer(second)
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

    def _shares(
        self, panel: Panel, rows: np.ndarray
    ) -> tuple[list[tuple[np.ndarray, int, int]], bool]:
        """What each thread reads (rows of the panel, first column, end), and whether they share out the columns.

        The longer side is dealt out, so that the sums which every thread needs for itself are short.
        """
        layout, columns = self.layout, self.layout.columns
        listed, line = self._listed(panel, rows), LINE // self.working.itemsize
        count = threads.useful(len(listed) * columns * panel.matrix.itemsize)
        if count == 1 or columns < max(len(listed), count * line):
            return [(part, 0, columns) for part in _dealt(listed, count)], False
        cuts = [columns * i // count for i in range(count + 1)]
        # Shares begin where a cache line does: threads that write to one line wait for each other.
        cuts[1:-1] = [layout.lead + (cut - layout.lead) // line * line for cut in cuts[1:-1]]
        return [(listed, *ends) for ends in itertools.pairwise(cuts)], True

    def _listed(self, panel: Panel, rows: np.ndarray) -> np.ndarray:
        """The listed rows that lie in the panel, counted from its first one."""
        if len(rows) == self.layout.rows and panel.end - panel.begin == self.layout.rows:
            return rows
        low, high = np.searchsorted(rows, (panel.begin, panel.end))
        return rows[low:high] - panel.begin

    def _ranges(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """All columns: the lead, and what follows in steps that begin a cache line."""
        step, columns = max(1, length - LINE // self.working.itemsize), self.layout.columns
        cuts = np.array([0, *range(self.layout.lead or step, columns, step), columns])
        return cuts[:-1], cuts[1:]

    def _column_sums(self, starts: int) -> np.ndarray:
        return zeros(starts, self.layout.columns, dtype=self.working, lead=self.layout.lead)

    def _loops(self) -> Any:
        return _compiled(self.layout.stored.dtype, self.working)


@cache
def _compiled(stored: np.dtype, working: np.dtype) -> Any:
    from restpoint.kernels._dense_loops import loops

    return loops(stored.name, working.name)


def _length(starts: int) -> int:
    return RANGE if starts == 1 else RANGE_OF_MANY


def _dealt(rows: np.ndarray, count: int) -> list[np.ndarray]:
    """The rows in ``count`` parts, one a thread, none of them empty."""
    return [part for part in np.array_split(rows, count) if len(part)] if count > 1 else [rows]


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
