"""The multiplier of one linear constraint, by sorting: what projections onto simplices and l1 balls come down to."""

from __future__ import annotations

from restpoint.array import Array, is_array, namespace

# Newton's steps after the search: the first ends on the segment that was found, the others remove its rounding.
NEWTON_STEPS = 3


def shifted_to_total(
    v: Array, total: Array, weights: Array = 1.0, upper: Array | None = None
) -> Array:
    r"""x_j = min(max(v_j - tau a_j, 0), u_j) with tau such that sum_j a_j x_j = total: the nearest such x to v.

    ``v`` has shape (..., n), ``total`` is a number or has its leading axes, ``weights`` a > 0 and ``upper`` u are
    numbers or broadcast against v; a total between 0 and a'u is taken for granted. Optimality condition of minimising
    ||x - v||_2 over {0 <= x <= u, a'x = total}: a'x(tau) is nonincreasing, and linear between the breakpoints v_j/a_j
    and (v_j - u_j)/a_j. They are sorted and searched by halving, so that no sum ever mixes large entries with small
    ones. O(n log n).

    >>> import numpy as np
    >>> shifted_to_total(np.array([0.5, 2.0, -1.0]), 1.5, upper=1.0)
    array([0.5, 1. , 0. ])
    """
    xp = namespace(v)
    total = total[..., None] if is_array(total) else total
    tau, middle = _segment(v, total, weights, upper)
    between, moved = v - middle * weights, v - tau * weights
    free = between > 0 if upper is None else (between > 0) & (between < upper)
    for _ in range(NEWTON_STEPS):
        excess = _sum(moved, weights, upper) - total
        rate = xp.sum(xp.where(free, weights * weights + 0.0 * v, 0.0 * v), axis=-1, keepdims=True)
        moves = rate > 0
        moved = moved - xp.where(moves, excess / xp.where(moves, rate, 1.0), 0.0 * rate) * weights
        free = moved > 0 if upper is None else (moved > 0) & (moved < upper)
    return _clipped(moved, upper)


def _clipped(x: Array, upper: Array | None) -> Array:
    xp = namespace(x)
    x = xp.maximum(x, 0.0)
    return x if upper is None else xp.minimum(x, upper + 0.0 * x)


def _sum(moved: Array, weights: Array, upper: Array | None) -> Array:
    return namespace(moved).sum(weights * _clipped(moved, upper), axis=-1, keepdims=True)


def _segment(v: Array, total: Array, weights: Array, upper: Array | None) -> tuple[Array, Array]:
    """The largest breakpoint at which the sum is at least ``total``, and the middle between it and the next one.

    If the sum is smaller at all of them, the smallest, and what is below it.
    """
    xp = namespace(v)
    breaks = v / weights
    if upper is not None:
        breaks = xp.concat([breaks, (v - upper) / weights], axis=-1)
    breaks = xp.sort(breaks, axis=-1)
    count = breaks.shape[-1]
    low = xp.astype(0.0 * v[..., :1] == 1.0, xp.int64)  # 0, with the shape of one number per start
    high = low + (count - 1)
    for _ in range(max(1, (count - 1).bit_length())):
        middle = (low + high + 1) // 2
        tau = xp.take_along_axis(breaks, middle, axis=-1)
        enough = _sum(v - tau * weights, weights, upper) >= total
        low, high = xp.where(enough, middle, low), xp.where(enough, high, middle - 1)
        high = xp.maximum(low, high)
    tau = xp.take_along_axis(breaks, low, axis=-1)
    after = xp.take_along_axis(breaks, xp.minimum(low + 1, count - 1 + 0 * low), axis=-1)
    below = _sum(v - tau * weights, weights, upper) < total
    return tau, xp.where(below, tau - 1.0 - xp.abs(tau), tau + 0.5 * (after - tau))
