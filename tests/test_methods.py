"""The methods against loops written anew in NumPy, and the draws of the sampled ones."""

import itertools
import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    FULL_STEPS,
    METHODS,
    B,
    Q,
    contraction,
    cosine,
    name_of,
    quadratic_problem,
    soft,
    tensor,
    tensor_problem,
    tensor_value,
    unit_starts,
)
from restpoint import bounds
from restpoint.errors import CapabilityError
from restpoint.kernels.passes import Passes
from restpoint.methods import Key
from restpoint.smooth import Sweep

BLOCK_SHAPES = ((3,), (4,), (2,))


def trail(problem, method, steps, **more):
    """Blocks of the first ``steps`` iterations, as copies."""
    stop = rp.Stop(max_iterations=steps, patience=None)
    views = rp.iterate(problem, method, eps=1e-30, stop=stop, **more)
    return [tuple(np.array(x) for x in view.xs) for view in views]


# --- against plain NumPy ------------------------------------------------------------------------------


def test_algorithm_2_on_a_box_is_gradient_projection():
    A = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [0.5, 2.0, 0.0]])
    b = np.array([1.0, -2.0, 0.5, 3.0])
    problem = rp.Problem(rp.smooth.LeastSquares(A, b), rp.Block(rp.sets.Box(-0.6, 0.8)))
    constant = np.linalg.norm(A, 2) ** 2 * 1.01
    x = np.array([0.8, -0.6, 0.1])
    found = trail(problem, rp.paper.algorithm(2, constant), 200, x0=x)
    for (point,) in found:
        assert np.allclose(point, x, rtol=0, atol=1e-13)
        x = np.clip(x - A.T @ (A @ x - b) / constant, -0.6, 0.8)
    assert len(found) > 50


def test_algorithm_2_with_an_l1_penalty_is_ista():
    rng = np.random.default_rng(0)
    A, b, weight = rng.standard_normal((20, 8)), rng.standard_normal(20), 3.0
    block = rp.Block(rp.sets.Box(-100.0, 100.0), rp.penalties.L1(weight))
    problem = rp.Problem(rp.smooth.LeastSquares(A, b), block)
    constant = float(np.linalg.norm(A, 2) ** 2 * 1.5)
    x = rng.standard_normal(8)
    found = trail(problem, rp.paper.algorithm(2, constant), 100, x0=x)
    for (point,) in found:
        assert np.allclose(point, x, rtol=0, atol=1e-13)
        x = soft(x - A.T @ (A @ x - b) / constant, weight / constant)
    assert len(found) == 101


def test_algorithm_1_without_penalty_is_frank_wolfe_with_the_short_step():
    rng = np.random.default_rng(1)
    M = rng.standard_normal((6, 6))
    M = M + M.T
    problem = rp.Problem(rp.smooth.Quadratic(M), rp.Block(rp.sets.Simplex()))
    constant = float(np.max(np.linalg.eigvalsh(M)) * 1.1)
    x = np.full(6, 1 / 6)
    for (point,) in trail(problem, rp.paper.algorithm(1, constant), 60, x0=x):
        assert np.allclose(point, x, rtol=0, atol=1e-13)
        g = M @ x
        d = np.eye(6)[np.argmin(g)] - x
        square = d @ d
        x = x + min(1.0, -g @ d / (constant * square)) * d if square > 0 else x


def test_with_one_block_all_orders_are_the_same_method():
    x0 = np.array([0.6, 0.0, -0.8])
    reference = trail(quadratic_problem(), rp.ProximalGradient(rp.Jacobi()), 20, x0=x0)
    for order in (
        rp.GaussSeidel(),
        rp.GaussSeidel("cyclic"),
        rp.MaxImprovement(),
        rp.RandomOrder(),
    ):
        other = trail(quadratic_problem(), rp.ProximalGradient(order), 20, x0=x0)
        assert len(other) == len(reference)
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(reference, other, strict=True))


