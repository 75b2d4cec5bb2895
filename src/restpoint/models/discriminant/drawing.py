"""Pictures of discriminants: samples along directions, coefficients, and scores over the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from restpoint.models import _plotting as pieces
from restpoint.models._loadings import has_order, in_print, printable

# What an outline holds of a class.
SHARE = 0.9
# Stems of coefficients that no fold uses are this dark, those in all folds 1.
FAINT = 0.25
LANE, SHORT = 1.5, 1.9  # inches of an axes with stems, with and without others


@dataclass(frozen=True, eq=False)
class Cloud:
    """Samples along one or two directions.

    scores      (n, 1 or 2), and the class of each as a number (-1: not known)
    centroids   (K, 1 or 2), class means of the training samples
    means, covariance   of the classes as ``predict_proba`` takes them, or None
    """

    scores: np.ndarray
    code: np.ndarray
    classes: list[Any]
    centroids: np.ndarray
    means: np.ndarray | None
    covariance: np.ndarray | None
    title: str
    axes: tuple[str, ...]

    def name(self, k: int) -> str:
        """The class in print, and how many samples it has."""
        return f"{printable(str(self.classes[k]))} ({np.count_nonzero(self.code == k)})"

    def outline(self, k: int) -> np.ndarray:
        """Points around 90 % of class k: a line of (2, 1), or an ellipse of (points, 2)."""
        assert self.means is not None
        assert self.covariance is not None
        size = self.scores.shape[1]
        values, U = np.linalg.eigh(self.covariance)
        root = U * np.sqrt(np.maximum(values, 0.0) * chi2.ppf(SHARE, size))
        if size == 1:
            return np.asarray(self.means[k] + np.array([[-1.0], [1.0]]) * abs(root[0, 0]))
        angle = np.linspace(0.0, 2.0 * np.pi, 181)
        return np.asarray(self.means[k] + np.stack([np.cos(angle), np.sin(angle)], axis=1) @ root.T)


def draw_cloud(cloud: Cloud, ax: Any) -> Any:
    """Two directions against each other, or one with a row for each class."""
    single = cloud.scores.shape[1] == 1
    tall = 1.0 + 0.42 * len(cloud.classes) if single else 4.0
    with pieces.canvas(ax, (1, 1), (5.6, max(tall, 2.2)), "one panel") as made:
        axis = made[0, 0]
        pieces.plain(axis, grid="x" if single else "both")
        (_rows_of_classes if single else _plane)(axis, cloud)
        axis.set_xlabel(cloud.axes[0], fontsize=pieces.SMALL + 1)
        pieces.headline(axis, cloud.title)
        pieces.legend_beside(axis)
        return axis


def _plane(axis: Any, cloud: Cloud) -> None:
    for k in range(len(cloud.classes)):
        if cloud.means is not None:
            around = cloud.outline(k)
            axis.plot(*around.T, color=pieces.colour(k), lw=0.9, ls=dash(k), zorder=2)
        own = cloud.scores[cloud.code == k]
        if len(own):
            axis.plot(*own.T, mark(k), label=cloud.name(k), **_dots(pieces.colour(k)))
    _unknown(axis, cloud, cloud.scores[cloud.code < 0].T)
    for k in range(len(cloud.classes)):
        _centroid(axis, cloud.centroids[k, 0], cloud.centroids[k, 1], k)
    _tell(axis, cloud)
    axis.set_ylabel(cloud.axes[1], fontsize=pieces.SMALL + 1)


def _rows_of_classes(axis: Any, cloud: Cloud) -> None:
    """One row a class, the first above; samples that would hide each other are moved up and down."""
    low, high = float(cloud.scores.min()), float(cloud.scores.max())
    step = (high - low or 1.0) * 0.055 / max(pieces.inches(axis)[0], 0.1)
    for k in range(len(cloud.classes)):
        if cloud.means is not None:
            axis.plot(
                cloud.outline(k)[:, 0],
                [k - 0.36] * 2,
                color=pieces.colour(k),
                lw=2.0,
                solid_capstyle="butt",
                zorder=2,
            )
        own = cloud.scores[cloud.code == k, 0]
        if len(own):
            axis.plot(own, k + beside_each_other(own, step), mark(k), **_dots(pieces.colour(k)))
        _centroid(axis, cloud.centroids[k, 0], k, k)
    names = [cloud.name(k) for k in range(len(cloud.classes))]
    unknown = cloud.scores[cloud.code < 0, 0]
    if len(unknown):
        places = len(names) + beside_each_other(unknown, step)
        _unknown(axis, cloud, (unknown, places))
        names = [*(printable(str(c)) for c in cloud.classes), f"not known ({len(unknown)})"]
    axis.set_yticks(range(len(names)), names, fontsize=pieces.SMALL)
    axis.tick_params(axis="y", length=0.0)
    axis.set_ylim(len(names) - 0.4, -0.6)
    _tell(axis, cloud, wide=2.0)


def beside_each_other(places: np.ndarray, step: float, room: float = 0.3) -> np.ndarray:
    """Offsets within [-room, room]: of points in the same interval of length ``step`` 0, up, down, further up, ...

    >>> beside_each_other(np.array([0.1, 0.2, 5.0, 0.3]), 1.0)
    array([ 0. ,  0.1,  0. , -0.1])
    """
    bins = np.floor(places / step)
    order = np.argsort(bins, kind="stable")
    rank = np.empty(len(places), dtype=np.int64)
    rank[order] = np.arange(len(places)) - np.searchsorted(bins[order], bins[order])
    away = (rank + 1) // 2
    thick = min(0.1, room / max(1, int(away.max(initial=1))))
    return np.asarray(np.where(rank % 2 == 1, 1.0, -1.0) * away * thick + 0.0)


def mark(k: int) -> str:
    """The mark of the k-th class: another pairing with the colours in every round."""
    return pieces.mark(k + k // len(pieces.COLOURS))


def dash(k: int) -> Any:
    """The dashes of the k-th class, likewise."""
    return pieces.dash(k + k // len(pieces.COLOURS))


def _dots(paint: str) -> dict[str, Any]:
    return {"color": paint, "ms": 5, "mec": "white", "mew": 0.4, "zorder": 3}


def _centroid(axis: Any, x: float, y: float, k: int) -> None:
    style = {"ms": 9, "mfc": pieces.colour(k), "mec": pieces.ink(axis), "mew": 0.8}
    axis.plot([x], [y], "X", zorder=4, **style)


def _unknown(axis: Any, cloud: Cloud, places: Any) -> None:
    if np.any(cloud.code < 0):
        count = np.count_nonzero(cloud.code < 0)
        axis.plot(*places, "o", label=f"not known ({count})", **_dots(pieces.GREY))


def _tell(axis: Any, cloud: Cloud, wide: float = 0.9) -> None:
    """Legend entries of what every class has."""
    if cloud.means is not None:
        axis.plot(
            [], [], color=pieces.GREY, lw=wide, label=f"{SHARE:.0%} of a class,\nby predict_proba"
        )
    style = {"ms": 8, "mfc": pieces.LIGHT, "mec": pieces.ink(axis), "mew": 0.8, "ls": ""}
    axis.plot([], [], marker="X", label="mean of the class\nin training", **style)


@dataclass(frozen=True, eq=False)
class Lane:
    """The coefficients of one component, (p,), and in which share of the folds each is not 0 (None: no folds)."""

    coefficients: np.ndarray
    frequency: np.ndarray | None
    title: str


def draw_lanes(
    lanes: Sequence[Lane], labels: np.ndarray | None, told: tuple[str, int], axes: Any
) -> np.ndarray:
    """Stems over the features, an axes a component; ``told`` is what they are, and how many have a name."""
    what, most = told
    tall = 0.6 + (LANE if len(lanes) > 1 else SHORT) * len(lanes)
    with pieces.canvas(axes, (len(lanes), 1), (7.2, tall), "one a component") as made:
        line = made[:, 0]
        size = len(lanes[0].coefficients)
        ordered = has_order(labels)
        places = np.arange(size) if labels is None or not ordered else np.asarray(labels)
        words = [str(j) for j in range(size)] if labels is None else in_print(labels)
        for axis, lane in zip(line, lanes, strict=True):
            pieces.plain(axis)
            _stems(axis, places, lane)
            _name_strongest(axis, places, words, lane, most)
            pieces.headline(axis, lane.title)
            axis.set_ylabel("coefficient", fontsize=pieces.SMALL)
            margin = 0.02 * float(places.max() - places.min()) or 0.5
            axis.set_xlim(places.min() - margin, places.max() + margin)
            if labels is not None and not ordered:
                axis.set_xticks([])
        line[-1].set_xlabel(what, fontsize=pieces.SMALL + 1)
        if lanes[0].frequency is not None:
            _scale_of_folds(line)
        return line


def _stems(axis: Any, places: np.ndarray, lane: Lane) -> None:
    live = np.flatnonzero(lane.coefficients)
    if lane.frequency is not None:  # dark above light
        live = live[np.argsort(lane.frequency[live], kind="stable")]
    axis.axhline(0.0, color=pieces.GREY, lw=0.8, zorder=1)
    share = np.ones(len(live)) if lane.frequency is None else lane.frequency[live]
    paint = _shades()(share)
    height = lane.coefficients[live]
    axis.vlines(places[live], 0.0, height, colors=paint, lw=1.1)
    axis.scatter(places[live], height, s=7, c=paint, linewidths=0, zorder=3)
    top = float(np.abs(height).max(initial=0.0)) or 1.0
    low, high = float(height.min(initial=0.0)), float(height.max(initial=0.0))
    axis.set_ylim(low - 0.28 * top if low < 0 else -0.08 * top, high + 0.28 * top)


def _shades() -> Any:
    """From light to dark blue, by the share of the folds."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("folds", ["#c6d9e9", pieces.COLOURS[0], "#00263f"])


