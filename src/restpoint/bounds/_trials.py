"""Steps found by trial, for f whose constants nobody has to know: theory A3 and A4."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import reduce
from typing import Any, Literal

import numpy as np

from restpoint.array import Array, whole_number
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import OMEGA, Data, Rule, exact_omega
from restpoint.bounds._numbers import block_divisor, entries, number, plain
from restpoint.bounds._theorems import BLOCK_MAJORANT, Entries, Measure
from restpoint.errors import DataError
from restpoint.omega import conjugate, omega

AnyOrder = Literal["jacobi", "max-improvement", "gauss-seidel"]

# A count of looks is of trials, accepted or not, and of the starting point.
_MOVES = {
    "jacobi": "all blocks move together",
    "max-improvement": "a single block moves",
    "gauss-seidel": "a single block moves",
}
_NAMES = {
    "jacobi": ", Jacobi",
    "max-improvement": ", maximum improvement",
    "gauss-seidel": ", Gauss-Seidel",
}


def addition_3(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    p: float = 2.0,
    order: AnyOrder = "jacobi",
    measure: Measure = "max",
    concave: bool = False,
    slack: Array = 0.0,
) -> Bound:
    r"""Conditional gradient with the step lengths of ``Armijo``, in trials; no constant is used by the method.

    A step of length s is accepted when Phi falls by s/2 times the gap, tried with the last length or more, at most
    twice it; a refused s is at least halved, and goes no lower than half of (G/D)^(q-1), G the gaps that it saw. With
    s_min = min{1, (eps / D)^(q-1) / 2}, at most N = max{1, ceil(2 delta / (eps s_min))} looks see accepted points
    with a gap above eps, for every pair (p, lambda) that is true of f; with refused trials 2 N - 1 + log2(1 / s_min)
    looks. D and the gap are

        "jacobi"           sum_i D_i, joint constants, the sum of the gaps (and so the largest)
        "gauss-seidel"     sum_i D_i + max_i D_i, blockwise constants, largest gap first (it moves twice)
        "max-improvement"  max_i D_i, blockwise constants

    with D_i = lambda_i diam_p(S_i)^p; the last two bound the largest gap, and the sum with eps / d for eps. Where a
    trial may be accepted although Phi falls by ``slack`` less, so much is taken from the decrease s_min eps / 2 (theory
    A5(i)). Proof: theory A3; a sweep is accepted as a whole, so its refusal implies s^(p-1) D > the sum of the gaps
    that it saw > eps.

    >>> addition_3(eps=0.5, delta=1.0, constants=(1.0,), diameters=(1.0,)).count
    33.0
    """
    data = _checked(eps, delta, constants, diameters, p, order, measure, concave)
    data = dataclasses.replace(data.following(_ARMIJO, lost=slack), twice=order == "gauss-seidel")
    bound = data.bound(
        f"Armijo steps{_of(data, order)} (theory A3)",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where {_MOVES[order]}",
        hidden=("decrease",),
    )
    if bound.count is None:
        return bound.with_trials(0.0)
    with np.errstate(all="ignore"):
        shortest = _shortest(data.eps / data.divisor, data.curvature(), data.p)
        return bound.with_trials(plain(-np.log2(shortest)))


def addition_3_known_p(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    initial: Array | None,
    p: float = 2.0,
    order: AnyOrder = "jacobi",
    measure: Measure = "max",
    slack: Array = 0.0,
) -> Bound:
    r"""Either step with the constants of ``Doubling``, in trials: p is known, lambda is not.

    A trial is accepted when Phi falls by what its constant guarantees; else the constant is doubled, or raised to one
    that the refusal proves to be too small. No constant above the true ones is refused, so none is larger than
    L = max{initial, 2 max_i lambda_i}, and N = max{1, ceil(delta / omega_D(eps))} looks see accepted points with a
    gap above eps, where D comes from L diam_p(S_i)^p as in ``theorem_5_2`` ("jacobi" and "max-improvement") or
    ``addition_13`` ("gauss-seidel"). With refused trials that makes 2 N - 1 + log2(L / initial) looks. ``slack`` as
    in ``addition_3``. Proof: theory A3.

    >>> addition_3_known_p(
    ...     eps=0.5, delta=1.0, constants=(1.0,), diameters=(1.0,), initial=0.25
    ... ).count
    34.0
    """
    data = _checked(eps, delta, constants, diameters, p, order, measure, concave=False)
    if order != "jacobi" or measure == "max":
        data = dataclasses.replace(data, joined=False)
    if initial is None:
        data = data.lacking("the constant that is tried first")
    growth: Array = 0.0
    if not data.missing:
        first = number("initial", initial, positive=True)
        largest = np.maximum(first, 2.0 * reduce(np.maximum, data.constants))
        growth = np.log2(largest / first)
        data = dataclasses.replace(data, constants=(largest,) * len(data.constants))
    bound = data.following(OMEGA, lost=slack).bound(
        f"Doubling{_of(data, order)} (theory A3)",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where {_MOVES[order]}",
    )
    return bound.with_trials(plain(np.asarray(growth)))


def addition_4(  # noqa: PLR0913 - beside the numbers of a theorem, what is tried first and who moves
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    size: int,
    initial: Array | None,
    p: float = 2.0,
    order: AnyOrder = "jacobi",
    measure: Measure = "max",
    slack: Array = 0.0,
) -> Bound:
    r"""The proximal step with the weights of ``Universal``, in trials: neither p nor lambda is used by the method.

    The weight (w/2) ||y - x||_2^2 is accepted when Phi falls by half of the model's decrease M, else multiplied by
    max{2, 2 - fallen/M}. Let n = ``size`` be the number of entries in all, diam_2(S)^2 = sum_i diam_2(S_i)^2
    (``diameters`` are Euclidean), and D_2 = max_i lambda_i n^(1-p/2) diam_2(S)^p for any pair (p, lambda), 1 < p <=
    2, that is true of f. As long as the gap exceeds eps, no weight above K / diam_2(S)^2 is tried,

        K = max{initial diam_2(S)^2, 2 D_2 max{1, (D_2 / eps)^(q-2)}}.

    So N = max{1, ceil(2 delta / omega_K(eps))} looks see accepted points with a gap above eps, omega for p = 2: for
    small ``initial`` and eps <= D_2 that is 8 delta D_2^(q-1) / eps^q. With refused trials:
    2 N - 1 + log2(K / (initial diam_2(S)^2)).

    The gap is the sum of the blocks' for "jacobi" (joint constants), the largest for the others (blockwise ones;
    eps / d for the sum); "gauss-seidel" moves a block twice, so its n counts 2 n. ``slack`` as in ``addition_3``.
    Proof: theory A4; in sweeps with sum_i n_i^(1-p/2) ||d_i||^p <= n^(1-p/2) (sum_i ||d_i||^2)^(p/2). With
    r = ||d||, D_r = D_2 / diam_2(S)^p and M >= max{w r^2/2, omega(gap)}, a refusal says that 2 (M - fallen) <=
    D_r r^p - w r^2; so where w grows by more than 2, to w (2 - fallen/M), it becomes at most max{D_2 / diam_2(S)^2,
    D_r (w diam_2(S) / gap)^(2-p)} or (D_2 + gap)^2 / (4 gap diam_2(S)^2) for D_2 < gap < 2 D_2: within the limit.

    >>> addition_4(
    ...     eps=0.5, delta=1.0, constants=(1.0,), diameters=(1.0,), size=3, initial=0.5
    ... ).count
    65.0
    """
    size = whole_number("size", size, 1)
    data = _checked(eps, delta, constants, diameters, p, order, measure, concave=False)
    if data.p > 2.0:
        raise DataError(f"p is {data.p}; the universal step is bounded for 1 < p <= 2")
    if initial is None:
        data = data.lacking("the weight that is tried first")
    growth: Array = 0.0
    name = _of(data, order)
    own: dict[str, Any] = {}
    if not data.missing:
        moves = 2 * size if order == "gauss-seidel" and len(data.constants) > 1 else size
        constant = reduce(np.maximum, data.constants)
        diameter = np.sqrt(sum(d * d for d in data.diameters)) * (1.0 + 1e-15 * len(data.diameters))
        if len(data.diameters) == 1:
            (diameter,) = data.diameters
        square = diameter * diameter
        first = number("initial", initial, positive=True)
        tried = np.nextafter(first * square, np.inf)
        joint = dataclasses.replace(
            data,
            constants=(constant * float(moves) ** (1.0 - 0.5 * data.p),),
            diameters=(diameter,),
        )
        data = joint.following(_UNIVERSAL, tried, lost=slack)
        with np.errstate(all="ignore"):
            largest = _largest(data.eps / data.divisor, data.curvature(), data.p, tried)
            growth = np.log2(largest / tried)
        own = {"lambda": plain(constant), "diameter_2": plain(diameter), "entries": size}
    bound = data.bound(
        f"Universal proximal steps{name} (theory A4)",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where {_MOVES[order]}",
        hidden=("lambda", "diameter", "D", "decrease"),
        more=own,
    )
    bound = dataclasses.replace(bound, rate=f"O(1/eps^{conjugate(data.p):.4g})")
    return bound.with_trials(plain(np.asarray(growth)))


# --- by how much an accepted trial lowers Phi ------------------------------------------------------


def _shortest(eps: np.ndarray, curvature: np.ndarray, p: float) -> np.ndarray:
    """The s below which no step of theory A3 falls."""
    with np.errstate(all="ignore"):
        return np.minimum(1.0, 0.5 * (eps / curvature) ** (1.0 / (p - 1.0)))


def _armijo(eps: np.ndarray, curvature: np.ndarray, p: float) -> np.ndarray:
    return 0.5 * eps * _shortest(eps, curvature, p)


def _armijo_exactly(eps: Fraction, curvature: Fraction) -> Fraction:
    shortest = Fraction(1) if 2 * curvature <= eps else eps / (2 * curvature)
    return shortest * eps / 2


def _largest(eps: np.ndarray, curvature: np.ndarray, p: float, first: np.ndarray) -> np.ndarray:
    """The K of theory A4: no weight above K / diam_2^2 is tried."""
    with np.errstate(all="ignore"):
        steeper = np.maximum(1.0, (curvature / eps) ** ((2.0 - p) / (p - 1.0)))
        return np.maximum(first, 2.0 * np.where(curvature > 0.0, curvature * steeper, 0.0))


def _universal(eps: np.ndarray, curvature: np.ndarray, p: float, first: np.ndarray) -> np.ndarray:
    largest = np.minimum(_largest(eps, curvature, p, first), np.finfo(np.float64).max)
    return 0.5 * omega(eps, largest, 2.0)


def _universal_exactly(eps: Fraction, curvature: Fraction, first: Fraction) -> Fraction:
    return exact_omega(eps, max(first, 2 * curvature)) / 2


_ARMIJO = Rule(_armijo, _armijo_exactly)
_UNIVERSAL = Rule(_universal, _universal_exactly)


# --- what they share ---------------------------------------------------------------------------------


def _checked(  # noqa: PLR0917 - the arguments of the three theorems, as they came
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    p: float,
    order: str,
    measure: str,
    concave: bool,
) -> Data:
    """The numbers; D is joined where several blocks may have to share one decrease."""
    if order not in _MOVES:
        raise DataError(
            f"order is {order!r}; expected 'jacobi', 'gauss-seidel' or 'max-improvement'"
        )
    constants, diameters = entries("constants", constants), entries("diameters", diameters)
    given = constants if constants is not None else diameters
    blocks = 1 if given is None else max(1, len(given))
    divisor = block_divisor(blocks, measure)
    return Data.checked(
        eps,
        delta,
        constants,
        diameters,
        p=p,
        concave=concave,
        divisor=1 if order == "jacobi" else divisor,
        joined=order != "max-improvement",
    )


def _of(data: Data, order: str) -> str:
    return "" if len(data.constants) <= 1 else _NAMES[order]
