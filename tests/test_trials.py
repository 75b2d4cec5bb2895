"""Steps found by trial: theory A3, the inequalities that accept a step, and the bounds in trials."""

import itertools
import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import ORDERS, cosine, quadratic_problem, tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError
from restpoint.methods import Key

JACOBI_ARMIJO = rp.ConditionalGradient(rp.Jacobi(), rp.Armijo())
CYCLIC = rp.ConditionalGradient(rp.GaussSeidel("cyclic"), rp.Armijo())
ARMIJOS = [rp.ConditionalGradient(order, rp.Armijo()) for order in ORDERS if order != CYCLIC.order]
DOUBLINGS = [
    step(order, rp.Doubling(initial))
    for step in (rp.ConditionalGradient, rp.ProximalGradient)
    for order in (rp.Jacobi(), rp.GaussSeidel(), rp.MaxImprovement(), rp.RandomOrder())
    for initial in (0.01, 30.0)
]
UNIVERSALS = [
    rp.ProximalGradient(order, rp.Universal(initial))
    for order in (rp.Jacobi(), rp.GaussSeidel(), rp.GaussSeidel(repeats=2), rp.MaxImprovement())
    for initial in (None, 0.01, 30.0)
]


def hoelder_problem(p, n=4, weight=0.1):
    """sum_j x_j^p - b'x on a box in the orthant: (p, 2) is true of it, theory E5."""
    f = rp.smooth.Sum(
        rp.smooth.PowerSum(p, shape=n),
        rp.smooth.Quadratic(np.zeros((n, n)), -np.arange(1.0, n + 1.0) / n),
    )
    return rp.Problem(f, rp.Block(rp.sets.Box(0.0, 1.0), rp.penalties.L1(weight)))


def values(problem, method, **more):
    return rp.solve(problem, method, stop=rp.Stop(patience=None), **more)


@pytest.mark.parametrize("method", [*ARMIJOS, *DOUBLINGS, *UNIVERSALS], ids=str)
def test_phi_never_rises_and_the_end_is_certified(method):
    problem = tensor_problem(tensor(4, 3, 5, seed=2), 0.2)
    result = values(problem, method, eps=1e-6, starts=5)
    assert result.certified.all()
    rises = np.diff(result.trace.value, axis=0)
    assert np.nanmax(rises) <= 1e-13
    if result.bound.count is not None:
        assert np.all(result.used <= result.bound.count)


def waves(a, n=4):
    f = rp.smooth.Function(
        lambda x: float(np.sum(np.cos(a * x))),
        lambda x: -a * np.sin(a * x),
        shapes=n,
        constant=float(np.max(a) ** 2),
        lower_bound=-float(n),
    )
    return rp.Problem(f, rp.Block(rp.sets.Box(-2.0, 3.0)))


@pytest.mark.parametrize("seed", range(4))
def test_armijo_steps_are_those_of_the_rule(seed):
    """Accepted where Phi falls by half of what is linear: s goes on within [s, 2s], else at most s/2."""
    rng = np.random.default_rng(seed)
    problem = waves(rng.uniform(0.3, 3.0, 4))
    f, box = problem.smooth, problem.sets[0]
    x = rng.uniform(-2.0, 3.0, 4)
    method = rp.ConditionalGradient(smoothness=rp.Armijo())
    state = method.init(problem, (x[None],), Key(0, np.arange(1)))
    s, lengths = 1.0, []
    for _ in range(40):
        assert state.memory[0] == pytest.approx(s, rel=1e-9)
        g = f.gradient((x,))[0]
        y = np.where(g > 0, box.lower, box.upper)
        trial = x + s * (y - x)
        gap, fallen = float(g @ (x - y)), float(f.value((x,)) - f.value((trial,)))
        if gap < 1e-3:
            break
        curvature = 2.0 * (s * gap - fallen) / (s * s * (y - x) @ (y - x))
        accepted = fallen >= 0.5 * s * gap
        lengths.append((s, accepted))
        last = s
        if accepted:
            x = trial
            g = f.gradient((x,))[0]
            d = np.where(g > 0, box.lower, box.upper) - x
            s = float(-g @ d) / (1.25 * curvature * (d @ d)) if curvature > 0 else 1.0
            s = min(max(s, last), 2.0 * last, 1.0)
        else:
            s = min(0.5 * last, gap / (1.25 * curvature * ((y - x) @ (y - x))))
        state = method.step(problem, state)
        np.testing.assert_allclose(state.xs[0][0], x, rtol=0, atol=1e-12)
    assert {accepted for _, accepted in lengths} == {True, False}


