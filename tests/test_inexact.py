"""Gradients with a declared error (theory A5): certificates stay true, steps stay useful, bounds hold."""

import math

import numpy as np
import pytest

import restpoint as rp
from method_cases import B, Q, tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError, ShapeError

ETA = 1e-3


def worst(g, eta, x, seed=0):
    """An error of norm eta that depends on the point in a wild way, and often hides the slope."""
    rng = np.random.default_rng(abs(hash((float(np.sum(x * 1e6)), seed))) % 2**32)
    size = np.linalg.norm(g)
    if rng.random() < 0.5 and size > 0:
        return -min(1.0, eta / size) * g  # as much of the gradient as there is, or eta of it
    e = rng.normal(size=g.shape)
    return eta * e / np.linalg.norm(e)


def noisy_quadratic(eta=ETA, declared=None, weight=0.1, **facts):
    """The problem of ``quadratic_problem`` by gradients that are wrong by up to eta, and the exact one."""
    exact = rp.smooth.Quadratic(Q, B)
    constant = float(np.max(np.linalg.eigvalsh(Q))) * (1 + 1e-12)

    def gradient(x):
        g = Q @ x + B
        return g + worst(g, eta, x)

    f = rp.smooth.Function(
        lambda x: float(0.5 * x @ Q @ x + B @ x),
        gradient,
        shapes=3,
        **(
            {"constant": constant, "lower_bound": exact.facts([rp.sets.L2Ball()]).lower_bound}
            | facts
        ),
    )
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weight))
    declared = eta if declared is None else declared
    return rp.Problem(rp.smooth.Inexact(f, declared), block), rp.Problem(exact, block)


def noisy_tensor(eta, shape=(3, 4, 2)):
    """A trilinear form by wrong partial gradients, and the exact one."""
    A = tensor(*shape, seed=4)
    form = rp.smooth.Multilinear(A)

    def gradient(*xs):
        return tuple(g + worst(g, eta, g, i) for i, g in enumerate(form.gradient(xs)))

    facts = form.facts([rp.sets.L2Ball()] * 3)
    f = rp.smooth.Function(
        lambda *xs: float(form.value(xs)),
        gradient,
        shapes=[(n,) for n in shape],
        constant=max(facts.joint.constants),
        lower_bound=facts.lower_bound,
    )
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    return rp.Problem(rp.smooth.Inexact(f, eta), [block] * 3), tensor_problem(A, 0.1)


# --- certificates ----------------------------------------------------------------------------------


def test_a_certificate_is_true_of_f_whatever_the_gradients_say():
    noisy, exact = noisy_quadratic()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True))
    x[:50] = rp.solve(exact, starts=50).x  # stationary: there errors make all of the gap
    proved, true = rp.certify(noisy, x), rp.certify(exact, x)
    assert np.all(proved.per_block >= true.per_block - true.floor)
    reach = np.linalg.norm(x, axis=-1) + 1.0
    np.testing.assert_allclose(proved.error[:, 0], ETA * reach, rtol=1.1e-3)
    assert np.all(proved.error[:, 0] >= ETA * reach)
    assert np.all(proved.per_block >= proved.error)
    careless = rp.certify(rp.Problem(noisy.smooth.f, noisy.blocks), x)
    assert np.any(
        careless.per_block < true.per_block - true.floor
    )  # without the declaration: false
    assert "declared errors of the gradient" in str(proved)
    assert "declared errors" not in str(true)


def test_nothing_is_certified_below_what_errors_may_hide():
    noisy, _ = noisy_quadratic()
    result = rp.solve(noisy, eps=1e-5, starts=3, stop=rp.Stop(max_iterations=2000))
    assert not result.certified.any()
    assert np.all(result.gap > ETA)
    assert np.all(result.gap <= 5 * ETA)
    reached = rp.solve(noisy, eps=6 * ETA, starts=3)
    assert reached.certified.all()


@pytest.mark.parametrize("error", [(ETA, 2 * ETA, 0.0), ETA])
def test_errors_may_differ_between_blocks(error):
    noisy, exact = noisy_tensor(0.0)
    problem = rp.Problem(rp.smooth.Inexact(noisy.smooth.f, error), noisy.blocks)
    xs = unit_starts(problem.shapes, 5)
    widened, true = rp.certify(problem, xs), rp.certify(exact, xs)
    etas = np.broadcast_to(error, (3,))
    np.testing.assert_allclose(widened.error, 1.001 * etas * 2.0 + 0 * widened.error, rtol=1e-12)
    np.testing.assert_allclose(widened.per_block - widened.error, true.per_block, atol=1e-12)


