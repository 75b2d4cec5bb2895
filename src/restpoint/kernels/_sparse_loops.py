"""The compiled loops over the nonzeros of a sparse tensor; imported on first use only, because numba is.

The loop over one slice is written in LLVM's terms: orders are unrolled, and several starts are the lanes of vector
instructions, which numba cannot be told to use (a lane is a start, so no sum changes its order).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

# What is summed in a pass: the gradient of the slices' own mode, of the first other mode, or of all modes.
OWN, FIRST, ALL = 0, 1, 2
# Sums of one slice run side by side: an addition waits 4 cycles for the one before.
SIDE_BY_SIDE = 4
# A multiplication and an addition may be fused; nothing may be summed in another order, because
# vector gathers, which that would bring, take longer than plain loads.
FLAGS = ("contract", "nsz")
# Entries of a slice come from so many segments in turn, lest consecutive additions hit one address.
SEGMENTS = 8


@njit(nogil=True, cache=True)
def dealt(pointers, order):  # type: ignore[no-untyped-def] # pragma: no cover - compiled
    """``order``, within each slice dealt out from ``SEGMENTS`` segments in turn."""
    found = np.empty_like(order)
    for k in range(pointers.size - 1):
        size = pointers[k + 1] - pointers[k]
        position = pointers[k]
        for segment in range(min(SEGMENTS, size)):
            # Segment s holds what goes to positions s, s + 8, s + 16, ... of the slice.
            for place in range(pointers[k] + segment, pointers[k + 1], SEGMENTS):
                found[place] = order[position]
                position += 1
    return found


class _Slice:
    """Emits the loop over the entries of slice k: sums[m][index_m[e]] += values[e] prod of the other vectors."""

    def __init__(self, context: Any, builder: Any, lanes: int, signature: Any, args: Any) -> None:
        self.builder, self.lanes = builder, lanes
        values, indices, own, others, own_sums, sums, k = args
        scalar = context.get_value_type(signature[2].dtype)
        self.kind = scalar if lanes == 1 else ir.VectorType(scalar, lanes)
        self.item = signature[2].dtype.bitwidth // 8

        def start(array_type: Any, value: Any) -> Any:
            return context.make_array(array_type)(context, builder, value).data

        def starts(tuple_type: Any, value: Any) -> list[Any]:
            parts = cgutils.unpack_tuple(builder, value, len(tuple_type))
            return [start(t, part) for t, part in zip(tuple_type, parts, strict=True)]

        self.values = start(signature[0], values)
        self.indices = starts(signature[1], indices)
        self.own = self.at(start(signature[2], own), k)
        self.others = starts(signature[3], others)
        self.own_sums = self.at(start(signature[4], own_sums), k)
        self.sums = starts(signature[5], sums)

    def at(self, start: Any, row: Any) -> Any:
        """Where a row of ``lanes`` numbers begins."""
        b = self.builder
        place = b.gep(start, [b.mul(row, ir.Constant(row.type, self.lanes))])
        return b.bitcast(place, self.kind.as_pointer())

    def load(self, place: Any) -> Any:
        return self.builder.load(place, align=self.item)

    def add_to(self, place: Any, term: Any) -> None:
        """One addition in memory: ``term`` is a product, so this is a fused one."""
        total = self.builder.fadd(self.load(place), term, flags=FLAGS)
        self.builder.store(total, place, align=self.item)

    def times(self, a: Any, b: Any) -> Any:
        return a if b is None else b if a is None else self.builder.fmul(a, b, flags=FLAGS)

    def value(self, e: Any) -> Any:
        """values[e] in the precision of the vectors, in every lane."""
        b = self.builder
        number = b.load(b.gep(self.values, [e]))
        scalar = self.kind if self.lanes == 1 else self.kind.element
        if number.type != scalar:
            number = b.fpext(number, scalar)
        if self.lanes == 1:
            return number
        none, zero = ir.Constant(self.kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        each = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return b.shuffle_vector(b.insert_element(none, number, zero), none, each)

    def entry(self, e: Any, what: int, total: Any) -> None:
        """What entry e adds, ``total`` being the slice's own sum."""
        b = self.builder
        value = self.value(e)
        rows = [b.zext(b.load(b.gep(start, [e])), e.type) for start in self.indices]
        vectors = [self.load(self.at(s, row)) for s, row in zip(self.others, rows, strict=True)]
        # after[m] = the product of the vectors behind m.
        after: list[Any] = [None]
        for vector in reversed(vectors[1:]):
            after.insert(0, self.times(vector, after[0]))
        if what != FIRST:
            term = self.times(value, self.times(vectors[0], after[0]))
            b.store(b.fadd(b.load(total), term, flags=FLAGS), total)
        if what == OWN:
            return
        before = self.times(value, self.load(self.own))
        for m, vector in enumerate(vectors if what == ALL else vectors[:1]):
            self.add_to(self.at(self.sums[m], rows[m]), self.times(before, after[m]))
            before = self.times(before, vector)

    def run(self, first: Any, last: Any, what: int) -> None:
        b = self.builder
        count = SIDE_BY_SIDE if what == OWN else 1
        totals = [cgutils.alloca_once_value(b, ir.Constant(self.kind, None)) for _ in range(count)]
        for total in totals:  # the slots live as long as the function: each slice begins anew
            b.store(ir.Constant(self.kind, None), total)
        one, stride = ir.Constant(first.type, 1), ir.Constant(first.type, count)
        middle = b.sub(last, b.srem(b.sub(last, first), stride))
        with cgutils.for_range_slice(b, first, middle, stride) as (e, _):
            for j, total in enumerate(totals):
                self.entry(b.add(e, ir.Constant(e.type, j)), what, total)
        if count > 1:
            with cgutils.for_range_slice(b, middle, last, one) as (e, _):
                self.entry(e, what, totals[0])
        if what != FIRST:
            sums = [b.load(total) for total in totals]
            while len(sums) > 1:
                sums = [
                    b.fadd(x, y, flags=FLAGS) for x, y in zip(sums[::2], sums[1::2], strict=True)
                ]
            b.store(sums[0], self.own_sums, align=self.item)


