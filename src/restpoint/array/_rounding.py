"""Constants of rounding error analysis in float64."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-53


def gamma(k: float) -> float:
    """gamma_k = k u / (1 - k u): the relative error of k roundings (Higham, section 3.1)."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)
