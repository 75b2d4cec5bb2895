"""Plots of ZeroVarianceDiscriminant and its CV: held-out samples are drawn, training samples never."""

import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import chi2

from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV
from restpoint.models._plotting import COLOURS, GREY
from restpoint.models.discriminant.drawing import beside_each_other, dash, mark

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

CLASSES = np.array(["blue", "green", "red"])


def made(seed, samples=45, features=120, signal=3.0):
    """Three classes, two features each that tell it."""
    rng = np.random.default_rng(seed)
    code = np.arange(samples) % 3
    X = rng.standard_normal((samples, features))
    X[:, :6] += signal * np.eye(3)[code].repeat(2, axis=1)
    return X, CLASSES[code]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Settings stay as they are, figures are closed by whoever made them, and every layout works without a warning."""
    before = dict(mpl.rcParams)
    yield
    figures = [plt.figure(number) for number in plt.get_fignums()]
    for figure in figures:
        figure.draw_without_rendering()
        plt.close(figure)
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def data():
    return made(0)


@pytest.fixture(scope="module")
def model(data):
    return ZeroVarianceDiscriminant(gamma=0.9).fit(*data)


@pytest.fixture
def search():
    """A comparison of two numbers of components and three shares."""
    found = ZeroVarianceDiscriminantCV(gamma=(0.2, 0.5, 0.9))
    found.classes_ = CLASSES
    found.cv_results_ = {
        "n_components": np.repeat([1, 2], 3),
        "gamma": np.tile([0.2, 0.5, 0.9], 2),
        "score": np.array([0.5, 0.6, 0.4, 0.9, 0.95, 0.93]),
        "se": np.array([0.02, 0.02, 0.02, 0.03, 0.04, 0.02]),
        "features": np.array([90.0, 60.0, 20.0, 100.0, 80.0, 40.0]),
        "certified": np.array([1.0, 1.0, 0.5, 1.0, 1.0, 1.0]),
        "scores": np.zeros((6, 4)),
    }
    found.best_index_ = 5
    return found


def dots(axis, k):
    """The samples that were drawn of class k, one row each."""
    for line in axis.lines:
        if line.get_color() == COLOURS[k] and line.get_linestyle() == "None" and _is_dot(line):
            return line.get_xydata()
    return np.zeros((0, 2))


def _is_dot(line):
    return line.get_marker() != "X"


def centroids(axis):
    return np.array(
        [
            line.get_xydata()[0]
            for line in axis.lines
            if line.get_marker() == "X" and len(line.get_xydata())
        ]
    )


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def curve(axis, label):
    return next(line for line in axis.lines if line.get_label() == label)


# -- projections -------------------------------------------------------------------------------------------------------


def test_held_out_scores_are_drawn_and_training_samples_as_their_means(data, model):
    axis = model.plot_projections()
    for k, name in enumerate(CLASSES):
        own = model.oof_scores_[data[1] == name]
        np.testing.assert_array_equal(dots(axis, k), own)
        assert legend(axis)[k] == f"{name} (15)"
    np.testing.assert_array_equal(centroids(axis), model.means_)
    drawn = np.concatenate([dots(axis, k) for k in range(3)])
    training = model.transform(data[0])
    assert np.abs(drawn[:, None] - training[None]).max(axis=2).min() > 1e-6
    assert axis.get_xlabel() == "component 1"
    assert axis.get_ylabel() == "component 2"


def test_outlines_hold_what_predict_proba_takes_a_class_to_be(model):
    axis = model.plot_projections()
    around = [line for line in axis.lines if len(line.get_xydata()) > 100]
    assert len(around) == 3
    inverse = np.linalg.inv(model.oof_covariance_)
    for k, line in enumerate(around):
        away = line.get_xydata() - model._rule.means[k]
        distance = np.einsum("nr,rs,ns->n", away, inverse, away)
        assert distance == pytest.approx(np.full(len(away), chi2.ppf(0.9, 2)), rel=1e-9)


def test_random_labels_show_no_separation():
    """Training samples would sit on three far points; what is drawn lies in one heap, and so do the outlines."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 400)), rng.permutation(np.arange(60) % 3)
    model = ZeroVarianceDiscriminant().fit(X, y)
    apart = model.transform(X)[:, None] - model.means_
    assert np.linalg.norm(apart, axis=2).min(axis=1).max() < 1e-9  # separated perfectly, it seems
    axis = model.plot_projections()
    drawn = [dots(axis, k) for k in range(3)]
    means = np.array([own.mean(axis=0) for own in drawn])
    spread = np.sqrt(np.mean([own.var(axis=0) for own in drawn]))
    assert np.ptp(means, axis=0).max() < spread
    outlines = [line.get_xydata() for line in axis.lines if len(line.get_xydata()) > 100]
    assert np.ptp([o.mean(axis=0) for o in outlines], axis=0).max() < spread
    assert np.ptp(centroids(axis), axis=0).max() > 5.0 * spread


