"""Constants of rounding error analysis in float64."""

from __future__ import annotations

from restpoint.array._namespace import Array, namespace

UNIT_ROUNDOFF = 2.0**-53


def unit_roundoff(array: Array) -> float:
    """The relative error of one rounding in the dtype of ``array``."""
    return 0.5 * float(namespace(array).finfo(array.dtype).eps)


def gamma(k: float) -> float:
    """gamma_k = k u / (1 - k u): the relative error of k roundings (Higham, section 3.1)."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)