def test_gauss_seidel_with_full_steps_moves_the_worst_block_and_then_all_in_turn():
    A, weight = tensor(3, 4, 2, seed=1), 0.2
    xs = unit_starts(BLOCK_SHAPES, seed=2)
    method = rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep())
    found = trail(tensor_problem(A, weight), method, 10, x0=xs)

    def best(i):
        z = soft(contraction(A, xs, i), weight)
        return z / np.linalg.norm(z) if np.any(z) else z

    for point in found:
        assert all(np.allclose(x, y, rtol=0, atol=1e-13) for x, y in zip(xs, point, strict=True))
        gaps = []
        for i, x in enumerate(xs):
            b = contraction(A, xs, i)
            gaps.append(np.linalg.norm(soft(b, weight)) - b @ x + weight * np.abs(x).sum())
        for i in (int(np.argmax(gaps)), 0, 1, 2):
            xs = (*xs[:i], best(i), *xs[i + 1 :])


def test_random_order_moves_one_block_the_same_one_for_all_starts():
    problem = tensor_problem(tensor(3, 4, 2), 0.1)
    x0 = unit_starts(BLOCK_SHAPES, 5)
    found = trail(problem, rp.ConditionalGradient(rp.RandomOrder(), rp.FullStep()), 40, x0=x0)
    moved = []
    for before, after in itertools.pairwise(found):
        changed = [i for i in range(3) if not np.array_equal(before[i], after[i])]
        assert len(changed) <= 1
        moved += changed
    assert set(moved) == {0, 1, 2}


@pytest.mark.parametrize("method", METHODS + FULL_STEPS, ids=name_of)
def test_every_step_lowers_phi_and_a_certified_point_is_certified_by_the_plain_formula(method):
    A = tensor(3, 4, 2, seed=6)
    problem = tensor_problem(A, 0.2)
    if method.order == rp.GaussSeidel("cyclic") and method.smoothness == rp.FullStep():
        pytest.skip("refused")
    result = rp.solve(problem, method, eps=1e-5, starts=4, stop=rp.Stop(max_iterations=4000))
    assert np.all(np.diff(result.trace.value, axis=0) <= 1e-12)
    assert result.certified.all()
    for k in range(4):
        xs = tuple(x[k] for x in result.xs)
        for i, x in enumerate(xs):
            b = contraction(A, xs, i)
            gap = np.linalg.norm(soft(b, 0.2)) - b @ x + 0.2 * np.abs(x).sum()
            assert gap <= 1e-5
            assert np.linalg.norm(x) <= 1 + 1e-12
        assert tensor_value(A, xs, 0.2) == pytest.approx(result.value[k], abs=1e-13)


@pytest.mark.parametrize(("p", "eps"), [(1.2, 0.2), (1.5, 0.02), (2.0, 1e-4)])
@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_holder_functions_are_solved_with_their_own_exponent(step, p, eps):
    f = rp.smooth.Sum(
        rp.smooth.PowerSum(p, shape=3), rp.smooth.Quadratic(np.zeros((3, 3)), [-1.0, 0.5, 0.0])
    )
    block = rp.Block(rp.sets.Box(-1.0, 1.0), rp.penalties.L1(0.1))
    result = rp.solve(rp.Problem(f, block), step(), eps=eps, starts=3)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    q = p / (p - 1)
    expected = np.array([(0.9 / p) ** (q / p), -((0.4 / p) ** (q / p)), 0.0])
    minimum = float(rp.Problem(f, block).value(expected))
    assert np.all(
        result.value - minimum <= eps
    )  # f is convex: the gap bounds the distance in value
    assert np.all(result.value >= minimum - 1e-12)


