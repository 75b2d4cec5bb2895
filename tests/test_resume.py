"""Runs that are interrupted and resumed: bit by bit the runs that they would have been."""

import dataclasses
import errno
import os
import shutil
import warnings

import numpy as np
import pytest

import restpoint as rp
from method_cases import (
    FULL_STEPS,
    METHODS,
    B,
    Q,
    cosine,
    name_of,
    quadratic_problem,
    tensor,
    tensor_problem,
    unit_starts,
)
from restpoint.errors import (
    CapabilityError,
    DataError,
    EvaluationError,
    GuaranteeWarning,
    StorageError,
)
from restpoint.run import archive
from resume_cases import LONG, Along, Cosines, Slowing, differing, kill_when, run_in_a_process

BALL = rp.Block(rp.sets.L2Ball())


@pytest.fixture
def along(tmp_path):
    return Along(tmp_path)


def check_all(along, problem, method=None, *, again=None, **more):
    """Solve, with and without checkpoints, and resume from every copy, with a problem built anew."""
    whole = along.solve(problem, method, **more)
    assert differing(whole, rp.solve(problem, method, **more)) == []
    assert len(along.copies) >= 2
    for copy in along.copies.values():
        resumed = rp.resume(copy, problem if again is None else again())
        assert differing(resumed, whole) == []
    return whole


# --- bit by bit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [*METHODS, *FULL_STEPS, None], ids=lambda m: name_of(m) if m else "default"
)
def test_every_method_of_the_grid_goes_on_where_it_was(along, method):
    def problem():
        return tensor_problem(tensor(3, 4, 2, seed=6), 0.2)

    stop = rp.Stop(max_iterations=15)
    check_all(along, problem(), method, starts=5, stop=stop, again=problem)


RULES = {
    "momentum": None,
    "continuation": rp.Continuation(rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep())),
    "continuation of momentum": rp.Continuation(
        rp.ConditionalGradient(rp.GaussSeidel(repeats=2, momentum=0.75), rp.FullStep())
    ),
    "doubling": rp.ProximalGradient(rp.GaussSeidel(), rp.Doubling(initial=0.1)),
    "doubling together": rp.ConditionalGradient(rp.Jacobi(), rp.Doubling(initial=0.1)),
    "doubling from what was seen": rp.ProximalGradient(rp.GaussSeidel(), rp.Doubling()),
    "universal": rp.ProximalGradient(rp.GaussSeidel(), rp.Universal()),
    "armijo": rp.ConditionalGradient(rp.Jacobi(), rp.Armijo()),
    "without guarantee": rp.WithoutGuarantee(rp.ProximalGradient(rp.Jacobi(), rp.Majorant(2.0))),
}
LARGE = tensor(12, 11, 13, 14, seed=3)  # beyond the size below which nothing is kept of zeros


@pytest.mark.parametrize(
    ("rule", "starts"), [*((rule, 5) for rule in RULES), ("momentum", None), ("doubling", None)]
)
def test_memories_trails_and_kept_products_are_kept(along, rule, starts):
    problem = tensor_problem(LARGE, 0.9)
    stop = rp.Stop(max_iterations=20)
    along.at = (2, 13)
    check_all(
        along,
        problem,
        RULES[rule],
        starts=starts,
        stop=stop,
        again=lambda: tensor_problem(LARGE.copy(), 0.9),
    )


def test_survivors_stay_gathered_and_the_retired_retired(along):
    along.at = (3, 4, 5, 8, 9, 14)
    stop = rp.Stop(max_iterations=60, retire=rp.Retire(every=4))
    whole = check_all(along, tensor_problem(LARGE, 0.9), starts=12, stop=stop)
    names = {status.name for status in whole.status}
    assert {"CERTIFIED", "RETIRED"} <= names
    assert len(set(whole.iterations)) > 4


PLAIN = rp.ConditionalGradient(smoothness=rp.FullStep())


@pytest.mark.parametrize(
    "method",
    [PLAIN, rp.Momentum(PLAIN), rp.Momentum(PLAIN, memory=3), rp.Momentum(PLAIN, burst=3)],
    ids=["plain", "momentum", "longer memory", "burst"],
)
@pytest.mark.parametrize("kind", ["null space", "analysis"])
def test_oracles_that_iterate_go_on_where_they_were(along, kind, method):
    """Discriminant problems in features and in samples: the hints of answers, inexact ones too, are in the file."""
    rng = np.random.default_rng(5)
    F = rng.standard_normal((80, 3)) * np.array([2.0, 1.5, 1.0])
    Q = np.linalg.qr(rng.standard_normal((80, 12)))[0]
    K = np.linalg.qr(rng.standard_normal((160, 80)))[0]

    def problem():
        f = rp.smooth.ConcaveQuadratic(F.copy())
        if kind == "analysis":
            return rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.AnalysisL1(K, 3.0)))
        return rp.Problem(f, rp.Block(rp.sets.NullSpaceBall(Q.copy()), rp.penalties.L1(5.0)))

    x0 = np.stack(problem().project(rng.standard_normal((4, 80))))[0]
    along.at = (0, 1, 2, 3, 5, 8)
    whole = check_all(along, problem(), method, x0=x0, eps=1e-9, again=problem)
    assert whole.certified.all()
    assert np.any(whole.x != 0.0)


