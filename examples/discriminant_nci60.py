"""Eight kinds of cancer by 6830 genes and 57 cell lines: the first three of seven directions, and their genes.

``python examples/discriminant_nci60.py FOLDER`` writes ``FOLDER/discriminant_nci60.png`` (default: demo). The data come
with the package ISLP, of which only two files are read: ``pip install --no-deps ISLP``.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from restpoint.models import ZeroVarianceDiscriminant

LEAST = 5  # lines of a kind; of rarer ones nothing can be held out


def loaded() -> tuple[np.ndarray, np.ndarray]:
    """Gene expressions, and the kind of each line, of kinds with enough lines."""
    found = find_spec("ISLP")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("The NCI60 data come with ISLP: pip install --no-deps ISLP")
    folder = Path(found.submodule_search_locations[0]) / "data"
    X = np.load(folder / "NCI60data.npy")
    kinds = np.loadtxt(folder / "NCI60labs.csv", dtype=str, skiprows=1, quotechar='"')
    names, code, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    kept = counts[code] >= LEAST
    return X[kept], names[code[kept]]


def report(model: ZeroVarianceDiscriminant, X: np.ndarray, y: np.ndarray) -> str:
    """What was found, in words."""
    table = model.signature()
    lines = [
        f"NCI60: {len(y)} cell lines of {len(model.classes_)} kinds, {X.shape[1]} genes.",
        (
            f"Three directions use {', '.join(map(str, model.support_.sum(axis=1)))} genes. "
            "The strongest, with the kinds whose mean is highest and lowest:"
        ),
    ]
    means = [f"mean of {kind}" for kind in model.classes_]
    for component, own in table.groupby("component"):
        for _, row in own.head(3).iterrows():
            order = np.argsort(row[means].to_numpy(dtype=float))
            lines.append(
                f"  {component}. gene {row['feature']:.0f}: {row['coefficient']:+.2f}, in "
                f"{row['selection_frequency']:.0%} of the folds; "
                f"{model.classes_[order[-1]]}, {model.classes_[order[0]]}"
            )
    lines.append(
        f"{'Every component is certified' if model.certified_ else 'Not certified'}: gaps of at most "
        f"{max(float(c.max) for c in model.certificates_):.1e}."
    )
    return "\n".join(lines)


def plot(model: ZeroVarianceDiscriminant, path: Path) -> None:
    """Lines along the first two directions, found without them; and along the third."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    model.plot_projections(ax=axes[0])
    model.plot_projections(components=2, ax=axes[1])
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> ZeroVarianceDiscriminant:
    """Fit, print, draw."""
    X, y = loaded()
    Path(folder).mkdir(parents=True, exist_ok=True)
    model = ZeroVarianceDiscriminant(3, oof=3).fit(X, y)
    print(report(model, X, y))
    plot(model, Path(folder) / "discriminant_nci60.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
