"""Table 2 in small: the plumbing, against plain NumPy and hand-made rows, and what E36 says."""

import csv
import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import DataError
from restpoint.reproduce import table2, table2_report
from restpoint.reproduce.printed import TABLE_2
from restpoint.reproduce.table2 import (
    ADMM,
    ADMMS,
    ALGORITHM_1,
    METHODS,
    MOMENTUM,
    PAPER,
    PENALTIES,
    Row,
)
from restpoint.reproduce.table2_remarks import remarks
from restpoint.reproduce.table2_summary import summaries
from restpoint.reproduce.table2_verdicts import OBJECTIVE, verdicts

INSTANCES = 3
# Iterations and objectives of Algorithm 1, then of ADMM.
PRINTED_SUMS = (3825, -19866.207, 20916, -19866.475)


@pytest.fixture(scope="module")
def rows():
    return [row for found in table2.run([12], INSTANCES, seed=4) for row in found]


def of(rows, name, penalty=PAPER):
    return [row for row in rows if (row.method, row.penalty) == (name, penalty)]


def without_times(rows):
    return [
        asdict(replace(row, milliseconds=0.0, near=np.nan_to_num(row.near, nan=-1))) for row in rows
    ]


def test_the_printed_table_is_complete():
    """Sums over the table as it stands in the paper: a slip in any cell would show."""
    runs = [run for lines in TABLE_2.values() for run in lines]
    assert {n: len(lines) for n, lines in TABLE_2.items()} == {50: 10, 100: 10, 200: 10}
    assert sum(run.iterations for run in runs) == PRINTED_SUMS[0]
    assert sum(run.value for run in runs) == pytest.approx(PRINTED_SUMS[1], abs=1e-9)
    assert sum(run.admm_iterations for run in runs) == PRINTED_SUMS[2]
    assert sum(run.admm_value for run in runs) == pytest.approx(PRINTED_SUMS[3], abs=1e-9)


@pytest.mark.parametrize(
    ("n", "first", "other", "count", "ratio", "less"),
    [
        (50, -272.2, -272.2, 68, 5.6, 0.0015),
        (100, -564.6, -564.6, 134, 5.2, 0.0050),
        (200, -1149.8, -1149.8, 122, 5.3, 0.0075),
    ],
)
def test_the_papers_own_means(n, first, other, count, ratio, less):
    one, two = summaries([made(n=n), made(n=n, method=ADMM)])
    assert one.phi.printed == pytest.approx(first, abs=0.06)
    assert two.phi.printed == pytest.approx(other, abs=0.06)
    assert one.iterations.printed == pytest.approx(count, abs=1)
    assert two.ratio.printed == pytest.approx(ratio, abs=0.06)
    assert two.less.printed == pytest.approx(less, abs=6e-5)


# --- instances ----------------------------------------------------------------------------------------


def test_instances_are_those_of_the_recipe():
    given = table2.instance(15, 0)
    m, n = given.K.shape
    assert (m, n) == (30, 15)
    np.testing.assert_allclose(given.K.T @ given.K, np.eye(n), rtol=0, atol=1e-14)
    assert np.linalg.norm(given.start) == pytest.approx(1.0, abs=1e-15)
    assert np.linalg.eigvalsh(given.H)[0] >= -1e-9 * given.L
    # The trace of N'GG'N is chi-squared with n m degrees of freedom; H is twice that matrix.
    traces = [np.trace(table2.instance(15, k).H) / 2 for k in range(40)]
    assert np.mean(traces) == pytest.approx(n * m, abs=4.0 * math.sqrt(2 * n * m / 40))
    assert given.weight(PAPER) == 0.2
    assert given.weight("kappa = .4") == pytest.approx(0.4 * given.L / math.sqrt(m))
    x = given.start
    expected = -0.5 * x @ given.H @ x + 0.2 * np.abs(given.K @ x).sum()
    assert given.problem(PAPER).value(x) == pytest.approx(expected, rel=1e-13)
    assert not np.array_equal(table2.instance(15, 1).K, given.K)
    np.testing.assert_array_equal(table2.instance(15, 0).K, given.K)


# --- theory E36 ---------------------------------------------------------------------------------------


