"""Sequential solvers of one row at a time, compiled, for all starts: isotonic regression and total variation."""

from __future__ import annotations

import numpy as np

from restpoint.array import Array, convert, is_array, namespace, to_host


def nonincreasing(z: Array) -> Array:
    """The nearest nonincreasing vector to every row of z, by pooling adjacent violators in O(n).

    >>> nonincreasing(np.array([1.0, 3.0, 2.0]))
    array([2., 2., 2.])
    """
    from restpoint.kernels import _row_loops

    rows, answers = _rows(z)
    _row_loops.nonincreasing()(rows, answers)
    return _back(answers, z)


def denoised(v: Array, weight: Array) -> Array:
    """argmin of ||x - v||^2 / 2 + weight sum_j |x_(j+1) - x_j| for every row; ``weight`` has the batch shape, or none.

    >>> denoised(np.array([0.0, 3.0, 3.0]), 0.5)
    array([0.5 , 2.75, 2.75])
    """
    from restpoint.kernels import _row_loops

    rows, answers = _rows(v)
    _row_loops.denoise()(rows, _numbers(weight, v, len(rows)), answers)
    return _back(answers, v)


def sorted_threshold(z: Array, profile: Array, total: Array) -> Array:
    r"""The nearest x to z with profile'x = total among nonincreasing x >= 0, for rows z nonincreasing and >= 0.

    x(tau) = max(nonincreasing(z - tau profile), 0), and profile'x(tau) is convex, decreasing and piecewise linear:
    blocks merge as tau grows, and never part. So Newton's method from tau = 0 increases to the root and ends there.
    """
    from restpoint.kernels import _row_loops

    rows, answers = _rows(z)
    profiles = _rows(namespace(z).broadcast_to(profile, z.shape))[0]
    _row_loops.sorted_threshold()(rows, profiles, _numbers(total, z, len(rows)), answers)
    return _back(answers, z)


def _rows(x: Array) -> tuple[np.ndarray, np.ndarray]:
    """The rows in float64, and as many to write to."""
    rows = np.ascontiguousarray(to_host(x), dtype=np.float64).reshape(-1, x.shape[-1])
    return rows, np.empty_like(rows)


def _numbers(value: Array, like: Array, count: int) -> np.ndarray:
    """A number for every row."""
    value = to_host(value) if is_array(value) else value
    spread = np.broadcast_to(np.asarray(value, dtype=np.float64), like.shape[:-1])
    return np.ascontiguousarray(spread).reshape(count)


def _back(rows: np.ndarray, like: Array) -> Array:
    return convert(rows.reshape(like.shape), like)
