"""Shrinking by an l1 norm of analysis coefficients: the prox of weight ||Kx||_1.

    shrink(v) = argmin of ||s - v||^2 / 2 + weight ||Ks||_1 = v - K'u

with u a minimiser of ||v - K'u||^2 / 2 over the box |u_i| <= weight (theory E36). Every u in the box proves
||v - K'u|| >= ||shrink(v)||.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from restpoint.array import Array, namespace
from restpoint.kernels import _shrinking_reference as reference
from restpoint.kernels.shrinking import Shrunk, per_start

# Powers of KK' for its largest eigenvalue, and what is added to what they find.
POWERS, MORE = 8, 1.05
# Of the largest coefficient of a point: those below it are taken for 0.
CLEAR = 1e-9


class Analysis:
    """The matrix K of analysis coefficients, and what is computed from it once."""

    def __init__(self, K: Array) -> None:
        self.K = K

    @cached_property
    def column_sums(self) -> Array:
        """sum_i |K_ij|."""
        xp = namespace(self.K)
        return xp.sum(xp.abs(self.K), axis=0)

    @property
    def deeper(self) -> float:
        """How much deeper sums over all coefficients and entries are than sums over the entries."""
        return 1.0 + self.K.shape[0] / self.K.shape[1]

    @cached_property
    def compiled(self) -> bool:
        """Whether the compiled solver applies. Small K too: it is read from its cache in the time of 50 answers."""
        return isinstance(self.K, np.ndarray)

    @cached_property
    def prepared(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """K by rows, KK', about ||K||^2 and sum_i ||K_i||, in float64: what the compiled solver asks for."""
        K = np.ascontiguousarray(self.K, dtype=np.float64)
        gram = np.ascontiguousarray(K @ K.T)
        return K, gram, _about_largest(gram), float(np.sum(np.sqrt(np.diagonal(gram))))

    def shrink(
        self,
        v: Array,
        weight: Array,
        near: Array | None = None,
        hint: Any = None,
        slack: Array = 0.0,
    ) -> Shrunk:
        """Shrunk vectors ``v`` of shape (..., n); ``weight`` is a number or has the batch shape.

        ``hint`` is that of an earlier answer for vectors nearby; else ``near`` may be a point with the likely signs of
        Ks. The bound exceeds what is proved for the point by ``slack`` at most; 0 asks for rounding.
        """
        if not self.compiled:
            return reference.box(self.K, v, weight)
        from restpoint.kernels import _box_loops

        solver, (K, gram, squared, lengths) = _box_loops.shrink(), self.prepared
        batch, size = v.shape[:-1], v.shape[-1]
        z = np.array(v, dtype=np.float64).reshape(-1, size)
        rows = z.copy()
        weights, slacks = (per_start(a, batch).reshape(-1).tolist() for a in (weight, slack))
        ends = np.array(weights)[:, None]
        # Descent ends where the slack allows it to; guesses go on to the last digit.
        begin = _box_loops.BY_DESCENT if min(slacks, default=0.0) > 0.0 else _box_loops.BY_GRADIENT
        if hint is not None:
            u = np.array(hint, dtype=np.float64).reshape(len(rows), -1)
            begin = _box_loops.BY_GRADIENT
        elif near is not None:
            seen = np.asarray(near, dtype=np.float64).reshape(rows.shape) @ K.T
            clear = np.abs(seen) > CLEAR * np.max(np.abs(seen), axis=-1, keepdims=True)
            u, begin = np.where(clear, np.copysign(ends, seen), 0.0), _box_loops.BY_ENDS
        else:
            u = rows @ K.T / squared
        np.clip(u, -ends, ends, out=u)
        bound = np.array(
            [
                solver(K, gram, squared, lengths, begin, *given)[0]
                for given in zip(rows, weights, slacks, u, z, strict=True)
            ]
        )
        return Shrunk(
            z.reshape(v.shape).astype(v.dtype, copy=False),
            bound.reshape(batch).astype(v.dtype, copy=False),
            u.reshape(*batch, -1),
        )


def _about_largest(gram: np.ndarray) -> float:
    """The largest eigenvalue of KK' by a few powers and a little more; solvers take it for a step length alone."""
    x, value = gram[int(np.argmax(np.diagonal(gram)))], 0.0
    for _ in range(POWERS):
        size = float(np.linalg.norm(x))
        if not size > 0.0:
            break
        x = gram @ (x / size)
        value = float(np.linalg.norm(x))
    return MORE * value if value > 0.0 else 1.0
