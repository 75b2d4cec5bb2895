"""Interleaved timing: every round runs every candidate once, so that a busy machine disturbs all alike."""

from __future__ import annotations

import json
import operator
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# After a product, threads of a linear algebra library wait in a loop for more work, on cores that the next candidate
# needs: OpenBLAS for some 20 milliseconds.
PAUSE = 0.05


def interleaved(
    candidates: dict[str, Callable[[], object]], *, rounds: int = 15, repeats: int = 200
) -> dict[str, dict[str, float]]:
    """Seconds of one call: median and best over the rounds; each round averages ``repeats`` calls.

    Before each candidate is a pause, so that none pays for what another has left running.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()  # nothing is timed cold
    for _ in range(rounds):
        for name, call in candidates.items():
            time.sleep(PAUSE)
            began = time.perf_counter()
            for _ in range(repeats):
                call()
            times[name].append((time.perf_counter() - began) / repeats)
    return {n: {"median": statistics.median(t), "best": min(t)} for n, t in times.items()}


RELATIONS = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}


def judged(found: dict[str, float], floors: dict[str, tuple[str, float]]) -> dict[str, Any]:
    """Every floor with what was found and whether that is enough; NaN never is."""
    verdicts = {}
    for name, (relation, asked) in floors.items():
        figure = found[name]
        met = RELATIONS[relation](figure, asked)
        verdicts[name] = {"found": figure, "asked": f"{relation} {asked:g}", "met": bool(met)}
    return verdicts


def missed(verdicts: dict[str, Any]) -> int:
    """Say which floors are missed: the exit status of a benchmark, 0 if none is."""
    over = {name: verdict for name, verdict in verdicts.items() if not verdict["met"]}
    for name, verdict in over.items():
        print(
            f"MISSED: {name}: {verdict['found']:.4g}, promised {verdict['asked']}", file=sys.stderr
        )
    return bool(over)


def write(figures: dict[str, Any]) -> None:
    """Print the figures as JSON and write them where ``make bench`` asks."""
    figures = {
        "machine": {
            "python": platform.python_version(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "threads": os.environ.get("OPENBLAS_NUM_THREADS", "not pinned"),
            "versions": {name: version(name) for name in ("restpoint", "numpy", "scipy")},
        },
        **figures,
    }
    text = json.dumps(figures, indent=2, sort_keys=True)
    print(text)
    path = os.environ.get("RESTPOINT_BENCH_RESULT")
    if path:
        Path(path).write_text(text + "\n", encoding="utf-8")