def test_p_above_2_is_for_concave_functions_alone_and_has_a_bound_there():
    majorant = rp.Majorant(1.0, 3.0)
    with pytest.raises(CapabilityError, match="only if f is concave"):
        rp.solve(quadratic_problem(), rp.ConditionalGradient(smoothness=majorant))
    concave = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(concave, rp.ConditionalGradient(smoothness=majorant), eps=1e-3)
    assert result.certified.all()
    assert result.used <= result.bound.count
    f = rp.smooth.Function(
        lambda x, y: -float(x @ x + y @ y),
        lambda x, y: (-2 * x, -2 * y),
        shapes=[2, 2],
        concave=True,
    )
    blocks = [rp.Block(rp.sets.L2Ball())] * 2
    for order in (rp.Jacobi(), rp.MaxImprovement()):
        result = rp.solve(rp.Problem(f, blocks), rp.ConditionalGradient(order, majorant))
        assert result.certified.all()
    seidel = rp.solve(rp.Problem(f, blocks), rp.ConditionalGradient(rp.GaussSeidel(), majorant))
    assert seidel.certified.all()
    assert seidel.bound.count is None
    assert "FullStep() needs no constants" in str(seidel.bound)


# --- which theorem, for which measure -------------------------------------------------------------------

JOINT, BLOCKWISE = 9.0, (1.0, 2.0, 3.0)


def theorem_of(method, measure, eps, delta):
    """The count of the theorem that covers a method on three unit balls, from the functions of ``bounds`` alone."""
    told = {"eps": eps, "delta": delta, "measure": measure}
    if isinstance(method.smoothness, rp.FullStep):
        rule = bounds.addition_13 if isinstance(method.order, rp.GaussSeidel) else bounds.addition_6
        return rule(**told, blocks=3).count
    jacobi = isinstance(method.order, rp.Jacobi)
    sizes = {"constants": (JOINT,) * 3 if jacobi else BLOCKWISE, "diameters": (2.0,) * 3}
    if isinstance(method.order, rp.GaussSeidel):
        return bounds.addition_13(**told, **sizes, blocks=3).count
    conditional = isinstance(method, rp.ConditionalGradient)
    rule = bounds.theorem_5_2 if conditional else bounds.theorem_5_3
    return rule(**told, **sizes, order="jacobi" if jacobi else "max-improvement").count


@pytest.mark.parametrize(
    "method",
    [
        *(
            rp.ConditionalGradient(order, rp.FullStep())
            for order in (rp.GaussSeidel(), rp.MaxImprovement())
        ),
        *(
            step(order, rp.Majorant(JOINT if order == rp.Jacobi() else BLOCKWISE))
            for step in (rp.ConditionalGradient, rp.ProximalGradient)
            for order in (rp.Jacobi(), rp.GaussSeidel(), rp.MaxImprovement())
        ),
    ],
    ids=name_of,
)
def test_the_bound_of_a_run_is_that_of_its_theorem_for_its_measure(method):
    """A sum of three gaps needs more than their maximum, and not the same in every order (theory E25, E28)."""
    problem = tensor_problem(tensor(3, 4, 3))
    counts = {}
    for asked in ("max", "sum"):
        bound = rp.explain(problem, method, eps=1e-3, measure=asked).bound
        eps, delta = bound.constants["eps"], bound.constants["delta"]
        assert eps == pytest.approx(1e-3, rel=1e-8)
        counts[asked] = float(bound.count)
        assert counts[asked] == theorem_of(method, asked, eps, delta)
    assert counts["sum"] > 2.9 * counts["max"]


# --- what a declaration is worth ----------------------------------------------------------------------


@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_a_constant_that_the_trajectory_disproves_costs_the_bound_and_is_named(step):
    f = rp.smooth.Function(
        lambda x: float(x @ x), lambda x: 2 * x, shapes=3, constant=0.3, lower_bound=0.0
    )
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    x0 = np.stack([np.zeros(3), np.array([0.1, 0.1, 0.1])])
    result = rp.solve(problem, step(), x0=x0)
    assert result.bound.count is None
    assert "of start 1 lowered Phi by" in result.bound.withdrawn
    assert "larger constant" in str(result)
    assert result.status[0] is rp.Status.CERTIFIED


