"""Means taken off, and slices scaled."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from restpoint.errors import DataError


def standardised(
    array: np.ndarray, center: Sequence[int], scale: Sequence[int], names: Sequence[str]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Means over the modes in ``center`` taken off, then slices of the modes in ``scale`` divided by their sizes.

    Means and root mean squares are over observed entries. A copy is made if there is anything to do.
    """
    used: dict[str, Any] = {}
    for m in center:
        mean = _mean(array, m)
        array = array - mean
        used.setdefault("center", {})[m] = mean
    for m in scale:
        others = tuple(k for k in range(array.ndim) if k != m)
        size = np.sqrt(_mean(np.square(array), others))
        flat = np.flatnonzero(~(size.ravel() > 0))
        if len(flat):
            raise DataError(
                f"scale: slice {flat[0]} of mode {names[m]!r} has no size (all 0{' after centring' * bool(center)}), "
                "so it cannot be scaled to 1; drop it, or leave this mode out of scale"
            )
        array = array / size
        used.setdefault("scale", {})[m] = size
    return array, used


def restandardised(
    array: np.ndarray, used: dict[str, Any], sample_mode: int, names: Sequence[str]
) -> np.ndarray:
    """New samples treated as those of ``fit``: its means over samples and its scales, their own means else."""
    for m, mean in used.get("center", {}).items():
        array = array - (mean if m == sample_mode else _mean(array, m))
    for m, size in used.get("scale", {}).items():
        if m != sample_mode:
            array = array / size
        else:
            array, _ = standardised(array, (), (m,), names)
    return array


def _mean(array: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Means over observed entries; NaN where there are none, without a warning: nothing is there to be centred."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.asarray(np.nanmean(array, axis=axis, keepdims=True, dtype=np.float64))
