r"""The function omega_D, its inverse, and the step length: what the rooms above share.

Notation of ``theory``: 1/p + 1/q = 1, D = lambda diam_p(S)^p, c_p = (1/q) (2/p)^(q-1) >= 1/2 for
1 < p <= 2, and

    omega_D(a) = max over 0 <= s <= 1 of s a - s^p D / 2.

Every function here takes Python numbers, or arrays that broadcast. ``curvature`` and ``weight`` are
finite and >= 0; the formulas hold for every p > 1 (p > 2 is of use for concave functions alone,
theory E2). NaN in gives NaN out, and p close to 1, where q is huge, neither overflows nor warns:
all powers are taken of ratios in [0, 1].
"""

from __future__ import annotations

import math
import numbers
from typing import Any

from restpoint.array import Array, is_array, namespace, real_number
from restpoint.errors import DataError


def conjugate(p: float) -> float:
    """The q with 1/p + 1/q = 1.

    >>> conjugate(2.0), conjugate(1.5)
    (2.0, 3.0)
    """
    return p / (p - 1.0)


def leading_constant(p: float) -> float:
    """c_p = (1/q) (2/p)^(q-1): 1/2 at p = 2, larger below, infinite once it overflows (p < 1.001).

    >>> leading_constant(2.0), round(2 * leading_constant(1.2), 2)
    (0.5, 4.29)
    """
    try:
        return (2.0 / p) ** (1.0 / (p - 1.0)) / conjugate(p)
    except OverflowError:
        return math.inf


def omega(a: Array, curvature: Array, p: float = 2.0) -> Array:
    r"""omega_D(a) = max over 0 <= s <= 1 of s a - s^p D / 2, with D = ``curvature``.

    Equals c_p a^q / D^(q-1) if a <= p D / 2, else a - D / 2; omega_0(a) = a; 0 where a <= 0
    (theory, Notation). Increasing and convex in a; the decrease that a step guarantees for a gap a.

    >>> omega(1.0, 4.0), omega(5.0, 4.0), omega(3.0, 0.0)
    (0.125, 3.0, 3.0)
    """
    p = _check("a", a, curvature, p)
    threshold = 0.5 * p * curvature
    if not (is_array(a) or is_array(curvature)):
        if a > threshold:
            return a - 0.5 * curvature
        return _short_step(a, threshold, p) * _positive(a) * ((p - 1.0) / p)
    # At the maximiser s of the inner branch s^p D / 2 = s a / p, so that s a (p - 1) / p is left.
    xp, gap = namespace(a, curvature), _positive(a)
    inner = _power(_share(xp, gap, threshold), p) * gap * ((p - 1.0) / p)
    return xp.where(gap > threshold, gap - 0.5 * curvature, inner)


def omega_inverse(v: Array, curvature: Array, p: float = 2.0) -> Array:
    r"""The a >= 0 with omega_D(a) = v: (v D^(q-1) / c_p)^(1/q) if v <= (p-1) D / 2, else v + D / 2.

    0 where v <= 0. A gap whose guaranteed decrease is at most v is at most omega_D^{-1}(v)
    (theory E7).

    >>> omega_inverse(0.125, 4.0), omega_inverse(3.0, 4.0)
    (1.0, 5.0)
    """
    p = _check("v", v, curvature, p)
    q, threshold = conjugate(p), 0.5 * (p - 1.0) * curvature
    if not (is_array(v) or is_array(curvature)):
        if v > threshold:
            return v + 0.5 * curvature
        return (q * _positive(v)) ** (1.0 / q) * (0.5 * p * curvature) ** (1.0 / p)
    # v D^(q-1) / c_p = (q v) (p D / 2)^(q-1): two separate powers neither overflow nor, which would
    # make a certificate too small, underflow. The minimum keeps q v from overflowing where the other
    # branch is taken.
    xp, decrease = namespace(v, curvature), _positive(v)
    inner = (q * xp.minimum(decrease, threshold)) ** (1.0 / q)
    inner = inner * (0.5 * p * curvature) ** (1.0 / p)
    return xp.where(decrease > threshold, decrease + 0.5 * curvature, inner)


def step_length(gap: Array, weight: Array, p: float = 2.0) -> Array:
    r"""The s in [0, 1] that minimises -s gap + s^p weight / 2, weight = lambda ||d||_p^p (theory E8).

    s = min{1, (2 gap / (p weight))^(1/(p-1))}; 0 where the gap is not positive, else 1 where the
    weight is 0.

    >>> step_length(1.0, 4.0), step_length(5.0, 4.0), step_length(0.0, 0.0)
    (0.25, 1.0, 0.0)
    """
    threshold = weight if p == 2.0 else 0.5 * p * weight
    if not (is_array(gap) or is_array(weight)):
        return _short_step(gap, threshold, p)
    return _power(_share(namespace(gap, weight), _positive(gap), threshold), p)


def _check(name: str, value: Array, curvature: Array, p: float) -> float:
    """Refuse what is no number, a negative curvature, and p <= 1; NaN is a number here. Returns p.

    ``step_length`` is asked at every step, by code that knows what it asks, and goes without.
    """
    for one, given in ((name, value), ("curvature", curvature)):
        number = isinstance(given, numbers.Real) and not isinstance(given, bool)
        if not number and not (is_array(given) and _is_real(given)):
            raise DataError(f"{one} must be a real number or an array of such, got {given!r}")
    negative = curvature < 0
    if bool(namespace(curvature).any(negative) if is_array(negative) else negative):
        raise DataError(f"curvature must be >= 0, got {curvature!r}")
    power = real_number("p", p, "a number > 1")
    if not power > 1.0:
        raise DataError(f"p must be a number > 1, got {power}")
    return power


def _is_real(array: Array) -> bool:
    return bool(namespace(array).isdtype(array.dtype, ("real floating", "integral")))


def _positive(value: Array) -> Array:
    """max(value, 0); NaN stays NaN."""
    if is_array(value):
        return namespace(value).maximum(value, 0.0)
    return 0.0 if value <= 0 else value


def _share(xp: Any, gap: Array, threshold: Array) -> Array:
    """min(1, gap / threshold) for gap >= 0, and 0 for 0 / 0; NaN in either argument stays NaN.

    No mask: nothing is divided by zero where the quotient would be thrown away, NaN passes through,
    and an infinite gap gives 1. The floor under the threshold is the least normal number of its type.
    """
    tiny = float(xp.finfo((threshold if is_array(threshold) else gap).dtype).smallest_normal)
    floored = xp.maximum(threshold, tiny) if is_array(threshold) else max(threshold, tiny)
    return xp.minimum(gap, floored) / floored


def _power(share: Array, p: float) -> Array:
    """share^(1/(p-1))."""
    return share if p == 2.0 else share ** (1.0 / (p - 1.0))


def _short_step(gap: float, threshold: float, p: float) -> float:
    """The step length of two Python numbers: ``_power(_share(...))``."""
    if math.isnan(gap) or math.isnan(threshold):
        return math.nan
    if gap <= 0:
        return 0.0
    return 1.0 if gap >= threshold else float((gap / threshold) ** (1.0 / (p - 1.0)))
