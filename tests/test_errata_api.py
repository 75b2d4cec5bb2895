"""The corrected statements, seen through the public interface: each erratum's counterexample is a run."""

import itertools
import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    ball_gap,
    contraction,
    quadratic_problem,
    soft,
    tensor,
    tensor_gaps,
    tensor_problem,
    tensor_value,
    unit_starts,
)
from restpoint.errors import CapabilityError


def views(problem, method, steps, **more):
    """The points of the first iterations."""
    stop = rp.Stop(max_iterations=steps, patience=None)
    found = [
        tuple(np.array(x) for x in view.xs)
        for view in rp.iterate(problem, method, eps=1e-30, stop=stop, **more)
    ]
    assert len(found) == steps + 1
    return found


# --- E8, E9, E10: step and bounds ---------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.25, 1.5, 2.0])
def test_e8_the_step_is_the_minimiser_of_the_upper_model_and_the_first_point_is_x1(p):
    weights = np.array([1.0, 0.5, 2.0])
    f = rp.smooth.PowerSum(p, weights)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 2.0), rp.penalties.L1(0.1)))
    constant = 9.0
    x0 = np.array([1.5, -0.5, 0.75])
    points = views(problem, rp.ConditionalGradient(smoothness=rp.Majorant(constant, p)), 12, x0=x0)
    assert np.array_equal(points[0][0], x0)
    for (x,), (after,) in itertools.pairwise(points):
        g = p * weights * np.sign(x) * np.abs(x) ** (p - 1)
        y = np.where(g > 0.1, -1.0, np.where(g < -0.1, 2.0, 0.0))
        gap = g @ (x - y) + 0.1 * (np.abs(x).sum() - np.abs(y).sum())
        weight = constant * np.sum(np.abs(y - x) ** p)
        s = min(1.0, (2 * gap / (p * weight)) ** (1 / (p - 1)))
        assert np.allclose(after, x + s * (y - x), rtol=0, atol=1e-14)


def test_e8_a_point_whose_gap_is_zero_is_returned_unmoved():
    problem = rp.Problem(
        rp.smooth.Quadratic(np.eye(2), [1.0, 2.0]), rp.Block(rp.sets.Box(0.0, 1.0))
    )
    result = rp.solve(problem, rp.ConditionalGradient(), x0=np.zeros(2))
    assert result.status is rp.Status.CERTIFIED
    assert result.iterations == 0
    assert np.array_equal(result.x, np.zeros(2))


@pytest.mark.parametrize("eps", [1e-3, 0.02, 3.0, 50.0])
@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_e9_the_bound_is_the_sharp_count_for_every_eps_and_holds(step, eps):
    problem = quadratic_problem()
    x0 = np.array([0.6, 0.0, -0.8])
    result = rp.solve(problem, step(), eps=eps, x0=x0)
    facts = problem.facts()
    delta = float(problem.value(x0)) - facts.lower_bound
    sharp, nearly = (
        max(1, math.ceil(delta / rp.omega(e, facts.joint.constants[0] * 2.0**2)))
        for e in (eps, eps * (1 - 4e-9))
    )
    assert sharp <= result.bound.count <= nearly
    assert result.status is rp.Status.CERTIFIED
    assert result.used <= result.bound.count


def test_e9_a_start_at_the_lower_bound_is_allowed_one_point_not_none():
    problem = rp.Problem(rp.smooth.Quadratic(np.zeros((2, 2))), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, x0=np.zeros(2))
    assert result.bound.count == 1.0
    assert result.used == 1
    assert result.status is rp.Status.CERTIFIED


@pytest.mark.parametrize("eps", [1e-6, 0.01, 0.3])
def test_e10_full_steps_on_a_concave_function_obey_the_linear_bound(eps):
    Q = -np.array([[2.0, 0.5], [0.5, 1.0]])
    problem = rp.Problem(rp.smooth.Quadratic(Q, [0.1, 0.2]), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, eps=eps, x0=np.array([0.1, 0.9]))
    delta = float(problem.value(np.array([0.1, 0.9]))) - problem.facts().lower_bound
    assert isinstance(result.method.smoothness, rp.FullStep)
    assert math.ceil(delta / eps) <= result.bound.count <= math.ceil(delta / eps / (1 - 4e-9))
    assert result.certified.all()
    assert result.used <= result.bound.count


