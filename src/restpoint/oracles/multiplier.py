"""The gradient of the power term, and the lower bound that a multiplier proves (theory A2)."""

from __future__ import annotations

from typing import NamedTuple

from restpoint.array import Array, expand, inner, namespace, power_sum, signed_power
from restpoint.sets import Set


class Slopes(NamedTuple):
    """What the optimality condition of a prox problem consists of, at its approximate solution."""

    gradient: Array  # g
    penalty: Array  # a subgradient of h
    step: Array  # y - z, before the addition of z rounded it


def dual_bound(set: Set, z: Array, at: Slopes, weight: Array, p: float) -> Array:
    """A lower bound on the prox problem (theory A2), sound for any step and any subgradient of h.

    With v = (weight p / 2) phi_{p-1}(step), Fenchel's inequality for the power term and h(y) >= penalty'y
    leave a linear function of y, so that with s = g + penalty + v the optimum is at least
    -sigma_S(-s) - (g + v)'z - (weight/2)(p-1) ||step||_p^p, with equality at a solution with step = y - z.
    The step enters unrounded: for p < 2, phi_{p-1} would magnify the rounding of y - z without bound.
    """
    ndim = set.event_ndim
    smooth = at.gradient + power_gradient(curvature_scale(weight, p, ndim), at.step, p)
    conjugate = 0.5 * (p - 1.0) * weight * power_sum(at.step, p, ndim)
    return -set.support(-(smooth + at.penalty)) - inner(smooth, z, ndim) - conjugate


def curvature_scale(weight: Array, p: float, event_ndim: int) -> Array:
    """k = weight p / 2, on the event axes: the gradient of the power term is k phi_{p-1}(y - z)."""
    return expand(0.5 * p * weight, event_ndim)


def power_gradient(k: Array, step: Array, p: float) -> Array:
    """k phi_{p-1}(step)."""
    return k * signed_power(step, p - 1.0)


def bounded_step(slope: Array, scale: Array, farthest: Array, p: float) -> Array:
    """-sgn(slope) farthest min(1, |slope| / scale)^(1/(p-1)): cut off, so that a weight of 0 needs no case."""
    xp, size = namespace(slope), namespace(slope).abs(slope)
    far = size >= scale
    ratio = xp.where(far, xp.ones_like(slope), size / xp.where(far, 1.0 + 0.0 * slope, scale))
    if p != 2.0:
        ratio = ratio ** (1.0 / (p - 1.0))
    return -xp.sign(slope) * farthest * ratio
