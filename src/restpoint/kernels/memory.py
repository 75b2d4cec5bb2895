"""Memory for the compiled loops: loads that cross no cache line, and pages that need not be asked for anew."""

from __future__ import annotations

import math

import numpy as np

# Bytes of a cache line, and of the widest vector register.
LINE = 64
# Larger arrays get pages of their own from the system, and begin at the same place in the first of them.
OWN_PAGES = 2**25


def aligned(*shapes: tuple[int, ...], dtype: np.dtype, lead: int = 0) -> list[np.ndarray]:
    """Arrays of these shapes, not filled, whose entries number ``lead`` begin a cache line.

    All lie in one piece of memory: of several pieces the C library gives some back to the system every time, and a
    page that is touched for the first time costs as much as reading it twenty times.
    """
    sizes = [math.prod(shape) * dtype.itemsize for shape in shapes]
    room = np.empty(sum(sizes) + 2 * LINE * len(shapes), np.uint8)
    place, found = room.__array_interface__["data"][0], []
    begin = place
    for shape, size in zip(shapes, sizes, strict=True):
        begin += -(begin + lead * dtype.itemsize) % LINE
        found.append(np.ndarray(shape, dtype, room, begin - place))
        begin += size
    return found


def zeros(*shape: int, dtype: np.dtype, lead: int = 0) -> np.ndarray:
    """One array as by ``aligned``, filled with zeros."""
    (found,) = aligned(shape, dtype=dtype, lead=lead)
    found.fill(0)
    return found


def lead(matrix: np.ndarray) -> int:
    """How many columns of a contiguous matrix come before the first cache line that begins in a row; 0 if it varies.

    0 for matrices below ``OWN_PAGES``, too: sums are grouped by it, and where such a matrix lies changes from run to
    run, while results are to repeat bit by bit.
    """
    if matrix.nbytes < OWN_PAGES:
        return 0
    misplaced = -matrix.__array_interface__["data"][0] % LINE
    even = matrix.strides[0] % LINE == 0 and misplaced % matrix.itemsize == 0
    return misplaced // matrix.itemsize if even else 0