@pytest.mark.parametrize("p", [1.25, 1.5, 2.0])
def test_a3_no_step_length_falls_below_its_limit(p):
    """While the gap exceeds eps, s >= min{1, (eps/D)^(q-1)/2}, also where a refusal takes more than half of it."""
    problem, method = hoelder_problem(p, n=3, weight=0.05), rp.ConditionalGradient
    state = method(smoothness=rp.Armijo()).init(
        problem, (np.random.default_rng(0).random((6, 3)),), Key(0, np.arange(6))
    )
    D, least = 2.0 * float(problem.sets[0].diameter(p, (3,))) ** p, np.inf
    seen, shortest = np.full(6, np.inf), 1.0
    for _ in range(60):
        seen = np.minimum(seen, state.look.gaps[0])
        limit = np.minimum(1.0, 0.5 * (np.maximum(seen, 1e-30) / D) ** (1.0 / (p - 1.0)))
        assert np.all(state.memory >= limit * (1 - 1e-12))
        shortest, least = min(shortest, float(np.min(state.memory))), min(least, float(seen.min()))
        state = method(smoothness=rp.Armijo()).step(problem, state)
    assert shortest < 0.25
    assert least < 0.05


@pytest.mark.parametrize("p", [1.25, 1.5, 2.0])
@pytest.mark.parametrize(
    "method",
    [
        rp.ConditionalGradient(smoothness=rp.Armijo()),
        rp.ProximalGradient(smoothness=rp.Universal()),
        rp.ProximalGradient(smoothness=rp.Universal(1e-3)),
    ],
    ids=str,
)
def test_a3_a4_the_rate_is_that_of_an_exponent_that_nobody_declared_to_the_method(method, p):
    result = values(hoelder_problem(p), method, eps=0.05, starts=6)
    assert result.certified.all()
    assert result.bound.rate == f"O(1/eps^{p / (p - 1):.4g})"
    assert np.all(np.isfinite(result.bound.count))
    assert np.all(result.used <= result.bound.count)


def test_a3_holds_for_every_pair_that_is_true_of_f_at_once():
    """With p = 2 and lambda, also p = 1.5 and lambda diam_1.5^0.5 is true; the run keeps both bounds."""
    problem = quadratic_problem(0.05)
    result = values(problem, rp.ConditionalGradient(smoothness=rp.Armijo()), eps=0.05, starts=8)
    (constant,), diameter = problem.facts().joint.constants, problem.sets[0].diameter(1.5, (3,))
    delta = result.bound.constants["delta"]
    for p, c in ((2.0, constant), (1.5, constant * diameter**0.5)):
        bound = rp.bounds.addition_3(
            eps=0.05,
            delta=delta,
            constants=(c,),
            diameters=(problem.sets[0].diameter(p, (3,)),),
            p=p,
        )
        assert np.all(result.used <= bound.count)


@pytest.mark.parametrize("p", [1.25, 1.5, 1.75, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a4_no_weight_above_the_limit_is_tried_and_every_step_certifies(p, seed):
    """Theory A4: while the gap exceeds eps, w <= max{w_0, 2 D_2/diam^2 max{1, (D_2/eps)^(q-2)}}.

    At every step omega^{-1}(M) of weight w, which needs nothing of f, bounds the gap.
    """
    problem, rng = hoelder_problem(p, n=3, weight=0.05), np.random.default_rng(seed)
    method = rp.ProximalGradient(smoothness=rp.Universal(0.01))
    state = method.init(problem, (rng.random((5, 3)),), Key(0, np.arange(5)))
    diameter = float(problem.sets[0].diameter(2.0, (3,)))
    D2, q = 2.0 * 3 ** (1 - p / 2) * diameter**p, p / (p - 1)
    refused = 0
    for _ in range(60):
        gap, w = state.look.gaps[0], state.memory
        limit = 2 * D2 / diameter**2 * np.maximum(1.0, (D2 / np.maximum(gap, 1e-30)) ** (q - 2))
        found = rp.measures(problem, state.xs, gamma=1.0 / w)
        assert np.all(gap <= found.by_improvement * (1 + 1e-9) + 1e-7)
        # The limit is for the smallest gap so far, and gaps may grow again.
        assert np.all(w <= np.maximum(0.01, limit) * (1 + 1e-12))
        after = method.step(problem, state)
        moved = after.look.value < state.look.value
        fallen, promised = state.look.value - after.look.value, found.improvement
        assert np.all(fallen[moved] >= 0.5 * promised[moved] - 1e-12)
        refused += int(np.sum(after.memory >= 2.0 * w))
        state = after
    assert refused > 0


def test_a_first_constant_is_found_in_the_units_of_the_data():
    """f times 1e8 in a ball a thousand times smaller: the same trials, start by start."""
    rng = np.random.default_rng(3)
    Q, b = rng.normal(size=(2, 4, 4)), rng.normal(size=4)
    Q, x0 = Q[0] + Q[0].T, rng.normal(size=(7, 4))
    x0 /= 1.5 * np.linalg.norm(x0, axis=-1, keepdims=True)
    for method in (
        rp.ProximalGradient(smoothness=rp.Doubling()),
        rp.ConditionalGradient(smoothness=rp.Doubling()),
        rp.ProximalGradient(smoothness=rp.Universal()),
    ):
        counts = []
        for size, scale in ((1.0, 1.0), (2.0**27, 2.0**-10)):
            f = rp.smooth.Quadratic(size * Q, size * scale * b)
            problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(scale)))
            found = values(problem, method, x0=scale * x0, eps=rp.Relative(1e-6))
            assert found.certified.all()
            counts.append(found.iterations)
        np.testing.assert_array_equal(*counts)


