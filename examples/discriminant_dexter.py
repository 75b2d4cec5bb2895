"""What a text is about, by 20,000 words: a sparse matrix that stays sparse; 200 texts to learn from, 100 new ones.

``python examples/discriminant_dexter.py FOLDER`` writes ``FOLDER/discriminant_dexter.png`` (default: demo). The data
come with the package hub-toolbox, of which only two files are read: ``pip install --no-deps hub-toolbox``.
"""

import sys
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

from restpoint.models import ZeroVarianceDiscriminant

WORDS = 20_000
Part = tuple[scipy.sparse.csr_matrix, np.ndarray]


def loaded() -> Part:
    """Word counts, most of them 0, and the subject of each text: -1 or 1."""
    found = find_spec("hub_toolbox")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("Dexter comes with hub-toolbox: pip install --no-deps hub-toolbox")
    folder = Path(found.submodule_search_locations[0]) / "example_datasets"
    labels, texts = (
        (folder / f"dexter_train.{end}").read_text().split("\n") for end in ("labels", "data")
    )
    lines = "\n".join(f"{label} {text}" for label, text in zip(labels, texts, strict=False) if text)
    X, y = load_svmlight_file(BytesIO(lines.encode()), n_features=WORDS)
    return X, y.astype(int)


def report(model: ZeroVarianceDiscriminant, train: Part, test: Part) -> str:
    """What was found, in words."""
    X, y = test
    own = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    counts = np.asarray(train[0].sum(axis=0)).ravel()
    return (
        f"Dexter: {len(train[1])} texts, {len(y)} new ones, {WORDS} words, of which a text has "
        f"{train[0].nnz / len(train[1]):.0f} in the mean.\n"
        f"{np.count_nonzero(model.support_[0])} of the {np.count_nonzero(counts)} words that occur have a coefficient, "
        f"{np.count_nonzero(model.selection_frequency_[0] == 1.0)} in all folds.\n"
        f"Of the new texts {np.mean(model.predict(X) != y):.1%} are named wrongly; log loss "
        f"{-np.mean(np.log(own)):.2f} (by chance {np.log(2.0):.2f}).\n"
        f"{'Certified' if model.certified_ else 'Not certified'}: a gap of at most "
        f"{float(model.certificates_[0].max):.1e}."
    )


def plot(model: ZeroVarianceDiscriminant, test: Part, path: Path) -> None:
    """Texts that the direction had not seen; and its words."""
    figure = plt.figure(figsize=(12, 6), layout="constrained")
    upper, lower = figure.subfigures(2, 1)
    left, right = upper.subplots(1, 2)
    model.plot_projections(ax=left)
    model.plot_projections(*test, ax=right)
    model.plot_pattern(axes=lower.subplots())
    figure.savefig(path, dpi=110)


def main(folder: str = "demo") -> ZeroVarianceDiscriminant:
    """Fit, print, draw."""
    X, y = loaded()
    Path(folder).mkdir(parents=True, exist_ok=True)
    train, test, own, new = train_test_split(X, y, test_size=100, stratify=y, random_state=0)
    model = ZeroVarianceDiscriminant(oof=2).fit(train, own)
    print(report(model, (train, own), (test, new)))
    plot(model, (test, new), Path(folder) / "discriminant_dexter.png")
    return model


if __name__ == "__main__":
    main(*sys.argv[1:2])
