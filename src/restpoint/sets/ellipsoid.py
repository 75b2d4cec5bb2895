"""Ellipsoids."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restpoint.array import (
    Array,
    asarray,
    convert,
    expand,
    inner,
    namespace,
    norm,
    parameter,
    power_sum,
    scaled_norm,
    to_host,
)
from restpoint.errors import DataError, ShapeError
from restpoint.kernels.scalar_equations import FLAT, monotone_root
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class Ellipsoid(Set):
    r"""S = {center + F u : ||u||_2 <= radius} for a square, invertible F.

    The columns of F may be the axes; for {x : (x - c)'Q(x - c) <= r^2} take F = inv(cholesky(Q).T). F is data: the same
    for all starts. ``radius`` is a number or has the batch shape, ``center`` a number or an event (per start). Support
    function: g'c + radius ||F'g||. diam_p(S) <= 2 radius min(sigma_1(F) n^max(0, 1/p - 1/2), || row norms of F ||_p).
    The projection needs the singular values of F (once), two products, and one scalar equation for each start: the
    multiplier of the constraint, to rounding.

    >>> Ellipsoid(np.diag([2.0, 1.0])).extreme(np.array([-1.0, 0.0]))
    array([2., 0.])
    """

    F: Array
    radius: Array = parameter(1.0)
    center: Array = parameter(0.0, event=True)

    def __post_init__(self) -> None:
        F = asarray("F", self.F)
        if F.ndim != 2 or F.shape[0] != F.shape[1] or 0 in F.shape:
            raise ShapeError(f"F has shape {tuple(F.shape)}; expected a square matrix")
        object.__setattr__(self, "F", F)
        hint = "an ellipsoid of radius 0 is one point; fix that variable instead"
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius, hint))
        object.__setattr__(self, "center", _checks.event("center", self.center, 1))
        sizes = self._decomposed[1]
        if not sizes[-1] > 1e-12 * sizes[0]:
            raise DataError(
                f"F is singular: its singular values reach from {sizes[0]:.3g} to {sizes[-1]:.3g}; "
                "the set would be flat"
            )

    @property
    def has_interior(self) -> bool:
        return True

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != (self.F.shape[0],):
            raise ShapeError(
                f"Ellipsoid: F has shape {tuple(self.F.shape)}, but the block has event shape {tuple(shape)}"
            )
        _checks.same_event("Ellipsoid", "center", self.center, shape)

    def support(self, g: Array) -> Array:
        center = self.center + 0.0 * g
        return inner(g, center) + self.radius * norm(g @ convert(self.F, g))

    def extreme(self, g: Array) -> Array:
        xp, F = namespace(g), convert(self.F, g)
        inward = g @ F
        size = norm(inward)
        scale = self.radius / xp.where(size > 0, size, xp.ones_like(size))
        return self.center - (inward * expand(scale)) @ F.T

    def absolute_support(self, a: Array) -> Array:
        """a'|c| + radius sum_j a_j ||row j of F||, at most."""
        size = inner(a, convert(self._rows, a) + 0.0 * a)
        return inner(a, abs(self.center) + 0.0 * a) + self.radius * size

    def project(self, x: Array) -> Array:
        """With F = U diag(s) V' and a = U'(x - c): c + U (s^2 a / (s^2 + mu)), mu >= 0 such that it lies in S."""
        xp = namespace(x)
        U, sizes, _ = self._decomposed
        U, s = convert(U, x), convert(sizes, x)
        a = (x - self.center) @ U
        unit = s * expand(self.radius)  # half-axes
        ratio = norm(a / unit)
        high = norm(a * unit)  # there sum (a unit / (unit^2 + mu))^2 < 1
        high = xp.where(high > 0, high, xp.ones_like(high))
        low = high * float(xp.finfo(x.dtype).eps) ** 2

        def probe(mu: Array) -> tuple[Array, Array]:
            """Newton's method for 1 / ||u(mu)||."""
            bottom = unit * unit + expand(mu)
            u = a * unit / bottom
            square = inner(u, u)
            fall = inner(u / bottom, u)
            usable = fall > 0
            length = xp.sqrt(square)
            step = (length - 1.0) * square / xp.where(usable, fall, xp.ones_like(fall))
            return length <= 1.0, mu + xp.where(usable, step, 2.0 * high)

        mu = monotone_root(probe, low, high, lambda p, q: xp.sqrt(p) * xp.sqrt(q), FLAT).root
        u = a * unit / (unit * unit + expand(mu))
        length = norm(u)
        u = u / expand(xp.where(length > 0, length, xp.ones_like(length)))
        return xp.where(expand(ratio <= 1.0), x, self.center + (unit * u) @ U.T)

    def inside(self, x: Array) -> Array:
        """Up to the rounding of products with the inverse of F."""
        U, sizes, _ = self._decomposed
        a = (x - self.center) @ convert(U, x)
        slack = (x.shape[-1] + 8) * float(namespace(x).finfo(x.dtype).eps)
        slack = slack * float(sizes[0] / sizes[-1])
        return norm(a / convert(sizes, x)) <= self.radius * (1.0 + slack)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return 2.0 * self.radius * self._stretch(p)

    def reach(self, z: Array, p: float) -> Array:
        return power_sum(z - self.center, p) ** (1.0 / p) + self.radius * self._stretch(p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        size = float(self._decomposed[1][0])
        if isinstance(self.center, float):
            return abs(self.center) * math.sqrt(math.prod(shape)) + self.radius * size
        batch = self.center.shape[:-1]
        center = namespace(self.center).broadcast_to(self.center, (*batch, *shape))
        return scaled_norm(center) + self.radius * size

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform on the sphere of u."""
        u = rng.standard_normal(shape)
        F = np.asarray(to_host(self.F), dtype=np.float64)
        return np.asarray(self.center + F @ (u * (self.radius / float(np.sqrt(u @ u)))))

    @cached_property
    def _decomposed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.linalg.svd(np.asarray(to_host(self.F), dtype=np.float64))

    @cached_property
    def _rows(self) -> np.ndarray:
        F = np.asarray(to_host(self.F), dtype=np.float64)
        return np.sqrt(np.sum(F * F, axis=-1))

    def _stretch(self, p: float) -> float:
        """max ||F u||_p over ||u||_2 <= 1, or an upper bound."""
        n = len(self._rows)
        by_values = float(self._decomposed[1][0]) * n ** max(0.0, 1.0 / p - 0.5)
        return min(by_values, float(scaled_norm(self._rows, p)))
