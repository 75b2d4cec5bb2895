"""What a run returns, says and remembers."""

import dataclasses

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem, tensor, tensor_problem
from restpoint.errors import NotCertifiedError, RestpointError, ShapeError


def test_a_certified_result_says_gap_against_eps_and_used_against_allowed():
    result = rp.solve(quadratic_problem(), eps=1e-4, starts=None)
    lines = str(result).splitlines()
    assert lines[0] == "CERTIFIED: stationary to eps, proved at the point returned"
    assert (
        f"gap        {float(result.gap):.3e} <= eps 1.000e-04 (max of 1 block, exact oracle)"
        in str(result)
    )
    assert f"{int(result.used)} of at most" in str(result)
    assert "(proved)" in str(result)
    assert "next       use result.xs; other starts may end lower" in str(result)


def test_an_uncertified_result_says_what_to_do_next():
    result = rp.solve(quadratic_problem(), eps=1e-9, stop=rp.Stop(max_iterations=1))
    text = str(result)
    assert text.startswith("ITERATION_LIMIT: ")
    assert ">  eps 1.000e-09" in text
    assert (
        "next       raise Stop(max_iterations=...), or go on with solve(..., x0=result.xs)" in text
    )
    assert rp.solve(quadratic_problem(), eps=1e-9, x0=result.xs).certified


def test_many_starts_are_counted_by_status_and_the_best_is_shown():
    result = rp.solve(
        quadratic_problem(),
        eps=1e-9,
        starts=6,
        stop=rp.Stop(max_iterations=4, target_value=-1.1909),
    )
    first = str(result).splitlines()[0]
    assert first.startswith("6 starts: ")
    for status in set(result.status):
        assert f"{np.sum(result.status == status)} {status.name}" in first


def test_best_is_the_lowest_value_among_the_certified():
    result = rp.solve(tensor_problem(tensor(3, 4, 2), 0.2), starts=8, eps=1e-7)
    best = result.best()
    assert best.status is rp.Status.CERTIFIED
    assert best.value == result.value.min()
    k = int(np.argmin(result.value))
    assert all(np.array_equal(x, y[k]) for x, y in zip(best.xs, result.xs, strict=True))
    assert best.iterations == result.iterations[k]
    assert best.bound.count == result.bound.count[k]
    assert np.array_equal(best.trace.value, result.trace.value[:, k])
    assert best.work["gradients"] == result.work["gradients"][k]
    assert best.best() is best
    assert best.raise_for_status() is best
    assert rp.certify(best.problem, best.xs).max == pytest.approx(float(best.gap), abs=1e-14)


def test_best_prefers_what_was_asked_for_to_a_smaller_gap():
    """Where nobody is certified, a start at the target value; the others may be nearer to some stationary point."""
    f = rp.smooth.Quadratic(np.diag([-1.0, 3.0]), [0.0, 0.1])
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    x0 = np.array([[1e-3, 0.0], [0.95, 0.1]])
    stop = rp.Stop(max_iterations=0, target_value=-0.4)
    result = rp.solve(problem, eps=1e-9, x0=x0, stop=stop)
    assert [s.name for s in result.status] == ["ITERATION_LIMIT", "TARGET_REACHED"]
    assert result.gap[0] < result.gap[1]
    assert result.best().value == result.value[1] <= -0.4


def test_best_prefers_a_certified_start_to_a_lower_value():
    x0 = np.stack([np.zeros(3), np.array([0.0, 0.9, 0.0])])
    problem = tensor_problem(np.diag([1.0, 2.0]), 0.1)
    x0 = (np.array([[0.0, 0.0], [0.0, 0.9]]), np.array([[0.0, 0.0], [0.0, 0.9]]))
    result = rp.solve(problem, x0=x0, stop=rp.Stop(max_iterations=0))
    assert result.value[1] < result.value[0]
    assert [s.name for s in result.status] == ["CERTIFIED", "ITERATION_LIMIT"]
    assert result.best().value == 0.0
    with pytest.raises(NotCertifiedError, match="1 CERTIFIED, 1 ITERATION_LIMIT"):
        result.raise_for_status()


def test_without_any_certificate_best_is_the_smallest_gap():
    result = rp.solve(quadratic_problem(), eps=1e-12, starts=5, stop=rp.Stop(max_iterations=1))
    assert not result.certified.any()
    assert result.best().gap == result.gap.min()


def test_best_of_a_path_keeps_its_own_problem():
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(np.array([0.0, 0.1, 0.5])))
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0]), [0.1, 0.3]), block)
    best = rp.solve(problem, starts=4).best()
    assert best.problem.batch_shape == ()
    assert best.problem.blocks[0].penalty.weight == 0.0
    assert best.problem.value(best.x) == best.value


def test_a_data_frame_has_one_row_a_start():
    result = rp.solve(quadratic_problem(), starts=4)
    frame = result.to_dataframe()
    assert list(frame.columns) == [
        "value",
        "gap",
        "eps",
        "status",
        "iterations",
        "allowed",
        "violation",
        "gradients",
        "oracle_calls",
        "samples",
    ]
    assert np.array_equal(frame["value"], result.value)
    assert list(frame["status"]) == ["CERTIFIED"] * 4
    assert np.all(frame["iterations"] + 1 <= frame["allowed"])
    single = rp.solve(quadratic_problem()).to_dataframe()
    assert len(single) == 1
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(np.array([0.0, 0.1])))
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), block)
    path = rp.solve(problem, starts=3).to_dataframe()
    assert path.index.nlevels == 2
    assert len(path) == 6


