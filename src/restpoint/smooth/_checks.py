"""Checks at the door that functions share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from restpoint.array import Array, asarray, convert, namespace
from restpoint.errors import DataError, ShapeError


def tensor(name: str, value: Any, *, order: int | None = None, min_order: int = 1) -> Array:
    """Real finite data with ``order`` axes (or at least ``min_order``), none of them empty."""
    data = asarray(name, value)
    if order is not None and data.ndim != order:
        raise ShapeError(
            f"{name} has shape {tuple(data.shape)}; expected {order} axes: reshape it first"
        )
    if data.ndim < min_order:
        raise ShapeError(
            f"{name} has shape {tuple(data.shape)}; expected at least {min_order} axes"
        )
    if 0 in data.shape:
        raise ShapeError(f"{name} has shape {tuple(data.shape)}: it is empty; give some data")
    return data


def memory_mapped(name: str, path: Any) -> np.ndarray:
    """The array of a .npy file, mapped into memory and not read yet."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError(f"{name} names a file that does not exist: {path}") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{name} = {str(path)!r} cannot be read as a .npy file ({error}); it may be truncated, or hold objects: "
            "write it anew with numpy.save"
        ) from error
    if not isinstance(found, np.memmap):
        with found:
            names = ", ".join(map(repr, found.files))
        raise DataError(
            f"{name} = {str(path)!r} is an archive of arrays ({names}), which cannot be mapped; write one of them with "
            "numpy.save, or give the array itself"
        )
    return found


def vector(name: str, value: Any, size: int, like: Array, *, because: str) -> Array:
    """A finite vector of ``size`` entries, where ``like`` lives; float64 stays float64."""
    data = asarray(name, value)
    if tuple(data.shape) != (size,):
        raise ShapeError(
            f"{name} has shape {tuple(data.shape)}; expected ({size},), because {because}"
        )
    xp = namespace(like)
    if data.dtype == namespace(data).float64 and like.dtype != xp.float64:
        like = xp.astype(like[:0, ...], xp.float64)
    return convert(data, like)


def together(*data: Array) -> tuple[Array, ...]:
    """All data of one function in one dtype, the widest of them: certificates speak of what was given."""
    double = namespace(*data).float64
    like = next((part for part in data if part.dtype == double), data[0])
    return tuple(convert(part, like) for part in data)


def number(name: str, value: Any, *, hint: str) -> float:
    """One finite real number."""
    data = asarray(name, value)
    if data.ndim != 0:
        raise ShapeError(f"{name} has shape {tuple(data.shape)}; expected one number: {hint}")
    return float(data)


def exponent(value: Any, *, concave: bool = False) -> float:
    """p in (1, 2]; above 2 only for concave functions."""
    p = number("p", value, hint="the exponent p of the norm, 1 < p <= 2")
    if p <= 1.0:
        raise DataError(f"p must be > 1, got {p}: at p <= 1 the conjugate exponent q is undefined")
    if p > 2.0 and not concave:
        raise DataError(
            f"p must be <= 2, got {p}: a function that satisfies the inequality of Curvature with p > 2 "
            "is concave (theory E2); give p = 2, or concave=True if that is what it is"
        )
    return p


def event_shape(name: str, value: Any) -> tuple[int, ...]:
    """An event shape, from an integer or a sequence of integers."""
    sizes = (value,) if is_size(value) else value
    if not isinstance(sizes, tuple | list) or not all(is_size(size) for size in sizes):
        raise ShapeError(f"{name} is {value!r}; expected a positive integer or a tuple of such")
    if not sizes:
        raise ShapeError(f"{name} is (); a block has at least one axis: write (1,) for a number")
    return tuple(int(size) for size in sizes)


def event_shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of all blocks: 5, (5, 3) for one block; [(5,), (3,)] or [5, 3] for several."""
    if isinstance(value, list):
        if not value:
            raise ShapeError("shapes is []; give one shape per block, such as [(5,), (3,)]")
        return tuple(event_shape(f"shapes[{i}]", shape) for i, shape in enumerate(value))
    if isinstance(value, tuple) and any(isinstance(part, tuple | list) for part in value):
        return event_shapes(list(value))
    return (event_shape("shapes", value),)


def same_shapes(shapes: list[tuple[tuple[int, ...], ...]], owner: str) -> None:
    """All parts of a function must speak of the same blocks."""
    for j, other in enumerate(shapes):
        if other != shapes[0]:
            raise ShapeError(
                f"{owner}: part {j} has blocks {list(other)}, but part 0 has {list(shapes[0])}; "
                "all parts must have the same blocks"
            )


def is_size(value: Any) -> bool:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return False
    return math.prod(getattr(value, "shape", ())) == 1 and int(value) > 0
