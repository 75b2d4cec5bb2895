"""Processes that are killed at random moments, again and again, and the runs that come of it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import restpoint as rp
from resume_cases import MORTAL, differing, mortal, run_in_a_process

pytestmark = pytest.mark.prove

KILLS = 10  # for each kind of run

LIVE = """
path, name = Path(sys.argv[1]), sys.argv[2]
problem, method, more = mortal(name)
observers = [rp.Checkpoint(path, every_iterations=1), lambda view: time.sleep(0.02)]
if path.exists():
    rp.resume(path, problem, observers=observers)
else:
    rp.solve(problem, method, observers=observers, **more)
"""


@pytest.mark.parametrize("name", MORTAL)
def test_whenever_a_process_is_killed_the_run_ends_as_if_it_had_not_been(tmp_path, name):
    problem, method, more = mortal(name)
    whole = rp.solve(problem, method, **more)
    rng = np.random.default_rng(sum(map(ord, name)))
    path, reached, last = tmp_path / "run", [], None
    for _ in range(KILLS):
        process = run_in_a_process(LIVE, path, name)
        while process.poll() is None and written(path) == last:  # until it writes, too
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0.0, 0.8)))
        process.kill()
        process.wait()
        seen: list[rp.View] = []
        resumed = rp.resume(path, mortal(name)[0], observers=[seen.append])
        assert differing(resumed, whole) == []
        reached.append(seen[0].iteration)
        last = written(path)
    assert reached == sorted(reached)  # what was reached once is never lost
    assert reached[-1] > reached[0]


def written(path: Path) -> int | None:
    """Changes whenever the file is replaced."""
    return path.stat().st_mtime_ns if path.exists() else None
