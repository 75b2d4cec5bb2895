"""What the sets tell about the size of their points, as numbers that are safe to compute with.

Sets may carry a batch; facts are shared by all starts, so the largest answer is taken. The answers are rounded away
from the claim that they support.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from restpoint.array import Array, gamma, is_array, product_up, to_host

if TYPE_CHECKING:
    from restpoint.sets import Set

# Probing the orthant costs the square of the number of entries.
LARGEST_PROBED_SIZE = 4096


def largest_norm(set: Set, shape: tuple[int, ...]) -> float:
    """An upper bound on ||y||_2 over the set (over all its batch)."""
    return _largest(set.norm_bound(shape), math.prod(shape))


def largest_distance(set: Set, p: float, shape: tuple[int, ...]) -> float:
    """An upper bound on ||x - y||_p over the set."""
    return _largest(set.diameter(p, shape), math.prod(shape))


def largest_product(set: Set, g: np.ndarray) -> float:
    """An upper bound on g'y over the set."""
    host, (g, unit) = _on_host(set), scaled(g)
    value, size = _numbers(host.support(g)), _numbers(host.absolute_support(np.abs(g)))
    bound = unit * (float(np.max(value)) + _slack(value, g.size) * float(np.max(size)))
    return bound if bound == 0.0 or unit == 1.0 else math.nextafter(bound, math.inf)


def largest_squares(set: Set, rows: np.ndarray) -> float:
    """An upper bound on the sum of the largest (g'y)^2 of every row g, each over the set; rows of moderate size."""
    host = _on_host(set)
    between = (1,) * len(host.batch_shape)
    both = np.concatenate([rows, -rows]).reshape(2 * len(rows), *between, -1)
    value, size = _numbers(host.support(both)), _numbers(host.absolute_support(np.abs(both)))
    most = value + _slack(value, rows.shape[-1]) * size
    largest = np.max(most.reshape(2, len(rows), -1), axis=(0, 2))
    return float(np.sum(largest * largest)) * (1.0 + gamma(len(rows) + 4))


def largest_absolute_product(set: Set, a: np.ndarray) -> float:
    """An upper bound on a'|y| over the set, a >= 0."""
    a, unit = scaled(a)
    return product_up(unit, _largest(_on_host(set).absolute_support(a), a.size))


def in_orthant(set: Set, shape: tuple[int, ...]) -> bool:
    """Whether the set is known to contain no point with a negative entry.

    The support function at -e_j is minus the smallest y_j: exact for boxes and simplices. False also means
    "too many entries to ask".
    """
    size = math.prod(shape)
    if size > LARGEST_PROBED_SIZE:
        return False
    host = _on_host(set)
    between = (1,) * len(host.batch_shape)
    for first in range(0, size, 256):
        count = min(256, size - first)
        probes = np.zeros((count, size))
        probes[np.arange(count), np.arange(first, first + count)] = -1.0
        answers = host.support(probes.reshape(count, *between, *shape))
        if not bool(np.all(_numbers(answers) <= 0.0)):
            return False
    return True


def scaled(g: np.ndarray) -> tuple[np.ndarray, float]:
    """g / unit and the unit, a power of 2: 1 unless the squares of the entries could overflow or underflow."""
    exponent = math.frexp(float(np.max(np.abs(g))))[1]
    if abs(exponent) < 256:
        return g, 1.0
    exponent = min(max(exponent, -1000), 1000)
    return np.ldexp(g, -exponent), math.ldexp(1.0, exponent)


def power(base: float, exponent: float) -> float:
    """base^exponent, infinite where it overflows."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def _on_host(set: Set) -> Set:
    return set.converted(np.zeros(()))


def _numbers(value: Array) -> np.ndarray:
    return np.asarray(to_host(value) if is_array(value) else value)


def _slack(value: np.ndarray, size: int) -> float:
    kind = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
    return (size + 8) * float(np.finfo(kind).eps)


def _largest(value: Array, size: int) -> float:
    numbers = _numbers(value)
    return float(np.max(numbers)) * (1.0 + _slack(numbers, size))
