"""Compiled Newton's method for least squares over a box. Imported on first use only: it brings Numba in.

    minimise ||z||^2 / 2, z = v - K'u, over |u_i| <= t; w = Kz is minus the gradient

At a solution u_i = t sgn(w_i) where w_i is not 0. What leads there:

guesses   primal-dual active sets: the rows F that are held to be free determine u by K_F z = 0, and u and z which rows
          to hold free next; as long as ||z|| falls
descent   where that fails, some accelerated projected gradients, then guesses again: steps cost two products with K
interior  where that fails too, a predictor-corrector method: its steps do not depend on how many rows change sides,
          hundreds where z is nearly 0. Then guesses again, from the sets that it shows

u stays in the box throughout, so that every result proves ||v - K'u|| >= the minimum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba import njit, types

# Guesses in a row: at most, and before only few rows may still change sides (from the first sets, and later); steps of
# one run of the interior method.
GUESSES, FIRST, PATIENCE, FEW, INTERIOR_STEPS = 12, 3, 6, 4, 15
# Rounds of descent, the steps of the first (each has four times as many), and how often the gap is looked at.
ROUNDS, DESCENT_STEPS, LOOK = 4, 20, 5
# What tells the first sets: where a projected gradient leads, the ends that entries of u are at, or descent.
BY_GRADIENT, BY_ENDS, BY_DESCENT = 0, 1, 2
# The gaps, of ||v||^2, at which the interior method hands over, and how much more is then left to rounding.
HANDOVER, MORE = (1e-5, 1e-7, 1e-10, 1e-13), 16.0
# Of the mean diagonal of a Newton matrix: dependent rows leave it singular.
RIDGE = 1e-13
UNIT = 2.0**-52
# Of t: how near to an end of the box the interior method counts its distance.
TINY = 1e-20
LARGE = 1e150
# Sums may be reordered and fused, but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}


@functools.cache
def shrink() -> Callable[..., tuple[float, int]]:
    """The solver, compiled or loaded from the cache.

    Its arguments: K (m, n), KK', about ||K||^2, sum_i ||K_i||, what tells the first sets (``BY_GRADIENT`` and so on),
    v, t, the slack of ||z||, u to begin with, and z; both are overwritten. Answers ||z|| and the number of linear
    systems solved.
    """
    matrix = types.Array(types.float64, 2, "C", readonly=True)
    given = types.Array(types.float64, 1, "C", readonly=True)
    kept, number = types.Array(types.float64, 1, "C"), types.float64
    answer = types.Tuple((number, types.int64))
    signature = answer(
        matrix, matrix, number, number, types.int64, given, number, number, kept, kept
    )
    return njit(signature, nogil=True, cache=True)(_shrink)


def _shrink(K, G, squared, lengths, begin, v, t, slack, u, z):  # type: ignore[no-untyped-def]
    m, n = K.shape
    scale = np.sqrt(_dot(v, v))
    floor, rounding = max(slack, 16.0 * UNIT * scale), 4.0 * UNIT * (scale + t * lengths)
    goal = max(slack, rounding)
    w, tried, z_tried, w_tried = np.empty(m), np.empty(m), np.empty(n), np.empty(m)
    free, side = np.empty(m, np.bool_), np.empty(m)
    inner, upper, lower = np.empty(m), np.empty(m), np.empty(m)
    size, gap = _look(K, v, t, u, z, w)
    solved, first = 0, 0.0
    # Guesses, rounds of descent, then runs of the interior method from 0 on.
    stage = -ROUNDS if begin == BY_DESCENT else -ROUNDS - 1
    while not (size <= floor or gap <= size * goal) and stage < len(HANDOVER):
        if stage < 0:
            if stage >= -ROUNDS:
                steps = DESCENT_STEPS * 4 ** (stage + ROUNDS)
                size, gap = _descend(K, v, t, squared, goal, floor, steps, u, z, w)
                if size <= floor or gap <= size * goal:
                    break
            for i in range(m):
                ends = begin == BY_ENDS and stage < -ROUNDS
                a = u[i] if ends else u[i] + w[i] / squared
                free[i] = abs(a) < t
                side[i] = t if a > 0.0 else -t
            _copy(u, tried)
        else:
            if stage == 0:
                first = _begin(K, v, t, inner, upper, lower)
            target = max(goal * size, HANDOVER[stage] * scale * scale)
            solved += _interior(K, v, t, target, floor, first, inner, upper, lower, free, side)
            _copy(inner, tried)
            goal = max(slack, rounding * MORE**stage)
        changed = 0
        for guess in range(GUESSES):
            if guess >= (FIRST if stage < -ROUNDS else PATIENCE) and changed > FEW:
                break
            if guess > 0 or stage < 0:  # the interior method leaves a point to look at first
                changed = _hold(K, G, v, t, free, side, tried)
                solved += 1
            size_tried, gap_tried = _look(K, v, t, tried, z_tried, w_tried)
            better = size_tried < size or (gap_tried < gap and size_tried <= size * (1.0 + 1e-12))
            if better:
                size, gap = size_tried, gap_tried
                _copy(tried, u)
                _copy(z_tried, z)
                _copy(w_tried, w)
            if size <= floor or gap <= size * goal or not (better or (guess == 0 and stage >= 0)):
                break
        stage += 1
    return size, solved


@njit(nogil=True, fastmath=FAST)
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@njit(nogil=True)
def _copy(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i] = x[i]


@njit(nogil=True, fastmath=FAST)
def _subtract(K, u, z):  # type: ignore[no-untyped-def]
    """z -= K'u."""
    for i in range(len(u)):
        row, by = K[i], u[i]
        if by != 0.0:
            for j in range(len(z)):
                z[j] -= by * row[j]


