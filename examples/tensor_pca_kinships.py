"""Who calls whom what: 104 x 25 x 104 facts about a people of Australia, 4 % of them true; a sparse tensor.

``python examples/tensor_pca_kinships.py FOLDER`` writes ``FOLDER/tensor_pca_kinships.png`` (default: demo).
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import restpoint as rp
from restpoint.models import SparseTensorPCA

SHAPE = (104, 25, 104)
with np.load(Path(__file__).parent / "data" / "kinships.npz") as file:
    FACTS = file["coordinates"].astype(
        int
    )  # one row (speaker, term, person) for each entry that is 1


def fitted() -> SparseTensorPCA:
    """Four components, refined together; the tensor is never formed. rho by BIC."""
    tensor = rp.smooth.SparseTensor(FACTS, np.ones(len(FACTS)), SHAPE)
    return SparseTensorPCA(4, mode_names=["speaker", "term", "person"]).fit(tensor)


def groups(loadings: np.ndarray) -> np.ndarray:
    """One group for each pattern of signs in the second to the last component, the largest first."""
    signs = loadings[1:] > 0
    _, group, size = np.unique(signs, axis=1, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(-size, kind="stable"))[group.ravel()]


def counted(group: np.ndarray) -> np.ndarray:
    """How many facts there are for each group of speakers, term, and group of persons."""
    table = np.zeros((group.max() + 1, SHAPE[1], group.max() + 1), dtype=int)
    np.add.at(table, (group[FACTS[:, 0]], FACTS[:, 1], group[FACTS[:, 2]]), 1)
    return table


def report(model: SparseTensorPCA) -> str:
    """What was found, in words."""
    speakers, persons = groups(model.components_[0]), groups(model.components_[2])
    table, fit = counted(speakers), model.joint_
    told = table.max(axis=2).sum() / len(FACTS)
    chance = table.sum(axis=(0, 1)).max() / len(FACTS)
    return (
        f"Kinships: {len(FACTS)} of {np.prod(SHAPE)} entries are 1, the others 0 and not stored.\n"
        f"Four components explain {model.explained_variance_ratio_.sum():.1%} of the squares. The signs "
        f"of the last three\ndivide the people into {speakers.max() + 1} groups, of {np.bincount(speakers)}, "
        "where 8 patterns were possible.\n"
        f"Speakers and persons are different modes: {np.mean(speakers == persons):.0%} are in the same "
        "group by either.\n"
        f"Who speaks, by group, and the term tell the group of the person in {told:.1%} of the facts\n"
        f"(always the most frequent group: {chance:.1%}).\n"
        f"{fit.status.name}: gaps of at most {fit.certificate.max:.1e} in the vectors and\n"
        f"{fit.weights_gap:.1e} in the weights, of the {fit.eps:.1e} allowed."
    )


def plot(model: SparseTensorPCA, path: Path) -> None:
    """All facts, in the order of the file and by group; a colour for each group that a term leads to from group 1."""
    group = groups(model.components_[0])
    leads = counted(group)[0].argmax(axis=1)  # of each term
    place = np.argsort(np.argsort(group, kind="stable"))
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
    for axis, where, title in zip(
        axes, (np.arange(len(group)), place), ("as given", "by group"), strict=True
    ):
        colour = plt.get_cmap("tab10")(leads[FACTS[:, 1]])
        axis.scatter(where[FACTS[:, 2]], where[FACTS[:, 0]], s=5, c=colour, linewidths=0)
        axis.set(title=title, xlabel="person", ylabel="speaker", aspect="equal")
    for edge in np.cumsum(np.bincount(group))[:-1] - 0.5:
        axes[1].axhline(edge, color="0.3", lw=0.8)
        axes[1].axvline(edge, color="0.3", lw=0.8)
    figure.savefig(path, dpi=120)


def main(folder: str = "demo") -> SparseTensorPCA:
    """Fit, print, draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    model = fitted()
    print(report(model))
    plot(model, Path(folder) / "tensor_pca_kinships.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