def test_parameters_of_a_batch_follow_the_survivors(along):
    weights, radii = np.array([0.0, 0.1, 0.5]), np.array([1.0, 2.0, 0.5])
    centres = np.arange(9.0).reshape(3, 3).T / 10.0  # in the order of Fortran
    for ball, penalty in (
        (rp.sets.L2Ball(radii), rp.penalties.L1(weights)),
        (rp.sets.L2Ball(radii, centres), None),
    ):
        problem = rp.Problem(rp.smooth.Quadratic(Q, B), rp.Block(ball, penalty))
        along.at = (1, 3, 4, 5)
        whole = check_all(along, problem, rp.ProximalGradient(), starts=5, eps=1e-12)
        assert whole.status.shape == (3, 5)
        assert len(set(whole.iterations.reshape(-1))) > 2


def test_float32_points_and_float32_data(along):
    A, shapes = LARGE.astype(np.float32), [(n,) for n in LARGE.shape]
    x0 = unit_starts(shapes, 6)
    small = tuple(x.astype(np.float32) for x in x0)
    whole = check_all(along, tensor_problem(A, 0.9), x0=small, eps=1e-3)
    assert whole.xs[0].dtype == np.float32
    stop = rp.Stop(max_iterations=30)
    whole = check_all(along, tensor_problem(A, 0.9), x0=x0, eps=rp.Relative(1e-6), stop=stop)
    assert whole.xs[0].dtype == np.float64


def test_sampled_gradients_draw_what_they_would_have_drawn(along):
    rng = np.random.default_rng(0)
    f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
    stop = rp.Stop(max_iterations=19)
    check_all(along, rp.Problem(f, BALL), rp.paper.algorithm(3, 40.0, m=3), starts=6, stop=stop)
    g = rp.smooth.Function(
        lambda x: -float(np.sum(np.abs(x))),
        lambda x: -np.sign(x),
        shapes=3,
        concave=True,
        differentiable=False,
    )
    problem = rp.Problem(
        rp.smooth.Sum(rp.smooth.Quadratic(Q, B), g), rp.Block(rp.sets.Box(-1.0, 1.0))
    )
    method = rp.paper.algorithm(4, 10.0, m=3, radius=0.1)
    check_all(along, problem, method, starts=6, stop=stop)


def functions():
    """Functions that keep something along a sweep, each built anew on every call."""
    rng = np.random.default_rng(5)
    X, values = rng.standard_normal((200, 6)), rng.standard_normal(300)
    places, holes = rng.integers(0, 20, (3, 300)), tensor(6, 5, 4, seed=2)
    holes[0, 1, 2] = np.nan
    backward = np.asfortranarray(LARGE)[:, ::-1]
    factors = [rng.standard_normal((7, 4)) for _ in range(3)]
    return {
        "backward tensor": rp.smooth.Multilinear(backward),
        "tied tensor": rp.smooth.Multilinear(tensor(6, 6, 5), tied=(0, 0, 1)),
        "polyadic with holes": rp.smooth.CanonicalPolyadic(holes, [2.0, 1.0]),
        "cumulant": rp.smooth.MomentTensor(X, 4, cumulant=True, whiten=True),
        "tied cumulant": rp.smooth.MomentTensor(X, 4, cumulant=True, tied=(0, 0, 1, 1)),
        "sparse": rp.smooth.SparseTensor(places, values, (20, 20, 20)),
        "factored": rp.smooth.FactoredTensor((np.arange(1.0, 5.0), factors)),
        "sum": rp.smooth.Sum(rp.smooth.Multilinear(LARGE), rp.smooth.Multilinear(backward)),
    }


@pytest.mark.parametrize("name", functions())
def test_whatever_f_keeps_along_a_sweep_is_kept(along, name):
    def problem():
        f = functions()[name]
        return rp.Problem(f, [rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.01))] * len(f.shapes))

    tied = "tied" in name
    method = rp.ProximalGradient() if tied else None
    along.at = (1, 5)
    stop = rp.Stop(max_iterations=12)
    check_all(along, problem(), method, starts=3, eps=1e-11, stop=stop, again=problem)


