"""The one loop: starts, freezing, gathering, budgets, interruptions, observers, other array libraries."""

import copy
import io
import itertools
import pickle
import time

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    FULL_STEPS,
    METHODS,
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
from restpoint.errors import EvaluationError, NotCertifiedError
from restpoint.run import door as door_module
from restpoint.run import loop as loop_module
from restpoint.run.ledger import Rows

SHAPES = ((3,), (4,), (2,))
ALL_METHODS = METHODS + FULL_STEPS


def ill_conditioned(weight=0.01):
    """A convex quadratic on which proximal steps need some hundred iterations."""
    spectrum = np.diag([1.0, 0.05, 0.01])
    block = rp.Block(rp.sets.L2Ball(3.0), rp.penalties.L1(weight))
    return rp.Problem(rp.smooth.Quadratic(spectrum, [-0.3, 0.1, 0.02]), block)


# --- starts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL_METHODS, ids=name_of)
def test_a_batch_is_its_starts_one_by_one(method):
    problem = tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    x0 = unit_starts(SHAPES, 4)
    stop = rp.Stop(max_iterations=25)
    together = rp.solve(problem, method, x0=x0, stop=stop)
    for k in range(4):
        alone = rp.solve(problem, method, x0=tuple(x[k] for x in x0), stop=stop)
        assert alone.status is together.status[k]
        assert alone.iterations == together.iterations[k]
        for x, y in zip(alone.last, together.last, strict=True):
            assert np.allclose(x, y[k], rtol=0, atol=1e-12)
        for x, y in zip(alone.xs, together.xs, strict=True):
            assert np.allclose(x, y[k], rtol=0, atol=1e-12)
        # Each certificate has its own rounding.
        assert abs(alone.gap - together.gap[k]) <= 1e-12


@pytest.mark.parametrize(
    "method", [*ALL_METHODS, None], ids=lambda m: name_of(m) if m else "default"
)
def test_a_rerun_gives_identical_bits(method):
    problem = tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    runs = [
        rp.solve(problem, method, starts=3, rng=8, stop=rp.Stop(max_iterations=60))
        for _ in range(2)
    ]
    for x, y in zip(runs[0].xs + runs[0].last, runs[1].xs + runs[1].last, strict=True):
        assert np.array_equal(x, y)
    assert np.array_equal(runs[0].trace.value, runs[1].trace.value)
    assert np.array_equal(runs[0].certificate.per_block, runs[1].certificate.per_block)


