"""Loadings of components as pictures: one mode and one component, or all components of a mode, in one axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np

from restpoint.errors import DataError
from restpoint.models import _plotting as pieces

KINDS = ("auto", "grid", "overlay", "heatmap")
# Inches of a row with a name, of a panel with lines or numbered bars, with stems; and of a column.
ROW, PANEL, STEMS, COLUMN = 0.165, 1.55, 2.6, 1.9
LONGEST = 28  # characters of a name
STRONGEST = 12  # stems with a name
LOGARITHMIC = 30.0  # values that spread this much, evenly in their logarithms, are drawn by these


@dataclass(frozen=True, eq=False)
class Mode:
    """One mode: ``rows`` (components, n), and a label for each of the n entries or None.

    ``ordered`` entries are drawn as a line, others as bars with their names. Of more than ``most`` named ones, those
    that are 0 in all components are left out; if more than ``most`` are left, they become thin stems, and the
    strongest are named.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray | None
    ordered: bool
    most: int

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.rows.shape[1]

    @cached_property
    def strength(self) -> np.ndarray:
        """The largest modulus of every entry."""
        return np.abs(self.rows).max(axis=0)

    @cached_property
    def shown(self) -> np.ndarray:
        """The entries that are drawn."""
        support = np.flatnonzero(self.strength)
        many = self.labels is not None and self.size > self.most and not self.ordered
        return support if many and len(support) else np.arange(self.size)

    @property
    def stems(self) -> bool:
        """Whether the entries are too many for bars."""
        return len(self.shown) > self.most * (1 if self.labels is not None else 2)

    @property
    def title(self) -> str:
        """The name, and how many entries are not drawn."""
        left = self.size - len(self.shown)
        return f"{self.name}\n({left} others are 0)" if left else self.name

    @cached_property
    def words(self) -> list[str]:
        """The labels in print; numbers where there are none."""
        return [str(j) for j in range(self.size)] if self.labels is None else in_print(self.labels)

    @cached_property
    def values(self) -> np.ndarray:
        """Where the entries of an ordered mode lie."""
        own = self.labels
        if own is None or not has_order(own):
            return np.arange(self.size)
        return own / np.timedelta64(1, "s") if own.dtype.kind == "m" else own

    def height(self, together: int = 1) -> float:
        """Inches for it, with so many components in each row."""
        if self.ordered:
            return PANEL
        if self.stems:
            return STEMS
        if self.labels is None:
            return PANEL
        return 0.35 + ROW * len(self.shown) * max(1.0, 0.5 * together)

    def margin(self) -> float:
        """Inches for its names."""
        names = [] if self.ordered or self.labels is None else [self.words[j] for j in self.shown]
        return 0.065 * max(map(len, names), default=4) + 0.4

    def limits(self) -> tuple[float, float]:
        """From the lowest to the highest loading, 0 included, with a margin."""
        low, high = min(0.0, float(self.rows.min())), max(0.0, float(self.rows.max()))
        if low == high:
            return -1.0, 1.0
        margin = 0.06 * (high - low)
        return low - (margin if low < 0 else 0.0), high + (margin if high > 0 else 0.0)


def has_order(labels: np.ndarray | None) -> bool:
    """Whether labels are numbers or dates."""
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iufmM":
        return False
    return not bool(np.any(np.isnat(labels) if labels.dtype.kind in "mM" else ~np.isfinite(labels)))


def printable(text: str) -> str:
    r"""One line of bounded length, in which a dollar is a dollar.

    >>> printable("price in $ of the\nlongest of all the names here")
    'price in \\$ of the longest o…'
    """
    words = " ".join(text.split())
    words = words if len(words) <= LONGEST else words[: LONGEST - 1].rstrip() + "…"
    return words.replace("$", r"\$")


def name_of(modes: Sequence[str]) -> str:
    r"""The name of one mode, or of several that are tied, in lines that are not too long.

    >>> name_of(["gene"]), name_of(["measurement 1", "measurement 2", "measurement 3"])
    ('gene', 'measurement 1 = measurement\n2 = measurement 3')
    """
    return "\n".join(wrap(" = ".join(map(printable, modes)), LONGEST))


def in_print(labels: np.ndarray) -> list[str]:
    """Labels as words; four digits of a number, if they tell them apart."""
    if labels.dtype.kind == "f":
        short = [f"{x:.4g}" for x in labels]
        return short if len(set(short)) == len(set(labels.tolist())) else [str(x) for x in labels]
    return [printable(str(x)) for x in labels]


