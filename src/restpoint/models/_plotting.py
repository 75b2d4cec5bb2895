"""Pieces that plots of models share. matplotlib is imported when something is drawn; its settings are never changed.

Everything is drawn into axes that are handed in. Where none are, ``canvas`` makes them with ``pyplot.subplots``: a
figure that pyplot does not know is shown neither by ``plt.show()`` nor in a notebook. Nothing else asks pyplot; with
the axes of a ``matplotlib.figure.Figure`` it is not even imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from restpoint.errors import DataError, ShapeError, described

# Okabe and Ito's colours, told apart by all kinds of colour vision; without yellow, which is too light on white. Marks
# and dashes tell them apart on paper without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5f5f5f")
MARKS = "os^Dv<P"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
GREY, LIGHT = "#7f7f7f", "#bdbdbd"
SMALL = 8.0  # points, of labels


def colour(k: int) -> str:
    """The colour of the k-th thing."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int) -> str:
    """The mark of the k-th thing."""
    return MARKS[k % len(MARKS)]


def dash(k: int) -> Any:
    """The dashes of the k-th line."""
    return DASHES[k % len(DASHES)]


@contextmanager
def canvas(
    axes: Any, shape: tuple[int, int], size: tuple[float, float], what: str, **more: Any
) -> Iterator[np.ndarray]:
    """The axes handed in, in the shape asked for, or those of a new figure: which is closed if drawing fails."""
    if axes is not None:
        yield given(axes, shape, what)
        return
    import matplotlib.pyplot as plt

    figure, made = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained", **more)
    try:
        yield made
    except BaseException:
        plt.close(figure)
        raise


def given(axes: Any, shape: tuple[int, int], what: str) -> np.ndarray:
    """Axes that were handed in, one for each place."""
    from matplotlib.axes import Axes

    found = np.empty(1, dtype=object)
    if isinstance(axes, Axes):
        found[0] = axes
    else:
        found = np.asarray(axes, dtype=object).ravel()
    if not all(isinstance(axis, Axes) for axis in found):
        raise DataError(f"axes must be matplotlib axes, or an array of them, got {described(axes)}")
    if found.size != shape[0] * shape[1]:
        raise ShapeError(f"{found.size} axes were given; expected {shape[0] * shape[1]}: {what}")
    return found.reshape(shape)


def plain(axis: Any, *, grid: str = "y") -> None:
    """A quiet frame: no upper and right line, a faint grid behind what is drawn."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=SMALL)
    if grid:
        axis.grid(axis=grid, color=LIGHT, alpha=0.45, lw=0.6)


def inches(axis: Any) -> tuple[float, float]:
    """Width and height of an axes as it stands; a layout that makes room for labels changes them later."""
    return float(axis.bbox.width / axis.figure.dpi), float(axis.bbox.height / axis.figure.dpi)


def ink(axis: Any) -> Any:
    """The colour of words: dark on a light background, light on a dark one."""
    return axis.xaxis.label.get_color()


def spaced(places: np.ndarray, order: np.ndarray, least: float) -> list[int]:
    """As many of ``order`` as have a distance of ``least`` from those before: labels that do not touch.

    >>> spaced(np.array([0.0, 1.0, 5.0, 5.5]), np.array([3, 0, 1, 2]), 1.0)
    [3, 0, 1]
    """
    kept: list[int] = []
    for i in order:
        if all(abs(places[i] - places[j]) >= least for j in kept):
            kept.append(int(i))
    return kept


def dodged(places: np.ndarray, gap: float, low: float, high: float) -> np.ndarray:
    """The places nearest to these (in least squares) within [low, high] with distances of at least ``gap``, in order.

    >>> dodged(np.array([1.0, 1.0, 5.0]), 2.0, 0.0, 10.0)
    array([0., 2., 5.])
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    moved = np.empty(len(places))
    level = isotonic_regression(np.asarray(places, dtype=np.float64)[order] - steps).x
    moved[order] = np.clip(level, low, max(low, high - steps[-1])) + steps
    return moved


