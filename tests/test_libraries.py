"""Units, dtypes and array libraries: the same problem in others gives the same answers."""

import numpy as np
import pytest

import restpoint as rp
from loop_cases import ALL_METHODS, SHAPES
from method_cases import (
    B,
    Q,
    ball_gap,
    cosine,
    name_of,
    quadratic_problem,
    tensor,
    tensor_gaps,
    tensor_problem,
    unit_starts,
)
from restpoint.array import to_host
from restpoint.run import loop as loop_module


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("which", ["quadratic", "tensor", "tensor, Jacobi"])
def test_a_relative_eps_gives_data_in_other_units_the_same_answer(which, scale):
    def solved(c):
        if which == "quadratic":
            problem, method = quadratic_problem(scale=c), None
        else:
            problem = tensor_problem(c * tensor(4, 3, 5, seed=3), c * 0.4)
            method = rp.ProximalGradient(rp.Jacobi()) if "Jacobi" in which else None
        return rp.solve(problem, method, starts=6, eps=rp.Relative(1e-8))

    plain, scaled = solved(1.0), solved(scale)
    assert plain.certified.all()
    assert np.array_equal(plain.status, scaled.status)
    assert np.array_equal(plain.iterations, scaled.iterations)
    assert np.allclose(scaled.eps, scale * plain.eps, rtol=1e-12, atol=0)
    assert np.allclose(scaled.value, scale * plain.value, rtol=1e-10, atol=0)
    for x, y in zip(plain.xs, scaled.xs, strict=True):
        assert np.array_equal(x == 0, y == 0)
        assert np.allclose(x, y, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-250, 1e-200, 1e-160, 1e-150, 1e200, 1e250])
def test_data_whose_squares_leave_the_numbers_are_named_and_never_falsely_certified(scale):
    A = tensor(4, 3, 5, seed=3)
    problem = tensor_problem(scale * A, scale * 0.4)
    result = rp.solve(problem, starts=3, eps=rp.Relative(1e-8), stop=rp.Stop(max_iterations=60))
    assert "f and the penalties by one number" in str(result)
    withdrawn = result.bound.withdrawn
    assert withdrawn is None or "rounding included" in withdrawn  # nothing declared is to blame
    for k in np.flatnonzero(result.certified):
        gaps = tensor_gaps(A, tuple(x[k] for x in result.xs), 0.4)
        assert max(gaps) <= max(1e-8 * 10, result.eps[k] / scale)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_data_of_a_size_that_can_be_computed_with_are_not_complained_about(scale):
    problem = tensor_problem(scale * tensor(4, 3, 5, seed=3), scale * 0.4)
    result = rp.solve(problem, starts=3, eps=rp.Relative(1e-8))
    assert result.certified.all()
    assert result.message == ""


@pytest.mark.parametrize("which", ["the value", "the gap"])
def test_a_relative_eps_is_of_the_larger_of_value_and_gap(which):
    """Each of the two is the larger one somewhere."""
    shift = 100.0 if which == "the value" else 0.0
    f = rp.smooth.Function(
        lambda x: float(0.5 * x @ Q @ x + B @ x) + shift,
        lambda x: Q @ x + B,
        shapes=3,
        constant=5.0,
    )
    x = np.array([0.1, -0.2, 0.3])
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1)))
    value, gap = abs(float(problem.value(x))), ball_gap(Q @ x + B, x, 0.1)
    assert (value > 2 * gap) if which == "the value" else (gap > 2 * value)
    result = rp.solve(problem, x0=x, eps=rp.Relative(1e-3))
    assert result.eps == pytest.approx(1e-3 * max(value, gap), rel=1e-12)
    assert rp.explain(problem, x0=x, eps=rp.Relative(1e-3)).eps == pytest.approx(
        result.eps, rel=1e-9
    )


def test_a_start_without_any_scale_is_certified_under_a_relative_eps():
    problem = tensor_problem(tensor(2, 3), 0.1)
    result = rp.solve(problem, x0=(np.zeros(2), np.zeros(3)), eps=rp.Relative(1e-8))
    assert result.status is rp.Status.CERTIFIED
    assert result.eps > 0