def test_trials_go_on_where_rounding_hides_what_they_gain():
    """Phi = 1e8 + a bowl: differences of Phi say nothing below 1e-6, slopes do."""
    f = rp.smooth.Function(
        lambda x: 1e8 + 0.5 * float(x @ (np.array([1.0, 30.0]) * x)),
        lambda x: np.array([1.0, 30.0]) * x,
        shapes=2,
    )
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    for rule in (rp.Doubling(), rp.Universal(), rp.Doubling(1e-6)):
        result = values(problem, rp.ProximalGradient(smoothness=rule), eps=1e-7, starts=5)
        assert result.certified.all()
        assert np.all(result.iterations < 400)


def test_the_default_for_f_that_declares_nothing():
    """Proximal steps by trial where every block has a prox, else conditional gradient by trial."""
    A = tensor(3, 4, 3, seed=5)
    form = rp.smooth.Multilinear(A)
    f = rp.smooth.Function(
        lambda *xs: float(form.value(xs)), lambda *xs: form.gradient(xs), shapes=[(3,), (4,), (3,)]
    )
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    method, other = (
        rp.explain(rp.Problem(f, blocks)).method
        for blocks in (
            [block] * 3,
            [block, rp.Block.from_oracle(lambda g: -g / np.linalg.norm(g), diameter=2.0), block],
        )
    )
    assert method == rp.ProximalGradient(rp.GaussSeidel(), rp.Universal())
    assert other == rp.ConditionalGradient(rp.GaussSeidel(), rp.Armijo())
    for blocks in ([block] * 3, [block, rp.Block(rp.sets.L2Ball()), block]):
        result = rp.solve(rp.Problem(f, blocks), starts=4)
        assert result.certified.all()
        assert result.bound.count is None
        assert result.bound.missing == ("a lower bound on Phi", "the constant lambda")


def test_doubling_never_needs_more_than_twice_the_true_constant():
    # f = sum cos(2 x_j) has lambda = 4 exactly: from far below, the constant is found within 2 lambda.
    problem = rp.Problem(cosine(3, lower_bound=-3.0), rp.Block(rp.sets.Box(-2.0, 2.0)))
    result = values(problem, rp.ProximalGradient(smoothness=rp.Doubling(1e-6)), starts=8)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    assert "A3" in result.bound.statement
    known = values(problem, rp.ProximalGradient(smoothness=rp.Majorant(8.0)), starts=8)
    assert np.all(result.bound.count >= 2 * known.bound.count - 1)
    state = rp.ProximalGradient(smoothness=rp.Doubling(1e-6))
    now = state.init(
        problem, (result.problem.project((np.zeros((1, 3)) + 0.3,))), Key(0, np.arange(1))
    )
    for _ in range(80):
        now = state.step(problem, now)
        assert np.all(now.memory <= 8.0)


@pytest.mark.parametrize("order", [rp.Jacobi(), rp.GaussSeidel(), rp.MaxImprovement()], ids=str)
@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
def test_a_refusal_raises_a_constant_as_far_as_it_proves_the_true_one_to_be_away(step, order):
    """A narrow bowl: the first trial leads to the other side, and Phi rises far above what was promised."""
    f = rp.smooth.Function(
        lambda x, y: 450.0 * float(x @ x + y @ y),
        lambda x, y: (900.0 * x, 900.0 * y),
        shapes=[3, 2],
        constant=900.0,
    )
    problem = rp.Problem(f, [rp.Block(rp.sets.Box(-1.0, 1.0))] * 2)
    method = step(order, rp.Doubling(1.0))
    x0 = (np.full((1, 3), 0.1), np.full((1, 2), 0.15))
    now, grown = method.init(problem, x0, Key(0, np.arange(1))), []
    while now.xs[0][0, 0] == x0[0][0, 0] and now.xs[1][0, 0] == x0[1][0, 0]:
        before, now = float(now.memory[0]), method.step(problem, now)
        assert before <= 900.0 * (1 + 1e-12)
        assert now.memory[0] <= max(900.0 * (1 + 1e-12), 2.0 * before)
        grown.append(float(now.memory[0]) / before)
    assert max(grown) > 3.0
    assert min(grown[:-1]) >= 2.0