def test_one_direction_has_a_row_for_each_class(data, model):
    axis = model.plot_projections(components=1)
    for k, name in enumerate(CLASSES):
        x, y = dots(axis, k).T
        np.testing.assert_array_equal(x, model.oof_scores_[data[1] == name, 1])
        assert np.all(np.abs(y - k) <= 0.31)
    assert [t.get_text() for t in axis.get_yticklabels()] == [f"{c} (15)" for c in CLASSES]
    assert axis.get_ylim()[0] > axis.get_ylim()[1]  # the first class is above
    assert axis.get_xlabel() == "component 2"
    np.testing.assert_array_equal(centroids(axis)[:, 0], model.means_[:, 1])
    wide = [line.get_xydata()[:, 0] for line in axis.lines if len(line.get_xydata()) == 2]
    half = np.sqrt(model.oof_covariance_[1, 1] * chi2.ppf(0.9, 1))
    for k, ends in enumerate(wide):
        assert sorted(ends) == pytest.approx(model._rule.means[k, 1] + np.array([-half, half]))


def test_new_samples(data, model):
    X, y = made(7)
    axis = model.plot_projections(X, y)
    scores = model.transform(X)
    for k, name in enumerate(CLASSES):
        np.testing.assert_array_equal(dots(axis, k), scores[y == name])
    assert axis.get_title(loc="left") == "45 new samples"
    grey = model.plot_projections(X)
    found = curve(grey, "not known (45)")
    assert found.get_color() == GREY
    np.testing.assert_array_equal(found.get_xydata(), scores)
    lanes = model.plot_projections(X, components=[0])
    assert [t.get_text() for t in lanes.get_yticklabels()][-1] == "not known (45)"
    few = model.plot_projections(np.concatenate([X, data[0][:3]]))  # three of them copies
    assert few.get_title(loc="left") == "48 new samples"


@pytest.mark.parametrize("features", [120, 12])
def test_training_samples_are_refused(features):
    """With fewer features than samples, too, where they vary within classes."""
    X, y = made(3, features=features)
    model = ZeroVarianceDiscriminant(gamma=0.5, starts=1, oof=2).fit(X, y)
    assert model.zero_variance_ == (features == 120)
    for rows in (slice(None), slice(0, 9)):
        with pytest.raises(DataError, match=r"training samples.*plot_projections\(\)"):
            model.plot_projections(X[rows], y[rows])
    assert (
        model.plot_projections(*made(4, features=features)).get_title(loc="left")
        == "45 new samples"
    )


def test_without_folds_there_is_nothing_honest_to_draw(data):
    model = ZeroVarianceDiscriminant(gamma=0.9, oof=0).fit(*data)
    with pytest.raises(CapabilityError, match=r"lie on their class means.*oof=5"):
        model.plot_projections()
    axis = model.plot_projections(*made(7))
    assert len(centroids(axis)) == 3
    assert "90% of a class" not in "".join(legend(axis))


def test_a_fit_that_is_zero_is_drawn(data):
    with pytest.warns(UserWarning, match="only the zero vector"):
        model = ZeroVarianceDiscriminant(gamma=2.0, oof=2).fit(*data)
    assert not dots(model.plot_projections(), 0).any()
    assert not dots(model.plot_projections(*made(7), components=0), 0)[:, 0].any()
    assert "0 of 120" in model.plot_pattern()[0].get_title(loc="left")


def test_nine_classes_can_be_told_apart():
    assert len({(k % 7, mark(k)) for k in range(49)}) == 49
    assert len({(k % 7, dash(k)) for k in range(49)}) == 49


def test_points_beside_each_other_do_not_hide_each_other():
    places = np.array([0.0, 0.1, 0.2, 0.3, 7.0])
    offsets = beside_each_other(places, 1.0)
    assert len(set(offsets[:4])) == 4
    assert offsets[4] == 0.0
    many = beside_each_other(np.zeros(200), 1.0)
    assert np.abs(many).max() <= 0.3
    assert len(set(np.round(many, 12))) == 200


# -- sparsity pattern --------------------------------------------------------------------------------------------------


