"""How an array of any strides is read: as a matrix, panel by panel, without a copy of the whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from restpoint.kernels import groups
from restpoint.kernels.base import Vectors
from restpoint.kernels.memory import lead

# What has gaps between its entries is copied piece by piece, into pieces of about this many bytes.
PIECE = 16_000_000


class Panel(NamedTuple):
    """Rows ``begin`` to ``end`` of the matrix, contiguous."""

    begin: int
    end: int
    matrix: np.ndarray


class Layout:
    """A tensor with its modes in the order of its strides, backward ones turned round, seen as a matrix of rows.

    ``order[k]`` is the mode that stands k-th in memory. Transposed and reversed arrays are contiguous in that order
    and are read where they lie; others (slices with a step, say) are copied a piece at a time.
    """

    def __init__(self, array: np.ndarray) -> None:
        steps = [-abs(s) if n > 1 else 1 for s, n in zip(array.strides, array.shape, strict=True)]
        self.order = tuple(sorted(range(array.ndim), key=steps.__getitem__))
        self.backward = tuple(array.strides[m] < 0 and array.shape[m] > 1 for m in self.order)
        turned = tuple(slice(None, None, -1 if b else 1) for b in self.backward)
        self.stored = array.transpose(self.order)[turned]
        self.sizes = self.stored.shape
        self.first = groups.split(self.sizes)
        self.rows = math.prod(self.sizes[: self.first])
        self.columns = math.prod(self.sizes[self.first :])
        self.contiguous = bool(self.stored.flags.c_contiguous)

    @cached_property
    def all_rows(self) -> np.ndarray:
        """The list of all rows."""
        return np.arange(self.rows)

    @cached_property
    def lead(self) -> int:
        """How many columns stand before the first cache line that begins in a row."""
        return lead(self.stored.reshape(self.rows, -1)) if self.contiguous else 0

    def panels(self) -> Iterator[Panel]:
        """The matrix, whole where it is contiguous."""
        if self.contiguous:
            yield Panel(0, self.rows, self.stored.reshape(self.rows, self.columns))
            return
        own = self.rows // self.sizes[0]  # rows for each index of the first mode
        step = max(1, PIECE // max(1, own * self.columns * self.stored.itemsize))
        for i in range(0, self.sizes[0], step):
            piece = np.ascontiguousarray(self.stored[i : i + step]).reshape(-1, self.columns)
            yield Panel(i * own, i * own + len(piece), piece)

    def arrange(self, vectors: Vectors) -> Vectors:
        """Vectors in the order of memory, turned round where the mode is."""
        pairs = zip(self.order, self.backward, strict=True)
        return tuple(vectors[m][..., ::-1] if back else vectors[m] for m, back in pairs)

    def restore(self, partials: Vectors) -> Vectors:
        """Back to the order of the modes."""
        found: list[np.ndarray] = [partials[0]] * len(partials)
        for m, back, partial in zip(self.order, self.backward, partials, strict=True):
            found[m] = partial[..., ::-1] if back else partial
        return tuple(found)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The modes of the rows and those of the columns."""
        return tuple(sorted(self.order[: self.first])), tuple(sorted(self.order[self.first :]))

    def place(self, mode: int) -> int:
        """Where a mode stands in memory."""
        return self.order.index(mode)
