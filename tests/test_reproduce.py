"""Table 1 in small: the plumbing, against plain NumPy and hand-made rows, and facts that hold run by run."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import restpoint as rp
from method_cases import contraction, soft
from restpoint.errors import DataError
from restpoint.kernels.threads import use_threads
from restpoint.reproduce import files, table1, table1_report
from restpoint.reproduce.compared import Verdict
from restpoint.reproduce.printed import TABLE_1
from restpoint.reproduce.table1 import METHODS, RHO, SPHERES, Row
from restpoint.reproduce.table1_remarks import remarks
from restpoint.reproduce.table1_summary import printed_runs, summaries
from restpoint.reproduce.table1_verdicts import VALUE, verdicts

INSTANCES = 12
PRINTED_SUMS = (57540, 3437, 628.88)  # iterations, nonzeros, A(x)


@pytest.fixture(scope="module")
def rows():
    return [row for found in table1.run([8], INSTANCES) for row in found]


def of(rows, name):
    return [row for row in rows if row.method == name]


# --- what is printed ----------------------------------------------------------------------------------


def test_the_printed_table_is_complete():
    """Sums over the table as it stands in the paper: a slip in any cell would show."""
    runs = [run for lines in TABLE_1.values() for line in lines for run in line]
    assert {n: len(lines) for n, lines in TABLE_1.items()} == {8: 10, 12: 10, 20: 10, 30: 10}
    assert sum(run.iterations for run in runs) == PRINTED_SUMS[0]
    assert sum(run.nonzeros for run in runs) == PRINTED_SUMS[1]
    assert sum(run.value for run in runs) == pytest.approx(PRINTED_SUMS[2], abs=1e-9)


@pytest.mark.parametrize(
    ("n", "name", "value", "nonzeros", "iterations", "collapsed"),
    [
        (8, "BCD", 6.79, 18.0, 113, 0.0),
        (8, "Algorithm 6", 7.58, 19.4, 196, 0.2),
        (20, "Algorithm 5", 11.90, 42.3, 199, 0.1),
        (30, "BCD", 13.63, 49.8, 2000, 0.6),
        (30, "Algorithm 6", 13.71, 52.2, 454, 0.5),
        (30, "Algorithm 5", 14.30, 54.9, 252, 0.2),
    ],
)
def test_the_papers_own_means(n, name, value, nonzeros, iterations, collapsed):
    (line,) = summaries([made(n=n, method=name)])
    assert line.value.printed == pytest.approx(value, abs=0.006)
    assert line.nonzeros.printed == pytest.approx(nonzeros, abs=0.06)
    assert line.iterations.printed == pytest.approx(iterations, abs=0.6)
    assert line.collapsed.printed == collapsed


# --- runs ---------------------------------------------------------------------------------------------


def plain(name, A, xs, steps=2000):
    """The paper's three methods in plain NumPy: the last point, iterations, and whether Phi ever rose."""
    rho, weight, rose = 0.85, 20.0, False

    def phi(xs):
        return -(contraction(A, xs, 0) @ xs[0]) + rho * sum(np.abs(x).sum() for x in xs)

    for count in range(1, steps + 1):  # noqa: B007 - the last one is returned
        new = []
        for i, x in enumerate(xs):
            b = contraction(A, xs, i)
            z = soft(b + weight * x if name == "Algorithm 6" else b, rho)
            norm = np.linalg.norm(z)
            if name == "Algorithm 6":
                new.append(z / max(weight, norm))
                continue
            y = z / norm if norm > 0 else z
            if name == "BCD" and norm == 0:  # what the paper leaves out (theory E34)
                j = np.argmax(np.abs(b))
                y = np.sign(b[j]) * np.eye(len(b))[j]
            if name == "Algorithm 5":
                gap, size = norm - b @ x + rho * np.abs(x).sum(), weight * np.sum((y - x) ** 2)
                y = x + min(1.0, max(gap, 0.0) / size if size > 0 else 1.0) * (y - x)
            new.append(y)
        before, after, xs = phi(xs), phi(new), tuple(new)
        rose |= after > before + 1e-9
        if abs(after - before) <= 1e-5:
            break
    return xs, count, bool(rose)