# --- E24 to E29: blocks -------------------------------------------------------------------------------


def test_e24_jacobi_moves_every_block_from_the_same_point_and_gauss_seidel_does_not():
    A = tensor(2, 3, 2)
    problem, x0 = tensor_problem(A), unit_starts(((2,), (3,), (2,)))
    jacobi = views(problem, rp.paper.algorithm(6, 9.0), 1, x0=x0)[1]
    cyclic = rp.ProximalGradient(rp.GaussSeidel("cyclic"), rp.Majorant(9.0))
    seidel = views(problem, cyclic, 1, x0=x0)[1]
    current = list(x0)
    for i in range(3):
        z = soft(contraction(A, x0, i) + 9.0 * x0[i], 0.3)
        assert np.allclose(jacobi[i], z / max(9.0, np.linalg.norm(z)), rtol=0, atol=1e-15)
        z = soft(contraction(A, current, i) + 9.0 * current[i], 0.3)
        current[i] = z / max(9.0, np.linalg.norm(z))
        assert np.allclose(seidel[i], current[i], rtol=0, atol=1e-15)
    assert not np.allclose(jacobi[1], seidel[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [5, 6])
def test_e24_mbi_keeps_every_block_but_the_best_bit_by_bit(k):
    A = tensor(3, 4, 2, seed=3)
    problem, x0 = tensor_problem(A), unit_starts(((3,), (4,), (2,)), seed=4)
    points = views(problem, rp.paper.algorithm(k, 9.0, order="mbi"), 10, x0=x0)
    for before, after in itertools.pairwise(points):
        moved = [i for i in range(3) if not np.array_equal(before[i], after[i])]
        if k == 5:
            scores = tensor_gaps(A, before, 0.3)
        else:
            scores = np.empty(3)
            for i, x in enumerate(before):
                b = contraction(A, before, i)
                z = soft(b + 9.0 * x, 0.3)
                y = z / max(9.0, np.linalg.norm(z))
                scores[i] = b @ (y - x) - 4.5 * np.sum((y - x) ** 2)
                scores[i] += 0.3 * (np.abs(x).sum() - np.abs(y).sum())
        assert moved == [int(np.argmax(scores))]


def test_e25_the_largest_block_gap_may_be_certified_where_their_sum_is_not():
    f = rp.smooth.Function(
        lambda x, y: float(x[0] + y[0]),
        lambda x, y: (np.ones(1), np.ones(1)),
        shapes=[1, 1],
        concave=True,
    )
    problem = rp.Problem(f, [rp.Block(rp.sets.Box(-1.0, 1.0))] * 2)
    x0 = (np.array([-0.5]), np.array([-0.5]))
    by_max = rp.solve(problem, eps=0.75, x0=x0)
    assert by_max.status is rp.Status.CERTIFIED
    assert by_max.iterations == 0
    assert by_max.certificate.max <= 0.75 < by_max.certificate.sum
    assert np.allclose(by_max.certificate.per_block, [0.5, 0.5], rtol=1e-12, atol=0)
    assert not by_max.certificate.holds(0.75, measure="sum")
    by_sum = rp.solve(problem, eps=0.75, x0=x0, stop=rp.Stop(measure="sum"))
    assert by_sum.status is rp.Status.CERTIFIED
    assert by_sum.iterations > 0
    assert by_sum.gap == by_sum.certificate.sum <= 0.75


MINUS_XY = rp.Problem(rp.smooth.Multilinear([[1.0]]), [rp.Block(rp.sets.Box(-1.0, 1.0))] * 2)
CORNER = (np.array([1.0]), np.array([-1.0]))


def test_e26_exact_jacobi_is_refused_with_the_reason():
    with pytest.raises(CapabilityError, match=r"Jacobi moves them together \(theory E26\)"):
        rp.solve(MINUS_XY, rp.ConditionalGradient(rp.Jacobi(), rp.FullStep()))


@pytest.mark.parametrize(
    "method",
    [
        rp.WithoutGuarantee(rp.ConditionalGradient(rp.Jacobi(), rp.FullStep())),
        rp.WithoutGuarantee(rp.ProximalGradient(rp.Jacobi(), rp.Majorant(0.5))),
        rp.ProximalGradient(rp.Jacobi(), rp.Majorant(0.5)),
        rp.ProximalGradient(rp.Jacobi(), rp.Majorant(0.2)),
    ],
    ids=["full", "0.5 without guarantee", "0.5", "0.2"],
)
def test_e26_jacobi_alternates_between_two_points_and_never_certifies(method):
    trail = []
    result = rp.solve(
        MINUS_XY,
        method,
        x0=CORNER,
        stop=rp.Stop(max_iterations=60, patience=None),
        observers=[lambda view: trail.append([float(x[0]) for x in view.xs])],
    )
    assert trail[::2] == [[1.0, -1.0]] * 31
    assert trail[1::2] == [[-1.0, 1.0]] * 30
    assert result.status is rp.Status.ITERATION_LIMIT
    assert np.all(result.trace.value == 1.0)
    assert result.certificate.max >= 2.0
    assert result.bound.count is None


def test_e26_the_cycle_is_noticed_as_no_progress():
    method = rp.WithoutGuarantee(rp.ConditionalGradient(rp.Jacobi(), rp.FullStep()))
    result = rp.solve(MINUS_XY, method, x0=CORNER)
    assert result.status is rp.Status.STALLED
    assert result.iterations == 100


@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_e27_jacobi_refuses_blockwise_constants_and_takes_joint_ones(step):
    with pytest.raises(CapabilityError, match="needs a joint constant"):
        rp.solve(MINUS_XY, step(rp.Jacobi(), rp.Majorant((0.5, 0.5))))
    for majorant in (rp.Majorant((1.0, 1.0), joint=True), rp.Majorant(1.0), rp.Majorant()):
        result = rp.solve(MINUS_XY, step(rp.Jacobi(), majorant), x0=CORNER)
        assert result.certified.all()
        assert result.used <= result.bound.count
    for order in (rp.GaussSeidel(), rp.MaxImprovement()):
        assert rp.solve(MINUS_XY, step(order, rp.Majorant((0.5, 0.5)))).certified.all()


def test_e29_the_largest_guaranteed_decrease_is_a_better_rule_than_the_largest_gap():
    f = rp.smooth.Function(
        lambda x, y: float(x[0] + 0.9 * y[0]),
        lambda x, y: (np.array([1.0]), np.array([0.9])),
        shapes=[1, 1],
        constant=(1000.0, 1.0),
    )
    problem = rp.Problem(f, [rp.Block(rp.sets.Box(0.0, 1.0))] * 2)
    x0 = (np.ones(1), np.ones(1))
    by_gap = views(problem, rp.ConditionalGradient(rp.MaxImprovement("gap")), 1, x0=x0)[1]
    assert [float(x[0]) for x in by_gap] == [pytest.approx(0.999, abs=1e-15), 1.0]
    by_decrease = views(problem, rp.ConditionalGradient(rp.MaxImprovement()), 1, x0=x0)[1]
    assert [float(x[0]) for x in by_decrease] == [1.0, pytest.approx(0.1, abs=1e-15)]


# --- E30: Gauss-Seidel without curvature --------------------------------------------------------------


def triangle(adversarial):
    """-(xy + yz + zx) on [-1, 1]^3; ties are broken away from the current point if ``adversarial``."""
    current = {}

    def gradient(x, y, z):
        current.update(enumerate((float(x[0]), float(y[0]), float(z[0]))))
        return -(y + z), -(x + z), -(x + y)

    def oracle(i):
        def linear(g):
            if g[0] == 0.0 and adversarial:
                return np.array([-current.get(i, 1.0)])
            return -np.sign(g) if g[0] else np.array([1.0])

        return linear

    f = rp.smooth.Function(
        lambda x, y, z: -float(x[0] * y[0] + y[0] * z[0] + z[0] * x[0]),
        gradient,
        shapes=[1, 1, 1],
        constant=(0.0, 0.0, 0.0),
    )
    blocks = [
        rp.Block.from_oracle(
            oracle(i), diameter=2.0, violation=lambda x: max(0.0, abs(float(x[0])) - 1.0)
        )
        for i in range(3)
    ]
    return rp.Problem(f, blocks)


TRIANGLE_START = (np.array([-1.0]), np.array([1.0]), np.array([-1.0]))


def test_e30_cyclic_gauss_seidel_without_curvature_is_refused_from_three_blocks_on():
    cyclic = rp.ConditionalGradient(rp.GaussSeidel("cyclic"))
    with pytest.raises(CapabilityError, match=r"it can cycle forever \(theory E30\)"):
        rp.solve(triangle(adversarial=False), cyclic)
    for constant in (1.0, (1.0, 2.0, 3.0)):
        method = rp.ConditionalGradient(rp.GaussSeidel("cyclic"), rp.Majorant(constant))
        assert rp.solve(triangle(adversarial=False), method).bound.count is None
    two = rp.ConditionalGradient(rp.GaussSeidel("cyclic"), rp.FullStep())
    assert rp.solve(MINUS_XY, two).certified.all()


def test_e30_with_adversarial_ties_it_cycles_forever_and_is_never_certified():
    method = rp.WithoutGuarantee(rp.ConditionalGradient(rp.GaussSeidel("cyclic"), rp.Majorant()))
    result = rp.solve(
        triangle(adversarial=True),
        method,
        x0=TRIANGLE_START,
        stop=rp.Stop(max_iterations=50, patience=None),
    )
    assert result.status is rp.Status.ITERATION_LIMIT
    assert np.all(result.trace.value == 1.0)
    assert np.all(result.trace.gap == 4.0)
    assert result.certificate.max >= 4.0
    assert result.certificate.kind == "declared oracle"


@pytest.mark.parametrize(
    "order", [rp.MaxImprovement("gap"), rp.MaxImprovement(), rp.GaussSeidel("largest-gap")]
)
def test_e30_the_largest_gap_first_solves_it_in_one_iteration(order):
    method = rp.ConditionalGradient(order, rp.Majorant())
    result = rp.solve(triangle(adversarial=True), method, x0=TRIANGLE_START)
    assert result.status is rp.Status.CERTIFIED
    assert result.iterations == 1
    assert result.value == -3.0


# --- E34, E35: sparse tensors -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 4), (2, 3, 2, 3)])
def test_e34_algorithm_5_follows_its_closed_form(shape):
    A, weight, constant = tensor(*shape, seed=5), 0.3, 12.0
    x0 = unit_starts(tuple((n,) for n in shape), seed=6)
    points = views(tensor_problem(A, weight), rp.paper.algorithm(5, constant), 30, x0=x0)
    xs = x0
    for point in points[1:]:
        new = []
        for i, x in enumerate(xs):
            b = contraction(A, xs, i)
            z = soft(b, weight)
            norm = np.linalg.norm(z)
            y = z / norm if norm > 0 else z
            gap = max(norm - b @ x + weight * np.abs(x).sum(), 0.0)
            size = constant * np.sum((y - x) ** 2)
            s = min(1.0, gap / size) if size > 0 else 1.0
            new.append(x + s * (y - x))
        xs = tuple(new)
        for x, y in zip(xs, point, strict=True):
            assert np.allclose(x, y, rtol=0, atol=1e-12)  # 30 steps amplify rounding


@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 4), (2, 3, 2, 3)])
def test_e34_algorithm_6_follows_its_closed_form(shape):
    A, weight, constant = tensor(*shape, seed=13), 0.3, 12.0
    x0 = unit_starts(tuple((n,) for n in shape), seed=8)
    points = views(tensor_problem(A, weight), rp.paper.algorithm(6, constant), 30, x0=x0)
    xs = x0
    for point in points[1:]:
        shrunk = [soft(contraction(A, xs, i) + constant * x, weight) for i, x in enumerate(xs)]
        xs = tuple(z / max(constant, np.linalg.norm(z)) for z in shrunk)
        for x, y in zip(xs, point, strict=True):
            assert np.allclose(x, y, rtol=0, atol=1e-13)


