r"""The ADMM of Ames and Hong, which the paper compares with in Table 2, written to be fast.

    minimise  -x'Hx / 2 + sum_i w_i |(Kx)_i|    subject to  ||x||_2 <= 1,    K'K = I

is split as Kx = y with the ball on y (||Kx|| = ||x||). With the multiplier z and the penalty parameter beta:

    y = s / max(beta, ||s||),   s = soft(beta Kx + z, w)
    x = (beta I - H)^-1 K'(beta y - z)
    z = z + beta (Kx - y)

beta > L, the largest eigenvalue of H, makes both subproblems convex; how much larger it is decides how many iterations
are needed. Everything is factored beforehand, an iteration makes no array, and nothing is tested in ``steps``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from restpoint.errors import DataError

# Up to so many rows K(beta I - H)^-1 K' is formed: one product an iteration in place of two half as large.
JOINED = 128
# Its own rule (accSDA): no stop before so many iterations.
FEWEST = 10


class End(NamedTuple):
    """Where a run ended: the point, pulled into the ball, and after how many iterations."""

    x: np.ndarray
    iterations: int
    reached: bool  # what was to be reached; False where the iterations ran out


class _Walk:
    """The arrays of a run, written in place: v = Kx, q = beta y - z (of the z before), ``y`` holds beta y."""

    def __init__(self, v: np.ndarray, beta: float) -> None:
        self.v, self.q, self.y = v, beta * v, beta * v  # z = 0
        self.z, self.t = np.empty((2, len(v)))


class AmesHong(ABC):
    """The iteration; subclasses say how Kx follows from q = beta y - z."""

    def __init__(self, weights: np.ndarray, beta: float) -> None:
        self.beta, self.weights, self._below = float(beta), weights, -weights

    @abstractmethod
    def phi(self, x: np.ndarray) -> float:
        """The objective at a point."""

    @abstractmethod
    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Kx."""

    @abstractmethod
    def solved(self, q: np.ndarray) -> np.ndarray:
        """x = (beta I - H)^-1 K'q."""

    @abstractmethod
    def applied(self, q: np.ndarray, v: np.ndarray) -> None:
        """K of that, into v."""

    def steps(self, start: np.ndarray, count: int) -> np.ndarray:
        """The point after so many iterations, with no test on the way."""
        walk = self._begun(start)
        for _ in range(count):
            self._advance(walk)
        return self._point(walk)

    def until(self, start: np.ndarray, target: float, most: int) -> End:
        """Until Phi at the point, pulled into the ball, is at most ``target``: the stop of an oracle."""
        walk = self._begun(start)
        for k in range(1, most + 1):
            self._advance(walk)
            if self._phi(walk) <= target:
                return End(self._point(walk), k, True)
        return End(self._point(walk), most, False)

    def values(self, start: np.ndarray) -> Generator[float, None, None]:
        """Phi at the point, pulled into the ball, after every iteration; without end."""
        walk = self._begun(start)
        while True:
            self._advance(walk)
            yield self._phi(walk)

    def settled(self, start: np.ndarray, tolerance: float, most: int) -> End:
        """Until its own rule holds: both residuals within sqrt(m) tolerance + tolerance times the size of the point."""
        walk = self._begun(start)
        last, absolute = np.empty_like(walk.y), math.sqrt(len(walk.y)) * tolerance
        for k in range(1, most + 1):
            last[:] = walk.y
            self._advance(walk)
            y, x = np.linalg.norm(walk.y) / self.beta, np.linalg.norm(walk.v)
            apart = np.linalg.norm(walk.v - walk.y / self.beta)
            moved = np.linalg.norm(walk.y - last)
            near = apart <= absolute + tolerance * max(x, y)
            if near and moved <= absolute + tolerance * y and k > FEWEST:
                return End(self._point(walk), k, True)
        return End(self._point(walk), most, False)

    def _begun(self, start: np.ndarray) -> _Walk:
        return _Walk(self.coefficients(start), self.beta)

    def _advance(self, walk: _Walk) -> None:
        beta, v, z, y, t, q = self.beta, walk.v, walk.z, walk.y, walk.t, walk.q
        np.multiply(v, beta, out=t)
        np.subtract(t, q, out=z)  # z + beta Kx - beta y
        np.add(t, z, out=t)
        np.minimum(t, self.weights, out=q)
        np.maximum(q, self._below, out=q)
        np.subtract(t, q, out=y)
        np.multiply(y, beta / max(beta, math.sqrt(y.dot(y))), out=y)
        np.subtract(y, z, out=q)
        self.applied(q, v)

    def _phi(self, walk: _Walk) -> float:
        """Phi at x pulled into the ball: (beta I - H)x = K'q, so that x'Hx = beta ||Kx||^2 - (Kx)'q."""
        v, square = walk.v, float(walk.v @ walk.v)
        pull = 1.0 / max(1.0, math.sqrt(square))
        form = self.beta * square - float(v @ walk.q)
        return -0.5 * pull * pull * form + pull * float(self.weights @ np.abs(v))

    def _point(self, walk: _Walk) -> np.ndarray:
        x = self.solved(walk.q)
        return x / max(1.0, float(np.linalg.norm(x)))