@pytest.mark.parametrize("name", ["Algorithm 6", "Algorithm 5"])
def test_runs_are_those_of_the_formulas(rows, name):
    for number in (2, 4):
        problem, start = table1.instance(8, number)
        xs, iterations, rose = plain(name, problem.smooth.A, start)
        row = of(rows, name)[number]
        assert row.instance == number
        assert row.iterations == iterations
        assert row.value == pytest.approx(contraction(problem.smooth.A, xs, 0) @ xs[0], abs=1e-6)
        assert row.nonzeros == sum(int(np.sum(np.abs(x) > 1e-6)) for x in xs)
        assert (row.rises > 0) is rose
        assert row.start == pytest.approx(contraction(problem.smooth.A, start, 0) @ start[0])
        assert row.gap == pytest.approx(rp.certify(problem, xs).max, abs=1e-5)
        assert row.phi == pytest.approx(problem.value(xs), abs=1e-6)


def test_bcd_is_that_of_the_formula_until_rounding_decides(rows):
    """Its iterates wander before they settle, and rounding grows tenfold in a few steps: single runs differ between
    machines, shares and means do not.
    """
    problem, start = table1.instance(8, 4)
    stop = rp.Stop(max_iterations=12, patience=None)
    result = rp.solve(problem, table1.method("BCD"), eps=table1.NO_EPS, x0=start, stop=stop)
    xs, _, rose = plain("BCD", problem.smooth.A, start, steps=12)
    for ours, theirs in zip(result.last, xs, strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-8)
    assert rose
    assert of(rows, "BCD")[4].rises > 0


def test_e37_only_parallel_updates_raise_phi_or_end_negative(rows):
    assert sum(row.rises > 0 for row in of(rows, "BCD")) >= 0.95 * INSTANCES
    # About half; which ones depends on rounding, so the window is wide.
    assert 1 <= sum(row.value < 0 for row in of(rows, "BCD")) < INSTANCES
    assert all(row.gap > 1.0 for row in of(rows, "BCD") if row.value < -1.0)
    for name in ("BCD Gauss-Seidel", "BCD MBI"):
        assert not any(row.rises or row.capped or row.value < 0.0 for row in of(rows, name))


def test_lambda_20_was_enough_for_the_steps_taken_though_not_for_the_theorem(rows):
    own = [row for row in rows if row.method.startswith("Algorithm")]
    assert not any(row.rises for row in own)
    assert all(0.0 < row.lambda_needed < 20.0 for row in own)
    best = [
        max(abs(r.value) for r in rows if r.instance == k and r.on_spheres)
        for k in range(INSTANCES)
    ]
    assert np.mean([3.0 * value > 20.0 for value in best]) > 0.7


def test_every_figure_is_about_the_point_that_the_row_names(rows):
    assert {row.point for row in rows} == {"last iterate"}
    stop = rp.Stop(max_iterations=table1.CAP, value_change=table1.CHANGE, patience=None)
    for row in rows[: 2 * len(METHODS)]:
        problem, start = table1.instance(row.n, row.instance)
        method = table1.method(row.method)
        with threadpool_limits(1), use_threads(1):  # as the rows were made: bit by bit
            xs = rp.solve(problem, method, eps=table1.NO_EPS, x0=start, stop=stop).last
            certificate = rp.certify(problem, xs)
        assert (row.gap, row.phi) == (certificate.max, certificate.value)
        assert row.value == -problem.smooth.value(xs)
        assert row.nonzeros == sum(np.sum(np.abs(x) > 1e-6) for x in xs)
        l1 = sum(np.abs(x).sum() for x in xs)
        assert row.phi == pytest.approx(RHO * l1 - row.value, abs=1e-12)


def test_two_workers_find_the_same_rows_in_the_same_order():
    alone = list(table1.run([3, 4], 2, seed=5))
    assert list(table1.run([3, 4], 2, seed=5, workers=2)) == alone
    assert [(row.n, row.instance) for found in alone for row in found[:1]] == [
        (3, 0), (3, 1), (4, 0), (4, 1),
    ]  # fmt: skip
    assert next(table1.run([3], 1, seed=6)) != alone[0]


def test_ctrl_c_within_a_run_makes_no_row(monkeypatch):
    def interrupted(self, problem, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(table1.Watched, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table1.rows(3, 0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sizes": []}, "sizes must be different numbers"),
        ({"sizes": [8, 8]}, "sizes must be different numbers"),
        ({"sizes": [0]}, "sizes must be a whole number >= 1"),
        ({"sizes": [2.5]}, "sizes must be a whole number >= 1"),
        ({"instances": 0}, "instances must be a whole number >= 1"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"workers": 0}, "workers must be a whole number >= 1"),
    ],
)
def test_wrong_calls_are_refused_before_the_work(wrong, words):
    with pytest.raises(DataError, match=words):
        table1.run(**wrong)