def test_an_error_of_zero_changes_nothing():
    noisy, _ = noisy_tensor(0.0)
    plain = rp.Problem(noisy.smooth.f, noisy.blocks)
    assert noisy.smooth.gradient_errors is None
    one, other = (rp.solve(p, starts=3, eps=1e-4) for p in (noisy, plain))
    np.testing.assert_array_equal(one.trace.gap, other.trace.gap)
    np.testing.assert_array_equal(one.certificate.per_block, other.certificate.per_block)
    assert np.all(one.certificate.error == 0.0)


# --- steps and bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [rp.ConditionalGradient, rp.ProximalGradient])
@pytest.mark.parametrize("eps", [4 * ETA * 2.0, 0.03, 0.3])
def test_a5_the_bound_holds_for_the_true_gap(step, eps):
    noisy, exact = noisy_quadratic()
    result = rp.solve(noisy, step(), eps=eps, starts=20)
    assert result.certified.all()
    assert "theory A5" in result.bound.statement
    assert np.all(np.isfinite(result.bound.count))
    assert np.all(result.used <= result.bound.count)
    assert result.bound.withdrawn is None
    assert np.all(rp.certify(exact, result.xs).max <= eps)
    assert np.nanmax(np.diff(result.trace.value, axis=0)) <= 1e-14  # Phi never rises
    without = rp.solve(exact, step(), eps=eps, starts=20).bound
    assert np.all(result.bound.count >= without.count)


@pytest.mark.parametrize("measure", ["max", "sum"])
@pytest.mark.parametrize(
    "method",
    [
        step(order)
        for step in (rp.ConditionalGradient, rp.ProximalGradient)
        for order in (rp.Jacobi(), rp.GaussSeidel(), rp.MaxImprovement())
    ],
    ids=str,
)
def test_a5_with_several_blocks(method, measure):
    noisy, exact = noisy_tensor(1e-3)
    result = rp.solve(noisy, method, eps=0.1, starts=6, stop=rp.Stop(measure=measure))
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    true = rp.certify(exact, result.xs)
    assert np.all((true.max if measure == "max" else true.sum) <= 0.1)
    assert np.nanmax(np.diff(result.trace.value, axis=0)) <= 1e-13


def test_a5_full_steps_of_concave_f_stay_where_errors_leave_nothing():
    C = -np.array([[2.0, 0.5], [0.5, 1.0]])

    def gradient(x):
        g = C @ x
        return g + worst(g, 0.05, x)

    f = rp.smooth.Function(
        lambda x: float(0.5 * x @ C @ x), gradient, shapes=2, concave=True, lower_bound=-1.2
    )
    problem = rp.Problem(rp.smooth.Inexact(f, 0.05), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, eps=0.25, starts=10)
    assert isinstance(result.method.smoothness, rp.FullStep)
    assert result.certified.all()
    assert np.all(result.used <= result.bound.count)
    assert result.bound.withdrawn is None
    on = rp.solve(problem, eps=1e-3, starts=10, stop=rp.Stop(max_iterations=200))
    assert np.nanmax(np.diff(on.trace.value, axis=0), initial=-1.0) <= 1e-15


@pytest.mark.parametrize(
    ("method", "bounded"),
    [
        (rp.ConditionalGradient(smoothness=rp.Armijo()), True),
        (rp.ConditionalGradient(smoothness=rp.Doubling()), True),
        (rp.ProximalGradient(smoothness=rp.Doubling()), False),
        (rp.ProximalGradient(smoothness=rp.Universal()), False),
    ],
    ids=str,
)
def test_a5_with_steps_found_by_trial(method, bounded):
    noisy, exact = noisy_quadratic()
    result = rp.solve(noisy, method, eps=0.03, starts=10)
    assert result.certified.all()
    assert np.all(rp.certify(exact, result.xs).max <= 0.03)
    assert (result.bound.count is not None) == bounded
    if bounded:
        assert np.all(result.used <= result.bound.count)
        assert "gradients are as near as f declares (theory A5)" in result.bound.assumptions


