"""The theorems, one function each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import STANDING, Data
from restpoint.bounds._numbers import block_divisor, entries, number, plain
from restpoint.errors import DataError, ShapeError
from restpoint.omega import conjugate, omega_inverse

Entries = Sequence[Array | None]  # one per block; None where it is not known
Measure = Literal["max", "sum"]
Order = Literal["jacobi", "max-improvement"]

MAJORANT = "f(y) <= f(x) + grad f(x)'(y - x) + (lambda/2) ||y - x||_p^p"
BLOCK_MAJORANT = "f(y) <= f(x) + grad f(x)'(y - x) + sum_i (lambda_i/2) ||y_i - x_i||_p^p"


# --- one block of variables ----------------------------------------------------------------------


def theorem_3_1(
    *,
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""Algorithm 1 (conditional gradient) with the step length of ``omega.step_length``.

    If f(y) <= f(x) + grad f(x)'(y - x) + (lambda/2) ||y - x||_p^p on S, some x^k with
    k <= N = max{1, ceil(delta / omega_D(eps))} has Delta L(x^k) <= eps, D = lambda diam_p(S)^p.
    Holds for every eps > 0. Proof: paper Theorem 3.1, in the sharp form of theory E9.
    The paper's N = ceil(2 delta D^(q-1) / eps^q) needs eps < D and is 2 c_p times as large where
    eps <= p D / 2.

    Parameters
    ----------
    eps : number or array
        The gap to reach.
    delta : number, array or None
        Phi(x1) minus a lower bound on Phi; None or infinite if no lower bound is known.
    constant, diameter : number, array or None
        The lambda and diam_p(S) of the formula, or upper bounds on them; None if not known.
    p : float
        In (1, 2]; larger only with ``concave``.
    concave : bool
        Whether f is concave on S. For p > 2 the inequality holds for no other f (theory E2).

    Examples
    --------
    >>> bound = theorem_3_1(eps=0.05, delta=1.0, constant=1.0, diameter=2.0)
    >>> bound.count, bound.paper_bound
    (3200.0, 3200.0)
    >>> bound = theorem_3_1(eps=0.31, delta=1.0, constant=1.0, diameter=2.0, p=1.5)
    >>> bound.count, bound.paper_bound
    (454.0, 538.0)
    """
    data = Data.checked(eps, delta, (constant,), (diameter,), p=p, concave=concave)
    return _one_block("Theorem 3.1", data)


