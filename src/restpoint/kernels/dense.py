"""Dense NumPy tensors of any strides: read once for all partials, and only where the vectors are not 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from restpoint.array import Array, convert
from restpoint.kernels import choice, groups
from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.choice import Support
from restpoint.kernels.layout import Layout
from restpoint.kernels.passes import RANGE, Passes, depth
from restpoint.kernels.reference import HELD, Reference
from restpoint.kernels.spectra import spectral_bound
from restpoint.kernels.threads import count


class Dense(Kernel):
    """All partials from one read of A: w = M v and s = M'u together, see ``groups``.

    A stays where and as it is, in float64 or float32, whatever its strides; the work is done in the wider of its
    precision and that of the vectors, the answers are in that of the vectors. How it is read is for ``choice`` to say:
    "one-pass", for one start or several; "support", only the rows and columns of M that matter where vectors hold
    zeros, start by start; "products", by matrix products, for many starts and small tensors. All are exact.
    """

    name = "dense"
    _computed = ("layout",)

    def __init__(self, A: np.ndarray) -> None:
        self.tensor = A
        self.sizes = tuple(int(size) for size in A.shape)
        self.layout = Layout(A)

    @property
    def like(self) -> Array:
        return self.tensor

    def partial(self, xs: Vectors, i: int) -> Array:
        return self.keep(xs).partial(i)

    def all_partials(self, xs: Vectors) -> Vectors:
        return self._all_partials(xs)

    @property
    def numbers_a_start(self) -> int:
        return HELD * (self.layout.rows + self.layout.columns)

    def magnitudes(self, xs: Vectors) -> Vectors:
        return self._all_partials(xs, absolute=True)

    def keep(self, xs: Vectors, carried: Any = None) -> Kept:
        return _KeptProducts(self, xs, carried)

    def depth(self, i: int) -> int:
        """Sums over columns are taken range by range, those over rows one after the other, both thread by thread."""
        layout, place = self.layout, self.layout.place(i)
        own, other, long = (
            (layout.sizes[: layout.first], layout.sizes[layout.first :], depth(layout.columns))
            if place < layout.first
            else (layout.sizes[layout.first :], layout.sizes[: layout.first], layout.rows)
        )
        return long + count() + len(other) - 1 + sum(own) - self.sizes[i]

    def in_double(self, xs: Vectors) -> bool:
        return all(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in xs)

    def largest(self) -> float:
        return self._largest

    def spectral_bound(self) -> float:
        return self._spectral_bound

    def converted(self, like: Array) -> Kernel:
        """Itself for NumPy vectors of any precision: nothing is copied."""
        if isinstance(like, np.ndarray):
            return self
        return Reference(convert(self.tensor, like))

    def describe(self, xs: Vectors) -> str:
        """What is done for all partials at these vectors."""
        vectors, _, _ = self._arranged(xs)
        way = self._way(vectors)
        share = Support.of(vectors, self.layout.first).read
        reads = f", {share:.0%} of A a start" if way == "support" else ""
        return f"{way}, {count()} thread{'s' * (count() > 1)}{reads}"

    def _all_partials(self, xs: Vectors, *, absolute: bool = False) -> Vectors:
        vectors, batch, dtype = self._arranged(xs)
        first, second = vectors[: self.layout.first], vectors[self.layout.first :]
        way = self._way(vectors)
        passes = Passes(self.layout, vectors[0].dtype)
        if way == "products":
            w, s = passes.products(first, second, absolute=absolute)
        elif way == "one-pass" or absolute:
            w, s = passes.both(first, second, self.layout.all_rows, absolute=absolute)
        else:
            pairs = [
                self._on_support(passes, tuple(x[k : k + 1] for x in vectors))
                for k in range(len(first[0]))
            ]
            w, s = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        found = groups.partials(w, first) + groups.partials(s, second)
        return self._restored(found, batch, dtype)

    def _on_support(self, passes: Passes, vectors: Vectors) -> tuple[np.ndarray, np.ndarray]:
        """w where one partial or another needs it, and s, for one start."""
        first, second = vectors[: self.layout.first], vectors[self.layout.first :]
        missing = _factors_missing(first)
        w, s = passes.both(first, second, np.flatnonzero(missing == 0))
        half = np.flatnonzero(missing == 1)
        if len(half):
            w += passes.onto_rows(second, half, self._ranges(second))
        return w, s

    def _ranges(self, second: Vectors) -> tuple[np.ndarray, np.ndarray] | None:
        """The ranges of columns where v may differ from 0: stretches of the last mode, joined where they touch."""
        stretch = second[-1].shape[-1]
        if len(second) == 1 or stretch > RANGE:
            return None
        active = np.flatnonzero(_factors_missing(second[:-1]) == 0)
        longest = RANGE // stretch  # stretches that fit in one range
        new = np.diff(active, prepend=-2) != 1
        new |= active % longest == 0
        begins = active[new]
        lengths = np.diff(np.flatnonzero(new), append=len(active))
        return begins * stretch, (begins + lengths) * stretch

    def _arranged(self, xs: Vectors) -> tuple[Vectors, tuple[int, ...], np.dtype]:
        """The vectors in the order of memory, one axis of starts, in the working precision; their batch and dtype."""
        xs = self.fitted(xs)
        batch, dtype = xs[0].shape[:-1], xs[0].dtype
        if any(x.shape[:-1] != batch or x.dtype != dtype for x in xs):
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in xs))
            xs = tuple(np.broadcast_to(x, (*batch, x.shape[-1])) for x in xs)
            dtype = np.result_type(*xs)
        working = np.promote_types(dtype, self.tensor.dtype)
        starts = math.prod(batch)
        vectors = tuple(
            np.ascontiguousarray(x.reshape(starts, x.shape[-1]), working)
            for x in self.layout.arrange(xs)
        )
        return vectors, batch, dtype

    def _restored(self, found: Vectors, batch: tuple[int, ...], dtype: np.dtype) -> Vectors:
        return self.layout.restore(
            tuple(g.reshape(*batch, g.shape[-1]).astype(dtype, copy=False) for g in found)
        )

    def _way(self, vectors: Vectors) -> choice.Way:
        small = self.tensor.size <= choice.SMALL  # not worth the count of zeros
        cost = 0.0 if small else choice.support_cost(vectors, self.layout.first)
        dtypes = self.tensor.dtype.name, vectors[0].dtype.name
        return choice.choose(self.tensor.size, len(vectors[0]), cost, *dtypes)

    @cached_property
    def _largest(self) -> float:
        return float(max(np.max(self.tensor), -np.min(self.tensor)))

    @cached_property
    def _spectral_bound(self) -> float:
        return spectral_bound(self.layout.stored)


class _KeptProducts(Kept):
    """w stays true while only vectors of the first group change, s while only vectors of the second do, per start.

    ``_rows`` says which entries of w are true: on supports a row is computed when a partial first needs it.
    """

    kernel: Dense

    def __init__(self, kernel: Dense, xs: Vectors, carried: Any = None) -> None:
        super().__init__(kernel, xs)
        vectors, self._batch, self._dtype = kernel._arranged(xs)
        self._vectors = list(vectors)
        self._passes = Passes(kernel.layout, vectors[0].dtype)
        if carried is not None:
            shape = (len(vectors[0]), -1)
            self._w, self._rows, self._s, self._columns = (
                part.reshape(shape).copy() for part in carried
            )
            return
        starts, layout = len(vectors[0]), kernel.layout
        self._w = np.zeros((starts, layout.rows), dtype=vectors[0].dtype)
        self._s = np.zeros((starts, layout.columns), dtype=vectors[0].dtype)
        self._rows = np.zeros((starts, layout.rows), dtype=bool)
        self._columns = np.zeros((starts, 1), dtype=bool)  # whether s is true

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return self.kernel.layout.groups

    @property
    def carried(self) -> Any:
        parts = (self._w, self._rows, self._s, self._columns)
        return tuple(part.reshape(*self._batch, part.shape[-1]) for part in parts)

    def all_partials(self) -> Vectors:
        return tuple(self.partial(i) for i in range(len(self.xs)))

    def partial(self, i: int) -> Array:
        layout = self.kernel.layout
        place, first = layout.place(i), layout.first
        if place < first:
            self._complete_rows(place)
            found = groups.one_partial(self._w, tuple(self._vectors[:first]), place)
        else:
            self._complete_columns()
            found = groups.one_partial(self._s, tuple(self._vectors[first:]), place - first)
        found = found.reshape(*self._batch, found.shape[-1]).astype(self._dtype, copy=False)
        return found[..., ::-1] if layout.backward[place] else found

    def update(self, i: int, x: Array) -> None:
        if x is self.xs[i]:
            return
        super().update(i, x)
        layout = self.kernel.layout
        place = layout.place(i)
        x = x[..., ::-1] if layout.backward[place] else x
        old = self._vectors[place]
        new = np.ascontiguousarray(x.reshape(old.shape), old.dtype)
        self._vectors[place] = new
        changed = np.any(new != old, axis=-1)
        if place < layout.first:
            self._columns[changed] = False
        else:
            self._rows[changed] = False

    def _complete_rows(self, place: int) -> None:
        """w for every row that the partial of a mode of the first group needs."""
        layout, passes = self.kernel.layout, self._passes
        who = np.flatnonzero(~self._rows.all(axis=-1))
        if not len(who):
            return
        some = tuple(x[who] for x in self._vectors)
        first, second = some[: layout.first], some[layout.first :]
        way = self.kernel._way(some)
        if way != "support":
            w = (
                passes.products(None, second)[0]
                if way == "products"
                else passes.onto_rows(second, layout.all_rows)
            )
            self._w[who], self._rows[who] = w, True
            self.spent += 0.5 * len(who) / len(self._w)
            return
        for k, start in enumerate(who):
            own = [x[k : k + 1] for x in first]
            own[place] = np.ones_like(own[place])
            needed = (_factors_missing(own) == 0) & ~self._rows[start]
            rows = np.flatnonzero(needed)
            if len(rows):
                other = tuple(x[k : k + 1] for x in second)
                found = passes.onto_rows(other, rows, self.kernel._ranges(other))
                self._w[start, rows] = found[0, rows]
                self._rows[start] |= needed
                self.spent += 0.5 * len(rows) / (layout.rows * len(self._w))

    def _complete_columns(self) -> None:
        """s of every start."""
        layout, passes = self.kernel.layout, self._passes
        who = np.flatnonzero(~self._columns[:, 0])
        if not len(who):
            return
        some = tuple(x[who] for x in self._vectors)
        first, way = some[: layout.first], self.kernel._way(some)
        if way == "products":
            s = passes.products(first, None)[1]
        elif way == "one-pass":
            s = passes.onto_columns(first, layout.all_rows)
        else:
            each = [tuple(x[k : k + 1] for x in first) for k in range(len(who))]
            rows = [np.flatnonzero(_factors_missing(own) == 0) for own in each]
            s = np.concatenate(
                [passes.onto_columns(own, some) for own, some in zip(each, rows, strict=True)]
            )
        self._s[who], self._columns[who] = s, True
        self.spent += 0.5 * len(who) / len(self._s)


def dense(A: Array) -> Kernel:
    """The kernel for a dense tensor: compiled for NumPy, matrix products for other libraries."""
    compiled = isinstance(A, np.ndarray) and choice.named() != "reference"
    return Dense(A) if compiled else Reference(A)


def _factors_missing(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """How many factors are 0 in every entry of the outer product, for one start: a product may underflow to 0."""
    counts: Any = np.zeros(1, dtype=np.int8)
    for x in vectors:
        counts = (counts[:, None] + (x[0] == 0.0)).reshape(-1)
    return counts
