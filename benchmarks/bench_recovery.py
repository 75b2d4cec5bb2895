"""What SparseTensorPCA finds of what was planted: supports, drop-out, and several components.

Supports: T = s x_1 o ... o x_d + standard normal noise. A trial draws noise, vectors and 20 starts once; all strengths
s and all methods share them. Exact means the right support in every mode. Peers are told the numbers of nonzeros:

hosvd   the leading left singular vector of each unfolding, its k largest entries
power   the best of 20 dense power iterations (alternating least squares), the k largest entries of each vector

ours is told nothing: default arguments, ``init`` the same starts.

Drop-out: half of the subjects lose the last 80 % of their times, 40 % of the entries. Several components: three, with
cosines of 0.5 between them in every mode, against tensorly's parafac.

RESTPOINT_BENCH_TRIALS (default 100) is the number of trials a strength, RESTPOINT_BENCH_ONLY a pattern for the names of
the cases to run, RESTPOINT_BENCH_STRENGTHS=25,30,40 the strengths to keep, RESTPOINT_BENCH_FIGURE where to draw the
phase diagrams. Ctrl-C ends the phase diagrams with the trials that are done.
"""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tensorly.decomposition import parafac
from threadpoolctl import threadpool_limits
from timing import judged, missed, write

import planted
import restpoint as rp
from planted import Planted, Vectors
from restpoint.kernels import use_threads
from restpoint.models import SparseTensorPCA

TRIALS = int(os.environ.get("RESTPOINT_BENCH_TRIALS", "100"))
ONLY = os.environ.get("RESTPOINT_BENCH_ONLY", "")
KEPT = [float(s) for s in os.environ.get("RESTPOINT_BENCH_STRENGTHS", "").split(",") if s]
STARTS, SEED, EPS = 20, 20265, 1e-5
METHODS = ("hosvd", "power", "ours")
NEVER = 1e9  # a floor that no figure answers is missed
# The norm of what is planted over that of the noise, in the experiments with drop-out and several components.
SIGNAL = 1.0


@dataclass(frozen=True)
class Case:
    name: str
    shape: tuple[int, ...]
    nonzeros: int
    strengths: tuple[float, ...]
    uneven: bool

    def trial(self, number: int) -> tuple[Planted, Vectors]:
        rng = np.random.default_rng([SEED, len(self.shape), self.shape[0], self.uneven, number])
        truth = planted.sparse_vectors(rng, self.shape, self.nonzeros, uneven=self.uneven)
        return Planted(rng.standard_normal(self.shape), truth), planted.starts(
            rng, self.shape, STARTS
        )


ORDER3 = (15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 50.0, 60.0, 80.0, 120.0, 160.0, 240.0)
ORDER4 = (15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 80.0, 120.0, 200.0, 300.0, 450.0)


def kept(strengths: tuple[float, ...]) -> tuple[float, ...]:
    """Those of RESTPOINT_BENCH_STRENGTHS, all where it names none."""
    return tuple(s for s in strengths if not KEPT or s in KEPT)


CASES = tuple(
    Case(f"{size}, {'uneven' if uneven else 'equal'} moduli", shape, k, kept(strengths), uneven)
    for size, shape, k, strengths in (
        ("order 3, n = 200", (200,) * 3, 10, ORDER3),
        ("order 4, n = 60", (60,) * 4, 6, ORDER4),
    )
    for uneven in (False, True)
)


