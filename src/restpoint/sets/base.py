"""What a compact convex set must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from restpoint.array import Array, Parametric, scaled_norm


class Set(Parametric, ABC):
    """A nonempty compact convex set S.

    Subclasses are frozen dataclasses. ``x``, ``g`` and the answers have shape ``(*batch, *event)``, numbers per start
    have shape ``batch``. ``shape`` is the event shape, which only the problem knows. The facts below choose the oracle
    rule.
    """

    nonnegative: ClassVar[bool] = False  # no point has a negative entry
    solid: ClassVar[bool] = False  # with x, every y with |y| <= |x|, entry by entry
    exact: ClassVar[bool] = True  # ``support`` is the maximum, not only above it
    projects: ClassVar[bool] = True  # ``project`` is a closed form, or found to rounding

    @abstractmethod
    def support(self, g: Array) -> Array:
        """max over y in S of g'y."""

    @abstractmethod
    def extreme(self, g: Array) -> Array:
        """A point of S that minimises g'y."""

    def minimiser(self, g: Array) -> tuple[Array, Array]:
        """A point of S that minimises g'y, and a lower bound on the minimum: where one search gives both."""
        return self.extreme(g), -self.support(-g)

    def singular_values(self) -> Set | None:
        """The set of vectors that the singular values of these matrices make up; None for any other set.

        S = {X : sigma(X) in C} with C closed under permutations and changes of signs: then C answers for S.
        """
        return None

    def eigenvalues(self) -> Set | None:
        """The same for symmetric matrices and their eigenvalues, with C closed under permutations."""
        return None

    @abstractmethod
    def absolute_support(self, a: Array) -> Array:
        """An upper bound on max over y in S of a'|y|, for a >= 0: what rounding errors are measured with."""

    @abstractmethod
    def project(self, x: Array) -> Array:
        """The Euclidean projection onto S."""

    @abstractmethod
    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        """diam_p(S) = max ||x - y||_p over x, y in S (or an upper bound)."""

    @abstractmethod
    def reach(self, z: Array, p: float) -> Array:
        """max over y in S of ||y - z||_p (or an upper bound), for z in S."""

    @abstractmethod
    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        """max over y in S of ||y||_2 (or an upper bound)."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A random point of S (NumPy float64) of a set whose parameters carry no batch."""

    @property
    def has_interior(self) -> bool:
        """Whether S surely contains a ball, so that it leaves no direction out."""
        return False

    @property
    def declares_violation(self) -> bool:
        """Whether ``violation`` can tell; False for a user's set that came without it."""
        return True

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an event shape that the set's own arrays contradict; sets without arrays accept all."""

    def inside(self, x: Array) -> Array:
        """Whether x is in S, per start, as far as floating-point numbers can tell."""
        return self.violation(x) <= 0.0

    def violation(self, x: Array) -> Array:
        """How far x is from S: the Euclidean distance."""
        return scaled_norm(x - self.project(x), event_ndim=self.event_ndim)
