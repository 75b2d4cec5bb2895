"""Promised monotonicity: kept with true constants, and missed, noticed and said with false ones."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

import restpoint as rp
from prove import exact
from prove.problems import (
    KINDS,
    MOST_ITERATIONS,
    Instance,
    box_minimum,
    generator,
    instance,
    log_uniform,
    measure,
    random_box,
    symmetric,
)

pytestmark = pytest.mark.prove

PROBLEMS_PER_KIND = 100
FALSE_DECLARATIONS = 200


def rises(result: rp.Result) -> float:
    """The largest rise of Phi over an iteration, in units of the numbers that Phi is computed from."""
    value, gap = np.asarray(result.trace.value), np.asarray(result.trace.gap)
    if len(value) < 2:
        return 0.0
    size = np.max(np.abs(value), axis=0) + np.max(gap, axis=0)
    return float(np.max(np.diff(value, axis=0) / np.where(size > 0, size, 1.0)))


def unsound(result: rp.Result) -> float:
    """How far the exact gaps of the points returned lie above their certificates, in units of g'x."""
    worst = 0.0
    gradients = result.problem.smooth.gradient(result.xs)
    with mpmath.workdps(exact.DIGITS):
        for k in range(len(result.used)):
            for i, block in enumerate(result.problem.blocks):
                g, x = exact.vector(gradients[i][k]), exact.vector(result.xs[i][k])
                best = exact.objective(block, g, exact.minimiser(block, g))
                gap = exact.objective(block, g, x) - best
                size = float(block.set.absolute_support(np.abs(gradients[i][k])))
                above = float(gap - exact.mpf(float(result.certificate.per_block[k, i])))
                worst = max(worst, above / size if size > 0 else above)
    return worst


@pytest.mark.parametrize("kind", KINDS)
def test_true_constants_keep_their_promise(kind, figures):
    """Phi never rises beyond rounding, no bound is withdrawn, and runs far below the usual eps change nothing in it."""
    worst = 0.0
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        long = rp.Stop(max_iterations=300, measure=drawn.measure)
        result = replace(drawn, eps=1e-9 * drawn.eps).solve(stop=long)
        assert result.bound.withdrawn is None, f"{kind} {number}: {result.bound.withdrawn}"
        worst = max(worst, rises(result))
        assert worst <= 1e-13, f"{kind} {number}: Phi rose by {worst}"
        assert unsound(result) <= 1e-14, f"{kind} {number}"
    figures("promises", f"true: {kind}", runs=("sum", PROBLEMS_PER_KIND), rise=("largest", worst))


def too_small(number: int) -> tuple[Instance, float]:
    """A quadratic on a box, one block or two, whose constants are declared 2 to 100 times too small."""
    rng = generator("too small", number)
    factor, blocks = log_uniform(rng, 2.0, 100.0), int(rng.integers(1, 3))
    n = 2 * blocks
    Q, b = symmetric(rng, n), 0.3 * rng.normal(size=n)
    boxes = [random_box(rng, 2) for _ in range(blocks)]
    constant = max(float(np.linalg.eigvalsh(Q)[-1]), 0.1) / factor
    lower, upper = (
        np.concatenate([getattr(s, side) for s in boxes]) for side in ("lower", "upper")
    )
    f = rp.smooth.Function(
        lambda *xs: float(np.concatenate(xs) @ (0.5 * Q @ np.concatenate(xs) + b)),
        lambda *xs: tuple(np.split(Q @ np.concatenate(xs) + b, blocks)),
        shapes=[(2,)] * blocks,
        lower_bound=box_minimum(Q, b, lower, upper),
    )
    step = (rp.ConditionalGradient, rp.ProximalGradient)[rng.integers(2)]
    order = (rp.Jacobi(), rp.MaxImprovement(), rp.GaussSeidel())[rng.integers(3)]
    problem = rp.Problem(f, [rp.Block(box) for box in boxes])
    method = step(order, rp.Majorant(constant))
    return Instance("too small", problem, method, measure(rng), eps=1e-4), factor


def not_concave(number: int) -> tuple[Instance, float]:
    """An indefinite quadratic that is declared concave."""
    rng = generator("not concave", number)
    n = int(rng.integers(2, 5))
    Q, b, box = symmetric(rng, n), 0.3 * rng.normal(size=n), random_box(rng, n)
    Q += max(0.2 - float(np.linalg.eigvalsh(Q)[-1]), 0.0) * np.eye(n)
    f = rp.smooth.Function(
        lambda x: float(x @ (0.5 * Q @ x + b)),
        lambda x: Q @ x + b,
        shapes=n,
        concave=True,
        lower_bound=box_minimum(Q, b, box.lower, box.upper),
    )
    problem = rp.Problem(f, rp.Block(box))
    return Instance(
        "not concave", problem, rp.ConditionalGradient(smoothness=rp.FullStep()), eps=1e-4
    ), 1.0


@pytest.mark.parametrize("declared", [too_small, not_concave], ids=lambda f: f.__name__)
def test_false_declarations_are_found_out(declared, figures):
    """The bound is withdrawn in a good share of the runs; where it is not, the run has kept to it all the same.

    That is no accident: the proofs use f along the trajectory alone, so a run in which every step keeps its promise
    needs no more iterations than the bound allows, true constants or not.
    """
    found = 0
    for number in range(FALSE_DECLARATIONS):
        drawn, factor = declared(number)
        result = drawn.solve(stop=rp.Stop(max_iterations=MOST_ITERATIONS, measure=drawn.measure))
        said = f"{declared.__name__} {number}, factor {factor}"
        assert unsound(result) <= 1e-14, said
        if result.bound.withdrawn is None:
            allowed = np.asarray(result.bound.count)
            bounded = allowed <= MOST_ITERATIONS
            assert np.all((result.used <= allowed)[bounded]), said
            assert np.all(result.certified[bounded]), said
        else:
            assert result.bound.count is None, said
            found += 1
    figures(
        "promises",
        f"false: {declared.__name__}",
        runs=("sum", FALSE_DECLARATIONS),
        withdrawn=("sum", found),
    )
    assert found >= FALSE_DECLARATIONS // 4
