"""What a run returns, says and remembers."""

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
    assert "next" not in str(result)


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


def test_every_status_but_certified_has_a_next_step():
    from restpoint.run.result import NEXT_STEP

    assert set(NEXT_STEP) == set(rp.Status) - {rp.Status.CERTIFIED}


def test_the_error_of_an_uncertified_run_is_ours():
    result = rp.solve(quadratic_problem(), eps=1e-12, stop=rp.Stop(max_iterations=0))
    with pytest.raises(RestpointError, match="max_iterations"):
        result.raise_for_status()


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
