"""The scaled probability simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restpoint.array import (
    Array,
    event_max,
    event_sum,
    expand,
    is_array,
    namespace,
    parameter,
    power_sum,
)
from restpoint.sets import _checks
from restpoint.sets.base import Set


@dataclass(frozen=True)
class Simplex(Set):
    r"""S = {x >= 0 : sum_j x_j = total}.

    ``total`` is a number or has the batch shape. diam_p(S) = 2^(1/p) total (0 for a single entry).
    The linear oracle costs O(n), the projection O(n log n).

    >>> Simplex().project(np.array([0.5, 0.9, -1.0]))
    array([0.3, 0.7, 0. ])
    """

    nonnegative: ClassVar[bool] = True

    total: Array = parameter(1.0)

    def __post_init__(self) -> None:
        hint = "a simplex of total 0 is one point; fix that variable instead"
        object.__setattr__(self, "total", _checks.positive("total", self.total, hint))

    def support(self, g: Array) -> Array:
        return self.total * event_max(g)

    def extreme(self, g: Array) -> Array:
        """total at the first entry where g is smallest."""
        xp = namespace(g)
        first = xp.argmin(g, axis=-1)
        vertex = xp.arange(g.shape[-1], device=_device(g)) == first[..., None]
        return xp.where(vertex, expand(self.total) + 0 * g, 0 * g)

    def absolute_support(self, a: Array) -> Array:
        return self.support(a)

    def project(self, x: Array) -> Array:
        """max(x - tau, 0) with tau such that the entries sum to ``total``, by sorting."""
        xp, n = namespace(x), x.shape[-1]
        total = expand(self.total)
        # A common shift changes nothing; without it the total is lost beside large entries.
        x = x - expand(event_max(x))
        descending = -xp.sort(-x, axis=-1)
        count = xp.astype(xp.arange(1, n + 1, device=_device(x)), x.dtype)
        excess = (xp.cumulative_sum(descending, axis=-1) - total) / count
        # tau belongs to the largest k with descending_k > excess_k; those k are 1, 2, ..., k*.
        positive = xp.sum(xp.astype(descending > excess, xp.int64), axis=-1)
        last = xp.arange(n, device=_device(x)) == (positive - 1)[..., None]
        tau = xp.sum(xp.where(last, excess, 0 * x), axis=-1)
        return xp.maximum(x - tau[..., None], 0.0)

    def inside(self, x: Array) -> Array:
        """No negative entry, and the total up to the rounding of a sum."""
        xp, total = namespace(x), event_sum(x)
        slack = (x.shape[-1] + 8) * float(xp.finfo(x.dtype).eps)
        return (event_max(-x) <= 0.0) & (abs(total - self.total) <= slack * self.total)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        return self.total * (2.0 ** (1.0 / p) if math.prod(shape) > 1 else 0.0)

    def reach(self, z: Array, p: float) -> Array:
        """The farthest point of S is a vertex: max_j (||z||_p^p - z_j^p + (total - z_j)^p)^(1/p)."""
        xp = namespace(z)
        change = abs(expand(self.total) - z) ** p - xp.abs(z) ** p
        return xp.maximum(power_sum(z, p) + event_max(change), 0.0) ** (1.0 / p)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        del shape
        return self.total

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform (Dirichlet with unit parameters)."""
        draws = rng.standard_exponential(shape)
        return np.asarray(self.total * draws / draws.sum())


def _device(x: Array) -> object:
    return x.device if is_array(x) else None
