"""Compiled loops over rows. Imported on first use only: they bring Numba in."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba import njit, types

_ROWS = types.Array(types.float64, 2, "C")
_GIVEN = types.Array(types.float64, 2, "C", readonly=True)
_NUMBERS = types.Array(types.float64, 1, "C", readonly=True)
# Newton's steps end at the total; all but the last merge blocks, so that n would do.
MOST_STEPS = 200
UNIT = 2.0**-52
REFINEMENTS = 2


@functools.cache
def nonincreasing() -> Callable[..., None]:
    """The loop: rows z, and where to write the answers."""
    return njit(types.void(_GIVEN, _ROWS), nogil=True, cache=True)(_nonincreasing)


@functools.cache
def denoise() -> Callable[..., None]:
    """The loop: rows v, one weight each, and where to write the answers."""
    return njit(types.void(_GIVEN, _NUMBERS, _ROWS), nogil=True, cache=True)(_denoise)


@functools.cache
def sorted_threshold() -> Callable[..., None]:
    """The loop: rows z, profiles, one total each, and where to write the answers."""
    return njit(types.void(_GIVEN, _GIVEN, _NUMBERS, _ROWS), nogil=True, cache=True)(_threshold)


@njit(nogil=True, cache=True)
def _pool(z, means, counts):  # type: ignore[no-untyped-def]
    """Blocks of the nearest nonincreasing vector: their means and lengths; how many there are."""
    blocks = 0
    for j in range(len(z)):
        mean, count = z[j], 1
        while blocks > 0 and means[blocks - 1] <= mean:
            blocks -= 1
            whole = count + counts[blocks]
            # From the two means: a sum of all entries would lose the digits of small ones.
            mean = means[blocks] + (mean - means[blocks]) * (count / whole)
            count = whole
        means[blocks], counts[blocks] = mean, count
        blocks += 1
    return blocks


def _nonincreasing(rows, answers):  # type: ignore[no-untyped-def]
    n = rows.shape[1]
    means, counts = np.empty(n), np.empty(n, np.int64)
    for i in range(len(rows)):
        blocks, j = _pool(rows[i], means, counts), 0
        for b in range(blocks):
            for _ in range(counts[b]):
                answers[i, j] = means[b]
                j += 1


@njit(nogil=True, cache=True)
def _weighted(profile, means, counts, weights, blocks):  # type: ignore[no-untyped-def]
    """profile'x and its rate of decrease, for x = max(means, 0) spread over the blocks; fills in their weights."""
    total, rate, j = 0.0, 0.0, 0
    for b in range(blocks):
        weight = 0.0
        for _ in range(counts[b]):
            weight += profile[j]
            j += 1
        weights[b] = weight
        if means[b] > 0.0:
            total += weight * means[b]
            rate += weight * weight / counts[b]
    return total, rate


def _threshold(rows, profiles, totals, answers):  # type: ignore[no-untyped-def]
    n = rows.shape[1]
    shifted, means, counts = np.empty(n), np.empty(n), np.empty(n, np.int64)
    weights = np.empty(n)
    for i in range(len(rows)):
        size = 0.0
        for j in range(n):
            shifted[j] = rows[i, j]
            size += profiles[i, j] * rows[i, j]
        for _step in range(MOST_STEPS):
            blocks = _pool(shifted, means, counts)
            total, rate = _weighted(profiles[i], means, counts, weights, blocks)
            excess = total - totals[i]
            if not (rate > 0.0 and excess > 16.0 * UNIT * size):
                break
            for j in range(n):
                shifted[j] -= excess / rate * profiles[i, j]
        # The blocks are known. Their means still have the rounding errors of large rows; the last digits are theirs.
        for _step in range(REFINEMENTS):
            total, rate = _weighted(profiles[i], means, counts, weights, blocks)
            for b in range(blocks):
                if rate > 0.0 and means[b] > 0.0:
                    means[b] -= (total - totals[i]) / rate * weights[b] / counts[b]
        j = 0
        for b in range(blocks):
            for _ in range(counts[b]):
                answers[i, j] = max(means[b], 0.0)
                j += 1


def _denoise(rows, weights, answers):  # type: ignore[no-untyped-def]
    """Dynamic programming along a row: O(n), each knot enters and leaves once.

    d_k(b), the derivative in b = x_k of the least value of all terms up to k, is b - v_k plus d_(k-1) clipped to
    [-weight, weight]: piecewise linear and increasing. Where it leaves that interval, at low_k and high_k, knots begin;
    x_n solves d_n = 0, and x_k = x_(k+1) clipped to [low_k, high_k]. Between knots d_k is slope b + offset.
    """
    n = rows.shape[1]
    low, high = np.empty(n), np.empty(n)
    knots, slopes, offsets = np.empty(2 * n + 2), np.empty(2 * n + 2), np.empty(2 * n + 2)
    for i in range(len(rows)):
        mean, apart = 0.0, 0.0
        for j in range(n):
            mean += rows[i, j] / n
        for j in range(n):
            apart += abs(rows[i, j] - mean)
        # From there on the answer is constant: larger weights would only add rounding errors.
        t = weights[i]
        if t >= apart and t > 0.0:
            for j in range(n):
                answers[i, j] = mean
            continue
        if n == 1 or not t > 0.0:
            for j in range(n):
                answers[i, j] = rows[i, j]
            continue
        # Knots first..last; slopes and offsets hold what changes when a knot is passed from below.
        first, last = n + 1, n
        for k in range(n - 1):
            v = rows[i, k]
            below = -t if k > 0 else 0.0  # d_(k-1), clipped, below all knots
            above = t if k > 0 else 0.0
            slope, offset = 1.0, below - v
            while first <= last and slope * knots[first] + offset <= -t:
                slope += slopes[first]
                offset += offsets[first]
                first += 1
            low[k] = (-t - offset) / slope
            slope_up, offset_up = 1.0, above - v
            while last >= first and slope_up * knots[last] + offset_up >= t:
                slope_up -= slopes[last]
                offset_up -= offsets[last]
                last -= 1
            high[k] = (t - offset_up) / slope_up
            first -= 1
            knots[first], slopes[first], offsets[first] = low[k], slope, offset + t
            last += 1
            knots[last], slopes[last], offsets[last] = high[k], -slope_up, t - offset_up
        slope, offset = 1.0, -t - rows[i, n - 1]
        while first <= last and slope * knots[first] + offset <= 0.0:
            slope += slopes[first]
            offset += offsets[first]
            first += 1
        x = -offset / slope
        answers[i, n - 1] = x
        for k in range(n - 2, -1, -1):
            x = min(max(x, low[k]), high[k])
            answers[i, k] = x
