"""The command, as a person meets it."""

import csv
import io
import itertools
import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from restpoint import cli
from restpoint.reproduce import rates, table1


def call(*words):
    return subprocess.run(
        [sys.executable, "-m", "restpoint.cli", *words], capture_output=True, text=True, check=False
    )


def called(monkeypatch, capsys, *words):
    """The same within this process: status, output, complaints."""
    monkeypatch.setattr(sys, "argv", ["restpoint", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_help_as_a_process_names_the_commands_and_loads_nothing_heavy():
    code = (
        "import sys; from restpoint import cli; sys.argv = ['restpoint', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit as end:\n"
        "    heavy = [m for m in ('numba', 'sklearn', 'matplotlib', 'pandas') if m in sys.modules]\n"
        "    print(end.code, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: restpoint" in done.stdout
    assert "reproduce" in done.stdout
    assert done.stdout.splitlines()[-1] in ("0 []", "None []")


def test_info_json_as_a_process_is_json():
    done = call("info", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["versions"]["restpoint"]
    assert done.stderr == ""


@pytest.mark.parametrize(("table", "lines"), [("table1", 5), ("table2", 3 * 7)])
def test_a_tiny_table_as_a_process(tmp_path, table, lines):
    done = call(
        "reproduce",
        table,
        "--instances",
        "2",
        "--sizes",
        "3,4",
        "--out",
        str(tmp_path),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content == json.loads((tmp_path / f"{table}.json").read_text())
    assert content["instances"] == {"3": 2, "4": 2}
    # No terminal, no progress: one line says where the files are.
    assert done.stderr.startswith("written: ")
    assert done.stderr.count("\n") == 1
    with (tmp_path / f"{table}.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 2 * lines


def test_wrong_input_as_a_process_is_one_line_and_status_2(tmp_path):
    done = call("reproduce", "table1", "--sizes", "8,x", "--out", str(tmp_path / "made"))
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "restpoint: sizes must be whole numbers separated by commas such as 8,12, got '8,x'\n"
    )
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "table1", "--sizes", "8,8"], "sizes must be different numbers"),
        (["reproduce", "table1", "--sizes", "0"], "sizes must be a whole number >= 1, got 0"),
        (["reproduce", "table1", "--sizes", ""], "sizes must be whole numbers"),
        (["reproduce", "table1", "--instances", "0"], "instances must be a whole number >= 1"),
        (["reproduce", "table1", "--instances", "many"], "--instances"),
        (["reproduce", "table1", "--workers", "-1"], "workers must be a whole number >= 1"),
        (["reproduce", "table1", "--seed", "-1"], "seed must be a whole number >= 0"),
        (["reproduce", "table1", "--color"], "--color"),
        (["reproduce", "table2", "--sizes", "50,50"], "sizes must be different numbers"),
        (["reproduce", "table2", "--instances", "0"], "instances must be a whole number >= 1"),
        (["reproduce", "table9"], "table9"),
        (["reproduce"], "Missing command"),
        (["conquer"], "conquer"),
        (["reproduce", "table1", "--out", __file__], "out must be a folder"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(monkeypatch, capsys, words, said):
    status, out, complaint = called(monkeypatch, capsys, *words)
    assert (status, out) == (2, "")
    assert complaint.startswith("restpoint: ")
    assert said in complaint
    assert complaint.count("\n") == 1


def test_no_words_are_a_question_for_help(monkeypatch, capsys):
    status, out, complaint = called(monkeypatch, capsys)
    assert not status
    assert "Usage: restpoint" in out
    assert complaint == ""


def test_info_is_a_page(monkeypatch, capsys):
    status, out, _ = called(monkeypatch, capsys, "info")
    assert not status
    assert "versions" in out


@pytest.mark.parametrize("after", [0, 2])
def test_ctrl_c_keeps_what_is_done(monkeypatch, capsys, tmp_path, after):
    run = table1.run

    def interrupted(*arguments, **more):
        for k, found in enumerate(run(*arguments, **more)):
            if k == after:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(table1, "run", interrupted)
    words = ("reproduce", "table1", "--instances", "5", "--sizes", "3", "--out", str(tmp_path))
    status, out, complaint = called(monkeypatch, capsys, *words)
    assert status == 130
    assert complaint.splitlines()[-1] == f"restpoint: interrupted after {after} of 5 instances"
    written = tmp_path / "table1.csv"
    assert written.exists() is (after > 0)
    if after:
        assert len(list(csv.DictReader(io.StringIO(written.read_text())))) == 5 * after
        assert f"ours ({after} instances a size)" in out


def test_ctrl_c_in_the_study_of_rates_keeps_the_cases_that_are_done(monkeypatch, capsys, tmp_path):
    def interrupted(most):
        yield from itertools.islice(runs(most), 1)
        raise KeyboardInterrupt

    runs = rates.run
    monkeypatch.setattr(rates, "run", interrupted)
    words = ("reproduce", "rates", "--most", "100", "--out", str(tmp_path), "--json")
    status, out, complaint = called(monkeypatch, capsys, *words)
    assert status == 130
    assert (
        complaint.splitlines()[-1] == f"restpoint: interrupted after 1 of {len(rates.CASES)} cases"
    )
    assert {line["method"] for line in json.loads(out)["summaries"]} == {"Algorithm 1"}
    assert (tmp_path / "rates.csv").exists()


def test_the_command_is_installed_under_its_name():
    (found,) = entry_points(group="console_scripts", name="restpoint")
    assert found.value == "restpoint.cli:main"