@njit(nogil=True, fastmath=FAST)
def _look(K, v, t, u, z, w):  # type: ignore[no-untyped-def]
    """z, w, ||z|| and the gap t ||w||_1 - u'w: ||z|| times what ||z|| may exceed the minimum by."""
    _copy(v, z)
    _subtract(K, u, z)
    gap = 0.0
    for i in range(len(u)):
        w[i] = _dot(K[i], z)
        gap += t * abs(w[i]) - u[i] * w[i]
    return np.sqrt(_dot(z, z)), gap


@njit(nogil=True, fastmath=FAST)
def _descend(K, v, t, squared, goal, floor, steps, u, z, w):  # type: ignore[no-untyped-def]
    """Accelerated projected gradients that begin anew where ||z|| would rise; ||z|| and the gap where they end."""
    m, n = K.shape
    ahead, slope, step, rest = np.empty(m), np.empty(m), np.empty(m), np.empty(n)
    _copy(u, ahead)
    _copy(w, slope)
    size, gap = np.sqrt(_dot(z, z)), np.inf
    momentum = 1.0
    for k in range(steps):
        _copy(z, rest)
        for i in range(m):
            step[i] = min(max(ahead[i] + slope[i] / squared, -t), t) - u[i]
        _subtract(K, step, rest)
        found = np.sqrt(_dot(rest, rest))
        if found > size:
            if momentum == 1.0:
                squared *= 2.0
            share, momentum = 0.0, 1.0
        else:
            after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            share, momentum, size = (momentum - 1.0) / after, after, found
            for j in range(n):
                z[j], rest[j] = rest[j], rest[j] + share * (rest[j] - z[j])
            for i in range(m):
                u[i] = min(max(u[i] + step[i], -t), t)
        for i in range(m):
            ahead[i] = u[i] + share * step[i]
        if share == 0.0:
            _copy(z, rest)
        for i in range(m):
            slope[i] = _dot(K[i], rest)
        if (k + 1) % LOOK == 0:
            size, gap = _look(K, v, t, u, z, w)
            if size <= floor or gap <= size * goal:
                break
    return size, gap


