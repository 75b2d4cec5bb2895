"""The study of rates: exponents of the theorems are met by runs, and the files say what the runs said."""

import csv
import json
import math
from dataclasses import replace

import pytest

from restpoint.errors import DataError
from restpoint.reproduce import rates, rates_report
from restpoint.reproduce.rates import CASES, RESISTING, USUAL, Row, summaries


@pytest.fixture(scope="module")
def rows():
    return [row for found in rates.run(120) for row in found]


def test_every_algorithm_and_class_of_functions_is_there(rows):
    resisting = {(row.method, row.of) for row in rows if row.problem == RESISTING}
    assert resisting == {(case.name, case.of) for case in CASES}
    assert {case.exponent for case in CASES} == {5.0, 3.0, 2.0, 1.0}
    usual = {(row.method, row.of) for row in rows if row.problem == USUAL}
    assert usual == {(c.name, c.of) for c in CASES if c.p == 2.0 or (c.concave and not c.order)}


def test_no_run_takes_more_than_is_allowed(rows):
    assert all(row.certified for row in rows)
    assert all(row.looks <= row.allowed for row in rows)
    assert all(row.allowed <= row.paper for row in rows if not math.isnan(row.paper))


def test_on_problems_that_resist_the_runs_have_the_exponent_of_the_theorem(rows):
    """Of one class of functions each: the same delta, up to a last tooth or stair."""
    for case in CASES:
        own = [r for r in rows if (r.method, r.of, r.problem) == (case.name, case.of, RESISTING)]
        (line,) = summaries(own)
        assert line.proved
        # One look more than steps, and whole teeth: at so few of these that is a few per cent.
        assert line.slope == pytest.approx(case.exponent, rel=0.08)
        assert line.share > (0.49 if case.order == "jacobi" else 0.98)
        assert max(r.delta for r in own) < 1.2 * min(r.delta for r in own)


def test_usual_problems_are_far_below_their_bounds(rows):
    for line in summaries([row for row in rows if row.problem == USUAL]):
        assert line.proved
        assert line.slope < 0.6
        assert line.looks < 1e-3 * line.allowed


def test_a_case_fits_only_within_its_window_and_with_proofs():
    def line(looks, **changes):
        rows = [
            Row("Algorithm 1", "p = 2", RESISTING, 2.0, eps, n, 1e9, 1e9, 1.0, "CERTIFIED")
            for eps, n in zip((1.0, 0.1, 0.01), looks, strict=True)
        ]
        return summaries([*rows[:-1], replace(rows[-1], **changes)])[0]

    assert line((10, 1000, 100_000)).fits
    assert not line((10, 100, 1000)).fits
    assert not line((10, 1000, 100_000), status="ITERATION_LIMIT").fits
    assert not line((10, 1000, 100_000), allowed=99_999.0).fits


def test_the_files_hold_the_runs(rows, tmp_path):
    paths = rates_report.write(tmp_path, rows, 120)
    assert [path.name for path in paths] == [
        f"rates.{k}" for k in ("csv", "json", "tex", "png", "pdf")
    ]
    with paths[0].open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [int(line["looks"]) for line in read] == [row.looks for row in rows]
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert [line["slope"] for line in content["summaries"]] == [s.slope for s in summaries(rows)]
    assert paths[2].read_text(encoding="utf-8").count(r"\\") == 1 + len(summaries(rows))
    assert all(path.stat().st_size > 5000 for path in paths[3:])
    page = rates_report.page(rows)
    assert all(len(words) <= 120 for words in page.splitlines())
    assert "Algorithm 6, MBI" in page


def test_too_short_runs_are_refused():
    with pytest.raises(DataError, match="most must be a whole number >= 100, got 5"):
        rates.run(5)
