"""Scalar equations for all starts and entries at once: batched, without branches.

A multiplier of a constraint is the root of a monotone function, for all starts at once; where a coordinate
has no closed form, its own equation is solved inside, for all coordinates at once. Iteration counts are
fixed, so results do not depend on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from restpoint.array import Array, namespace


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
LOGARITHMIC_STEPS = 8  # the same for y + s log y = c


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


def logarithmic_root(c: Array, s: Array) -> Array:
    """The y >= 0 with y + s log y = c for s > 0, entry by entry; max(c, 0) where s is 0 beside c.

    y = s w with w + log w = a, a = c / s - log s. In t = log w the left side is convex and increasing, so Newton's
    method decreases monotonically from an upper bound: t <= a because w > 0, and t <= log a where a >= 1 because then
    w >= 1.
    """
    xp = namespace(c)
    unit = float(xp.finfo(c.dtype).eps)
    curved = s > xp.abs(c) * unit**2
    safe = xp.where(curved, s, xp.ones_like(s))
    log_s = xp.log(safe)
    a = xp.where(curved, c, xp.ones_like(c)) / safe - log_s
    t = xp.where(a < 1.0, a, xp.log(xp.maximum(a, 1.0)))
    for _ in range(LOGARITHMIC_STEPS):
        w = xp.exp(t)
        t = t - (w + t - a) / (w + 1.0)
    return xp.where(curved, xp.exp(t + log_s), xp.maximum(c, 0.0))