@pytest.mark.parametrize(("bound", "when"), [(5.0, "at a starting point"), (0.02, "iteration 1")])
def test_a_lower_bound_that_phi_disproves_costs_the_bound(bound, when):
    f = rp.smooth.Function(
        lambda x: float(x @ x), lambda x: 2 * x, shapes=3, constant=2.0, lower_bound=bound
    )
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, rp.ProximalGradient(), x0=np.full(3, 0.1))
    assert result.certified.all()
    assert result.bound.count is None
    assert "lower bound" in result.bound.withdrawn
    if bound == 0.02:
        assert when in result.bound.withdrawn


def test_what_is_unknown_leaves_the_bound_unknown_not_guessed():
    problem = rp.Problem(cosine(2), rp.Block(rp.sets.L2Ball(2.0)))
    result = rp.solve(problem, starts=3)
    assert result.certified.all()
    assert result.bound.count is None
    assert result.bound.missing == ("a lower bound on Phi",)


def test_without_guarantee_there_is_no_bound_and_the_same_iterates():
    problem = quadratic_problem()
    plain = rp.solve(problem, rp.ProximalGradient(), starts=3)
    bare = rp.solve(problem, rp.WithoutGuarantee(rp.ProximalGradient()), starts=3)
    assert bare.bound.count is None
    assert "because the user asked for it" in bare.bound.missing[0]
    assert np.array_equal(plain.x, bare.x)
    assert bare.certified.all()


# --- sampled gradients --------------------------------------------------------------------------------


def least_squares_problem(rows=12, columns=3, seed=3):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    return rp.Problem(rp.smooth.LeastSquares(A, b), rp.Block(rp.sets.L2Ball())), A, b


def nonsmooth_problem():
    """-||x||_1 - x'x/2, concave, with supergradients."""
    f = rp.smooth.Function(
        lambda x: -float(np.abs(x).sum() + 0.5 * x @ x),
        lambda x: -np.where(x >= 0, 1.0, -1.0) - x,
        shapes=3,
        concave=True,
        differentiable=False,
    )
    return rp.Problem(f, rp.Block(rp.sets.L2Ball()))


@pytest.mark.parametrize("which", ["mini-batch", "smoothed"])
def test_the_draws_of_a_start_do_not_depend_on_who_runs_beside_it(which):
    if which == "mini-batch":
        problem, gradient = least_squares_problem()[0], rp.MiniBatch(4)
    else:
        problem, gradient = nonsmooth_problem(), rp.Smoothed(0.5, 4)
    (x,) = unit_starts(((3,),), 6)
    starts = np.array([0, 1, 2, 3, 4, 7])
    _, (together,), samples = gradient.evaluate(problem, (x,), Key(5, starts, 9))
    assert samples == 4.0
    for k, start in enumerate(starts):
        _, (alone,), _ = gradient.evaluate(problem, (x[k : k + 1],), Key(5, np.array([start]), 9))
        assert np.allclose(together[k], alone[0], rtol=1e-14, atol=1e-15)
    _, (later,), _ = gradient.evaluate(problem, (x,), Key(5, starts, 10))
    _, (other,), _ = gradient.evaluate(problem, (x,), Key(6, starts, 9))
    assert not np.allclose(together, later)
    assert not np.allclose(together, other)


def test_a_mini_batch_is_drawn_uniformly_and_its_mean_is_the_gradient():
    problem, A, b = least_squares_problem(rows=5)
    x = np.array([0.3, -0.2, 0.5])
    count = 4000
    xs = (np.broadcast_to(x, (count, 3)),)
    _, (g,), _ = rp.MiniBatch(1).evaluate(problem, xs, Key(0, np.arange(count)))
    terms = 5 * A * (A @ x - b)[:, None]
    nearest = np.argmin(np.abs(g[:, None, :] - terms).sum(-1), axis=1)
    assert np.allclose(g, terms[nearest], rtol=1e-12, atol=1e-13)
    assert np.all(np.abs(np.bincount(nearest, minlength=5) - count / 5) < 4 * math.sqrt(count / 5))


