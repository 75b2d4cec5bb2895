"""Steps found by trial, gradients with errors and cyclic sweeps: no run uses more looks than its theorem allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import restpoint as rp
from prove.problems import KINDS, MOST_ITERATIONS, Instance, generator, instance
from prove.test_bounds_hold import VISIBLE_ROUNDING, check

pytestmark = pytest.mark.prove

PROBLEMS_PER_KIND = 250
RULES = {
    "Armijo": lambda order, p: rp.ConditionalGradient(order, rp.Armijo()),
    "Doubling, conditional": lambda order, p: rp.ConditionalGradient(order, rp.Doubling(p=p)),
    "Doubling, proximal": lambda order, p: rp.ProximalGradient(order, rp.Doubling(p=p)),
    "Universal": lambda order, p: rp.ProximalGradient(order, rp.Universal()),
    "Universal from afar": lambda order, p: rp.ProximalGradient(order, rp.Universal(1e-6)),
}


def by_trial(drawn: Instance, rule: str) -> Instance | None:
    """The same problem for a method that tries; None where f declares nothing that would limit it."""
    facts = drawn.problem.facts()
    known = facts.joint or facts.blockwise
    if known is None or not facts.differentiable:
        return None
    return replace(drawn, method=RULES[rule](drawn.method.order, known.p))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_trials_are_at_most_what_is_allowed(kind, rule, figures):
    for number in range(PROBLEMS_PER_KIND):
        drawn = by_trial(instance(kind, number), rule)
        if drawn is None or drawn.bound().count is None:
            continue
        result = drawn.solve()
        allowed, used = check(drawn, result, f"{kind} {number}, {rule}")
        for most, taken in zip(allowed, used, strict=True):
            columns = {"runs": ("sum", 1), "least_allowed/used": ("least", most / taken)}
            figures("trials allowed / used", f"{rule}, {kind}", **columns)


def with_errors(drawn: Instance, number: int) -> Instance | None:
    """The same problem through gradients that are wrong by as much as they may be, at random or against the slope."""
    rng = generator("errors", number)
    f = drawn.problem.smooth
    facts = drawn.problem.facts()
    if facts.joint is None or not facts.differentiable or facts.lower_bound is None:
        return None
    eta = [
        float(
            drawn.eps * 10.0 ** rng.uniform(-4, -1) / max(float(np.max(s.diameter(2.0, n))), 1e-300)
        )
        for s, n in zip(drawn.problem.sets, drawn.problem.shapes, strict=True)
    ]

    def wrong(g, e, i):
        # A function of the gradient alone, so that the errors are those of a function of the point.
        local = np.random.default_rng(
            [number, i, *np.frombuffer(np.float64(g.sum()).tobytes(), np.uint32)]
        )
        size = float(np.linalg.norm(g))
        if size > 0 and local.random() < 0.5:
            return g - min(1.0, e / size) * g
        d = local.standard_normal(g.shape)
        return g + e * d / float(np.linalg.norm(d))

    noisy = rp.smooth.Function(
        lambda *xs: float(f.value(xs)),
        lambda *xs: tuple(
            wrong(g, e, i) for i, (g, e) in enumerate(zip(f.gradient(xs), eta, strict=True))
        ),
        shapes=list(f.shapes),
        constant=max(facts.joint.constants),
        p=facts.joint.p,
        concave=facts.concave,
        lower_bound=facts.lower_bound,
    )
    problem = rp.Problem(
        rp.smooth.Inexact(noisy, tuple(e * (1 + 1e-12) for e in eta)), drawn.problem.blocks
    )
    order = drawn.method.order if isinstance(drawn.method.order, rp.Jacobi) else rp.GaussSeidel()
    step = (rp.ConditionalGradient, rp.ProximalGradient)[number % 2]
    return replace(drawn, problem=problem, method=step(order))


@pytest.mark.parametrize("kind", KINDS)
def test_inexact_gradients_keep_their_bound_and_certify_the_true_gap(kind, figures):
    for number in range(PROBLEMS_PER_KIND):
        exact = instance(kind, number)
        drawn = with_errors(exact, number)
        if drawn is None:
            continue
        result = drawn.solve()
        if np.max(np.sum(result.certificate.floor, axis=-1) / result.eps) > VISIBLE_ROUNDING:
            continue  # beside it the declared errors are nothing
        allowed, used = check(drawn, result, f"{kind} {number}, inexact")
        true = rp.certify(exact.problem, result.xs)
        gap, claimed = (
            c.max if drawn.measure == "max" else c.sum for c in (true, result.certificate)
        )
        assert np.all(gap - np.sum(true.floor, axis=-1) <= claimed), f"{kind} {number}"
        for most, taken in zip(allowed, used, strict=True):
            columns = {"runs": ("sum", 1), "least_allowed/used": ("least", most / taken)}
            figures("inexact gradients, allowed / used", kind, **columns)


def test_cyclic_sweeps_are_at_most_what_is_allowed(figures):
    """Theory A7: tensors of order two to four on sets of unequal sizes, blockwise constants of every size."""
    seen = 0
    for number in range(4 * PROBLEMS_PER_KIND):
        drawn, rng = instance("multilinear", number), generator("cyclic", number)
        cross = max(drawn.problem.facts().cross.constants)
        constants = tuple(cross * 10.0 ** rng.uniform(-1, 1, len(drawn.problem.blocks)))
        step = (rp.ConditionalGradient, rp.ProximalGradient)[number % 2]
        method = step(rp.GaussSeidel("cyclic"), rp.Majorant(constants))
        cyclic = replace(drawn, method=method)
        result = cyclic.solve()
        allowed, used = check(cyclic, result, f"multilinear {number}, cyclic")
        seen += len(used)
        for most, taken in zip(allowed, used, strict=True):
            columns = {"runs": ("sum", 1), "least_allowed/used": ("least", most / taken)}
            figures("cyclic sweeps, allowed / used", step.__name__, **columns)
        if allowed.size:
            assert np.max(allowed) <= MOST_ITERATIONS
    assert seen > 50
