"""Compiled loops over the samples of a moment tensor. Imported on first use only: it brings Numba in.

A block of rows is read once and used for all products and all starts while it lies in cache. For one start the mean is
subtracted on the way, each time anew, which is faster than to store centred rows, and as exact; for several starts the
block is centred into a buffer, whose rows are padded with zeros so that no load crosses a cache line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba import njit, types

# Sums may be reordered and fused, but NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}


@functools.cache
def one_read(storage: str) -> Callable[..., float]:
    """The loop for samples stored as ``storage`` ("float64" or "float32"), compiled or loaded from the cache.

    Its arguments: samples (N, n), the mean (n), vectors (starts, U, wide) with U = 1 or 4 and zeros beyond n, how many
    modes have each vector (U), the answers (starts, U, wide), and a buffer (rows of a block, wide), given twice: to
    write to, and to read from like samples. To the answers is added sum_r p_ru (x_r - mean), p_ru the product of all
    modes' c but one of those of u, c_ru = (x_r - mean)'v_u.
    """
    number = types.float64
    # Read-only is the wider promise: arrays that may be written to are accepted too.
    samples = types.Array(getattr(types, storage), 2, "C", readonly=True)
    mean = types.Array(number, 1, "C", readonly=True)
    vectors, answers = types.Array(number, 3, "C", readonly=True), types.Array(number, 3, "C")
    counts = types.Array(types.int64, 1, "C", readonly=True)
    buffer, view = types.Array(number, 2, "C"), types.Array(number, 2, "C", readonly=True)
    signature = types.float64(samples, mean, vectors, counts, answers, buffer, view)
    return njit(signature, fastmath=FAST, nogil=True, cache=True)(_one_read)


def _one_read(samples, mean, vectors, counts, answers, buffer, view):  # type: ignore[no-untyped-def]
    starts, many, wide = vectors.shape
    size, columns = len(buffer), len(mean)
    group = 8 if many == 1 else 4  # rows that share the loads of vectors and answers
    c, p = np.empty((many, group)), np.empty((many, group))
    nothing = np.zeros(wide)
    flat, read = samples.reshape(-1), 0.0
    whole = len(samples) - len(samples) % group
    for begin in range(0, whole, size):
        end = min(begin + size, whole)
        # One long sum brings the block into the cache at the speed of memory; products alone would wait for each row.
        read += _sum(flat[begin * columns : end * columns])
        if starts == 1:
            for r in range(begin, end, group):
                _add(samples[r : r + group], mean, vectors[0], counts, c, p, answers[0])
        else:
            for r in range(end - begin):
                x, centred = samples[begin + r], buffer[r]
                for j in range(columns):
                    centred[j] = x[j] - mean[j]
            for k in range(starts):
                for r in range(0, end - begin, group):
                    _add(view[r : r + group], nothing, vectors[k], counts, c, p, answers[k])
    if whole < len(samples):
        buffer[:group] = 0.0  # rows that are no samples add nothing
        for r in range(len(samples) - whole):
            buffer[r, :columns] = samples[whole + r] - mean
        for k in range(starts):
            _add(view[:group], nothing, vectors[k], counts, c, p, answers[k])
    return read  # else the sum would be left out


@functools.cache
def products() -> Callable[..., float]:
    """The loop for products of a matrix (n, n), n >= 4, with vectors (groups, 4, n), into answers of their shape.

    For a few vectors this is several times faster than a matrix product of BLAS.
    """
    matrix = types.Array(types.float64, 2, "C", readonly=True)
    vectors = types.Array(types.float64, 3, "C", readonly=True)
    answers = types.Array(types.float64, 3, "C")
    signature = types.float64(matrix, vectors, answers)
    return njit(signature, fastmath=FAST, nogil=True, cache=True)(_products)


def _products(matrix, vectors, answers):  # type: ignore[no-untyped-def]
    n, size, read = len(matrix), 64, 0.0
    nothing, c = np.zeros(n), np.empty((4, 4))
    for begin in range(0, n, size):
        end = min(begin + size, n)
        read += _sum(matrix[begin:end].reshape(-1))
        for k in range(len(vectors)):
            for row in range(begin, end, 4):
                r = min(row, n - 4)  # the last rows are done again rather than fewer than four
                _project_four(matrix[r : r + 4], nothing, vectors[k], c)
                answers[k, :, r : r + 4] = c
    return read


@njit(fastmath=FAST, nogil=True)
def _sum(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j]
    return total


@njit(fastmath=FAST, nogil=True)
def _add(X, mean, v, counts, c, p, s):  # type: ignore[no-untyped-def]
    """s += p(X - mean) for the rows of one group."""
    if len(v) == 1:
        _project_one(X, mean, v[0], c[0])
    else:
        _project_four(X, mean, v, c)
    for u in range(len(v)):
        p[u] = 1.0
        for w in range(len(v)):
            for _ in range(counts[w] - (u == w)):
                for i in range(c.shape[1]):
                    p[u, i] *= c[w, i]
    if len(v) == 1:
        _collect_one(X, mean, p[0], s[0])
    else:
        _collect_four(X, mean, p, s)


@njit(fastmath=FAST, nogil=True)
def _project_four(X, mean, v, c):  # type: ignore[no-untyped-def]
    """c = the products of four vectors with four rows."""
    x0, x1, x2, x3 = X[0], X[1], X[2], X[3]
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    c00 = c01 = c02 = c03 = c10 = c11 = c12 = c13 = 0.0
    c20 = c21 = c22 = c23 = c30 = c31 = c32 = c33 = 0.0
    for j in range(len(mean)):
        m = mean[j]
        a0, a1, a2, a3 = x0[j] - m, x1[j] - m, x2[j] - m, x3[j] - m
        b = v0[j]
        c00, c01, c02, c03 = c00 + a0 * b, c01 + a1 * b, c02 + a2 * b, c03 + a3 * b
        b = v1[j]
        c10, c11, c12, c13 = c10 + a0 * b, c11 + a1 * b, c12 + a2 * b, c13 + a3 * b
        b = v2[j]
        c20, c21, c22, c23 = c20 + a0 * b, c21 + a1 * b, c22 + a2 * b, c23 + a3 * b
        b = v3[j]
        c30, c31, c32, c33 = c30 + a0 * b, c31 + a1 * b, c32 + a2 * b, c33 + a3 * b
    c[0, 0], c[0, 1], c[0, 2], c[0, 3] = c00, c01, c02, c03
    c[1, 0], c[1, 1], c[1, 2], c[1, 3] = c10, c11, c12, c13
    c[2, 0], c[2, 1], c[2, 2], c[2, 3] = c20, c21, c22, c23
    c[3, 0], c[3, 1], c[3, 2], c[3, 3] = c30, c31, c32, c33


@njit(fastmath=FAST, nogil=True)
def _collect_four(X, mean, p, s):  # type: ignore[no-untyped-def]
    """s += four weights a row times four rows."""
    x0, x1, x2, x3 = X[0], X[1], X[2], X[3]
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    p00, p01, p02, p03 = p[0, 0], p[0, 1], p[0, 2], p[0, 3]
    p10, p11, p12, p13 = p[1, 0], p[1, 1], p[1, 2], p[1, 3]
    p20, p21, p22, p23 = p[2, 0], p[2, 1], p[2, 2], p[2, 3]
    p30, p31, p32, p33 = p[3, 0], p[3, 1], p[3, 2], p[3, 3]
    for j in range(len(mean)):
        m = mean[j]
        a0, a1, a2, a3 = x0[j] - m, x1[j] - m, x2[j] - m, x3[j] - m
        s0[j] += (p00 * a0 + p01 * a1) + (p02 * a2 + p03 * a3)
        s1[j] += (p10 * a0 + p11 * a1) + (p12 * a2 + p13 * a3)
        s2[j] += (p20 * a0 + p21 * a1) + (p22 * a2 + p23 * a3)
        s3[j] += (p30 * a0 + p31 * a1) + (p32 * a2 + p33 * a3)


@njit(fastmath=FAST, nogil=True)
def _project_one(X, mean, v, c):  # type: ignore[no-untyped-def]
    """c = the products of one vector with eight rows."""
    x0, x1, x2, x3, x4, x5, x6, x7 = X[0], X[1], X[2], X[3], X[4], X[5], X[6], X[7]
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = 0.0
    for j in range(len(mean)):
        m, b = mean[j], v[j]
        c0, c1 = c0 + (x0[j] - m) * b, c1 + (x1[j] - m) * b
        c2, c3 = c2 + (x2[j] - m) * b, c3 + (x3[j] - m) * b
        c4, c5 = c4 + (x4[j] - m) * b, c5 + (x5[j] - m) * b
        c6, c7 = c6 + (x6[j] - m) * b, c7 + (x7[j] - m) * b
    c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7] = c0, c1, c2, c3, c4, c5, c6, c7


@njit(fastmath=FAST, nogil=True)
def _collect_one(X, mean, p, s):  # type: ignore[no-untyped-def]
    """s += one weight a row times eight rows."""
    x0, x1, x2, x3, x4, x5, x6, x7 = X[0], X[1], X[2], X[3], X[4], X[5], X[6], X[7]
    p0, p1, p2, p3, p4, p5, p6, p7 = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
    for j in range(len(mean)):
        m = mean[j]
        first = (p0 * (x0[j] - m) + p1 * (x1[j] - m)) + (p2 * (x2[j] - m) + p3 * (x3[j] - m))
        last = (p4 * (x4[j] - m) + p5 * (x5[j] - m)) + (p6 * (x6[j] - m) + p7 * (x7[j] - m))
        s[j] += first + last