def test_a_smoothed_gradient_averages_over_the_ball():
    problem = nonsmooth_problem()
    x = np.array([0.1, -0.2, 2.0])
    count, m, radius = 400, 25, 0.5
    xs = (np.broadcast_to(x, (count, 3)),)
    _, (g,), _ = rp.Smoothed(radius, m).evaluate(problem, xs, Key(0, np.arange(count)))
    # One coordinate of the uniform distribution on the unit ball of R^3: P(u > t) = (2 - 3t + t^3)/4.
    t = np.abs(x) / radius
    sign = np.where(t >= 1, 1.0, 1 - 2 * (2 - 3 * t + t**3) / 4) * np.sign(x)
    assert np.allclose(g.mean(axis=0), -sign - x, rtol=0, atol=5 / math.sqrt(count * m))


def test_smoothing_a_differentiable_function_is_its_gradient_and_costs_no_samples():
    result = rp.solve(
        quadratic_problem(),
        rp.ConditionalGradient(gradient=rp.Smoothed(0.1, 50)),
        starts=2,
        stop=rp.Stop(max_iterations=5),
    )
    assert np.all(result.work["samples"] == 0)


@pytest.mark.parametrize("k", [3, 4])
def test_a_sampled_run_returns_a_uniformly_random_iteration(k):
    if k == 3:
        problem, method = (
            least_squares_problem(rows=6, columns=2)[0],
            rp.paper.algorithm(3, 20.0, m=2),
        )
        problem = rp.Problem(problem.smooth, problem.blocks)
    else:
        problem, method = nonsmooth_problem(), rp.paper.algorithm(4, 1.0, m=2, radius=0.3)
    count = 1500 if k == 3 else 200
    result = rp.solve(
        problem, method, eps=1e-12, starts=count, stop=rp.Stop(max_iterations=5), rng=4
    )
    tally = np.bincount(result.iterations, minlength=5)
    assert len(tally) == 5
    assert np.all(np.abs(tally - count / 5) < 4 * math.sqrt(count / 5))
    assert np.array_equal(result.work["samples"], 2.0 * (result.iterations + 1))
    assert np.all(np.isfinite(result.value))
    assert np.all(np.isnan(result.trace.value))
    assert np.array_equal(result.x, result.last[0])


def test_the_output_iteration_does_not_look_at_the_gaps():
    stop = rp.Stop(max_iterations=50)
    runs = [
        rp.solve(
            least_squares_problem(seed=s)[0], rp.paper.algorithm(3, 30.0, m=3), starts=20, stop=stop
        )
        for s in (1, 2)
    ]
    assert np.array_equal(runs[0].iterations, runs[1].iterations)


def test_a_sampled_run_of_one_start_is_that_start_of_the_batch():
    problem, *_ = least_squares_problem()
    method = rp.paper.algorithm(3, 30.0, m=3)
    many = rp.solve(problem, method, starts=12, rng=3, stop=rp.Stop(max_iterations=40))
    few = rp.solve(problem, method, starts=5, rng=3, stop=rp.Stop(max_iterations=40))
    assert np.array_equal(many.iterations[:5], few.iterations)
    assert np.allclose(many.x[:5], few.x, rtol=0, atol=1e-13)


def test_a_mini_batch_of_a_long_run_reaches_the_neighbourhood_of_the_minimum():
    problem, A, b = least_squares_problem(rows=30)
    method = rp.paper.algorithm(3, 400.0, m=30)
    result = rp.solve(problem, method, eps=5.0, starts=8, stop=rp.Stop(max_iterations=300), rng=1)
    assert result.certified.any()
    gap = result.certificate.max
    exact = [(A.T @ (A @ x - b)) @ x + np.linalg.norm(A.T @ (A @ x - b)) for x in result.x]
    assert np.allclose(gap, exact, rtol=1e-10, atol=1e-12)


