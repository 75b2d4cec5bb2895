"""Checks at the door that sets share."""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array import Array, namespace, parameter_value
from restpoint.errors import DataError, ShapeError


def positive(name: str, value: Any, hint: str) -> Array:
    """A number per start that is > 0."""
    value = parameter_value(name, value)
    smallest = value if isinstance(value, float) else float(namespace(value).min(value))
    if not smallest > 0:
        raise DataError(f"{name} must be > 0, got {smallest}: {hint}")
    return value


def event(name: str, value: Any, event_ndim: int) -> Array:
    """A Python float, an event, or a batch of events."""
    value = parameter_value(name, value)
    if not isinstance(value, float) and value.ndim < event_ndim:
        raise ShapeError(
            f"{name} has shape {tuple(value.shape)}; expected a number, or at least {event_ndim} axes"
        )
    return value


def alike(owner: str, **values: Array) -> None:
    """Events that are compared entry by entry must have shapes that broadcast."""
    shapes = {name: () if isinstance(v, float) else tuple(v.shape) for name, v in values.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        found = " and ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ShapeError(
            f"{owner} got {found}; give numbers, or arrays of one shape (with the same leading axes, if any)"
        ) from error


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