def test_rows_that_are_not_a_number_leave_the_run_as_they_would_have(along):
    f = rp.smooth.Function(
        lambda x: float(np.sum(np.cos(2 * x))) if x[0] < 0.9 else np.nan,
        lambda x: -2 * np.sin(2 * x),
        shapes=3,
        constant=4.0,
    )
    along.at = tuple(range(9))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(2.0)))
    whole = check_all(along, problem, rp.ProximalGradient(), starts=12, eps=1e-10)
    assert {"NON_FINITE", "CERTIFIED"} <= {status.name for status in whole.status}


def test_a_thinned_trace_stays_as_thin(along, monkeypatch):
    monkeypatch.setattr(type(rp.solve(quadratic_problem()).trace), "LIMIT", 60)
    along.at = (59, 60, 61, 100, 130)
    block = rp.Block(rp.sets.Simplex())
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, 2.0, 3.0])), block)
    method, stop = rp.ConditionalGradient(smoothness=rp.Majorant(20.0)), rp.Stop(max_iterations=150)
    whole = check_all(along, problem, method, starts=2, eps=1e-12, stop=stop)
    assert whole.iterations.max() == 150
    assert len(whole.trace) <= 61


@pytest.mark.backends
def test_arrays_of_other_libraries_come_back_as_such(along, xp):
    def problem():
        return tensor_problem(xp.asarray(tensor(5, 6, 7)), 0.5)

    method = rp.ProximalGradient(rp.GaussSeidel(), rp.Majorant(30.0))
    along.at = (0, 3, 9)
    stop = rp.Stop(max_iterations=20)
    whole = check_all(along, problem(), method, starts=4, stop=stop, again=problem)
    assert type(rp.resume(along.folder / "run-3", problem()).xs[0]) is type(whole.xs[0])


def test_a_memory_that_nobody_foresaw_needs_no_line_of_code(along):
    method = rp.ProximalGradient(rp.Jacobi(), Slowing())
    problem = tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    stop = rp.Stop(max_iterations=20)
    whole = along.solve(problem, method, starts=5, eps=1e-9, stop=stop)
    assert len(along.copies) == 6
    for copy in along.copies.values():
        assert differing(rp.resume(copy, problem, method=method), whole) == []
    with pytest.raises(StorageError, match=r"Slowing of the module resume_cases.*method="):
        rp.resume(along.copies[2], problem)


def test_a_method_that_cannot_be_written_is_named_at_once(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Hidden(Slowing):
        pass

    method = rp.ProximalGradient(rp.Jacobi(), Hidden())
    problem = tensor_problem(tensor(3, 4), 0.2)
    result = rp.solve(problem, method, observers=[rp.Checkpoint(tmp_path / "run")])
    assert result.iterations == 0
    assert "the run.method.smoothness is a Hidden, a class made inside a function" in str(result)
    method = rp.ProximalGradient(rp.Jacobi(), Slowing(lambda: 3.0))
    problem = tensor_problem(tensor(3, 4), 0.2)
    with pytest.raises(TypeError):
        rp.solve(problem, method)


# --- the ways in which runs end -----------------------------------------------------------------------


class Interrupting(Cosines):
    """Raises at some call of the gradient."""

    def __init__(self, when, error):
        super().__init__()
        self.when, self.error = when, error

    def gradient(self, x):
        self.calls += 1
        if self.calls == self.when:
            raise self.error
        return -self.a * np.sin(self.a * x)


@pytest.mark.parametrize("when", [4, 5, 6, 20, 50, 51, 52])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("no such luck")])
def test_ctrl_c_and_exceptions_leave_the_last_whole_iteration(tmp_path, when, error):
    path = tmp_path / "run"
    whole = rp.solve(Interrupting(None, None).problem(), **LONG)
    problem = Interrupting(when, error).problem()
    part = rp.solve(problem, observers=[rp.Checkpoint(path)], **LONG)
    assert {status.name for status in part.status} <= {"INTERRUPTED", "ORACLE_FAILED", "CERTIFIED"}
    resumed = rp.resume(path, Interrupting(None, None).problem())
    assert differing(resumed, whole) == []


@pytest.mark.parametrize("first", [True, False])
def test_an_observer_that_ends_the_run_ends_this_part_of_it(tmp_path, first):
    checkpoint = rp.Checkpoint(tmp_path / "run")

    def end(view):
        return view.iteration == 7

    observers = [end, checkpoint] if first else [checkpoint, end]
    part = rp.solve(Cosines().problem(), observers=observers, **LONG)
    assert set(part.iterations) == {7}
    whole = rp.solve(Cosines().problem(), **LONG)
    assert differing(rp.resume(tmp_path / "run", Cosines().problem()), whole) == []


