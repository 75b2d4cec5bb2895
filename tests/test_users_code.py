"""What users' code may do in a run: raise, return what is not finite, write to its argument, stop answering."""

import numpy as np
import pytest

import restpoint as rp
from loop_cases import Faulty, divide, press_ctrl_c
from method_cases import (
    B,
    Q,
)
from restpoint.errors import EvaluationError, NotCertifiedError


@pytest.mark.parametrize("when", range(2, 9))
def test_ctrl_c_in_the_middle_of_a_run_returns_the_best_point_certified_for_what_it_is(when):
    faulty = Faulty(press_ctrl_c, when)
    problem = faulty.problem()
    x0 = np.array([0.3, -0.2, 0.1])
    result = rp.solve(problem, rp.ConditionalGradient(), eps=1e-9, x0=x0)
    assert result.status is rp.Status.INTERRUPTED
    assert result.gap == rp.certify(problem, result.x).max
    assert result.gap == pytest.approx(np.nanmin(result.trace.gap), rel=1e-9)
    assert "Ctrl-C" in str(result)
    assert "go on with solve(..., x0=result.xs)" in str(result)


def test_ctrl_c_keeps_the_starts_that_are_certified_already():
    problem = Faulty(press_ctrl_c, 60).problem()
    x0 = np.stack([np.zeros(3), np.array([0.3, -0.2, 0.1]), np.array([1.0, -0.2, 0.4])])
    result = rp.solve(problem, rp.ConditionalGradient(), eps=1e-13, x0=x0)
    assert result.status[0] is rp.Status.CERTIFIED
    assert rp.Status.INTERRUPTED in set(result.status)


@pytest.mark.parametrize("forever", [False, True])
def test_an_exception_in_the_middle_of_a_run_costs_nothing_that_was_reached(forever):
    faulty = Faulty(divide, 6, forever=forever)
    problem = faulty.problem()
    x0 = np.array([0.3, -0.2, 0.1])
    result = rp.solve(problem, rp.ConditionalGradient(), eps=1e-9, x0=x0)
    assert result.status is rp.Status.ORACLE_FAILED
    assert isinstance(result.error, EvaluationError)
    assert isinstance(result.error.__cause__, ZeroDivisionError)
    assert "no such luck" in result.message
    with pytest.raises(NotCertifiedError, match="ORACLE_FAILED") as caught:
        result.raise_for_status()
    assert caught.value.__cause__ is result.error
    assert np.isfinite(result.x).all()
    if forever:
        assert np.isnan(result.gap)
    else:
        assert result.gap == pytest.approx(result.trace.gap.min(), rel=1e-9)


def test_an_exception_at_the_first_look_is_raised_because_nothing_was_reached():
    with pytest.raises(EvaluationError, match="raised ZeroDivisionError: no such luck"):
        rp.solve(Faulty(divide, 1).problem(), x0=np.zeros(3))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("where", ["value", "gradient"])
def test_nan_ends_one_start_and_no_other_and_is_never_fed_back(where, late):
    """Beyond x_1 = 1 the function is NaN; it raises if it is ever asked about NaN itself."""

    def value(x):
        assert np.isfinite(x).all()
        bad = x[0] > 1.0 and where == "value"
        return np.nan if bad else float(0.5 * x @ np.diag([1.0, 0.3, 0.2]) @ x)

    def gradient(x):
        assert np.isfinite(x).all()
        g = np.diag([1.0, 0.3, 0.2]) @ x
        return np.full(3, np.nan) if x[0] > 1.0 and where == "gradient" else g

    def drift(x):
        return gradient(x) - (np.array([5.0, 0.0, 0.0]) if x[1] > 1.5 else 0.0)

    f = rp.smooth.Function(value, drift, shapes=3, constant=4.0)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-2.0, 2.0)))
    start = np.array([0.2, 1.9, 0.3]) if late else np.array([1.5, 0.0, 0.0])
    x0 = np.stack([np.array([-1.0, 1.0, 1.0]), start, np.array([0.5, -1.5, 0.5])])
    method = rp.WithoutGuarantee(rp.ProximalGradient())
    result = rp.solve(problem, method, x0=x0, eps=1e-6)
    assert [s.name for s in result.status] == ["CERTIFIED", "NON_FINITE", "CERTIFIED"]
    assert bool(result.iterations[1] > 0) is late
    alone = rp.solve(problem, method, x0=x0[[0, 2]], eps=1e-6)
    assert np.allclose(result.x[[0, 2]], alone.x, rtol=0, atol=1e-12)
    assert np.array_equal(result.iterations[[0, 2]], alone.iterations)
    assert np.isfinite(result.x).all()
    assert "near result.last" in str(rp.solve(problem, method, x0=start))