def test_float32_points_stay_float32_and_are_certified_in_float64():
    problem = quadratic_problem()
    x0 = np.array([[0.6, 0.0, -0.8], [0.1, 0.1, 0.1]], dtype=np.float32)
    result = rp.solve(problem, x0=x0, eps=1e-4)
    assert result.x.dtype == result.last[0].dtype == np.float32
    assert result.certificate.per_block.dtype == np.float64
    assert result.certified.all()
    for x in result.x.astype(np.float64):
        assert ball_gap(Q @ x + B, x, 0.1) <= 1e-4


def test_float32_data_draw_float32_starts():
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    data = rp.smooth.Quadratic(Q.astype(np.float32), B.astype(np.float32))
    result = rp.solve(rp.Problem(data, block), starts=2, eps=1e-3)
    assert result.x.dtype == np.float32
    assert result.certified.all()


def smooth_functions(xp):
    """One of each, over arrays of a library."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((7, 4))
    return {
        "quadratic": rp.smooth.Quadratic(xp.asarray(A.T @ A - 2 * np.eye(4)), xp.asarray(A[0])),
        "concave": rp.smooth.Quadratic(xp.asarray(-A.T @ A)),
        "least squares": rp.smooth.LeastSquares(xp.asarray(A), xp.asarray(A[:, 0] + 1.0)),
        "logistic": rp.smooth.Logistic(xp.asarray(A), xp.asarray(np.sign(A[:, 1]))),
        "powers": rp.smooth.PowerSum(1.75, xp.asarray(np.array([1.0, -0.5, 0.3, 2.0]))),
        "sum": rp.smooth.Sum(
            rp.smooth.Quadratic(xp.asarray(A.T @ A - 2 * np.eye(4))),
            rp.smooth.PowerSum(1.75, xp.asarray(np.array([1.0, -0.5, 0.3, 2.0]))),
        ),
        "function": cosine(4, lower_bound=-4.0),
    }


SETS = {
    "ball": rp.sets.L2Ball(1.5),
    "box": rp.sets.Box(-1.0, 0.5),
    "simplex": rp.sets.Simplex(),
}


@pytest.mark.parametrize("set_", SETS)
@pytest.mark.parametrize("name", smooth_functions(np))
def test_every_function_on_every_set_is_solved_alike_in_every_library(xp, name, set_):
    penalty = rp.penalties.L1(0.05)
    problems = [
        rp.Problem(smooth_functions(library)[name], rp.Block(SETS[set_], penalty))
        for library in (xp, np)
    ]
    rng = np.random.default_rng(5)
    x0 = np.stack([0.5 * SETS[set_].sample(rng, (4,)) for _ in range(3)])
    if set_ == "simplex":
        x0 = 2 * x0
    methods = [None, rp.ConditionalGradient()] if name != "concave" else [None]
    for method in methods:
        stop = rp.Stop(max_iterations=8)
        ours = rp.solve(problems[0], method, x0=xp.asarray(x0), eps=1e-5, stop=stop)
        theirs = rp.solve(problems[1], method, x0=x0, eps=1e-5, stop=stop)
        assert type(ours.x) is type(xp.asarray(x0))
        assert np.array_equal(ours.status, theirs.status)
        assert np.allclose(to_host(ours.last[0]), theirs.last[0], rtol=0, atol=1e-11)
        assert np.allclose(to_host(ours.x), theirs.x, rtol=0, atol=1e-11)
        assert np.allclose(ours.gap, theirs.gap, rtol=0, atol=1e-10)
        assert isinstance(ours.gap, np.ndarray)
        str(ours), ours.to_dataframe(), ours.best()


@pytest.mark.parametrize("method", ALL_METHODS, ids=name_of)
def test_every_method_walks_alike_in_every_library(xp, method):
    A = tensor(3, 4, 2, seed=6)
    x0 = unit_starts(SHAPES, 3)
    stop = rp.Stop(max_iterations=30)
    ours = rp.solve(
        tensor_problem(xp.asarray(A), 0.2), method, x0=tuple(map(xp.asarray, x0)), stop=stop
    )
    theirs = rp.solve(tensor_problem(A, 0.2), method, x0=x0, stop=stop)
    for x, y in zip(ours.last + ours.xs, theirs.last + theirs.xs, strict=True):
        assert type(x) is type(xp.asarray(A))
        assert np.allclose(to_host(x), y, rtol=0, atol=1e-12)
    assert np.array_equal(ours.status, theirs.status)


@pytest.mark.parametrize("k", [3, 4])
def test_sampled_methods_draw_alike_in_every_library(xp, k):
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((9, 3)), rng.standard_normal(9)
    if k == 3:
        functions = [rp.smooth.LeastSquares(lib.asarray(A), lib.asarray(b)) for lib in (xp, np)]
        method = rp.paper.algorithm(3, 30.0, m=3)
    else:
        concave = rp.smooth.Function(
            lambda x: -float(np.abs(x).sum()),
            lambda x: -np.where(x >= 0, 1.0, -1.0),
            shapes=3,
            concave=True,
            differentiable=False,
        )
        functions, method = [concave, concave], rp.paper.algorithm(4, 1.0, m=3, radius=0.2)
    (x0,) = unit_starts(((3,),), 4)
    ours, theirs = (
        rp.solve(
            rp.Problem(f, rp.Block(rp.sets.L2Ball())),
            method,
            x0=lib.asarray(x0),
            stop=rp.Stop(max_iterations=20),
        )
        for f, lib in zip(functions, (xp, np), strict=True)
    )
    assert np.array_equal(ours.iterations, theirs.iterations)
    assert np.allclose(to_host(ours.x), theirs.x, rtol=0, atol=1e-12)


def test_observers_see_arrays_of_the_users_library(xp):
    steps = []
    problem = rp.Problem(rp.smooth.Quadratic(xp.asarray(Q)), rp.Block(rp.sets.L2Ball()))
    for view in rp.iterate(problem, x0=xp.asarray(np.full((2, 3), 0.3))):
        assert type(view.xs[0]) is type(xp.asarray(Q))
        steps.append(view.step)
    assert np.all(steps[0] == 0)
    assert np.all(steps[1] > 0)


def test_gathering_takes_the_parameters_of_the_survivors_along(xp, monkeypatch):
    spectrum, b = np.diag([1.0, 0.05, 0.01]), np.array([-0.3, 0.1, 0.02])
    weights, radii = np.array([0.01, 0.4, 0.02, 0.5]), np.array([3.0, 1.0, 2.0, 3.0])

    def problem(library):
        sets = rp.sets.L2Ball(library.asarray(radii))
        block = rp.Block(sets, rp.penalties.L1(library.asarray(weights)))
        return rp.Problem(rp.smooth.Quadratic(library.asarray(spectrum), library.asarray(b)), block)

    x0 = np.stack([np.stack([np.full(3, 0.5), np.array([0.9, -0.3, 0.1])])] * 4)
    views = list(rp.iterate(problem(xp), x0=xp.asarray(x0), eps=1e-8))
    result = rp.solve(problem(xp), x0=xp.asarray(x0), eps=1e-8)
    assert result.certified.all()
    assert len(np.unique(result.iterations)) > 2
    assert result.iterations.max() > 3 * 16
    monkeypatch.setattr(loop_module, "GATHER_EVERY", 10**9)
    plain = rp.solve(problem(np), x0=x0, eps=1e-8)
    assert np.array_equal(result.iterations, plain.iterations)
    assert np.allclose(to_host(result.x), plain.x, rtol=0, atol=1e-12)
    assert np.allclose(to_host(views[-1].xs[0]), plain.last[0], rtol=0, atol=1e-12)
    assert views[20].value.shape == (4, 2)
    for index in np.ndindex(4, 2):
        x = plain.x[index]
        gap = ball_gap(spectrum @ x + b, x, weights[index[0]], radii[index[0]])
        assert gap <= 1e-8
