"""The shrinking problems in array API code: what the compiled solvers are tested against, for every other library.

All starts at once, every step for all of them; sets of rows are masks.
"""

from __future__ import annotations

from typing import Any

from restpoint.array import Array, expand, namespace, norm
from restpoint.kernels.shrinking import Shrunk

NEWTON_STEPS, INTERIOR_STEPS, HOLDS = 30, 30, 4
LENGTHS = (1.0, 0.5, 0.25, 0.125, 0.03, 0.005)
RIDGE = 64.0  # in units of the last digit


def null_space(Q: Array, v: Array, low: Array, high: Array) -> Shrunk:
    """Soft thresholding within {s : Q's = 0} by a semismooth Newton method, see ``null_space.NullSpace``."""
    xp, columns = namespace(v), Q.shape[1]
    unit = float(xp.finfo(v.dtype).eps)

    def soft(nu: Array) -> Array:
        t = v - nu @ Q.T
        return t - xp.minimum(xp.maximum(t, low), high)

    def newton(s: Array, y: Array) -> Array:
        mask = xp.astype(s != 0, v.dtype)
        return _solved(xp, xp.matmul(Q.T * mask[..., None, :], Q), y, unit)

    nu = v @ Q
    if columns:
        for _ in range(NEWTON_STEPS):
            s = soft(nu)
            d, least, length = newton(s, s @ Q), norm(s), 0.0 * norm(s)
            for a in LENGTHS:
                size = norm(soft(nu + a * d))
                length, least = xp.where(size < least, a, length), xp.minimum(size, least)
            nu = nu + expand(length) * d
    s = soft(nu)
    z, bound = s, norm(s)
    if columns:
        for _ in range(4):
            z = xp.where(s == 0, 0.0 * z, z - newton(s, z @ Q) @ Q.T)
    kept = bound > 16.0 * unit * norm(v)
    kept = kept & (norm(z @ Q) <= 1e3 * unit * norm(z))
    return Shrunk(xp.where(expand(kept), z, 0.0 * z), bound, nu)


def box(K: Array, v: Array, weight: Array) -> Shrunk:
    """v - K'u with u in the box |u_i| <= weight and ||v - K'u|| least, see ``analysis.Analysis``."""
    xp = namespace(v)
    unit = float(xp.finfo(v.dtype).eps)
    t = expand(weight + 0.0 * norm(v))
    u, free = _interior(xp, K, v, xp.where(t > 0, t, xp.ones_like(t)), unit)
    u, free = xp.where(t > 0, u, 0.0 * u), free & (t > 0)
    side = xp.where(u > 0, t, -t)
    z = v - u @ K
    for _ in range(HOLDS):
        tried, free, side = _held(K, v, t, (u, free, side))
        z_tried = v - tried @ K
        better = expand(norm(z_tried) <= norm(z))
        u, z = xp.where(better, tried, u), xp.where(better, z_tried, z)
    bound = norm(z)
    zero = expand(bound <= 16.0 * unit * norm(v))
    return Shrunk(xp.where(zero, 0.0 * z, z), bound, u)


def _held(K: Array, v: Array, t: Array, at: tuple[Array, ...]) -> tuple[Array, ...]:
    """u for the rows held free, clipped to the box, and the sets that it shows."""
    xp, (u, free, side) = namespace(v), at
    mask, unit = xp.astype(free, v.dtype), float(xp.finfo(v.dtype).eps)
    u = xp.where(free, u, side)
    H = (K @ K.T) * mask[..., :, None] * mask[..., None, :]
    H = H + _diagonal(xp, 1.0 - mask)
    for _ in range(3):
        u = u + mask * _solved(xp, H, mask * ((v - u @ K) @ K.T), unit)
    w = (v - u @ K) @ K.T
    new = xp.where(free, xp.abs(u) < t, side * w <= 0)
    side = xp.where(free, xp.where(u > 0, t, -t), side)
    return xp.minimum(xp.maximum(u, -t), t), new, side