def test_starts_try_at_their_own_pace():
    problem = tensor_problem(tensor(3, 4, 3, seed=5), 0.1)
    x0 = unit_starts(problem.shapes, 6)
    for method in (
        JACOBI_ARMIJO,
        rp.ConditionalGradient(rp.Jacobi(), rp.Doubling(0.1)),
        rp.ProximalGradient(rp.GaussSeidel(), rp.Universal()),
        rp.ConditionalGradient(rp.MaxImprovement(), rp.Armijo()),
    ):
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
    with pytest.raises(CapabilityError, match="E30"):
        rp.solve(problem, CYCLIC)
    with pytest.raises(CapabilityError, match="weighs the step of ProximalGradient"):
        rp.solve(problem, rp.ConditionalGradient(rp.Jacobi(), rp.Universal()))
    f = rp.smooth.LeastSquares(np.eye(3), np.ones(3))
    sampled = rp.ConditionalGradient(smoothness=rp.Armijo(), gradient=rp.MiniBatch(2))
    with pytest.raises(CapabilityError, match="gradient=Exact"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), sampled)
    for rule, wrong in itertools.product((rp.Doubling, rp.Universal), (0.0, -1.0, math.nan, "a")):
        with pytest.raises(DataError, match="initial"):
            rule(wrong)
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


WRONG = [0.1, 1.0, 3.0]


@pytest.mark.parametrize("constant", WRONG)
@pytest.mark.parametrize(
    "method",
    [
        rp.ConditionalGradient(smoothness=rp.Armijo()),
        rp.ConditionalGradient(smoothness=rp.Doubling()),
        rp.ProximalGradient(smoothness=rp.Doubling()),
        rp.ProximalGradient(smoothness=rp.Universal()),
        rp.Continuation(rp.ProximalGradient(smoothness=rp.Doubling())),
    ],
    ids=str,
)
def test_a_declared_constant_that_trials_disprove_withdraws_the_bound(method, constant):
    """No step relies on the constant, but the bound does; the certificate stands."""

    def problem(constant):
        f = rp.smooth.Function(
            lambda x: 0.5 * float(x @ Q @ x),
            lambda x: Q @ x,
            shapes=5,
            constant=constant,
            lower_bound=-50.0,
        )
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.01)))

    Q = np.random.default_rng(0).normal(size=(5, 5))
    Q = Q + Q.T
    largest = float(np.linalg.eigvalsh(Q)[-1])
    assert max(WRONG) < largest < 4.1
    result = values(problem(constant), method, starts=4, eps=1e-6)
    assert result.bound.count is None
    assert f"the constants ({constant},) declared for f are too small" in result.bound.withdrawn
    assert result.certified.all()
    true = values(problem(largest * (1 + 1e-12)), method, starts=4, eps=1e-6)
    assert true.bound.withdrawn is None
    assert true.bound.count is not None


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float64, size) for size in (1e-150, 1e-9, 1.0, 1e60)] + [(np.float32, 1.0)],
)
def test_rounding_disproves_nothing(size, dtype):
    """Constants that are true to the last digit, gradients that cancel, and steps down to the rounding floor."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(6, 6))
    Q = (size * (A + A.T)).astype(dtype)
    far = 1e4 * rng.normal(size=6)
    centre, b = far.astype(dtype), (-Q @ far.astype(dtype)).astype(dtype)
    functions = [
        rp.smooth.Quadratic(Q, b),
        rp.smooth.LeastSquares((size**0.5 * A).astype(dtype), (size**0.5 * A @ far).astype(dtype)),
    ]
    for f, step in itertools.product(functions, (*UNIVERSALS[:1], *TRIALS, JACOBI_ARMIJO)):
        problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(3.0, centre)))
        x0 = (centre + 0.3 * rng.normal(size=(5, 6))).astype(dtype)
        stop = rp.Stop(max_iterations=60, patience=None)
        result = rp.solve(problem, step, x0=x0, eps=rp.Relative(1e-14), stop=stop)
        assert result.bound.withdrawn is None


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
    methods = [
        rp.ProximalGradient(order, rp.Doubling()),
        rp.Continuation(rp.ProximalGradient(order, rp.Doubling())),
    ]
    curved = rp.Continuation(rp.ProximalGradient(order, rp.Majorant(3.0)))
    if order == rp.RandomOrder():
        methods.append(curved)
    else:  # theory A7 needs constants that are known
        assert "A7" in rp.explain(problem, curved).bound.statement
    for method in methods:
        bound = rp.explain(problem, method).bound
        assert bound.statement == ""
        assert bound.count is None
        assert str(bound) == bound.brief(1) == "no bound: " + bound.missing[0]
