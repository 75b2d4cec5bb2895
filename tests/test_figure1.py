"""The paper's Figure 1 from data: points between the lines, files that hold them, and the command."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import restpoint as rp
from restpoint import cli
from restpoint.errors import DataError
from restpoint.reproduce import figure1, figure1_report
from restpoint.reproduce.figure1 import DIAMETERS, GAMMAS, SETS, summaries


@pytest.fixture(scope="module")
def rows():
    return [row for found in figure1.run(18) for row in found]


def test_no_point_lies_beyond_a_line(rows):
    assert len(summaries(rows)) == 8
    for line in summaries(rows):
        assert line.points == len(rows)
        assert line.violated == 0
        assert line.tightest <= 1.0 + 1e-6
    assert max(line.tightest for line in summaries(rows)) > 0.999


def test_every_kind_of_set_size_and_step_is_there(rows):
    assert {row.set for row in rows} == set(SETS)
    assert {row.penalised for row in rows} == {True, False}
    found = {round(row.diameter, 9) for row in rows}
    assert found == set(DIAMETERS)
    assert {round(row.gamma * row.lipschitz, 9) for row in rows} == set(GAMMAS)
    low, high = figure1.decades(rows)
    assert high > 1e5 * low


def test_a_row_is_about_a_point_of_its_instance(rows):
    """The first point of a run is the start that solve draws; its measures are recomputed."""
    for number in (0, 4, 11):
        problem, name, lipschitz = figure1.instance(number)
        own = [row for row in rows if row.instance == number and row.iteration == 0]
        x = rp.solve(problem, stop=rp.Stop(max_iterations=0)).last
        for row in own:
            found = rp.measures(problem, x, row.gamma)
            assert (row.set, row.lipschitz) == (name, lipschitz)
            np.testing.assert_allclose(row.gap, found.gap, rtol=1e-12)
            np.testing.assert_allclose(row.residual, found.residual, rtol=1e-12)


def test_a_violation_would_be_counted(rows):
    wrong = [replace(row, residual=2.0 * row.residual + 10.0 * row.gap) for row in rows]
    (line,) = [line for line in summaries(wrong) if line.words.startswith("||P||^2")]
    assert line.violated > 0


def test_the_files_hold_the_points(rows, tmp_path):
    paths = figure1_report.write(tmp_path, rows, 0)
    assert [path.name for path in paths] == [
        f"figure1.{k}" for k in ("csv", "json", "tex", "png", "pdf")
    ]
    with paths[0].open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [float(line["gap"]) for line in read] == [row.gap for row in rows]
    content = json.loads(paths[1].read_text(encoding="utf-8"))
    assert content["instances"] == 18
    assert [line["tightest"] for line in content["summaries"]] == [
        line.tightest for line in summaries(rows)
    ]
    assert paths[2].read_text(encoding="utf-8").count(r"\\") == 1 + len(summaries(rows))
    assert all(path.stat().st_size > 5000 for path in paths[3:])
    page = figure1_report.page(rows)
    assert all(len(words) <= 120 for words in page.splitlines())
    assert "0 violations" in page


def test_the_command(monkeypatch, capsys, tmp_path):
    words = ["reproduce", "figure1", "--instances", "3", "--out", str(tmp_path), "--json"]
    monkeypatch.setattr(sys, "argv", ["restpoint", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "figure1.json").read_text())
    assert content["instances"] == 3
    with pytest.raises(DataError, match="instances must be a whole number >= 1, got 0"):
        figure1.run(0)