def test_sampled_gradients_do_not_fit_rules_that_need_phi():
    problem, *_ = least_squares_problem()
    method = rp.paper.algorithm(3, 30.0, m=3)
    for more in ({"eps": rp.Relative(1e-3)}, {"stop": rp.Stop(value_change=1e-3)}):
        with pytest.raises(
            CapabilityError, match="sampled gradients come without the value of Phi"
        ):
            rp.solve(problem, method, **more)


def test_gauss_seidel_refuses_sampled_gradients_and_says_what_fits():
    f = rp.smooth.Function(
        lambda x, y: float(x @ x + y @ y),
        lambda x, y: (2 * x, 2 * y),
        shapes=[2, 2],
        constant=2.0,
        terms=2,
        terms_gradient=lambda x, y, index: (len(index) * x, len(index) * y),
    )
    problem = rp.Problem(f, [rp.Block(rp.sets.L2Ball())] * 2)
    for method in (
        rp.ProximalGradient(gradient=rp.MiniBatch(2)),
        rp.WithoutGuarantee(rp.ProximalGradient(gradient=rp.MiniBatch(2))),
    ):
        with pytest.raises(CapabilityError, match=r"use order=Jacobi\(\)"):
            rp.solve(problem, method)
    for order in (rp.Jacobi(), rp.MaxImprovement(), rp.RandomOrder()):
        method = rp.ProximalGradient(order, gradient=rp.MiniBatch(2))
        result = rp.solve(problem, method, stop=rp.Stop(max_iterations=30))
        assert np.isfinite(result.value)


# --- the choice ---------------------------------------------------------------------------------------


def test_the_default_method_follows_from_what_f_declares():
    ball = rp.Block(rp.sets.L2Ball())
    cases = [
        (rp.smooth.Quadratic(-np.eye(2)), rp.ConditionalGradient(smoothness=rp.FullStep())),
        (rp.smooth.Quadratic(np.diag([1.0, -1.0])), rp.ProximalGradient()),
        (rp.smooth.PowerSum(1.5, shape=2), rp.ProximalGradient()),
    ]
    for f, expected in cases:
        assert rp.explain(rp.Problem(f, ball)).method == expected
    tensor_method = rp.explain(tensor_problem(tensor(2, 3))).method
    assert tensor_method == rp.ConditionalGradient(
        rp.GaussSeidel(repeats=2, momentum=0.75), rp.FullStep()
    )
    no_prox = rp.Block.from_oracle(
        lambda g: -g / max(float(np.linalg.norm(g)), 1e-300), diameter=2.0
    )
    f = rp.smooth.Quadratic(np.eye(2))
    assert rp.explain(rp.Problem(f, no_prox)).method == rp.ConditionalGradient()
    unknown = rp.smooth.Function(lambda x: 0.0, lambda x: 0 * x, shapes=2)
    by_weight = rp.ProximalGradient(smoothness=rp.Universal())
    assert rp.explain(rp.Problem(unknown, ball)).method == by_weight
    by_length = rp.ConditionalGradient(smoothness=rp.Armijo())
    assert rp.explain(rp.Problem(unknown, no_prox)).method == by_length


def test_explain_names_the_method_the_reason_the_facts_and_the_bound_of_the_run():
    problem = quadratic_problem()
    explained = rp.explain(problem, eps=1e-3, rng=2)
    result = rp.solve(problem, eps=1e-3, rng=2)
    assert explained.bound.count == result.bound.count
    assert explained.method == result.method
    text = str(explained)
    assert "Algorithm 2 (Theorem 3.3)" in text
    assert "exact oracle" in text
    assert f"at most {explained.bound.count:.0f}" in text
    relative = rp.explain(problem, eps=rp.Relative(1e-3), measure="sum")
    assert relative.eps > 0


