"""Parameters of sets and penalties at the door: their shapes, whose memory they are, and what equals what."""

import numpy as np
import pytest
import scipy.sparse

import restpoint as rp
from method_cases import quadratic_problem
from restpoint.errors import DataError, ShapeError

BALL, BOX, SIMPLEX, L1, ZERO = (
    rp.sets.L2Ball,
    rp.sets.Box,
    rp.sets.Simplex,
    rp.penalties.L1,
    rp.penalties.Zero,
)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("radius has shape (0,): it is empty", lambda: BALL([])),
        ("center has shape (0,): it is empty", lambda: BALL(1.0, [])),
        ("total has shape (0,): it is empty", lambda: SIMPLEX([])),
        ("weight has shape (0,): it is empty", lambda: L1([])),
        ("lower has shape (0,): it is empty", lambda: BOX([], [])),
        (
            "Box got lower of shape (3,) and upper of shape (4,); give numbers, or arrays of one shape",
            lambda: BOX(np.zeros(3), np.ones(4)),
        ),
        ("(2, 3) and upper of shape (3, 3)", lambda: BOX(np.zeros((2, 3)), np.ones((3, 3)))),
        (
            "lower has shape (3,); expected a number, or at least 2 axes",
            lambda: BOX(np.zeros(3), 1.0, event_ndim=2),
        ),
    ],
)
def test_shapes_that_cannot_be_meant(words, make):
    with pytest.raises(ShapeError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("event_ndim", [None, "1", 0, -1, 2.5, True, [1]])
@pytest.mark.parametrize("make", [BALL, lambda **more: BOX(-1.0, 1.0, **more), ZERO])
def test_event_ndim_is_a_count_of_axes(make, event_ndim):
    with pytest.raises(DataError, match="event_ndim must be a whole number >= 1, got"):
        make(event_ndim=event_ndim)
    with pytest.raises(DataError, match="event_ndim must be a whole number >= 1, got"):
        L1(1.0, event_ndim=event_ndim)


def test_a_box_may_have_one_bound_for_all_and_one_for_each():
    assert BOX(0.0, np.ones((2, 3))).batch_shape == (2,)
    assert BOX(np.zeros(3), np.ones((2, 3))).batch_shape == (2,)


def test_parameters_are_copies_so_that_a_set_never_changes():
    radius, center = np.array([1.0, 2.0]), np.zeros(3)
    ball, box = BALL(radius, center), BOX(center, center + 1.0)
    weights, simplex = L1(radius), SIMPLEX(radius)
    radius[:] = center[:] = -5.0
    assert np.array_equal(ball.radius, [1.0, 2.0])
    assert np.array_equal(simplex.total, [1.0, 2.0])
    assert np.array_equal(weights.weight, [1.0, 2.0])
    assert np.array_equal(ball.center, np.zeros(3))
    assert np.array_equal(box.lower, np.zeros(3))


def test_large_data_are_not_copied():
    Q = np.eye(3)
    assert np.shares_memory(rp.smooth.Quadratic(Q).Q, Q)


# --- equality -------------------------------------------------------------------------------------------


def test_equality_compares_arrays_entry_by_entry():
    radii = np.array([1.0, 2.0])
    assert BALL(radii) == BALL(radii.copy())
    assert BALL(radii) != BALL(radii + 1.0)
    assert BALL(radii) != BALL(1.0)
    assert BALL(1.0) == BALL(1)
    assert BALL(1.0) != SIMPLEX(1.0)
    assert BALL(1.0) != "ball"
    block, twin = (rp.Block(BALL(radii), L1(radii)) for _ in range(2))
    assert block == twin
    assert block != rp.Block(BALL(radii), L1(2 * radii))
    f = rp.smooth.Quadratic(np.eye(3))
    assert rp.Problem(f, block) == rp.Problem(f, twin)
    assert rp.Problem(f, block) != rp.Problem(rp.smooth.Quadratic(np.eye(3)), block)


def test_equal_values_have_equal_hashes():
    radii = np.array([1.0, 2.0])
    assert hash(BALL(radii)) == hash(BALL(radii.copy()))
    assert len({BALL(1.0), BALL(1), BALL(2.0)}) == 2
    assert len({rp.Block(BALL(radii)), rp.Block(BALL(radii))}) == 1


# --- what is no array of real numbers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            np.ndarray,
            "Q must be an array or a number, got the class ndarray itself; write ndarray(...)",
        ),
        (
            np.eye(2).astype(">f8"),
            "of another byte order; convert it to float64 or float32 first, as in Q.astype",
        ),
        (
            scipy.sparse.eye_array(2).tocsr(),
            "Q is sparse (csr_array); expected a dense array: pass Q.toarray()",
        ),
        (scipy.sparse.eye(2), "pass Q.toarray()"),
        (np.array([["a"]]), "write np.asarray(Q, dtype=float) if that is what it holds"),
        (np.eye(2) * 1j, "write Q.real if that is what it holds"),
        (np.eye(2).astype(np.float16), "as in Q.astype(float)"),
        ([[1.0, 2.0], [3.0]], "give numbers, all rows of one length"),
    ],
    ids=str,
)
def test_data_of_other_kinds_are_refused_with_the_next_step(data, words):
    with pytest.raises(DataError) as caught:
        rp.smooth.Quadratic(data)
    assert words in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 3, -1])
def test_one_bad_entry_is_found_wherever_it_is(bad, place):
    data = np.zeros(16)
    data[place] = bad
    with pytest.raises(DataError, match="NaN or infinite"):
        rp.smooth.Quadratic(data.reshape(4, 4))


def test_a_result_is_not_a_point():
    problem = quadratic_problem()
    result = rp.solve(problem)
    for call in (rp.certify, problem.value, lambda p, xs: rp.solve(p, x0=xs)):
        arguments = (result,) if call == problem.value else (problem, result)
        with pytest.raises(
            DataError, match=r"is a Result, not a point; pass its point, result\.xs"
        ):
            call(*arguments)


# --- rounding in the dtype of the points ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_point_of_the_library_passes_its_own_door(dtype):
    """A small ball far from the origin has few floating-point numbers in it."""
    Q = np.diag([1.0, -2.0, 0.5]).astype(dtype)
    ball = rp.sets.L2Ball(1.0, np.array([1e3, 3.0, 5.0], dtype))
    problem = rp.Problem(rp.smooth.Quadratic(Q), rp.Block(ball))
    result = rp.solve(problem, starts=4, eps=1.0)
    assert result.x.dtype == dtype
    assert result.certified.all()
    again = rp.solve(problem, x0=result.xs, eps=1.0)
    assert again.certified.all()
    with pytest.raises(DataError, match="lies outside L2Ball"):
        rp.solve(problem, x0=ball.center + np.array([1.01, 0.0, 0.0], dtype))