def draw_loadings(
    modes: Sequence[Mode], titles: dict[int, str], kind: str, axes: Any
) -> np.ndarray:
    """Every mode a row and every component a column ("grid"), or every mode one axes for all components.

    ``titles`` belong to the rows of the modes; their keys, counted from 0, are the numbers of the components.
    """
    count, width = len(modes), len(titles)
    kind = _kind(kind, count, width, axes)
    if kind == "grid":
        return _grid(modes, titles, axes)
    drawn = _overlay if kind == "overlay" else _heatmap
    tall = max(2.4, *(mode.height(width if kind == "overlay" else 1) for mode in modes)) + 0.6
    wide = [
        mode.margin() + (2.6 if kind == "overlay" else 1.0 + max(0.9, 0.2 * width))
        for mode in modes
    ]
    with pieces.canvas(
        axes,
        (1, count),
        (sum(wide), tall),
        "one a mode",
        width_ratios=wide if axes is None else None,
    ) as made:
        for axis, mode in zip(made[0], modes, strict=True):
            drawn(axis, mode, titles)
        if kind == "overlay" and width > 1:
            _tell_components(made[0], axes is None)
        return made[0]


def _tell_components(made: np.ndarray, alone: bool) -> None:
    """A legend above the panels of a figure that holds nothing else, or in the last panel."""
    if not alone:
        pieces.legend(made[-1])
        return
    handles, names = made[-1].get_legend_handles_labels()
    made[0].figure.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=max(1, min(len(names), int(made[0].figure.get_figwidth() / 1.25))),
        frameon=False,
        fontsize=pieces.SMALL,
    )


def _kind(kind: str, modes: int, components: int, axes: Any) -> str:
    if kind not in KINDS:
        raise DataError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    if kind != "auto":
        return kind
    few = components <= len(pieces.COLOURS)
    if axes is not None and np.size(axes) != modes * components:
        return "overlay" if few else "heatmap"
    return "grid" if few else "heatmap"


def _grid(modes: Sequence[Mode], titles: dict[int, str], axes: Any) -> np.ndarray:
    shape = len(modes), len(titles)
    heights = [mode.height() for mode in modes]
    wide = max(COLUMN * shape[1], 2.6) + max(mode.margin() for mode in modes)
    tall = sum(heights) + 0.35 * shape[0] + 0.5
    more = {"height_ratios": heights} if axes is None else {}
    what = f"{shape[0]} modes times {shape[1]} components"
    with pieces.canvas(axes, shape, (wide, tall), what, **more) as made:
        for line, mode in zip(made, modes, strict=True):
            for k, (axis, number) in enumerate(zip(line, titles, strict=True)):
                _draw(axis, mode, [(mode.rows[k], number, "_")])
                if k:
                    axis.tick_params(labelleft=False)
                    axis.set_ylabel("")
            _say_entries(line[0], mode)
        for axis, title in zip(made[0], titles.values(), strict=True):
            pieces.headline(axis, *title.split("\n"))
        return made


def _overlay(axis: Any, mode: Mode, titles: dict[int, str]) -> None:
    names = [title.split("\n", maxsplit=1)[0] for title in titles.values()]
    _draw(axis, mode, list(zip(mode.rows, titles, names, strict=True)))
    _say_entries(axis, mode)


def _draw(axis: Any, mode: Mode, components: Sequence[tuple[np.ndarray, int, str]]) -> None:
    """Some components of one mode in one axes: loadings, number, and name in a legend ("_" for none) of each."""
    if mode.ordered:
        _lines(axis, mode, components)
        return
    pieces.plain(axis, grid="x")
    axis.axvline(0.0, color=pieces.GREY, lw=0.8, zorder=1)
    count = len(components)
    places = np.arange(len(mode.shown))
    for k, (row, number, name) in enumerate(components):
        x, paint = row[mode.shown], pieces.colour(number)
        if mode.stems:
            live = np.flatnonzero(x)
            axis.hlines(live, 0.0, x[live], color=paint, lw=0.8, label=name)
            axis.plot(x[live], live, ".", color=paint, ms=2.5)
        else:
            thick = 0.8 / count
            offset = (k - (count - 1) / 2.0) * thick
            axis.barh(places + offset, x, thick, color=paint, label=name, linewidth=0)
    axis.set_xlim(mode.limits())
    axis.set_ylim(len(places) - 0.4, -0.6)
    _few_ticks(axis.xaxis)
    axis.set_xlabel("loading", fontsize=pieces.SMALL)
    if mode.labels is None:
        _few_ticks(axis.yaxis, whole=True, count=8)
    else:
        axis.set_yticks([])


def _say_entries(axis: Any, mode: Mode) -> None:
    """Name the mode and its entries at the left: all, or the strongest; grey are those that are 0 throughout."""
    if mode.ordered:
        return
    axis.set_ylabel(mode.title, fontsize=pieces.SMALL + 1)
    if mode.labels is not None:
        _name_entries(axis, mode)