@intrinsic(prefer_literal=True)
def contract_slice(  # type: ignore[no-untyped-def]
    _context, what, lanes, values, indices, own, others, own_sums, sums, k, _first, _last
):
    """Add what slice k, entries _first.._last-1, contributes to the sums that ``what`` names."""
    signature = types.void(
        what, lanes, values, indices, own, others, own_sums, sums, k, types.intp, types.intp
    )

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        loop = _Slice(context, builder, lanes.literal_value, signature.args[2:9], args[2:9])
        loop.run(args[9], args[10], what.literal_value)
        return context.get_dummy_value()

    return signature, emit


def _whole(what: int, lanes: int) -> Callable[..., None]:
    """The loop over slices first..last-1."""

    def pass_over(  # type: ignore[no-untyped-def] # pragma: no cover - compiled
        pointers, values, indices, own, others, own_sums, sums, first, last
    ):
        for k in range(first, last):
            begin, end = pointers[k], pointers[k + 1]
            live = False
            for b in range(lanes):
                live |= own[k, b] != 0
            # With x[k] = 0 the slice adds nothing but to its own partial: exact, and cheaper.
            if what != OWN and live:
                contract_slice(
                    what, lanes, values, indices, own, others, own_sums, sums, k, begin, end
                )
            elif what != FIRST:
                contract_slice(
                    OWN, lanes, values, indices, own, others, own_sums, sums, k, begin, end
                )

    return pass_over


@cache
def loop(
    what: int, lanes: int, values: np.dtype, indices: tuple[np.dtype, ...], vectors: np.dtype
) -> Callable[..., None]:
    """The loop compiled for these kinds of arrays: what is stored is read-only, whatever memory it lies in."""

    def stored(kind: np.dtype) -> Any:
        return types.Array(from_dtype(kind), 1, "C", readonly=True)

    table = types.Array(from_dtype(vectors), 2, "C")
    tables = types.UniTuple(table, len(indices))
    signature = types.void(
        stored(np.dtype(np.int64)),
        stored(values),
        types.Tuple([stored(kind) for kind in indices]),
        table,
        tables,
        table,
        tables,
        types.intp,
        types.intp,
    )
    return njit([signature], nogil=True, cache=True)(_whole(what, lanes))