class Explicit(AmesHong):
    """H, n x n, and K, m x n, as matrices: the null space formed, as users of the method have it."""

    def __init__(self, H: np.ndarray, K: np.ndarray, weights: np.ndarray, beta: float) -> None:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        super().__init__(weights, beta)
        try:
            factor = cho_factor(self.beta * np.eye(len(H)) - H, lower=True)
        except LinAlgError as error:
            raise DataError(
                f"beta must exceed the largest eigenvalue of H, got {beta:.6g}: the subproblem in x has no solution"
            ) from error
        self.H, self.K, self.T = H, K, cho_solve(factor, K.T)
        self._joined = K @ self.T if len(K) <= JOINED else None
        self._half = np.empty(len(H))

    def phi(self, x: np.ndarray) -> float:
        return float(-0.5 * (x @ self.H @ x) + self.weights @ np.abs(self.K @ x))

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        return self.K @ x

    def solved(self, q: np.ndarray) -> np.ndarray:
        return self.T @ q

    def applied(self, q: np.ndarray, v: np.ndarray) -> None:
        if self._joined is not None:
            np.dot(self._joined, q, out=v)
        else:
            np.dot(self.K, np.dot(self.T, q, out=self._half), out=v)


class Thin(AmesHong):
    """H = FF' on {w in R^p : Q'w = 0} by products with F and Q alone; K = I in feature space.

    With F replaced by its projection, (beta I - FF')^-1 = (I + F (beta I - F'F)^-1 F') / beta on the null space.
    """

    def __init__(self, F: np.ndarray, Q: np.ndarray, weights: np.ndarray, beta: float) -> None:
        super().__init__(weights, beta)
        self.Q, self.F = Q, F - Q @ (Q.T @ F)
        gram = self.F.T @ self.F
        if not beta > float(np.linalg.eigvalsh(gram)[-1]):
            raise DataError(
                f"beta must exceed the largest eigenvalue of H, got {beta:.6g}: the subproblem in x has no solution"
            )
        # With q projected: (I + F C F') q / beta in two more products with factors.
        self._inner = np.linalg.inv(self.beta * np.eye(len(gram)) - gram)
        self._both = np.hstack([Q, self.F])

    def phi(self, x: np.ndarray) -> float:
        scores = x @ self.F
        return float(-0.5 * (scores @ scores) + self.weights @ np.abs(x))

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, dtype=np.float64)

    def solved(self, q: np.ndarray) -> np.ndarray:
        x = np.empty_like(q)
        self.applied(q, x)
        return x

    def applied(self, q: np.ndarray, v: np.ndarray) -> None:
        # One pass over [Q, F] each way: v = (q - Q Q'q + F C F'q) / beta, for F'(q - Q Q'q) = F'q.
        shares = q @ self._both
        k = self.Q.shape[1]
        shares[:k] *= -1.0
        shares[k:] = self._inner @ shares[k:]
        np.dot(self._both, shares, out=v)
        np.add(v, q, out=v)
        np.multiply(v, 1.0 / self.beta, out=v)