def test_another_seed_gives_other_starts_and_the_same_seed_the_same():
    problem = quadratic_problem()
    first, again, other = (
        rp.solve(problem, starts=3, rng=seed, stop=rp.Stop(max_iterations=0)).last[0]
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def test_the_first_starts_of_many_are_the_starts_of_few():
    problem = tensor_problem(tensor(3, 4, 2), 0.2)
    many, few = (rp.solve(problem, starts=k) for k in (9, 4))
    for x, y in zip(many.xs, few.xs, strict=True):
        assert np.allclose(x[:4], y, rtol=0, atol=1e-12)
    assert np.array_equal(many.iterations[:4], few.iterations)
    single = rp.solve(problem)
    for x, y in zip(many.xs, single.xs, strict=True):
        assert np.allclose(x[0], y, rtol=0, atol=1e-12)


def test_starts_are_feasible_for_every_set():
    for set_ in (rp.sets.L2Ball(2.0, 1.0), rp.sets.Box(-3.0, -1.0), rp.sets.Simplex(2.0)):
        problem = rp.Problem(rp.smooth.Quadratic(np.eye(4)), rp.Block(set_))
        result = rp.solve(problem, starts=5, stop=rp.Stop(max_iterations=0))
        assert np.all(problem.violation(result.last) <= 1e-14)


def test_a_certified_start_does_not_move_while_others_go_on():
    problem = ill_conditioned()
    solved = rp.solve(problem, eps=1e-9).x
    x0 = np.stack([np.array([2.0, 1.0, -1.0]), solved, np.array([0.0, 0.0, 2.0])])
    points = []
    result = rp.solve(problem, x0=x0, eps=1e-8, observers=[lambda v: points.append(v.xs[0].copy())])
    assert result.certified.all()
    assert result.iterations[1] == 0
    assert result.iterations[0] > 20
    assert all(np.array_equal(point[1], solved) for point in points)
    assert np.array_equal(result.x[1], solved)


def test_gathering_keeps_everything_that_is_known_of_the_survivors():
    rows = Rows.opened(np.arange(1.0, 6.0), np.arange(5))
    for k, name in enumerate(Rows.__dataclass_fields__):
        setattr(rows, name, np.arange(5) + 10 * k)
    taken = rows.take(np.array([4, 1]))
    for k, name in enumerate(Rows.__dataclass_fields__):
        assert np.array_equal(getattr(taken, name), [4 + 10 * k, 1 + 10 * k])


@pytest.mark.parametrize("measure", ["max", "sum"])
def test_gathering_the_survivors_changes_nothing(monkeypatch, measure):
    problem = ill_conditioned()
    solved = rp.solve(problem, eps=1e-9).x
    x0 = np.stack([solved, solved, solved, np.array([2.0, 1.0, -1.0]), solved, np.full(3, 0.5)])
    stop = rp.Stop(measure=measure)
    gathered = rp.solve(problem, x0=x0, eps=1e-8, stop=stop)
    monkeypatch.setattr(loop_module, "GATHER_EVERY", 10**9)
    plain = rp.solve(problem, x0=x0, eps=1e-8, stop=stop)
    assert gathered.iterations.max() > 3 * 16
    assert np.array_equal(gathered.iterations, plain.iterations)
    assert np.array_equal(gathered.status, plain.status)
    assert np.allclose(gathered.x, plain.x, rtol=0, atol=1e-12)
    assert np.allclose(gathered.last[0], plain.last[0], rtol=0, atol=1e-12)
    assert np.allclose(gathered.trace.value, plain.trace.value, rtol=0, atol=1e-12)
    for name in gathered.work:
        assert np.array_equal(gathered.work[name], plain.work[name])


def test_a_regularisation_path_times_starts_is_every_problem_by_itself():
    weights = np.array([0.0, 0.1, 0.5])
    radii = np.array([1.0, 2.0, 0.5])
    f = rp.smooth.Quadratic(Q, B)
    path = rp.Problem(f, rp.Block(rp.sets.L2Ball(radii), rp.penalties.L1(weights)))
    result = rp.solve(path, starts=5, eps=1e-7)
    assert result.status.shape == (3, 5)
    assert result.x.shape == (3, 5, 3)
    assert result.certified.all()
    for i in range(3):
        block = rp.Block(rp.sets.L2Ball(radii[i]), rp.penalties.L1(weights[i]))
        alone = rp.solve(rp.Problem(f, block), starts=5, eps=1e-7)
        assert np.allclose(result.x[i], alone.x, rtol=0, atol=1e-12)
        assert np.array_equal(result.iterations[i], alone.iterations)
        for k in range(5):
            gap = ball_gap(Q @ result.x[i, k] + B, result.x[i, k], weights[i], radii[i])
            assert gap <= 1e-7
    without_starts = rp.solve(path, eps=1e-7)
    assert without_starts.x.shape == (3, 3)
    assert np.allclose(without_starts.x, result.x[:, 0], rtol=0, atol=1e-12)
    from_points = rp.solve(path, x0=np.zeros((3, 2, 3)), eps=1e-7)
    assert from_points.status.shape == (3, 2)


# --- the points given ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS[:6:2], FULL_STEPS[0]], ids=name_of)
def test_x0_is_never_written_to_and_may_be_read_only(method):
    problem = tensor_problem(tensor(3, 4, 2), 0.2)
    x0 = unit_starts(SHAPES, 3)
    for x in x0:
        x.flags.writeable = False
    kept = [x.tobytes() for x in x0]
    result = rp.solve(problem, method, x0=x0, stop=rp.Stop(max_iterations=30))
    assert [x.tobytes() for x in x0] == kept
    assert not any(
        np.shares_memory(x, y) for x, y in itertools.product(x0, result.xs + result.last)
    )


def test_a_result_at_x0_is_not_x0_itself():
    x0 = np.zeros(3)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(3)), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, x0=x0)
    assert result.iterations == 0
    assert not np.shares_memory(result.x, x0)
    given = np.array([0.5, 0.5, 0.0])
    unmoved = rp.solve(problem, x0=given, stop=rp.Stop(max_iterations=0))
    assert np.array_equal(unmoved.x, given)
    assert not np.shares_memory(unmoved.x, given)
    assert not np.shares_memory(unmoved.last[0], given)