def test_a_generator_that_is_abandoned_leaves_a_checkpoint(tmp_path):
    generator = rp.iterate(Cosines().problem(), observers=[rp.Checkpoint(tmp_path / "run")], **LONG)
    for _ in range(5):
        view = next(generator)
    generator.close()
    seen = []
    rp.resume(tmp_path / "run", Cosines().problem(), observers=[seen.append])
    assert seen[0].iteration == view.iteration == 4


def test_a_run_in_many_parts_is_one_run(tmp_path):
    problem, path = tensor_problem(LARGE, 0.9), tmp_path / "run"
    whole = rp.solve(problem, starts=6, stop=rp.Stop(max_iterations=30))
    rp.solve(problem, starts=6, stop=rp.Stop(max_iterations=2), observers=[rp.Checkpoint(path)])
    for most in (3, 4, 9, 21):
        part = rp.resume(
            path, problem, stop=rp.Stop(max_iterations=most), observers=[rp.Checkpoint(path)]
        )
        assert part.iterations.max() == most
    assert differing(rp.resume(path, problem, stop=rp.Stop(max_iterations=30)), whole) == []


# --- other rules --------------------------------------------------------------------------------------


def finished(path, problem, method=None, **more):
    return rp.solve(problem, method, observers=[rp.Checkpoint(path)], **more)


def test_a_finished_run_gives_its_result_again(tmp_path):
    problem = tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    result = finished(tmp_path / "run", problem, starts=6)
    assert result.certified.all()
    for _ in range(2):
        again = rp.resume(tmp_path / "run", problem, observers=[rp.Checkpoint(tmp_path / "run")])
        assert differing(again, result) == []


@pytest.mark.parametrize(
    "budget", [{"max_iterations": 12}, {"max_gradients": 9.0}, {"max_oracle_calls": 40.0}]
)
def test_a_larger_budget_is_the_run_that_had_it_from_the_beginning(tmp_path, budget):
    problem = tensor_problem(LARGE, 0.9)
    part = finished(tmp_path / "run", problem, starts=6, stop=rp.Stop(**budget))
    assert "ITERATION_LIMIT" in {status.name for status in part.status}
    again = rp.resume(tmp_path / "run", problem)
    assert differing(again, part) == []
    more = rp.Stop(max_iterations=40)
    whole = rp.solve(problem, starts=6, stop=more)
    assert differing(rp.resume(tmp_path / "run", problem, stop=more), whole) == []


def test_seconds_count_anew_unless_all_shall_count(tmp_path, monkeypatch):
    from restpoint.run import loop as loop_module

    clock = [1000.0]
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: clock[0])
    path, problem = tmp_path / "run", Cosines().problem()

    def tick(view):
        clock[0] += 1.0

    more = {**LONG, "stop": rp.Stop(max_iterations=60, max_seconds=10.0)}
    observers = [rp.Checkpoint(path, every_seconds=None), tick]
    part = rp.solve(problem, observers=observers, **more)
    assert {status.name for status in part.status} == {"TIME_LIMIT"}
    assert part.iterations.max() == 10
    shutil.copy(path, tmp_path / "first")
    part = rp.resume(path, problem, observers=observers)
    assert part.iterations.max() == 20
    assert part.seconds >= 20.0
    assert np.all(np.diff(part.trace.seconds) >= 0)
    ended = rp.resume(tmp_path / "first", problem, total_seconds=True)
    assert differing(ended, rp.solve(problem, observers=[tick], **more)) == []
    stop = rp.Stop(max_iterations=60, max_seconds=15.0)
    some = rp.resume(tmp_path / "first", problem, stop=stop, total_seconds=True, observers=[tick])
    assert 14 <= some.iterations.max() <= 15
    whole = rp.resume(tmp_path / "first", problem, stop=rp.Stop(max_iterations=60))
    assert differing(whole, rp.solve(problem, **LONG)) == []


def test_a_smaller_eps_goes_on_with_all_starts(tmp_path):
    problem = tensor_problem(LARGE, 0.9)
    rough = finished(tmp_path / "run", problem, starts=6, eps=1e-2)
    assert rough.certified.all()
    assert len(set(rough.iterations)) > 2  # some had been gathered away
    fine = rp.resume(tmp_path / "run", problem, eps=1e-8)
    assert fine.certified.all()
    assert np.all(fine.gap <= 1e-8)
    assert np.all(fine.eps == 1e-8)
    assert fine.bound.withdrawn is None
    assert np.all(fine.value <= rough.value)
    assert np.all(fine.iterations >= rough.iterations)
    assert fine.trace.iteration[0] == 0
    assert np.all(np.diff(fine.trace.iteration) > 0)
    # What passed while a start had ended already does not count for it.
    last, more = rough.iterations.max(), fine.iterations - rough.iterations
    assert np.all(more <= fine.trace.iteration[-1] - last)
    spent = fine.work["gradients"] - rough.work["gradients"]
    assert np.all(spent <= 1.5 * more + 2.0)