def test_nan_at_the_start_does_not_disturb_a_relative_eps():
    f = rp.smooth.Function(
        lambda x: np.nan if x[0] > 0 else float(x @ x), lambda x: 2 * x, shapes=2, constant=2.0
    )
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))
    x0 = np.array([[0.5, 0.0], [-0.5, 0.3]])
    result = rp.solve(problem, x0=x0, eps=rp.Relative(1e-6))
    assert [s.name for s in result.status] == ["NON_FINITE", "CERTIFIED"]


def test_an_overflowing_problem_is_not_finite_instead_of_an_exception():
    block = rp.Block(rp.sets.L2Ball(1e10))
    result = rp.solve(rp.Problem(rp.smooth.Quadratic(1e300 * Q, 1e300 * B), block))
    assert result.status is rp.Status.NON_FINITE


@pytest.mark.parametrize("answer", [np.zeros(4), np.zeros(3, dtype=complex), "x", None, [1.0]])
def test_a_gradient_of_the_wrong_kind_is_named(answer):
    f = rp.smooth.Function(lambda x: 0.0, lambda x: answer, shapes=3, constant=1.0)
    with pytest.raises(EvaluationError, match="lambda"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())))


def test_code_that_writes_to_its_argument_is_told_so_and_harms_nothing():
    def gradient(x):
        x[0] = 7.0
        return x

    f = rp.smooth.Function(lambda x: 0.0, gradient, shapes=3, constant=1.0)
    x0 = np.zeros(3)
    with pytest.raises(EvaluationError, match="read-only: write to copies"):
        rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), x0=x0)
    assert np.array_equal(x0, np.zeros(3))


def test_a_certificate_survives_the_code_that_it_took():
    """One start is stationary from the first; later the gradient raises, and goes on raising."""
    faulty = Faulty(divide, 20, forever=True)
    x0 = np.stack([np.array([0.3, -0.2, 0.1]), np.zeros(3), np.array([1.0, -0.2, 0.4])])
    problem = faulty.problem()
    result = rp.solve(problem, rp.ConditionalGradient(), eps=1e-9, x0=x0)
    assert [s.name for s in result.status] == ["ORACLE_FAILED", "CERTIFIED", "ORACLE_FAILED"]
    assert "no such luck" in result.message
    assert np.array_equal(result.x[1], np.zeros(3))
    assert result.gap[1] <= 1e-9
    assert np.isnan(result.gap[[0, 2]]).all()
    assert np.array_equal(result.value, problem.value(result.x))  # that much the code still tells
    assert result.best().certified
    mended = Faulty(divide, 10**9).problem()
    assert result.gap[1] == rp.certify(mended, np.zeros(3)).max


def test_the_last_word_is_that_of_the_certificate_that_is_returned():
    """A gradient that is another one the third time it is asked: what was certified in the run is not any more."""
    asked = []

    def gradient(x):
        asked.append(x)
        return x if len(asked) < 3 else x + 1.0

    f = rp.smooth.Function(lambda x: 0.5 * float(x @ x), gradient, shapes=3, constant=1.0)
    result = rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), x0=np.zeros(3), eps=1e-3)
    assert len(asked) == 3
    assert result.gap >= 3**0.5
    assert result.status is rp.Status.STALLED
    assert not result.certified