def test_lists_and_integers_are_points_too():
    problem = quadratic_problem()
    expected = rp.solve(problem, x0=np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]))
    listed = rp.solve(problem, x0=[[0, 1, 0], [0.5, 0.5, 0]])
    assert np.array_equal(expected.x, listed.x)
    one = rp.solve(problem, x0=[0, 1, 0])
    assert one.x.shape == (3,)
    two = tensor_problem(tensor(2, 3), 0.1)
    blocks = rp.solve(two, x0=[[1, 0], [0, 1, 0]])
    assert [x.shape for x in blocks.xs] == [(2,), (3,)]


def test_one_block_may_be_shared_by_all_starts():
    problem = tensor_problem(tensor(2, 3), 0.1)
    x, y = unit_starts(((2,), (3,)), 4)
    shared = rp.solve(problem, x0=(x, y[0]), stop=rp.Stop(max_iterations=5))
    spread = rp.solve(problem, x0=(x, np.stack([y[0]] * 4)), stop=rp.Stop(max_iterations=5))
    assert all(np.array_equal(a, b) for a, b in zip(shared.last, spread.last, strict=True))


# --- status -------------------------------------------------------------------------------------------


def test_the_best_point_is_kept_not_the_last():
    """On the way from a flat region into a valley the gap grows."""
    result = rp.solve(quadratic_problem(), x0=np.zeros(3), stop=rp.Stop(max_iterations=2))
    gaps = result.trace.gap
    assert not result.certified
    assert gaps[0] < gaps[1] < gaps[2]
    assert np.array_equal(result.x, np.zeros(3))
    assert result.gap == pytest.approx(gaps[0], rel=1e-9)
    assert np.any(result.last[0] != 0)


@pytest.mark.parametrize("observers", [(), [lambda view: None], [rp.Progress()]])
def test_the_time_limit_holds_whether_or_not_anything_watches(observers):
    result = rp.solve(quadratic_problem(), stop=rp.Stop(max_seconds=0), observers=observers)
    assert result.status is rp.Status.TIME_LIMIT
    assert result.iterations == 0
    assert result.gap > 0


@pytest.mark.parametrize("observers", [(), [lambda view: None]])
def test_the_clock_is_read_in_every_iteration(monkeypatch, observers):
    class Clock:
        now = 0.0

        @classmethod
        def monotonic(cls):
            cls.now += 0.25
            return cls.now

    for module in (loop_module, door_module):
        monkeypatch.setattr(module, "time", Clock)
    result = rp.solve(
        ill_conditioned(), eps=1e-12, stop=rp.Stop(max_seconds=20), observers=observers
    )
    assert result.status is rp.Status.TIME_LIMIT
    assert 5 < result.iterations < 80


@pytest.mark.parametrize(
    ("stop", "used"),
    [
        (rp.Stop(max_iterations=7), lambda r: r.iterations),
        (rp.Stop(max_gradients=8), lambda r: r.work["gradients"]),
        (rp.Stop(max_oracle_calls=15), lambda r: r.work["oracle_calls"]),
    ],
    ids=["iterations", "gradients", "oracle calls"],
)
def test_budgets_end_the_run_and_say_so(stop, used):
    result = rp.solve(ill_conditioned(), eps=1e-12, stop=stop, starts=2)
    assert np.all(result.iterations == 7)
    assert np.all(used(result) == used(result)[0])
    assert set(result.status) == {rp.Status.ITERATION_LIMIT}


