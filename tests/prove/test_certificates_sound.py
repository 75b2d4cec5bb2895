"""No feasible point beats a certificate, and no certificate is wider than rounding makes it: in 50 digits.

How wide is honest? A gap is a difference of sums, and float64 knows it only up to a few units of the numbers that are
summed: |grad f|-terms times |x| and times |y| over the set, and h. So the excess of a certificate over the exact gap is
compared with the larger of the gap and these terms. Relative to the gap alone it is unbounded, because gaps may be 0;
"over larger gaps" is over those of at least 1e-6 of the terms.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import restpoint as rp
from prove import exact
from prove.problems import POINTS, Claim, claim, generator, random_block, symmetric

pytestmark = pytest.mark.prove

CHUNKS, CLAIMS_PER_CHUNK = 10, 125  # with eight points each: 10,000 pairs
EXCESS = 1e-9

# Of a user's function only the gradient is known, and not what it was summed from. Its certificates assume rounding
# errors in units of the gradient and call that "estimated"; here they are held to units of the true terms.
ASSUMED = 64 * 2.0**-53


def terms(block: rp.Block, x: np.ndarray, size: np.ndarray) -> float:
    """The size of the numbers that the gap of a block is summed from.

    Where they are all 0, as in a multilinear form at 0, what is left is the allowance for underflow: the smallest
    normal number, 2e-308, times data of sizes up to 1e9 each.
    """
    rho = exact.weight_of(block)
    reach = float(block.set.absolute_support(size + rho))
    return max(float((size + rho) @ np.abs(x)) + reach, 1e-250)


def check_point(made: Claim, k: int, certificate: rp.Certificate) -> dict[str, Any]:
    """Soundness and width of what is said of point ``k``; the figures of its blocks."""
    problem = made.problem.at(k) if made.problem.batch_shape else made.problem
    point = tuple(x[k] for x in made.xs)
    rng = generator("competitors", k)
    xs = [exact.vector(x) for x in point]
    gradients, sizes = made.gradient.exact(xs), made.gradient.terms(point)
    floats = problem.smooth.gradient(point)
    figures: dict[str, Any] = dict.fromkeys(("excess", "alone", "clear", "too_small"), 0.0)
    figures["oracle"] = "none"
    for i, (block, x, g) in enumerate(zip(problem.blocks, xs, gradients, strict=True)):
        size = terms(block, point[i], sizes[i])
        stated = said = exact.mpf(float(certificate.per_block[k, i]))
        if certificate.floor_kind == "estimated":
            said = stated + ASSUMED * exact.mpf(size)
        here = exact.objective(block, g, x)
        best = exact.minimiser(block, g)
        gap = here - exact.objective(block, g, best)
        assert gap <= said, f"{block}: gap {float(gap)} above {float(said)}, point {point}"
        answer = block.oracle.linear(floats[i]).point
        tiny = exact.mpf(10) ** -30 * exact.mpf(size)
        for y in exact.competitors(block, g, rng, answer):
            shown = here - exact.objective(block, g, y)
            assert shown <= gap + tiny  # the closed forms are the optima
            assert shown <= said
        figures["too_small"] += bool(gap > stated)
        excess = stated - max(gap, exact.mpf(0))
        relative = float(excess / max(gap, exact.mpf(size)))
        if relative > figures["excess"]:
            figures |= {
                "excess": relative,
                "oracle": f"{type(block.oracle).__name__}: {block.oracle.name}",
            }
        if gap > 0:
            figures["alone"] = max(figures["alone"], float(excess / gap))
        if gap > exact.mpf(size) / 10**6:
            figures["clear"] = max(figures["clear"], float(excess / gap))
    far = [float(exact.distance(b.set, x)) for b, x in zip(problem.blocks, xs, strict=True)]
    size = [
        np.linalg.norm(x) + float(s)
        for x, s in zip(
            point,
            (b.set.norm_bound(s) for b, s in zip(problem.blocks, problem.shapes, strict=True)),
            strict=True,
        )
    ]
    figures["violation"] = abs(max(far) - float(certificate.violation[k])) / max(size)
    if max(far) > 1e-12 * max(size):
        assert certificate.violation[k] > 0
    return figures


@pytest.mark.timeout(0)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_competitor_beats_a_certificate(chunk, figures):
    """10,000 pairs of a problem and a point."""
    pairs = 0
    with mpmath.workdps(exact.DIGITS):
        for number in range(chunk * CLAIMS_PER_CHUNK, (chunk + 1) * CLAIMS_PER_CHUNK):
            made = claim(number)
            certificate = rp.certify(made.problem, made.xs)
            for k, word in enumerate(made.words):
                found = check_point(made, k, certificate)
                assert found["excess"] <= EXCESS, f"claim {number}, point {k}: {found}"
                assert found["violation"] <= 1e-14, f"claim {number}, point {k}: {found}"
                pairs += 1
                kind = certificate.floor_kind
                figures(
                    "certificates against 50 digits",
                    f"{word}, {kind}" if kind == "estimated" else word,
                    pairs=("sum", 1),
                    excess=("largest", found["excess"]),
                    over_the_gap_alone=("largest", found["alone"]),
                    over_larger_gaps=("largest", found["clear"]),
                    error_of_violation=("largest", found["violation"]),
                    too_small=("sum", found["too_small"]),
                )
                worst = {"worst_in": ("sum", 1), "excess": ("largest", found["excess"])}
                figures("the widest certificate of a pair, by oracle", found["oracle"], **worst)
    assert pairs == CLAIMS_PER_CHUNK * len(POINTS)


@pytest.mark.parametrize("chunk", range(4))
def test_certificates_agree_with_a_conic_solver(chunk, figures):
    """200 instances with data of size 1: an interior point solver finds the same gap to 1e-7."""
    cp = pytest.importorskip("cvxpy")
    for number in range(chunk * 50, (chunk + 1) * 50):
        rng = generator("conic", number)
        n = int(rng.integers(1, 7))
        Q, b = symmetric(rng, n), rng.normal(size=n)
        block = random_block(rng, n)
        problem = rp.Problem(rp.smooth.Quadratic(Q, b), block)
        (x,) = problem.project(rng.normal(size=n))
        certificate = rp.certify(problem, x)
        g = Q @ x + b
        solved = conic_gap(cp, block, g, x)
        excess = float(certificate.max) - solved
        assert -1e-7 <= excess <= 1e-7 * max(1.0, abs(solved)), f"{number}: {excess}"
        row = f"{type(block.set).__name__} x {type(block.penalty).__name__}"
        columns = {"instances": ("sum", 1), "largest_difference": ("largest", abs(excess))}
        figures("certificates against a conic solver", row, **columns)


def conic_gap(cp, block: rp.Block, g: np.ndarray, x: np.ndarray) -> float:
    """max over y in S of g'(x - y) + h(x) - h(y)."""
    s, rho = block.set, exact.weight_of(block)
    y = cp.Variable(len(g))
    if isinstance(s, rp.sets.L2Ball):
        constraints = [cp.norm(y - np.broadcast_to(s.center, len(g)), 2) <= float(s.radius)]
    elif isinstance(s, rp.sets.Box):
        constraints = [s.lower <= y, y <= s.upper]
    else:
        constraints = [y >= 0, cp.sum(y) == float(s.total)]
    objective = cp.Minimize(g @ y + rho * cp.norm1(y))
    tight = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    least = cp.Problem(objective, constraints).solve(solver=cp.CLARABEL, **tight)
    return float(g @ x + rho * np.sum(np.abs(x)) - least)
