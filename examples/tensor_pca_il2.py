"""Which cells answer to which IL-2 mutein, at what dose and when: 13 x 4 x 12 x 8, 192 entries missing.

``python examples/tensor_pca_il2.py FOLDER`` writes ``FOLDER/tensor_pca_il2.png`` (default: demo).
"""

import sys
from pathlib import Path

import numpy as np

from restpoint.models import SparseTensorPCA

MODES = ["ligand", "hours", "dose", "cell"]
with np.load(Path(__file__).parent / "data" / "il2.npz") as file:
    TENSOR, NAMES = file["tensor"], {mode: file[mode] for mode in MODES}  # NaN: not measured


def fitted(tensor: np.ndarray) -> SparseTensorPCA:
    """Three nonnegative components, refined together on the observed entries; rho by BIC."""
    return SparseTensorPCA(3, nonneg=True, mode_names=MODES).fit(tensor)


def predicted(model: SparseTensorPCA, where: np.ndarray) -> np.ndarray:
    """The sum of the components at chosen entries."""
    return np.einsum("r,ra,rb,rc,rd->abcd", model.weights_, *model.components_)[where]


def report(model: SparseTensorPCA) -> str:
    """What was found, in words."""
    fit, missing = model.joint_, np.isnan(TENSOR)
    hidden = ~missing & (np.random.default_rng(0).random(TENSOR.shape) < 0.1)
    again = predicted(fitted(np.where(hidden, np.nan, TENSOR)), hidden) - TENSOR[hidden]
    unseen = 1.0 - np.sum(again**2) / np.sum(TENSOR[hidden] ** 2)
    lines = [
        f"IL-2: {missing.sum()} of {TENSOR.size} entries were not measured; none is filled in.",
        f"Three components explain {model.explained_variance_ratio_.sum():.1%} of what was measured,",
        f"and {unseen:.1%} of a tenth that a second fit did not see (squared error):",
    ]
    for r, weight in enumerate(model.weights_):
        order = {m: np.argsort(-x[r]) for m, x in zip(MODES, model.components_, strict=True)}
        ligand, hours, dose, cell = (NAMES[mode][order[mode]] for mode in MODES)
        lines += [
            f"  {r + 1}. weight {weight:.2f}, strongest at {dose[0]:.2g} nM and {hours[0]:g} h",
            f"     cells: {', '.join(cell[:3])}; ligands: {', '.join(ligand[:3])}",
        ]
    lines += [
        f"Where nothing was measured they predict {predicted(model, missing).mean():.2f} in the mean.",
        f"{fit.status.name}: gaps of at most {fit.certificate.max:.1e} in the vectors and",
        f"{fit.weights_gap:.1e} in the weights, of the {fit.eps:.1e} allowed.",
    ]
    return "\n".join(lines)


def plot(model: SparseTensorPCA, path: Path) -> None:
    """The loadings: hours and doses, which are numbers, as lines, ligands and cells as bars."""
    axes = model.plot_loadings(labels=NAMES)
    for axis in axes[MODES.index("dose")]:
        axis.set_xlabel("dose (nM)")
    axes[0, 0].figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> SparseTensorPCA:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    model = fitted(TENSOR)
    print(report(model))
    plot(model, Path(folder) / "tensor_pca_il2.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
