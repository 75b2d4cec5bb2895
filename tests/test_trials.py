"""Steps found by trial: theory A3, the inequalities that accept a step, and the bounds in trials."""

import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import cosine, quadratic_problem, tensor, tensor_problem, unit_starts
from restpoint import bounds
from restpoint.errors import CapabilityError, DataError

JACOBI_ARMIJO = rp.ConditionalGradient(rp.Jacobi(), rp.Armijo())
DOUBLINGS = [
    step(order, rp.Doubling(initial))
    for step in (rp.ConditionalGradient, rp.ProximalGradient)
    for order in (rp.Jacobi(), rp.GaussSeidel(), rp.MaxImprovement(), rp.RandomOrder())
    for initial in (0.01, 30.0)
]


def values(problem, method, **more):
    return rp.solve(problem, method, stop=rp.Stop(patience=None), **more)


@pytest.mark.parametrize("method", [JACOBI_ARMIJO, *DOUBLINGS], ids=str)
def test_phi_never_rises_and_the_end_is_certified(method):
    problem = tensor_problem(tensor(4, 3, 5, seed=2), 0.2)
    result = values(problem, method, eps=1e-6, starts=5)
    assert result.certified.all()
    rises = np.diff(result.trace.value, axis=0)
    assert np.nanmax(rises) <= 1e-13
    if result.bound.count is not None:
        assert np.all(result.used <= result.bound.count)


def test_an_armijo_step_is_the_longest_of_the_halvings_that_lowers_phi_by_half_the_promise():
    problem = quadratic_problem(0.05)
    x = np.array([0.3, -0.8, 0.5])
    method = rp.ConditionalGradient(smoothness=rp.Armijo())
    states = rp.iterate(problem, method, x0=x, eps=1e-9, stop=rp.Stop(max_iterations=60))
    points = [np.array(view.xs[0]) for view in states]

    def gap_and_goal(x):
        g = problem.smooth.gradient((x,))[0]
        answer = problem.blocks[0].oracle.linear(g)
        return float(g @ x + problem.blocks[0].penalty.value(x) - answer.lower), answer.point

    s, here, moves = 1.0, x, 0
    for point in points[1:]:
        gap, goal = gap_and_goal(here)
        trial = (1.0 - s) * here + s * goal
        if float(problem.value(here) - problem.value(trial)) >= 0.5 * s * gap:
            here, s, moves = trial, min(1.0, 2.0 * s), moves + 1
        else:
            s *= 0.5
        assert np.allclose(point, here, rtol=0, atol=1e-14)
    assert 5 < moves < len(points) - 1  # some trials were refused


def test_armijo_reaches_eps_within_the_bound_of_a3_for_hoelder_smooth_f():
    for p in (1.25, 1.5, 2.0):
        f = rp.smooth.Sum(
            rp.smooth.PowerSum(p, shape=4),
            rp.smooth.Quadratic(np.zeros((4, 4)), -np.arange(1.0, 5.0) / 4),
        )
        problem = rp.Problem(f, rp.Block(rp.sets.Box(0.0, 1.0), rp.penalties.L1(0.1)))
        method = rp.ConditionalGradient(smoothness=rp.Armijo())
        result = values(problem, method, eps=1e-3, starts=6)
        assert result.certified.all()
        assert result.bound.count is not None
        assert np.all(result.used <= result.bound.count)


def test_addition_3_is_the_formula_of_the_theory():
    # N = ceil(2 delta / eps max{1, 2 (D / eps)^(q-1)}), D = 3 * 2^2 + 1 = 13
    eps, D = 0.5, 13.0
    N = math.ceil(2 * 7.1 / eps * 2 * D / eps)
    found = bounds.addition_3(eps=eps, delta=7.1, constants=(3.0, 1.0), diameters=(2.0, 1.0))
    assert found.count == 2 * N + math.ceil(math.log2(2 * D / eps)) + 1
    assert isinstance(found.count, float)
    flat = bounds.addition_3(eps=0.3, delta=1.0, constants=(0.0,), diameters=(1.0,))
    assert flat.count == 2 * 7 + 1
    unknown = bounds.addition_3(eps=0.25, delta=1.0, constants=None, diameters=(1.0,))
    assert unknown.count is None


def test_doubling_never_needs_more_than_twice_the_true_constant():
    # f = sum cos(2 x_j) has lambda = 4 exactly: from far below, the constant is found within 2 lambda.
    problem = rp.Problem(cosine(3, lower_bound=-3.0), rp.Block(rp.sets.Box(-2.0, 2.0)))
    result = values(problem, rp.ProximalGradient(smoothness=rp.Doubling(1e-6)), starts=8)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    assert "A3" in result.bound.statement
    known = values(problem, rp.ProximalGradient(smoothness=rp.Majorant(8.0)), starts=8)
    assert np.all(result.bound.count >= 2 * known.bound.count)


