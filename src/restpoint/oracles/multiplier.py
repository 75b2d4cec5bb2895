"""The scalar equations behind the prox of a set with one constraint: batched, without branches.

A multiplier of the constraint is the root of a monotone function, for all starts at once; where a coordinate
has no closed form, its own equation is solved inside, for all coordinates at once. Iteration counts are
fixed, so results do not depend on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from restpoint.array import Array, expand, inner, namespace, power_sum, signed_power
from restpoint.sets import Set


class Effort(NamedTuple):
    """How many steps of bisection, and how many of Newton after them."""

    halvings: int
    refinements: int


# Piecewise smooth with positive slopes: soon Newton is in its quadratic phase.
SMOOTH = Effort(14, 9)
# For p < 2 coordinates start to move with slope 0 in the multiplier, where Newton is linear at first.
FLAT = Effort(24, 12)
# Where a slope may be infinite: bisection alone, down to the spacing of floating-point numbers.
STEEP = Effort(60, 0)
INNER_STEPS = 6  # monotone from the right; enough for rounding at every p >= 1.01


class Bracketed(NamedTuple):
    """An approximate root, and the interval that holds the exact one."""

    root: Array
    low: Array
    high: Array


def monotone_root(
    probe: Callable[[Array], tuple[Array, Array]],
    low: Array,
    high: Array,
    middle: Callable[[Array, Array], Array],
    effort: Effort = SMOOTH,
) -> Bracketed:
    """The root between ``low`` and ``high``: bisection, then Newton kept inside the bracket.

    ``probe(x)`` returns whether the root lies at or below x, and Newton's proposal for it. A root outside
    of the bracket yields its nearer end.
    """
    xp, x = namespace(low), middle(low, high)
    for iteration in range(effort.halvings + effort.refinements):
        at_or_below, proposal = probe(x)
        high = xp.where(at_or_below, x, high)
        low = xp.where(at_or_below, low, x)
        x = middle(low, high)
        if iteration >= effort.halvings:
            # A proposal just outside is rounding at an end that is the root: do not leave that end.
            slack = 1e-3 * (high - low)
            near = (proposal >= low - slack) & (proposal <= high + slack)
            x = xp.where(near, xp.minimum(xp.maximum(proposal, low), high), x)
    return Bracketed(x, low, high)


def power_root(s: Array, k: Array, mu: Array, exponent: float) -> Array:
    """The T >= 0 with k T^exponent + mu T = s, for s, k >= 0 and mu > 0, entry by entry.

    In log T the left side's logarithm is convex with slopes between 1 and the exponent, so Newton's method
    decreases monotonically from an upper bound; a last step in T itself removes the rounding of logarithms.
    """
    if exponent == 1.0:
        return s / (k + mu)
    xp = namespace(s)
    tiny = float(xp.finfo(s.dtype).smallest_normal)
    log_s = xp.log(xp.maximum(s, tiny))
    log_k = xp.log(xp.maximum(k + 0 * s, tiny)) - log_s
    log_mu = xp.log(mu + 0 * s) - log_s
    x = xp.minimum(-log_k / exponent, -log_mu)
    for _ in range(INNER_STEPS):
        curved, straight = xp.exp(log_k + exponent * x), xp.exp(log_mu + x)
        total = curved + straight
        x = x - xp.log(total) * total / (exponent * curved + straight)
    root = xp.exp(x)
    curved, straight = k * root**exponent, mu * root
    slope = exponent * curved + straight
    solved = (s <= tiny) | (slope <= 0)
    correction = (curved + straight - s) / xp.where(solved, xp.ones_like(s), slope)
    return root * xp.where(solved, xp.zeros_like(s), 1.0 - correction)


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
