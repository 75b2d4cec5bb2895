"""What the laws are called with, checked before any of them is: a mistake in the call is no broken law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from restpoint.array import Array, is_array, namespace, real_number
from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.smooth._checks import event_shape


def piece(value: Any, kind: type, words: str) -> Any:
    """``value``, if it is of the kind that the laws are about."""
    if not isinstance(value, kind):
        raise CapabilityError(f"expected {words}, got {described(value)}")
    return value


def shape_of(shape: Any, event_ndim: int, name: str) -> tuple[int, ...]:
    """The shape of one block, with as many axes as the piece called ``name`` is over."""
    found = event_shape("shape", shape)
    if len(found) != event_ndim:
        raise ShapeError(f"shape is {found}, but {name} is over {event_ndim} axes (event_ndim)")
    return found


def stream(rng: Any) -> np.random.Generator:
    """A generator, made from a seed if need be."""
    try:
        return np.random.default_rng(0 if rng is None else rng)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"rng must be a whole number >= 0 or a numpy Generator, got {rng!r}"
        ) from error


def example(like: Any) -> Array:
    """An array that shows library and dtype: NumPy float64 by default."""
    if like is None:
        return np.zeros(())
    if not is_array(like) or not namespace(like).isdtype(like.dtype, "real floating"):
        raise DataError(
            f"like must be a floating array that shows library and dtype, got {described(like)}"
        )
    return like


def powers(p: Any) -> tuple[float, ...]:
    """Powers > 1, at least one."""
    several = p if isinstance(p, Sequence) and not isinstance(p, str) else (p,)
    found = tuple(real_number("p", one, "a number > 1, or several such") for one in several)
    if not found or min(found) <= 1.0:
        raise DataError(f"p must be a number > 1, or several such, got {p!r}")
    return found
