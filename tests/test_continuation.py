"""Continuation in the penalties: true numbers in every stage, the bound, and what it is for."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem, tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError

PLAIN = rp.ConditionalGradient(rp.GaussSeidel(repeats=2), rp.FullStep())


@pytest.mark.parametrize(
    "method",
    [
        rp.Continuation(PLAIN),
        rp.Continuation(rp.ConditionalGradient(rp.MaxImprovement(), rp.FullStep()), (0.5,)),
        rp.Continuation(rp.ProximalGradient(rp.Jacobi(), rp.Majorant(9.0)), (0.0, 0.9), most=5),
        rp.Continuation(rp.ConditionalGradient(rp.Jacobi(), rp.Doubling()), fall=0.5),
    ],
    ids=str,
)
def test_what_is_seen_in_every_stage_is_about_phi_and_the_end_is_certified(method):
    problem = tensor_problem(tensor(5, 4, 3, seed=8), 0.3)
    for view in rp.iterate(problem, method, starts=6):
        np.testing.assert_allclose(view.value, problem.value(view.xs), rtol=0, atol=1e-13)
        gaps = rp.certify(problem, view.xs).max
        np.testing.assert_allclose(view.gap, gaps, rtol=0, atol=1e-11)
    result = rp.solve(problem, method, starts=6)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)


def test_the_first_stage_is_the_run_without_penalty():
    A = tensor(5, 4, 3, seed=8)
    x0 = unit_starts([(n,) for n in A.shape], 3)
    method = rp.Continuation(PLAIN, (0.0, 0.5), most=4, fall=1e-12)
    stop = rp.Stop(max_iterations=4)
    staged = rp.solve(tensor_problem(A, 0.3), method, x0=x0, stop=stop)
    free = rp.solve(tensor_problem(A, 0.0), PLAIN, eps=1e-300, x0=x0, stop=stop)
    for a, b in zip(staged.last, free.last, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_the_last_stage_is_the_method_itself():
    problem = tensor_problem(tensor(5, 4, 3, seed=8), 0.3)
    x0 = unit_starts(problem.shapes)
    points = [
        view.xs
        for view in rp.iterate(problem, rp.Continuation(PLAIN, (0.2,), most=3, fall=1e-9), x0=x0)
    ]
    after = [view.xs for view in rp.iterate(problem, PLAIN, x0=points[3])]
    for a, b in zip(points[4], after[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_starts_go_through_their_stages_alone():
    problem = tensor_problem(tensor(5, 4, 6, seed=3), 0.4)
    x0 = unit_starts(problem.shapes, 5)
    method = rp.Continuation(PLAIN)
    together = rp.solve(problem, method, x0=x0)
    for i in range(5):
        alone = rp.solve(problem, method, x0=tuple(x[i] for x in x0))
        assert alone.iterations == together.iterations[i]
        for a, b in zip(alone.xs, together.xs, strict=True):
            np.testing.assert_allclose(a, b[i], rtol=0, atol=1e-12)


def test_values_are_better_on_average():
    plain, staged = [], []
    for seed in range(5):
        problem = tensor_problem(tensor(8, 8, 8, 8, seed=seed), 0.85)
        plain.append(rp.solve(problem, PLAIN, starts=20).value)
        staged.append(rp.solve(problem, rp.Continuation(PLAIN), starts=20).value)
    assert np.mean(staged) < np.mean(plain)


def test_a_batch_of_weights_keeps_its_own_penalties():
    A = tensor(4, 5, 3, seed=4)
    weights = np.array([0.1, 0.6])
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weights))
    batch = rp.solve(
        rp.Problem(rp.smooth.Multilinear(A), [block] * 3), rp.Continuation(PLAIN), starts=4
    )
    assert batch.certified.all()
    for k, weight in enumerate(weights):
        alone = rp.solve(tensor_problem(A, weight), rp.Continuation(PLAIN), starts=4)
        np.testing.assert_allclose(batch.value[k], alone.value, rtol=0, atol=1e-9)


def test_wrong_stages_and_what_cannot_be_scaled_are_refused():
    for shares in ((), (0.5, 0.5), (0.5, 0.2), (-0.1,), (1.0,), ("a",)):
        with pytest.raises(DataError, match="shares"):
            rp.Continuation(PLAIN, shares)
    with pytest.raises(DataError, match="fall"):
        rp.Continuation(PLAIN, fall=1.0)
    with pytest.raises(DataError, match="most"):
        rp.Continuation(PLAIN, most=0)
    with pytest.raises(CapabilityError, match="method must be"):
        rp.Continuation(rp.WithoutGuarantee(PLAIN))
    declared = rp.Block.from_oracle(
        lambda g: -np.sign(g), diameter=4.0, value=lambda x: float(np.sum(x**2))
    )
    f = rp.smooth.Quadratic(-np.eye(2))
    with pytest.raises(CapabilityError, match="scaled"):
        rp.solve(
            rp.Problem(f, declared),
            rp.Continuation(rp.ConditionalGradient(smoothness=rp.FullStep())),
        )
    sampled = rp.ConditionalGradient(gradient=rp.MiniBatch(2))
    least = rp.Problem(rp.smooth.LeastSquares(np.eye(3), np.ones(3)), rp.Block(rp.sets.L2Ball()))
    with pytest.raises(CapabilityError, match="gradient=Exact"):
        rp.solve(least, rp.Continuation(sampled))


def test_one_block():
    problem = quadratic_problem(0.4)
    result = rp.solve(problem, rp.Continuation(rp.ProximalGradient()), starts=5)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)


@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_what_the_stages_leave_of_a_trial_constant_counts_in_the_bound(step):
    """A stage on a nearly flat part of f halves lambda at every trial, and the last stage has to double it again."""
    f = rp.smooth.Function(
        lambda x: 0.5 * max(0.9 - x[0], 0.0) ** 2 - 2.0**-40 * x[0],
        lambda x: np.array([-max(0.9 - x[0], 0.0) - 2.0**-40]),
        shapes=1,
        constant=1.0,
        lower_bound=-1e-9,
    )
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0), rp.penalties.L1(1000.0)))
    method = step(smoothness=rp.Doubling())
    continued = rp.Continuation(method, shares=(0.0,), most=40)
    result = rp.solve(problem, continued, x0=np.array([0.9]), eps=500.0)
    assert result.status is rp.Status.CERTIFIED
    assert result.bound.withdrawn is None
    # 40 in the stage, and more than 30 to double lambda again
    assert 70 <= result.used <= result.bound.count
