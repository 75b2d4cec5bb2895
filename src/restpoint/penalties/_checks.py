"""Checks at the door that penalties share."""

from __future__ import annotations

from typing import Any

from restpoint.array import Array, namespace, parameter_value
from restpoint.errors import DataError


def nonnegative_weight(value: Any, name: str = "weight") -> Array:
    """A number >= 0, or an array of such."""
    weight = parameter_value(name, value)
    smallest = weight if isinstance(weight, float) else float(namespace(weight).min(weight))
    if smallest < 0:
        raise DataError(f"{name} must be >= 0, got {smallest}: a negative l1 weight is not convex")
    return weight