def _interior(xp: Any, K: Array, v: Array, t: Array, unit: float) -> tuple[Array, Array]:
    """u within the box by a predictor-corrector method, and the rows that it holds to be free."""
    eye = xp.eye(K.shape[1], dtype=v.dtype, device=v.device)
    w = v @ K.T
    u = 0.0 * w
    size = xp.mean(xp.abs(w), axis=-1, keepdims=True)
    largest = xp.max(xp.abs(w), axis=-1, keepdims=True)
    spread = 1e-2 * xp.where(size > 0, size, xp.ones_like(size))
    upper, lower = xp.maximum(w, 0.0) + spread, xp.maximum(-w, 0.0) + spread
    # Where all multipliers vanish, the answer is 0, and M would be singular.
    most = 1e-3 / (unit * xp.max(xp.sum(K * K, axis=-1)))
    enough = unit * t * xp.mean(upper + lower, axis=-1, keepdims=True)
    for _ in range(INTERIOR_STEPS):
        a, b = (xp.maximum(side, 1e-3 * unit * t) for side in (t - u, t + u))
        inverse = xp.minimum(1.0 / (upper / a + lower / b), most)
        M = xp.matmul(K.T * inverse[..., None, :], K) + eye

        def direction(right: Array, inverse: Array = inverse, M: Array = M) -> Array:
            y = xp.linalg.solve(M, ((inverse * right) @ K)[..., None])[..., 0]
            return inverse * (right - y @ K.T)

        mean = xp.mean(upper * a + lower * b, axis=-1, keepdims=True) / 2.0
        du = direction(w)
        up, down = upper * (du / a - 1.0), -lower * (du / b + 1.0)
        s = _longest(xp, (a, b, upper, lower), (-du, du, up, down))
        ahead = (upper + s * up) * (a - s * du) + (lower + s * down) * (b + s * du)
        centring = mean * (xp.mean(ahead, axis=-1, keepdims=True) / (2.0 * mean)) ** 3
        above, below = centring + du * up, centring - du * down
        du = direction(w - above / a + below / b)
        up, down = (above + upper * du) / a - upper, (below - lower * du) / b - lower
        s = 0.995 * _longest(xp, (a, b, upper, lower), (-du, du, up, down))
        # Where rounding is reached, further steps would only divide by numbers that are too small.
        s = xp.where(mean > enough, s, 0.0 * s)
        u, upper, lower = u + s * du, upper + s * up, lower + s * down
        w = (v - u @ K) @ K.T
    return u, xp.minimum(t - u, t + u) * largest > xp.maximum(upper, lower) * t


def _longest(xp: Any, values: tuple[Array, ...], steps: tuple[Array, ...]) -> Array:
    """The longest step, at most 1, that keeps all values positive."""
    longest = 1.0 + 0.0 * values[0][..., :1]
    for value, step in zip(values, steps, strict=True):
        falls = step < 0
        ratio = xp.where(falls, -value / xp.where(falls, step, -1.0), 1.0)
        longest = xp.minimum(longest, xp.min(ratio, axis=-1, keepdims=True))
    return longest


def _solved(xp: Any, matrix: Array, right: Array, unit: float) -> Array:
    """matrix^-1 right, with a ridge in units of rounding."""
    size = matrix.shape[-1]
    eye = xp.eye(size, dtype=matrix.dtype, device=matrix.device)
    mean = xp.sum(matrix * eye, axis=(-2, -1)) / size
    shift = xp.where(mean > 0, RIDGE * unit * mean, xp.ones_like(mean))
    return xp.linalg.solve(matrix + shift[..., None, None] * eye, right[..., None])[..., 0]


def _diagonal(xp: Any, values: Array) -> Array:
    return values[..., None] * xp.eye(values.shape[-1], dtype=values.dtype, device=values.device)
