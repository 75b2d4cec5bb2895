"""Zero-variance discriminant vectors with many features: against ADMM with thin factors, and in time and memory alone.

Ours is ``solve`` with Anderson's rule from the leading direction between classes, to a certified gap of 1e-8 of the
largest w'Bw / 2. ADMM (``reproduce.admm.Thin``: the null space never formed, all products prepared) takes the same
start, and is given its best beta of five, in units of the largest eigenvalue, and the iteration at which Phi is first
as low as ours up to 1e-6 or, if it never is, as low as where it settles (or a cap, if it does not). Its time is that of
an iteration times this number. gamma is a share of the penalty at which the leading direction is worth 0. One thread.

RESTPOINT_BENCH_SMALL=1 tries the program out: fewer features and seeds, and a smaller explicit null space.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from timing import judged, missed, write

import restpoint as rp
from restpoint.models.discriminant.bases import Basis
from restpoint.models.discriminant.fitting import weights
from restpoint.models.discriminant.scatter import Scatter
from restpoint.models.discriminant.spaces import ZeroVariance
from restpoint.reproduce.admm import Explicit, Thin

SMALL = bool(os.environ.get("RESTPOINT_BENCH_SMALL"))
BETAS = (2.05, 2.2, 2.5, 3.0, 5.0)
SHARES = (0.25, 0.5, 0.75)
# From so many features on, the beta that is best for the first seed is that of the others.
LARGE = 100_000
NEAR, TOL, CAP, STILL = 1e-6, 1e-8, 2000, 100
METHOD = rp.Momentum(rp.ConditionalGradient(smoothness=rp.FullStep()), memory=3, burst=2)


class Setting(NamedTuple):
    features: int
    samples: int
    classes: int
    starts: int
    seeds: int

    @property
    def name(self) -> str:
        return f"p = {self.features}, {self.samples} samples, {self.classes} classes"


SETTINGS = (
    (Setting(1_000, 60, 3, 1, 2), Setting(5_000, 60, 3, 1, 2))
    if SMALL
    else (
        Setting(1_000, 60, 3, 1, 5),
        Setting(5_000, 60, 3, 1, 5),
        Setting(5_000, 100, 5, 1, 5),
        Setting(20_000, 60, 3, 1, 5),
        Setting(100_000, 100, 4, 1, 5),
    )
)
# The cost with the number of features alone.
GROWING = tuple(
    Setting(p, 60, 3, 1, 3) for p in ((1_000, 5_000) if SMALL else (1_000, 5_000, 20_000, 100_000))
)
ALONE = (
    (Setting(5_000, 60, 3, 1, 1),)
    if SMALL
    else (Setting(20_000, 60, 3, 1, 1), Setting(100_000, 100, 4, 1, 1))
)
EXPLICIT = Setting(1_000 if SMALL else 5_000, 60, 3, 1, 1)


def samples(at: Setting, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent normal features, 2 % of which differ between classes."""
    rng = np.random.default_rng([at.features, at.samples, at.classes, seed])
    code = np.arange(at.samples) % at.classes
    shape = (at.classes, at.features)
    centres = np.where(rng.random(shape) < 0.02, rng.standard_normal(shape), 0.0)
    return rng.standard_normal((at.samples, at.features)) + centres[code], code


def space_of(X: np.ndarray, code: np.ndarray) -> ZeroVariance:
    """From samples to the problem but for its penalty."""
    shares = np.bincount(code) / len(code)
    scatter = Scatter.of(X, code, shares, standardize=True, basis=Basis())
    return ZeroVariance.of(scatter, weights(scatter, None), None)


class Task(NamedTuple):
    """A space, a penalty, starts, and the gap that is asked for."""

    space: ZeroVariance
    gamma: float
    x0: np.ndarray

    @classmethod
    def of(cls, space: ZeroVariance, share: float, starts: int) -> Task:
        x0 = space.starts(starts, np.random.default_rng(0))
        worth = float(space.separation(x0[:1])[0] ** 2 / space.penalty(x0[:1])[0])
        return cls(space, share * worth, x0)

    @property
    def eps(self) -> float:
        return 0.5 * TOL * self.space.strongest**2

    def solved(self) -> rp.Result:
        return rp.solve(self.space.problem(self.gamma), METHOD, eps=self.eps, x0=self.x0)

    def admm(self, beta: float) -> Thin:
        space = self.space
        return Thin(space.factor, space.Q, self.gamma * space.sigma, beta * space.strongest**2)


def ours(task: Task, repeats: int) -> tuple[float, rp.Result]:
    """Seconds, the best of several calls."""
    best = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        result = task.solved()
        best = min(best, time.perf_counter() - began)
    return best, result


