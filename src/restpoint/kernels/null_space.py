"""Soft thresholding within a null space: the prox of a separable sublinear penalty on {s : Q's = 0}.

    shrink(v) = argmin over Q's = 0 of ||s - v||^2 / 2 + sum_j max(low_j s_j, high_j s_j)

Its dual has one variable for each column of Q: with t = v - Q nu and s(nu) = t - clip(t, low, high), minimise
||s(nu)||^2 / 2, whose gradient is -Q's and whose generalised Hessian is H = Q_A'Q_A, A the rows where s is not 0. A
semismooth Newton method solves it in a few steps. Every nu proves ||s(nu)|| >= ||shrink(v)||. With d = H^-1 Q's the
point z = s - Q_A d has the zeros of s and Q'z = 0, and ||s||^2 - ||z||^2 = (Q's)'d: this tells when to stop, and that
a rough nu does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array import Array, convert, to_host
from restpoint.kernels.shrinking import Shrunk, line_search, solve_ridged

# Newton's method ends after a few steps; where it has not, the bound is sound and the point feasible all the same.
MOST_STEPS = 60
# Of ||v||, in units of the last digit: what is smaller is rounding.
FLOOR = 16.0
# Of the mean diagonal of H: rows that determine no direction leave it singular.
RIDGE = 1e-12
# Of ||z||, in units of the last digit: the ||Q'z|| that is left alone.
FEASIBLE = 8.0


class NullSpace:
    """{s : Q's = 0} for Q with orthonormal columns, and what is computed from Q once."""

    def __init__(self, Q: Array) -> None:
        self.Q = Q

    def project(self, v: Array) -> Array:
        """v - Q Q'v, twice: where v is nearly orthogonal to the null space, once leaves rounding behind."""
        for _ in range(2):
            v = v - (v @ self.Q) @ self.Q.T
        return v

    def shrink(
        self, v: Array, low: Array, high: Array, hint: Any = None, slack: Array = 0.0
    ) -> Shrunk:
        """Soft thresholding of vectors ``v`` of shape (..., p) within the null space.

        ``hint`` is that of an earlier answer for vectors nearby. The bound may exceed the norm of the point by
        ``slack``; 0 asks for rounding. One step costs about one product with Q.
        """
        batch, size = v.shape[:-1], v.shape[-1]
        Q = to_host(self.Q)
        rows = to_host(v).reshape(-1, size)
        lows, highs = (
            np.broadcast_to(to_host(a) if hasattr(a, "shape") else a, v.shape).reshape(rows.shape)
            for a in (low, high)
        )
        slacks = np.broadcast_to(to_host(slack) if hasattr(slack, "shape") else slack, batch)
        starts = [None] * len(rows) if hint is None else to_host(hint).reshape(len(rows), -1)
        found = [
            _shrink_one(Q, row, (lo, hi), start, float(allowed))
            for row, lo, hi, start, allowed in zip(
                rows, lows, highs, starts, slacks.reshape(-1), strict=True
            )
        ]
        point, bound, nu = (np.stack(part) for part in zip(*found, strict=True))
        return Shrunk(
            convert(point.reshape(v.shape), v),
            convert(bound.reshape(batch), v),
            convert(nu.reshape(*batch, -1), v),
        )


def _shrink_one(
    Q: np.ndarray,
    v: np.ndarray,
    slopes: tuple[np.ndarray, np.ndarray],
    nu: np.ndarray | None,
    slack: float,
) -> tuple[np.ndarray, float, np.ndarray]:
    unit, scale = float(np.finfo(v.dtype).eps), float(np.sqrt(v @ v))
    if nu is None:
        nu = v @ Q
    if not np.isfinite(scale):
        return np.full_like(v, np.nan), np.nan, np.full_like(nu, np.nan)
    t = v - Q @ nu
    s, size = _soft(t, slopes)
    for _ in range(MOST_STEPS):
        if size <= FLOOR * unit * scale:
            return np.zeros_like(v), size, nu
        A = np.flatnonzero(s)
        rows = Q[A]
        y = (s[A] @ rows).astype(np.float64)
        H = (rows.T @ rows).astype(np.float64)
        d = solve_ridged(H, y, RIDGE)
        decrease = float(y @ d)
        if decrease <= 2.0 * size * max(slack, unit * size):
            break
        nu, t, s, size = _moved(Q, (nu, t, s, size), d.astype(v.dtype), decrease, slopes)
    z = np.zeros_like(v)
    z[A] = _put_back(rows, s[A], H, d, unit)
    return z, size, nu


def _soft(t: np.ndarray, slopes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, float]:
    s = t - np.minimum(np.maximum(t, slopes[0]), slopes[1])
    return s, float(np.sqrt(s @ s))


def _moved(Q: np.ndarray, at: Any, d: np.ndarray, decrease: float, slopes: Any) -> Any:
    """Along d: all the way if ||s||^2 falls by enough, else to the minimum on the way."""
    nu, t, _, size = at
    there = nu + d
    t_new = t - Q @ d
    s_new, size_new = _soft(t_new, slopes)
    slackened = 8.0 * float(np.finfo(t.dtype).eps) * size * size
    if size * size - size_new * size_new >= 2e-4 * decrease - slackened:
        return there, t_new, s_new, size_new
    change = t_new - t
    a = line_search(lambda a: float(change @ _soft(t + a * change, slopes)[0]))
    t_new = t + a * change
    return (nu + a * d, t_new, *_soft(t_new, slopes))


def _put_back(
    rows: np.ndarray, s: np.ndarray, H: np.ndarray, d: np.ndarray, unit: float
) -> np.ndarray:
    """The projection of s onto the null space of the rows of its support; 0 where that is all there is."""
    if len(s) <= rows.shape[1]:
        return np.zeros_like(s)
    z = s - rows @ d.astype(s.dtype)
    for _ in range(3):
        y = z @ rows
        if float(y @ y) <= (FEASIBLE * unit) ** 2 * float(z @ z):
            return z
        z = z - rows @ solve_ridged(H, y.astype(np.float64), RIDGE).astype(s.dtype)
    return z if float(np.sqrt(y @ y)) <= 1e3 * unit * float(np.sqrt(z @ z)) else np.zeros_like(s)
