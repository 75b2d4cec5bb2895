"""The one loop: starts, freezing, gathering, budgets, the words that it ends with."""

import copy
import pickle
import time

import numpy as np
import pytest

import restpoint as rp
from loop_cases import ALL_METHODS, SHAPES, ill_conditioned
from method_cases import (
    B,
    Q,
    ball_gap,
    name_of,
    quadratic_problem,
    tensor,
    tensor_problem,
    unit_starts,
)
from restpoint.run import door as door_module
from restpoint.run import loop as loop_module
from restpoint.run.ledger import Rows


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


def test_the_arrays_of_a_result_share_no_memory():
    for x0 in (np.zeros((2, 3)), np.full((2, 3), 0.2)):
        views = []
        result = rp.solve(quadratic_problem(), x0=x0, observers=[views.append])
        assert not np.shares_memory(result.x, result.last[0])
        seen = views[-1].xs[0].copy()
        result.x[...] = result.last[0][...] = 7.0
        assert np.array_equal(views[-1].xs[0], seen)


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