def test_a_start_that_is_at_rest_anyway_takes_no_further_step(tmp_path):
    problem, path = quadratic_problem(), tmp_path / "run"
    still = rp.solve(problem, eps=1e-9).x
    x0 = np.stack([still, np.array([0.6, -0.2, 0.3])])
    rough = finished(path, problem, rp.ConditionalGradient(), x0=x0, eps=1e-2)
    assert rough.iterations[0] == 0 < rough.iterations[1]
    fine = rp.resume(path, problem, eps=1e-4, observers=[rp.Checkpoint(path)])
    assert fine.certified.all()
    assert fine.iterations[0] == 0
    assert fine.work["gradients"][0] <= 3.0
    assert np.array_equal(fine.x[0], still)
    finer = rp.resume(path, problem, eps=1e-6)
    assert finer.certified.all()
    assert finer.iterations[0] == 0 < fine.iterations[1] < finer.iterations[1]


@pytest.mark.parametrize("rule", ["continuation", "doubling", "armijo"])
def test_memories_that_begin_anew_withdraw_the_bound(tmp_path, rule):
    problem = tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    rough = finished(tmp_path / "run", problem, RULES[rule], starts=12, eps=1e-3)
    assert rough.certified.all()
    fine = rp.resume(tmp_path / "run", problem, eps=1e-5)
    assert fine.certified.all()
    assert "what the method remembers of all starts began anew" in fine.bound.withdrawn
    assert np.all(fine.value <= rough.value + 1e-12)  # no stage leads away again


def test_a_smaller_eps_before_any_start_has_ended_is_the_run_that_had_it(tmp_path):
    problem = tensor_problem(LARGE, 0.9)
    stop = rp.Stop(max_iterations=3)
    finished(tmp_path / "run", problem, starts=4, eps=1e-2, stop=stop)
    fine = rp.resume(tmp_path / "run", problem, eps=1e-7, stop=rp.Stop())
    assert differing(fine, rp.solve(problem, starts=4, eps=1e-7)) == []


def test_a_larger_eps_certifies_at_once_what_it_can(tmp_path):
    problem = tensor_problem(LARGE, 0.9)
    part = finished(tmp_path / "run", problem, starts=4, eps=1e-9, stop=rp.Stop(max_iterations=8))
    assert not part.certified.any()
    eps = float(np.sort(part.trace.gap[-1])[1]) * 1.001
    rough = rp.resume(tmp_path / "run", problem, eps=eps)
    assert rough.certified.sum() >= 2
    assert rough.iterations.max() <= 8
    further = rp.resume(tmp_path / "run", problem, eps=eps, stop=rp.Stop(max_iterations=9))
    assert np.all(further.iterations[part.trace.gap[-1] <= eps * 0.999] == 8)


def test_a_rule_that_is_dropped_no_longer_ends_a_start(tmp_path):
    problem, path = quadratic_problem(), tmp_path / "run"
    lowest = float(rp.solve(problem, eps=1e-9).value)
    part = finished(path, problem, starts=5, eps=1e-9, stop=rp.Stop(target_value=lowest + 0.1))
    assert {status.name for status in part.status} == {"TARGET_REACHED"}
    assert differing(rp.resume(path, problem), part) == []
    fine = rp.resume(path, problem, stop=rp.Stop())
    assert fine.certified.all()
    part = finished(path, problem, starts=5, eps=1e-9, stop=rp.Stop(value_change=1e-2))
    assert "STALLED" in {status.name for status in part.status}
    assert rp.resume(path, problem, stop=rp.Stop()).certified.all()


def test_retiring_may_begin_or_end_later(tmp_path):
    problem, path = tensor_problem(LARGE, 0.9), tmp_path / "run"
    rule = rp.Retire(every=4)
    finished(path, problem, starts=12, stop=rp.Stop(max_iterations=5))
    fewer = rp.resume(path, problem, stop=rp.Stop(max_iterations=60, retire=rule))
    assert "RETIRED" in {status.name for status in fewer.status}
    finished(path, problem, starts=12, stop=rp.Stop(max_iterations=5, retire=rule))
    other = rp.Retire(every=4, closeness=None, prospect=None)
    for stop in (rp.Stop(max_iterations=60), rp.Stop(max_iterations=60, retire=other)):
        every = rp.resume(path, problem, stop=stop)
        retired = [status.name for status in every.status].count("RETIRED")
        assert retired < [status.name for status in fewer.status].count("RETIRED")


