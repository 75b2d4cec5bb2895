"""Checks at the door that sets share."""

from __future__ import annotations

from typing import Any

from restpoint.array import Array, asarray, namespace
from restpoint.errors import DataError, ShapeError


def number(name: str, value: Any) -> Array:
    """A number per start: a Python float where one will do, else a finite floating array."""
    array = asarray(name, value)
    return float(array) if array.ndim == 0 else array


def positive(name: str, value: Any, hint: str) -> Array:
    """A number per start that is > 0."""
    value = number(name, value)
    smallest = value if isinstance(value, float) else float(namespace(value).min(value))
    if not smallest > 0:
        raise DataError(f"{name} must be > 0, got {smallest}: {hint}")
    return value


def event(name: str, value: Any, event_ndim: int) -> Array:
    """A Python float, an event, or a batch of events."""
    value = number(name, value)
    if not isinstance(value, float) and value.ndim < event_ndim:
        raise ShapeError(f"{name} has shape {value.shape}; expected at least {event_ndim} axes")
    return value


def same_event(owner: str, name: str, value: Array, shape: tuple[int, ...]) -> None:
    """The trailing axes of a parameter must broadcast to the event shape."""
    if isinstance(value, float):
        return
    trailing = tuple(value.shape[value.ndim - len(shape) :])
    if any(have not in (1, want) for have, want in zip(trailing, shape, strict=True)):
        raise ShapeError(
            f"{owner}: {name} has shape {tuple(value.shape)}, but the block has event shape {shape}; "
            f"give a number, an array of shape {shape}, or (*batch, {', '.join(map(str, shape))})"
        )
