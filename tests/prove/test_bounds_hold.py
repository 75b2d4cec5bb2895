"""No run uses more iterations than its theorem allows: thousands of problems, through the public door."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import restpoint as rp
from prove.problems import KINDS, MOST_ITERATIONS, Instance, instance

pytestmark = pytest.mark.prove

PROBLEMS_PER_KIND = 910  # of eleven kinds: ten thousand problems

# The bounds are those of exact arithmetic; they speak of eps that the certificate's allowance for rounding does not
# touch. A bound may be missed where that allowance is a larger part of eps than this.
VISIBLE_ROUNDING = 1e-9


def theorem(drawn: Instance, bound: rp.bounds.Bound) -> str:
    name = bound.statement.removesuffix(", sharp form (theory E9)")
    name = name.removesuffix(", sharp form (theory E28)")
    p = bound.constants.get("p")
    return ", ".join([name, drawn.measure, *([] if p is None else [f"p = {p:g}"])])


def check(drawn: Instance, result: rp.Result, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Allowed and used of the starts that were given what theory allows."""
    assert result.bound.withdrawn is None, f"{label}: {result.bound}"
    allowed, used = np.atleast_1d(result.bound.count), np.atleast_1d(result.used)
    floor = np.atleast_1d(np.sum(result.certificate.floor, axis=-1))
    looked_at = (allowed <= MOST_ITERATIONS) & (floor <= VISIBLE_ROUNDING * result.eps)
    said = f"{label}: allowed {allowed}, used {used}, eps {drawn.eps}, {result.status}"
    assert np.all(used[looked_at] <= allowed[looked_at]), said
    assert np.all(np.atleast_1d(result.certified)[looked_at]), said
    return allowed[looked_at], used[looked_at]


@pytest.mark.parametrize("kind", KINDS)
def test_used_is_at_most_allowed(kind, figures):
    """``used <= bound.count`` and CERTIFIED within that many iterations, for every theorem attached."""
    seen = 0
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        result = drawn.solve()
        allowed, used = check(drawn, result, f"{kind} {number}")
        seen += len(used)
        for most, taken in zip(allowed, used, strict=True):
            columns = {"runs": ("sum", 1), "most_used": ("largest", taken)}
            if most >= 2:
                columns["least_allowed/used"] = ("least", most / taken)
            if taken >= 10:
                columns["same_from_10_on"] = ("least", most / taken)
            figures("iterations allowed / used", theorem(drawn, result.bound), **columns)
    assert seen >= PROBLEMS_PER_KIND // 2


@pytest.mark.parametrize("kind", KINDS)
def test_starts_at_the_minimum_need_one_look(kind):
    """Delta near 0: from the best point known, the bound is 1 as soon as omega_D(eps) exceeds Delta."""
    ones = 0
    for number in range(0, PROBLEMS_PER_KIND, 4):
        drawn = instance(kind, number)
        long = rp.Stop(max_iterations=MOST_ITERATIONS, measure=drawn.measure)
        best = replace(drawn, eps=1e-3 * drawn.eps).solve(stop=long).best()
        again = replace(drawn, x0=tuple(x[None] for x in best.xs))
        result = again.solve()
        check(again, result, f"{kind} {number}")
        ones += bool(result.bound.count[0] == 1.0)
    assert ones > 0


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_where_eps_is_a_gap_of_the_trajectory(kind):
    """The worst eps for rounding: exactly the gap of some iterate, and its neighbours."""
    seen = 0
    for number in range(0, PROBLEMS_PER_KIND, 8):
        drawn = replace(instance(kind, number), starts=1)
        gaps = np.asarray(drawn.solve().trace.gap)[:6, 0]
        for gap in gaps[gaps > 0]:
            for eps in (np.nextafter(gap, 0.0), gap, gap * (1 + 1e-12), gap * (1 + 1e-9)):
                asked = replace(drawn, eps=float(eps))
                seen += len(check(asked, asked.solve(), f"{kind} {number} at {eps}")[1])
    assert seen >= 20


def test_a_refused_proposal_is_repeated_soon():
    """A certificate that rounding alone has refused is asked for again before the gap has halved."""
    drawn = instance("saw", 1)
    short = drawn.solve()
    gaps = np.asarray(short.trace.gap)[:, 0]
    for k in range(1, 10):
        result = replace(drawn, eps=float(gaps[k])).solve()
        assert result.iterations[0] == k + 1  # the gaps of a saw fall slowly: the next one will do
