"""Gauss-Seidel in a fixed order: theory A7."""

from __future__ import annotations

from typing import Any

import numpy as np

from restpoint.array import Array, is_array
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import Data, Rule
from restpoint.bounds._numbers import block_divisor, entries, number, plain, product
from restpoint.bounds._theorems import BLOCK_MAJORANT, Entries, Measure
from restpoint.errors import DataError, ShapeError
from restpoint.omega import conjugate, omega_inverse

_HALVINGS = 80  # of a bracket in logarithms, from 1e-300 to eps


def addition_7(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    cross: Array | Entries | None,
    p: float = 2.0,
    measure: Measure = "max",
) -> Bound:
    r"""Gauss-Seidel sweeps in cyclic order, either step, with blockwise constants lambda_i > 0.

    ``cross`` is H, or one H_i per block: ||grad_i f(x) - grad_i f(x')||_q <= H_i ||x - x'||_p^(p-1) where x_i = x'_i.
    A sweep that lowers Phi by v or less started at a point with

        Triangle_i L <= G_i(v) = omega_{D_i}^{-1}(v) + H_i diam_p(S_i) (2 v / ((p - 1) lambda_min))^(1/q),

    so N = max{1, ceil(delta / v)} sweeps, where max_i G_i(v) = eps (sum_i G_i(v) = eps for the sum of the gaps), for
    every eps > 0. Theory A7 states it in closed form for eps <= (p/2) max_i D_i: delta C^q / eps^q with
    C = max_i [(max D^(q-1) / c_p)^(1/q) + H diam_p(S_i) (2 / ((p - 1) lambda_min))^(1/q)], which is never smaller.
    Proof: theory A7. Without curvature no such bound is true for three blocks (theory E30); the paper has none.

    >>> addition_7(eps=0.5, delta=0.99, constants=(2.0, 2.0), diameters=(1.0, 1.0), cross=2.0).count
    64.0
    """
    constants, diameters = entries("constants", constants), entries("diameters", diameters)
    data = Data.checked(eps, delta, constants, diameters, p=p)
    blocks = max(len(data.constants), len(data.diameters), 1)
    block_divisor(blocks, measure)
    if any(np.any(constant <= 0.0) for constant in data.constants):
        raise DataError(
            "constants must be > 0: with constant 0 a cyclic sweep has no bound for three blocks (theory E30); "
            "any larger constant is true as well, or use addition_13"
        )
    if cross is None:
        data = data.lacking("the cross-Hoelder constant H")
    several = _cross(cross, blocks)
    more = {f"H_{i + 1}": plain(H) for i, H in enumerate(several)}
    if not data.missing:
        v = _smallest_decrease(data, several, measure)
        data = data.following(Rule(lambda *_: v, None))
    return data.bound(
        "Gauss-Seidel, cyclic (theory A7)",
        counts="sweeps",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where a single block moves, and "
        "||grad_i f(x) - grad_i f(x')||_q <= H_i ||x - x'||_p^(p-1) where x_i = x'_i",
        blocks=blocks,
        more=more,
    )


def _cross(cross: Array | Entries | None, blocks: int) -> tuple[np.ndarray, ...]:
    """One H per block."""
    if cross is None:
        return ()
    given: Any = cross
    listed = isinstance(given, (tuple, list)) or (is_array(given) and given.ndim == 1)
    several = entries("cross", given) if listed else (given,) * blocks
    if several is None or len(several) != blocks:
        raise ShapeError(f"cross is {cross!r}; expected a number, or one per block, {blocks}")
    return tuple(number("cross", H) for H in several)


def _smallest_decrease(data: Data, cross: tuple[np.ndarray, ...], measure: Measure) -> np.ndarray:
    """A v with G(v) <= eps, the largest up to rounding."""
    p, q = data.p, conjugate(data.p)
    smallest = np.minimum.reduce(np.broadcast_arrays(*data.constants))
    with np.errstate(all="ignore"):
        parts = [
            (
                product(constant, diameter, p),
                H * diameter * (2.0 / ((p - 1.0) * smallest)) ** (1.0 / q),
            )
            for constant, diameter, H in zip(data.constants, data.diameters, cross, strict=True)
        ]

    def gap(v: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            gaps = [omega_inverse(v, D, p) + slope * v ** (1.0 / q) for D, slope in parts]
        return np.asarray(
            sum(gaps) if measure == "sum" else np.maximum.reduce(np.broadcast_arrays(*gaps))
        )

    low = np.full(data.shape, np.log(1e-300))
    high = np.broadcast_to(np.log(data.eps), data.shape)  # omega^{-1}(v) >= v
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        fits = gap(np.exp(middle)) <= data.eps
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    v = np.exp(low)
    return np.where(gap(v) <= data.eps, v, 0.0)