def test_e34_reusing_the_gradient_of_algorithm_5_in_algorithm_6_is_wrong():
    """z must be soft(b + lambda x, rho); with soft(b, rho) most answers are far from optimal."""
    rng = np.random.default_rng(9)
    oracle = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.5)).oracle
    wrong = 0
    for _ in range(200):
        b, x, weight = rng.standard_normal(6), rng.standard_normal(6), rng.uniform(0.5, 4.0)
        x /= np.linalg.norm(x)

        def model(y, b=b, x=x, weight=weight):
            return -b @ (y - x) + weight / 2 * np.sum((y - x) ** 2) + 0.5 * np.abs(y).sum()

        ours = oracle.prox(-b, x, weight, 2.0).point
        z = soft(b, 0.5)
        reused = z / max(weight, np.linalg.norm(z))
        assert model(ours) <= model(reused) + 1e-14
        wrong += model(reused) > model(ours) + 1e-6
    assert wrong > 140


def test_e35_zero_is_certified_and_a_single_zero_block_is_not():
    A = tensor(3, 4, 2, seed=10)
    problem = tensor_problem(A, 0.3)
    zero = tuple(np.zeros(n) for n in A.shape)
    result = rp.solve(problem, x0=zero)
    assert result.status is rp.Status.CERTIFIED
    assert result.iterations == 0
    assert result.value == 0.0
    assert result.certificate.sum <= 1e-290
    for j in range(3):
        xs = list(unit_starts(((3,), (4,), (2,))))
        xs[j] = np.zeros(A.shape[j])
        certificate = rp.certify(problem, tuple(xs))
        for i in range(3):
            if i != j:  # b_i = 0, so the gap of block i is rho ||x_i||_1
                expected = 0.3 * np.abs(xs[i]).sum()
                assert certificate.per_block[i] == pytest.approx(expected, rel=1e-12)


