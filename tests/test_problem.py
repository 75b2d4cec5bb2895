"""Problems and blocks: values, feasibility, and parameters that carry a batch."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    B,
    Q,
    quadratic_problem,
    tensor,
    tensor_problem,
    tensor_value,
    unit_starts,
)
from restpoint.array import to_host
from restpoint.errors import CapabilityError, DataError, ShapeError

SHAPES = ((3,), (4,), (2,))


def path(weights, radii=1.0):
    block = rp.Block(rp.sets.L2Ball(radii), rp.penalties.L1(weights))
    return rp.Problem(rp.smooth.Quadratic(Q, B), block)


def test_the_value_is_f_plus_the_penalties_of_all_blocks(xp):
    A = tensor(3, 4, 2)
    xs = unit_starts(SHAPES, 5)
    problem = tensor_problem(xp.asarray(A), 0.3)
    value = problem.value(tuple(map(xp.asarray, xs)))
    expected = [tensor_value(A, tuple(x[k] for x in xs), 0.3) for k in range(5)]
    assert np.allclose(to_host(value), expected, rtol=0, atol=1e-14)


def test_the_violation_is_that_of_the_worst_block_and_projection_removes_it(xp):
    blocks = [rp.Block(rp.sets.L2Ball(2.0)), rp.Block(rp.sets.Box(-1.0, 1.0))]
    problem = rp.Problem(rp.smooth.Multilinear(xp.asarray(tensor(2, 2))), blocks)
    xs = (
        xp.asarray(np.array([[3.0, 4.0], [1.0, 0.0]])),
        xp.asarray(np.array([[1.0, 1.5], [0.0, 4.0]])),
    )
    assert np.array_equal(to_host(problem.violation(xs)), [3.0, 3.0])
    projected = problem.project(xs)
    assert [tuple(x.shape) for x in projected] == [(2, 2), (2, 2)]
    assert np.all(to_host(problem.violation(projected)) <= 1e-15)
    assert np.array_equal(to_host(projected[1]), [[1.0, 1.0], [0.0, 1.0]])


def test_one_block_needs_no_list_and_its_point_no_tuple():
    f, block = rp.smooth.Quadratic(Q, B), rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    x = np.array([0.1, -0.2, 0.3])
    values = {
        float(problem.value(point))
        for problem in (rp.Problem(f, block), rp.Problem(f, [block]), rp.Problem(f, (block,)))
        for point in (x, (x,), [x], list(x), [0.1, -0.2, 0.3])
    }
    assert len(values) == 1
    listed = rp.Problem(f, block).value([[0.1, -0.2, 0.3], [0.0, 0.0, 0.0]])
    assert listed.shape == (2,)


@pytest.mark.parametrize("starts", [3, 5])
def test_parameters_meet_points_by_their_first_axes(starts):
    """(problems, starts), also where NumPy would align a square batch the other way round."""
    weights, radii = np.array([0.0, 0.1, 0.5]), np.array([1.0, 2.0, 3.0])
    problem = path(weights, radii)
    x = np.random.default_rng(0).standard_normal((3, starts, 3))
    value, violation = problem.value(x), problem.violation(x)
    (projected,) = problem.project(x)
    certificate = rp.certify(problem, projected)
    assert value.shape == violation.shape == certificate.max.shape == (3, starts)
    for i in range(3):
        alone = path(weights[i], radii[i])
        assert np.allclose(value[i], alone.value(x[i]), rtol=0, atol=1e-14)
        assert np.allclose(violation[i], alone.violation(x[i]), rtol=0, atol=1e-14)
        assert np.allclose(projected[i], alone.project(x[i])[0], rtol=0, atol=1e-14)
        expected = rp.certify(alone, projected[i])
        assert np.allclose(certificate.per_block[i], expected.per_block, rtol=0, atol=1e-13)
    one_point = problem.value(x[0, 0])
    assert one_point.shape == (3,)
    assert np.allclose(one_point, problem.value(np.stack([x[0, 0]] * 3)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("starts", [3, 4])
def test_the_points_of_a_batched_run_are_certified_again_from_outside(starts):
    problem = path(np.array([0.0, 0.1, 0.5]))
    result = rp.solve(problem, starts=starts)
    again = rp.certify(problem, result.xs)
    assert np.array_equal(again.per_block, result.certificate.per_block)
    assert np.array_equal(problem.value(result.xs), result.value)


def test_points_that_do_not_fit_the_parameters_are_refused():
    problem = path(np.array([0.0, 0.1, 0.5]))
    for shape in ((2, 3), (5, 3, 3), (1, 3)):
        with pytest.raises(ShapeError, match=r"parameters of the sets and penalties carry \(3,\)"):
            problem.value(np.zeros(shape))
    with pytest.raises(ShapeError, match="do not broadcast"):
        path(np.ones(3), np.ones(2))


def test_blocks_with_different_numbers_of_starts_are_refused():
    problem = tensor_problem(tensor(3, 4), 0.1)
    with pytest.raises(ShapeError, match=r"different leading axes \[\(2,\), \(5,\)\]"):
        problem.value((np.zeros((2, 3)), np.zeros((5, 4))))


def test_matrices_are_blocks_with_two_event_axes():
    f = rp.smooth.Function(
        lambda x: float(np.sum((x - 1.0) ** 2)),
        lambda x: 2 * (x - 1.0),
        shapes=(2, 3),
        constant=2.0,
    )
    block = rp.Block(rp.sets.L2Ball(event_ndim=2), rp.penalties.L1(0.5, event_ndim=2))
    problem = rp.Problem(f, block)
    assert problem.shapes == ((2, 3),)
    result = rp.solve(problem, starts=3, eps=1e-9)
    assert result.x.shape == (3, 2, 3)
    assert result.certified.all()
    assert np.allclose(result.x, np.full((2, 3), 1 / np.sqrt(6)), rtol=0, atol=1e-9)
    with pytest.raises(ShapeError, match="event_ndim=2"):
        rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    with pytest.raises(ShapeError, match="give both the same event_ndim"):
        rp.Block(rp.sets.L2Ball(event_ndim=2), rp.penalties.L1(0.5))
    with pytest.raises(ShapeError, match=r"expected \(2, 3\)"):
        problem.value(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("set_", "point"),
    [
        (rp.sets.Box(0.0, 0.0), np.zeros(3)),
        (rp.sets.Box(np.full(3, 0.3), np.full(3, 0.3)), np.full(3, 0.3)),
    ],
    ids=["origin", "elsewhere"],
)
def test_a_set_of_one_point_is_solved_at_that_point(set_, point):
    problem = rp.Problem(rp.smooth.Quadratic(Q, B), rp.Block(set_, rp.penalties.L1(0.1)))
    for result in (rp.solve(problem), rp.solve(problem, x0=point)):
        assert result.status is rp.Status.CERTIFIED
        assert result.iterations == 0
        assert np.array_equal(result.x, point)
        assert np.isfinite(result.bound.count)
    with pytest.raises(DataError, match=r"problem\.project"):
        rp.solve(problem, x0=point + 1e-9)


def test_a_simplex_of_one_entry_is_a_point_too():
    problem = rp.Problem(rp.smooth.Quadratic([[1.0]], [2.0]), rp.Block(rp.sets.Simplex(3.0)))
    result = rp.solve(problem, starts=2)
    assert np.array_equal(result.x, [[3.0], [3.0]])
    assert result.certified.all()


def test_an_oracle_must_answer_for_the_pair_of_its_block():
    set_, penalty = rp.sets.L2Ball(np.array([1.0, 2.0])), rp.penalties.L1(0.1)
    own = rp.oracles.find(rp.sets.L2Ball(np.array([1.0, 2.0])), rp.penalties.L1(0.1))
    assert rp.Block(set_, penalty, own).oracle is own
    for other in (
        rp.oracles.find(rp.sets.L2Ball(np.array([1.0, 2.5])), penalty),
        rp.oracles.find(rp.sets.L2Ball(1.0), penalty),
        rp.oracles.find(rp.sets.Box(-1.0, 1.0), penalty),
        rp.oracles.find(set_, rp.penalties.Zero()),
    ):
        with pytest.raises(DataError, match="would speak of another problem"):
            rp.Block(set_, penalty, other)


def test_a_block_of_plain_functions_is_solved_and_its_certificate_says_what_it_rests_on():
    def linear(g):
        return -np.sign(g)

    def project(x):
        return np.clip(x, -1.0, 1.0)

    declared = rp.Block.from_oracle(
        linear,
        prox=lambda g, z, weight, p: np.clip(z - g / weight, -1.0, 1.0),
        diameter=lambda p: 2.0 * 3 ** (1 / p),
        project=project,
    )
    f = rp.smooth.Quadratic(Q, B)
    x0 = np.array([0.5, 0.2, -0.5])
    ours = rp.solve(rp.Problem(f, declared), x0=x0)
    built_in = rp.solve(rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0))), x0=x0)
    assert np.allclose(ours.x, built_in.x, rtol=0, atol=1e-12)
    assert ours.iterations == built_in.iterations
    assert ours.bound.count >= built_in.bound.count
    assert ours.certificate.kind == "declared oracle"
    assert ours.certificate.feasibility_checked
    bare = rp.Block.from_oracle(linear, diameter=4.0)
    unchecked = rp.solve(rp.Problem(f, bare), rp.ConditionalGradient(), x0=x0, eps=1e-2)
    assert not unchecked.certificate.feasibility_checked
    assert "violation  not checked" in str(unchecked)
    bounded = rp.Block.from_oracle(
        linear, diameter=4.0, lower_bound=lambda g: -float(np.abs(g).sum())
    )
    assert rp.certify(rp.Problem(f, bounded), x0).kind == "dual bound"


def test_facts_of_data_that_overflow_are_unknown_without_a_warning():
    problem = rp.Problem(rp.smooth.Quadratic(1e300 * Q, 1e300 * B), rp.Block(rp.sets.L2Ball(1e10)))
    assert problem.facts().lower_bound is None


def test_problems_convert_to_the_dtype_of_a_point():
    problem = quadratic_problem()
    single = problem.converted(np.zeros(1, dtype=np.float32))
    assert single.smooth.Q.dtype == np.float32
    assert problem.smooth.Q.dtype == np.float64
    assert single.value(np.zeros(3, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((lambda x: x, rp.Block(rp.sets.L2Ball())), CapabilityError, "Function(value, gradient"),
        (
            (rp.smooth.Quadratic, rp.Block(rp.sets.L2Ball())),
            CapabilityError,
            "write Quadratic(...)",
        ),
        ((rp.smooth.Quadratic(Q), None), CapabilityError, "blocks must be a restpoint.Block"),
        ((rp.smooth.Quadratic(Q), rp.sets.L2Ball()), CapabilityError, "write Block(set, penalty)"),
        (
            (rp.smooth.Quadratic(Q), (rp.sets.L2Ball(), rp.penalties.L1(0.1))),
            CapabilityError,
            "blocks[0] must be a restpoint.Block, got L2Ball",
        ),
        ((rp.smooth.Quadratic(Q), []), ShapeError, "give one Block per block of f"),
        (
            (rp.smooth.Quadratic(Q), [rp.Block(rp.sets.L2Ball())] * 2),
            ShapeError,
            "2 blocks were given",
        ),
        (
            (rp.smooth.Quadratic(Q), rp.Block(rp.sets.Box(np.zeros(2), 1.0))),
            ShapeError,
            "lower has shape (2,)",
        ),
    ],
)
def test_what_is_no_problem_is_refused_in_words(arguments, error, words):
    with pytest.raises(error) as caught:
        rp.Problem(*arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((rp.sets.L2Ball,), "the class L2Ball itself; write L2Ball(...)"),
        ((1.0,), "set must be a restpoint.sets.Set, got float"),
        ((None,), "set must be a restpoint.sets.Set, got NoneType"),
        ((rp.sets.L2Ball(), 0.1), "penalty must be a restpoint.penalties.Penalty, got float"),
        ((rp.sets.L2Ball(), rp.penalties.L1), "the class L1 itself"),
        ((rp.sets.L2Ball(), None, lambda g: g), "plain functions go to Block.from_oracle"),
    ],
)
def test_what_is_no_block_is_refused_in_words(arguments, words):
    with pytest.raises(CapabilityError) as caught:
        rp.Block(*arguments)
    assert words in str(caught.value)
