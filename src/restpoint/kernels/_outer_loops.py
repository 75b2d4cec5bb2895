"""The compiled outer loop of accelerated full steps on a ball with weight ||Kx||_1. Imported on first use only.

Its shrinking problems differ little from step to step. Each has an active set F, the rows i of K with |u_i| < weight,
and the Cholesky factor L of K_F K_F', and both are carried on: of the factor only the rows behind the first that
changed are made anew, and where none changes a solve costs products with K_F and one with K. Where a few guesses of F
do not solve the problem, the solver for any such problem does (``_box_loops``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numba import njit, types

from restpoint.kernels import _box_loops

# Sums may be reordered and fused, but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
UNIT = 2.0**-52
# Guesses of the active set before the general solver is asked.
GUESSES = 4
# Of the square of a row: what is left of it beside the rows before tells no direction.
DEPENDENT = 1e-11
# Compiled when this room is entered; it is entered by those who need it.
general = _box_loops.shrink()
BY_DESCENT = _box_loops.BY_DESCENT
# A diagonal entry of the factor that keeps a row from moving.
FIXED = 1e100


@functools.cache
def accelerated() -> Callable[..., None]:
    """The outer loop, compiled or loaded from the cache; see ``_accelerated`` for its arguments."""
    given = types.Array(types.float64, 2, "C", readonly=True)
    weights = types.Array(types.float64, 1, "C", readonly=True)
    rows = types.Array(types.float64, 2, "C")
    flags, counts = types.Array(types.boolean, 1, "C"), types.Array(types.int64, 2, "C")
    rules = types.UniTuple(types.float64, 2)
    signature = types.void(
        *(
            given,
            given,
            types.float64,
            types.float64,
            given,
            types.int64,
            weights,
            weights,
            types.int64,
            rules,
        ),
        *(rows, rows, rows, rows, rows, rows, flags, counts),
    )
    return njit(signature, fastmath=FAST, nogil=True, cache=True)(_accelerated)


@njit(fastmath=FAST, nogil=True, cache=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(fastmath=FAST, nogil=True, cache=True)
def _add(t, a, b):  # type: ignore[no-untyped-def]
    """b += t a."""
    for j in range(len(a)):
        b[j] += t * a[j]


@njit(fastmath=FAST, nogil=True, cache=True)
def _less(a, b, c):  # type: ignore[no-untyped-def]
    """c = a - b; its norm."""
    total = 0.0
    for j in range(len(a)):
        d = a[j] - b[j]
        c[j] = d
        total += d * d
    return math.sqrt(total)


@njit(fastmath=FAST, nogil=True, cache=True)
def _products(M, x, y):  # type: ignore[no-untyped-def]
    """y = Mx, four rows at a time."""
    rows, n = M.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = M[i], M[i + 1], M[i + 2], M[i + 3]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            p += a[j] * x[j]
            q += b[j] * x[j]
            r += c[j] * x[j]
            s += d[j] * x[j]
        y[i], y[i + 1], y[i + 2], y[i + 3] = p, q, r, s
    for i in range(whole, rows):
        y[i] = _dot(M[i], x)


@njit(fastmath=FAST, nogil=True, cache=True)
def _gradient(M, kind, x, scores, g):  # type: ignore[no-untyped-def]
    """g = Mx (kind 0), -M(M'x) (kind 1) or -M'(Mx) (kind 2)."""
    if kind == 0:
        _products(M, x, g)
        return
    if kind == 1:
        scores[:] = 0.0
        for j in range(len(x)):
            _add(-x[j], M[j], scores)
        _products(M, scores, g)
        return
    _products(M, x, scores)
    g[:] = 0.0
    for i in range(len(M)):
        _add(-scores[i], M[i], g)


@njit(fastmath=FAST, nogil=True, cache=True)
def _factored(G, L, first, k):  # type: ignore[no-untyped-def]
    """The factor from row ``first`` on, column by column, four rows at a time; FIXED where a row depends on others."""
    for j in range(k):
        pivot, i = L[j], max(first, j)
        if j >= first:
            left = G[j, j] - _dot(pivot[:j], pivot[:j])
            pivot[j] = math.sqrt(left) if left > DEPENDENT * G[j, j] else FIXED
            i += 1
        scale = 1.0 / pivot[j]
        while i + 4 <= k:
            a, b, c, d = L[i], L[i + 1], L[i + 2], L[i + 3]
            p, q, r, s = G[i, j], G[i + 1, j], G[i + 2, j], G[i + 3, j]
            for t in range(j):
                p -= a[t] * pivot[t]
                q -= b[t] * pivot[t]
                r -= c[t] * pivot[t]
                s -= d[t] * pivot[t]
            a[j], b[j], c[j], d[j] = scale * p, scale * q, scale * r, scale * s
            i += 4
        while i < k:
            L[i, j] = scale * (G[i, j] - _dot(L[i, :j], pivot[:j]))
            i += 1


@njit(fastmath=FAST, nogil=True, cache=True)
def _kept(active, first, G, L):  # type: ignore[no-untyped-def]
    """Leave out of the active set, from row ``first`` on, and of both matrices, the rows that do not stay."""
    F, held, stays = active
    size = first
    for a in range(first, F[-1]):
        if not stays[a]:
            held[F[a]] = False
            continue
        if size < a:
            at = 0
            for b in range(a + 1):
                if stays[b]:
                    G[size, at], L[size, at] = G[a, b], L[a, b]
                    at += 1
            F[size] = F[a]
        size += 1
    F[-1] = size


@njit(fastmath=FAST, nogil=True, cache=True)
def _chosen(gram, active, wanted, G, L):  # type: ignore[no-untyped-def]
    """Make the active set the rows that are wanted: those that stay in their order, the others behind.

    ``active`` holds the rows (its last entry: how many) and whether each row of K is among them. Rows that depend on
    those before are left out.
    """
    F, held, stays = active
    first = F[-1]
    for a in range(F[-1] - 1, -1, -1):
        stays[a] = wanted[F[a]]
        if not stays[a]:
            first = a
    _kept(active, first, G, L)
    size = F[-1]
    for i in range(len(held)):
        if wanted[i] and not held[i] and size < len(F) - 1:
            F[size], held[i] = i, True
            size += 1
            for b in range(size):
                G[size - 1, b] = gram[i, F[b]]
    F[-1] = size
    _factored(G, L, first, size)
    independent = True
    for a in range(size):
        stays[a] = L[a, a] < FIXED
        independent = independent and stays[a]
    if not independent:
        _kept(active, 0, G, L)


@njit(fastmath=FAST, nogil=True, cache=True)
def _solved(L, r, k):  # type: ignore[no-untyped-def]
    """r = (LL')^-1 r."""
    for i in range(k):
        r[i] = (r[i] - _dot(L[i, :i], r[:i])) / L[i, i]
    for i in range(k - 1, -1, -1):
        r[i] /= L[i, i]
        _add(-r[i], L[i, :i], r[:i])


@njit(fastmath=FAST, nogil=True, cache=True)
def _put(K, i, value, u, s):  # type: ignore[no-untyped-def]
    """u_i = value, with s = K'u."""
    change = value - u[i]
    if change != 0.0:
        _add(change, K[i], s)
        u[i] = value


@njit(fastmath=FAST, nogil=True, cache=True)
def _newton(K, weight, active, L, r, u, s, z):  # type: ignore[no-untyped-def]
    """The step to K_F z = 0, cut off at the box; the other u stay."""
    F = active[0]
    k = F[-1]
    for a in range(k):
        r[a] = _dot(K[F[a]], z)
    _solved(L, r, k)
    for a in range(k):
        i = F[a]
        _put(K, i, min(max(u[i] + r[a], -weight), weight), u, s)


@njit(fastmath=FAST, nogil=True, cache=True)
def _penalised(K, weight, u, z, w):  # type: ignore[no-untyped-def]
    """w = Kz, weight ||w||_1, and the gap weight ||w||_1 - u'w."""
    total, product = 0.0, 0.0
    _products(K, z, w)
    for i in range(len(u)):
        total += abs(w[i])
        product += u[i] * w[i]
    return weight * total, weight * total - product


@njit(fastmath=FAST, nogil=True, cache=True)
def _shrunk(matrices, weight, v, slack, dual, active, wanted, G, L, work):  # type: ignore[no-untyped-def]
    """z = v - K'u with ||z|| at most slack above the least over the box; ||z||, and weight ||Kz||_1.

    ``dual`` is u, and s = K'u: where to begin, and where it ended.
    """
    (K, gram, squared, lengths), (u, s), (r, w, z, old_u, old_s) = matrices, dual, work
    floor = 16.0 * UNIT * math.sqrt(_dot(v, v))
    goal, size = max(slack, 0.25 * floor), _less(v, s, z)
    for guess in range(GUESSES + 1):
        old_u[:], old_s[:] = u, s
        if guess > 0:  # the first is the active set as it is: often nothing more is needed
            for i in range(len(u)):
                end = u[i] + w[i] / squared
                wanted[i] = abs(end) < weight
                if not wanted[i]:
                    _put(K, i, math.copysign(weight, end), u, s)
            _chosen(gram, active, wanted, G, L)
            _less(v, s, z)
        _newton(K, weight, active, L, r, u, s, z)
        found = _less(v, s, z)
        nearer = found <= size
        if nearer:
            size = found
        else:
            u[:], s[:] = old_u, old_s
            _less(v, s, z)
        if guess > 0 and not nearer:
            break
        total, gap = _penalised(K, weight, u, z, w)
        if size <= floor:
            z[:] = 0.0
            return size, 0.0
        if not gap > size * goal:
            return size, total
    general(K, gram, squared, lengths, BY_DESCENT, v, weight, slack, u, z)
    _entered(K, gram, weight, dual, active, wanted, G, L)
    size = _less(v, s, z)
    if size <= floor:
        z[:] = 0.0
        return size, 0.0
    return size, _penalised(K, weight, u, z, w)[0]


@njit(fastmath=FAST, nogil=True, cache=True)
def _room(m, n):  # type: ignore[no-untyped-def]
    """An empty active set, wanted rows, their products and the factor, and what ``_shrunk`` works with."""
    most = min(m, n)
    active = (np.zeros(most + 1, np.int64), np.zeros(m, np.bool_), np.zeros(most + 1, np.bool_))
    G, L = np.empty((most + 1, most + 1)), np.empty((most + 1, most + 1))
    work = (np.empty(most + 1), np.empty(m), np.empty(n), np.empty(m), np.empty(n))
    return active, np.zeros(m, np.bool_), G, L, work


@njit(fastmath=FAST, nogil=True, cache=True)
def _entered(K, gram, weight, dual, active, wanted, G, L):  # type: ignore[no-untyped-def]
    """Put u into the box, and make s and the active set those of u."""
    u, s = dual
    s[:], active[0][-1] = 0.0, 0
    for i in range(len(u)):
        u[i] = min(max(u[i], -weight), weight)
        _add(u[i], K[i], s)
        active[1][i], wanted[i] = False, abs(u[i]) < weight
    _chosen(gram, active, wanted, G, L)


@njit(fastmath=FAST, nogil=True, cache=True)
def _answered(radius, v, z, size, total, y):  # type: ignore[no-untyped-def]
    """y = radius z / ||z||, or 0 where that is better; the value -v'y + weight ||Ky||_1, and the penalty in it."""
    y[:] = 0.0
    if size == 0.0:
        return 0.0, 0.0
    penalty = radius * total / size
    value = penalty - radius * _dot(v, z) / size
    if value > 0.0:
        return 0.0, 0.0
    for j in range(len(y)):
        y[j] = radius * z[j] / size
    return value, penalty


def _accelerated(  # type: ignore[no-untyped-def]
    K,
    gram,
    squared,
    lengths,
    M,
    kind,
    weights,
    radii,
    steps,
    rules,
    xs,
    gradients,
    lasts,
    points,
    duals,
    numbers,
    plains,
    counts,
):
    """``steps`` iterations of ``Momentum`` around full steps on the ball, for every start.

    Given: K (m, n), KK', about ||K||^2 and sum_i ||K_i||, as for the general solver; f by M and its
    ``kind``: x'Mx/2 (0), -||M'x||^2/2 (1) or -||Mx||^2/2 (2); weight and radius of every start; how many steps; how far
    from optimal answers may be, in units of the gap, and what two values of Phi may hide, in units of their sum.

    In place, a row each start: x, the gradient there, the one before; the answer, to the gradient at x where ``plains``
    holds; u; the numbers Phi, h, gap, value and bound of the answer, t. Counted: steps kept, refused, oracle calls.
    """
    n, matrices = K.shape[1], (K, gram, squared, lengths)
    active, wanted, G, L, work = _room(*K.shape)
    z, s, v, there = work[2], np.empty(n), np.empty(n), np.empty(n)
    scores = np.empty(M.shape[1] if kind == 1 else M.shape[0])
    for start in range(len(xs)):
        weight, radius = weights[start], radii[start]
        x, g, last, y, u = xs[start], gradients[start], lasts[start], points[start], duals[start]
        number, count, plain, dual = numbers[start], counts[start], plains[start], (u, s)
        _entered(K, gram, weight, dual, active, wanted, G, L)
        for _ in range(steps):
            phi, gap, t = number[0], number[2], number[5]
            after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
            if plain:
                penalty = number[3] - _dot(g, y)
            else:
                share = (t - 1.0) / after
                for j in range(n):
                    v[j] = -(g[j] + share * (g[j] - last[j]))
                slack = rules[0] * max(gap, 0.0) / radius
                size, total = _shrunk(matrices, weight, v, slack, dual, active, wanted, G, L, work)
                penalty = _answered(radius, v, z, size, total, y)[1]
                count[2] += 1
            _gradient(M, kind, y, scores[: M.shape[1] if kind == 1 else M.shape[0]], there)
            value = 0.5 * _dot(there, y) + penalty
            near = rules[1] * (abs(phi) + abs(value))
            if plain or (value <= phi and phi - value >= gap - near):
                plain = False
                count[0] += 1
                number[5] = 1.0
                if value < phi:  # where Phi stays as it is there is nothing to extrapolate
                    number[5], last[:] = after, g
                x[:], g[:] = y, there
                here, bound = _dot(g, x) + penalty, 0.0
                for j in range(n):
                    bound += (g[j] + s[j]) ** 2
                number[0], number[1], number[3] = value, penalty, here
                number[4] = min(-radius * math.sqrt(bound), here)
                number[2] = here - number[4]
            else:
                plain = True
                count[1] += 1
                count[2] += 1
                for j in range(n):
                    v[j] = -g[j]
                size, total = _shrunk(matrices, weight, v, 0.0, dual, active, wanted, G, L, work)
                number[3] = _answered(radius, v, z, size, total, y)[0]
                number[4] = min(-radius * size, number[3])
                number[2] = _dot(g, x) + number[1] - number[4]
                number[5] = 1.0
        plains[start] = plain