# --- A1, A6, A12, A13 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("set_", [rp.sets.Box(-1.0, 0.5), rp.sets.L2Ball(0.8)], ids=["box", "ball"])
def test_a1_a_prox_step_certifies_the_point_that_it_starts_from(p, set_):
    """DL(z) <= DU - (p-1)(w/2)||d||^p + (w p/2) R <= omega^-1(DU), for any weight w."""
    rng = np.random.default_rng(11)
    penalty = rp.penalties.L1(0.2)
    block = rp.Block(set_, penalty)
    for _ in range(60):
        n, weight = 5, 10.0 ** rng.uniform(-2, 2)
        g, z = rng.standard_normal(n), set_.project(rng.standard_normal(n))
        problem = rp.Problem(rp.smooth.Quadratic(np.zeros((n, n)), g), block)
        answer = block.oracle.prox(g, z, weight, p)
        d = answer.point - z
        upper = float(penalty.value(z) - answer.value)
        slope = np.sign(d) * np.abs(d) ** (p - 1)
        reach = float(set_.support(slope) - slope @ z)
        free = upper - (p - 1) * weight / 2 * np.sum(np.abs(d) ** p) + weight * p / 2 * reach
        true = float(rp.certify(problem, z).max - rp.certify(problem, z).floor[0])
        by_diameter = rp.omega_inverse(upper, weight * float(set_.diameter(p, (n,))) ** p, p)
        assert true <= free + 1e-10 * (1 + weight)
        assert free <= by_diameter + 1e-10 * (1 + weight)