# --- what is refused ----------------------------------------------------------------------------------


def test_another_problem_is_refused_by_name(tmp_path):
    path, A = tmp_path / "run", tensor(3, 4, 2, seed=6)
    finished(path, tensor_problem(A, 0.2), starts=2, stop=rp.Stop(max_iterations=2))
    other = A.copy()
    other[2, 3, 1] = np.nextafter(other[2, 3, 1], 9.0)
    ball, l1 = rp.sets.L2Ball, rp.penalties.L1
    cases = {
        r"smooth\.kernel\.tensor has other entries": tensor_problem(other, 0.2),
        r"tensor is float32 \(3, 4, 2\), but was float64": tensor_problem(
            A.astype(np.float32), 0.2
        ),
        r"tensor is float64 \(3, 5, 2\), but was float64 \(3, 4, 2\)": tensor_problem(
            tensor(3, 5, 2), 0.2
        ),
        r"blocks\[0\]\.penalty\.weight is 0\.3, but was 0\.2; .*blocks\[2\]": tensor_problem(
            A, 0.3
        ),
        r"checkpoint .*: blocks\[1\]\.set\.radius is 2\.0, but was 1\.0; give": rp.Problem(
            rp.smooth.Multilinear(A),
            [rp.Block(ball(r), l1(0.2)) for r in (1.0, 2.0, 1.0)],
        ),
        r"smooth\.sign is 1\.0, but was -1\.0": rp.Problem(
            rp.smooth.Multilinear(A, sign=1.0), [rp.Block(ball(), l1(0.2))] * 3
        ),
        r"blocks is tuple of 1, but was tuple of 3": quadratic_problem(),
    }
    for words, problem in cases.items():
        with pytest.raises(DataError, match=words):
            rp.resume(path, problem)
    with pytest.raises(DataError, match=r"problem must be a restpoint\.Problem, got ndarray"):
        rp.resume(path, A)
    assert rp.resume(path, tensor_problem(A.copy(), 0.2)).iterations.max() == 2


def test_a_function_of_the_same_name_that_answers_otherwise_is_refused(tmp_path):
    path = tmp_path / "run"

    def problem(sign, scale=1.0, flip=1.0):
        f = rp.smooth.Function(
            lambda x: sign * float(np.sum(np.cos(2 * x))),
            lambda x: -2 * sign * scale * np.sin(2 * x),
            shapes=3,
            constant=4.0,
        )
        block = rp.Block.from_oracle(
            lambda g: -flip * g / np.linalg.norm(g), diameter=2.0, project=lambda x: x
        )
        return rp.Problem(f, block)

    finished(path, problem(1.0), starts=3, eps=1e-9, stop=rp.Stop(max_iterations=4))
    assert rp.resume(path, problem(1.0)).iterations.max() == 4
    with pytest.raises(DataError, match=r"at the points reached Phi of start \d is .*, and was"):
        rp.resume(path, problem(-1.0))
    with pytest.raises(DataError, match=r"the gap of start \d is .*f, or an oracle, is another"):
        rp.resume(path, problem(1.0, scale=1.1))
    with pytest.raises(DataError, match=r"the gap of start \d is"):
        rp.resume(path, problem(1.0, flip=0.5))


def test_code_that_fails_now_says_so(tmp_path):
    path = tmp_path / "run"
    finished(path, cosine_problem(), starts=3, eps=1e-9, stop=rp.Stop(max_iterations=4))

    def gone(x):
        raise OSError("disk gone")

    problem = cosine_problem()
    problem.smooth._gradient = gone
    problem.smooth._gradient.__qualname__ = cosine_problem().smooth._gradient.__qualname__
    with pytest.raises(EvaluationError, match="raised OSError: disk gone"):
        rp.resume(path, problem)


def cosine_problem():
    return rp.Problem(cosine(3), BALL)


