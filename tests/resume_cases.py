"""What the tests of checkpoints share: results bit by bit, checkpoints along a run, runs that are killed."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import restpoint as rp
from restpoint.methods.smoothness import Smoothness
from restpoint.smooth import Curvature

# --- comparing ----------------------------------------------------------------------------------------


def bits_of(result: rp.Result) -> dict[str, Any]:
    """Everything that a result says, but for its seconds, in a form that == compares bit by bit."""
    arrays = {f"xs[{i}]": x for i, x in enumerate(result.xs)}
    arrays |= {f"last[{i}]": x for i, x in enumerate(result.last)}
    certificate, trace = result.certificate, result.trace
    for name in ("per_block", "floor", "violation", "relative_violation", "value"):
        arrays[f"certificate.{name}"] = getattr(certificate, name)
    for name in ("iteration", "gradients", "value", "gap"):
        arrays[f"trace.{name}"] = getattr(trace, name)
    arrays |= {f"work.{name}": column for name, column in result.work.items()}
    arrays |= {"eps": result.eps, "iterations": result.iterations}
    found: dict[str, Any] = {name: _bits(array) for name, array in arrays.items()}
    found["status"] = repr(result.status)
    found["bound"] = str(result.bound)
    found["certificate"] = (certificate.kind, certificate.floor_kind, certificate.confidence)
    found["words"] = (result.message, repr(result.error), result.measure, result.feasibility)
    return found


def _bits(array: Any) -> tuple[Any, ...]:
    host = np.asarray(array)
    return host.dtype, host.shape, host.tobytes()


def differing(one: rp.Result, other: rp.Result) -> list[str]:
    """The names of what differs."""
    mine, theirs = bits_of(one), bits_of(other)
    assert mine.keys() == theirs.keys()
    return [name for name in mine if mine[name] != theirs[name]]


# --- checkpoints along a run --------------------------------------------------------------------------


class At(rp.Checkpoint):
    """Writes at some iterations, and keeps copies of what it wrote."""

    def __init__(self, path: Path, at: tuple[int, ...]) -> None:
        super().__init__(path)
        self.at, self.copies = at, {}

    def __call__(self, view: rp.View) -> None:
        super().__call__(view)
        if self._due(view):
            self.copies[view.iteration] = copy = f"{self.path}-{view.iteration}"
            shutil.copy(self.path, copy)

    def _due(self, view: rp.View) -> bool:
        return view.iteration in self.at and bool(view.active.any())


class Along:
    """Solves, and keeps checkpoints of the very run: at some iterations and at its end."""

    def __init__(self, folder: Path, at: tuple[int, ...] = (0, 1, 2, 5, 11)) -> None:
        self.folder, self.at, self.copies = folder, at, {}

    def solve(self, *args: Any, **more: Any) -> rp.Result:
        checkpoint = At(self.folder / "run", self.at)
        result = rp.solve(*args, observers=[checkpoint], **more)
        self.copies = {**checkpoint.copies, "end": checkpoint.path}
        return result


# --- a rule that the library does not know ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Notes:
    """What ``Slowing`` remembers, in a class of its own."""

    constant: Any
    pairs: tuple[Any, ...]


class Pair(NamedTuple):
    """A named tuple within it."""

    sum_of_gaps: Any
    word: str


@dataclasses.dataclass(frozen=True)
class Slowing(Smoothness):
    """A constant that grows with the sum of the gaps seen so far: it depends on the whole past."""

    least: float = 3.0

    def curvature(self, facts, blocks, together, strict):
        return Curvature((self.least,) * blocks)

    def remembered(self, xs, look):
        return Notes(0.0 * look.value + self.least, (Pair(0.0 * look.value, "begun"), None))

    def step(self, method, problem, state):
        notes = state.memory
        seen = notes.pairs[0].sum_of_gaps + sum(state.look.gaps)
        constants = Curvature((notes.constant,) * len(state.xs))
        tried = method.take_step(problem, dataclasses.replace(state, curvature=constants))
        memory = Notes(self.least + 0.1 * seen, (Pair(seen, "going"), None))
        return dataclasses.replace(
            tried, curvature=state.curvature, promised=None, carried=None, memory=memory
        )


# --- a function that a process can be killed in -------------------------------------------------------


class Cosines:
    """sum_j cos(a_j x_j); the ``stop``-th gradient, if there is one, says so in a file and never returns."""

    a = np.array([2.0, 1.7, 1.1, 0.4])

    def __init__(self, stop: int | None = None, marker: Path | None = None) -> None:
        self.calls, self.stop, self.marker = 0, stop, marker

    def value(self, x):
        return float(np.sum(np.cos(self.a * x)))

    def gradient(self, x):
        self.calls += 1
        if self.calls == self.stop:
            hang(self.marker)
        return -self.a * np.sin(self.a * x)

    def problem(self) -> rp.Problem:
        f = rp.smooth.Function(self.value, self.gradient, shapes=4, constant=4.0)
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(2.0), rp.penalties.L1(0.05)))


LONG: dict[str, Any] = {"method": rp.ConditionalGradient(), "starts": 3, "eps": 1e-12}
LONG["stop"] = rp.Stop(max_iterations=60)


def hang(marker: Path | None) -> None:
    """Say that it has come so far, and wait to be killed."""
    assert marker is not None
    marker.touch()
    while True:
        time.sleep(1.0)


def run_in_a_process(code: str, *arguments: Any) -> subprocess.Popen:
    """Python code in a process of its own that knows this module."""
    begin = f"import sys; sys.path[:0] = {sys.path!r}\nfrom resume_cases import *\n"
    command = [sys.executable, "-c", begin + code, *map(str, arguments)]
    return subprocess.Popen(command)


def kill_when(process: subprocess.Popen, marker: Path) -> None:
    """Kill a process, which nothing can catch, as soon as it says that it has come so far."""
    try:
        end = time.monotonic() + 120.0
        while not marker.exists():
            assert process.poll() is None, "the process ended by itself"
            assert time.monotonic() < end, "the process never came so far"
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()


# --- runs of all kinds that a process may be killed in ------------------------------------------------

MORTAL = ("momentum", "continuation", "doubling", "retiring", "sampled")


def mortal(name: str) -> tuple[rp.Problem, Any, dict[str, Any]]:
    """A problem, a method, and the rest that a run of some hundred iterations is asked with."""
    tensor = np.random.default_rng(3).standard_normal((12, 11, 13, 14))
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.9))
    problem = rp.Problem(rp.smooth.Multilinear(tensor), [block] * 4)
    stop, eps = rp.Stop(max_iterations=150, patience=None), 1e-25
    if name == "sampled":
        rng = np.random.default_rng(0)
        f = rp.smooth.LeastSquares(rng.standard_normal((9, 3)), rng.standard_normal(9))
        problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
        method: Any = rp.paper.algorithm(3, 40.0, m=3)
        return problem, method, {"starts": 6, "stop": rp.Stop(max_iterations=300)}
    rules = {
        "continuation": rp.Continuation(rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep())),
        "doubling": rp.ProximalGradient(rp.Jacobi(), rp.Doubling(initial=0.1)),
    }
    if name == "retiring":
        stop = rp.Stop(max_iterations=150, patience=None, retire=rp.Retire(every=4))
    return problem, rules.get(name), {"starts": 8, "eps": eps, "stop": stop}