def theorem_3_3(
    *,
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""Algorithm 2 (proximal gradient with the weight lambda); arguments as in ``theorem_3_1``.

    If f(y) <= f(x) + grad f(x)'(y - x) + (lambda/2) ||y - x||_p^p on S, some x^k with
    k <= N = max{1, ceil(delta / omega_D(eps))} has Delta L(x^k) <= eps: a step lowers Phi by at
    least Delta U(x^k) >= omega_D(Delta L(x^k)). Proof: paper Theorem 3.3, with theory E7 in place of
    Lemma 2.2(ii), which makes it hold for every eps > 0 (theory E9).

    >>> theorem_3_3(eps=5.0, delta=7.0, constant=1.0, diameter=2.0).count
    3.0
    """
    data = Data.checked(eps, delta, (constant,), (diameter,), p=p, concave=concave)
    return _one_block("Theorem 3.3", data)


def lemma_2_2(
    *,
    decrease: Array,
    constant: Array | None,
    diameter: Array | None,
    p: float = 2.0,
) -> Bound:
    r"""How large the gap of a point can be whose proximal step has the model decrease Triangle U = ``decrease``.

    Triangle L(z) <= omega_D^{-1}(Triangle U(z)), D = lambda diam_p(S)^p, for every weight lambda > 0 of the proximal
    step, whether or not it is a constant of f: ``count`` is that number, rounded up. Proof: theory E7, which shows that
    nothing better holds in terms of Triangle U and D; ``diameter`` may be max ||y - z||_p over y in S. The paper's
    Lemma 2.2(ii) says (2 Triangle U)^(1/q) D^(1/p), under its condition that this is at most D. It is mathematics: for
    p < 2 a rounded proximal point may hide a gap, so certificates do without it.

    >>> bound = lemma_2_2(decrease=0.125, constant=1.0, diameter=2.0)
    >>> round(bound.count, 9), bound.paper_bound
    (1.0, 1.0)
    """
    data = Data.checked(1.0, 0.0, (constant,), (diameter,), p=p)
    fallen = number("decrease", decrease)
    count = printed = None
    named = {"decrease": plain(fallen), "p": data.p}
    if not data.missing:
        up, q, D = 1.0 + 64.0 * UNIT_ROUNDOFF, conjugate(data.p), data.curvature()
        count = np.asarray(omega_inverse(fallen, D, data.p)) * up
        with np.errstate(all="ignore"):
            gap = (2.0 * fallen) ** (1.0 / q) * D ** (1.0 / data.p)
        printed = np.where(gap <= D, gap, np.nan)
        named |= {
            "lambda": plain(data.constants[0]),
            "diameter": plain(data.diameters[0]),
            "D": plain(D),
        }
    return Bound(
        count=plain(count),
        paper_bound=plain(printed)
        if printed is not None and not np.all(np.isnan(printed))
        else None,
        statement="Lemma 2.2, sharp form (theory E7)",
        counts="as the gap Triangle L",
        assumptions=STANDING,
        constants=named,
        missing=data.missing,
    )


def corollary_3_2(*, eps: Array, delta: Array | None) -> Bound:
    r"""Algorithm 1 with full steps (alpha = 1) for a concave f.

    Some x^k with k <= N = max{1, ceil(delta / eps)} has Delta L(x^k) <= eps: a full step lowers Phi
    by at least Delta L(x^k). Proof: paper Corollary 3.2; f need not be differentiable, any
    supergradient serves (theory E10).

    >>> corollary_3_2(eps=0.25, delta=1.0).count
    4.0
    """
    data = Data.checked(eps, delta)
    return data.bound(
        "Corollary 3.2",
        assumption="f is concave on S (any supergradients will do)",
        paper=data.count(),
        hidden=("lambda", "diameter", "p", "D", "decrease"),
    )


# --- several blocks ------------------------------------------------------------------------------


def theorem_5_2(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    p: float = 2.0,
    order: Order = "jacobi",
    measure: Measure = "max",
    concave: bool = False,
) -> Bound:
    r"""Algorithm 5 (block conditional gradient), all blocks at once or the one of largest gap.

    With D_i = lambda_i diam_p(S_i)^p and the largest gap of a block as the measure,
    N = max{1, ceil(delta / min_i omega_{D_i}(eps))} in both orders. For the sum of the gaps (joint
    stationarity, theory E25), N = max{1, ceil(delta / omega_{sum D_i}(eps))} with
    ``order="jacobi"`` and max{1, ceil(delta / omega_{max D_i}(eps / d))} with "max-improvement".
    Proof: paper Theorem 5.2; per block, and for every eps > 0, theory E28.

    ``constants`` and ``diameters`` have one entry per block (as ``constant`` and ``diameter`` in
    ``theorem_3_1``). For "jacobi" the constants must be joint,
    f(y) <= f(x) + grad f(x)'(y - x) + sum_i (lambda_i/2) ||y_i - x_i||_p^p with all blocks moving;
    blockwise ones are enough for "max-improvement" only (theory E27). The paper's N uses the largest
    diameter and constant, and needs eps < (max_i lambda_i) (min_i diam_p(S_i))^p.

    >>> bound = theorem_5_2(eps=0.25, delta=1.0, constants=(1.0, 4.0), diameters=(2.0, 1.0))
    >>> bound.count, bound.paper_bound
    (128.0, 512.0)
    >>> theorem_5_2(
    ...     eps=0.25, delta=1.0, constants=(1.0, 4.0), diameters=(2.0, 1.0), measure="sum"
    ... ).count
    256.0
    """
    data = _block_data(eps, delta, constants, diameters, p, order, measure, concave)
    return _several_blocks("Theorem 5.2", data, order, measure)


def theorem_5_3(
    *,
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    p: float = 2.0,
    order: Order = "jacobi",
    measure: Measure = "max",
    concave: bool = False,
) -> Bound:
    r"""Algorithm 6 (block proximal gradient), all blocks at once or the one of largest decrease.

    With D_i = lambda_i diam_p(S_i)^p, N = max{1, ceil(delta / min_i omega_{D_i}(eps))} for the
    largest gap; for the sum as in ``theorem_5_2``, with the same arguments and conditions.
    Proof: paper Theorem 5.3; per block, and for every eps > 0, theory E28.

    >>> theorem_5_3(
    ...     eps=0.25, delta=1.0, constants=(1.0, 4.0), diameters=(2.0, 1.0), order="max-improvement"
    ... ).count
    128.0
    """
    data = _block_data(eps, delta, constants, diameters, p, order, measure, concave)
    return _several_blocks("Theorem 5.3", data, order, measure)


def addition_6(*, eps: Array, delta: Array | None, blocks: int, measure: Measure = "max") -> Bound:
    r"""Full steps on the block of largest gap, for f concave in each block (multilinear f).

    N = max{1, ceil(delta / eps)} block updates for the largest gap, max{1, ceil(d delta / eps)} for
    the sum of the d gaps: an update lowers Phi by at least the gap of its block. No constant of f
    is used. Proof: theory A6; the paper has no such statement.

    >>> addition_6(eps=0.25, delta=1.0, blocks=3).count
    4.0
    >>> addition_6(eps=0.25, delta=1.0, blocks=3, measure="sum").count
    12.0
    """
    data = Data.checked(eps, delta, divisor=block_divisor(blocks, measure))
    return data.bound(
        "Block-concave f, largest gap first (theory A6)",
        counts="block updates",
        assumption="f is concave in each block, the others fixed",
        blocks=blocks,
        hidden=("lambda", "diameter", "p", "D"),
    )


def addition_13(
    *,
    eps: Array,
    delta: Array | None,
    blocks: int,
    constants: Entries | None = None,
    diameters: Entries | None = None,
    p: float = 2.0,
    measure: Measure = "max",
) -> Bound:
    r"""Gauss-Seidel sweeps that begin with the block of largest gap.

    Without ``constants``: f concave in each block and full steps, N = max{1, ceil(delta / eps)}
    sweeps. With blockwise ``constants`` lambda_i and ``diameters``:
    N = max{1, ceil(delta / min_i omega_{D_i}(eps))}, D_i = lambda_i diam_p(S_i)^p. For the sum of
    the d gaps eps is replaced by eps / d (theory E25). Proof: theory A13; the paper has no statement
    on Gauss-Seidel, and for cyclic full steps none is true (theory E30).

    >>> addition_13(eps=0.25, delta=1.0, blocks=3).count
    4.0
    >>> addition_13(eps=0.25, delta=1.0, blocks=2, constants=(1.0, 1.0), diameters=(2.0, 1.0)).count
    128.0
    """
    divisor, statement = (
        block_divisor(blocks, measure),
        "Gauss-Seidel, largest gap first (theory A13)",
    )
    if constants is None:
        if diameters is not None:
            raise DataError("diameters are of no use without constants: give both, or neither")
        return Data.checked(eps, delta, divisor=divisor).bound(
            statement,
            counts="sweeps",
            assumption="f is concave in each block, the others fixed, and steps are full",
            blocks=blocks,
            hidden=("lambda", "diameter", "p", "D"),
        )
    constants, diameters = entries("constants", constants), entries("diameters", diameters)
    for name, values in (("constants", constants), ("diameters", diameters)):
        if values is not None and len(values) != blocks:
            raise ShapeError(f"{name} has {len(values)} entries; expected one per block, {blocks}")
    return Data.checked(eps, delta, constants, diameters, p=p, divisor=divisor).bound(
        statement,
        counts="sweeps",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where a single block moves",
        blocks=blocks,
    )


# --- what they share -----------------------------------------------------------------------------


def _one_block(theorem: str, data: Data) -> Bound:
    return data.bound(
        f"{theorem}, sharp form (theory E9)",
        assumption=f"f is differentiable on S, with {MAJORANT}",
        paper=None if data.missing else data.paper(),
    )


def _block_data(  # noqa: PLR0917 - the arguments of the two theorems, as they came
    eps: Array,
    delta: Array | None,
    constants: Entries | None,
    diameters: Entries | None,
    p: float,
    order: str,
    measure: str,
    concave: bool,
) -> Data:
    if order not in ("jacobi", "max-improvement"):
        raise DataError(f"order is {order!r}; expected 'jacobi' or 'max-improvement'")
    constants, diameters = entries("constants", constants), entries("diameters", diameters)
    given = constants if constants is not None else diameters
    divisor = block_divisor(1 if given is None else max(1, len(given)), measure)
    jacobi = order == "jacobi"
    return Data.checked(
        eps,
        delta,
        constants,
        diameters,
        p=p,
        concave=concave,
        divisor=1 if jacobi else divisor,
        joined=jacobi and measure == "sum",
    )


def _several_blocks(theorem: str, data: Data, order: str, measure: str) -> Bound:
    jacobi = order == "jacobi"
    moving = "all blocks move together" if jacobi else "a single block moves"
    return data.bound(
        f"{theorem}, {'Jacobi' if jacobi else 'maximum improvement'}, sharp form (theory E28)",
        counts="iterations" if jacobi else "block updates",
        assumption=f"f is differentiable on S, with {BLOCK_MAJORANT} where {moving}",
        paper=data.paper() if measure == "max" and not data.missing else None,
    )