def test_no_iteration_at_all_is_a_run_that_certifies_its_start():
    problem = quadratic_problem()
    result = rp.solve(problem, x0=np.full(3, 0.1), stop=rp.Stop(max_iterations=0))
    assert result.status is rp.Status.ITERATION_LIMIT
    assert np.array_equal(result.x, np.full(3, 0.1))
    assert result.gap == rp.certify(problem, np.full(3, 0.1)).max


@pytest.mark.parametrize("rule", ["value_change", "relative_value_change"])
def test_value_rules_stall_and_never_certify(rule):
    result = rp.solve(ill_conditioned(), eps=1e-13, stop=rp.Stop(**{rule: 1e-3}), starts=3)
    assert set(result.status) == {rp.Status.STALLED}
    assert np.all(result.gap > 1e-13)
    assert "drop the value rule" in str(result)


def test_a_relative_change_is_one_in_units_of_the_value():
    """Phi has the size 100, its changes are a hundredth of that, relatively."""
    shifted = rp.smooth.Function(
        lambda x: 100.0 + 0.5 * float(x @ np.diag([1.0, 0.05, 0.01]) @ x),
        lambda x: np.diag([1.0, 0.05, 0.01]) @ x,
        shapes=3,
        constant=1.0,
    )
    problem = rp.Problem(shifted, rp.Block(rp.sets.L2Ball(3.0)))
    runs = {
        rule: rp.solve(
            problem, x0=np.array([2.0, 2.0, 0.0]), eps=1e-13, stop=rp.Stop(**{rule: 1e-4})
        )
        for rule in ("value_change", "relative_value_change")
    }
    assert all(run.status is rp.Status.STALLED for run in runs.values())
    changes = np.abs(np.diff(runs["value_change"].trace.value))
    expected = {
        "value_change": int(np.argmax(changes <= 1e-4)) + 1,
        "relative_value_change": int(np.argmax(changes <= 1e-2)) + 1,
    }
    assert {rule: int(run.iterations) for rule, run in runs.items()} == expected
    assert expected["relative_value_change"] < expected["value_change"]


def test_the_target_value_ends_a_start_by_itself():
    x0 = np.stack([np.zeros(3), np.array([0.0, 1.0, 0.0])])
    result = rp.solve(quadratic_problem(), x0=x0, eps=1e-12, stop=rp.Stop(target_value=-1.0))
    assert result.status[1] is rp.Status.TARGET_REACHED
    assert result.iterations[1] == 0
    assert result.iterations[0] > 0


def test_eps_below_the_rounding_floor_ends_as_stalled():
    result = rp.solve(quadratic_problem(), eps=1e-25, starts=3)
    assert set(result.status) == {rp.Status.STALLED}
    assert np.all(result.gap < 1e-12)


# --- what users' code may do --------------------------------------------------------------------------


class Faulty:
    """cos(2x) whose gradient does ``fault`` at its ``when``-th call (and ever after, if ``forever``)."""

    def __init__(self, fault, when, *, forever=False):
        self.fault, self.when, self.forever, self.calls = fault, when, forever, 0

    def problem(self, size=3):
        f = rp.smooth.Function(
            lambda x: float(np.sum(np.cos(2 * x))),
            self.gradient,
            shapes=size,
            constant=4.0,
        )
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(2.0), rp.penalties.L1(0.01)))

    def gradient(self, x):
        self.calls += 1
        if self.calls == self.when or (self.forever and self.calls > self.when):
            self.fault()
        return -2 * np.sin(2 * x)


def press_ctrl_c():
    raise KeyboardInterrupt


def divide():
    raise ZeroDivisionError("no such luck")


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


# --- observers and views ------------------------------------------------------------------------------


