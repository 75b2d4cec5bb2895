"""Certificates: upper bounds in exact arithmetic, of the very point, with their rounding paid for."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    B,
    Q,
    ball_gap,
    quadratic_problem,
    tensor,
    tensor_gaps,
    tensor_problem,
    unit_starts,
)
from restpoint.array import to_host
from restpoint.errors import DataError, ShapeError


def exact_gap(M, b, x, weight):
    """The gap of x'Mx/2 + b'x + weight ||x||_1 on the unit ball, to 60 digits."""
    M, b, x = (
        np.vectorize(Fraction, otypes=[object])(np.asarray(v, dtype=float)) for v in (M, b, x)
    )
    weight = Fraction(weight)
    g = M @ x + b
    shrunk = [max(abs(entry) - weight, Fraction(0)) for entry in g]
    linear = g @ x + weight * sum(abs(entry) for entry in x)
    square = sum((entry**2 for entry in shrunk), Fraction(0))
    with localcontext() as context:
        context.prec = 60
        root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
        return Decimal(linear.numerator) / Decimal(linear.denominator) + root


def symmetric(n, seed):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return M + M.T


def test_a12_the_certificate_is_never_below_the_true_gap_where_naive_float32_often_is():
    naive_below = 0
    for seed in range(30):
        n, weight = 20, 0.25
        M = symmetric(n, seed).astype(np.float32)
        b = np.random.default_rng(100 + seed).standard_normal(n).astype(np.float32)
        block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weight))
        problem = rp.Problem(rp.smooth.Quadratic(M, b), block)
        result = rp.solve(problem, eps=1e-12, rng=seed, stop=rp.Stop(max_iterations=200))
        x = result.x
        assert x.dtype == np.float32
        true = exact_gap(problem.smooth.Q, b, x, weight)
        certificate = rp.certify(problem, x)
        assert Decimal(float(certificate.max)) >= true
        # A point outside the ball, by a rounding of float32, may have a negative gap.
        assert Decimal(float(certificate.max - 2 * certificate.floor[0])) <= max(true, 0)
        assert certificate.floor_kind == "proved"
        assert certificate.floor[0] < 1e-12
        g = problem.smooth.Q @ x + b
        shrunk = np.sign(g) * np.maximum(np.abs(g) - np.float32(weight), np.float32(0))
        naive = g @ x + np.float32(weight) * np.abs(x).sum() + np.sqrt(shrunk @ shrunk)
        assert naive.dtype == np.float32
        naive_below += Decimal(float(naive)) < true
    assert naive_below >= 5


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_a12_the_allowance_for_rounding_scales_with_the_data(scale):
    x = np.array([0.3, -0.6, 0.1])
    plain = rp.certify(quadratic_problem(), x)
    scaled = rp.certify(quadratic_problem(scale=scale), x)
    assert np.allclose(scaled.floor, scale * plain.floor, rtol=1e-12, atol=0)
    assert np.allclose(scaled.per_block, scale * plain.per_block, rtol=1e-12, atol=0)
    assert np.array_equal(scaled.relative_violation, plain.relative_violation)


def test_the_block_gaps_are_those_of_the_definition(xp):
    A, weight = tensor(3, 4, 2), 0.3
    xs = unit_starts(((3,), (4,), (2,)), 6)
    certificate = rp.certify(tensor_problem(xp.asarray(A), weight), tuple(map(xp.asarray, xs)))
    expected = np.stack([tensor_gaps(A, tuple(x[k] for x in xs), weight) for k in range(6)])
    assert certificate.per_block.shape == certificate.floor.shape == (6, 3)
    assert isinstance(certificate.per_block, np.ndarray)
    assert np.allclose(certificate.per_block, expected, rtol=0, atol=1e-13)
    assert np.array_equal(certificate.max, certificate.per_block.max(axis=-1))
    assert np.array_equal(certificate.sum, certificate.per_block.sum(axis=-1))
    assert certificate.kind == "exact oracle"
    assert certificate.floor_kind == "proved"
    assert certificate.confidence == 1.0
    assert certificate.feasibility_checked


@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
def test_arrays_have_the_batch_shape(batch):
    xs = unit_starts(((3,), (4,)), *batch)
    certificate = rp.certify(tensor_problem(tensor(3, 4), 0.2), xs)
    for name in ("max", "sum", "violation", "relative_violation", "value"):
        assert np.shape(getattr(certificate, name)) == batch
    assert certificate.per_block.shape == (*batch, 2)
    assert "gap <=" in str(certificate)


def test_perturbed_points_are_rejected_in_proportion():
    problem = quadratic_problem()
    x = rp.solve(problem, eps=1e-12, x0=np.array([0.1, 0.9, 0.0])).x
    direction = np.array([1.0, 0.2, -1.0])
    for size in (1e-3, 1e-6, 1e-9):
        moved = x + size * direction
        moved /= max(1.0, np.linalg.norm(moved))
        certificate = rp.certify(problem, moved)
        assert 0.1 * size**2 < certificate.max < 10 * size
        assert certificate.max == pytest.approx(
            ball_gap(Q @ moved + B, moved, 0.1), rel=1e-5, abs=1e-13
        )


def test_an_infeasible_point_is_never_certified_however_small_its_gap():
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
    outside = rp.certify(problem, np.array([1.0 + 1e-6, 0.0]))
    assert outside.max < 1e-5
    assert outside.violation == pytest.approx(1e-6, rel=1e-9)
    assert not outside.holds(1.0)
    assert outside.holds(1.0, feasibility=1e-5)
    inside = rp.certify(problem, np.array([1.0, 0.0]))
    assert inside.holds(1e-12)


def first_of(g):
    """The linear oracle of the unit simplex."""
    return np.eye(len(g))[np.argmin(g)]


@pytest.mark.parametrize(
    ("more", "distance"),
    [
        ({}, 3**-0.5),
        ({"lower_bound": lambda g: float(np.min(g))}, 3**-0.5),
        ({"value": lambda x: 0.1 * float(np.sum(np.abs(x)))}, np.inf),
    ],
)
def test_a_gap_below_zero_shows_a_point_outside_of_a_set_that_cannot_tell(more, distance):
    """0 is no point of the simplex, and its oracle finds nothing as low as 0: that is no certificate."""
    block = rp.Block.from_oracle(first_of, diameter=2**0.5, **more)
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(3), np.ones(3)), block)
    certificate = rp.certify(problem, np.stack([np.zeros(3), np.eye(3)[0]]))
    assert certificate.max[0] < 1e-12
    assert certificate.violation == pytest.approx([distance, 0.0], rel=1e-10)
    assert certificate.holds(1e-6).tolist() == [False, True]
    assert f"violation 0 .. {distance:.3g}" in str(certificate)
    stuck = rp.ConditionalGradient(smoothness=rp.Majorant(1.0))
    result = rp.solve(problem, stuck, x0=np.zeros(3))
    assert result.status is rp.Status.STALLED
    assert "mend x0" in str(result)
    assert rp.solve(problem, x0=np.zeros(3)).x.tolist() == [1.0, 0.0, 0.0]


def test_the_diameter_shows_a_point_outside_of_a_set_that_cannot_tell():
    block = rp.Block.from_oracle(lambda g: -np.sign(g), diameter=lambda p: 2 * 3 ** (1 / p))
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(3), np.full(3, -5.0)), block)
    with pytest.raises(DataError, match=r"lies outside DeclaredSet: violation 6\.93"):
        rp.solve(problem, x0=np.full(3, 5.0))
    corners = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [0.0, 0.5, 0.0]])
    assert rp.certify(problem, corners).violation.tolist() == [0.0, 0.0, 0.0]


def test_feasibility_is_judged_in_units_of_the_set():
    for radius in (1e-6, 1e6):
        problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), rp.Block(rp.sets.L2Ball(radius)))
        certificate = rp.certify(problem, np.array([radius * (1 + 1e-9), 0.0]))
        assert certificate.relative_violation == pytest.approx(1e-9, rel=1e-5)
        assert certificate.violation == pytest.approx(1e-9 * radius, rel=1e-5)


def test_nan_never_holds():
    f = rp.smooth.Function(lambda x: np.nan, lambda x: np.full(2, np.nan), shapes=2, constant=1.0)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))
    certificate = rp.certify(problem, np.zeros(2))
    assert np.isnan(certificate.max)
    assert not certificate.holds(np.inf)


def test_a_users_function_has_an_estimated_floor_and_a_wrong_gradient_a_wrong_point():
    f = rp.smooth.Function(lambda x: float(x @ x), lambda x: 2 * x, shapes=2, constant=2.0)
    certificate = rp.certify(rp.Problem(f, rp.Block(rp.sets.L2Ball())), np.array([0.5, 0.5]))
    assert certificate.floor_kind == "estimated"
    assert 0 < certificate.floor[0] < 1e-13
    assert certificate.max == pytest.approx(1.0 + math.sqrt(2), rel=1e-13)


def test_the_error_assumed_of_a_users_gradient_is_paid_for():
    """A gradient that is 64 units too small: the gap of the true one is still covered."""
    units = 64 * 2.0**-53
    f = rp.smooth.Function(
        lambda x: float(x[0]), lambda x: np.array([1.0 - units]), shapes=1, constant=0.0
    )
    certificate = rp.certify(rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0))), np.array([1.0]))
    assert certificate.floor_kind == "estimated"
    assert Fraction(float(certificate.max)) >= 2  # x + max over [-1, 1] of -y, in exact arithmetic
    assert certificate.max < 2 + 4 * units


@pytest.mark.parametrize("n", [1, 5, 40])
def test_a12_the_allowance_is_that_of_the_theory(n):
    """gamma_k (|g|'|x| + 2 max |g|'|y|) + e'|x| + max e'|y| with e = gamma_{n+2} |Q||x|, k = n + 8."""
    M, u = symmetric(n, 3), 2.0**-53
    x = np.random.default_rng(n).standard_normal(n)
    x /= 2 * np.linalg.norm(x)
    e = (n + 2) * u * np.abs(M) @ np.abs(x)
    g = np.abs(M @ x)
    theory = (
        (n + 8) * u * (g @ np.abs(x) + 2 * np.linalg.norm(g)) + e @ np.abs(x) + np.linalg.norm(e)
    )
    problem = rp.Problem(rp.smooth.Quadratic(M), rp.Block(rp.sets.L2Ball()))
    assert theory <= rp.certify(problem, x).floor[0] <= 1.01 * theory


def test_a_weaker_lower_bound_gives_a_weaker_certificate_never_a_smaller_one():
    f = rp.smooth.Quadratic(Q, B)
    x = np.array([0.2, 0.4, -0.3])
    exact = rp.certify(rp.Problem(f, rp.Block(rp.sets.L2Ball())), x)
    loose = rp.Block.from_oracle(
        lambda g: -g / max(float(np.linalg.norm(g)), 1e-300),
        diameter=2.0,
        lower_bound=lambda g: -1.5 * float(np.linalg.norm(g)),
        project=lambda x: x / max(1.0, float(np.linalg.norm(x))),
    )
    certificate = rp.certify(rp.Problem(f, loose), x)
    assert certificate.kind == "dual bound"
    assert certificate.max >= exact.max
    assert certificate.max == pytest.approx(exact.max + 0.5 * np.linalg.norm(Q @ x + B), rel=1e-9)


def test_the_kind_is_that_of_the_weakest_block():
    box = rp.Block(rp.sets.Box(-1.0, 1.0))
    declared = rp.Block.from_oracle(lambda g: -np.sign(g), diameter=4.0)
    f = rp.smooth.Multilinear(np.ones((2, 2)))
    xs = (np.zeros(2), np.zeros(2))
    assert rp.certify(rp.Problem(f, [box, declared]), xs).kind == "declared oracle"
    assert not rp.certify(rp.Problem(f, [box, declared]), xs).feasibility_checked
    assert rp.certify(rp.Problem(f, [box, box]), xs).kind == "exact oracle"


def test_a_certificate_leaves_the_point_alone_and_takes_read_only_ones():
    x = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    x.flags.writeable = False
    before = x.tobytes()
    rp.certify(quadratic_problem(), x)
    assert x.tobytes() == before


def test_a_batch_of_certificates_is_its_rows_and_can_be_taken_apart():
    problem = tensor_problem(tensor(3, 4), 0.2)
    xs = unit_starts(((3,), (4,)), 2, 3)
    together = rp.certify(problem, xs)
    for index in np.ndindex(2, 3):
        alone = rp.certify(problem, tuple(x[index] for x in xs))
        part = together.at(index)
        assert np.allclose(part.per_block, alone.per_block, rtol=0, atol=1e-14)
        assert part.value == pytest.approx(float(alone.value), abs=1e-15)
        assert part.max.shape == ()
    flat = together.reshape((6,))
    assert np.array_equal(flat.max, together.max.reshape(6))


def test_the_certificate_of_a_run_is_the_one_that_anyone_can_compute():
    problem = tensor_problem(tensor(3, 4, 2, seed=3), 0.2)
    result = rp.solve(problem, starts=5, eps=1e-7)
    again = rp.certify(problem, result.xs)
    assert np.array_equal(again.per_block, result.certificate.per_block)
    assert np.array_equal(result.certified, again.holds(1e-7))
    assert to_host(result.xs[0]).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((rp.smooth.Quadratic(Q), np.zeros(3)), DataError, "problem must be a restpoint.Problem"),
        ((quadratic_problem(), None), DataError, "xs[0] has dtype object"),
        ((quadratic_problem(), "x"), DataError, "expected real numbers"),
        ((quadratic_problem(), np.zeros(4)), ShapeError, "xs[0] has shape (4,); expected (3,)"),
        ((quadratic_problem(), 1.0), ShapeError, "xs[0] has shape (); expected (3,)"),
        ((quadratic_problem(), (np.zeros(3), np.zeros(3))), ShapeError, "has 2 blocks"),
        ((quadratic_problem(), np.array([0.0, np.inf, 0.0])), DataError, "NaN or infinite"),
        ((quadratic_problem(), 1j * np.zeros(3)), DataError, "complex128"),
        ((quadratic_problem(), np.zeros((0, 3))), DataError, "holds no point"),
        ((quadratic_problem(), []), ShapeError, "xs[0] has shape (0,)"),
        ((quadratic_problem(), {}), DataError, "dtype object"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_words(arguments, error, words):
    with pytest.raises(error) as caught:
        rp.certify(*arguments)
    assert words in str(caught.value)


def test_an_unknown_measure_is_refused():
    certificate = rp.certify(quadratic_problem(), np.zeros(3))
    with pytest.raises(DataError, match='"max" or "sum"'):
        certificate.holds(1.0, measure="mean")


@pytest.mark.parametrize("wrong", ["x", None, [1.0], True, 1j, np.array(["x"]), np.nan])
def test_thresholds_are_numbers(wrong):
    certificate = rp.certify(quadratic_problem(), np.zeros((2, 3)))
    with pytest.raises(DataError, match="eps must be a number, or an array of one per start, got"):
        certificate.holds(wrong)
    with pytest.raises(DataError, match="feasibility must be a number"):
        certificate.holds(1.0, feasibility=wrong)
    assert certificate.holds(np.inf).all()
    assert certificate.holds(np.array([1e9, 0.0])).tolist() == [True, False]
