"""Where discriminant vectors live: within-class variance zero, or bounded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restpoint.array import require_memory
from restpoint.models.discriminant.direction import Separation
from restpoint.models.discriminant.scatter import Scatter
from restpoint.penalties import L1, AnalysisL1
from restpoint.problem import Block, Problem
from restpoint.sets import L2Ball, NullSpaceBall
from restpoint.smooth import ConcaveQuadratic

# An entry of w below this share of the largest is 0 where zeros come out of an iteration.
ZERO = 1e-9
# A separation of this share of what it was before the constraint is rounding.
ROUNDING = 1e-12


class Space(ABC):
    r"""minimise -w'FF'w / 2 + gamma sum_j sigma_j |w_j| over a convex set of w.

    f is concave: full steps, Corollary 3.2.
    """

    @abstractmethod
    def block(self, weight: float | np.ndarray) -> Block:
        """The set and weight times the penalty, in the space's own variable x."""

    def problem(self, gamma: float | np.ndarray) -> Problem:
        """The problem in x."""
        return Problem(ConcaveQuadratic(self.factor), self.block(gamma))

    def search(self, weight: float | np.ndarray) -> Problem:
        """Minimise -||F'x|| + weight S(x): the same stationary points, none of them lost to 0 (``Separation``)."""
        return Problem(Separation(self.factor), self.block(weight))

    @abstractmethod
    def vector(self, x: np.ndarray) -> np.ndarray:
        """W of x, for each row; zeros exact."""

    @abstractmethod
    def inward(self, w: np.ndarray) -> np.ndarray:
        """The x that comes closest to w, for each row."""

    @abstractmethod
    def settled(self, x: np.ndarray) -> np.ndarray:
        """The x whose w has exact zeros."""

    @abstractmethod
    def without(self, x: np.ndarray) -> Space:
        """The same for the next component, orthogonal to x."""

    @property
    @abstractmethod
    def factor(self) -> np.ndarray:
        """F in the own variable: f(x) = -||F'x||^2 / 2."""

    @abstractmethod
    def kept(self, x: np.ndarray) -> np.ndarray:
        """Rows of x, brought into the space and to length 1 where they are not 0."""

    def penalty(self, x: np.ndarray) -> np.ndarray:
        """Sum_j sigma_j |w_j| for each row."""
        return np.abs(self.vector(x)) @ self.sigma

    @property
    @abstractmethod
    def sigma(self) -> np.ndarray:
        """The weights of the features."""

    def separation(self, x: np.ndarray) -> np.ndarray:
        """||F'x|| for each row."""
        return np.linalg.norm(x @ self.factor, axis=-1)

    def steepness(self, x: np.ndarray) -> np.ndarray:
        """The gradient of -||F'x|| for each row, 0 where F'x = 0."""
        return Separation(self.factor).value_and_gradient((x,))[1][0]

    def starts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Leading directions between the classes, contrasts of one class with the others, and mixtures of these."""
        contrasts = self.kept(self.factor.T)
        mixed = self.kept(rng.standard_normal((count, len(contrasts))) @ contrasts)
        rows = np.concatenate([self._leading(), contrasts, mixed])
        return rows[np.any(rows != 0, axis=1)][:count]

    def _leading(self) -> np.ndarray:
        """Right singular vectors of F' within the space, largest first."""
        inside = self.projected(self.factor.T)
        _, size, directions = np.linalg.svd(inside, full_matrices=False)
        return directions[size > 1e-10 * max(float(size[0]), 1e-300)]

    @abstractmethod
    def projected(self, x: np.ndarray) -> np.ndarray:
        """Rows projected onto the subspace."""

    @cached_property
    def strongest(self) -> float:
        """The largest of ||F'x||; 0 where that is rounding of what the constraint takes away."""
        if not self.factor.size:
            return 0.0
        found = float(np.linalg.norm(self.projected(self.factor.T), 2))
        return found if found > ROUNDING * self.scale else 0.0

    @cached_property
    def scale(self) -> float:
        """||F||."""
        return float(np.linalg.norm(self.factor))


