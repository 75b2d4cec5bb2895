"""Extrapolated steps: Phi never rises, what is seen is about the point, the bound, and what is refused."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem, tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError

PLAIN = rp.ConditionalGradient(smoothness=rp.FullStep())
TIGHT = rp.Relative(1e-9)


def concave(size=12, rank=12, seed=0, weight=0.2, penalty="l1"):
    """-||F'x||^2/2 with a penalty on the ball: closed form (l1), or an iterative oracle (analysis)."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((size, rank))
    K = np.linalg.qr(rng.standard_normal((2 * size, size)))[0]
    h = rp.penalties.L1(weight) if penalty == "l1" else rp.penalties.AnalysisL1(K, weight)
    return rp.Problem(rp.smooth.ConcaveQuadratic(F), rp.Block(rp.sets.L2Ball(1.5), h))


def uncompiled(problem):
    """The same problem by arrays that the compiled loops do not read."""
    f = problem.smooth
    size = f.shapes[0][0]
    twin = rp.smooth.Sum(f, rp.smooth.Quadratic(np.zeros((size, size)), concave=True))
    return rp.Problem(twin, problem.blocks[0])


CASES = [
    (concave(), rp.Momentum(PLAIN)),
    (concave(), rp.Momentum(PLAIN, memory=4)),
    (concave(), rp.Momentum(PLAIN, burst=5)),
    (concave(penalty="analysis"), rp.Momentum(PLAIN)),
    (concave(penalty="analysis"), rp.Momentum(PLAIN, burst=7)),
    (concave(penalty="analysis"), rp.Momentum(PLAIN, memory=3)),
    (uncompiled(concave(penalty="analysis")), rp.Momentum(PLAIN)),
    (quadratic_problem(0.05), rp.Momentum(rp.ProximalGradient())),
    (quadratic_problem(0.05), rp.Momentum(rp.ConditionalGradient())),
    (
        tensor_problem(tensor(4, 3, 5)),
        rp.Momentum(rp.ProximalGradient(rp.Jacobi(), rp.Majorant(9.0))),
    ),
]


@pytest.mark.parametrize(("problem", "method"), CASES, ids=[f"case{k}" for k in range(len(CASES))])
def test_phi_never_rises_and_all_numbers_are_about_the_point(problem, method):
    for view in rp.iterate(problem, method, eps=1e-6, starts=4, stop=rp.Stop(max_iterations=60)):
        np.testing.assert_allclose(view.value, problem.value(view.xs), rtol=0, atol=1e-11)
        certificate = rp.certify(problem, view.xs)
        # The gap that a run goes by is an upper bound too: it may exceed the certified one, never fall below.
        assert np.all(view.gap >= certificate.max - 1e-9 * (1.0 + np.abs(view.value)))
        assert np.all(problem.violation(view.xs) <= 1e-12)
    result = rp.solve(problem, method, eps=1e-6, starts=4)
    assert result.certified.all()
    assert np.nanmax(np.diff(result.trace.value, axis=0), initial=0.0) <= 1e-13 * np.max(
        np.abs(result.value)
    )
    if result.bound.count is not None:
        assert np.all(result.used <= result.bound.count)


def test_steps_are_those_of_the_formula():
    """Nesterov's rule with restarts in plain NumPy, from the formulas alone."""
    F, weight = np.diag(np.sqrt(np.linspace(1.0, 1.2, 9))), 0.02
    problem = rp.Problem(
        rp.smooth.ConcaveQuadratic(F), rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weight))
    )
    x = unit_starts([(9,)], seed=5)[0]

    def answer(g):
        z = np.sign(-g) * np.maximum(np.abs(g) - weight, 0.0)
        return z / np.linalg.norm(z), -np.linalg.norm(z)

    def phi(x):
        return -0.5 * np.sum((F.T @ x) ** 2) + weight * np.abs(x).sum()

    points, refused, t, plain, last = [x], 0, 1.0, True, -F @ (F.T @ x)
    for _ in range(25):
        g, after = -F @ (F.T @ x), 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        asked = g if plain else g + (t - 1.0) / after * (g - last)
        y, gap = answer(asked)[0], g @ x + weight * np.abs(x).sum() - answer(g)[1]
        if plain or phi(x) - phi(y) >= gap - 1e-14 * abs(phi(x)):
            x, last, t, plain = y, g, after, False
        else:
            t, plain, refused = 1.0, True, refused + 1
        points.append(x)
    method = rp.Momentum(PLAIN)
    views = rp.iterate(problem, method, eps=1e-300, x0=points[0], stop=rp.Stop(max_iterations=25))
    for view, point in zip(views, points, strict=True):
        np.testing.assert_allclose(view.xs[0], point, rtol=0, atol=1e-9)
    assert refused > 0


