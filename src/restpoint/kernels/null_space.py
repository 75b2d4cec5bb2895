"""Soft thresholding within a null space: the prox of a separable sublinear penalty on {s : Q's = 0}.

    shrink(v) = argmin over Q's = 0 of ||s - v||^2 / 2 + sum_j max(low_j s_j, high_j s_j)

Its dual has one variable for each column of Q: with t = v - Q nu and s(nu) = t - clip(t, low, high), minimise
||s(nu)||^2 / 2, whose gradient is -Q's and whose generalised Hessian is H = Q_A'Q_A, A the rows where s is not 0. A
semismooth Newton method solves it in a few steps. Every nu proves ||s(nu)|| >= ||shrink(v)||. With d = H^-1 Q's the
point z = s - Q_A d has the zeros of s and Q'z = 0, and ||s||^2 - ||z||^2 = (Q's)'d: this tells when to stop, and that
a rough nu does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import Array
from restpoint.kernels import _shrinking_reference as reference
from restpoint.kernels import threads
from restpoint.kernels.shrinking import Shrunk, per_start, solve_ridged

# Numbers in Q from which on the compiled loops are used.
LEAST_COMPILED = 2**15
# Newton's method ends after a few steps; where it has not, the bound is sound and the point feasible all the same.
MOST_STEPS = 100
UNIT = 2.0**-52
# Of ||Q's|| / ||s||: added to H as long as it is singular, because the support of s has no more rows than Q columns.
DAMPING = 0.01
# Of ||v||, in units of the last digit: what is smaller is rounding.
FLOOR = 16.0
# Of ||z||, in units of the last digit: the ||Q'z|| that is left alone, and the one that no point may have.
FEASIBLE, INFEASIBLE = 8.0, 1e3
# Of ||s||: less than this is rounding, where few rows are left.
LEFT = 1e-6
# What ||Q_i|| times a path may miss by rounding.
SAFETY = 1.0 + 1e-9


class Trail(NamedTuple):
    """Where a solve ended: what the next one may take from it. Arrays with the starts first."""

    nu: Array
    product: Array  # Q nu, row by row as it was computed last
    when: Array  # how long the path of nu was then
    far: Array  # how long it is now
    support: Array  # the rows that H is made of
    H: Array


class NullSpace:
    """{s : Q's = 0} for Q with orthonormal columns, and what is computed from Q once."""

    def __init__(self, Q: Array) -> None:
        self.Q = Q

    @cached_property
    def rows(self) -> np.ndarray:
        """Q with its rows next to each other: a copy, if they are not."""
        return np.ascontiguousarray(self.Q)

    @cached_property
    def lengths(self) -> np.ndarray:
        """||Q_i|| and a little more."""
        squares = np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)
        return np.asarray(SAFETY * np.sqrt(squares))

    @cached_property
    def loops(self) -> tuple[Callable[..., float], Callable[..., float]]:
        """The loops over the rows: compiled where it pays."""
        if self.rows.size < LEAST_COMPILED:
            return _walk, _put_back
        from restpoint.kernels import _null_space_loops

        return _null_space_loops.loops(self.rows.dtype.name)

    def project(self, v: Array) -> Array:
        """v - Q Q'v, twice: where v is nearly orthogonal to the null space, once leaves rounding behind."""
        for _ in range(2):
            v = v - (v @ self.Q) @ self.Q.T
        return v

    def shrink(
        self,
        v: Array,
        slopes: tuple[Array, Array],
        near: Array | None = None,
        hint: Any = None,
        slack: Array = 0.0,
    ) -> Shrunk:
        """Soft thresholding of vectors ``v`` of shape (..., p) within the null space; ``slopes`` are low and high.

        ``hint`` is that of an earlier answer for vectors nearby; else ``near`` may be a point with the likely signs.
        The bound exceeds the norm of the point by ``slack`` at most; 0 asks for rounding. One step costs about one
        product with Q, less where the thresholds keep rows from being read.
        """
        if not isinstance(v, np.ndarray):
            return reference.null_space(self.Q, v, *slopes)
        batch, size = v.shape[:-1], v.shape[-1]
        flat = [per_start(a, v.shape).reshape(-1, size) for a in (v, *slopes)]
        allowed = per_start(slack, batch).reshape(-1)
        count = len(allowed)
        trail = self._copied(hint, count) if isinstance(hint, Trail) else self._blank(count)
        fresh = not isinstance(hint, Trail)
        points, bounds = np.zeros((count, size)), np.empty(count)

        def solve(first: int, every: int) -> None:
            for i in range(first, count, every):
                task = _Task(self, [a[i] for a in flat], Trail(*(a[i] for a in trail)))
                if fresh:
                    task.begin(None if near is None else near.reshape(-1, size)[i])
                bounds[i] = task.solve(allowed[i], points[i])
                trail.far[i] = task.far

        parts = min(count, threads.useful(count * self.rows.nbytes))
        threads.run([partial(solve, k, parts) for k in range(parts)])
        ended = Trail(*(a.reshape((*batch, *a.shape[1:])) for a in trail))
        return Shrunk(
            points.reshape(v.shape).astype(v.dtype, copy=False),
            bounds.reshape(batch).astype(v.dtype, copy=False),
            ended,
        )

    def _blank(self, count: int) -> Trail:
        size, columns = self.rows.shape
        return Trail(
            np.zeros((count, columns)),
            np.zeros((count, size)),
            np.zeros((count, size)),
            np.zeros(count),
            np.zeros((count, size), dtype=bool),
            np.zeros((count, columns, columns)),
        )

    def _copied(self, trail: Trail, count: int) -> Trail:
        """The trail of an earlier answer is somebody else's."""
        size, columns = self.rows.shape
        shapes = ((columns,), (size,), (size,), (), (size,), (columns, columns))
        return Trail(
            *(np.array(a).reshape(count, *shape) for a, shape in zip(trail, shapes, strict=True))
        )