def test_iterate_is_the_loop_of_solve_and_returns_its_result():
    problem = ill_conditioned()
    generator, views = rp.iterate(problem, eps=1e-8, starts=3), []
    while True:
        try:
            views.append(next(generator))
        except StopIteration as end:
            iterated = end.value
            break
    solved = rp.solve(problem, eps=1e-8, starts=3)
    assert np.array_equal(iterated.x, solved.x)
    assert np.array_equal(iterated.status, solved.status)
    assert [view.iteration for view in views] == list(range(solved.iterations.max() + 1))
    assert np.array_equal(np.stack([view.value for view in views]), solved.trace.value)
    assert np.array_equal(np.stack([view.gap for view in views]), solved.trace.gap)
    last = views[-1]
    assert not last.active.any()
    assert last.gradients == solved.work["gradients"].max()
    assert last.oracle_calls == solved.work["oracle_calls"].max()
    assert last.samples == 0
    assert 0 <= views[0].seconds <= last.seconds <= solved.seconds + 60


def test_the_arguments_of_iterate_are_checked_at_the_call_not_at_the_first_step():
    with pytest.raises(rp.errors.DataError, match="eps"):
        rp.iterate(quadratic_problem(), eps=0)


def test_views_read_later_are_what_they_were_also_after_gathering():
    problem = ill_conditioned()
    solved = rp.solve(problem, eps=1e-9).x
    x0 = np.stack([solved, solved, solved, np.array([2.0, 1.0, -1.0]), solved, np.full(3, 0.5)])
    views, then = [], []
    for view in rp.iterate(problem, x0=x0, eps=1e-8):
        views.append(view)
        then.append((view.xs[0].copy(), view.step.copy(), view.value.copy()))
    assert len(views) > 3 * 16
    for before, after, (x, step, value) in zip([None, *views], views, then, strict=False):
        assert np.array_equal(after.xs[0], x)
        assert np.array_equal(after.step, step)
        assert np.array_equal(after.value, value)
        if before is not None:
            moved = np.linalg.norm(x - before.xs[0], axis=-1)
            assert np.allclose(step, moved, rtol=1e-12, atol=0)
    assert np.array_equal(views[0].step, np.zeros(6))


def test_views_cannot_be_used_to_change_the_run():
    def vandal(view):
        view.value[...] = -1.0
        view.gap[...] = 0.0
        view.active[...] = False
        with pytest.raises(ValueError, match="read-only"):
            view.xs[0][...] = 0.0

    problem = ill_conditioned()
    watched = rp.solve(problem, starts=3, observers=[vandal])
    assert np.array_equal(watched.x, rp.solve(problem, starts=3).x)
    assert watched.certified.all()


@pytest.mark.parametrize("answer", [True, np.True_, np.array(True)])
def test_an_observer_ends_the_run_by_returning_true(answer):
    result = rp.solve(
        ill_conditioned(),
        starts=2,
        observers=[lambda view: answer if view.iteration == 3 else None],
    )
    assert np.all(result.iterations == 3)
    assert set(result.status) == {rp.Status.INTERRUPTED}
    assert result.message == "an observer ended the run"


def test_whatever_else_an_observer_returns_is_ignored():
    for answer in (1, "yes", [0], {}, np.ones(3)):
        result = rp.solve(quadratic_problem(), observers=[lambda view, answer=answer: answer])
        assert result.certified.all()


def test_an_observer_that_returns_one_verdict_a_start_is_told_to_reduce_it():
    result = rp.solve(quadratic_problem(), starts=3, observers=[lambda view: view.gap < 0])
    assert set(result.status) == {rp.Status.ORACLE_FAILED}
    assert ".all() or .any()" in result.message


def test_an_observer_that_raises_does_not_cost_the_run():
    def observer(view):
        if view.iteration == 2:
            raise RuntimeError("disk full")

    result = rp.solve(ill_conditioned(), observers=[observer])
    assert result.status is rp.Status.ORACLE_FAILED
    assert str(result.error) == "disk full"
    assert np.isfinite(result.gap)


