"""Labels of groups, checked at the door."""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array._namespace import is_array, to_host
from restpoint.errors import DataError, ShapeError


def group_labels(name: str, value: Any, event_ndim: int) -> np.ndarray:
    """Whole numbers 0, 1, ..., one for each entry of an event; every group has some entry. A copy."""
    labels = np.array(to_host(value) if is_array(value) else value)
    if labels.ndim != event_ndim or labels.size == 0:
        raise ShapeError(
            f"{name} has shape {labels.shape}; expected the group of each entry, an array of {event_ndim} axes"
        )
    if labels.dtype.kind not in "iu" or int(labels.min()) != 0:
        raise DataError(f"{name} must be whole numbers 0, 1, 2, ..., one for each entry")
    count = int(labels.max()) + 1
    if len(np.unique(labels)) != count:
        raise DataError(
            f"{name} must use every number from 0 to {count - 1}; np.unique(..., return_inverse=True)[1] numbers them"
        )
    labels.flags.writeable = False
    return labels


def check_labels(owner: str, labels: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse blocks of another shape than the labels."""
    if tuple(labels.shape) != tuple(shape):
        raise ShapeError(
            f"{owner}: groups has shape {labels.shape}, but the block has event shape {tuple(shape)}"
        )


def check_group_scales(scales: Any, count: int) -> None:
    """Refuse scales that are neither a number nor one for each group."""
    if is_array(scales) and tuple(scales.shape) != (count,):
        raise ShapeError(
            f"scales has shape {tuple(scales.shape)}; expected a number, or one for each of {count} groups"
        )