def test_unknown_methods_are_refused_with_the_list():
    with pytest.raises(DataError, match=r"must be one of BCD, Algorithm 6.*got 'ADMM'"):
        table1.rows(3, 0, methods=["ADMM"])


# --- summaries, remarks, verdicts ---------------------------------------------------------------------


def made(**changes):
    """A row that stands for a plain run of Algorithm 5."""
    row = Row(
        n=8, instance=0, method="Algorithm 5", point="last iterate", status="STALLED", value=7.0, phi=-1.0,
        nonzeros=17, gap=1e-6, iterations=150, capped=False, rises=0, lambda_needed=6.0, start=0.1,
    )  # fmt: skip
    return replace(row, **changes)


def test_collapsed_runs_count_in_shares_and_nowhere_else():
    found = [
        made(value=6.0, nonzeros=14, iterations=100),
        made(value=8.0, nonzeros=18, iterations=300),
    ]
    found += [made(value=0.0, nonzeros=0, iterations=14)] * 2
    (line,) = summaries(found)
    assert (line.runs, line.kept) == (4, 2)
    assert (line.value.ours, line.nonzeros.ours, line.iterations.ours) == (7.0, 16.0, 200.0)
    assert line.value.spread == pytest.approx(math.sqrt(2.0))
    # printed: 7.38 over 8 runs
    error = math.sqrt(2.0) * math.sqrt(1 / 8 + 1 / 2)
    assert line.value.deviations == pytest.approx((line.value.printed - 7.0) / error)
    assert line.collapsed.ours == 0.5
    share = (2 + 2) / 14
    error = math.sqrt(share * (1 - share) * (1 / 10 + 1 / 4))
    assert line.collapsed.deviations == pytest.approx((0.2 - 0.5) / error)


def test_on_spheres_moduli_count_and_low_cycles_are_collapsed():
    found = [
        made(method="BCD", value=v, iterations=k) for v, k in ((-7.0, 100), (9.0, 200), (0.5, 2000))
    ]
    (line,) = summaries(found)
    assert line.value.ours == 8.0
    assert line.iterations.ours == 200.0
    assert line.collapsed.ours == line.negative.ours == pytest.approx(1 / 3)


def test_nothing_is_claimed_where_nothing_is_printed():
    (line,) = summaries([made(n=9), made(n=9, value=6.0)])
    assert math.isnan(line.value.printed)
    assert math.isnan(line.value.deviations)
    assert printed_runs(8, "BCD MBI") == []
    assert verdicts([made(n=9)]) == []


def test_what_does_not_fit_is_said_and_what_fits_is_not():
    def at(mean):
        return [
            made(value=mean + d, nonzeros=17 + 2 * d, instance=k)
            for k, d in enumerate((-1, 1) * 50)
        ]

    def said(found):
        return [words for words in remarks(summaries(found), found) if "DOES NOT FIT" in words]

    assert not any("mean value" in words for words in said(at(7.38)))
    (words,) = (words for words in said(at(9.0)) if "mean value" in words)
    assert "printed mean value, 7.38, is -4." in words
    assert "standard errors from ours, 9.00" in words


def test_remarks_name_the_lambda_needed_and_its_constant():
    found = [made(lambda_needed=5.0), made(lambda_needed=9.0, instance=1)]
    found += [made(method="BCD MBI", value=8.0, instance=k) for k in (0, 1)]
    text = "\n".join(remarks(summaries(found), found))
    assert (
        "needed lambda = 7.0 in the mean and 9.0 at most; 20 was used, and Phi rose 0 times" in text
    )
    assert "3 sigma, is at least 24.0 in the mean" in text
    assert "above 20 in 2 of 2 instances" in text


@pytest.mark.parametrize(
    ("figure", "met"), [(1.0, True), (2.0, True), (0.999, False), (math.nan, False)]
)
def test_a_verdict_is_met_within_its_window_and_never_by_nan(figure, met):
    assert Verdict("R1", 8, "", figure, 1.0, 2.0).met is met


