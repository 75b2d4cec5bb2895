"""What ``joint.refine`` is given, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from restpoint.array import asarray, to_host
from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.sets import L2Ball, NonnegativeBall, Set


def checked_factors(factors: Sequence[Any], sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """One array (R, n) for each mode."""
    if not isinstance(factors, (tuple, list)) or len(factors) != len(sizes):
        raise ShapeError(
            f"factors must be a list of {len(sizes)} arrays (R, n), one for each mode, got {described(factors)}"
        )
    found: list[np.ndarray] = []
    for i, (X, n) in enumerate(zip(factors, sizes, strict=True)):
        array = np.array(to_host(asarray(f"factors[{i}]", X)), dtype=np.float64)
        rank = found[0].shape[0] if found else array.shape[0] if array.ndim == 2 else "R"
        if array.shape != (rank, n) or rank == 0:
            raise ShapeError(
                f"factors[{i}] has shape {array.shape}; expected ({rank}, {n}): one row for each component"
            )
        found.append(array)
    return tuple(found)


def start(
    sets: tuple[Set, ...], sizes: tuple[int, ...], weights: Any, factors: Sequence[Any]
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Unit rows within their sets, and weights >= 0 that take the lengths and, by the first mode, the signs."""
    X = checked_factors(factors, sizes)
    w = np.array(to_host(asarray("weights", weights)), dtype=np.float64)
    if w.shape != (len(X[0]),):
        raise ShapeError(
            f"weights has shape {w.shape}; expected ({len(X[0])},), because factors have {len(X[0])} rows"
        )
    X = (np.where(w[:, None] < 0.0, -X[0], X[0]), *X[1:])
    w, units = np.abs(w), []
    for rows, s in zip(X, sets, strict=True):
        inside = np.maximum(rows, 0.0) if isinstance(s, NonnegativeBall) else rows
        lengths = np.linalg.norm(inside, axis=1)
        w = w * lengths
        flat = np.full_like(inside, inside.shape[1] ** -0.5)  # no direction is better than another
        scaled = inside / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        units.append(np.where(lengths[:, None] > 0.0, scaled, flat))
    return w, tuple(units)


def per_mode(name: str, value: Any, sizes: tuple[int, ...]) -> np.ndarray:
    """One number >= 0 for each mode."""
    array = np.array(to_host(asarray(name, value)), dtype=np.float64)
    if array.shape not in ((), (len(sizes),)):
        raise ShapeError(
            f"{name} has shape {array.shape}; expected one number, or {len(sizes)}, one for each mode"
        )
    if np.min(array) < 0.0:
        raise DataError(f"{name} must be >= 0, got {float(np.min(array))}")
    return np.broadcast_to(array, (len(sizes),))


def checked_sets(sets: Sequence[Set] | None, sizes: tuple[int, ...]) -> tuple[Set, ...]:
    """One unit ball, or the nonnegative part of one, for each mode."""
    chosen = (L2Ball(),) * len(sizes) if sets is None else tuple(sets)
    if len(chosen) != len(sizes):
        raise ShapeError(
            f"sets has {len(chosen)} entries; expected {len(sizes)}, one for each mode"
        )
    for i, s in enumerate(chosen):
        if s not in (L2Ball(), NonnegativeBall()):
            raise CapabilityError(
                f"sets[{i}] must be L2Ball() or NonnegativeBall() of radius 1, got {described(s)}: components are "
                "unit vectors, and their weights take the scale"
            )
    return chosen
