"""How a law says that it is broken, and how laws compare numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from restpoint.array import Array, convert, to_host


class LawBroken(AssertionError):  # noqa: N818 (it is a finding, like an assertion)
    """A declaration or an implementation contradicts itself; the message shows where."""


def host(value: Any) -> np.ndarray:
    """Any array or number as NumPy float64, for comparing."""
    return np.asarray(to_host(value) if hasattr(value, "shape") else value, dtype=np.float64)


def at_most(left: Any, right: Any, tolerance: Any, law: str) -> None:
    """Left <= right + tolerance, start by start; NaN breaks the law."""
    left, right, tolerance = np.broadcast_arrays(host(left), host(right), host(tolerance))
    holds = left <= right + tolerance
    if not holds.all():
        where = tuple(int(k) for k in np.argwhere(~holds)[0])
        place = f" at start {where}" if where else ""
        raise LawBroken(
            f"{law}{place}: {float(left[where])!r} > {float(right[where])!r} "
            f"(by {left[where] - right[where]:.3g}, allowed {tolerance[where]:.3g})"
        )


def equal(left: Any, right: Any, tolerance: Any, law: str) -> None:
    """|left - right| <= tolerance, entry by entry."""
    at_most(np.abs(host(left) - host(right)), 0.0, tolerance, law)


def same_kind(answer: Array, like: Array, shape: tuple[int, ...], law: str) -> None:
    """Library, dtype and shape of an answer."""
    have = (type(answer).__module__.split(".")[0], answer.dtype, tuple(answer.shape))
    want = (type(like).__module__.split(".")[0], like.dtype, tuple(shape))
    if have != want:
        raise LawBroken(f"{law}: library, dtype and shape are {have}, expected {want}")


class Inputs:
    """Arrays handed to the code under test, read-only where possible, and compared afterwards."""

    def __init__(self, like: Array) -> None:
        self.like = like
        self._given: list[tuple[Array, np.ndarray]] = []

    def give(self, values: np.ndarray) -> Array:
        """``values`` in the library and dtype of ``like``."""
        array = convert(values.copy(), self.like)
        self._given.append((array, host(array).copy()))
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
        return array

    def check_untouched(self, law: str) -> None:
        """No input has changed."""
        for array, before in self._given:
            if not np.array_equal(host(array), before):
                raise LawBroken(f"{law}: an input array was written to")


def gradients(
    rng: np.random.Generator, batch: tuple[int, ...], shape: tuple[int, ...]
) -> Iterator[np.ndarray]:
    """Random gradients, and the awkward ones: ties, zeros, one dominant entry, all zero."""
    full = (*batch, *shape)
    yield rng.standard_normal(full)
    yield np.round(rng.standard_normal(full))
    yield rng.standard_normal(full) * (rng.random(full) < 0.5)
    yield rng.standard_normal(full) * 10.0 ** rng.integers(-6, 3, full)
    yield np.zeros(full)


def unit(like: Array) -> float:
    """The spacing of numbers at 1 in the dtype of ``like``."""
    from restpoint.array import namespace

    return float(namespace(like).finfo(like.dtype).eps)
