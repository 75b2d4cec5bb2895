"""Shrinking by an l1 norm of analysis coefficients: the prox of weight ||Kx||_1.

    shrink(v) = argmin of ||s - v||^2 / 2 + weight ||Ks||_1 = v - K'u

with u a minimiser of ||v - K'u||^2 / 2 over the box |u| <= weight. At a solution u_i = weight sgn((Ks)_i) where
(Ks)_i is not 0; a guess of the other rows F determines u by K_F s = 0. Newton's method guesses them from u + Ks
(a primal-dual active set), and where that does not lower the objective, steps along the projected Newton direction.
Every u in the box proves ||v - K'u|| >= ||shrink(v)||.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from restpoint.array import Array, convert, namespace, to_host
from restpoint.kernels.shrinking import Shrunk, solve_ridged

MOST_STEPS = 60
# Of ||v||, in units of the last digit: what is smaller is rounding.
FLOOR = 16.0
RIDGE = 1e-13


class Analysis:
    """The matrix K of analysis coefficients, and what is computed from it once."""

    def __init__(self, K: Array) -> None:
        self.K = K

    @cached_property
    def gram(self) -> np.ndarray:
        """KK', from which the Newton matrices are taken."""
        K = to_host(self.K).astype(np.float64, copy=False)
        return K @ K.T

    @cached_property
    def column_sums(self) -> Array:
        """sum_i |K_ij|."""
        xp = namespace(self.K)
        return xp.sum(xp.abs(self.K), axis=0)

    def shrink(self, v: Array, weight: Array, hint: Any = None, slack: Array = 0.0) -> Shrunk:
        """Shrunk vectors ``v`` of shape (..., n); ``weight`` is a number or has the batch shape.

        ``hint`` is that of an earlier answer for vectors nearby. The bound may exceed what is proved for the point by
        ``slack``; 0 asks for rounding.
        """
        batch, size = v.shape[:-1], v.shape[-1]
        rows = to_host(v).reshape(-1, size)
        weights, slacks = (
            np.broadcast_to(to_host(a) if hasattr(a, "shape") else a, batch).reshape(-1)
            for a in (weight, slack)
        )
        starts = [None] * len(rows) if hint is None else to_host(hint).reshape(len(rows), -1)
        found = [
            self._shrink_one(row, float(w), start, float(allowed))
            for row, w, start, allowed in zip(rows, weights, starts, slacks, strict=True)
        ]
        point, bound, u = (np.stack(part) for part in zip(*found, strict=True))
        return Shrunk(
            convert(point.reshape(v.shape), v),
            convert(bound.reshape(batch), v),
            convert(u.reshape(*batch, -1), v),
        )

    def _shrink_one(
        self, v: np.ndarray, weight: float, u: np.ndarray | None, slack: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        K, unit, scale = to_host(self.K), float(np.finfo(v.dtype).eps), float(np.sqrt(v @ v))
        u = np.clip(K @ v if u is None else u, -weight, weight)
        if not np.isfinite(scale):
            return np.full_like(v, np.nan), np.nan, np.full_like(u, np.nan)
        z, size = _rest(K, v, u)
        for _ in range(MOST_STEPS):
            if size <= FLOOR * unit * scale:
                return np.zeros_like(v), size, u
            w = K @ z
            gap = weight * float(np.sum(np.abs(w))) - float(u @ w)
            if gap <= size * max(slack, 4.0 * unit * scale):
                break
            moved = self._guess(v, u, w, weight, size) or self._step(v, u, w, weight, size)
            if moved is None:
                break
            u, z, size = moved
        return z, size, u

    def _guess(
        self, v: np.ndarray, u: np.ndarray, w: np.ndarray, weight: float, size: float
    ) -> Any:
        """The primal-dual active set step, if it lowers ||v - K'u||."""
        K, ends = to_host(self.K), u + w
        free = np.abs(ends) < weight
        new = np.where(free, u, np.copysign(weight, ends))
        F = np.flatnonzero(free)
        if len(F):
            rest = v - new @ K
            right = (K[F] @ rest).astype(np.float64)
            new[F] += solve_ridged(self.gram[np.ix_(F, F)], right, RIDGE)
            new = np.clip(new, -weight, weight)
        z, found = _rest(K, v, new)
        return (new, z, found) if found < size else None

    def _step(self, v: np.ndarray, u: np.ndarray, w: np.ndarray, weight: float, size: float) -> Any:
        """A projected Newton step, shortened until the objective falls by enough."""
        K = to_host(self.K)
        F = np.flatnonzero(~(((u >= weight) & (w > 0)) | ((u <= -weight) & (w < 0))))
        d = np.zeros_like(u)
        if len(F):
            d[F] = solve_ridged(self.gram[np.ix_(F, F)], w[F].astype(np.float64), 1e-8)
        for a in 0.5 ** np.arange(30):
            new = np.clip(u + a * d, -weight, weight)
            z, found = _rest(K, v, new)
            if size * size - found * found >= 2e-4 * float(w @ (new - u)) and found < size:
                return new, z, found
        return None


def _rest(K: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
    z = v - u @ K
    return z, float(np.sqrt(z @ z))