def test_another_method_or_measure_is_refused(tmp_path):
    path, problem = tmp_path / "run", tensor_problem(tensor(3, 4, 2, seed=6), 0.2)
    method = rp.ProximalGradient(rp.Jacobi(), rp.Majorant(9.0))
    finished(path, problem, method, starts=2, stop=rp.Stop(max_iterations=3))
    assert rp.resume(path, problem, method=method).iterations.max() == 3
    other = rp.ProximalGradient(rp.Jacobi(), rp.Majorant(8.0))
    with pytest.raises(DataError, match=r"Majorant\(constant=9\.0.*not by .*constant=8\.0"):
        rp.resume(path, problem, method=other)
    with pytest.raises(CapabilityError, match="got the class Jacobi itself"):
        rp.resume(path, problem, method=rp.Jacobi)
    with pytest.raises(DataError, match="stop must have measure='max'"):
        rp.resume(path, problem, stop=rp.Stop(measure="sum"))
    for wrong, words in (
        ({"eps": -1.0}, "eps must be"),
        ({"stop": 5}, "stop must be"),
        ({"observers": print}, "observers must be a list"),
        ({"total_seconds": 1}, "total_seconds must be True or False"),
    ):
        with pytest.raises(DataError, match=words):
            rp.resume(path, problem, **wrong)


def test_a_sampled_run_keeps_the_number_that_its_output_was_drawn_from(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "run"
    f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
    method, stop = rp.paper.algorithm(3, 40.0, m=3), rp.Stop(max_iterations=19, max_gradients=5)
    problem = rp.Problem(f, BALL)
    finished(path, problem, method, starts=6, stop=stop)
    with pytest.raises(DataError, match=r"max_iterations = 19 beforehand \(theory E15\)"):
        rp.resume(path, problem, stop=rp.Stop(max_iterations=40))
    with pytest.raises(CapabilityError, match="no value rule in Stop"):
        rp.resume(path, problem, stop=rp.Stop(max_iterations=19, target_value=0.0))
    more = rp.Stop(max_iterations=19)
    whole = rp.solve(problem, method, starts=6, stop=more)
    assert differing(rp.resume(path, problem, stop=more), whole) == []


def test_other_circumstances_are_named_and_the_run_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "run"
    A = np.asfortranarray(LARGE)
    stop = rp.Stop(max_iterations=5)
    part = finished(path, tensor_problem(A, 0.9), starts=4, stop=stop)
    more = rp.Stop(max_iterations=40)
    with pytest.warns(GuaranteeWarning, match=r"not bit by bit .*: strides none \(was smooth"):
        other = rp.resume(path, tensor_problem(LARGE, 0.9), stop=more)
    assert other.certified.all()
    assert np.array_equal(other.trace.value[:6], part.trace.value)
    assert np.all(np.diff(other.trace.value, axis=0) <= 1e-12)
    from restpoint.kernels import threads

    with threads.use_threads(5), pytest.warns(GuaranteeWarning, match=r"threads 5 \(was "):
        rp.resume(path, tensor_problem(A, 0.9), stop=more)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rp.resume(path, tensor_problem(A.copy(order="F"), 0.9), stop=more)


# --- disks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["missing/run", "."])
def test_a_place_where_nothing_can_be_written_is_refused_before_the_run(
    tmp_path, monkeypatch, path
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="path must name a file in a folder that can be written"):
        rp.Checkpoint(path)
    with pytest.raises(DataError, match="path must be the name of a file, got int"):
        rp.Checkpoint(3)
    with pytest.raises(DataError, match="every_seconds must be a number >= 0, or None, got -1"):
        rp.Checkpoint("run", every_seconds=-1)
    with pytest.raises(DataError, match="every_iterations must be a whole number >= 1"):
        rp.Checkpoint("run", every_iterations=0)


def full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path, monkeypatch):
    path, problem = tmp_path / "run", Cosines().problem()
    sync = os.fsync

    def sometimes_full(view):
        monkeypatch.setattr(archive.os, "fsync", full if 3 <= view.iteration < 9 else sync)

    observers = [sometimes_full, rp.Checkpoint(path, every_iterations=2)]
    with pytest.warns(GuaranteeWarning, match="No space left on device") as caught:
        result = rp.solve(problem, observers=observers, **LONG)
    assert len(caught) == 1
    assert "what was there before is unchanged; the run goes on" in str(caught[0].message)
    assert differing(result, rp.solve(problem, **LONG)) == []
    assert differing(rp.resume(path, problem), result) == []
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_disk_that_stays_full_is_in_the_result_and_what_was_written_before_stands(
    tmp_path, monkeypatch
):
    path, problem = tmp_path / "run", Cosines().problem()

    def fill(view):
        if view.iteration == 5:
            monkeypatch.setattr(archive.os, "fsync", full)

    observers = [fill, rp.Checkpoint(path, every_iterations=2, every_seconds=None)]
    with pytest.warns(GuaranteeWarning, match="No space left"):
        result = rp.solve(problem, observers=observers, **LONG)
    monkeypatch.undo()
    assert isinstance(result.error, StorageError)
    assert "cannot be written: No space left on device" in result.message
    whole = rp.solve(problem, **LONG)
    assert np.array_equal(result.x, whole.x)
    seen = []
    assert differing(rp.resume(path, problem, observers=[seen.append]), whole) == []
    assert seen[0].iteration == 4