def test_every_observer_sees_every_iteration_and_is_closed():
    class Closing:
        def __init__(self):
            self.seen, self.closed = [], 0

        def __call__(self, view):
            self.seen.append(view.iteration)

        def close(self):
            self.closed += 1

    first, second = Closing(), Closing()
    result = rp.solve(ill_conditioned(), observers=[first, second])
    assert first.seen == second.seen == list(range(result.iterations + 1))
    assert first.closed == second.closed == 1
    third = Closing()
    generator = rp.iterate(ill_conditioned(), observers=[third])
    next(generator)
    generator.close()
    assert third.closed == 1


def test_the_trace_has_the_first_and_the_last_iteration_and_is_thinned_evenly(monkeypatch):
    monkeypatch.setattr(type(rp.solve(quadratic_problem()).trace), "LIMIT", 100)
    result = rp.solve(
        ill_conditioned(), eps=1e-25, starts=2, stop=rp.Stop(max_iterations=301, patience=None)
    )
    trace = result.trace
    assert 50 <= len(trace) <= 101
    assert trace.iteration[0] == 0
    assert trace.iteration[-1] == result.iterations.max() > 204
    steps = np.diff(trace.iteration)[:-1]
    assert np.all(steps == steps[0])
    assert trace.value.shape == trace.gap.shape == (len(trace), 2)
    assert np.all(np.diff(trace.seconds) >= 0)
    assert np.all(np.diff(trace.gradients) > 0)


def test_the_progress_bar_is_silent_where_there_is_no_terminal(capsys):
    rp.solve(quadratic_problem(), observers=[rp.Progress()])
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("starts", [None, 4])
def test_the_progress_bar_shows_gap_and_running_starts_on_a_terminal(starts):
    from rich.console import Console

    stream = io.StringIO()
    bar = rp.Progress(Console(force_terminal=True, file=stream, width=100))
    for _ in range(2):  # the same bar serves two runs
        assert rp.solve(ill_conditioned(), starts=starts, observers=[bar]).certified.all()
    assert "gap" in stream.getvalue()
    assert f"/{starts or 1} running" in stream.getvalue()


def test_the_progress_bar_survives_an_interruption():
    from rich.console import Console

    bar = rp.Progress(Console(force_terminal=True, file=io.StringIO(), width=100))
    problem = Faulty(press_ctrl_c, 3).problem()
    result = rp.solve(problem, eps=1e-13, x0=np.full(3, 0.3), observers=[bar])
    assert result.status is rp.Status.INTERRUPTED


# --- units, dtypes, libraries -------------------------------------------------------------------------


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


# --- copies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_problems_methods_and_results_can_be_copied_and_pickled(duplicate):
    problem = tensor_problem(tensor(3, 2), np.array([0.1, 0.3]))
    method = rp.ProximalGradient(rp.GaussSeidel(), rp.Majorant((1.0, 2.0)))
    result = rp.solve(problem, method, starts=3)
    again = rp.solve(duplicate(problem), duplicate(method), starts=3)
    assert duplicate(method) == method
    twin = duplicate(result)
    for x, y, z in zip(result.xs, again.xs, twin.xs, strict=True):
        assert np.array_equal(x, y)
        assert np.array_equal(x, z)
    assert str(twin) == str(result)
    assert np.array_equal(twin.status, result.status)
    assert all(a is b for a, b in zip(twin.status.flat, result.status.flat, strict=True))
    assert np.array_equal(rp.certify(twin.problem, twin.xs).max, result.gap)


# --- gathering once more: parameters that carry a batch, other libraries -------------------------------


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


def test_ctrl_c_inside_an_observer_ends_the_run_like_any_other():
    def observer(view):
        if view.iteration == 3:
            raise KeyboardInterrupt

    result = rp.solve(ill_conditioned(), observers=[observer])
    assert result.status is rp.Status.INTERRUPTED
    assert result.iterations == 3


