"""Compiled loops over the rows of a matrix, eight at a time. Imported on first use only: it brings Numba in.

Eight rows share each load of the vectors and each store of the column sums; a range of columns is short enough for
both to stay in cache. A list says which rows to read. Where fewer than eight are left, the last is read again with
factor 0. Sums over a range go to memory before the next range begins, so that no sum is deeper than the longest range
plus the number of ranges. The first ``lead`` columns of a range are done by themselves, so that what follows begins a
cache line, in the rows and in the vectors. Vectors and answers have shape (starts, length); answers are added to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from numba import njit, types

# Sums may be reordered and fused, but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}


class Loops(NamedTuple):
    """The loops for one storage type and one working type."""

    both: Callable[..., None]
    both_absolute: Callable[..., None]
    onto_rows: Callable[..., None]
    onto_columns: Callable[..., None]


@functools.cache
def loops(storage: str, working: str) -> Loops:
    """Compiled, or loaded from the cache, for a matrix of ``storage`` and vectors of ``working`` ("float64", ...)."""
    number, whole = getattr(types, working), types.int64
    # Read-only is the wider promise: arrays that may be written to are accepted too.
    matrix = types.Array(getattr(types, storage), 2, "C", readonly=True)
    given, answer = types.Array(number, 2, "C", readonly=True), types.Array(number, 2, "C")
    numbers = types.Array(whole, 1, "C", readonly=True)
    both = types.void(matrix, numbers, whole, whole, given, given, answer, answer, whole, whole)
    onto_rows = types.void(matrix, numbers, given, answer, numbers, numbers, whole)
    onto_columns = types.void(matrix, numbers, whole, whole, given, answer, whole, whole)

    def compiled(signature: Any, function: Callable[..., None]) -> Callable[..., None]:
        return njit(signature, fastmath=FAST, nogil=True, cache=True)(function)

    return Loops(
        compiled(both, _make_both(absolute=False)),
        compiled(both, _make_both(absolute=True)),
        compiled(onto_rows, _onto_rows),
        compiled(onto_columns, _onto_columns),
    )


def _make_both(absolute: bool) -> Callable[..., None]:
    """w += M v and s += M'u over the listed rows and the columns ``left`` to ``right``, from one read of M or |M|."""

    def both(matrix, rows, left, right, u, v, w, s, length, lead):  # type: ignore[no-untyped-def]
        last = len(rows) - 1
        nothing = w.dtype.type(0)
        lead = lead if left == 0 else 0
        for begin in range(left, right, length):
            end = min(begin + length, right)
            for block in range(0, last + 1, 8):
                live = min(8, last + 1 - block)
                r0, r1 = rows[block], rows[min(block + 1, last)]
                r2, r3 = rows[min(block + 2, last)], rows[min(block + 3, last)]
                r4, r5 = rows[min(block + 4, last)], rows[min(block + 5, last)]
                r6, r7 = rows[min(block + 6, last)], rows[min(block + 7, last)]
                for k in range(u.shape[0]):
                    u0, u1 = u[k, r0], u[k, r1] if live > 1 else nothing
                    u2, u3 = u[k, r2] if live > 2 else nothing, u[k, r3] if live > 3 else nothing
                    u4, u5 = u[k, r4] if live > 4 else nothing, u[k, r5] if live > 5 else nothing
                    u6, u7 = u[k, r6] if live > 6 else nothing, u[k, r7] if live > 7 else nothing
                    w0, w1, w2, w3 = nothing, nothing, nothing, nothing
                    w4, w5, w6, w7 = nothing, nothing, nothing, nothing
                    low, cut = begin, min(begin + lead, end)
                    for high in (cut, end):
                        # Slices, indexed from 0: a range that begins elsewhere is not vectorised.
                        m0, m1 = matrix[r0, low:high], matrix[r1, low:high]
                        m2, m3 = matrix[r2, low:high], matrix[r3, low:high]
                        m4, m5 = matrix[r4, low:high], matrix[r5, low:high]
                        m6, m7 = matrix[r6, low:high], matrix[r7, low:high]
                        vk, sk = v[k, low:high], s[k, low:high]
                        for q in range(high - low):
                            x = vk[q]
                            a0, a1, a2, a3 = m0[q], m1[q], m2[q], m3[q]
                            a4, a5, a6, a7 = m4[q], m5[q], m6[q], m7[q]
                            if absolute:
                                a0, a1, a2, a3 = abs(a0), abs(a1), abs(a2), abs(a3)
                                a4, a5, a6, a7 = abs(a4), abs(a5), abs(a6), abs(a7)
                            w0 += a0 * x
                            w1 += a1 * x
                            w2 += a2 * x
                            w3 += a3 * x
                            w4 += a4 * x
                            w5 += a5 * x
                            w6 += a6 * x
                            w7 += a7 * x
                            sk[q] += ((u0 * a0 + u1 * a1) + (u2 * a2 + u3 * a3)) + (
                                (u4 * a4 + u5 * a5) + (u6 * a6 + u7 * a7)
                            )
                        low = high
                    found = (w0, w1, w2, w3, w4, w5, w6, w7)
                    for j in range(live):
                        w[k, rows[block + j]] += found[j]

    return both