def test_an_eps_below_the_errors_has_no_count_and_says_so():
    noisy, _ = noisy_quadratic()
    for method in (rp.ConditionalGradient(), rp.ConditionalGradient(smoothness=rp.Armijo())):
        said = str(rp.explain(noisy, method, eps=1e-4).bound)
        assert "no finite count" in said


def test_errors_larger_than_declared_are_found_out():
    """Values of f are exact: a step that lowers Phi by less than its promise disproves what was declared."""
    noisy, _ = noisy_quadratic(eta=0.3, declared=1e-6)
    result = rp.solve(
        noisy, rp.ProximalGradient(), eps=1e-3, starts=20, stop=rp.Stop(max_iterations=50)
    )
    assert result.bound.count is None
    assert result.bound.withdrawn is not None


# --- the piece ---------------------------------------------------------------------------------------


def test_errors_add_up():
    noisy, _ = noisy_quadratic()
    twice = rp.smooth.Inexact(noisy.smooth, 2 * ETA)
    assert twice.gradient_errors == (3 * ETA,)
    total = rp.smooth.Sum(
        noisy.smooth, rp.smooth.Quadratic(Q), rp.smooth.Inexact(rp.smooth.Quadratic(Q), 1.0)
    )
    assert ETA + 1.0 <= total.gradient_errors[0] <= (ETA + 1.0) * (1 + 1e-15)
    assert rp.smooth.Sum(rp.smooth.Quadratic(Q), rp.smooth.Quadratic(Q)).gradient_errors is None
    single = rp.smooth.Inexact(rp.smooth.Quadratic(Q), ETA).converted(np.zeros(1, np.float32))
    assert single.gradient_errors == (ETA,)
    assert single.f.Q.dtype == np.float32


def test_the_laws_allow_the_error_that_is_declared_and_no_more():
    noisy, _ = noisy_quadratic(eta=0.05)
    rp.testing.check_smooth(noisy.smooth, rp.sets.L2Ball())
    with pytest.raises(rp.testing.LawBroken, match="finite differences"):
        rp.testing.check_smooth(noisy.smooth.f, rp.sets.L2Ball())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (-1e-3, DataError, "error must be >= 0, got -0.001"),
        (
            (1e-3, -1.0),
            ShapeError,
            "error has 2 entries; expected one number, or one for each of the 1 blocks",
        ),
        (math.nan, DataError, "NaN"),
        (math.inf, DataError, "error"),
        ("small", DataError, "error"),
    ],
)
def test_what_is_no_error_is_refused(error, kind, words):
    with pytest.raises(kind, match=words):
        rp.smooth.Inexact(rp.smooth.Quadratic(Q), error)


def test_what_is_no_function_is_refused_and_sampling_too():
    with pytest.raises(DataError, match=r"f must be a restpoint\.smooth\.Smooth, got function"):
        rp.smooth.Inexact(lambda x: x, 0.1)
    f = rp.smooth.Inexact(rp.smooth.LeastSquares(np.eye(3), np.ones(3)), 0.1)
    sampled = rp.ConditionalGradient(gradient=rp.MiniBatch(2))
    with pytest.raises(CapabilityError, match="MiniBatch needs a finite sum"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), sampled)


def test_a_run_goes_on_and_a_result_is_kept_with_its_errors(tmp_path):
    def problem(eta):
        f = rp.smooth.Inexact(rp.smooth.Quadratic(Q, B), eta)
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1)))

    path, stop = tmp_path / "run", rp.Stop(max_iterations=2)
    whole = rp.solve(problem(1e-3), eps=0.02, starts=4)
    rp.solve(problem(1e-3), eps=0.02, starts=4, stop=stop, observers=[rp.Checkpoint(path)])
    again = rp.resume(path, problem(1e-3), stop=rp.Stop())
    np.testing.assert_array_equal(again.x, whole.x)
    np.testing.assert_array_equal(again.certificate.error, whole.certificate.error)
    with pytest.raises(DataError, match="problem is not the one of the checkpoint"):
        rp.resume(path, problem(2e-3), stop=rp.Stop())
    whole.save(tmp_path / "result")
    loaded = rp.load(tmp_path / "result")
    np.testing.assert_array_equal(loaded.certificate.error, whole.certificate.error)


def test_momentum_is_refused_with_the_reason():
    noisy, _ = noisy_quadratic()
    with pytest.raises(CapabilityError, match="declared error"):
        rp.solve(noisy, rp.Momentum(rp.ProximalGradient()))
