"""What a user gives as the numbers of a theorem, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from restpoint.array import Array, is_array, real_number, to_host, whole_number
from restpoint.bounds._bound import shown
from restpoint.errors import DataError, ShapeError


def block_divisor(blocks: Any, measure: str) -> int:
    """1 for the largest gap; d for the sum, which exceeds eps only if some gap exceeds eps / d."""
    blocks = whole_number("blocks", blocks, 1)
    if measure not in ("max", "sum"):
        raise DataError(f"measure is {measure!r}; expected 'max' or 'sum'")
    return blocks if measure == "sum" else 1


def product(constant: np.ndarray, diameter: np.ndarray, p: float) -> np.ndarray:
    """The D of one block: lambda diam^p, and 0 where lambda is 0 even if the power overflows.

    Half of the power at a time: for p <= 2 neither half overflows or underflows, and the product only if D does. (For
    p > 2, f is concave, and any D is true.)
    """
    half = np.where(constant == 0.0, 0.0, diameter) ** (0.5 * p)
    return np.asarray(constant * half * half)


def lacks(values: Sequence[Array | None] | None) -> bool:
    """Whether something is unknown; an empty sequence speaks of no block at all."""
    if values is None:
        return True
    if not values:
        raise ShapeError("constants and diameters are empty; expected one entry per block")
    return any(value is None for value in values)


def is_zero(value: Array) -> bool:
    return bool(np.all(_host("constant", value) == 0))


def all_infinite(delta: Array) -> bool:
    return bool(np.all(_host("delta", delta) == math.inf))


def _host(name: str, value: Array) -> np.ndarray:
    """A number or an array of any library as NumPy float64."""
    array = np.asarray(to_host(value) if is_array(value) else value)
    if array.dtype.kind not in "iuf":
        raise DataError(f"{name} is {value!r}; expected a number, or an array of numbers")
    return array.astype(np.float64)


def entries(name: str, values: Any) -> Sequence[Array | None] | None:
    """What was given for each block, in a tuple, a list or an array of one axis; None if nothing was."""
    if values is None or isinstance(values, (tuple, list)):
        return values
    if is_array(values) and values.ndim == 1:
        return tuple(to_host(values))
    raise ShapeError(f"{name} is {values!r}; expected one entry per block, as in {name}=(1.0, 2.0)")


def number(name: str, value: Array, *, positive: bool = False) -> np.ndarray:
    """One of the numbers of a theorem: finite, and > 0 or >= 0."""
    array = _host(name, value)
    if not bool(np.all(np.isfinite(array))):
        unknown = "" if positive else "; pass None for what is not known"
        raise DataError(f"{name} is {shown(array)}; expected finite numbers{unknown}")
    if not bool(np.all(array > 0 if positive else array >= 0)):
        raise DataError(f"{name} is {shown(array)}; expected {'> 0' if positive else '>= 0'}")
    return array


def difference(delta: Array) -> np.ndarray:
    """Phi(x1) - lower bound >= 0; NaN and infinity are kept. What rounding may explain, only its origin can tell."""
    array = _host("delta", delta)
    if bool(np.any(array < 0.0)):
        raise DataError(
            f"delta is {shown(array)}: Phi(x1) lies below its lower bound, which is therefore wrong; "
            "correct it, pass delta=None, or add to delta what rounding explains"
        )
    if bool(np.all(np.isnan(array))):
        raise DataError(
            f"delta is {shown(array)}; pass delta=None if no lower bound on Phi is known"
        )
    return array


def exponent(p: float, concave: bool) -> float:
    p = real_number("p", p, "a number in (1, 2]")
    if not p > 1.0:
        raise DataError(f"p must be a number in (1, 2], got {p}")
    if p > 2.0 and not concave:
        raise DataError(
            f"p is {p}; for p > 2 the inequality holds for concave f alone (theory E2): "
            "say concave=True if f is, else take p <= 2"
        )
    return p


def plain(value: np.ndarray | None) -> Any:
    """A number without axes as a Python float."""
    return float(value) if value is not None and value.ndim == 0 else value
