"""Gradients with a declared error: theory A5."""

from __future__ import annotations

from typing import Literal

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import Data, Rule
from restpoint.bounds._numbers import block_divisor, entries, number, plain, product
from restpoint.bounds._theorems import BLOCK_MAJORANT, Entries, Measure
from restpoint.errors import DataError, ShapeError
from restpoint.omega import omega

Step = Literal["conditional-gradient", "proximal-gradient"]

_ROUNDINGS = 64.0 * UNIT_ROUNDOFF


def addition_5(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    errors: Entries,
    reaches: Entries | None = None,
    p: float = 2.0,
    step: Step = "conditional-gradient",
    measure: Measure = "max",
) -> Bound:
    r"""Steps by gradients g_i with ||g_i - grad_i f(x)|| <= eta_i, in exact arithmetic otherwise.

    The gap that is computed with g is off by at most eta_i R_i, with R_i the diameter of S_i in the dual norm
    (``reaches``; default ``diameters``): eta_i R_i is added to what is reported and taken from what a step relies on.
    A reported gap above eps then lowers Phi by at least, in any covered order of the blocks,

        min_i omega_{D_i}(eps - 2 eta_i R_i)                                    "conditional-gradient"
        min_i u_i - eta_i (2 u_i / ((p-1) lambda_i))^(1/p), u_i = omega_{D_i}(eps - eta_i R_i)   "proximal-gradient"

    D_i = lambda_i diam_p(S_i)^p (eps / d for the sum of the gaps), and N = max{1, ceil(delta / that)}; infinite where
    that is not positive: for p = 2, eps <= 2 eta R and eps <= 3 eta R. What is certified is the true gap.
    Constants are joint where all blocks move together, else blockwise.
    Proof: theory A5(ii); for the proximal step d the decrease is at least Triangle U - eta ||d||, and
    (p-1) (lambda/2) ||d||_p^p <= Triangle U (theory A1), which is convex in Triangle U.

    >>> addition_5(eps=0.5, delta=1.0, constants=(1.0,), diameters=(1.0,), errors=(0.05,)).count
    13.0
    """
    constants, diameters = entries("constants", constants), entries("diameters", diameters)
    if step not in ("conditional-gradient", "proximal-gradient"):
        raise DataError(f"step is {step!r}; expected 'conditional-gradient' or 'proximal-gradient'")
    data = Data.checked(eps, delta, constants, diameters, p=p)
    etas = _per_block("errors", errors, len(data.constants))
    far = data.diameters if reaches is None else _per_block("reaches", reaches, len(etas))
    data = Data.checked(
        eps, delta, constants, diameters, p=p, divisor=block_divisor(len(etas), measure)
    )
    if not data.missing:
        conditional = step == "conditional-gradient"
        parts = [
            _guaranteed(data, constant, diameter, eta, reach, conditional=conditional)
            for constant, diameter, eta, reach in zip(
                data.constants, data.diameters, etas, far, strict=True
            )
        ]
        least = np.minimum.reduce(np.broadcast_arrays(*parts))
        data = data.following(Rule(lambda *_: least, None))
    several = len(etas) > 1
    return data.bound(
        f"{step.replace('-', ' ').capitalize()} by inexact gradients (theory A5)",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT}, and ||g_i - grad_i f(x)|| <= eta_i",
        more={f"eta_{i + 1}" if several else "eta": plain(eta) for i, eta in enumerate(etas)},
    )


def _per_block(name: str, values: Entries, blocks: int) -> tuple[np.ndarray, ...]:
    given = entries(name, values)
    if given is None or (blocks and len(given) != blocks):
        raise ShapeError(f"{name} is {values!r}; expected one per block, {blocks}")
    return tuple(number(name, value) for value in given)


def _guaranteed(
    data: Data,
    constant: np.ndarray,
    diameter: np.ndarray,
    eta: np.ndarray,
    reach: np.ndarray,
    *,
    conditional: bool,
) -> np.ndarray:
    """The decrease that one block guarantees, rounded down."""
    p, gap, off = data.p, data.eps / data.divisor, eta * reach
    conditional = conditional or bool(np.all(constant == 0.0))  # then the two steps are one
    least = gap - (2.0 if conditional else 1.0) * off - _ROUNDINGS * (gap + off) * (off > 0.0)
    D = product(constant, diameter, p)
    decrease = np.asarray(omega(np.asarray(np.maximum(least, 0.0)), D, p))
    if conditional or not np.any(eta > 0.0):
        return decrease
    with np.errstate(all="ignore"):
        move = np.where(
            constant > 0.0, (2.0 * decrease / ((p - 1.0) * constant)) ** (1.0 / p), reach
        )
    return np.asarray(np.maximum(decrease - eta * move * (1.0 + _ROUNDINGS / (p - 1.0)), 0.0))