def test_stems_are_the_coefficients(model):
    axes = model.plot_pattern()
    assert axes.shape == (2,)
    for r, axis in enumerate(axes):
        w = model.components_[r]
        live = np.flatnonzero(w)
        stems = np.array([s[1] for s in axis.collections[0].get_segments()])
        order = np.argsort(stems[:, 0])
        np.testing.assert_array_equal(stems[order], np.column_stack([live, w[live]]))
        assert (
            axis.get_title(loc="left")
            == f"component {r + 1}: {len(live)} of 120 coefficients are not 0"
        )
        strongest = str(int(np.argmax(np.abs(w))))
        assert strongest in [text.get_text() for text in axis.texts]
        brightness = axis.collections[0].get_colors()[:, :3].sum(axis=1)
        shares = model.selection_frequency_[r, stems[:, 0].astype(int)]
        assert np.all(np.diff(shares) >= 0)  # stems of all folds are drawn above the others
        assert np.all(np.diff(brightness) <= 1e-12)
        assert len(set(shares)) > 2
    assert len(axes[0].figure.axes) == 3  # and the scale of the folds


def test_names_of_features_and_places(data):
    X, y = data
    names = [f"gene {j}" for j in range(120)]
    model = ZeroVarianceDiscriminant(gamma=0.9, oof=0).fit(pd.DataFrame(X, columns=names), y)
    axis = model.plot_pattern(1, most=3)[0]
    best = np.argsort(-np.abs(model.components_[1]))[:3]
    assert {text.get_text() for text in axis.texts} <= {names[j] for j in best}
    assert axis.texts[0].get_text() == names[best[0]]
    assert len(axis.figure.axes) == 1  # no folds, no scale of them
    places = 400.0 + 2.5 * np.arange(120)
    axis = model.plot_pattern(0, labels=places, most=0)[0]
    stems = np.array([s[0] for s in axis.collections[0].get_segments()])
    np.testing.assert_array_equal(stems[:, 0], places[np.flatnonzero(model.components_[0])])
    assert len(axis.texts) == 0
    low, high = axis.get_xlim()
    assert low < places[0]
    assert places[-1] < high


def test_names_of_stems_do_not_touch():
    rng = np.random.default_rng(0)
    X, y = made(2)
    names = [f"$feature$ {j}" for j in range(120)]
    model = ZeroVarianceDiscriminant(gamma=0.3, oof=0).fit(X + rng.standard_normal(X.shape), y)
    axis = model.plot_pattern(0, labels=names, most=60)[0]
    axis.figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axis.texts), key=lambda box: box.x0)
    assert len(boxes) > 5
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_coefficients_in_a_basis(data):
    X, y = data
    model = ZeroVarianceDiscriminant(gamma=0.9, basis="dct", oof=0).fit(
        pd.DataFrame(X, columns=[f"t{j}" for j in range(120)]), y
    )
    axes = model.plot_pattern()
    assert axes[-1].get_xlabel() == "number in the basis"
    assert all(text.get_text().isdigit() for text in axes[0].texts)


def test_a_fit_that_is_not_certified_says_so(data):
    with pytest.warns(UserWarning, match="without a certificate"):
        model = ZeroVarianceDiscriminant(oof=0, max_seconds=1e-3).fit(*data)
    assert "not certified" in model.plot_pattern()[0].get_title(loc="left")


# -- comparison --------------------------------------------------------------------------------------------------------


def test_scores_and_features_over_gamma(search):
    scores, features = search.plot_path()
    table = search.cv_results_
    for n, label in ((1, "1 component"), (2, "2 components")):
        own = table["n_components"] == n
        for axis, column in ((scores, "score"), (features, "features")):
            line = curve(axis, label)
            np.testing.assert_array_equal(line.get_xdata(), table["gamma"][own])
            np.testing.assert_array_equal(line.get_ydata(), table[column][own])
        band = scores.collections[n - 1].get_paths()[0].vertices
        for g, mean, se in zip(*(table[c][own] for c in ("gamma", "score", "se")), strict=True):
            edges = band[np.isclose(band[:, 0], g), 1]
            assert (edges.min(), edges.max()) == pytest.approx((mean - se, mean + se))
    for axis, column in ((scores, "score"), (features, "features")):
        star = curve(axis, "chosen")
        assert star.get_xydata().tolist() == [[0.9, table[column][5]]]
        low, high = axis.get_xlim()
        assert low > high  # sparse at the left
    assert curve(scores, "best - standard error").get_ydata()[0] == pytest.approx(0.91)
    assert curve(scores, "chance").get_ydata()[0] == pytest.approx(1 / 3)
    assert legend(features)[:2] == ["1 component", "2 components"]
    low, high = scores.get_ylim()
    assert low < 1 / 3
    assert high < 1.1
    hollow = [line for line in scores.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xydata().tolist() for line in hollow] == [[[0.9, 0.4]]]


def test_without_the_rule_of_one_standard_error(search):
    search.one_se = False
    search.scoring = lambda truth, chosen: float(np.mean(truth == chosen))
    scores, features = search.plot_path()
    assert scores.get_ylabel() == "score, held out"
    assert legend(features) == ["1 component", "2 components", "chosen"]