def test_a_data_frame_of_a_run_without_a_bound_says_nan():
    method = rp.WithoutGuarantee(rp.ProximalGradient())
    assert np.isnan(rp.solve(quadratic_problem(), method).to_dataframe()["allowed"][0])


def test_x_is_the_block_of_a_one_block_problem_only():
    result = rp.solve(tensor_problem(tensor(2, 3), 0.1))
    with pytest.raises(ShapeError, match=r"2 blocks; use result.xs\[i\]"):
        _ = result.x


def test_a_single_start_has_scalars():
    result = rp.solve(quadratic_problem())
    for array in (result.value, result.gap, result.eps, result.iterations, result.used):
        assert np.shape(array) == ()
    assert result.x.shape == (3,)
    assert isinstance(result.status, rp.Status)
    assert isinstance(result.trace.value[0], float)


def test_every_status_has_a_next_step():
    from restpoint.run.summary import NEXT_STEP

    assert set(NEXT_STEP) == set(rp.Status)


def test_the_error_of_an_uncertified_run_is_ours():
    result = rp.solve(quadratic_problem(), eps=1e-12, stop=rp.Stop(max_iterations=0))
    with pytest.raises(RestpointError, match="max_iterations"):
        result.raise_for_status()
    assert rp.RestpointError is RestpointError


def test_sampled_runs_print_and_tabulate_without_a_value_of_phi():
    rng = np.random.default_rng(0)
    f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    result = rp.solve(
        problem, rp.paper.algorithm(3, 40.0, m=3), starts=3, stop=rp.Stop(max_iterations=9)
    )
    assert "sampled gradients" in str(result)
    assert np.array_equal(result.value, problem.value(result.x))
    assert np.all(result.to_dataframe()["samples"] > 0)
    view = next(rp.iterate(problem, rp.paper.algorithm(3, 40.0, m=3)))
    assert np.isnan(view.value)
    assert view.samples == 3.0


def test_a_sampled_run_that_reached_its_output_iteration_says_so():
    rng = np.random.default_rng(0)
    f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    method = rp.paper.algorithm(3, 40.0, m=3)
    for starts in (None, 3):
        result = rp.solve(problem, method, starts=starts, stop=rp.Stop(max_iterations=9))
        text = str(result)
        assert (
            "ITERATION_LIMIT: the iteration drawn as the output (theory E15), or a budget" in text
        )
        assert "more samples m and a larger Stop(max_iterations=...)" in text
        assert "is used up" not in text


def lying(**declared):
    """A cube whose oracle answers with points outside."""
    block = rp.Block.from_oracle(lambda g: -2.0 * np.sign(g), diameter=4.0, **declared)
    f = rp.smooth.Function(
        lambda x: -float(np.sum(np.abs(x))), lambda x: -np.sign(x), shapes=2, concave=True
    )
    return rp.solve(rp.Problem(f, block), x0=np.array([0.5, -0.5]), eps=1e-3)


def test_an_infeasible_point_is_called_that_whatever_its_gap():
    result = lying(violation=lambda x: max(0.0, float(np.max(np.abs(x))) - 1.0))
    assert not result.certified
    assert result.gap <= 1e-3
    text = str(result)
    assert f"gap        {float(result.gap):.3e} <= eps 1.000e-03" in text
    assert "violation  1.0e+00, 5.0e-01 of the set's radius: not feasible" in text
    assert "which means at most 1e-12" in text
    assert (
        "next       the point lies outside its set: mend x0, or the linear, prox or project" in text
    )
    assert "Stop(feasibility=...)" in text
    assert "loosen eps" not in text


def test_a_violation_that_is_nan_is_called_that():
    text = str(lying(violation=lambda x: 0.0 if np.all(np.abs(x) <= 1.0) else np.nan))
    assert "<= eps" in text
    assert "violation  not known (nan)" in text
    assert "next       the violation is NaN: mend the violation" in text
    assert "loosen eps" not in text


def test_a_gap_that_is_nan_is_not_compared():
    f = rp.smooth.Function(lambda x: np.nan, lambda x: np.nan * x, shapes=2, constant=1.0)
    result = rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())))
    assert "gap        nan against eps" in str(result)


def test_the_representation_of_many_starts_is_one_whole_line():
    result = rp.solve(quadratic_problem(), starts=3)
    assert repr(result) == f"<Result of {result.method}: 3 starts: 3 CERTIFIED>"
    assert "CERTIFIED: stationary" in repr(result.best())


def test_a_disproved_concavity_is_spoken_of():
    f = rp.smooth.Function(
        lambda x: 0.5 * float(x @ x), lambda x: x, shapes=2, concave=True, lower_bound=0.0
    )
    result = rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), stop=rp.Stop(max_iterations=5))
    assert result.bound.withdrawn is not None
    assert "concave" in result.bound.withdrawn
    assert "no concave=True" in str(result)


def test_best_leaves_out_what_is_not_a_number():
    """A start whose certificate failed, beside others."""
    result = rp.solve(quadratic_problem(), starts=3, eps=1e-12, stop=rp.Stop(max_iterations=1))
    bad = np.array([np.nan, 3.0, np.nan])
    certificate = dataclasses.replace(result.certificate, per_block=bad[:, None])
    assert dataclasses.replace(result, certificate=certificate).best().gap == 3.0
    certified = rp.solve(quadratic_problem(), starts=3)
    values = np.array([np.nan, 2.0, 1.0])
    certificate = dataclasses.replace(certified.certificate, value=values)
    assert dataclasses.replace(certified, certificate=certificate).best().value == 1.0