def test_majorant_takes_its_constant_from_a_gradient_constant():
    """||grad f(x) - grad f(y)||_q <= M ||x - y||_p^(p-1) gives lambda = 2 M / p (theory E4)."""
    assert rp.Majorant.from_gradient_constant(3.0) == rp.Majorant(3.0)
    assert rp.Majorant.from_gradient_constant(3.0, 1.5) == rp.Majorant(4.0, 1.5)
    assert np.array_equal(Q, Q.T)
    assert B.shape == (3,)


def test_a_power_that_f_does_not_declare_a_constant_for_is_refused():
    with pytest.raises(CapabilityError, match=r"Majorant\(p=1.5\) names no constant"):
        rp.solve(quadratic_problem(), rp.ProximalGradient(smoothness=rp.Majorant(p=1.5)))


class Forgetful(rp.smooth.Multilinear):
    """A form whose sweeps keep nothing, as those of most functions do."""

    def sweep(self, xs, carried=None):
        return Sweep(self, xs)


@pytest.mark.parametrize(
    ("order", "gradients", "conditional", "proximal"),
    [
        (rp.Jacobi(), 1, 3, 6),
        (rp.MaxImprovement(), 1, 3, 6),
        (rp.RandomOrder(), 1, 3, 4),
        (rp.GaussSeidel("cyclic"), 1 + 2 / 3, 5, 8),
        (rp.GaussSeidel(), 2, 6, 12),
    ],
)
def test_an_iteration_costs_what_it_says(order, gradients, conditional, proximal):
    """Of three blocks; beside that the first look costs one gradient and three oracle calls."""
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.2))
    problem = rp.Problem(Forgetful(tensor(3, 4, 2)), [block] * 3)
    for step, calls in ((rp.ConditionalGradient, conditional), (rp.ProximalGradient, proximal)):
        stop = rp.Stop(max_iterations=6)
        work = rp.solve(problem, step(order, rp.Majorant(20.0)), eps=1e-9, stop=stop).work
        assert work["gradients"] == pytest.approx(1 + 6 * gradients, rel=1e-12)
        assert work["oracle_calls"] == 3 + 6 * calls
        assert work["samples"] == 0


@pytest.mark.parametrize("starts", [None, 6])
@pytest.mark.parametrize("kernel", ["one-pass", "products", "support"])
def test_a_sweep_over_a_tensor_costs_one_gradient(monkeypatch, kernel, starts):
    """Two products with A: what the look needs is kept, and what it saw is there when the next sweep begins."""
    monkeypatch.setenv("RESTPOINT_KERNEL", kernel)
    reads = []
    for name in ("onto_rows", "onto_columns"):
        original = getattr(Passes, name)
        monkeypatch.setattr(
            Passes, name, lambda *args, f=original: (reads.append(len(args[1])), f(*args))[1]
        )
    problem = tensor_problem(tensor(6, 5, 6, 5), 0.05)
    method = rp.WithoutGuarantee(rp.ConditionalGradient(rp.GaussSeidel("cyclic"), rp.FullStep()))
    stop = rp.Stop(max_iterations=10)
    result = rp.solve(problem, method, starts=starts, stop=stop, eps=1e-300)
    assert np.all(result.iterations == 10)
    if kernel == "one-pass":
        assert len(reads) == 2 * 10 + 1  # the first sweep finds nothing kept
    if kernel != "support":
        np.testing.assert_allclose(result.work["gradients"], 1 + 10 + 0.5, rtol=1e-12)
    else:
        assert np.all(result.work["gradients"] <= 1 + 10 + 0.5)
    certificate = rp.certify(problem, result.last)
    np.testing.assert_allclose(result.trace.gap[-1], certificate.max, rtol=0, atol=1e-12)
