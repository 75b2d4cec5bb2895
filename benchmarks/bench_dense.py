"""All mode gradients of a dense tensor, in multiples of one read of it, and against what people use today.

The read is the fastest of several sums of all entries in the same run, on the same threads. Every candidate of a group
is run once a round (``timing.interleaved``); ratios are of medians. Peers: tensorly (parafac of rank 1, a power sweep
by multi_mode_dot), pyttb (cp_als of rank 1, mttkrps), a NumPy dimension tree of two products, einsum. An iteration
of parafac or cp_als is the difference of runs with 12 and 2 iterations on the tensor that it would use itself, with
its tests of convergence switched off as far as it allows.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyttb
import tensorly
from numba import njit
from tensorly.decomposition import parafac
from tensorly.tenalg import multi_mode_dot
from threadpoolctl import threadpool_limits
from timing import PAUSE, PAUSE_OF_THREADS, interleaved, judged, missed, on_cores, write

from restpoint.kernels import Dense, groups, use_threads
from restpoint.kernels.threads import run

SIZES = ((60,) * 4, (100,) * 4, (200,) * 3, (400,) * 3)
ROUNDS = 9
Calls = dict[str, Callable[[], object]]


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True)
def total(flat: np.ndarray) -> float:
    """The sum in a compiled loop."""
    found = 0.0
    for value in flat:
        found += value
    return found


@njit(fastmath={"reassoc", "contract", "nsz"}, nogil=True)
def total_of_eight(matrix: np.ndarray) -> float:
    """The sum in a compiled loop over eight rows at a time: several streams may come faster than one."""
    found, whole = 0.0, len(matrix) - len(matrix) % 8
    for r in range(0, whole, 8):
        m0, m1, m2, m3 = matrix[r], matrix[r + 1], matrix[r + 2], matrix[r + 3]
        m4, m5, m6, m7 = matrix[r + 4], matrix[r + 5], matrix[r + 6], matrix[r + 7]
        for q in range(matrix.shape[1]):
            found += ((m0[q] + m1[q]) + (m2[q] + m3[q])) + ((m4[q] + m5[q]) + (m6[q] + m7[q]))
    for r in range(whole, len(matrix)):
        row = matrix[r]
        for q in range(matrix.shape[1]):
            found += row[q]
    return found


def reads(A: np.ndarray, threads: int) -> Calls:
    """Ways to read every entry once."""
    parts = np.array_split(A.reshape(-1), threads)
    square = A.reshape(groups_rows(A), -1)
    ones, bands = np.ones(square.shape[1]), np.array_split(square, threads)
    return {
        "sum in Numba, eight rows": lambda: run([partial(total_of_eight, band) for band in bands]),
        "sum in Numba": lambda: run([partial(total, part) for part in parts]),
        "sum in NumPy": lambda: run([partial(np.sum, part) for part in parts]),
        "product with ones": lambda: square @ ones,
    }


def groups_rows(A: np.ndarray) -> int:
    return int(np.prod(A.shape[: groups.split(A.shape)]))


def points(A: np.ndarray, *batch: int, density: float = 1.0) -> tuple[np.ndarray, ...]:
    """Random vectors with exactly this share of entries different from 0."""
    rng = np.random.default_rng(1)
    found = []
    for n in A.shape:
        x = rng.standard_normal((*batch, n))
        order = np.argsort(rng.random(x.shape), axis=-1)
        found.append(np.where(order < round(density * n), x, 0.0))
    return tuple(found)


def sweep(kernel: Dense, xs: tuple[np.ndarray, ...]) -> None:
    """One Gauss-Seidel sweep: every partial once, every block updated after it."""
    kept = kernel.keep(xs)
    for i, x in enumerate(xs):
        kept.partial(i)
        kept.update(i, x)


def timed(calls: Calls, threads: int = 1) -> dict[str, float]:
    """Median seconds of a call, warm, each thread on a core of its own."""
    for call in calls.values():
        call()  # all threads are there now
    pause = PAUSE if threads == 1 else PAUSE_OF_THREADS
    with on_cores(threads):
        found = interleaved(calls, rounds=ROUNDS, repeats=1, pause=pause)
    return {n: t["median"] for n, t in found.items()}


def one_read(seconds: dict[str, float], names: Calls) -> float:
    return min(seconds[name] for name in names)


def gradients(A: np.ndarray, threads: int) -> dict[str, float]:
    """All partials, a sweep, and the NumPy forms, in reads."""
    kernel, xs, baseline = Dense(A), points(A), reads(A, threads)
    matrix, first = A.reshape(groups_rows(A), -1), groups.split(A.shape)

    def tree() -> None:
        w = matrix @ groups.outer(xs[first:])
        s = groups.outer(xs[:first]) @ matrix
        groups.partials(w, xs[:first])
        groups.partials(s, xs[first:])

    calls: Calls = {
        "all gradients": lambda: kernel.all_partials(xs),
        "sweep": lambda: sweep(kernel, xs),
        "NumPy dimension tree": tree,
    }
    seconds = timed(baseline | calls, threads)
    read = one_read(seconds, baseline)
    return {"milliseconds a read": 1e3 * read} | {n: seconds[n] / read for n in calls}


def peers(A: np.ndarray) -> dict[str, float]:
    """Seconds of one iteration of peers over seconds of all gradients, on one thread."""
    kernel, xs, d = Dense(A), points(A), A.ndim
    factors = [x[:, None] / np.linalg.norm(x) for x in xs]
    tensor = pyttb.tensor(A)
    start = pyttb.ktensor([np.asfortranarray(f) for f in factors], np.ones(1))
    cp = (np.ones(1), [f.copy() for f in factors])

    def tensorly_runs(iterations: int) -> None:
        parafac(A, 1, n_iter_max=iterations, init=cp, tol=0, normalize_factors=False)

    def pyttb_runs(iterations: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            pyttb.cp_als(tensor, 1, stoptol=0, maxiters=iterations, init=start, printitn=0)

    def power() -> None:
        for i in range(d):
            multi_mode_dot(A, xs, modes=list(range(d)), skip=i)

    letters = "ijkl"[:d]
    rules = [",".join([letters, *(c for c in letters if c != own)]) + f"->{own}" for own in letters]

    def einsum() -> None:
        for i, rule in enumerate(rules):
            np.einsum(rule, A, *(x for m, x in enumerate(xs) if m != i), optimize=True)

    calls: Calls = {
        "all gradients": lambda: kernel.all_partials(xs),
        "sweep": lambda: sweep(kernel, xs),
        "tensorly power sweep": power,
        "einsum": einsum,
        "pyttb mttkrps": lambda: tensor.mttkrps(list(factors)),
        "t2": lambda: tensorly_runs(2),
        "t12": lambda: tensorly_runs(12),
        "p2": lambda: pyttb_runs(2),
        "p12": lambda: pyttb_runs(12),
    }
    seconds = timed(calls)
    seconds["tensorly parafac, an iteration"] = (seconds.pop("t12") - seconds.pop("t2")) / 10
    seconds["pyttb cp_als, an iteration"] = (seconds.pop("p12") - seconds.pop("p2")) / 10
    own = seconds.pop("all gradients")
    return {name: value / own for name, value in seconds.items()}


def supports(A: np.ndarray) -> dict[str, float]:
    """All gradients at sparse points, in reads."""
    kernel, baseline = Dense(A), reads(A, 1)
    calls: Calls = {
        f"density {density}": partial(kernel.all_partials, points(A, density=density))
        for density in (1.0, 0.75, 0.5, 0.25, 0.1)
    }
    seconds = timed(baseline | calls)
    read = one_read(seconds, baseline)
    return {name: seconds[name] / read for name in calls}


def batches(A: np.ndarray) -> dict[str, float]:
    """Several starts: against single calls, and against the rate of matrix products."""
    kernel = Dense(A)
    rows, columns = groups_rows(A), A.size // groups_rows(A)
    rng = np.random.default_rng(2)
    many, square = rng.standard_normal((64, columns)), rng.standard_normal((1500, 1500))
    matrix = A.reshape(rows, columns)
    seconds = timed(
        {
            "1": partial(kernel.all_partials, points(A)),
            **{str(b): partial(kernel.all_partials, points(A, b)) for b in (2, 4, 8, 16, 32, 64)},
            "64 x M'": lambda: many @ matrix.T,
            "square": lambda: square @ square,
        }
    )
    rate = max(2 * 64 * A.size / seconds["64 x M'"], 2 * 1500**3 / seconds["square"])
    found = {f"{b} starts, times faster than single": b * seconds["1"] / seconds[str(b)]
             for b in (2, 4, 8, 16, 32, 64)}  # fmt: skip
    found["GFLOP/s of matrix products"] = rate / 1e9
    found["64 starts, share of that rate"] = 4 * 64 * A.size / seconds["64"] / rate
    return found


# The peak of memory is that of this process alone (VmHWM), reset once A is there.
CHILD = """
import sys, time
import numpy as np
A = np.random.default_rng(0).standard_normal((100,) * 4)
began = time.perf_counter(); import numba; numba_seconds = time.perf_counter() - began
import restpoint as rp
began = time.perf_counter()
from restpoint.kernels._dense_loops import loops
loops("float64", "float64")
compiled = time.perf_counter() - began

