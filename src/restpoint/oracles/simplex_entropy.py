"""The simplex with negative entropy."""

from __future__ import annotations

from dataclasses import dataclass

from restpoint.array import Array, event_max, event_sum, expand, namespace
from restpoint.kernels.scalar_equations import FLAT, logarithmic_root, monotone_root
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.penalties import Entropy
from restpoint.sets import Simplex


@dataclass(frozen=True)
class SimplexEntropy(Oracle):
    r"""S = {y >= 0, sum_j y_j = T} with h(y) = c sum_j y_j log y_j: the softmax.

    linear(g) = T softmax(-g/c), with value c T log T - c T log sum_j exp(-g_j/c) (Gibbs); a vertex where c = 0. For p
    = 2 the prox is y_j + (c/weight) log y_j = v_j + u with v = z - g/weight and the multiplier u of the sum, found to
    rounding; the lower bound is that of ``linear`` at the gradient of the proximal term (theory A2).

    >>> import numpy as np
    >>> SimplexEntropy(Simplex(), Entropy(1.0)).linear(np.log(np.array([1.0, 2.0, 4.0]))).point * 7
    array([4., 2., 1.])
    """

    conditions = (
        Condition("the set is a Simplex", lambda set, penalty: isinstance(set, Simplex)),
        Condition("the penalty is Entropy", lambda set, penalty: isinstance(penalty, Entropy)),
    )

    set: Simplex
    penalty: Entropy

    def linear(self, g: Array) -> Answer:
        xp, total, weight = namespace(g), self.set.total, self.penalty.weight
        lifted = expand(weight)
        least = -event_max(-g)
        above = g - expand(least)  # >= 0: the exponentials do not overflow
        floor = float(xp.finfo(g.dtype).smallest_normal) * 2.0**60
        mild = (
            lifted + 0.0 * g > above * 1e-3 + floor
        )  # else exp(-above / weight) is 0 all the same
        ratio = xp.where(mild, above / xp.where(mild, lifted + 0.0 * g, 1.0), 1000.0 + 0.0 * g)
        shares = xp.exp(-xp.where(above > 0, ratio, 0.0 * ratio))
        whole = event_sum(shares)
        point = shares * expand(total / whole)
        size = xp.log(total + 0.0 * whole)
        lower = total * (least + weight * (size - xp.log(whole)))
        value = self.linear_value(g, point)
        return Answer(point, value, xp.minimum(lower, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            return super().prox(g, z, weight, p)
        xp, total, cost = namespace(g), self.set.total, expand(self.penalty.weight) + 0.0 * g
        shifted = g + expand(event_max(-g))

        # A smaller weight than this changes the optimum by less than its rounding.
        least = expand(self.penalty.weight / total) * (float(xp.finfo(g.dtype).eps) / 8)
        lifted = xp.maximum(expand(weight) + 0.0 * g, least + 0.0 * g)
        straight = xp.where(lifted > 0, lifted, xp.ones_like(g))

        def entries(u: Array) -> Array:
            """The y_j with weight (y_j - z_j) + g_j + cost log y_j = u."""
            right = (expand(u) - shifted) / straight + z
            return logarithmic_root(right, cost / straight)

        def probe(u: Array) -> tuple[Array, Array]:
            y = entries(u)
            whole = event_sum(y)
            # dy/du = y / (weight y + cost)
            bottom = lifted * y + cost
            rate = event_sum(xp.where(bottom > 0, y / xp.where(bottom > 0, bottom, 1.0), 0.0 * y))
            usable = rate > 0
            step = (self.set.total - whole) / xp.where(usable, rate, 1.0)
            return whole >= self.set.total, u + xp.where(usable, step, xp.inf)

        def level(height: Array) -> Array:
            """The smallest u at which some entry reaches ``height``."""
            return -event_max(-(lifted * (height - z) + shifted + cost * xp.log(height)))

        full = expand(total + 0.0 * event_max(g)) + 0.0 * g
        low, high = level(full / g.shape[-1]), level(full)
        u = monotone_root(probe, low, high, lambda a, b: a + 0.5 * (b - a), FLAT).root
        y = entries(u)
        size = expand(event_sum(y))
        y = y * (expand(total) / xp.where(size > 0, size, xp.ones_like(size)))
        value = self.prox_value(g, z, weight, 2.0, y)
        slope = g + lifted * (y - z)
        bound = self.linear(slope).lower - event_sum(slope * z)
        bound = bound - 0.5 * weight * event_sum((y - z) * (y - z))
        return Answer(y, value, xp.minimum(bound, value))

    def can_prox(self, p: float) -> bool:
        return p == 2.0
