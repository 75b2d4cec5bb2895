"""What 1797 pictures of digits are made of: 1797 x 8 x 8, patches that are products of rows and columns.

``python examples/tensor_pca_digits.py FOLDER`` writes ``FOLDER/tensor_pca_digits.png`` (default: demo).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from restpoint.models import SparseTensorPCA

DIGITS = load_digits()
SEEN = 1200  # the pictures that are fitted; the others are new
MODES = ["picture", "row", "column"]


def fitted() -> SparseTensorPCA:
    """Eight nonnegative components; rows and columns sparse, pictures not."""
    model = SparseTensorPCA(
        8, rho={"row": 40.0, "column": 40.0}, nonneg=True, sample_mode="picture", mode_names=MODES
    )
    return model.fit(DIGITS.images[:SEEN])


def patches(model: SparseTensorPCA) -> np.ndarray:
    """The components as pictures."""
    return np.einsum("ra,rb->rab", *model.components_[1:])


def report(model: SparseTensorPCA) -> str:
    """What was found, in words."""
    new, fit = DIGITS.images[SEEN:], model.joint_
    scores = model.transform(new)
    rest = new - np.einsum("nr,rab->nab", scores, patches(model))
    nearest = KNeighborsClassifier(5).fit(
        model.transform(DIGITS.images[:SEEN]), DIGITS.target[:SEEN]
    )
    return (
        f"Digits: {len(model.weights_)} patches explain {model.explained_variance_ratio_.sum():.1%} of {SEEN} "
        f"pictures\nand {1.0 - np.sum(rest**2) / np.sum(new**2):.1%} of {len(new)} new ones, by least-squares scores "
        "(transform).\n"
        f"Five nearest neighbours in these {scores.shape[1]} scores, instead of {new[0].size} pixels, name "
        f"{nearest.score(scores, DIGITS.target[SEEN:]):.1%} of the new ones.\n"
        f"Rows and columns used by a patch: "
        + ", ".join(
            f"{a} x {b}" for a, b in zip(*(s.sum(axis=1) for s in model.support_[1:]), strict=True)
        )
        + f".\n{fit.status.name}: gaps of at most {fit.certificate.max:.1e} in the vectors and\n"
        f"{fit.weights_gap:.1e} in the weights, of the {fit.eps:.1e} allowed."
    )


def plot(model: SparseTensorPCA, path: Path) -> None:
    """The patches; new digits, and what their scores make of them."""
    new = DIGITS.images[SEEN : SEEN + 8]
    again = np.einsum("nr,rab->nab", model.transform(new), patches(model))
    rows = {"patches": patches(model), "new digits": new, "from scores": again}
    figure, axes = plt.subplots(3, 8, figsize=(10, 4.2), layout="constrained")
    for line, (name, pictures) in zip(axes, rows.items(), strict=True):
        for axis, picture in zip(line, pictures, strict=True):
            axis.imshow(picture, cmap="gray_r", vmin=0.0)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name)
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> SparseTensorPCA:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    model = fitted()
    print(report(model))
    plot(model, Path(folder) / "tensor_pca_digits.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
