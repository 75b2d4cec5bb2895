"""In which directions 178 wines have heavy tails: the fourth cumulant of 13 measurements, 13 x 13 x 13 x 13, symmetric.

``python examples/tensor_pca_wine.py FOLDER`` writes ``FOLDER/tensor_pca_wine.png`` (default: demo).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import restpoint as rp
from restpoint.models import SparseTensorPCA

WINE = load_wine()
NAMES = [name.replace("_of_diluted_wines", "").replace("_", " ") for name in WINE.feature_names]
SAMPLES = (WINE.data - WINE.data.mean(axis=0)) / WINE.data.std(axis=0)


def fitted() -> SparseTensorPCA:
    """Two directions of four measurements; one vector in all four modes, and the tensor is never formed."""
    cumulant = rp.smooth.MomentTensor(SAMPLES, 4, cumulant=True, tied=(0, 0, 0, 0))
    return SparseTensorPCA(2, n_nonzero=4, deflation="subtract").fit(cumulant)


def kurtosis(y: np.ndarray) -> np.ndarray:
    """Excess kurtosis of columns: 0 for a Gaussian."""
    return np.mean(y**4, axis=0) / np.mean(y**2, axis=0) ** 2 - 3.0


def report(model: SparseTensorPCA) -> str:
    """What was found, in words."""
    alone = kurtosis(SAMPLES)
    lines = [
        f"Wine: the heaviest tails of one measurement ({NAMES[alone.argmax()]}): excess kurtosis {alone.max():.1f}."
    ]
    for x, certificate in zip(model.components_[0], model.certificate_, strict=True):
        y, order = SAMPLES @ x, np.argsort(-np.abs(x))
        chosen = ", ".join(f"{NAMES[j]} {x[j]:+.2f}" for j in order if x[j] != 0)
        outliers = ", ".join(str(i) for i in np.argsort(-np.abs(y))[:3])
        lines += [
            f"  {chosen}",
            f"     excess kurtosis {kurtosis(y):.1f}, most extreme wines {outliers}, gap {certificate.max:.1e}",
        ]
    done = "Both are certified" if model.certified_ else "Not both are certified"
    lines.append(f"{done} stationary points, {model.certificate_[0].kind}.")
    return "\n".join(lines)


def plot(model: SparseTensorPCA, path: Path) -> None:
    """Loadings by name, and where the wines lie along each direction."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 6.5), layout="constrained")
    grid = np.linspace(-6.0, 6.0, 200)
    for r, (x, (left, right)) in enumerate(zip(model.components_[0], axes, strict=True)):
        model.plot_loadings(components=r, labels={0: NAMES}, axes=left)
        left.set_ylabel(f"direction {r + 1}")
        y = SAMPLES @ x / np.std(SAMPLES @ x)
        right.hist(y, bins=48, range=(-6, 6), density=True, color="#9db7d5")
        right.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color="#b3401f", lw=1.2)
        for i in np.argsort(-np.abs(y))[:4]:
            right.annotate(
                f"{i}", (y[i], 0.02), (y[i], 0.12), ha="center", arrowprops={"arrowstyle": "->"}
            )
        right.set(title="the wines, in standard deviations", yticks=[])
    axes[0, 1].legend(["Gaussian", "178 wines"], frameon=False)
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> SparseTensorPCA:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    model = fitted()
    print(report(model))
    plot(model, Path(folder) / "tensor_pca_wine.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
