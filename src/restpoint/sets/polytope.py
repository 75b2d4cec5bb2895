"""Polytopes by inequalities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from restpoint.array import (
    Array,
    asarray,
    convert,
    gamma,
    is_array,
    namespace,
    norm,
    scaled_norm,
    to_host,
)
from restpoint.errors import DataError, EvaluationError, ShapeError
from restpoint.sets._by_oracle import OracleSet, value


@dataclass(frozen=True)
class Polytope(OracleSet):
    r"""S = {x : least <= A x <= most, lower <= x <= upper} for an m x n matrix A.

    ``lower`` and ``upper`` (numbers, or one per entry) must be finite: they make S compact, and the bounds sound.
    ``most`` and ``least`` (numbers, or one per row) may be infinite, and equal where an equation is meant. NumPy, the
    same for all starts, not copied. The linear oracle is a linear program for each start (HiGHS, through SciPy). Its
    lower bound is made from the dual solution mu alone, whatever that is: g'y >= min over least <= r <= most of mu'r,
    plus the minimum of (g - A'mu)'y over the box (theory A2). diam_p(S) <= ||upper - lower||_p.

    >>> half = Polytope([[1.0, 1.0]], most=1.0, lower=0.0, upper=1.0)
    >>> half.extreme(np.array([-1.0, -2.0]))
    array([0., 1.])
    """

    exact = False

    A: Array
    most: Array = np.inf
    least: Array = -np.inf
    lower: Any = field(kw_only=True)
    upper: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        A = np.asarray(to_host(asarray("A", self.A)), dtype=np.float64)
        if A.ndim != 2 or 0 in A.shape:
            raise ShapeError(f"A has shape {A.shape}; expected a matrix, (inequalities, entries)")
        object.__setattr__(self, "A", A)
        for name, count in (("most", 0), ("least", 0), ("lower", 1), ("upper", 1)):
            object.__setattr__(self, name, _spread(name, getattr(self, name), A.shape[count], A))
        if not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            raise DataError(
                "lower and upper must be finite: the set must be compact; give the largest values that can matter"
            )
        if np.any(self.lower > self.upper) or np.any(self.least > self.most):
            raise DataError("the polytope is empty: lower <= upper and least <= most must hold")
        self._solve(np.zeros(A.shape[1]))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != self.A.shape[1:]:
            raise ShapeError(
                f"Polytope: A has {self.A.shape[1]} columns, but the block has event shape {tuple(shape)}"
            )

    def minimisers(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        solved = [self._solve(row) for row in g]
        points = np.stack([point for point, _ in solved]) if solved else np.zeros_like(g)
        mu = np.stack([dual for _, dual in solved]) if solved else np.zeros((0, len(self.A)))
        # A multiplier of a side that is not there counts for nothing.
        mu = np.where(np.isinf(self.most), np.maximum(mu, 0.0), mu)
        mu = np.where(np.isinf(self.least), np.minimum(mu, 0.0), mu)
        sides = np.where(mu > 0.0, self.least, np.where(mu < 0.0, self.most, 0.0))
        rest = g - mu @ self.A
        inner = np.minimum(rest * self.lower, rest * self.upper)
        lower = np.sum(mu * sides, axis=-1) + np.sum(inner, axis=-1)
        # Multipliers may be large beside g: the rounding of these very sums is taken off (theory A12).
        terms = np.sum(np.abs(mu * sides), axis=-1)
        terms = terms + (np.abs(g) + np.abs(mu) @ np.abs(self.A)) @ self._largest()
        lower = lower - 1.001 * gamma(sum(self.A.shape) + 8) * terms
        return points, np.minimum(lower, value(g, points))

    def absolute_support(self, a: Array) -> Array:
        """That of the box."""
        return namespace(a).sum(a * self._like(self._largest(), a), axis=-1)

    def violation(self, x: Array) -> Array:
        """The largest distance from one of the half-spaces: not above that from S."""
        xp = namespace(x)
        host = np.asarray(to_host(x), dtype=np.float64)
        lengths = np.sqrt(np.sum(self.A * self.A, axis=-1))
        rows = host @ self.A.T
        beyond = np.maximum(rows - self.most, self.least - rows) / np.where(lengths > 0, lengths, 1)
        box = np.maximum(host - self.upper, self.lower - host)
        worst = np.maximum(np.max(beyond, axis=-1), np.max(box, axis=-1))
        return xp.maximum(self._like(worst, x), 0.0)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return float(scaled_norm(self.upper - self.lower, p))

    def reach(self, z: Array, p: float) -> Array:
        return self.diameter(p, ()) + 0.0 * norm(z)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return float(scaled_norm(self._largest()))

    def _largest(self) -> np.ndarray:
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    def _solve(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A minimiser of g'y, put back into the box, and the multipliers of the rows."""
        from scipy.optimize import linprog

        # Scaled, because the tolerances of the solver are absolute.
        scale = float(np.max(np.abs(g)))
        above, below = np.isfinite(self.most), np.isfinite(self.least)
        rows = np.concatenate([self.A[above], -self.A[below]])
        sides = np.concatenate([self.most[above], -self.least[below]])
        bounds = np.stack([self.lower, self.upper], axis=-1)
        found = linprog(g / (scale or 1.0), rows, sides, bounds=bounds, method="highs")
        if found.status == 2:
            raise DataError(
                "the polytope is empty: no x satisfies least <= A x <= most and lower <= x <= upper"
            )
        if found.x is None:
            raise EvaluationError(f"HiGHS found no answer: {found.message}")
        marginals = np.zeros(len(sides)) if not len(sides) else np.asarray(found.ineqlin.marginals)
        mu = np.zeros(len(self.A))
        mu[above] += marginals[: int(above.sum())]
        mu[below] -= marginals[int(above.sum()) :]
        return np.clip(found.x, self.lower, self.upper), mu * scale

    def _like(self, values: np.ndarray, like: Array) -> Array:
        return convert(np.asarray(values), like)


def _spread(name: str, given: Any, count: int, A: np.ndarray) -> np.ndarray:
    """One number for each row or column."""
    numbers = np.asarray(to_host(given) if is_array(given) else given, dtype=np.float64)
    if np.any(np.isnan(numbers)):
        raise DataError(f"{name} contains NaN")
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != count):
        raise ShapeError(
            f"{name} has shape {numbers.shape}, but A has shape {A.shape}: expected a number, or ({count},)"
        )
    return np.array(np.broadcast_to(numbers, (count,)))