def test_verdicts_turn_when_the_runs_are_wrong(rows):
    good = {(v.name, v.what): v for v in verdicts(rows)}
    assert {name for name, _ in good} == {"R1", "R2", "R3", "R4", "R5"}
    assert good["R5", "iterations that raised Phi by > 1e-09, Algorithm 5"].met

    def unmet(change):
        return {v.name for v in verdicts([change(row) for row in rows]) if not v.met}

    assert "R1" in unmet(lambda row: replace(row, value=2.0 * row.value))
    assert "R2" in unmet(lambda row: replace(row, value=0.0))
    assert "R3" in unmet(lambda row: replace(row, iterations=10 * row.iterations))
    assert "R4" in unmet(lambda row: replace(row, value=abs(row.value)))
    assert "R4" in unmet(lambda row: replace(row, rises=0))
    assert "R5" in unmet(lambda row: replace(row, rises=1))
    assert "R5" in unmet(lambda row: replace(row, lambda_needed=math.nan))


def test_every_size_of_the_paper_has_its_windows():
    for n in TABLE_1:
        found = [made(n=n, method=name, value=VALUE[n][0]) for name in METHODS]
        names = [v.name for v in verdicts(found)]
        assert (names.count("R1"), names.count("R2"), names.count("R3"), names.count("R5")) == (
            2,
            3,
            2,
            2,
        )
        assert names.count("R4") == 2


def test_windows_are_those_measured_beforehand():
    found = [made(n=n, method=name) for n in (8, 30) for name in table1.PRINTED]
    windows = {(v.name, v.n, v.what): (v.low, v.high) for v in verdicts(found)}
    for (name, n, what), (low, high) in {
        ("R1", 8, "mean A(x), Algorithm 5"): (6.6, 7.3),
        ("R1", 30, "mean nonzeros, Algorithm 5"): (60.5, 64.5),
        ("R2", 8, "zero share, Algorithm 5"): (0.17, 0.45),
        ("R2", 30, "zero share, Algorithm 5"): (0.0, 0.18),
        ("R2", 30, "zero share, Algorithm 6"): (0.04, 0.32),
        ("R2", 8, "zero share, Algorithm 6 - Algorithm 5"): (-0.05, 1.0),
        ("R3", 30, "median iterations, Algorithm 6"): (260, 440),
        ("R4", 8, "negative share, BCD"): (0.35, 0.65),
        ("R4", 30, "share at the cap, BCD"): (0.5, 1.0),
        ("R5", 8, "iterations that raised Phi by > 1e-09, Algorithm 6"): (0.0, 0.0),
    }.items():
        assert windows[name, n, what] == pytest.approx((low, high), abs=1e-12)


# --- files --------------------------------------------------------------------------------------------


def test_files_say_what_the_rows_say(rows, tmp_path):
    paths = table1_report.write(tmp_path, rows, seed=0)
    assert [path.name for path in paths] == [
        f"table1.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")
    ]
    with paths[0].open(newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == INSTANCES * len(METHODS)
    assert [float(line["value"]) for line in read] == [row.value for row in rows]
    assert {line["point"] for line in read} == {"last iterate"}
    content = json.loads(paths[1].read_text())
    assert content["instances"] == {"8": INSTANCES}
    assert content["recipe"]["lambda"] == 20.0
    assert len(content["summaries"]) == len(METHODS)
    assert content["summaries"][3]["value"]["printed"] is None  # NaN is no JSON
    assert {verdict["name"] for verdict in content["verdicts"]} == {"R1", "R2", "R3", "R4", "R5"}
    tex = paths[2].read_text().splitlines()
    assert tex[0] == r"\begin{tabular}{ll" + "r" * 9 + "}"
    assert sum(line.endswith(r"\\") for line in tex) == 1 + len(METHODS)
    assert not any("%" in line.replace(r"\%", "") for line in tex)
    assert paths[3].stat().st_size > 20_000
    assert paths[4].read_bytes().startswith(b"%PDF")


def test_the_page_holds_every_line_and_warns_of_few_instances(rows):
    page = table1_report.page(rows)
    assert all(
        sum(line.startswith("8 ") and f" {name} " in line for line in page.splitlines()) >= 2
        for name in METHODS
    )
    assert "The windows are for 100 instances a size." in page
    assert max(map(len, page.splitlines())) <= 120
    assert set(SPHERES) < set(METHODS)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DataError, match="out must be a folder that can be written to"):
        files.folder(file)
    assert files.folder(tmp_path / "a" / "b").is_dir()