def test_e36_the_printed_subproblem_lacks_the_ball():
    """Without x'x <= 1 it is unbounded below, or 0 solves it; with it the minimum is minus a dual distance."""
    given = table2.instance(10, 0)
    K, weight, rng = given.K, 0.7, np.random.default_rng(0)
    b = rng.standard_normal(10) * 5.0
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.AnalysisL1(K, weight))
    answer = block.oracle.linear(-b)

    def objective(x):
        return -b @ x + weight * np.abs(K @ x).sum()

    assert objective(answer.point) == pytest.approx(float(answer.value), abs=1e-12)
    assert answer.value < 0.0
    assert objective(1e6 * answer.point) == pytest.approx(1e6 * float(answer.value), rel=1e-12)
    small = 1e-3 * b / np.linalg.norm(b)  # so small that 0 is the only minimiser
    assert np.all(block.oracle.linear(-small).point == 0.0)
    # Any u in the box bounds the minimum from below, the best one exactly.
    for u in np.clip(rng.standard_normal((20, 20)), -weight, weight):
        assert -np.linalg.norm(b - K.T @ u) <= answer.value + 1e-12
    assert float(answer.lower) == pytest.approx(float(answer.value), abs=1e-9)


def test_e36_the_closed_form_is_for_square_matrices_alone():
    rng, weight = np.random.default_rng(3), 0.4
    for m, n, exact in ((8, 8, True), (12, 6, False)):
        K = np.linalg.qr(rng.standard_normal((m, n)))[0]
        b = rng.standard_normal(n)
        z = K @ b
        z = np.sign(z) * np.maximum(np.abs(z) - weight, 0.0)
        closed = K.T @ z / np.linalg.norm(K.T @ z)
        oracle = rp.Block(rp.sets.L2Ball(), rp.penalties.AnalysisL1(K, weight)).oracle
        best = oracle.linear(-b)
        lost = -b @ closed + weight * np.abs(K @ closed).sum() - float(best.value)
        assert bool(abs(lost) <= 1e-9) is exact
        assert lost >= -1e-12


def test_e36_zero_is_stationary_and_starts_lie_elsewhere():
    problem = table2.instance(10, 0).problem("kappa = .2")
    assert rp.certify(problem, np.zeros(10)).max <= 1e-12
    assert rp.certify(problem, table2.instance(10, 0).start).max > 1.0


# --- runs ---------------------------------------------------------------------------------------------


def test_algorithm_1_is_that_of_the_formula_and_ends_by_the_papers_rule(rows):
    for row in of(rows, ALGORITHM_1):
        given = table2.instance(12, row.instance, seed=4)
        problem, x = given.problem(PAPER), given.start
        oracle, before = problem.blocks[0].oracle, float(problem.value(x))
        for count in range(1, 10_000):  # noqa: B007 - the last one is compared
            x = oracle.linear(-given.H @ x).point
            after = float(problem.value(x))
            if abs(after - before) <= 1e-6 * abs(after):
                break
            before = after
        assert row.iterations == count
        assert row.phi == pytest.approx(after, rel=1e-9)
        assert row.status == "STALLED"


def test_every_figure_is_about_the_point_that_the_row_names(rows):
    assert len(rows) == INSTANCES * len(PENALTIES) * len(METHODS)
    for row in rows:
        given = table2.instance(12, row.instance, seed=4)
        assert row.start == pytest.approx(float(given.problem(row.penalty).value(given.start)))
        assert row.phi < row.start
        assert 0.0 <= row.gap < 1.0
        assert row.milliseconds > 0.0
        assert 0.0 <= row.zeros <= 1.0
    assert all(row.distance == 0.0 for row in of(rows, ALGORITHM_1))
    assert all(row.status == "CERTIFIED" for row in rows if row.method == MOMENTUM)
    for row in of(rows, ADMM):
        given = table2.instance(12, row.instance, seed=4)
        first = next(r for r in of(rows, ALGORITHM_1) if r.instance == row.instance)
        assert row.phi <= first.phi + 1e-3 * abs(first.phi)
        assert row.status == "SETTLED"
        assert row.near <= 2 * row.iterations


def test_the_iterations_of_admm_grow_with_beta(rows):
    counts = {
        beta: np.median([row.iterations for row in of(rows, name)]) for name, beta in ADMMS.items()
    }
    assert counts[5.0] > counts[3.0] > counts[2.5] > counts[2.05]


def test_two_workers_find_the_same_rows_but_for_times():
    alone = [row for found in table2.run([3, 4], 1, seed=5) for row in found]
    both = [row for found in table2.run([3, 4], 1, seed=5, workers=2) for row in found]
    assert without_times(both) == without_times(alone)