@dataclass(frozen=True)
class ZeroVariance(Space):
    """{w : Q'w = 0, ||w|| <= 1}: no variance within classes. x = w."""

    Q: np.ndarray
    F: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, scatter: Scatter, sigma: np.ndarray, orthogonal_to: np.ndarray | None
    ) -> ZeroVariance:
        """Columns that w is to be orthogonal to join Q."""
        Q = scatter.rows
        if orthogonal_to is not None:
            from restpoint.kernels.orthonormal import column_basis

            Q = np.asarray(column_basis(np.concatenate([Q, orthogonal_to], axis=1)))
        return cls(Q, scatter.between, sigma)

    @cached_property
    def ball(self) -> NullSpaceBall:
        """The set."""
        return NullSpaceBall(self.Q)

    @property
    def sigma(self) -> np.ndarray:
        return self.weights

    @property
    def factor(self) -> np.ndarray:
        return self.F

    def block(self, weight: float | np.ndarray) -> Block:
        return Block(self.ball, L1(weight, scales=self.weights))

    def vector(self, x: np.ndarray) -> np.ndarray:
        return x

    def inward(self, w: np.ndarray) -> np.ndarray:
        return w

    def settled(self, x: np.ndarray) -> np.ndarray:
        return x

    def projected(self, x: np.ndarray) -> np.ndarray:
        return x - (x @ self.Q) @ self.Q.T

    def kept(self, x: np.ndarray) -> np.ndarray:
        return _unit(self.projected(self.projected(x)), x)

    def without(self, x: np.ndarray) -> ZeroVariance:
        column = self.projected(x)
        column = column / np.linalg.norm(column)
        return ZeroVariance(np.column_stack([self.Q, column]), self.F, self.weights)


@dataclass(frozen=True)
class BoundedVariance(Space):
    r"""{w : w'S w <= 1}, S = (1 - s) W + s (tr W / p) I with W the covariance within classes: x = S^(1/2) w.

    For p below about the number of samples, where W has no null space. ``root`` is S^(-1/2), ``C`` an orthonormal
    basis of what earlier components leave: w = root C x.
    """

    root: np.ndarray
    C: np.ndarray
    F: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, scatter: Scatter, sigma: np.ndarray, shrinkage: float) -> BoundedVariance:
        """By one p x p eigenvalue problem."""
        p = scatter.size
        require_memory(4 * 8 * p * p, f"within-class covariances of {p} features")
        freedom = max(1, len(scatter.code) - len(scatter.counts))
        W = scatter.within @ scatter.within.T / freedom
        mean = float(np.trace(W)) / p
        values, U = np.linalg.eigh((1.0 - shrinkage) * W + shrinkage * (mean or 1.0) * np.eye(p))
        values = np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300))
        root = (U / np.sqrt(values)) @ U.T
        return cls(root, np.eye(p), scatter.between, sigma)

    @cached_property
    def map(self) -> np.ndarray:
        """From x to w."""
        return self.root @ self.C

    @property
    def sigma(self) -> np.ndarray:
        return self.weights

    @cached_property
    def _factor(self) -> np.ndarray:
        return np.ascontiguousarray(self.map.T @ self.F)

    @property
    def factor(self) -> np.ndarray:
        return self._factor

    @cached_property
    def analysis(self) -> AnalysisL1:
        """The penalty of weight 1 in x."""
        return AnalysisL1(np.ascontiguousarray(self.weights[:, None] * self.map), 1.0)

    def block(self, weight: float | np.ndarray) -> Block:
        return Block(L2Ball(1.0), self.analysis.scaled(weight))

    def vector(self, x: np.ndarray) -> np.ndarray:
        w = x @ self.map.T
        largest = np.max(np.abs(w), axis=-1, keepdims=True)
        return np.where(np.abs(w) > ZERO * largest, w, 0.0)

    def inward(self, w: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.lstsq(self.map, w.T, rcond=None)[0].T)

    def settled(self, x: np.ndarray) -> np.ndarray:
        back = self.inward(self.vector(x))
        return back / np.maximum(1.0, np.linalg.norm(back, axis=-1, keepdims=True))

    def projected(self, x: np.ndarray) -> np.ndarray:
        return x

    def kept(self, x: np.ndarray) -> np.ndarray:
        return _unit(x, x)

    def without(self, x: np.ndarray) -> BoundedVariance:
        # Householder: an orthonormal basis of the complement of x.
        U = np.linalg.svd(x[None])[2][1:]
        return BoundedVariance(self.root, np.ascontiguousarray(self.C @ U.T), self.F, self.weights)


def _unit(x: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Rows of length 1; those of which rounding is all that is left become 0."""
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    clear = size > 1e-10 * np.linalg.norm(before, axis=-1, keepdims=True)
    return np.where(clear, x / np.where(clear, size, 1.0), 0.0)