class _Task:
    """One start of a solve; ``trail`` holds views that it writes to."""

    def __init__(self, space: NullSpace, given: list[np.ndarray], trail: Trail) -> None:
        self.space, self.trail = space, trail
        self.v, self.low, self.high = (np.ascontiguousarray(a, dtype=np.float64) for a in given)
        self.walk, self.put_back = space.loops
        self.s, self.y = np.empty(len(self.v)), np.empty(space.rows.shape[1])
        self.far = float(trail.far)

    def begin(self, near: np.ndarray | None) -> None:
        """Without a hint: nu by the signs of a point nearby, or by projection."""
        trail = self.trail
        self._go(-trail.nu)
        if near is None or not np.any(near):
            none = np.zeros(len(self.v))
            self._walked(none, none)  # s = v
            self._go(self.y)
            return
        signs = np.sign(near)
        held = np.where(signs > 0, self.high, np.where(signs < 0, self.low, self.v))
        self._walked(held, held)
        trail.support[:] = signs != 0
        trail.H[:] = self._gram(trail.support)
        self._go(solve_ridged(trail.H, self.y))

    def solve(self, slack: float, point: np.ndarray) -> float:
        """The bound; the point is written to ``point``."""
        scale = float(np.sqrt(self.v @ self.v))
        if not np.isfinite(scale):
            point[:], self.trail.nu[:] = np.nan, np.nan
            return np.nan
        square = self._walked(self.low, self.high)
        if not square <= scale * scale:
            # Worse than no nu; and how oracles count rounding errors rests on ||s|| <= ||v||.
            self.begin(None)
            square = self._walked(self.low, self.high)
        for step in range(MOST_STEPS):
            size = float(np.sqrt(square))
            if size <= FLOOR * UNIT * scale:
                break
            few = self._follow() <= len(self.y)
            damping = DAMPING * float(np.sqrt(self.y @ self.y)) / size if few else 0.0
            d = solve_ridged(self.trail.H, self.y, damping)
            decrease = float(self.y @ d)
            # With few rows, 0 is the only point of this support; then all of ||s|| is left open.
            left = size if few else 0.5 * decrease / size
            enough = left <= max(slack, UNIT * size) or not decrease > 0.0
            if enough or step == MOST_STEPS - 1:
                self._finish(d, point)
                break
            square = self._moved(d, decrease, square)
        return size

    def _walked(self, low: np.ndarray, high: np.ndarray) -> float:
        trail = self.trail
        return float(
            self.walk(
                self.space.rows,
                self.space.lengths,
                self.v,
                low,
                high,
                trail.nu,
                self.far,
                trail.product,
                trail.when,
                self.s,
                self.y,
            )
        )

    def _go(self, step: np.ndarray) -> None:
        self.trail.nu[:] += step
        self.far += SAFETY * float(np.sqrt(step @ step))

    def _moved(self, d: np.ndarray, decrease: float, square: float) -> float:
        """Along d: all the way if ||s||^2 falls by enough, else half of it, and so on."""
        before, a = square, 1.0
        self._go(d)
        for _ in range(20):
            square = self._walked(self.low, self.high)
            if before - square >= 2e-4 * a * decrease - 8.0 * UNIT * before:
                break
            a = 0.5 * a
            self._go(-a * d)
        return square

    def _follow(self) -> int:
        """H for the support of s, from the nearest matrix that is known: the last one, 0 or Q'Q = I; its rows."""
        support, H = self.trail.support, self.trail.H
        new = self.s != 0.0
        entered, left = np.flatnonzero(new & ~support), np.flatnonzero(support & ~new)
        count = int(np.count_nonzero(new))
        if len(entered) + len(left) > min(count, len(new) - count):
            H[:] = self._gram(new)
        else:
            for changed, sign in ((entered, 1.0), (left, -1.0)):
                if len(changed):
                    rows = self.space.rows[changed].astype(np.float64, copy=False)
                    H[:] += sign * (rows.T @ rows)
        support[:] = new
        return count

    def _gram(self, support: np.ndarray) -> np.ndarray:
        """Q_A'Q_A by the rows in the support, or by those that are not, whichever are fewer."""
        few = 2 * int(np.count_nonzero(support)) <= len(support)
        rows = self.space.rows[support if few else ~support].astype(np.float64, copy=False)
        product = rows.T @ rows
        return product if few else np.eye(len(product)) - product

    def _finish(self, d: np.ndarray, z: np.ndarray) -> None:
        """The projection of s onto the null space of the rows of its support; 0 where that is all there is."""
        z[:] = self.s
        least = 0.0
        if np.count_nonzero(self.trail.support) <= len(d):
            # Rows that depend on each other, zeros say, leave more than 0 even so.
            least, d = LEFT * float(np.sqrt(z @ z)), solve_ridged(self.trail.H, self.y)
        for _ in range(4):
            size = float(np.sqrt(self.put_back(self.space.rows, d, z, self.y)))
            outside = float(np.sqrt(self.y @ self.y))
            if outside <= FEASIBLE * UNIT * size and size > least:
                return
            d = solve_ridged(self.trail.H, self.y)
        if not (outside <= INFEASIBLE * UNIT * size and size > least):
            z[:] = 0.0


def _walk(
    Q: np.ndarray,
    lengths: np.ndarray,
    v: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    nu: np.ndarray,
    *rest: Any,
) -> float:
    """What the compiled loop of this name does, for small Q: every row is read."""
    del lengths
    _, product, _, s, y = rest
    product[:] = Q @ nu
    t = v - product
    s[:] = t - np.minimum(np.maximum(t, low), high)
    y[:] = s @ Q
    return float(s @ s)


def _put_back(Q: np.ndarray, d: np.ndarray, z: np.ndarray, y: np.ndarray) -> float:
    z[:] = np.where(z != 0.0, z - Q @ d, 0.0)
    y[:] = z @ Q
    return float(z @ z)