def _name_entries(axis: Any, mode: Mode) -> None:
    words = [mode.words[j] for j in mode.shown]
    strength = mode.strength[mode.shown]
    order = np.arange(len(words)) if mode.ordered else np.argsort(-strength, kind="stable")
    room = 1.2 * pieces.SMALL / 72.0 * len(words) / max(pieces.inches(axis)[1], 0.1)
    if mode.stems and not mode.ordered:
        few = order[strength[order] > 0][:STRONGEST]
        axis.set_yticks([])
        dark = [pieces.ink(axis)] * len(few)
        pieces.beside(axis, few.tolist(), [words[j] for j in few], dark, "left")
        axis.yaxis.labelpad = 14.0 + 0.6 * pieces.SMALL * max(
            (len(words[j]) for j in few), default=0
        )
        return
    chosen = sorted(pieces.spaced(np.arange(len(words)), order, room))
    axis.set_yticks(chosen, [words[j] for j in chosen], fontsize=pieces.SMALL)
    axis.tick_params(axis="y", length=0.0)
    for j, text in zip(chosen, axis.get_yticklabels(), strict=True):
        if strength[j] == 0:
            text.set_color(pieces.GREY)


def _lines(axis: Any, mode: Mode, components: Sequence[tuple[np.ndarray, int, str]]) -> None:
    pieces.plain(axis)
    axis.axhline(0.0, color=pieces.GREY, lw=0.8, zorder=1)
    order = np.argsort(mode.values, kind="stable")
    marked = mode.size <= 40
    for row, number, name in components:
        axis.plot(
            mode.values[order],
            row[order],
            color=pieces.colour(number),
            ls=pieces.dash(number) if len(components) > 1 else "-",
            lw=1.3,
            marker=pieces.mark(number) if marked else "",
            ms=3.5,
            label=name,
        )
    low, high = mode.limits()
    axis.set_ylim(low - 0.03 * (high - low), high)  # marks at 0 are whole
    _few_ticks(axis.yaxis)
    _spread(axis, mode)
    axis.set_ylabel("loading", fontsize=pieces.SMALL)
    axis.set_xlabel(_with_unit(mode), fontsize=pieces.SMALL + 1)


def _spread(axis: Any, mode: Mode) -> None:
    """The scale of an ordered mode: dates, logarithms, numbers, or names as far as there is room for them."""
    values = mode.values
    if mode.labels is None:
        _few_ticks(axis.xaxis, whole=True)
    elif not has_order(mode.labels):
        longest = max(map(len, mode.words))
        room = mode.size * longest * 0.6 * pieces.SMALL / 72.0 / max(pieces.inches(axis)[0], 0.1)
        kept = range(0, mode.size, max(1, math.ceil(room)))
        axis.set_xticks(list(kept), [mode.words[j] for j in kept])
    elif values.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=2, maxticks=4)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif even_in_logarithms(values):
        positive = values[values > 0]
        scale = {"linthresh": float(positive.min())} if np.any(values == 0) else {}
        axis.set_xscale("symlog" if scale else "log", **scale)
    else:
        _few_ticks(axis.xaxis)


def even_in_logarithms(values: np.ndarray) -> bool:
    """Whether numbers >= 0 are spaced like doses, not like times.

    >>> (
    ...     even_in_logarithms(np.array([0.0, 0.1, 1.0, 10.0])),
    ...     even_in_logarithms(np.arange(1.0, 50.0)),
    ... )
    (True, False)
    """
    positive = np.unique(values[values > 0]).astype(np.float64)
    if np.any(values < 0) or len(positive) < 3 or positive[-1] < LOGARITHMIC * positive[0]:
        return False
    steps = [np.diff(x) for x in (np.log(positive), positive)]
    uneven = [float(np.std(step) / np.mean(step)) for step in steps]
    return uneven[0] < uneven[1]


def _with_unit(mode: Mode) -> str:
    seconds = mode.labels is not None and mode.labels.dtype.kind == "m"
    return f"{mode.title} (seconds)" if seconds else mode.title


def _heatmap(axis: Any, mode: Mode, titles: dict[int, str]) -> None:
    """Entries x components in colours, white for 0."""
    if mode.ordered:
        order = np.argsort(mode.values, kind="stable")
        own = None if mode.labels is None else mode.labels[order]
        mode = Mode(mode.name, mode.rows[:, order], own, True, mode.most)
    table = mode.rows[:, mode.shown].T
    top = float(np.abs(table).max()) or 1.0
    signed = bool((table < 0).any())
    image = axis.imshow(
        table,
        cmap="RdBu_r" if signed else "Blues",
        vmin=-top if signed else 0.0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    axis.tick_params(labelsize=pieces.SMALL)
    if mode.labels is None:
        _few_ticks(axis.yaxis, whole=True, count=8)
    else:
        _name_entries(axis, mode)
    every = max(1, math.ceil(0.16 * len(titles) / max(pieces.inches(axis)[0], 0.1)))
    axis.set_xticks(range(0, len(titles), every), [r + 1 for r in titles][::every])
    axis.set_xlabel("component", fontsize=pieces.SMALL)
    axis.set_ylabel(mode.title, fontsize=pieces.SMALL + 1)
    bar = axis.figure.colorbar(image, ax=axis, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=pieces.SMALL - 1)
    bar.outline.set_visible(False)


def _few_ticks(axis: Any, whole: bool = False, count: int = 4) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10], integer=whole))