def beside(
    axis: Any, places: Sequence[float], names: Sequence[str], paint: Sequence[str], side: str
) -> None:
    """Names at the "left" or "right" edge of an axes, at heights of its data; they make room for each other.

    As many as fit, the first ones first; thin lines lead to where they belong.
    """
    tall, (low, high) = (
        0.9 * 72.0 * inches(axis)[1],
        axis.get_ylim(),
    )  # a layout may still take some
    gap = 1.25 * SMALL
    count = min(len(names), max(1, int(tall / gap)))
    heights = (np.asarray(places[:count], dtype=np.float64) - low) / (high - low) * tall
    offsets = dodged(heights, gap, 0.0, tall) - heights
    edge, away = (0.0, -10.0) if side == "left" else (1.0, 10.0)
    for name, place, offset, own in zip(names, places, offsets, paint, strict=False):
        axis.annotate(
            name,
            (edge, place),
            xycoords=("axes fraction", "data"),
            xytext=(away, offset),
            textcoords="offset points",
            ha="right" if side == "left" else "left",
            va="center",
            fontsize=SMALL,
            color=own,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY, "shrinkA": 1, "shrinkB": 0},
        )


def rho_places(rho: np.ndarray) -> np.ndarray:
    """Where rho is drawn on a logarithmic axis: 0 a little beyond the smallest.

    >>> rho_places(np.array([4.0, 1.0, 0.0]))
    array([4. , 1. , 0.5])
    """
    rho = np.asarray(rho, dtype=np.float64)
    positive = rho[rho > 0]
    return np.where(rho > 0, rho, 0.5 * positive.min() if len(positive) else 1.0)


def rho_axis(axis: Any, rho: np.ndarray) -> None:
    """A logarithmic axis of rho, falling, with a place for 0."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    positive = np.asarray(rho)[np.asarray(rho) > 0]
    places = rho_places(rho)
    axis.set_xscale("log")
    axis.set_xlim(places.max() * 1.12, places.min() / 1.12)
    ticks = _rho_ticks(np.unique(positive), inches(axis)[0])
    names = [f"{tick:.3g}" for tick in ticks]
    if np.any(np.asarray(rho) == 0):
        ticks, names = [*ticks, float(places.min())], [*names, "0"]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FixedFormatter(names))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("rho (sparser to the left)", fontsize=SMALL)


def _rho_ticks(rho: np.ndarray, wide: float) -> list[float]:
    """The values themselves where they are few, else round numbers between them.

    >>> _rho_ticks(np.array([0.3, 0.7]), 4.0), _rho_ticks(np.geomspace(0.9, 11.0, 16), 4.0)
    ([0.7, 0.3], [1.0, 3.0, 10.0])
    """
    if len(rho) <= 8:
        falling = np.log(rho[::-1])
        room = 0.45 * (falling[0] - falling[-1] + 0.7) / max(wide, 0.1) if len(rho) else 0.0
        kept = spaced(falling, np.arange(len(rho)), room)
        return [float(rho[::-1][i]) for i in kept]
    low, high = float(rho[0]), float(rho[-1])
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5)):
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        found = [float(f"{s}e{e}") for e in powers for s in steps]
        found = [tick for tick in found if low <= tick <= high]
        if len(found) >= 3:
            return found[:: 1 + len(found) // 8]
    return found or [low, high]


def log_range(axis: Any, values: np.ndarray, least: float = 2.0) -> None:
    """A logarithmic y axis around positive values, of at least so many powers of ten."""
    axis.set_yscale("log")
    axis.tick_params(which="both", labelsize=SMALL)
    found = np.log10(values[np.isfinite(values) & (values > 0)])
    low, high = found.min() - 0.3, found.max() + 0.3
    more = max(0.0, least - (high - low)) / 2.0
    axis.set_ylim(10.0 ** (low - more), 10.0 ** (high + more))


def headline(axis: Any, first: str, second: str = "") -> None:
    """A title of one or two lines, to the left."""
    axis.set_title(first + (f"\n{second}" if second else ""), fontsize=SMALL + 1, loc="left")


def legend(axis: Any, **more: Any) -> None:
    """A legend without a frame, if there is anything to tell."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=SMALL, **more)


def legend_beside(axis: Any) -> None:
    """The same to the right of the axes, where it hides nothing."""
    legend(axis, loc="center left", bbox_to_anchor=(1.0, 0.5), borderaxespad=0.2)


def star(axis: Any, x: float, y: float) -> None:
    """What was chosen."""
    style: dict[str, Any] = {"ms": 13, "mec": "white", "mew": 0.7, "zorder": 5, "ls": ""}
    axis.plot([x], [y], "*", color=ink(axis), label="chosen", **style)


def components_axis(axis: Any, counts: np.ndarray) -> None:
    """An axis of numbers of components."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_xlim(counts[0] - 0.4, counts[-1] + 0.4)
    axis.set_xlabel("components", fontsize=SMALL)


def counted(n: int) -> str:
    """So many components, in words."""
    return f"{n} component{'s' if n != 1 else ''}"
