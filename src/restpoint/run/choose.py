"""Which method to use when the user names none: a pure function of facts."""

from __future__ import annotations

from restpoint.errors import CapabilityError, described
from restpoint.methods import (
    Armijo,
    BlockMethod,
    ConditionalGradient,
    FullStep,
    GaussSeidel,
    Majorant,
    Method,
    ProximalGradient,
    Universal,
)
from restpoint.problem import Problem

# How often a sweep of full steps repeats blocks whose gradients cost nothing, and how far it extrapolates. On the
# tensors of the paper's Table 1 two repeats save a quarter to a third of the sweeps (more save hardly any), and
# momentum from 0.5 to 1 nearly half of the rest.
REPEATS, MOMENTUM = 2, 0.75


def settle(problem: Problem, method: Method | None) -> tuple[Method, str]:
    """The method that was named, or else chosen, and why; refused if theory does not cover it."""
    reason = "it was named"
    if method is None:
        method, reason = choose(problem)
    if not isinstance(method, Method):
        raise CapabilityError(
            f"method must be a restpoint method such as ConditionalGradient(), got {described(method)}"
        )
    method.check(problem)
    return method, reason


def choose(problem: Problem) -> tuple[BlockMethod, str]:
    """The default method and the reason, from the facts that f declares and the oracles that blocks have."""
    facts = problem.facts()
    if facts.concave and len(problem.blocks) == 1:
        return ConditionalGradient(smoothness=FullStep()), (
            "f is concave: full steps, O(1/eps), no constants (Corollary 3.2)"
        )
    if facts.concave or facts.block_concave:
        return ConditionalGradient(GaussSeidel("largest-gap", REPEATS, MOMENTUM), FullStep()), (
            "f is concave in each block: full steps block by block, largest gap first, "
            "O(1/eps), no constants (theory A13)"
        )
    known = facts.blockwise or facts.joint  # in force where one block moves at a time
    if known is None:
        if all(block.oracle.can_prox(2.0) for block in problem.blocks):
            return ProximalGradient(GaussSeidel("largest-gap"), Universal()), (
                "f declares no constants: proximal steps whose weight is found by trial, at the rate of the best "
                "exponent (theory A4)"
            )
        return ConditionalGradient(GaussSeidel("largest-gap"), Armijo()), (
            "f declares no constants, and some block has no prox: step lengths found by trial (theory A3)"
        )
    if all(block.oracle.can_prox(known.p) for block in problem.blocks):
        return ProximalGradient(GaussSeidel("largest-gap"), Majorant()), (
            f"f declares constants for p = {known.p:g} and every block has a prox: Algorithm "
            f"{2 if len(problem.blocks) == 1 else 6} (Theorem {3.3 if len(problem.blocks) == 1 else 5.3})"
        )
    return ConditionalGradient(GaussSeidel("largest-gap"), Majorant()), (
        f"f declares constants for p = {known.p:g}; some block has no prox for it, so conditional gradient"
    )