def test_ctrl_c_within_a_run_makes_no_row(monkeypatch):
    def interrupted(self, problem, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(rp.ConditionalGradient, "take_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table2.rows(3, 0)


def test_unknown_methods_are_refused_with_the_list():
    with pytest.raises(DataError, match=r"must be among Algorithm 1, ADMM.*got 'BCD'"):
        table2.rows(3, 0, methods=["BCD"])


# --- summaries, remarks, verdicts ---------------------------------------------------------------------


def made(**changes):
    """A row that stands for a plain run of Algorithm 1."""
    row = Row(
        n=50, instance=0, penalty=PAPER, method=ALGORITHM_1, status="STALLED", phi=-270.0, gap=1e-4, iterations=60,
        near=math.nan, milliseconds=5.0, distance=0.0, zeros=0.0, start=-90.0,
    )  # fmt: skip
    return replace(row, **changes)


def test_ratios_are_taken_instance_by_instance():
    found = [made(iterations=50), made(instance=1, iterations=100)]
    found += [
        made(method=ADMM, iterations=300, near=100.0, phi=-270.1, distance=0.02),
        made(method=ADMM, instance=1, iterations=400, near=math.nan, phi=-269.0, distance=0.5),
    ]
    first, other = summaries(found)
    assert math.isnan(first.ratio.ours)
    assert other.ratio.ours == 5.0
    assert (other.near, other.nearing) == (2.0, 0.5)
    assert other.less.ours == pytest.approx((0.1 - 1.0) / 2)
    assert other.less_median == pytest.approx((0.1 + 1.0) / 2 / 270.0)
    assert (other.same, other.ended) == (0.5, 1.0)


def test_verdicts_turn_when_the_runs_are_wrong():
    def judged(**changes):
        found = []
        for n, (centre, _) in OBJECTIVE.items():
            found += [made(n=n, phi=centre, instance=k) for k in range(4)]
            other = {"method": ADMM, "phi": centre, "iterations": 330} | changes
            found += [made(n=n, instance=k, **other) for k in range(4)]
        return verdicts(found)

    assert len(judged()) == 4 * len(OBJECTIVE)
    assert all(verdict.met for verdict in judged())
    assert not all(verdict.met for verdict in judged(iterations=1000))
    assert not all(verdict.met for verdict in judged(phi=-200.0))
    assert verdicts([made(n=51)]) == []
    (missed,) = [v for v in verdicts([made(phi=-200.0)]) if not v.met]
    assert (missed.name, missed.n) == ("R6", 50)


def test_windows_are_those_measured_beforehand():
    found = [made(n=n, method=name) for n in (50, 200) for name in (ALGORITHM_1, ADMM)]
    windows = {(v.n, v.what): (v.low, v.high) for v in verdicts(found)}
    assert windows[50, "mean objective, Algorithm 1"] == (-282.0, -268.0)
    assert windows[200, "mean objective, Algorithm 1"] == (-1164.0, -1120.0)
    assert windows[50, "median ratio of iterations, ADMM / Algorithm 1"] == (4.0, 8.0)
    assert windows[200, "objectives apart, median"] == (0.0, 4e-5)
    assert windows[200, "objectives apart, 90th percentile"] == (0.0, 3e-4)


def test_remarks_say_what_does_not_fit_that_beta_decides_and_where_runs_end():
    found = [made(instance=k, phi=-250.0 + d) for k, d in enumerate((-1.0, 1.0) * 20)]
    for name, beta in ADMMS.items():
        found += [
            made(instance=k, method=name, iterations=int(120 * beta), near=60 * beta, distance=0.01)
            for k in range(40)
        ]
    found += [
        made(instance=k, method=MOMENTUM, phi=-249.0 - 20 * (k == 3), near=9.0) for k in range(40)
    ]
    text = "\n".join(remarks(summaries(found), found))
    assert "DOES NOT FIT: n = 50, Algorithm 1: the printed mean objective, -272.2" in text
    assert "4.1 (2.0) at 2.05 L" in text
    assert "10.0 (5.0) at 5 L. The ratio is a choice of beta." in text
    assert "1.0e-02 apart in the median, up to the sign, and nearer than 0.1 in 100%" in text
    assert "end elsewhere than Algorithm 1" in text


# --- files --------------------------------------------------------------------------------------------


def test_files_say_what_the_rows_say(rows, tmp_path):
    paths = table2_report.write(tmp_path, rows, seed=4)
    assert [path.name for path in paths] == [
        f"table2.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")
    ]
    with paths[0].open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(line["phi"]) for line in read] == [row.phi for row in rows]
    content = json.loads(paths[1].read_text())
    assert content["instances"] == {"12": INSTANCES}
    assert content["recipe"]["gamma_sigma"][PAPER] == 0.2
    assert len(content["summaries"]) == len(PENALTIES) * len(METHODS)
    assert content["verdicts"] == []  # there are no windows for this size
    tex = paths[2].read_text().splitlines()
    assert sum(line.endswith(r"\\") for line in tex) == 1 + 2
    assert paths[3].stat().st_size > 20_000
    assert paths[4].read_bytes().startswith(b"%PDF")


def test_the_page_holds_every_line(rows):
    page = table2_report.page(rows)
    for name in METHODS:
        assert (
            sum(f" {name} " in line and line.startswith("12 ") for line in page.splitlines()) >= 3
        )
    assert max(map(len, page.splitlines())) <= 120