def _onto_rows(matrix, rows, v, w, begins, ends, length):  # type: ignore[no-untyped-def]
    """w += M v over the listed rows, and over the columns in the ranges, some ``length`` columns at a time."""
    last, nothing = len(rows) - 1, w.dtype.type(0)
    first = 0
    while first < len(begins):
        after = first + 1
        while after < len(begins) and ends[after] - begins[first] <= length:
            after += 1
        for block in range(0, last + 1, 8):
            live = min(8, last + 1 - block)
            r0, r1 = rows[block], rows[min(block + 1, last)]
            r2, r3 = rows[min(block + 2, last)], rows[min(block + 3, last)]
            r4, r5 = rows[min(block + 4, last)], rows[min(block + 5, last)]
            r6, r7 = rows[min(block + 6, last)], rows[min(block + 7, last)]
            for k in range(v.shape[0]):
                t0, t1, t2, t3 = nothing, nothing, nothing, nothing
                t4, t5, t6, t7 = nothing, nothing, nothing, nothing
                for i in range(first, after):
                    begin, end = begins[i], ends[i]
                    m0, m1 = matrix[r0, begin:end], matrix[r1, begin:end]
                    m2, m3 = matrix[r2, begin:end], matrix[r3, begin:end]
                    m4, m5 = matrix[r4, begin:end], matrix[r5, begin:end]
                    m6, m7 = matrix[r6, begin:end], matrix[r7, begin:end]
                    vk = v[k, begin:end]
                    for q in range(end - begin):
                        x = vk[q]
                        t0 += m0[q] * x
                        t1 += m1[q] * x
                        t2 += m2[q] * x
                        t3 += m3[q] * x
                        t4 += m4[q] * x
                        t5 += m5[q] * x
                        t6 += m6[q] * x
                        t7 += m7[q] * x
                found = (t0, t1, t2, t3, t4, t5, t6, t7)
                for j in range(live):
                    w[k, rows[block + j]] += found[j]
        first = after


def _onto_columns(matrix, rows, left, right, u, s, length, lead):  # type: ignore[no-untyped-def]
    """s += M'u over the listed rows and the columns from ``left`` up to ``right``."""
    count = len(rows)
    whole = count - count % 8
    lead = lead if left == 0 else 0
    for begin in range(left, right, length):
        end = min(begin + length, right)
        for block in range(0, whole, 8):
            r0, r1, r2, r3 = rows[block], rows[block + 1], rows[block + 2], rows[block + 3]
            r4, r5, r6, r7 = rows[block + 4], rows[block + 5], rows[block + 6], rows[block + 7]
            for k in range(u.shape[0]):
                u0, u1, u2, u3 = u[k, r0], u[k, r1], u[k, r2], u[k, r3]
                u4, u5, u6, u7 = u[k, r4], u[k, r5], u[k, r6], u[k, r7]
                low, cut = begin, min(begin + lead, end)
                for high in (cut, end):
                    m0, m1 = matrix[r0, low:high], matrix[r1, low:high]
                    m2, m3 = matrix[r2, low:high], matrix[r3, low:high]
                    m4, m5 = matrix[r4, low:high], matrix[r5, low:high]
                    m6, m7 = matrix[r6, low:high], matrix[r7, low:high]
                    sk = s[k, low:high]
                    for q in range(high - low):
                        sk[q] += ((u0 * m0[q] + u1 * m1[q]) + (u2 * m2[q] + u3 * m3[q])) + (
                            (u4 * m4[q] + u5 * m5[q]) + (u6 * m6[q] + u7 * m7[q])
                        )
                    low = high
        for j in range(whole, count):
            row = matrix[rows[j], begin:end]
            for k in range(u.shape[0]):
                uk, sk = u[k, rows[j]], s[k, begin:end]
                for q in range(end - begin):
                    sk[q] += uk * row[q]
