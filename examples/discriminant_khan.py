"""Which of four childhood tumours: 63 + 20 samples of 2308 genes, with labels and, for comparison, with shuffled ones.

``python examples/discriminant_khan.py FOLDER`` writes ``FOLDER/discriminant_khan.png`` (default: demo).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV

with np.load(Path(__file__).parent / "data" / "khan.npz") as file:
    TRAIN, TEST = ((file[part], file[f"{part}_classes"]) for part in ("train", "test"))
SHUFFLED = np.random.default_rng(0).permutation(TRAIN[1])


def searched() -> ZeroVarianceDiscriminantCV:
    """Components and penalty by cross-validation within the training samples."""
    return ZeroVarianceDiscriminantCV(gamma=(0.5, 0.8), cv=3).fit(*TRAIN)


def shuffled(like: ZeroVarianceDiscriminant) -> ZeroVarianceDiscriminant:
    """The same model of labels that mean nothing."""
    return clone(like).fit(TRAIN[0], SHUFFLED)


def varies(model: ZeroVarianceDiscriminant, labels: np.ndarray) -> float:
    """The largest distance of a training sample from its class mean, relative to that between class means."""
    apart = model.transform(TRAIN[0]) - model.means_[np.searchsorted(model.classes_, labels)]
    return float(np.abs(apart).max() / np.ptp(model.means_, axis=0).max())


def log_loss(model: ZeroVarianceDiscriminant) -> float:
    """Of the new samples."""
    own = np.searchsorted(model.classes_, TEST[1])
    return float(-np.mean(model.predict_log_proba(TEST[0])[np.arange(len(own)), own]))


def report(search: ZeroVarianceDiscriminantCV, chance: ZeroVarianceDiscriminant) -> str:
    """What was found, in words."""
    model, chosen = search.best_estimator_, search.best_params_
    genes, new = TRAIN[0].shape[1], len(TEST[1])
    wrong, blind = (int(np.sum(one.predict(TEST[0]) != TEST[1])) for one in (model, chance))
    gap = max(float(c.max) for c in model.certificates_)
    return (
        f"Khan: {len(TRAIN[1])} tumours of {len(model.classes_)} kinds, {genes} genes; {new} new ones.\n"
        f"Cross-validation takes {chosen['n_components']} components and gamma = {chosen['gamma']:g} (balanced "
        f"accuracy {search.best_score_:.1%}),\nwhich use {', '.join(map(str, model.support_.sum(axis=1)))} genes, "
        f"{model.support_.any(axis=0).sum()} in all. Named wrongly: {wrong} of the new ones; log loss "
        f"{log_loss(model):.2f}.\n"
        "Distances of training samples from their class means, relative to those between means:\n"
        f"at most {varies(model, TRAIN[1]):.0e}, and {varies(chance, SHUFFLED):.0e} with shuffled labels. A picture of "
        "them would look as good.\n"
        f"Samples held out know better: with shuffled labels, predict_proba has log loss {log_loss(chance):.2f}\n"
        f"(shares of the classes: {prior_loss():.2f}), and {blind} of {new} new samples are named wrongly.\n"
        f"{'Every component is certified' if model.certified_ else 'Not certified'}: gaps of at most {gap:.1e}."
    )


def prior_loss() -> float:
    """The log loss of the shares of the classes."""
    kinds, counts = np.unique(TRAIN[1], return_counts=True)
    shares = dict(zip(kinds, counts / counts.sum(), strict=True))
    return float(-np.mean([np.log(shares[kind]) for kind in TEST[1]]))


def plot(search: ZeroVarianceDiscriminantCV, chance: ZeroVarianceDiscriminant, path: Path) -> None:
    """Held-out and new samples; the same for shuffled labels; the genes of the first component."""
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 8), layout="constrained")
    model = search.best_estimator_
    model.plot_projections(ax=axes[0, 0])
    model.plot_projections(*TEST, ax=axes[0, 1])
    chance.plot_projections(ax=axes[1, 0]).set_title(
        "shuffled labels, each sample along\ndirections found without it", loc="left", fontsize=9
    )
    model.plot_pattern(0, axes=axes[1, 1])
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> tuple[ZeroVarianceDiscriminantCV, ZeroVarianceDiscriminant]:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    search = searched()
    chance = shuffled(search.best_estimator_)
    print(report(search, chance))
    plot(search, chance, Path(folder) / "discriminant_khan.png")
    return search, chance


if __name__ == "__main__":
    main(*sys.argv[1:2])
