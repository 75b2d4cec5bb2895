"""Running error analysis in float64 (theory A12).

A bound is itself computed in floating point and may come out too small by a few roundings; ``SLACK`` pays for that
in any sum of fewer than 1e12 terms. Products may underflow, to zero on some devices: ``underflow`` pays for that.
"""

from __future__ import annotations

from restpoint.array import Array, namespace

SLACK = 1.001
# Exponentials, logarithms and powers of every library used here are within 4 units in the last place.
FUNCTION_ROUNDINGS = 8


def is_double(*arrays: Array) -> bool:
    """Whether all arrays are float64: the bounds are proved for nothing else."""
    double = namespace(*arrays).float64
    return all(array.dtype == double for array in arrays)


def underflow(x: Array, operations: int) -> float:
    """What ``operations`` underflowing products can lose."""
    return operations * float(namespace(x).finfo(x.dtype).smallest_normal)