def test_the_feasibility_that_is_asked_for_is_that_of_x0_and_of_the_certificate():
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
    x0 = np.array([1.0 + 1e-4, 0.0])
    with pytest.raises(rp.errors.DataError, match="lies outside L2Ball"):
        rp.solve(problem, x0=x0)
    loose = rp.solve(problem, x0=x0, eps=1e-3, stop=rp.Stop(feasibility=1e-3))
    assert loose.status is rp.Status.CERTIFIED
    assert loose.certificate.violation <= 1e-15  # let in, and projected
    unprojected = rp.Block.from_oracle(
        lambda g: -g / np.linalg.norm(g),
        diameter=2.0,
        violation=lambda x: max(0.0, float(np.linalg.norm(x)) - 1.0),
    )
    left = rp.solve(
        rp.Problem(problem.smooth, unprojected), x0=x0, eps=1e-3, stop=rp.Stop(feasibility=1e-3)
    )
    assert left.status is rp.Status.CERTIFIED
    assert left.certificate.violation == pytest.approx(1e-4, rel=1e-9)


def test_a_start_that_the_tolerance_let_in_does_not_disprove_what_holds_on_the_set():
    """The constant of sum x^p on the orthant fails for x = -4e-13, where the slope is not what it is at 0."""
    f = rp.smooth.Sum(rp.smooth.PowerSum(1.01, shape=1), rp.smooth.Quadratic([[0.0]], [-0.5]))
    problem = rp.Problem(f, rp.Block(rp.sets.Box(0.0, 1.0)))
    x0 = np.array([[-4e-13], [0.5], [-1e-300]])
    kept = x0.copy()
    for method in (rp.ConditionalGradient(), rp.ProximalGradient()):
        result = rp.solve(problem, method, x0=x0, stop=rp.Stop(max_iterations=50))
        assert result.bound.withdrawn is None
    assert np.array_equal(x0, kept)
    first = rp.solve(problem, x0=x0, stop=rp.Stop(max_iterations=0))
    assert np.array_equal(first.x, [[0.0], [0.5], [0.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "s", [rp.sets.Simplex(3.0), rp.sets.L2Ball(2.0, 0.1), rp.sets.Box(-0.3, 0.7)]
)
def test_feasible_starts_are_kept_bit_by_bit(s, dtype):
    rng = np.random.default_rng(0)
    x0 = np.stack([s.sample(rng, (7,)) for _ in range(200)]).astype(dtype)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(7, dtype=dtype)), rp.Block(s))
    result = rp.solve(problem, x0=x0, stop=rp.Stop(max_iterations=0))
    assert result.x.tobytes() == x0.tobytes()
    moved = x0 * (1.0 + 20 * np.finfo(dtype).eps) + dtype(20 * np.finfo(dtype).eps)
    back = rp.solve(problem, x0=moved, stop=rp.Stop(max_iterations=0, feasibility=1e-4)).x
    assert np.all(s.converted(back).inside(back))


# --- code that stops answering --------------------------------------------------------------------------


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


def test_the_arrays_of_a_result_share_no_memory():
    for x0 in (np.zeros((2, 3)), np.full((2, 3), 0.2)):
        views = []
        result = rp.solve(quadratic_problem(), x0=x0, observers=[views.append])
        assert not np.shares_memory(result.x, result.last[0])
        seen = views[-1].xs[0].copy()
        result.x[...] = result.last[0][...] = 7.0
        assert np.array_equal(views[-1].xs[0], seen)


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


class SlowFacts(rp.smooth.Quadratic):
    """A quadratic whose constants take their time."""

    def facts(self, sets):
        time.sleep(0.02)
        return super().facts(sets)


def test_the_clock_runs_from_the_call_on():
    problem = rp.Problem(SlowFacts(Q, B), rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, stop=rp.Stop(max_seconds=0.015))
    assert result.status is rp.Status.TIME_LIMIT
    assert result.iterations == 0
    assert result.seconds >= 0.02
    view = next(rp.iterate(problem))
    assert view.seconds >= 0.02


def raise_disk_full():
    raise OSError("disk full")


@pytest.mark.parametrize(
    ("close", "message"), [(raise_disk_full, "OSError: disk full"), (3.5, ""), (None, "")]
)
def test_an_observer_that_cannot_be_closed_costs_nothing(close, message):
    def observer(view):
        pass

    observer.close = close
    result = rp.solve(quadratic_problem(), observers=[observer])
    assert result.certified
    assert result.message == message
