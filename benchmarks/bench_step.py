"""One whole step of Algorithm 2, gap and freeze included, against the same arithmetic in bare NumPy.

Dense quadratic, n = 50, unit L2Ball x L1, float64. The step looks at the new point: value, gradient, linear oracle,
gap; half of the starts are frozen (one start: none is, as in a run; the mask is applied all the same). The bare
version does the same arithmetic with nothing around it. Also: the time of ``import restpoint`` and what it compiles.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from timing import interleaved, judged, missed, write

import restpoint as rp
from restpoint.array import where
from restpoint.methods import Key

N, WEIGHT = 50, 0.3


def problem() -> rp.Problem:
    rng = np.random.default_rng(0)
    half = rng.standard_normal((N, N))
    smooth = rp.smooth.Quadratic(half + half.T, rng.standard_normal(N))
    return rp.Problem(smooth, rp.Block(rp.sets.L2Ball(1.0), rp.penalties.L1(WEIGHT)))


def library_step(problem: rp.Problem, starts: int) -> Callable[[], object]:
    method = rp.ProximalGradient()
    rng = np.random.default_rng(1)
    points = rng.standard_normal((starts, N))
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    state = method.init(problem, (points,), Key(0, np.arange(starts)))
    active = np.arange(starts) < max(1, starts // 2)
    return lambda: where(active, method.step(problem, state), state)


def bare_step(problem: rp.Problem, starts: int) -> Callable[[], object]:
    """The same arithmetic: prox step, promised decrease, value, gradient, linear oracle, gap, freeze."""
    Q, b = problem.smooth.Q, problem.smooth.b  # type: ignore[attr-defined]
    (constant,) = problem.facts().joint.constants  # type: ignore[union-attr]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((starts, N))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    active = (np.arange(starts) < max(1, starts // 2))[:, None]
    gradient = x @ Q + b
    penalty = WEIGHT * np.sum(np.abs(x), axis=-1)

    def soft(v: np.ndarray) -> np.ndarray:
        return v - np.minimum(np.maximum(v, -WEIGHT), WEIGHT)

    def step() -> object:
        z = soft(constant * x - gradient)
        new = z / np.maximum(constant, np.sqrt(np.vecdot(z, z)))[:, None]
        d = new - x
        new_penalty = WEIGHT * np.sum(np.abs(new), axis=-1)
        promised = penalty - np.vecdot(gradient + 0.5 * constant * d, d) - new_penalty
        product = new @ Q
        g = product + b
        value = 0.5 * np.vecdot(new, g + b) + new_penalty
        s = soft(-g)
        size = np.sqrt(np.vecdot(s, s))
        point = s / np.where(size > 0, size, 1.0)[:, None]
        gap = np.vecdot(g, new) + new_penalty + size
        frozen = np.where(active, new, x), np.where(active, g, gradient)
        return frozen, value, gap, point, promised

    return step


def import_seconds(rounds: int = 9) -> dict[str, float]:
    """The time of a fresh interpreter with ``import restpoint``, less that of an empty one."""
    times: dict[str, list[float]] = {"restpoint": [], "numpy": [], "pass": []}
    for _ in range(rounds):
        for name, seconds in times.items():
            code = "pass" if name == "pass" else f"import {name}"
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds.append(time.perf_counter() - began)
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    return {name: median[name] - median["pass"] for name in ("restpoint", "numpy")}


def loaded_at_import() -> list[str]:
    """The heavy packages that ``import restpoint`` brings in: none should be."""
    heavy = ("numba", "scipy", "sklearn", "matplotlib", "torch", "jax", "pandas", "rich")
    code = f"import restpoint, sys; print(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


FLOORS = {
    "microseconds, 1 start": ("<=", 100.0),
    "64 starts / 1 start": ("<=", 3.0),
    "import seconds": ("<=", 0.3),
    "heavy packages": ("<=", 0),
}


def main() -> int:
    setting = problem()
    candidates: dict[str, Callable[[], object]] = {}
    for starts in (1, 64):
        candidates[f"restpoint, {starts} starts"] = library_step(setting, starts)
        candidates[f"bare NumPy, {starts} starts"] = bare_step(setting, starts)
    seconds = interleaved(candidates)
    one, many = (seconds[f"restpoint, {k} starts"]["median"] for k in (1, 64))
    imported, loaded = import_seconds(), loaded_at_import()
    found = {
        "microseconds, 1 start": 1e6 * one,
        "64 starts / 1 start": many / one,
        "import seconds": imported["restpoint"],
        "heavy packages": len(loaded),
    }
    verdicts = judged(found, FLOORS)
    write(
        {
            "microseconds": {n: {k: 1e6 * v for k, v in t.items()} for n, t in seconds.items()},
            "restpoint / bare NumPy, 1 start": one / seconds["bare NumPy, 1 starts"]["median"],
            "restpoint / bare NumPy, 64 starts": many / seconds["bare NumPy, 64 starts"]["median"],
            "import seconds": imported,
            "heavy packages loaded by import": loaded,
            "floors": verdicts,
        }
    )
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
