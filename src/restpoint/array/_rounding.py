"""Constants of rounding error analysis in float64."""

from __future__ import annotations

import math
from fractions import Fraction

from restpoint.array._namespace import Array, namespace

UNIT_ROUNDOFF = 2.0**-53


def unit_roundoff(array: Array) -> float:
    """The relative error of one rounding in the dtype of ``array``."""
    return 0.5 * float(namespace(array).finfo(array.dtype).eps)


def gamma(k: float) -> float:
    """gamma_k = k u / (1 - k u): the relative error of k roundings (Higham, section 3.1)."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)


def product_up(*factors: float, over: tuple[float, ...] = ()) -> float:
    """The product of numbers >= 0, divided by those in ``over``, rounded up; 0 where a factor is 0.

    Exact until the last step, so that no intermediate result overflows or underflows.
    """
    if 0.0 in factors:
        return 0.0
    try:
        exact = math.prod(map(Fraction, factors)) / math.prod(map(Fraction, over))
        return math.nextafter(float(exact), math.inf)
    except OverflowError:  # also of Fraction(inf)
        return math.inf