@pytest.mark.parametrize("eps", [0.5, 1e-3, 1e-8])
def test_a6_mbi_with_full_steps_needs_no_constant_and_obeys_the_linear_bound(eps):
    for seed in range(8):
        A = tensor(3, 4, 3, seed=seed)
        problem = tensor_problem(A, 0.2)
        method = rp.ConditionalGradient(rp.MaxImprovement("gap"), rp.FullStep())
        result = rp.solve(problem, method, eps=eps, starts=6)
        assert result.certified.all()
        assert np.all(result.used <= result.bound.count)
        x1 = rp.solve(problem, method, eps=eps, starts=6, stop=rp.Stop(max_iterations=0)).last
        delta = problem.value(x1) - problem.facts().lower_bound
        assert np.all(result.bound.count >= np.maximum(1, np.ceil(delta / eps)))
        assert np.all(result.bound.count <= np.ceil(delta / eps / (1 - 4e-9)))


def test_a6_every_full_step_lowers_phi_by_at_least_the_gap_of_its_block():
    problem = tensor_problem(tensor(4, 3, 5, seed=12), 0.1)
    method = rp.ConditionalGradient(rp.MaxImprovement("gap"), rp.FullStep())
    result = rp.solve(problem, method, starts=5, stop=rp.Stop(patience=None))
    drops = result.trace.value[:-1] - result.trace.value[1:]
    moving = np.arange(len(drops))[:, None] < result.iterations
    assert np.all((drops >= result.trace.gap[:-1] - 1e-13)[moving])