@njit(nogil=True, fastmath=FAST)
def _hold(K, G, v, t, free, side, u):  # type: ignore[no-untyped-def]
    """u for the sets given, clipped to the box; the sets become those that it shows before; how many rows change.

    Where free rows depend on each other, those with K_F z = 0 are many: the one near u is taken.
    """
    m, n = K.shape
    size = 0
    for i in range(m):
        if not free[i]:
            u[i] = side[i]
        size += free[i]
    F, z = np.empty(size, np.int64), np.empty(n)
    _copy(v, z)
    size = 0
    for i in range(m):
        if free[i]:
            F[size] = i
            size += 1
    _subtract(K, u, z)
    if size:
        H, change, trace = np.empty((size, size)), np.empty(size), 0.0
        for a in range(size):
            row = G[F[a]]
            for b in range(a + 1):
                H[a, b] = row[F[b]]
            trace += H[a, a]
        for a in range(size):
            H[a, a] += RIDGE * (trace / size) + 1e-300
        _factorise(H)
        for _ in range(2):  # once more, to remove what the ridge and rounding left
            for a in range(size):
                change[a] = _dot(K[F[a]], z)
            _substitute(H, change)
            for a in range(size):
                row, by = K[F[a]], change[a]
                u[F[a]] += by
                for j in range(n):
                    z[j] -= by * row[j]
    changed = 0
    for i in range(m):
        if free[i]:
            side[i] = t if u[i] > 0.0 else -t
            if not abs(u[i]) < t:
                free[i] = False
                changed += 1
            u[i] = min(max(u[i], -t), t)
        elif side[i] * _dot(K[i], z) <= 0.0:
            free[i] = True
            changed += 1
    return changed


@njit(nogil=True, fastmath=FAST)
def _begin(K, v, t, u, upper, lower):  # type: ignore[no-untyped-def]
    """Where the interior method begins: u = 0, with multipliers that w suggests; the answer is the largest |w_i|."""
    m = len(u)
    z, w, spread, largest = np.empty(len(v)), np.empty(m), 1e-300, 1e-300
    for i in range(m):
        u[i] = 0.0
    _look(K, v, t, u, z, w)
    for i in range(m):
        spread += 1e-2 * abs(w[i]) / m
    for i in range(m):
        upper[i], lower[i] = max(w[i], 0.0) + spread, max(-w[i], 0.0) + spread
        largest = max(largest, abs(w[i]))
    return largest


@njit(nogil=True, fastmath=FAST)
def _interior(K, v, t, target, floor, first, u, upper, lower, free, side):  # type: ignore[no-untyped-def]
    """Mehrotra's method, until the gap is at most ``target``; its number of linear systems."""
    m, n = K.shape
    z, w, du, scaled = np.empty(n), np.empty(m), np.empty(m), np.empty((m, n))
    a, b, up, down, L = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty((n, n))
    size, gap = _look(K, v, t, u, z, w)
    steps = 0
    while steps < INTERIOR_STEPS and gap > target and size > floor:
        steps += 1
        for i in range(m):
            a[i], b[i] = max(t - u[i], TINY * t), max(t + u[i], TINY * t)
            by = 1.0 / (upper[i] / a[i] + lower[i] / b[i])
            for j in range(n):
                scaled[i, j] = by * K[i, j]
        _normal(K, scaled, L)
        _factorise(L)
        mean = (_dot(upper, a) + _dot(lower, b)) / (2 * m)
        for i in range(m):
            du[i] = w[i]
        _solve(scaled, L, upper, lower, a, b, du)
        for i in range(m):
            up[i], down[i] = upper[i] * (du[i] / a[i] - 1.0), -lower[i] * (du[i] / b[i] + 1.0)
        s, ahead = _longest(a, b, upper, lower, du, up, down), 0.0
        for i in range(m):
            ahead += (upper[i] + s * up[i]) * (a[i] - s * du[i])
            ahead += (lower[i] + s * down[i]) * (b[i] + s * du[i])
        centring = mean * (ahead / (2 * m * mean)) ** 3
        for i in range(m):
            up[i], down[i] = centring + du[i] * up[i], centring - du[i] * down[i]
            du[i] = w[i] - up[i] / a[i] + down[i] / b[i]
        _solve(scaled, L, upper, lower, a, b, du)
        for i in range(m):
            up[i] = (up[i] + upper[i] * du[i]) / a[i] - upper[i]
            down[i] = (down[i] - lower[i] * du[i]) / b[i] - lower[i]
        s = min(1.0, 0.995 * _longest(a, b, upper, lower, du, up, down))
        for i in range(m):
            u[i] += s * du[i]
            upper[i] += s * up[i]
            lower[i] += s * down[i]
        size, gap = _look(K, v, t, u, z, w)
    for i in range(m):
        free[i] = min(t - u[i], t + u[i]) * first > max(upper[i], lower[i]) * t
        side[i] = t if u[i] > 0.0 else -t
    return steps


