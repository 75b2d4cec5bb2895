"""A run repeats itself, a batch is its starts one by one, float32 is certified in float64, and rest is rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import restpoint as rp
from prove.problems import (
    KINDS,
    MOST_ITERATIONS,
    RESISTING,
    Instance,
    generator,
    instance,
    scaled_block,
    symmetric,
)

pytestmark = pytest.mark.prove

PROBLEMS_PER_KIND = 60


def stop_of(drawn: Instance, iterations: int = 200) -> rp.Stop:
    return rp.Stop(max_iterations=iterations, measure=drawn.measure)


def starts_of(drawn: Instance) -> tuple[np.ndarray, ...]:
    """The points that a run of this instance starts from."""
    return drawn.solve(stop=stop_of(drawn, 0)).xs


def same_bits(one: rp.Result, other: rp.Result) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one.xs, other.xs, strict=True))


def sizes_of(drawn: Instance) -> list[float]:
    return [
        float(np.max(size))
        for size in (
            b.set.norm_bound(s)
            for b, s in zip(drawn.problem.blocks, drawn.problem.shapes, strict=True)
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rerun_is_identical_bit_by_bit(kind):
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        one, other = (drawn.solve(stop=stop_of(drawn)) for _ in range(2))
        assert same_bits(one, other), f"{kind} {number}"
        assert one.certificate.per_block.tobytes() == other.certificate.per_block.tobytes()
        assert np.array_equal(one.iterations, other.iterations)
        assert np.array_equal(np.asarray(one.trace.value), np.asarray(other.trace.value))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_starts_one_by_one(kind):
    """Points, values and iteration counts: to 1e-12 of the size of the set, or of what Phi is summed from."""
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        together, starts = drawn.solve(stop=stop_of(drawn)), starts_of(drawn)
        for k in range(len(together.used)):
            alone = replace(drawn, x0=tuple(x[k] for x in starts)).solve(stop=stop_of(drawn))
            said = f"{kind} {number}, start {k}"
            assert alone.iterations == together.iterations[k], said
            for x, y, size in zip(alone.xs, together.xs, sizes_of(drawn), strict=True):
                np.testing.assert_allclose(x, y[k], rtol=0, atol=1e-12 * size, err_msg=said)
            size = abs(float(alone.value)) + float(np.max(np.asarray(alone.trace.gap)))
            assert abs(float(alone.value) - float(together.value[k])) <= 1e-12 * size, said


def test_a_batch_of_parameters_equals_its_problems_one_by_one():
    """Radii, centres, bounds and weights that differ from start to start."""
    for number in range(4 * PROBLEMS_PER_KIND):
        rng = generator("parameters", number)
        n = int(rng.integers(1, 7))
        f = rp.smooth.Quadratic(symmetric(rng, n), rng.normal(size=n))
        problem = rp.Problem(f, scaled_block(rng, n, 1.0, 1.0, batch=5))
        if not problem.batch_shape:
            continue
        (x0,) = problem.project(rng.normal(size=(5, n)))
        together = rp.solve(problem, x0=x0, eps=1e-6, stop=rp.Stop(max_iterations=100))
        for k in range(5):
            alone = rp.solve(problem.at(k), x0=x0[k], eps=1e-6, stop=rp.Stop(max_iterations=100))
            assert alone.iterations == together.iterations[k], number
            size = float(np.max(problem.sets[0].norm_bound(problem.shapes[0])))
            np.testing.assert_allclose(alone.x, together.x[k], rtol=0, atol=1e-12 * size)


@pytest.mark.parametrize("kind", KINDS)
def test_a_certified_start_does_not_move(kind):
    """Neither in the batch nor alone: no iteration, and every bit as it was."""
    certified = 0
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        first = drawn.solve(stop=stop_of(drawn, MOST_ITERATIONS))
        if not first.certified.all():
            continue
        certified += 1
        again = replace(drawn, x0=first.xs).solve(stop=stop_of(drawn))
        assert np.all(again.iterations == 0), f"{kind} {number}"
        assert again.certified.all()
        assert same_bits(first, again)
        assert again.certificate.per_block.tobytes() == first.certificate.per_block.tobytes()
    assert certified >= PROBLEMS_PER_KIND // 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in RESISTING])
def test_float32_is_certified_in_float64(kind):
    """Certificates of float32 runs speak of the problem as it was stated, with all its digits."""
    certified = 0
    for number in range(PROBLEMS_PER_KIND):
        drawn = instance(kind, number)
        x0 = tuple(x.astype(np.float32) for x in starts_of(drawn))
        coarse = replace(drawn, x0=x0, eps=max(drawn.eps, 1e-300))
        result = coarse.solve(stop=stop_of(drawn, 50))
        said = f"{kind} {number}"
        assert all(x.dtype == np.float32 for x in result.xs), said
        assert result.certificate.per_block.dtype == np.float64
        double = rp.certify(drawn.problem, tuple(x.astype(np.float64) for x in result.xs))
        assert double.per_block.tobytes() == result.certificate.per_block.tobytes(), said
        assert double.violation.tobytes() == result.certificate.violation.tobytes(), said
        assert np.all(result.certificate.relative_violation[result.certified] <= 1e-6), said
        gap = double.max if drawn.measure == "max" else double.sum
        assert np.all(gap[result.certified] <= drawn.eps), said
        certified += int(result.certified.sum())
    assert certified >= PROBLEMS_PER_KIND // 2