def test_starts_try_at_their_own_pace():
    problem = tensor_problem(tensor(3, 4, 3, seed=5), 0.1)
    x0 = unit_starts(problem.shapes, 6)
    for method in (JACOBI_ARMIJO, rp.ConditionalGradient(rp.Jacobi(), rp.Doubling(0.1))):
        together = values(problem, method, x0=x0)
        for i in range(6):
            alone = values(problem, method, x0=tuple(x[i] for x in x0))
            assert alone.iterations == together.iterations[i]
            for a, b in zip(alone.xs, together.xs, strict=True):
                np.testing.assert_allclose(a, b[i], rtol=0, atol=1e-12)


def test_what_cannot_be_tried_is_refused_with_the_reason():
    problem = tensor_problem(tensor(3, 4, 3))
    with pytest.raises(CapabilityError, match="Doubling"):
        rp.solve(problem, rp.ProximalGradient(rp.Jacobi(), rp.Armijo()))
    with pytest.raises(CapabilityError, match="one by one"):
        rp.solve(problem, rp.ConditionalGradient(rp.GaussSeidel(), rp.Armijo()))
    f = rp.smooth.LeastSquares(np.eye(3), np.ones(3))
    sampled = rp.ConditionalGradient(smoothness=rp.Armijo(), gradient=rp.MiniBatch(2))
    with pytest.raises(CapabilityError, match="gradient=Exact"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), sampled)
    for wrong in (0.0, -1.0, math.nan, "a"):
        with pytest.raises(DataError, match="initial"):
            rp.Doubling(wrong)
    with pytest.raises(DataError, match="p must be"):
        rp.Doubling(p=1.0)


def test_an_unknown_constant_leaves_the_bound_open_and_the_certificate_valid():
    f = rp.smooth.Function(lambda x: float(-x @ x), lambda x: -2.0 * x, shapes=3)
    result = rp.solve(
        rp.Problem(f, rp.Block(rp.sets.L2Ball())), rp.ProximalGradient(smoothness=rp.Doubling())
    )
    assert result.status is rp.Status.CERTIFIED
    assert result.bound.count is None


TRIALS = [
    rp.ConditionalGradient(smoothness=rp.Armijo()),
    rp.ProximalGradient(smoothness=rp.Doubling(0.01)),
]


def bowl(factor, lower_bound):
    f = rp.smooth.Function(
        lambda x: factor * float(x @ x),
        lambda x: 2.0 * factor * x,
        shapes=3,
        constant=2.0 * factor,
        lower_bound=lower_bound,
    )
    return rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))


@pytest.mark.parametrize("method", TRIALS, ids=str)
def test_trials_that_fall_below_the_declared_lower_bound_withdraw_the_bound(method):
    result = rp.solve(bowl(1.0, lower_bound=0.5), method, x0=np.ones(3))
    assert result.status is rp.Status.CERTIFIED
    assert result.bound.count is None
    assert "below the declared lower bound 0.5" in result.bound.withdrawn


@pytest.mark.parametrize("rule", ["value_change", "relative_value_change"])
@pytest.mark.parametrize("method", TRIALS, ids=str)
def test_a_refused_trial_is_no_small_change_of_phi(method, rule):
    """The first trial is far too long: it is refused, and Phi stays what it is without having stalled."""
    result = rp.solve(
        bowl(50.0, lower_bound=0.0),
        method,
        x0=np.full(3, 0.9),
        eps=1e-9,
        stop=rp.Stop(**{rule: 1e-8}),
    )
    assert result.trace.value[1] == result.trace.value[0]  # refused
    assert result.value <= 1e-4


@pytest.mark.parametrize("order", [rp.RandomOrder(), rp.GaussSeidel("cyclic")], ids=str)
def test_no_bound_stays_no_bound_in_trials_and_after_continuation(order):
    problem = tensor_problem(tensor(3, 3, 3), 0.1)
    for method in (
        rp.ProximalGradient(order, rp.Doubling()),
        rp.Continuation(rp.ProximalGradient(order, rp.Doubling())),
        rp.Continuation(rp.ProximalGradient(order, rp.Majorant(3.0))),
    ):
        bound = rp.explain(problem, method).bound
        assert bound.statement == ""
        assert bound.count is None
        assert str(bound) == bound.brief(1) == "no bound: " + bound.missing[0]
