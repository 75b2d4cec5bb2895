"""Plots of SparseTensorPCA and SparseTensorPCACV: what is drawn is what was found."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text

import restpoint as rp
from planted import planted, planted_rank
from restpoint.errors import DataError, ShapeError
from restpoint.models import SparseTensorPCA, SparseTensorPCACV
from restpoint.models._loadings import Mode, draw_loadings
from restpoint.models._plotting import COLOURS, GREY
from restpoint.models.tensor_pca import Convergence, Solution, Starts
from restpoint.models.tensor_pca.cv import Table

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

GENES = [f"gene {j}" for j in range(50)]
PATIENTS = [f"P{i}" for i in range(10)]
DAYS = np.array([7.0, 0.0, 1.0, 3.0])  # not in order, as they came


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
def named():
    """Two components in patients x genes x days, genes sparse."""
    rng = np.random.default_rng(0)
    genes = np.zeros((2, 50))
    genes[0, [3, 8, 30]] = [3.0, -2.0, 1.0]
    genes[1, [5, 8, 40, 41]] = [1.0, 3.0, 2.0, -1.0]
    days = np.array([[1.0, 4.0, 3.0, 2.0], [4.0, -2.0, 1.0, 3.0]])
    A = np.einsum("r,ra,rb,rc->abc", [3.0, 2.0], rng.uniform(1.0, 2.0, (2, 10)), genes, days)
    A += 0.1 * rng.standard_normal(A.shape)
    coordinates = {"patient": PATIENTS, "gene": GENES, "day": DAYS}
    data = xr.DataArray(A, dims=["patient", "gene", "day"], coords=coordinates)
    return SparseTensorPCA(2).fit(data)


@pytest.fixture(scope="module")
def cube():
    A, _ = planted((20, 20, 20), 3, 25.0, seed=0)
    return A, SparseTensorPCA().fit(A)


@pytest.fixture(scope="module")
def tied():
    X = np.random.default_rng(0).exponential(size=(500, 6))
    form = rp.smooth.MomentTensor(X, 3, tied=(0, 0, 0))
    return SparseTensorPCA(2, deflation="subtract", n_nonzero=3).fit(form)


def widths(axis):
    return np.array([bar.get_width() for bar in axis.patches])


def entry_names(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def notes(axis):
    return [text.get_text() for text in axis.texts]


def curve(axis, label=None):
    return next(line for line in axis.lines if label is None or line.get_label() == label)


def legend(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


# -- loadings ----------------------------------------------------------------------------------------------------------


def test_a_grid_of_modes_and_components(named):
    axes = named.plot_loadings()
    assert axes.shape == (3, 2)
    patients, genes, days = named.components_
    for r in range(2):
        assert np.array_equal(widths(axes[0, r]), patients[r])
        shown = np.flatnonzero(np.any(genes != 0, axis=0))
        assert np.array_equal(widths(axes[1, r]), genes[r, shown])
        order = np.argsort(DAYS)
        line = curve(axes[2, r], "_")
        assert np.array_equal(line.get_xdata(), DAYS[order])
        assert np.array_equal(line.get_ydata(), days[r, order])
        assert axes[2, r].get_xlabel() == "day"
        share = f"{named.explained_variance_ratio_[r]:.1%}"
        title = f"component {r + 1}\nweight {named.weights_[r]:.3g}, {share}"
        assert axes[0, r].get_title(loc="left") == title
    assert entry_names(axes[0, 0]) == PATIENTS
    assert entry_names(axes[1, 0]) == [GENES[j] for j in shown]
    assert axes[1, 0].get_ylabel() == f"gene\n({50 - len(shown)} others are 0)"
    assert axes[1, 1].get_ylabel() == ""
    first = axes[0, 0].patches[0]  # the first entry is above the others
    assert (
        axes[0, 0].transData.transform((0, first.get_y()))[1]
        > (axes[0, 0].transData.transform((0, axes[0, 0].patches[-1].get_y()))[1])
    )


def test_one_component_and_some_modes(named, cube):
    axes = named.plot_loadings(["day", 0], components=1)
    assert axes.shape == (2, 1)
    assert axes[0, 0].get_xlabel() == "day"
    assert np.array_equal(widths(axes[1, 0]), named.components_[0][1])
    assert axes[0, 0].get_title(loc="left").startswith("component 2")
    assert mpl.colors.to_hex(axes[1, 0].patches[0].get_facecolor()) == COLOURS[1]  # its own
    single = cube[1].plot_loadings()
    assert single.shape == (3, 1)
    for m, axis in enumerate(single[:, 0]):
        assert np.array_equal(widths(axis), cube[1].components_[m][0])
        assert axis.get_ylabel() == f"mode{m}"
        assert all(float(tick).is_integer() for tick in axis.get_yticks())


def test_components_over_each_other(named):
    axes = named.plot_loadings(kind="overlay")
    assert axes.shape == (3,)
    assert np.array_equal(widths(axes[0]), named.components_[0].ravel())
    colours = [bar.get_facecolor() for bar in axes[0].patches]
    assert len(set(colours)) == 2
    middles = np.array([bar.get_y() + bar.get_height() / 2 for bar in axes[0].patches])
    assert np.all(np.abs(middles - np.tile(np.arange(10), 2)) < 0.5)
    assert np.all(middles[:10] < middles[10:])
    told = axes[0].figure.legends[0]
    assert [text.get_text() for text in told.get_texts()] == ["component 1", "component 2"]
    for r in range(2):
        line = curve(axes[2], f"component {r + 1}")
        assert np.array_equal(line.get_ydata(), named.components_[2][r, np.argsort(DAYS)])


def test_heat_maps(named):
    axes = named.plot_loadings(kind="heatmap")
    for axis, x in zip(axes[:2], named.components_, strict=False):
        image = axis.images[0]
        seen = np.any(x != 0, axis=0) if x.shape[1] > 30 else np.full(x.shape[1], True)
        assert np.array_equal(image.get_array(), x[:, seen].T)
        assert image.norm.vmin == (-image.norm.vmax if x.min() < 0 else 0.0)  # white is 0
    assert np.array_equal(
        axes[2].images[0].get_array(), named.components_[2][:, np.argsort(DAYS)].T
    )
    assert entry_names(axes[2]) == ["0", "1", "3", "7"]
    assert len(axes[0].figure.axes) == 6  # a scale beside each


def test_many_components_are_a_heat_map():
    rng = np.random.default_rng(0)
    names = {r: f"component {r + 1}\nweight 1" for r in range(9)}
    mode = Mode("gene", rng.uniform(0.0, 1.0, (9, 12)), None, False, 30)
    few = Mode("gene", mode.rows[:7], None, False, 30)
    axes = draw_loadings([mode], names, "auto", None)
    assert axes.shape == (1,)
    assert axes[0].images[0].norm.vmin == 0.0
    assert draw_loadings([few], {r: names[r] for r in range(7)}, "auto", None).shape == (1, 7)
    assert [t.get_text() for t in axes[0].get_xticklabels()][::2] == ["1", "3", "5", "7", "9"]


@pytest.mark.parametrize("size", [5, 30, 31, 100, 500])
@pytest.mark.parametrize("nonzero", [0.05, 1.0])
def test_names_never_touch_and_the_strongest_are_there(size, nonzero):
    rng = np.random.default_rng(size)
    rows = np.where(rng.random((2, size)) < nonzero, rng.standard_normal((2, size)), 0.0)
    strongest = int(np.argmax(np.abs(rows).max(axis=0)))
    rows[0, (strongest + 1) % size] = 0.99 * rows[:, strongest].max()  # strong neighbours
    labels = np.array([f"name of {j}" for j in range(size)])
    axes = draw_loadings([Mode("gene", rows, labels, False, 30)], {0: "a", 1: "b"}, "grid", None)
    axis = axes[0, 0]
    axis.figure.draw_without_rendering()
    shown = [text for text in [*axis.get_yticklabels(), *axis.texts] if text.get_text()]
    words = [text.get_text() for text in shown]
    support = np.count_nonzero(rows.any(axis=0))
    assert labels[strongest] in words
    assert len(words) == (size if size <= 30 else support if support <= 30 else 12)
    words_alone = [Text.get_window_extent(text) for text in shown]  # without the lines to them
    boxes = sorted(words_alone, key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= axis.yaxis.label.get_window_extent().x1
    if size > 30 and support > 30:
        live = np.count_nonzero(rows[0])
        drawn = np.flatnonzero(rows.any(axis=0))
        assert len(axis.collections[0].get_segments()) == live
        tips = np.array([segment[1] for segment in axis.collections[0].get_segments()])
        assert np.array_equal(tips[:, 0], rows[0, drawn][rows[0, drawn] != 0])


def test_most_decides_what_is_named(named):
    few = named.plot_loadings("gene", most=3)[0, 0]
    genes = named.components_[1]
    shown = np.flatnonzero(np.any(genes != 0, axis=0))
    assert len(shown) > 3
    assert sorted(notes(few)) == sorted(GENES[j] for j in shown)
    assert named.plot_loadings("gene", most=50)[0, 0].get_ylabel() == "gene"
    grey = [t.get_text() for t in plt.gcf().axes[0].get_yticklabels() if t.get_color() != "black"]
    assert set(grey) == set(GENES) - {GENES[j] for j in shown}


def test_labels_and_order_can_be_given(cube):
    model = cube[1]
    names = [f"m{j}" for j in range(20)]
    axes = model.plot_loadings(labels={"mode0": names, 1: 10.0 ** np.arange(20)}, ordered=[1, 2])
    assert entry_names(axes[0, 0]) == names
    assert axes[1, 0].get_xscale() == "log"
    assert np.array_equal(curve(axes[2, 0], "_").get_ydata(), model.components_[2][0])
    bars = model.plot_loadings(labels=[None, np.arange(20.0), None], ordered=[])
    assert np.array_equal(widths(bars[1, 0]), model.components_[1][0])
    words = model.plot_loadings(0, labels={0: [f"week number {j}" for j in range(20)]}, ordered=0)
    ticks = [text.get_text() for text in words[0, 0].get_xticklabels()]
    assert ticks[0] == "week number 0"
    assert 1 <= len(ticks) < 20  # as many as have room


def test_dates_durations_and_doses():
    rows = np.random.default_rng(0).standard_normal((1, 6))
    dates = np.datetime64("2024-01-01") + np.arange(6) * np.timedelta64(10, "D")
    hours = np.arange(6) * np.timedelta64(1, "h")
    doses = np.array([0.0, 0.01, 0.1, 1.0, 10.0, 100.0])
    kinds = [("date", dates), ("hours", hours), ("dose", doses)]
    modes = [Mode(name, rows, own, True, 30) for name, own in kinds]
    first, second, third = draw_loadings(modes, {0: "component 1"}, "auto", None)[:, 0]
    first.figure.draw_without_rendering()
    assert "2024" in first.xaxis.get_major_formatter().get_offset()
    assert second.get_xlabel() == "hours (seconds)"
    assert curve(second, "_").get_xdata()[-1] == 5 * 3600.0
    assert third.get_xscale() == "symlog"


def test_names_that_are_no_mathematics():
    names = np.array(
        ["price in $", "a$_{b", "a name much longer than there is any room for", "x\ny"]
    )
    mode = Mode("$", np.ones((1, 4)) / 2, names, False, 30)
    axis = draw_loadings([mode], {0: "component 1"}, "auto", None)[0, 0]
    axis.figure.draw_without_rendering()
    assert entry_names(axis)[0] == r"price in \$"
    assert entry_names(axis)[2].endswith("…")
    assert entry_names(axis)[3] == "x y"


def test_tied_modes_are_drawn_once(tied):
    axes = tied.plot_loadings()
    assert axes.shape == (1, 2)
    assert axes[0, 0].get_ylabel() == "mode0 = mode1 = mode2"
    assert np.array_equal(widths(axes[0, 1]), tied.components_[0][1])
    assert tied.plot_loadings([2, 0]).shape == (1, 2)
    named = tied.plot_loadings(labels={2: list("abcdef")})
    assert entry_names(named[0, 0]) == list("abcdef")


def test_axes_that_share_their_entries(named):
    axes = Figure().subplots(1, 2, sharey="row")
    named.plot_loadings("patient", axes=axes)
    assert entry_names(axes[0]) == PATIENTS


def test_a_dark_background(named):
    with plt.style.context("dark_background"):
        axes = named.plot_loadings(most=3)
        light = [text.get_color() for text in axes[1, 0].texts]
        plt.close(axes[0, 0].figure)
    assert set(light) == {"white"}


def test_matrices_and_four_modes():
    A = planted((8, 7, 6, 5), 2, 20.0, seed=0)[0]
    assert SparseTensorPCA().fit(A).plot_loadings().shape == (4, 1)
    frame = pd.DataFrame(A[:, :, 0, 0], index=[f"row {i}" for i in range(8)])
    model = SparseTensorPCA(rho=0.1).fit(frame)
    axes = model.plot_loadings()
    assert model.labels_[1] is None  # pandas numbers columns without names
    assert entry_names(axes[0, 0])[0] == "row 0"
    assert np.array_equal(widths(axes[1, 0]), model.components_[1][0])


def test_a_component_that_is_zero():
    A = planted((6, 6, 6), 2, 20.0, seed=0)[0]
    with pytest.warns(UserWarning, match="only the zero component"):
        model = SparseTensorPCA(rho=1e6).fit(A)
    axes = model.plot_loadings()
    assert not widths(axes[0, 0]).any()
    values, gaps = model.plot_convergence()
    assert notes(values) == ["began where it ended"]
    assert gaps.get_ylim()[0] > 1e-30  # a gap of 0 or 1e-300 is at the edge
    assert gaps.get_ylabel() == f"gap ({1e-12 * model.convergence_[0].eps:.0e} or less)"


# -- path --------------------------------------------------------------------------------------------------------------


def test_path(cube):
    path = SparseTensorPCA().path(cube[0])
    nonzeros, criterion, *entries = axes = path.plot()
    assert len(axes) == 5
    rows = np.arange(len(path.rho))
    for m in range(3):
        line = curve(nonzeros, f"mode{m}")
        assert np.array_equal(line.get_ydata(), path.counts[rows, path.best, m])
        assert np.array_equal(line.get_xdata()[:-1], path.rho[:-1])  # 0 has a place of its own
    assert np.array_equal(criterion.lines[0].get_ydata(), path.bic[rows, path.best])
    star = curve(criterion, "least")
    assert star.get_ydata() == [path.bic.min()]
    level = curve(criterion, "no component").get_ydata()
    assert list(level) == [path.zero_bic] * 2
    for axis, x in zip(entries, path.followed, strict=True):
        drawn = [line.get_ydata() for line in axis.lines if len(line.get_ydata()) == len(rows)]
        alive = np.flatnonzero(np.any(x != 0, axis=0))
        assert len(drawn) == len(alive)
        assert {tuple(y) for y in drawn} == {tuple(x[:, j]) for j in alive}
        strongest = np.argsort(-np.abs(x).max(axis=0), kind="stable")[:6]
        assert sorted(notes(axis)) == sorted(str(j) for j in strongest)
        low, high = axis.get_xlim()
        assert low > high  # sparse at the left, dense at the right
    axes[-1].figure.draw_without_rendering()
    assert axes[-1].get_xticklabels()[-1].get_text() == "0"


@pytest.mark.parametrize("rho", [[0.0], [1.0], [0.5, 0.0]])
def test_short_paths(cube, rho):
    path = SparseTensorPCA().path(cube[0], rho=rho if any(rho) else [1.0])
    axes = replace(path, rho=np.sort(rho)[::-1]).plot()
    ticks = [text.get_text() for text in axes[-1].get_xticklabels()]
    assert ticks == [f"{r:g}" for r in sorted(rho, reverse=True)]
    assert len(axes[2].lines) > 2


def test_points_that_are_followed_are_those_of_the_path(cube):
    path = SparseTensorPCA().path(cube[0])
    rows = np.arange(len(path.rho))
    own = tuple(x[rows, path.best] for x in path.xs)
    form = rp.smooth.Multilinear(cube[0])
    assert form.value(path.followed) == pytest.approx(form.value(own), rel=1e-12)
    for x, y in zip(path.followed, own, strict=True):
        assert np.array_equal(np.abs(x), np.abs(y))
        assert np.all(np.sum(x[1:] * x[:-1], axis=1) >= 0.0)
    for x in path.followed[1:]:
        assert x[-1, np.argmax(np.abs(x[-1]))] > 0.0


def test_path_of_the_fit_and_where_there_is_none(cube, named, tied):
    model = cube[1]
    axes = model.plot_path()
    chosen = [line for line in axes[0].lines if line.get_linestyle() == ":"]
    assert chosen[0].get_xdata()[0] == model.rho_.max()
    assert not [line for line in named.plot_path()[0].lines if line.get_linestyle() == ":"]
    with pytest.raises(DataError, match=r"path\(X\)"):
        tied.plot_path()


def test_path_without_norm_or_certificate(tied):
    X = np.random.default_rng(0).exponential(size=(60, 30))
    form = rp.smooth.MomentTensor(X, 4, tied=(0, 0, 0, 0))
    path = SparseTensorPCA(tol=1e-12, max_seconds=1e-9).path(form, rho=[2.0, 1.0])
    assert np.isnan(path.bic).all()
    axes = path.plot()
    assert len(axes) == 3
    assert axes[1].get_ylabel() == "weight"
    assert axes[2].get_ylabel() == "mode0 = mode1 = mode2 =\nmode3"
    hollow = curve(axes[1], "not certified")
    assert len(hollow.get_xdata()) == np.sum(~path.certified[np.arange(2), path.best])
    assert hollow.get_markerfacecolor() == "white"


# -- starts and convergence --------------------------------------------------------------------------------------------


def test_starts(cube):
    starts = cube[1].starts_
    values, often = cube[1].plot_starts()
    found = values.collections[0].get_offsets()
    assert found[:, 0].tolist() == [s.value for s in starts.solutions]
    assert widths(often).tolist() == [s.count for s in starts.solutions]
    ends = f"{len(starts)} distinct end{'s' if len(starts) > 1 else ''}"
    assert values.get_title(loc="left") == f"20 starts, {ends}"
    assert often.get_title(loc="left") == f"chance of an unseen end: {starts.unseen:.0%}"
    best = starts.solutions[0]
    assert notes(often)[0] == f"{best.count} · gap {best.gap:.0e}"


def test_many_ends_and_those_given_up():
    solutions = tuple(Solution(-20.0 + k, np.inf if k == 3 else 1e-9, 1) for k in range(20))
    values, often = Starts(solutions, 20).plot()
    assert widths(often).tolist() == [1] * 12 + [8]
    assert entry_names(values)[-1] == "others"
    assert notes(often)[3] == "1 · given up"
    assert notes(often)[-1] == "8 · 8 more ends"
    rest = [line for line in values.lines if line.get_marker() == "|"]
    assert list(rest[0].get_xdata()) == [s.value for s in solutions[12:]]
    assert "100%" in often.get_title(loc="left")


def test_convergence_is_that_of_the_certificate(cube, named, tied):
    model = cube[1]
    (one,) = model.convergence_
    assert np.all(np.diff(one.value) <= 1e-12 * np.abs(one.value[1:]))
    assert one.value[-1] == pytest.approx(float(model.certificate_.value), rel=1e-12)
    assert one.proved == float(model.certificate_.max) <= one.eps
    assert one.sweeps[0] == 0
    assert np.all(np.diff(one.sweeps) > 0)
    (joint,) = named.convergence_
    assert np.array_equal(joint.value, named.joint_.trace)
    assert joint.value[-1] == pytest.approx(named.joint_.value, rel=1e-9)
    assert joint.proved == max(float(named.certificate_.max), named.joint_.weights_gap)
    assert joint.eps == named.joint_.eps
    assert len(tied.convergence_) == len(tied.certificate_) == 2
    for c, certificate in zip(tied.convergence_, tied.certificate_, strict=True):
        assert c.proved == float(certificate.max)
        assert c.value[-1] == pytest.approx(float(certificate.value), rel=1e-12)


def test_convergence_from_observed_entries(cube):
    A = cube[0].copy()
    A[np.random.default_rng(0).random(A.shape) < 0.2] = np.nan
    model = SparseTensorPCA().fit(A)
    (one,) = model.convergence_
    assert np.array_equal(one.value, model.joint_.trace)
    assert np.isfinite(one.gap[-1])
    right = model.plot_convergence()[1]
    assert len(curve(right).get_xdata()) == np.isfinite(one.gap).sum()


def test_convergence_drawn(cube, named, tied):
    for model in (cube[1], named, tied):
        left, right = model.plot_convergence()
        for k, one in enumerate(model.convergence_):
            line = next(line for line in left.lines if line.get_color() == COLOURS[k])
            above, y = one.value - one.value[-1], line.get_ydata()
            assert np.array_equal(y[np.isfinite(y)], above[np.isfinite(y)])
            assert np.all(above[~np.isfinite(y)] <= 1e-15 * abs(one.value[-1]))
            stars = [
                li for li in right.lines if li.get_marker() == "*" and li.get_color() == COLOURS[k]
            ]
            assert list(stars[0].get_ydata()) == [one.proved]
            assert list(stars[0].get_xdata()) == [one.sweeps[-1]]
            dashed = [li.get_ydata() for li in right.lines if li.get_linestyle() == "--"]
            assert any(np.allclose(y, one.eps, rtol=1e-3) for y in dashed if len(y) == 2)
            low, high = right.get_ylim()
            assert low < one.proved < high
            assert low < one.eps < high
        assert "certified" in legend(right)
    assert legend(left) == [
        f"component {r + 1}: {one.value[-1]:.6g}" for r, one in enumerate(tied.convergence_)
    ]


def test_a_solve_that_goes_on():
    first = Convergence(
        np.arange(3), np.array([0.0, -2.0, -3.0]), np.array([4.0, 1.0, 0.1]), 0.1, 0.2
    )
    second = Convergence(np.arange(2), np.array([-3.0, -3.5]), np.array([0.1, 1e-9]), 1e-9, 1e-6)
    whole = first.then(second)
    assert whole.sweeps.tolist() == [0, 1, 2, 3]
    assert whole.value.tolist() == [0.0, -2.0, -3.0, -3.5]
    assert (whole.proved, whole.eps) == (1e-9, 1e-6)
    left, right = whole.plot()
    assert left.lines[0].get_ydata()[:3].tolist() == [3.5, 1.5, 0.5]
    assert right.lines[0].get_ydata().tolist() == whole.gap.tolist()


# -- comparison --------------------------------------------------------------------------------------------------------


@pytest.fixture
def search():
    """A comparison of three numbers of components and three rho."""
    found = SparseTensorPCACV((1, 2, 3))
    found.cv_results_ = Table(
        n_components=np.repeat([1, 2, 3], 3),
        rho=np.tile([0.0, 0.5, 1.0], 3),
        error=np.array([0.8, 0.7, 0.6, 0.4, 0.2, 0.3, 900.0, np.nan, 0.19]),
        se=np.full(9, 0.02),
    )
    found.best_index_, found.best_params_ = 4, {"n_components": 2, "rho": 0.5}
    found.by_components_ = Table(
        n_components=np.array([1, 2, 3]),
        rho=np.array([1.0, 0.5, 1.0]),
        error=np.array([0.6, 0.2, 0.19]),
        se=np.full(3, 0.02),
        fit=np.array([0.5, 0.9, 0.91]),
        core_consistency=np.array([100.0, 98.0, -4000.0]),
        replicability=np.array([0.9, 0.95, 0.3]),
    )
    return found


def test_errors(search):
    axis = search.plot_errors()
    bars = axis.containers
    assert [c.get_label() for c in bars] == ["1 component", "2 components", "3 components"]
    error = search.cv_results_["error"].reshape(3, 3)
    for k, container in enumerate(bars):
        line, _, (segments,) = container
        assert np.array_equal(line.get_ydata(), error[k], equal_nan=True)
        assert np.allclose(line.get_xdata(), [0.25, 0.5, 1.0], rtol=0.02)
        lengths = [float(np.ptp(s[:, 1])) for s in segments.get_segments() if len(s) == 2]
        assert lengths == pytest.approx([0.04] * np.isfinite(error[k]).sum())
    star = curve(axis, "chosen")
    assert star.get_ydata() == [0.2]
    assert star.get_xdata() == pytest.approx([0.5])
    band = axis.patches[0].get_extents().transformed(axis.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((0.19, 0.21))
    assert axis.get_ylim()[1] < 2.0
    outside = [line for line in axis.lines if (line.get_marker(), line.get_color()) == ("^", GREY)]
    assert len(outside[0].get_xdata()) == 1
    assert "least + standard error" in legend(axis)
    search.one_se = False
    assert not search.plot_errors().patches


def test_errors_of_one_rho(search):
    table = search.cv_results_
    for name in table:
        table[name] = table[name][[0, 4, 8]]
    table["rho"] = np.full(3, 0.5)
    search.best_index_ = 1
    axis = search.plot_errors()
    line = axis.containers[0][0]
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [0.8, 0.2, 0.19]
    assert axis.get_xlabel() == "components"


def test_components(search):
    axes = search.plot_components()
    assert axes.shape == (4,)
    table = search.by_components_
    assert np.array_equal(axes[0].containers[0][0].get_ydata(), table["error"])
    for axis, column in zip(axes[1:], ("fit", "core_consistency", "replicability"), strict=True):
        assert np.array_equal(axis.lines[0].get_ydata(), table[column])
        assert axis.lines[0].get_xdata().tolist() == [1, 2, 3]
    for axis, column in zip(
        axes, ("error", "fit", "core_consistency", "replicability"), strict=True
    ):
        star = curve(axis, "chosen")
        assert (star.get_xdata(), star.get_ydata()) == ([2], [table[column][1]])
    assert axes[2].get_ylim()[0] >= -30
    low = [line for line in axes[2].lines if line.get_marker() == "v"]
    assert low[0].get_xdata().tolist() == [3]
    table["core_consistency"] = np.full(3, np.nan)
    assert notes(search.plot_components()[2]) == ["not known"]


def test_a_real_comparison_is_drawn():
    A = planted_rank(8, 2, 30.0, seed=0, nonzeros=3)[0]
    found = SparseTensorPCACV((1, 2), rho=[0.0, 1.0], folds=2, starts=3).fit(A)
    assert found.plot_errors().get_ylabel() == "held-out error"
    assert len(found.plot_components()) == 4


# -- manners -----------------------------------------------------------------------------------------------------------


def calls(model, search):
    """Every plot, and how many axes it needs."""
    return [
        (lambda axes: model.plot_loadings(axes=axes), 6),
        (lambda axes: model.plot_loadings(axes=axes), 3),
        (lambda axes: model.plot_loadings(kind="heatmap", axes=axes), 3),
        (lambda axes: model.plot_path(axes=axes), 5),
        (lambda axes: model.plot_starts(axes=axes), 2),
        (lambda axes: model.plot_convergence(axes=axes), 2),
        (lambda axes: search.plot_components(axes=axes), 4),
        (lambda axes: search.plot_errors(ax=axes), 1),
    ]


@pytest.mark.parametrize("which", range(8))
def test_axes_that_are_given_are_those_that_are_returned(named, search, which):
    draw, count = calls(named, search)[which]
    other = plt.figure()
    figure = Figure(figsize=(8, 8), layout="constrained")
    made = figure.subplots(count, squeeze=False).ravel()
    returned = np.ravel(draw(made if count > 1 else made[0]))
    assert [id(axis) for axis in returned] == [id(axis) for axis in made]
    assert all(axis.has_data() for axis in made)
    figure.draw_without_rendering()
    assert plt.get_fignums() == [other.number]
    assert plt.gcf() is other
    assert not other.axes


@pytest.mark.parametrize("which", range(8))
def test_a_wrong_number_of_axes_is_refused_and_nothing_is_left_open(named, search, which):
    draw, _ = calls(named, search)[which]
    with pytest.raises(ShapeError, match="7 axes were given; expected"):
        draw(Figure().subplots(7))
    with pytest.raises(DataError, match="matplotlib axes"):
        draw("here")
    assert plt.get_fignums() == []


def test_what_is_refused(named):
    for wrong, message in [
        ({"modes": "genes"}, "modes names the mode 'genes'"),
        ({"modes": 7}, "from 0 to 2"),
        ({"components": 2}, "from 0 to 1"),
        ({"components": []}, "from 0 to 1"),
        ({"kind": "bars"}, "'grid'"),
        ({"most": 0}, "most must be"),
        ({"ordered": "time"}, "ordered names"),
        ({"labels": {"gene": ["a"]}}, "one for each of the 50"),
    ]:
        with pytest.raises((DataError, ShapeError), match=message):
            named.plot_loadings(**wrong)
    assert plt.get_fignums() == []
    for method in ("plot_loadings", "plot_path", "plot_starts", "plot_convergence"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(SparseTensorPCA(), method)()


def test_a_figure_is_closed_when_drawing_fails(named, monkeypatch):
    from matplotlib.axes import Axes

    def broken(*arguments, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr(Axes, "barh", broken)
    with pytest.raises(RuntimeError, match="broken"):
        named.plot_loadings()
    assert plt.get_fignums() == []


def test_matplotlib_is_imported_by_plots_alone_and_pyplot_for_new_figures_alone():
    program = """
import sys, numpy as np
from restpoint.models import SparseTensorPCA
model = SparseTensorPCA(rho=1.0).fit(9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3]))
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
model.plot_loadings(axes=Figure().subplots(3))
model.plot_loadings(axes=Figure().subplots(3), kind="heatmap")
model.plot_starts(axes=Figure().subplots(2))
model.plot_convergence(axes=Figure().subplots(2))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