def _scale_of_folds(line: np.ndarray) -> None:
    from matplotlib.cm import ScalarMappable

    shades = ScalarMappable(cmap=_shades())
    shades.set_clim(0.0, 1.0)
    bar = line[0].figure.colorbar(
        shades, ax=list(line), pad=0.01, aspect=12 * len(line), fraction=0.05
    )
    bar.set_label("share of the folds", fontsize=pieces.SMALL)
    bar.ax.tick_params(labelsize=pieces.SMALL - 1)
    bar.outline.set_visible(False)


def _name_strongest(axis: Any, places: np.ndarray, words: list[str], lane: Lane, most: int) -> None:
    """Names at the tips of the longest stems, as far as they do not touch those of longer ones."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.0, foreground=axis.get_facecolor())]
    wide, tall = (72.0 * inch for inch in pieces.inches(axis))
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    left, right = min(places.min(), left), max(places.max(), right)
    taken: list[tuple[float, float, float]] = []
    strength = np.abs(lane.coefficients)
    for j in np.argsort(-strength, kind="stable")[:most]:
        if strength[j] == 0.0:
            break
        half = 0.3 * pieces.SMALL * len(words[j])
        x = (places[j] - left) / (right - left or 1.0) * wide
        y = (lane.coefficients[j] - low) / (high - low) * tall
        if all(abs(x - a) > half + b + 2.0 or abs(y - c) > 1.4 * pieces.SMALL for a, b, c in taken):
            taken.append((x, half, y))
            up = bool(lane.coefficients[j] > 0)
            axis.annotate(
                words[j],
                (places[j], lane.coefficients[j]),
                xytext=(0.0, 3.0 if up else -3.0),
                textcoords="offset points",
                ha="center",
                va="bottom" if up else "top",
                fontsize=pieces.SMALL - 1,
                path_effects=halo,
            )


@dataclass(frozen=True, eq=False)
class Lines:
    """A comparison: its table, the line chosen, the least score as good as the best, those of chance and perfection."""

    table: dict[str, np.ndarray]
    chosen: int
    least: float | None
    name: str
    chance: float | None
    most: float | None


def draw_lines(lines: Lines, axes: Any) -> np.ndarray:
    """Scores with bands of a standard error, and features in use, over gamma."""
    table = lines.table
    counts, several = np.unique(table["n_components"]), len(np.unique(table["gamma"])) > 1
    groups = (
        [(pieces.counted(n), np.flatnonzero(table["n_components"] == n)) for n in counts]
        if several
        else [("_", np.arange(len(table["score"])))]
    )
    x = table["gamma"] if several else table["n_components"]
    with pieces.canvas(axes, (1, 2), (9.2, 3.3), "scores, features") as made:
        first, second = made[0]
        for k, (label, own) in enumerate(groups):
            _with_band(first, x[own], table["score"][own], table["se"][own], k)
            for axis, y in ((first, table["score"]), (second, table["features"])):
                _line(axis, x[own], y[own], table["certified"][own], k, label)
        if lines.least is not None:
            first.axhline(lines.least, color=pieces.GREY, lw=1.0, label="best - standard error")
        pieces.star(first, x[lines.chosen], table["score"][lines.chosen])
        pieces.star(second, x[lines.chosen], table["features"][lines.chosen])
        for axis, name in ((first, lines.name), (second, "features in use")):
            pieces.plain(axis, grid="both")
            axis.set_ylabel(name, fontsize=pieces.SMALL + 1)
            (_gamma_axis if several else pieces.components_axis)(axis, x)
        _score_range(first, lines)
        if lines.chance is not None and lines.chance >= first.get_ylim()[0]:
            first.axhline(lines.chance, color=pieces.GREY, ls=":", lw=1.0, label="chance")
        second.set_ylim(bottom=0.0)
        _told(first, second)
        return made[0]


def _score_range(axis: Any, lines: Lines) -> None:
    """Everything; where 1 is the best that a score can be, up to there, and down to at most chance."""
    score, se = lines.table["score"], np.nan_to_num(lines.table["se"])
    low, high = float(np.nanmin(score - se)), float(np.nanmax(score + se))
    if lines.most is not None:
        high = min(high, lines.most)
        low = min(low, lines.most - 0.1)
    if lines.chance is not None and lines.chance > low - 0.5 * (high - low):
        low = min(low, lines.chance)
    margin = 0.06 * (high - low) or 0.05
    axis.set_ylim(low - margin, high + margin)


def _told(first: Any, second: Any) -> None:
    """One legend for both axes, beside the second."""
    handles, names = first.get_legend_handles_labels()
    second.legend(
        handles,
        names,
        frameon=False,
        fontsize=pieces.SMALL,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        borderaxespad=0.2,
    )


def _with_band(axis: Any, x: np.ndarray, y: np.ndarray, se: np.ndarray, k: int) -> None:
    wide = np.nan_to_num(se)
    axis.fill_between(x, y - wide, y + wide, color=pieces.colour(k), alpha=0.15, lw=0)


def _line(
    axis: Any, x: np.ndarray, y: np.ndarray, certified: np.ndarray, k: int, label: str
) -> None:
    """White marks where a part was not certified."""
    paint = pieces.colour(k)
    axis.plot(x, y, color=paint, ls=pieces.dash(k), marker=mark(k), ms=4, lw=1.2, label=label)
    rest = certified < 1.0
    if rest.any():
        axis.plot(x[rest], y[rest], mark(k), color=paint, ms=4, mfc="white", label="_")


def _gamma_axis(axis: Any, gamma: np.ndarray) -> None:
    """Falling, as all axes of a penalty."""
    values = np.unique(gamma)
    margin = 0.05 * float(values[-1] - values[0])
    axis.set_xlim(values[-1] + margin, values[0] - margin)
    axis.set_xlabel("gamma (sparser to the left)", fontsize=pieces.SMALL + 1)