def test_a_certificate_of_another_point_is_not_recalled():
    """A refused proposal speaks of the point where it was made, not of the best one that is returned."""
    from restpoint.run.proofs import Proofs

    faulty = Faulty(divide, 3, forever=True)
    problem, proofs = faulty.problem(), Proofs(2)
    xs = (np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]]),)
    proposed, answered = proofs.propose(problem, xs, np.array([0, 1]), 7)
    assert answered.all()
    last, proved = proofs.conclude(problem, xs, np.array([7, 6]))
    assert proved.tolist() == [True, False]
    assert last.max[0] == proposed.max[0]
    assert np.isnan(last.max[1])
    assert isinstance(proofs.error, EvaluationError)


def test_an_exception_at_one_start_costs_the_others_no_certificate():
    def violation(x):
        if x[0] > 0.5:
            raise OSError("disk gone")
        return max(0.0, float(np.max(np.abs(x))) - 1.0)

    block = rp.Block.from_oracle(lambda g: -np.sign(g), diameter=4.0, violation=violation)
    x0 = np.array([[0.1, 0.0], [0.2, 0.3], [-0.4, 0.1]])
    f = rp.smooth.Quadratic(np.diag([-1.0, -1.0]))
    result = rp.solve(rp.Problem(f, block), x0=x0, eps=1e-6)
    assert [s.name for s in result.status] == ["ORACLE_FAILED", "ORACLE_FAILED", "CERTIFIED"]
    assert isinstance(result.error.__cause__, OSError)
    assert result.certificate.kind == "declared oracle"


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"violation": lambda x: 1 / 0}, "violation raised ZeroDivisionError"),
        ({"violation": np.abs}, r"violation returned .* shape \(2,\)"),
        ({"violation": lambda x: "far"}, "violation returned a str"),
        ({"project": lambda x: x[:1]}, r"project returned .* shape \(1,\)"),
    ],
)
def test_code_that_only_certificates_call_fails_at_the_first_of_them(declared, words):
    block = rp.Block.from_oracle(lambda g: -np.sign(g), diameter=4.0, **declared)
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([-1.0, -2.0]), [0.1, 0.2]), block)
    result = rp.solve(problem)
    assert result.status is rp.Status.ORACLE_FAILED
    assert result.iterations <= 2
    assert isinstance(result.error, EvaluationError)
    with pytest.raises(EvaluationError, match=words):
        raise result.error


def test_certificates_that_are_asked_for_one_by_one_are_those_of_the_batch():
    """Also where every start has its own radius."""
    radii = np.array([1.0, 2.0, 3.0])
    calls = []

    def gradient(x):
        calls.append(x)
        if len(calls) == broken:
            raise OSError
        return -x

    f = rp.smooth.Function(
        lambda x: -0.5 * float(x @ x), gradient, shapes=2, concave=True, lower_bound=-9.0
    )
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(radii)))
    x0 = np.stack([radii, 0 * radii], axis=-1)
    broken = 10**9
    plain = rp.solve(problem, x0=x0)
    calls.clear()
    broken = 5  # the second start, in the certificate of the first proposal
    result = rp.solve(problem, x0=x0)
    assert result.certified.all()
    assert np.array_equal(result.gap, plain.gap)
    assert result.error is not None


def test_ctrl_c_in_an_iteration_of_iterate_gives_the_result():
    problem = Faulty(press_ctrl_c, 5).problem()

    def watched():
        result = yield from rp.iterate(
            problem, rp.ConditionalGradient(), eps=1e-9, x0=np.array([0.3, -0.2, 0.1])
        )
        results.append(result)

    results = []
    views = list(watched())
    assert results[0].status is rp.Status.INTERRUPTED
    assert results[0].iterations == views[-1].iteration
    assert results[0].gap == rp.certify(problem, results[0].x).max
