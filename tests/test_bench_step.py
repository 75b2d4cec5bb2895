"""What is promised of speed: the benchmark says so when a floor is missed. Time itself decides no test."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
HEAVY = ("numba", "scipy", "sklearn", "matplotlib", "torch", "jax", "pandas", "rich")


@pytest.fixture
def bench(monkeypatch, capsys):
    """The benchmark with figures instead of measurements; returns its exit status and what it complains of."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("RESTPOINT_BENCH_RESULT", raising=False)
    import bench_step

    def run(*, one=50e-6, many=100e-6, imported=0.1, loaded=()):
        times = {"restpoint, 1 starts": one, "restpoint, 64 starts": many}
        times |= {"bare NumPy, 1 starts": 30e-6, "bare NumPy, 64 starts": 80e-6}
        monkeypatch.setattr(
            bench_step,
            "interleaved",
            lambda candidates: {n: {"median": times[n], "best": times[n]} for n in candidates},
        )
        monkeypatch.setattr(
            bench_step, "import_seconds", lambda: {"restpoint": imported, "numpy": 0.05}
        )
        monkeypatch.setattr(bench_step, "loaded_at_import", lambda: list(loaded))
        return bench_step.main(), capsys.readouterr().err

    return run


def test_floors_that_are_met_are_passed_in_silence(bench):
    assert bench() == (0, "")


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"one": 120e-6}, "MISSED: microseconds, 1 start: 120, promised <= 100"),
        ({"many": 200e-6}, "MISSED: 64 starts / 1 start: 4, promised <= 3"),
        ({"imported": 0.4}, "MISSED: import seconds: 0.4, promised <= 0.3"),
        ({"imported": float("nan")}, "MISSED: import seconds: nan"),
        ({"loaded": ["numba"]}, "MISSED: heavy packages: 1, promised <= 0"),
    ],
)
def test_a_floor_that_is_missed_is_named_and_fails(bench, figures, words):
    status, complaint = bench(**figures)
    assert status != 0
    assert words in complaint


def test_importing_restpoint_loads_nothing_heavy():
    code = f"import restpoint, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