def test_compiled_steps_are_the_general_ones():
    problem = concave(20, 20, penalty="analysis", weight=0.4)
    x0 = unit_starts(problem.shapes, 3)
    general = rp.solve(uncompiled(problem), rp.Momentum(PLAIN), eps=TIGHT, x0=x0)
    for burst in (1, 6):
        fast = rp.solve(problem, rp.Momentum(PLAIN, burst=burst), eps=TIGHT, x0=x0)
        assert fast.certified.all()
        np.testing.assert_allclose(fast.value, general.value, rtol=1e-7)
    assert general.certified.all()


@pytest.mark.parametrize("transposed", [False, True])
def test_every_form_of_f_takes_the_same_steps(transposed):
    rng = np.random.default_rng(1)
    F = rng.standard_normal((10, 4))
    F = np.asfortranarray(F) if transposed else F
    K = np.linalg.qr(rng.standard_normal((20, 10)))[0]
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.AnalysisL1(K, 0.3))
    x0 = unit_starts([(10,)], 2)
    stop = rp.Stop(max_iterations=8)
    forms = (rp.smooth.ConcaveQuadratic(F), rp.smooth.Quadratic(-F @ F.T, concave=True))
    ends = [
        rp.solve(rp.Problem(f, block), rp.Momentum(PLAIN), eps=1e-300, x0=x0, stop=stop).last[0]
        for f in forms
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "analysis"])
def test_starts_go_at_their_own_pace(penalty):
    problem = concave(penalty=penalty)
    x0 = unit_starts(problem.shapes, 5)
    together = rp.solve(problem, rp.Momentum(PLAIN), x0=x0)
    for i in range(5):
        alone = rp.solve(problem, rp.Momentum(PLAIN), x0=tuple(x[i] for x in x0))
        assert alone.iterations == together.iterations[i]
        np.testing.assert_allclose(alone.x, together.x[i], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("memory", "rank"), [(1, 30), (1, 4), (4, 4)])
def test_it_is_faster_where_plain_steps_are_slow(memory, rank):
    F = np.diag(np.sqrt(np.linspace(1.1, 1.0, 30)))[:, :rank]
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(1e-3))
    problem = rp.Problem(rp.smooth.ConcaveQuadratic(F), block)
    x0 = unit_starts([(30,)])
    plain = rp.solve(problem, PLAIN, eps=TIGHT, x0=x0)
    fast = rp.solve(problem, rp.Momentum(PLAIN, memory), eps=TIGHT, x0=x0)
    assert plain.certified
    assert fast.certified
    assert fast.iterations <= 0.5 * plain.iterations


def test_the_bound_counts_refused_steps():
    problem = concave()
    plain = rp.solve(problem, PLAIN, x0=unit_starts(problem.shapes))
    fast = rp.solve(problem, rp.Momentum(PLAIN), x0=unit_starts(problem.shapes))
    assert fast.bound.count == 2.0 * plain.bound.count - 1.0
    assert "Corollary 3.2" in fast.bound.statement
    assert fast.used <= fast.bound.count


def test_a_run_that_cannot_get_nearer_stalls():
    problem = concave()
    stop = rp.Stop(patience=20, max_iterations=3000)
    result = rp.solve(
        problem, rp.Momentum(PLAIN), eps=1e-250, x0=unit_starts(problem.shapes), stop=stop
    )
    assert result.status in (rp.Status.STALLED, rp.Status.ITERATION_LIMIT)
    assert result.gap <= 1e-10


def test_what_does_not_fit_is_refused_with_the_reason():
    with pytest.raises(CapabilityError, match="method must be"):
        rp.Momentum(rp.Momentum(PLAIN))
    with pytest.raises(CapabilityError, match="compares values of Phi"):
        rp.Momentum(rp.ProximalGradient(smoothness=rp.Doubling()))
    for name in ("memory", "burst"):
        with pytest.raises(DataError, match=name):
            rp.Momentum(PLAIN, **{name: 0})
    sweeps = rp.Momentum(rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep()))
    with pytest.raises(CapabilityError, match="one by one"):
        rp.solve(tensor_problem(tensor(3, 4, 3)), sweeps)
    with pytest.raises(CapabilityError, match="full steps"):
        rp.solve(quadratic_problem(), rp.Momentum(rp.ConditionalGradient(), memory=3))
    f = rp.smooth.LeastSquares(np.eye(3), np.ones(3))
    sampled = rp.Momentum(rp.ConditionalGradient(gradient=rp.MiniBatch(2)))
    with pytest.raises(CapabilityError, match="gradient=Exact"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), sampled)
