"""Weights of sorted entries, checked at the door."""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array._namespace import Array, is_array, to_host
from restpoint.array._parameters import parameter_value
from restpoint.errors import DataError, ShapeError


def sorted_profile(value: Any) -> Array:
    """An event (or one per start) of weights that are nonincreasing, >= 0, and not all 0."""
    profile = parameter_value("profile", value)
    if not is_array(profile):
        raise ShapeError("profile is a number; expected one weight for each entry, sorted")
    host = to_host(profile)
    if np.any(np.diff(host, axis=-1) > 0.0) or np.any(host[..., -1] < 0.0):
        raise DataError("profile must be nonincreasing and >= 0: the norm is not convex otherwise")
    if not np.all(host[..., 0] > 0.0):
        raise DataError("profile is 0; use penalties.Zero")
    return profile