class End(NamedTuple):
    """Of a run of ADMM: iterations, whether Phi came as low as ours by then, and Phi; none where it diverged."""

    iterations: int
    reached: bool
    phi: float


def needed(runner: Thin, x0: np.ndarray, target: float, most: int) -> End | None:
    """Until Phi is at most the target, or as low as where it settles."""
    found: list[float] = []
    for phi, _ in zip(runner.values(x0), range(most), strict=False):
        if not np.isfinite(phi):
            return None
        found.append(phi)
        if phi <= target:
            return End(len(found), True, phi)
        if len(found) % STILL == 0:
            recent = found[-STILL:]
            if max(recent) - min(recent) <= NEAR * abs(recent[-1]):
                near = np.flatnonzero(np.array(found) <= phi + NEAR * abs(phi))
                return End(int(near[0]) + 1, False, phi)
    return None


class Run(NamedTuple):
    """ADMM with one beta, all starts: how many ended higher than ours, seconds, iterations, how much higher Phi is."""

    higher: int
    seconds: float
    iterations: int
    share: float
    beta: float


def theirs(task: Task, phis: np.ndarray, repeats: int, betas: tuple[float, ...] = BETAS) -> Run:
    """ADMM at its best beta: of those that came as low as ours as often as any, the fastest."""
    best = Run(len(phis) + 1, np.inf, CAP * len(phis), np.nan, np.nan)
    per_step = np.inf
    with np.errstate(all="ignore"):
        for beta in betas:
            began = time.perf_counter()
            runner = task.admm(beta)
            setup = time.perf_counter() - began
            for _ in range(repeats):
                began = time.perf_counter()
                runner.steps(task.x0[0], 20)
                per_step = min(per_step, (time.perf_counter() - began) / 20)
            # Once all starts came as low, more iterations than that are of no interest.
            most, ends = best.iterations if best.higher == 0 else CAP * len(phis), []
            for x, phi in zip(task.x0, phis, strict=True):
                left = min(CAP, most - sum(end.iterations for end in ends))
                end = needed(runner, x, phi + NEAR * abs(phi), left)
                if end is None:
                    break
                ends.append(end)
            else:
                count = sum(end.iterations for end in ends)
                share = np.mean([(e.phi - p) / abs(p) for e, p in zip(ends, phis, strict=True)])
                higher = sum(not end.reached for end in ends)
                best = min(best, Run(higher, setup + count * per_step, count, float(share), beta))
    if np.isfinite(best.seconds):
        return best
    # With no beta did all starts come to an end: it takes longer than this.
    return best._replace(seconds=best.iterations * per_step, share=0.0, beta=0.0)


def compared(at: Setting, say: Any) -> dict[str, dict[str, float]]:
    """Medians over the seeds, for each share."""
    rows: dict[float, list[dict[str, float]]] = {share: [] for share in SHARES}
    betas = dict.fromkeys(SHARES, BETAS)
    repeats = 3 if at.features < LARGE else 1
    for seed in range(at.seeds):
        space = space_of(*samples(at, seed))
        space.strongest  # noqa: B018 - known to both
        for share in SHARES:
            task = Task.of(space, share, at.starts)
            task.solved()
            seconds, result = ours(task, repeats)
            other = theirs(task, np.atleast_1d(result.value), repeats, betas[share])
            if at.features >= LARGE and other.beta > 0.0:
                betas[share] = (other.beta,)
            rows[share].append(
                {
                    "ours, ms": 1e3 * seconds,
                    "ADMM, ms": 1e3 * other.seconds,
                    "ADMM / ours": other.seconds / seconds,
                    "iterations": float(np.max(result.iterations)),
                    "certified": float(np.mean(result.certified)),
                    "Phi": float(np.min(result.value)),
                    "ADMM, iterations": other.iterations,
                    "ADMM, beta": other.beta,
                    "ADMM, starts that ended higher": other.higher,
                    "ADMM, Phi higher, share": other.share,
                    "nonzeros": float(np.count_nonzero(np.atleast_2d(result.x)[0])),
                }
            )
    found = {
        f"{at.name}, gamma = {share}": {
            name: float(np.median([row[name] for row in several])) for name in several[0]
        }
        for share, several in rows.items()
    }
    for name, row in found.items():
        say(f"{name}: ours {row['ours, ms']:.1f} ms, ADMM / ours {row['ADMM / ours']:.2f}")
    return found


