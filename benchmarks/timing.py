"""Interleaved timing: every round runs every candidate once, so that a busy machine disturbs all alike."""

from __future__ import annotations

import itertools
import json
import operator
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Seconds between candidates, so that one does not run while the processor still works for another. After a product,
# threads of OpenBLAS wait in a loop for more work, for some 100 milliseconds, on cores that the next candidate needs.
PAUSE, PAUSE_OF_THREADS = 0.05, 0.2


# Where so few calls are timed at once, the first one, in a processor that slept, would tell.
FEW = 10


@contextmanager
def on_cores(threads: int) -> Iterator[None]:
    """Each thread of this process stays on a core, as far as Linux lets: this one on the first, the others behind it.

    A scheduler that saves power puts two threads that have slept on one core, whoever woke them up.
    """
    cores = sorted(os.sched_getaffinity(0))[:threads] if hasattr(os, "sched_getaffinity") else []
    tasks = [int(task.name) for task in Path("/proc/self/task").iterdir()] if cores else []
    before = {task: os.sched_getaffinity(task) for task in tasks}
    behind = itertools.cycle(cores[1:] or cores)
    for task in tasks:
        os.sched_setaffinity(task, cores[:1] if task == os.getpid() else [next(behind)])
    try:
        yield
    finally:
        for task, allowed in before.items():
            os.sched_setaffinity(task, allowed)


def interleaved(
    candidates: dict[str, Callable[[], object]],
    *,
    rounds: int = 15,
    repeats: int = 200,
    pause: float = PAUSE,
) -> dict[str, dict[str, float]]:
    """Seconds of one call: median and best over the rounds; each round averages ``repeats`` calls.

    Before each candidate is a pause, so that none pays for what another has left running, and after that a call that
    does not count, which wakes the processor and the threads up.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()  # nothing is timed cold
    for _ in range(rounds):
        for name, call in candidates.items():
            time.sleep(pause)
            if repeats < FEW:
                call()
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


def said(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures, told on the way: some benchmarks take minutes."""
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return figures


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