def memory(word):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(word)).split()[1])

open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(5.0))
rp.solve(rp.Problem(rp.smooth.Multilinear(A), [block] * 4), stop=rp.Stop(max_iterations=3))
print(numba_seconds, compiled, (memory("VmHWM") - before) / A.nbytes)
"""


def starting_up() -> dict[str, float]:
    """Seconds until the loops are ready, without and with a cache, and the memory of a solve beyond A."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", CHILD],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            numba_seconds, compiled, memory = map(float, done.stdout.split())
            found[f"{name}: seconds for the loops"] = compiled
            found["seconds of import numba"] = numba_seconds
            found["peak memory of a solve, over A"] = memory
    return found


def floors(figures: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, what was found, and whether that is enough."""
    found: dict[str, float] = {}
    asked: dict[str, tuple[str, float]] = {}

    def floor(name: str, figure: float, relation: str, number: float) -> None:
        found[name], asked[name] = figure, (relation, number)

    for threads, order4, order3 in ((1, 1.30, 1.40), (2, 1.25, 1.25)):
        for size in SIZES:
            ratio = figures["in reads"][f"{threads} thread(s)"][label(size)]["all gradients"]
            most = order4 if len(size) == 4 else order3
            floor(f"{label(size)}, {threads} thread(s): reads", ratio, "<=", most)
    for size in SIZES:
        for peer, order4, order3 in (
            ("tensorly parafac, an iteration", 10.0, 6.0),
            ("pyttb cp_als, an iteration", 5.0, 2.5),
        ):
            ratio = figures["peers, times slower"][label(size)][peer]
            floor(f"{label(size)}: {peer}", ratio, ">=", order4 if len(size) == 4 else order3)
    for density, most in ((0.5, 0.8), (0.25, 0.4), (0.1, 0.09)):
        ratio = figures["supports, in reads"][f"density {density}"]
        floor(f"order 4, n = 100, density {density}: reads", ratio, "<=", most)
    batch, start = figures["starts, order 4, n = 60"], figures["starting up, order 4, n = 100"]
    for name, least in (
        ("4 starts, times faster than single", 1.9),
        ("64 starts, share of that rate", 0.75),
    ):
        floor(name, batch[name], ">=", least)
    for name, most in (
        ("cold: seconds for the loops", 8.0),
        ("warm: seconds for the loops", 0.3),
        ("peak memory of a solve, over A", 0.05),
    ):
        floor(name, start[name], "<=", most)
    return judged(found, asked)


def label(size: tuple[int, ...]) -> str:
    return f"order {len(size)}, n = {size[0]}"


def main() -> int:
    tensorly.set_backend("numpy")
    rng = np.random.default_rng(0)
    tensors = {size: rng.standard_normal(size) for size in SIZES}
    figures: dict[str, Any] = {"in reads": {}, "peers, times slower": {}}
    for threads in (1, 2):
        with use_threads(threads), threadpool_limits(threads):
            figures["in reads"][f"{threads} thread(s)"] = {
                label(size): gradients(A, threads) for size, A in tensors.items()
            }
    with use_threads(1), threadpool_limits(1):
        for size, A in tensors.items():
            figures["peers, times slower"][label(size)] = peers(A)
        figures["supports, in reads"] = supports(tensors[(100,) * 4])
        figures["starts, order 4, n = 60"] = batches(tensors[(60,) * 4])
    del tensors
    time.sleep(1.0)
    figures["starting up, order 4, n = 100"] = starting_up()
    verdicts = floors(figures)
    write(figures | {"floors": verdicts})
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
