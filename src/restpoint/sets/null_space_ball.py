"""The part of the Euclidean ball that lies in a null space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from restpoint.array import (
    Array,
    asarray,
    convert,
    expand,
    namespace,
    norm,
    parameter,
    power_sum,
    to_host,
    unit_roundoff,
)
from restpoint.errors import DataError, ShapeError
from restpoint.kernels.null_space import NullSpace
from restpoint.kernels.orthonormal import column_basis
from restpoint.sets import _checks
from restpoint.sets.base import Set

# How far from orthonormal the columns of Q may be, in units of the last digit, for each row.
ORTHONORMAL = 64.0


@dataclass(frozen=True)
class NullSpaceBall(Set):
    r"""S = {x : Q'x = 0, ||x||_2 <= radius} for Q, p x k, with orthonormal columns.

    The null space itself, p - k dimensions, is never formed: every operation costs one or two products with Q.
    ``radius`` is a number or has the batch shape. Q is data: not copied, and the same for all starts.
    diam_p(S) <= 2 r p^(1/p - 1/2) for p <= 2 and 2 r for p >= 2. ``NullSpaceBall.of(A)`` takes columns that are not
    orthonormal.

    >>> ball = NullSpaceBall(np.array([[0.6], [0.8], [0.0]]))
    >>> ball.project(np.array([4.0, -3.0, 12.0])) * 13
    array([ 4., -3., 12.])
    """

    Q: Array
    radius: Array = parameter(1.0)

    def __post_init__(self) -> None:
        Q = asarray("Q", self.Q)
        if Q.ndim != 2:
            raise ShapeError(f"Q has shape {tuple(Q.shape)}; expected (features, columns)")
        if not Q.shape[1] < Q.shape[0]:
            raise ShapeError(
                f"Q has shape {tuple(Q.shape)}: with as many columns as rows only 0 satisfies Q'x = 0; "
                "give fewer columns"
            )
        object.__setattr__(self, "Q", Q)
        hint = "a ball of radius 0 is one point; fix that variable instead"
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius, hint))
        _check_orthonormal(Q)

    @classmethod
    def of(cls, A: Any, radius: Any = 1.0, *, tolerance: float = 1e-10) -> Self:
        """The ball in {x : A'x = 0} for any A, p x m: Q is an orthonormal basis of A's column space.

        Singular values below ``tolerance`` times the largest count as 0. Costs one m x m eigenvalue problem and a few
        products with A.

        >>> NullSpaceBall.of(np.array([[3.0, 6.0], [4.0, 8.0], [0.0, 0.0]])).Q.shape
        (3, 1)
        """
        return cls(column_basis(A, tolerance), radius)

    @cached_property
    def kernel(self) -> NullSpace:
        """What solves problems in the null space."""
        return NullSpace(self.Q)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != (self.Q.shape[0],):
            raise ShapeError(
                f"NullSpaceBall: Q has {self.Q.shape[0]} rows, but the block has event shape {shape}; "
                f"expected ({self.Q.shape[0]},)"
            )

    def support(self, g: Array) -> Array:
        """Radius ||g - QQ'g||; an upper bound however Q was rounded."""
        return self.radius * norm(self.kernel.project(g))

    def extreme(self, g: Array) -> Array:
        """-radius Pg / ||Pg||, and 0 where rounding is all that is left of Pg."""
        xp, inward = namespace(g), self.kernel.project(g)
        size, whole = norm(inward), norm(g)
        clear = size > 64.0 * unit_roundoff(g) * whole
        scale = self.radius / xp.where(clear, size, xp.ones_like(size))
        return -inward * expand(xp.where(clear, scale, xp.zeros_like(scale)))

    def absolute_support(self, a: Array) -> Array:
        """Radius ||a||_2, that of the whole ball."""
        return self.radius * norm(a)

    def project(self, x: Array) -> Array:
        """Onto the null space, then onto the ball; a point inside comes back unchanged."""
        xp, inside = namespace(x), self.inside(x)
        inward = self.kernel.project(x)
        size = norm(inward)
        outer = xp.maximum(size, self.radius + 0.0 * size)
        pulled = inward * expand(self.radius / outer)
        return xp.where(expand(inside), x, pulled)

    def inside(self, x: Array) -> Array:
        """Up to the rounding of Q'x and ||x||."""
        slack = 2.0 * (x.shape[-1] + 8) * unit_roundoff(x)
        size = norm(x)
        return (norm(x @ self.Q) <= slack * size) & (size <= self.radius * (1.0 + slack))

    def violation(self, x: Array) -> Array:
        """The distance: ||Q'x|| across, and what ||Px|| exceeds the radius by."""
        xp = namespace(x)
        across = norm(x @ self.Q)
        along = xp.sqrt(xp.maximum(norm(x) ** 2 - across**2, 0.0))
        beyond = xp.maximum(along - self.radius, 0.0)
        return xp.sqrt(across**2 + beyond**2)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return 2.0 * self.radius * _norm_ratio(math.prod(shape), p)

    def reach(self, z: Array, p: float) -> Array:
        """||z||_p + radius max ||u||_p over ||u||_2 <= 1."""
        return power_sum(z, p) ** (1.0 / p) + self.radius * _norm_ratio(z.shape[-1], p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return self.radius

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform on the sphere that bounds the ball."""
        Q = to_host(self.Q).astype(np.float64, copy=False)
        direction = NullSpace(Q).project(rng.standard_normal(shape))
        return np.asarray(direction * (self.radius / float(np.sqrt(np.sum(direction**2)))))

    def converted(self, like: Array) -> Self:
        other, Q = super().converted(like), convert(self.Q, like)
        if Q is self.Q:
            return other
        twin = object.__new__(type(self))
        twin.__dict__.update(Q=Q, radius=other.radius)
        return twin

    def _rebuild(self, change: Any, recurse: Any) -> Self:
        other = super()._rebuild(change, recurse)
        if other is not self and "kernel" in self.__dict__:
            other.__dict__["kernel"] = self.__dict__["kernel"]
        return other


def _check_orthonormal(Q: Array) -> None:
    xp, (size, columns) = namespace(Q), Q.shape
    if columns == 0:
        return
    product = Q.T @ Q
    error = float(xp.max(xp.abs(product - xp.eye(columns, dtype=Q.dtype))))
    if not error <= ORTHONORMAL * math.sqrt(size) * 2.0 * unit_roundoff(Q):
        raise DataError(
            f"the columns of Q are not orthonormal: Q'Q differs from the identity by {error:.2g}; "
            "NullSpaceBall.of(Q) makes them so"
        )


def _norm_ratio(size: int, p: float) -> float:
    """max ||u||_p over ||u||_2 <= 1 in R^size."""
    return size ** max(0.0, 1.0 / p - 0.5)