def test_a_disk_that_is_full_from_the_beginning_ends_the_run_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(archive.os, "fsync", full)
    result = rp.solve(Cosines().problem(), observers=[rp.Checkpoint(tmp_path / "run")], **LONG)
    assert result.iterations.max() == 0
    assert "No space left on device" in result.message
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_a_checkpoint_is_written_leaves_the_one_before_or_the_next(
    tmp_path, monkeypatch
):
    path, problem, sync, times = tmp_path / "run", Cosines().problem(), os.fsync, []

    def interrupted(handle):
        times.append(handle)
        if len(times) == 9:
            raise KeyboardInterrupt
        sync(handle)

    monkeypatch.setattr(archive.os, "fsync", interrupted)
    checkpoint = rp.Checkpoint(path, every_iterations=1)
    part = rp.solve(problem, observers=[checkpoint], **LONG)
    monkeypatch.undo()
    assert {status.name for status in part.status} == {"INTERRUPTED"}
    assert differing(rp.resume(path, problem), rp.solve(problem, **LONG)) == []
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_one_checkpoint_may_serve_two_runs_and_two_one_run(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    both = [rp.Checkpoint(first), rp.Checkpoint(second, every_iterations=3)]
    for problem in (Cosines().problem(), quadratic_problem()):
        result = rp.solve(problem, observers=both, starts=3)
        for path in (first, second):
            assert differing(rp.resume(path, problem), result) == []


def test_a_checkpoint_is_written_when_it_is_due_and_not_more_often(tmp_path, monkeypatch):
    from restpoint.run import checkpoint as module

    written, clock = [], [0.0]
    monkeypatch.setattr(module, "write", lambda path, kind, words, arrays: written.append(words))
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])

    def tick(view):
        clock[0] += 1.0

    def iterations(**every):
        written.clear()
        observers = [rp.Checkpoint(tmp_path / "run", **every), tick]
        more = {**LONG, "stop": rp.Stop(max_iterations=12)}
        rp.solve(Cosines().problem(), observers=observers, **more)
        return [words["record"]["of"]["progress"]["of"]["iteration"] for words in written]

    assert iterations(every_seconds=None) == [0, 12]
    assert iterations(every_seconds=None, every_iterations=5) == [0, 5, 10, 12]
    assert iterations(every_seconds=4.0) == [0, 4, 8, 12]
    assert iterations(every_seconds=4.0, every_iterations=5) == [0, 4, 5, 9, 10, 12]


# --- processes that are killed ------------------------------------------------------------------------

SOLVE = """
path, marker, when = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
checkpoint = rp.Checkpoint(path, every_iterations=4, every_seconds=None)
rp.solve(Cosines(when, marker).problem(), observers=[checkpoint], **LONG)
"""


def test_a_killed_process_loses_at_most_the_last_interval(tmp_path):
    path, marker = tmp_path / "run", tmp_path / "marker"
    kill_when(run_in_a_process(SOLVE, path, marker, 3 * 30 + 2), marker)
    seen = []
    resumed = rp.resume(path, Cosines().problem(), observers=[seen.append])
    assert seen[0].iteration == 28
    assert differing(resumed, rp.solve(Cosines().problem(), **LONG)) == []


WRITE = """
from restpoint.run import archive
path, marker, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def patch(view):
    if view.iteration == 6:
        if what == "between":
            archive.os.fsync = lambda handle: hang(marker)
        else:
            writing = archive.np.lib.format.write_array
            def half(file, array, allow_pickle):
                writing(file, array, allow_pickle=allow_pickle)
                if array.dtype == bool:
                    hang(marker)
            archive.np.lib.format.write_array = half

checkpoint = rp.Checkpoint(path, every_iterations=4, every_seconds=None)
rp.solve(Cosines().problem(), observers=[patch, checkpoint], **LONG)
"""


@pytest.mark.parametrize("what", ["within", "between"])
def test_a_process_that_is_killed_while_it_writes_leaves_the_file_before(tmp_path, what):
    path, marker = tmp_path / "run", tmp_path / "marker"
    kill_when(run_in_a_process(WRITE, path, marker, what), marker)
    assert len(list(tmp_path.glob("run.*.tmp"))) == 1  # what it was writing
    seen = []
    resumed = rp.resume(path, Cosines().problem(), observers=[seen.append])
    assert seen[0].iteration == 4
    assert differing(resumed, rp.solve(Cosines().problem(), **LONG)) == []