@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
@pytest.mark.parametrize("measure", ["max", "sum"])
def test_a7_cyclic_sweeps_obey_the_bound_of_the_cross_constant(step, measure):
    """A7: with blockwise constants > 0, which any number is for a multilinear form, and H from the facts."""
    problem = tensor_problem(tensor(4, 3, 5, seed=6), 0.2)
    method = step(rp.GaussSeidel("cyclic"), rp.Majorant((4.0, 4.0, 4.0)))
    result = rp.solve(problem, method, eps=0.3, starts=10, stop=rp.Stop(measure=measure))
    assert result.bound.statement == "Gauss-Seidel, cyclic (theory A7)"
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    assert result.bound.counts == "sweeps"
    unknown = step(rp.GaussSeidel("cyclic"), rp.Majorant((4.0, 4.0, 4.0), p=1.5))
    assert rp.explain(problem, rp.WithoutGuarantee(unknown)).bound.count is None
    assert "A7" in str(rp.explain(problem, unknown).bound)


def test_a7_the_cross_constant_of_a_tensor_is_true_and_of_the_right_size():
    """A7: H = tau sqrt(d-1) on unit balls; no pair of points shows more, and it is not idle."""
    A = tensor(3, 4, 3, seed=2)
    problem = tensor_problem(A)
    facts = problem.facts()
    sigma = facts.joint.constants[0] / 2.0
    np.testing.assert_allclose(facts.cross.constants, sigma * np.sqrt(2.0), rtol=1e-12)
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(3000):
        xs, ys = (unit_starts(problem.shapes, seed=int(rng.integers(2**31))) for _ in range(2))
        near = tuple(x + 10.0 ** rng.uniform(-3, 0) * (y - x) for x, y in zip(xs, ys, strict=True))
        i = int(rng.integers(3))
        moved = tuple(x if j == i else y for j, (x, y) in enumerate(zip(xs, near, strict=True)))
        change = np.linalg.norm(contraction(A, moved, i) - contraction(A, xs, i))
        far = math.sqrt(sum(np.sum((y - x) ** 2) for x, y in zip(xs, moved, strict=True)))
        worst = max(worst, change / far / facts.cross.constants[i])
    assert 0.3 < worst <= 1.0


def test_a13_sweeps_that_start_with_the_largest_gap_obey_the_linear_bound():
    for seed in range(8):
        A = tensor(3, 4, 3, seed=seed)
        problem = tensor_problem(A, 0.2)
        result = rp.solve(problem, eps=1e-7, starts=6)
        assert result.method == rp.ConditionalGradient(
            rp.GaussSeidel(repeats=2, momentum=0.75), rp.FullStep()
        )
        assert result.certified.all()
        assert np.all(result.used <= result.bound.count)
        assert "A13" in result.bound.statement


def test_a13_with_blockwise_constants_no_cross_constant_enters():
    A = tensor(3, 4, 3, seed=2)
    problem = tensor_problem(A, 0.2)
    method = rp.ProximalGradient(rp.GaussSeidel(), rp.Majorant((1.0, 2.0, 3.0)))
    result = rp.solve(problem, method, eps=1e-5, starts=4)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    xs = tuple(x[0] for x in result.xs)
    assert np.max(tensor_gaps(A, xs, 0.2)) <= 1e-5
    assert tensor_value(A, xs, 0.2) == pytest.approx(float(result.value[0]), abs=1e-13)


def test_blockwise_certificates_are_those_of_the_plain_formula():
    problem = quadratic_problem(0.1, 1.5)
    x = np.array([0.3, -0.7, 0.2])
    from method_cases import B, Q

    expected = ball_gap(Q @ x + B, x, 0.1, 1.5)
    assert rp.certify(problem, x).max == pytest.approx(expected, rel=1e-13)
