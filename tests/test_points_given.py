"""Starts that the user gives: copied, checked, projected where the tolerance lets them in."""

import itertools

import numpy as np
import pytest

import restpoint as rp
from loop_cases import SHAPES
from method_cases import (
    FULL_STEPS,
    METHODS,
    name_of,
    quadratic_problem,
    tensor,
    tensor_problem,
    unit_starts,
)


@pytest.mark.parametrize("method", [*METHODS[:6:2], FULL_STEPS[0]], ids=name_of)
def test_x0_is_never_written_to_and_may_be_read_only(method):
    problem = tensor_problem(tensor(3, 4, 2), 0.2)
    x0 = unit_starts(SHAPES, 3)
    for x in x0:
        x.flags.writeable = False
    kept = [x.tobytes() for x in x0]
    result = rp.solve(problem, method, x0=x0, stop=rp.Stop(max_iterations=30))
    assert [x.tobytes() for x in x0] == kept
    assert not any(
        np.shares_memory(x, y) for x, y in itertools.product(x0, result.xs + result.last)
    )


def test_a_result_at_x0_is_not_x0_itself():
    x0 = np.zeros(3)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(3)), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, x0=x0)
    assert result.iterations == 0
    assert not np.shares_memory(result.x, x0)
    given = np.array([0.5, 0.5, 0.0])
    unmoved = rp.solve(problem, x0=given, stop=rp.Stop(max_iterations=0))
    assert np.array_equal(unmoved.x, given)
    assert not np.shares_memory(unmoved.x, given)
    assert not np.shares_memory(unmoved.last[0], given)


def test_lists_and_integers_are_points_too():
    problem = quadratic_problem()
    expected = rp.solve(problem, x0=np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]))
    listed = rp.solve(problem, x0=[[0, 1, 0], [0.5, 0.5, 0]])
    assert np.array_equal(expected.x, listed.x)
    one = rp.solve(problem, x0=[0, 1, 0])
    assert one.x.shape == (3,)
    two = tensor_problem(tensor(2, 3), 0.1)
    blocks = rp.solve(two, x0=[[1, 0], [0, 1, 0]])
    assert [x.shape for x in blocks.xs] == [(2,), (3,)]


def test_one_block_may_be_shared_by_all_starts():
    problem = tensor_problem(tensor(2, 3), 0.1)
    x, y = unit_starts(((2,), (3,)), 4)
    shared = rp.solve(problem, x0=(x, y[0]), stop=rp.Stop(max_iterations=5))
    spread = rp.solve(problem, x0=(x, np.stack([y[0]] * 4)), stop=rp.Stop(max_iterations=5))
    assert all(np.array_equal(a, b) for a, b in zip(shared.last, spread.last, strict=True))


def test_the_feasibility_that_is_asked_for_is_that_of_x0_and_of_the_certificate():
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
    x0 = np.array([1.0 + 1e-4, 0.0])
    with pytest.raises(rp.errors.DataError, match="lies outside L2Ball"):
        rp.solve(problem, x0=x0)
    loose = rp.solve(problem, x0=x0, eps=1e-3, stop=rp.Stop(feasibility=1e-3))
    assert loose.status is rp.Status.CERTIFIED
    assert loose.certificate.violation <= 1e-15  # let in, and projected
    unprojected = rp.Block.from_oracle(
        lambda g: -g / np.linalg.norm(g),
        diameter=2.0,
        violation=lambda x: max(0.0, float(np.linalg.norm(x)) - 1.0),
    )
    left = rp.solve(
        rp.Problem(problem.smooth, unprojected), x0=x0, eps=1e-3, stop=rp.Stop(feasibility=1e-3)
    )
    assert left.status is rp.Status.CERTIFIED
    assert left.certificate.violation == pytest.approx(1e-4, rel=1e-9)


def test_a_start_that_the_tolerance_let_in_does_not_disprove_what_holds_on_the_set():
    """The constant of sum x^p on the orthant fails for x = -4e-13, where the slope is not what it is at 0."""
    f = rp.smooth.Sum(rp.smooth.PowerSum(1.01, shape=1), rp.smooth.Quadratic([[0.0]], [-0.5]))
    problem = rp.Problem(f, rp.Block(rp.sets.Box(0.0, 1.0)))
    x0 = np.array([[-4e-13], [0.5], [-1e-300]])
    kept = x0.copy()
    for method in (rp.ConditionalGradient(), rp.ProximalGradient()):
        result = rp.solve(problem, method, x0=x0, stop=rp.Stop(max_iterations=50))
        assert result.bound.withdrawn is None
    assert np.array_equal(x0, kept)
    first = rp.solve(problem, x0=x0, stop=rp.Stop(max_iterations=0))
    assert np.array_equal(first.x, [[0.0], [0.5], [0.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "s", [rp.sets.Simplex(3.0), rp.sets.L2Ball(2.0, 0.1), rp.sets.Box(-0.3, 0.7)]
)
def test_feasible_starts_are_kept_bit_by_bit(s, dtype):
    rng = np.random.default_rng(0)
    x0 = np.stack([s.sample(rng, (7,)) for _ in range(200)]).astype(dtype)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(7, dtype=dtype)), rp.Block(s))
    result = rp.solve(problem, x0=x0, stop=rp.Stop(max_iterations=0))
    assert result.x.tobytes() == x0.tobytes()
    moved = x0 * (1.0 + 20 * np.finfo(dtype).eps) + dtype(20 * np.finfo(dtype).eps)
    back = rp.solve(problem, x0=moved, stop=rp.Stop(max_iterations=0, feasibility=1e-4)).x
    assert np.all(s.converted(back).inside(back))
