"""Which theorem bounds a joint refinement."""

from __future__ import annotations

from dataclasses import replace

from restpoint.bounds import Bound, addition_13

EXACT = (
    "a component's vector of one mode is chosen best, with its weight, while all else stays (F is convex there, not "
    "concave: theory A6 does not apply)"
)


def refused(eps: float, value: float, heaviest: float) -> Bound:
    r"""At most max{1, ceil(F(start) / omega_D(eps))} certificates are refused before one holds, D = 4 max w_r^2.

    The sweep after a refused certificate begins with the block (mode i, component r) of the largest gap G > eps. Of the
    frozen problem, in which w is data, this block has the constant lambda = w_r^2 (see ``CanonicalPolyadic``) and the
    diameter 2, so that for some z in the unit ball, others fixed, f + h falls by at least omega_D(G), D = 4 w_r^2
    (theory E28). F at a_ir = w_r z is at most f + h at z: w_r (rho_i ||z||_1 + sum over j but i of rho_j ||x_jr||_1
    ||z||_2) is what it pays, and ||z||_2 <= 1. The step takes the best a_ir, no later one raises F, and F >= 0: theory
    A13 with majorants. Other sweeps, extrapolated ones too, never raise F, and a certificate is asked for at the latest
    when 25 of them lower F by no more than eps, and no component of weight 0 looks for a place. w is found on the way:
    D holds the largest weight where a certificate was refused, or at the end.

    >>> print(refused(0.5, 2.0, 1.0))
    Exact steps, largest gap first after a refused certificate (theory A13): at most 64 refused certificates, O(1/eps^2)
      with eps = 0.5, delta = 2, lambda = 1, diameter = 2, p = 2, D = 4, decrease = 0.03125
      assuming that a component's vector of one mode is chosen best, with its weight, while all else stays (F is convex
      there, not concave: theory A6 does not apply)
      assuming that rounding stays below the decrease
    """
    bound = addition_13(eps=eps, delta=value, blocks=1, constants=(heaviest**2,), diameters=(2.0,))
    constants = {name: number for name, number in bound.constants.items() if name != "blocks"}
    return replace(
        bound,
        statement="Exact steps, largest gap first after a refused certificate (theory A13)",
        counts="refused certificates",
        constants=constants,
        assumptions=(EXACT, "rounding stays below the decrease"),
    )