def quietly(model: SparseTensorPCA, A: np.ndarray) -> SparseTensorPCA:
    """Fitted; below what can be found, the estimator says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(A)


def dense_power(A: np.ndarray, x0: Vectors) -> Vectors:
    """The best end of alternating least squares, all starts at once; those that meet are followed once."""
    problem = rp.Problem(rp.smooth.Multilinear(A), [rp.Block(rp.sets.L2Ball(1.0))] * A.ndim)
    stop = rp.Stop(max_iterations=500, retire=rp.Retire(prospect=None))
    return rp.solve(problem, eps=rp.Relative(EPS), x0=x0, stop=stop).best().xs


def verdict(truth: Vectors, found: list[frozenset[int]], xs: Vectors) -> str:
    """Exact, or what went wrong: the wrong place, entries missed, entries too many, both."""
    right = [planted.support(x) for x in truth]
    if right == found:
        return "exact"
    cosines = [
        abs(float(a @ planted.unit(b))) if np.any(b) else 0.0
        for a, b in zip(truth, xs, strict=True)
    ]
    if min(cosines) < 0.5:
        return "elsewhere"
    few = any(r - f for r, f in zip(right, found, strict=True))
    many = any(f - r for r, f in zip(right, found, strict=True))
    return "too few and too many" if few and many else "too few" if few else "too many"


def one_trial(case: Case, number: int) -> dict[float, dict[str, tuple[str, float]]]:
    """For each strength and method: the verdict, and seconds."""
    draw, x0 = case.trial(number)
    found: dict[float, dict[str, tuple[str, float]]] = {}
    for s in case.strengths:
        A, ends = draw.at(s), {}
        for method in METHODS:
            began = time.perf_counter()
            if method == "ours":
                model = quietly(SparseTensorPCA(n_components=1, starts=STARTS, init=x0), A)
                xs = tuple(rows[0] for rows in model.components_)
                supports = [planted.support(x) for x in xs]
            else:
                xs = draw.singular_vectors() if method == "hosvd" else dense_power(A, x0)
                supports = [planted.top(x, case.nonzeros) for x in xs]
            seconds = time.perf_counter() - began
            ends[method] = (verdict(draw.truth, supports, xs), seconds)
        found[s] = ends
    return found


def phases(cases: list[Case]) -> tuple[int, dict[str, Any]]:
    """How many trials were done, and of each case rates of exact recovery by strength, failures, seconds a fit."""
    trials: list[list[dict[float, Any]]] = []
    try:
        for number in range(TRIALS if cases else 0):
            trials.append([one_trial(case, number) for case in cases])
            print(f"{number + 1} of {TRIALS} trials", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"ended after {len(trials)} of {TRIALS} trials", file=sys.stderr)
    own = {case.name: rates(case, [t[k] for t in trials]) for k, case in enumerate(cases) if trials}
    return len(trials), own


def rates(case: Case, trials: list[dict[float, Any]]) -> dict[str, Any]:
    """One row for each strength."""
    rows: dict[str, Any] = {}
    for s in case.strengths:
        row: dict[str, Any] = {
            m: float(np.mean([t[s][m][0] == "exact" for t in trials])) for m in METHODS
        }
        row["ours, otherwise"] = dict(
            Counter(t[s]["ours"][0] for t in trials if t[s]["ours"][0] != "exact")
        )
        for m in METHODS:
            row[f"{m}, seconds"] = float(np.median([t[s][m][1] for t in trials]))
        rows[f"{s:g}"] = row
    return rows


def drop_out(number: int) -> dict[str, float]:
    """Errors of the vectors where entries are missing, and where they were set to 0."""
    rng = np.random.default_rng([SEED, 6, number])
    shape = (60, 40, 50)  # subjects, features, times
    truth = (
        planted.unit(rng.uniform(0.5, 1.5, shape[0])),
        planted.unit(rng.standard_normal(shape[1])),
        planted.unit(1.0 + 0.5 * np.sin(np.linspace(0.0, 2.0 * np.pi, shape[2]))),
    )
    A = SIGNAL * np.sqrt(np.prod(shape)) * planted.outer(truth) + rng.standard_normal(shape)
    left = rng.permutation(shape[0])[: shape[0] // 2]
    A[np.ix_(left, range(shape[1]), range(shape[2] // 5, shape[2]))] = np.nan
    stayed = np.setdiff1d(np.arange(shape[0]), left)
    found: dict[str, float] = {"missing": float(np.isnan(A).mean())}
    for name, data in (("observed", A), ("zero-filled", np.nan_to_num(A))):
        model = quietly(SparseTensorPCA(n_components=1), data)
        xs = [rows[0] for rows in model.components_]
        errors = [
            float(np.linalg.norm(t - x * np.sign(x @ t))) for t, x in zip(truth, xs, strict=True)
        ]
        found[f"{name}: largest error of a mode"] = max(errors)
        ratio = np.linalg.norm(xs[0][left]) / np.linalg.norm(xs[0][stayed])
        true_ratio = np.linalg.norm(truth[0][left]) / np.linalg.norm(truth[0][stayed])
        found[f"{name}: weight of those who left over those who stayed, over the true one"] = float(
            ratio / true_ratio
        )
        found[f"{name}: empty"] = float(not all(np.any(x) for x in xs))
        found[f"{name}: certified"] = float(model.certified_)
    return found


def congruent(
    rng: np.random.Generator, shape: tuple[int, ...], rank: int, cosine: float
) -> Vectors:
    """One array (rank, n) a mode: unit rows with this cosine between any two."""
    half = np.linalg.cholesky((1.0 - cosine) * np.eye(rank) + cosine)
    return tuple(half @ np.linalg.qr(rng.standard_normal((n, rank)))[0].T for n in shape)


def model_of(weights: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    return sum(
        w * planted.outer(tuple(X[r] for X in factors)) for r, w in enumerate(np.ravel(weights))
    )


def match(truth: Vectors, found: list[np.ndarray]) -> float:
    """The factor match score: mean over components of the product of cosines, at the best pairing."""
    cosines = np.prod([np.abs(t @ x.T) for t, x in zip(truth, found, strict=True)], axis=0)
    rank = len(cosines)
    return max(
        float(np.mean([cosines[r, p[r]] for r in range(rank)])) for p in permutations(range(rank))
    )


def several(number: int) -> dict[str, float]:
    """Three congruent components: by default, at rho = 0, and by parafac."""
    rng = np.random.default_rng([SEED, 3, number])
    shape = (40, 30, 20)
    truth = congruent(rng, shape, 3, 0.5)
    signal = model_of(np.array([3.0, 2.5, 2.0]), list(truth))
    noise = rng.standard_normal(shape)
    A = SIGNAL * np.linalg.norm(noise) / np.linalg.norm(signal) * signal + noise
    found: dict[str, float] = {}
    for name, rho in (("default", "auto"), ("rho = 0", 0.0)):
        model = quietly(SparseTensorPCA(n_components=3, rho=rho), A)
        found[f"{name}: factor match"] = match(truth, model.components_)
        found[f"{name}: error"] = float(
            np.linalg.norm(A - model_of(model.weights_, model.components_)) / np.linalg.norm(A)
        )
        found[f"{name}: empty"] = float(
            np.any(model.weights_ <= 0) or not all(x.any(axis=1).all() for x in model.components_)
        )
        found[f"{name}: certified"] = float(model.certified_)
    np.random.seed(number)  # noqa: NPY002 - parafac draws from it where singular vectors do not suffice
    peer = parafac(A, 3)
    rows = [np.asarray(x).T for x in peer.factors]
    fit = model_of(peer.weights, rows)
    found["parafac: factor match"] = match(truth, [planted.unit(x) for x in rows])
    found["parafac: error"] = float(np.linalg.norm(A - fit) / np.linalg.norm(A))
    found["error at rho = 0 / parafac's"] = found["rho = 0: error"] / found["parafac: error"]
    return found


def gathered(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "median": float(np.median([r[name] for r in runs])),
            "least": min(r[name] for r in runs),
            "most": max(r[name] for r in runs),
        }
        for name in runs[0]
    }


def floors(figures: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, float] = {}
    asked: dict[str, tuple[str, float]] = {}

    def floor(name: str, figure: float, relation: str, number: float) -> None:
        found[name], asked[name] = figure, (relation, number)

    for case, rows in figures["exact recovery"].items():
        hard = [row["ours"] for row in rows.values() if row["hosvd"] < 0.60]
        floor(f"{case}: best rate where hosvd < 60 %", max(hard, default=-NEVER), ">=", 0.95)
        behind = max(row["power"] - row["ours"] for row in rows.values())
        floor(f"{case}: most points behind power", 100.0 * behind, "<=", 5.0)
    if "drop-out" in figures:
        runs = figures["drop-out"]
        floor(
            "drop-out: largest error of a mode",
            runs["observed: largest error of a mode"]["most"],
            "<=",
            0.05,
        )
        floor("drop-out: empty components", runs["observed: empty"]["most"], "<=", 0.0)
    if "three components" in figures:
        runs = figures["three components"]
        floor("three components: factor match", runs["default: factor match"]["least"], ">=", 0.95)
        floor("three components: empty", runs["default: empty"]["most"], "<=", 0.0)
        floor(
            "three components: error at rho = 0 / parafac's",
            runs["error at rho = 0 / parafac's"]["most"],
            "<=",
            1.0 + 1e-9,
        )
    return judged(found, asked)


def draw_figure(recovery: dict[str, Any], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(recovery), figsize=(3.6 * len(recovery), 3.0), sharey=True, squeeze=False
    )
    for axis, (case, rows) in zip(axes[0], recovery.items(), strict=True):
        for method, style in zip(METHODS, ("s--", "^:", "o-"), strict=True):
            axis.plot(
                [float(s) for s in rows],
                [r[method] for r in rows.values()],
                style,
                ms=3,
                label=method,
            )
        axis.set(title=case, xlabel="strength", xscale="log")
        axis.title.set_size(8)
    axes[0][0].set_ylabel("exact recovery")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> int:
    figures: dict[str, Any] = {"trials": TRIALS, "exact recovery": {}}
    with use_threads(1), threadpool_limits(1):
        for name, experiment in (("drop-out", drop_out), ("three components", several)):
            if re.search(ONLY, name):
                figures[name] = gathered([experiment(k) for k in range(TRIALS)])
        cases = [case for case in CASES if re.search(ONLY, case.name)]
        figures["trials of exact recovery"], figures["exact recovery"] = phases(cases)
    verdicts = floors(figures)
    write(figures | {"floors": verdicts})
    if "RESTPOINT_BENCH_FIGURE" in os.environ and figures["exact recovery"]:
        draw_figure(figures["exact recovery"], os.environ["RESTPOINT_BENCH_FIGURE"])
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
