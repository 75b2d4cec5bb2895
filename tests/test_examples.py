"""The examples run, are certified, and find what their texts say."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


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
