"""Numbers that a user gives, checked at the door."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from restpoint.array._namespace import is_array, to_host
from restpoint.errors import DataError


def real_number(name: str, value: Any, expected: str, *, finite: bool = True) -> float:
    """A Python float from a number (or an array without axes); anything else is refused by name.

    NaN is no number. ``expected`` says what would be right: "a number > 0".
    """
    if is_array(value) and value.ndim == 0:
        value = to_host(value).item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DataError(f"{name} must be {expected}, got {value!r}")
    number = float(value)
    if math.isnan(number) or (finite and math.isinf(number)):
        raise DataError(f"{name} must be {expected}, got {number}")
    return number


def whole_number(name: str, value: Any, least: int) -> int:
    """A Python int >= ``least``."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise DataError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def truth(name: str, value: Any) -> bool:
    """A Python bool: True and False, NumPy's among them, and nothing that merely counts as one."""
    if not isinstance(value, (bool, np.bool_)):
        raise DataError(f"{name} must be True or False, got {value!r}")
    return bool(value)