def growing(say: Any) -> dict[str, float]:
    """Seconds from samples to a certified vector, by the number of features; and the exponent."""
    found = {}
    for at in GROWING:
        times = []
        for seed in range(at.seeds):
            X, code = samples(at, seed)
            best = np.inf
            for _ in range(2):
                began = time.perf_counter()
                Task.of(space_of(X, code), 0.5, 1).solved()
                best = min(best, time.perf_counter() - began)
            times.append(best)
        found[f"p = {at.features}"] = float(np.median(times))
    logs = [np.log([at.features for at in GROWING]), np.log(list(found.values()))]
    found["exponent"] = float(np.polyfit(*logs, 1)[0])
    say(f"exponent of cost in p: {found['exponent']:.2f}")
    return found


# The peak of memory is that of this process alone: samples included.
CHILD = """
import sys, time
import numpy as np
from threadpoolctl import threadpool_limits
from bench_discriminant_scale import ALONE, Setting, Task, samples, space_of
at = Setting(*map(int, sys.argv[1:]))
with threadpool_limits(1):
    Task.of(space_of(*samples(at._replace(features=1000), 0)), 0.5, 1).solved()  # loops are loaded
    X, code = samples(at, 0)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        result = Task.of(space_of(X, code), 0.5, 1).solved()
        best = min(best, time.perf_counter() - began)
assert np.all(result.certified)
lines = open("/proc/self/status").read().splitlines()
peak = 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
print(best, peak / 1e9)
"""


def alone(at: Setting) -> dict[str, float]:
    """Seconds of a component, setup included, and the peak of memory in GB, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, at)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds, memory = map(float, done.stdout.split())
    return {"seconds": seconds, "GB": memory}


def explicit(say: Any) -> dict[str, float]:
    """What users have: eigenvectors of the p x p matrix within classes, the null space as columns, and ADMM on it."""
    X, code = samples(EXPLICIT, 0)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        task = Task.of(space_of(X, code), 0.5, 1)
        result = task.solved()
        best = min(best, time.perf_counter() - began)
    space, beta = task.space, 2.5
    phi = float(np.atleast_1d(result.value)[0])
    end = needed(task.admm(beta), task.x0[0], phi + NEAR * abs(phi), CAP)
    began = time.perf_counter()
    W = space.Q @ space.Q.T  # its factor is given away
    N = np.linalg.eigh(W)[1][:, : EXPLICIT.features - space.Q.shape[1]]
    half = N.T @ space.factor
    weighed = task.gamma * space.sigma
    runner = Explicit(half @ half.T, N, weighed, beta * space.strongest**2)
    runner.steps(N.T @ task.x0[0], CAP if end is None else end.iterations)
    seconds = time.perf_counter() - began
    say(f"explicit null space, p = {EXPLICIT.features}: {seconds:.1f} s, ours {1e3 * best:.1f} ms")
    return {"seconds": seconds, "ours, seconds": best, "explicit / ours": seconds / best}


def floors(figures: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, float] = {}
    asked: dict[str, tuple[str, float]] = {}

    def floor(name: str, figure: float, relation: str, number: float) -> None:
        found[name], asked[name] = figure, (relation, number)

    rows = figures["against ADMM"]
    ratios = {name: row["ADMM / ours"] for name, row in rows.items()}
    large = [
        ratios[f"{at.name}, gamma = {share}"]
        for at in SETTINGS
        if at.features >= 20_000
        for share in SHARES
    ]
    floor("ADMM / ours, median", float(np.median(list(ratios.values()))), ">=", 1.5)
    floor("ADMM / ours, least", min(ratios.values()), ">=", 0.7)
    if large:
        floor("ADMM / ours, median for p >= 20,000", float(np.median(large)), ">=", 2.0)
    floor("certified", min(row["certified"] for row in rows.values()), ">=", 1.0)
    floor("exponent of cost in p", figures["seconds by p"]["exponent"], "<=", 1.25)
    if not SMALL:
        floor("explicit / ours", figures["explicit null space"]["explicit / ours"], ">=", 1000.0)
        small, large_one = (figures["alone"][at.name] for at in ALONE)
        floor("p = 20,000: seconds, setup included", small["seconds"], "<=", 0.15)
        floor("p = 100,000: seconds, setup included", large_one["seconds"], "<=", 2.0)
        floor("p = 100,000: GB at the peak", large_one["GB"], "<=", 1.5)
    return judged(found, asked)


def main() -> int:
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {words}", file=sys.stderr, flush=True)

    figures: dict[str, Any] = {"against ADMM": {}}
    figures["alone"] = {at.name: alone(at) for at in ALONE}
    for name, row in figures["alone"].items():
        say(f"{name}: {row['seconds']:.3f} s with setup, {row['GB']:.2f} GB")
    with threadpool_limits(1):
        figures["seconds by p"] = growing(say)
        for at in SETTINGS:
            figures["against ADMM"] |= compared(at, say)
        figures["explicit null space"] = explicit(say)
    verdicts = floors(figures)
    write(figures | {"floors": verdicts})
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
