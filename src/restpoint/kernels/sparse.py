"""Tensors given by their nonzeros, grouped in slices."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from restpoint.array import Array, namespace
from restpoint.errors import CapabilityError, DataError
from restpoint.kernels import threads
from restpoint.kernels.base import Kernel, Vectors
from restpoint.kernels.memory import zeros

# Starts that go through the nonzeros together. One pass with 1, 4, 8, 16 starts took 1.0, 1.2, 2.0,
# 3.0 ns a nonzero (order 3, n = 1000), so a few starts are better padded than done one by one.
LANES = (1, 4, 8, 16)
# What was measured, in ns (order 3, one start): beginning a slice, and reading and adding at a random
# place of a mode with up to so many indices.
SLICE = 10.0
RANDOM_PLACE = ((50_000, 0.1), (150_000, 0.3), (math.inf, 4.0))
# Counting converts indices to 8 bytes: in parts, lest that take more memory than the tensor.
COUNTED_AT_ONCE = 1_000_000


class Sparse(Kernel):
    """A by its nonzeros: one pass over them gives all partials, with x_k and its sum in registers for each slice k.

    With t = a x_k for the entry a at (k, j, l): gx_k += a y_j z_l, gy_j += t z_l, gz_l += t y_j, and the like for
    other orders. Slices with x_k = 0 give gx_k only: exact, and half the time. Values in float32 or float64; sums are
    formed in the wider precision of values and vectors. Duplicates are summed, zeros dropped.
    """

    name = "sparse"

    def __init__(self, values: np.ndarray, coordinates: Vectors, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.own = _own_mode(sizes, values.size)
        self.rest = tuple(m for m in range(len(sizes)) if m != self.own)
        modes = (self.own, *self.rest)
        values, coordinates, order = _distinct(
            values, tuple(coordinates[m] for m in modes), tuple(sizes[m] for m in modes)
        )
        counts = np.bincount(coordinates[0], minlength=sizes[self.own])
        self.pointers = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
        order = _loops().dealt(self.pointers, order)
        self.values = values[order]
        self.indices = tuple(
            coordinate.astype(np.min_scalar_type(sizes[m] - 1))[order]
            for m, coordinate in zip(self.rest, coordinates[1:], strict=True)
        )

    @property
    def like(self) -> Array:
        return self.values

    @property
    def nbytes(self) -> int:
        """The bytes that one pass reads."""
        return sum(array.nbytes for array in (self.pointers, self.values, *self.indices))

    def partial(self, xs: Vectors, i: int) -> Array:
        loops = _loops()
        if i == self.own:
            return self._contract(xs, loops.OWN, self.rest)[0]
        return self._contract(xs, loops.FIRST, (i, *(m for m in self.rest if m != i)))[1]

    def all_partials(self, xs: Vectors) -> Vectors:
        found = self._contract(xs, _loops().ALL, self.rest)
        return (*found[1 : self.own + 1], found[0], *found[self.own + 1 :])

    def magnitudes(self, xs: Vectors) -> Vectors:
        absolute = copy.copy(self)
        absolute.values = np.abs(self.values)
        return absolute.all_partials(xs)

    def in_double(self, xs: Vectors) -> bool:
        """Products and sums have the precision of the vectors at least; values in float32 are exact in float64."""
        return all(x.dtype == np.float64 for x in xs)

    def depth(self, i: int) -> int:
        """The most nonzeros at one index of mode i, d - 1 products, and the sums over parts and threads."""
        return self._most[i] + len(self.sizes) - 1 + _loops().SIDE_BY_SIDE + threads.count()

    def largest(self) -> float:
        return float(np.max(np.abs(self.values), initial=0.0))

    def spectral_bound(self) -> float:
        return self._spectral_bound

    def converted(self, like: Array) -> Sparse:
        if namespace(like) is not np:
            raise CapabilityError(
                f"sparse tensors are contracted in NumPy, but the points are arrays of {namespace(like).__name__}; "
                "give x0 as NumPy arrays, or a dense tensor in that library to Multilinear"
            )
        return self

    def describe(self, xs: Vectors) -> str:
        count = len(self._shares(self.rest)) - 1
        threaded = f"{count} thread{'s' * (count > 1)}"
        return f"{self.values.size} nonzeros in slices of mode {self.own}, {threaded}"

    @cached_property
    def _spectral_bound(self) -> float:
        from restpoint.kernels.sparse_spectra import spectral_bound

        own = np.repeat(np.arange(self.sizes[self.own]), np.diff(self.pointers))
        indices = list(self.indices)
        indices.insert(self.own, own)
        return spectral_bound(self.values, tuple(indices), self.sizes)

    @cached_property
    def _most(self) -> tuple[int, ...]:
        """The most nonzeros at one index, for each mode."""
        most = [
            _largest_count(index, self.sizes[m])
            for m, index in zip(self.rest, self.indices, strict=True)
        ]
        most.insert(self.own, int(np.max(np.diff(self.pointers))))
        return tuple(most)

    def _contract(self, xs: Vectors, what: int, rest: tuple[int, ...]) -> list[Array]:
        """The partials that ``what`` names, of the modes (own, *rest); rubbish in place of the others."""
        xs = self.fitted(xs)
        answer = np.result_type(*xs)
        kind = np.result_type(self.values, answer)
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in xs))
        starts, modes = math.prod(batch), (self.own, *rest)
        shapes = [(*batch, self.sizes[m]) for m in modes]
        points = [
            np.broadcast_to(xs[m], shape).reshape(starts, shape[-1])
            for m, shape in zip(modes, shapes, strict=True)
        ]
        found = [np.empty(point.shape, answer) for point in points]
        for begin, end, lanes in _groups(starts):
            tables = [zeros(p.shape[1], lanes, dtype=kind) for p in points]
            for table, point in zip(tables, points, strict=True):
                table[:, : end - begin] = point[begin:end].T
            sums = self._pass(tables, what, rest)
            for into, total in zip(found, sums, strict=True):
                into[begin:end] = total[:, : end - begin].T
        return [part.reshape(shape) for part, shape in zip(found, shapes, strict=True)]

    def _pass(self, tables: list[np.ndarray], what: int, rest: tuple[int, ...]) -> list[np.ndarray]:
        """One pass over the nonzeros; each thread takes slices and has its own sums, added up in a fixed order."""
        kind, lanes = tables[0].dtype, tables[0].shape[1]
        indices = tuple(_read_only(self.indices[self.rest.index(m)]) for m in rest)
        loop = _loops().loop(
            what, lanes, self.values.dtype, tuple(index.dtype for index in indices), kind
        )
        pointers, values = _read_only(self.pointers), _read_only(self.values)
        own, others = tables[0], tuple(tables[1:])
        own_sums = zeros(self.sizes[self.own], lanes, dtype=kind)
        bounds = self._shares(rest)
        sums = [tuple(zeros(self.sizes[m], lanes, dtype=kind) for m in rest) for _ in bounds[1:]]

        def task(t: int) -> None:
            loop(
                pointers, values, indices, own, others, own_sums, sums[t], bounds[t], bounds[t + 1]
            )

        threads.run([partial(task, t) for t in range(len(sums))])
        return [own_sums, *(reduce(np.add, parts) for parts in zip(*sums, strict=True))]

    def _shares(self, rest: tuple[int, ...]) -> list[int]:
        """Slices 0..n cut where the threads' shares of the nonzeros are about equal."""
        n, nonzeros = self.sizes[self.own], self.values.size
        # Every thread clears and adds up sums of its own: not worth it for fewer nonzeros than sums.
        count = threads.useful(self.nbytes) if nonzeros > sum(self.sizes[m] for m in rest) else 1
        inner = np.searchsorted(self.pointers, [nonzeros * t // count for t in range(1, count)])
        return [0, *(int(k) for k in inner), n]


def _loops() -> Any:
    """The compiled loops: numba is imported when a sparse tensor is made, not before."""
    from restpoint.kernels import _sparse_loops

    return _sparse_loops


def _own_mode(sizes: tuple[int, ...], nonzeros: int) -> int:
    """The mode whose slices are read one by one: large, so that random places stay in caches, yet of long slices."""
    places = [next(cost for most, cost in RANDOM_PLACE if n <= most) for n in sizes]
    costs = [SLICE * n - nonzeros * place for n, place in zip(sizes, places, strict=True)]
    return costs.index(min(costs))


def _distinct(
    values: np.ndarray, coordinates: Vectors, sizes: tuple[int, ...]
) -> tuple[np.ndarray, Vectors, np.ndarray]:
    """Values and coordinates without duplicates and zeros, and the order that sorts them."""
    order, first = _sorted(coordinates, sizes)
    if np.all(first) and np.all(values):
        return values, coordinates, order
    begins = np.flatnonzero(first)
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(values[order], begins, dtype=np.float64).astype(values.dtype)
    if not np.all(np.isfinite(sums)):
        raise DataError(f"values at the same index add up to more than {values.dtype} can hold")
    kept = np.flatnonzero(sums)
    order = order[begins[kept]]
    return sums[kept], tuple(c[order] for c in coordinates), np.arange(kept.size)


def _sorted(coordinates: Vectors, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The order by the first, then the second, ... coordinate, and where a new index begins."""
    count = coordinates[0].size
    first = np.ones(count, dtype=bool)
    if math.prod(sizes) >= 2**63:
        order = np.lexsort(coordinates[::-1])
        found = [coordinate[order] for coordinate in coordinates]
        first[1:] = reduce(np.logical_or, (index[1:] != index[:-1] for index in found))
        return order, first
    key = np.zeros(count, np.int64)
    for coordinate, n in zip(coordinates, sizes, strict=True):
        key *= n
        key += coordinate
    bits = max(count - 1, 1).bit_length()
    if math.prod(sizes) <= 2 ** (63 - bits):
        # Sorting the numbers (index, position) is several times faster than sorting positions.
        key <<= bits
        key |= np.arange(count)
        key.sort()
        order = key & ((1 << bits) - 1)
        key >>= bits
    else:
        order = np.argsort(key)
        key = key[order]
    first[1:] = key[1:] != key[:-1]
    return order, first


def _groups(starts: int) -> Iterator[tuple[int, int, int]]:
    """Groups of starts, begin to end, and the lanes for each."""
    for begin in range(0, starts, LANES[-1]):
        end = min(begin + LANES[-1], starts)
        yield begin, end, next(lanes for lanes in LANES if lanes >= end - begin)


def _read_only(array: np.ndarray) -> np.ndarray:
    """A view that says so: arrays that came back from another process as memory maps then need no loop of their own."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _largest_count(index: np.ndarray, size: int) -> int:
    counts = np.zeros(size, np.int64)
    for begin in range(0, index.size, COUNTED_AT_ONCE):
        counts += np.bincount(index[begin : begin + COUNTED_AT_ONCE], minlength=size)
    return int(np.max(counts))
