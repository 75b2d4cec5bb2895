"""Observers and views: what they see, how they end a run, and that they cost it nothing."""

import io

import numpy as np
import pytest

import restpoint as rp
from loop_cases import Faulty, ill_conditioned, press_ctrl_c
from method_cases import (
    quadratic_problem,
)


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


def test_ctrl_c_inside_an_observer_ends_the_run_like_any_other():
    def observer(view):
        if view.iteration == 3:
            raise KeyboardInterrupt

    result = rp.solve(ill_conditioned(), observers=[observer])
    assert result.status is rp.Status.INTERRUPTED
    assert result.iterations == 3


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