def test_one_gamma_is_drawn_over_the_components(search):
    search.cv_results_ = {k: v[[0, 3]] for k, v in search.cv_results_.items()}
    search.best_index_ = 1
    scores, _ = search.plot_path()
    assert scores.lines[0].get_xdata().tolist() == [1, 2]
    assert scores.get_xlabel() == "components"


def test_a_real_comparison_is_drawn(data):
    found = ZeroVarianceDiscriminantCV(gamma=(0.5, 0.9), cv=2).fit(*data)
    scores, _ = found.plot_path()
    assert scores.get_ylabel() == "balanced accuracy, held out"
    assert scores.get_ylim()[1] <= 1.1
    assert found.best_estimator_.plot_pattern().shape == (found.best_params_["n_components"],)


# -- manners -----------------------------------------------------------------------------------------------------------


def calls(model, search):
    """Every plot, and how many axes it needs."""
    return [
        (lambda axes: model.plot_projections(ax=axes), 1),
        (lambda axes: model.plot_projections(components=0, ax=axes), 1),
        (lambda axes: model.plot_pattern(axes=axes), 2),
        (lambda axes: search.plot_path(axes=axes), 2),
    ]


@pytest.mark.parametrize("which", range(4))
def test_axes_that_are_given_are_those_that_are_returned(model, search, which):
    draw, count = calls(model, search)[which]
    other = plt.figure()
    figure = Figure(figsize=(8, 8), layout="constrained")
    made = figure.subplots(count, squeeze=False).ravel()
    returned = np.ravel(draw(made if count > 1 else made[0]))
    assert [id(axis) for axis in returned] == [id(axis) for axis in made]
    assert all(axis.has_data() for axis in made)
    figure.draw_without_rendering()
    assert plt.get_fignums() == [other.number]
    assert not other.axes


@pytest.mark.parametrize("which", range(4))
def test_a_wrong_number_of_axes_is_refused_and_nothing_is_left_open(model, search, which):
    draw, _ = calls(model, search)[which]
    with pytest.raises(ShapeError, match="7 axes were given; expected"):
        draw(Figure().subplots(7))
    with pytest.raises(DataError, match="matplotlib axes"):
        draw("here")
    assert plt.get_fignums() == []


def test_a_dark_background(model):
    with plt.style.context("dark_background"):
        axis = model.plot_projections()
        edges = {line.get_markeredgecolor() for line in axis.lines if line.get_marker() == "X"}
        plt.close(axis.figure)
    assert edges == {"white"}


def test_what_is_refused(data, model):
    X, y = made(7)
    for wrong, error, message in [
        ({"components": 2}, DataError, "from 0 to 1"),
        ({"components": []}, DataError, "from 0 to 1"),
        ({"y": y}, DataError, "y was given without X"),
        ({"X": X, "y": y[:-1]}, ShapeError, r"y has shape \(44,\); expected \(45,\)"),
        ({"X": X, "y": np.repeat("mauve", 45)}, DataError, "y names 'mauve'"),
        ({"X": X[:, :5]}, ValueError, "5 features"),
    ]:
        with pytest.raises(error, match=message):
            model.plot_projections(**wrong)
    three = ZeroVarianceDiscriminant(starts=1, oof=2).fit(data[0], np.arange(45) % 4)
    with pytest.raises(DataError, match="one or two"):
        three.plot_projections(components=(0, 1, 2))
    assert three.plot_projections(components=(2, 0)).get_xlabel() == "component 3"
    with pytest.raises(ShapeError, match=r"labels have shape \(2,\); expected \(120,\)"):
        model.plot_pattern(labels=["a", "b"])
    with pytest.raises(DataError, match="most must be"):
        model.plot_pattern(most=-1)
    for method in ("plot_projections", "plot_pattern"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(ZeroVarianceDiscriminant(), method)()
    with pytest.raises(ValueError, match="not fitted"):
        ZeroVarianceDiscriminantCV().plot_path()


def test_a_figure_is_closed_when_drawing_fails(model, monkeypatch):
    from matplotlib.axes import Axes

    def broken(*arguments, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(Axes, "vlines", broken)
    with pytest.raises(RuntimeError, match="broken"):
        model.plot_pattern()
    assert plt.get_fignums() == []


def test_matplotlib_is_imported_by_plots_alone_and_pyplot_for_new_figures_alone():
    program = """
import sys, numpy as np
from restpoint.models import ZeroVarianceDiscriminant
X = np.random.default_rng(0).standard_normal((20, 50))
model = ZeroVarianceDiscriminant(gamma=0.9, oof=2).fit(X, np.arange(20) % 3)
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
model.plot_projections(ax=Figure().subplots())
model.plot_pattern(axes=Figure().subplots(2))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