@njit(nogil=True, fastmath=FAST)
def _normal(K, scaled, L):  # type: ignore[no-untyped-def]
    """The lower triangle of L = I + K'D^-1 K, four rows of K at a time."""
    m, n = K.shape
    for j in range(n):
        for k in range(j):
            L[j, k] = 0.0
        L[j, j] = 1.0
    whole = m - m % 4
    for i in range(0, whole, 4):
        one, two, three, four = K[i], K[i + 1], K[i + 2], K[i + 3]
        for j in range(n):
            row = L[j]
            a, b, c, d = scaled[i, j], scaled[i + 1, j], scaled[i + 2, j], scaled[i + 3, j]
            for k in range(j + 1):
                row[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]
    for i in range(whole, m):
        one = K[i]
        for j in range(n):
            row, a = L[j], scaled[i, j]
            for k in range(j + 1):
                row[k] += a * one[k]


@njit(nogil=True, fastmath=FAST)
def _solve(scaled, L, upper, lower, a, b, x):  # type: ignore[no-untyped-def]
    """x becomes (D + KK')^-1 x, D = upper / a + lower / b, from the Cholesky factor L of I + K'D^-1 K."""
    y = np.empty(len(L))
    for i in range(len(L)):
        y[i] = 0.0
    _subtract(scaled, x, y)
    _substitute(L, y)
    for i in range(len(x)):
        x[i] = x[i] / (upper[i] / a[i] + lower[i] / b[i]) + _dot(scaled[i], y)


@njit(nogil=True)
def _longest(a, b, upper, lower, du, up, down):  # type: ignore[no-untyped-def]
    """The longest step, at most 1, that keeps all four positive."""
    s = 1.0
    for i in range(len(a)):
        if du[i] > 0.0:
            s = min(s, a[i] / du[i])
        elif du[i] < 0.0:
            s = min(s, -b[i] / du[i])
        if up[i] < 0.0:
            s = min(s, -upper[i] / up[i])
        if down[i] < 0.0:
            s = min(s, -lower[i] / down[i])
    return s


@njit(nogil=True, fastmath=FAST)
def _factorise(A):  # type: ignore[no-untyped-def]
    """The Cholesky factor of A, into its lower triangle; a pivot that rounding made negative counts as large."""
    for i in range(len(A)):
        row = A[i]
        for j in range(i + 1):
            other = A[j]
            total = 0.0
            for k in range(j):
                total += row[k] * other[k]
            total = row[j] - total
            if j < i:
                row[j] = total / other[j]
            else:
                row[i] = np.sqrt(total) if total > 0.0 else LARGE


@njit(nogil=True, fastmath=FAST)
def _substitute(L, x):  # type: ignore[no-untyped-def]
    """x becomes (LL')^-1 x."""
    for i in range(len(x)):
        row, total = L[i], 0.0
        for k in range(i):
            total += row[k] * x[k]
        x[i] = (x[i] - total) / row[i]
    for i in range(len(x) - 1, -1, -1):
        row = L[i]
        x[i] /= row[i]
        for k in range(i):
            x[k] -= x[i] * row[k]
