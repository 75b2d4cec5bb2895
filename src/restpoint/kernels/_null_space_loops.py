"""Compiled loops over the rows of Q, each read once. Imported on first use only: it brings Numba in."""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba import njit, types

# Sums may be reordered and fused, but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}


@functools.cache
def loops(storage: str) -> tuple[Callable[..., float], Callable[..., float]]:
    """``walk`` and ``put_back`` for a Q stored as ``storage`` ("float64" or "float32"), compiled or from the cache."""
    number = types.float64
    matrix = types.Array(getattr(types, storage), 2, "C", readonly=True)
    given, kept = types.Array(number, 1, "C", readonly=True), types.Array(number, 1, "C")
    walks = number(matrix, *(given,) * 5, number, *(kept,) * 4)
    puts = number(matrix, given, kept, kept)
    options = {"fastmath": FAST, "nogil": True, "cache": True}
    return njit(walks, **options)(_walk), njit(puts, **options)(_put_back)


def _walk(Q, lengths, v, low, high, nu, far, product, when, s, y):  # type: ignore[no-untyped-def]
    """s = t - clip(t, low, high), t = v - Q nu, and y = Q's; the answer is ||s||^2.

    ``product`` holds Q_i'nu as it was when the path of nu was ``when``_i long; it is ``far`` long now. A row whose t_i
    cannot have reached an end of its interval since then, ||Q_i|| times the difference, is not read.
    """
    total = 0.0
    y[:] = 0.0
    for i in range(len(v)):
        t, moved = v[i] - product[i], lengths[i] * (far - when[i])
        if t - moved > low[i] and t + moved < high[i]:
            s[i] = 0.0
            continue
        row = Q[i]
        if moved > 0.0:
            found = 0.0
            for j in range(len(row)):
                found += row[j] * nu[j]
            product[i], when[i] = found, far
            t = v[i] - found
        rest = t - min(max(t, low[i]), high[i])
        s[i] = rest
        if rest != 0.0:
            total += rest * rest
            for j in range(len(row)):
                y[j] += rest * row[j]
    return total


def _put_back(Q, d, z, y):  # type: ignore[no-untyped-def]
    """z -= Q d where z is not 0, and y = Q'z; the answer is ||z||^2."""
    total = 0.0
    y[:] = 0.0
    for i in range(len(z)):
        if z[i] != 0.0:
            row, value = Q[i], z[i]
            found = 0.0
            for j in range(len(row)):
                found += row[j] * d[j]
            value -= found
            z[i] = value
            total += value * value
            for j in range(len(row)):
                y[j] += value * row[j]
    return total
