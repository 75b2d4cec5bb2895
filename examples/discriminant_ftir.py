"""Where coffee comes from: 60 infrared spectra of 1841 points, by single points and by stretches of the spectrum.

``python examples/discriminant_ftir.py FOLDER`` writes ``FOLDER/discriminant_ftir.png`` (default: demo).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV

with np.load(Path(__file__).parent / "data" / "coffee_ftir.npz") as file:
    SPECTRA, ORIGIN = file["spectra"], file["origin"]
BASES = {"single points": None, "stretches (Haar)": "haar"}


def searched(basis: str | None) -> ZeroVarianceDiscriminantCV:
    """All points of a spectrum have one unit, so they are not standardized, and a step in the basis stays one."""
    model = ZeroVarianceDiscriminant(basis=basis, sigma=None, standardize=False)
    return ZeroVarianceDiscriminantCV(model, gamma=(0.5, 0.9), cv=3).fit(SPECTRA, ORIGIN)


def steps(model: ZeroVarianceDiscriminant) -> np.ndarray:
    """How often the coefficients change along the spectrum, for each component."""
    w = model.scalings_.T
    return np.count_nonzero(np.abs(np.diff(w, axis=1)) > 1e-9 * np.abs(w).max(), axis=1)


def report(found: dict[str, ZeroVarianceDiscriminantCV]) -> str:
    """What was found, in words."""
    lines = [
        f"Coffee: {len(SPECTRA)} spectra of {SPECTRA.shape[1]} points, from {', '.join(np.unique(ORIGIN))}."
    ]
    for name, search in found.items():
        model, chosen = search.best_estimator_, search.best_params_
        used, changes = (
            ", ".join(map(str, own)) for own in (model.support_.sum(axis=1), steps(model))
        )
        gap = max(float(c.max) for c in model.certificates_)
        lines += [
            f"  {name}: gamma = {chosen['gamma']:g}, {chosen['n_components']} of 2 components, which use {used};",
            f"    along the spectrum their coefficients change {changes} times;",
            f"    held out, {search.best_score_:.1%} balanced accuracy; certified: {model.certified_} (gap {gap:.1e}).",
        ]
    return "\n".join(lines)


def plot(found: dict[str, ZeroVarianceDiscriminantCV], path: Path) -> None:
    """Mean spectra; held-out samples and the first component as it acts on a spectrum, by either basis."""
    figure, axes = plt.subplots(2, 3, figsize=(13, 6.4), layout="constrained")
    point = np.arange(SPECTRA.shape[1])
    for kind in np.unique(ORIGIN):
        axes[0, 0].plot(point, SPECTRA[kind == ORIGIN].mean(axis=0), lw=1, label=kind)
    axes[0, 0].set(title="mean spectra", xlabel="point", ylabel="absorbance")
    axes[0, 0].legend(frameon=False)
    axes[1, 0].set_axis_off()
    for column, (name, search) in zip(axes.T[1:], found.items(), strict=True):
        model = search.best_estimator_
        model.plot_projections(ax=column[0])
        column[1].plot(point, model.scalings_[:, 0], lw=0.8, drawstyle="steps-mid")
        column[1].set(title=f"component 1: {name}", xlabel="point", ylabel="coefficient")
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> dict[str, ZeroVarianceDiscriminantCV]:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    found = {name: searched(basis) for name, basis in BASES.items()}
    print(report(found))
    plot(found, Path(folder) / "discriminant_ftir.png")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
