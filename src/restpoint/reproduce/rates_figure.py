"""The study of rates as a figure: runs as marks, bounds as lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from restpoint.reproduce.rates import RESISTING, USUAL, Row

# Marks that lie on each other can be told apart: filled, open, larger, smaller.
STYLES: dict[str, dict[str, Any]] = {
    "Algorithm 1": {"marker": "o", "color": "#1b4f8a", "ms": 8.0},
    "Algorithm 2": {"marker": "o", "color": "#7aa6d6", "ms": 4.5},
    "Algorithm 5, Jacobi": {"marker": "s", "color": "#b3401f", "ms": 7.5},
    "Algorithm 6, Jacobi": {"marker": "s", "color": "#e9a184", "ms": 4.0},
    "Algorithm 5, MBI": {"marker": "D", "color": "#2c7a4b", "ms": 7.0, "mfc": "none"},
    "Algorithm 6, MBI": {"marker": "D", "color": "#7cc09a", "ms": 3.5},
}
SHARP, PRINTED = "#333333", "#999999"
ONE_BLOCK = ("Algorithm 1", "Algorithm 2")
Choice = Callable[[Row], bool]


def _of(words: str) -> Choice:
    return lambda row: row.of == words


# Title, and which runs are in it.
UPPER: tuple[tuple[str, Choice], ...] = tuple(
    (f"resisting, {words}", _of(words)) for words in ("p = 1.25", "p = 1.5", "p = 2", "concave")
)
LOWER: tuple[tuple[str, Choice], ...] = (
    ("quadratic", lambda row: row.method in ONE_BLOCK and row.of == "p = 2"),
    ("concave quadratic", lambda row: row.method in ONE_BLOCK and row.of == "concave"),
    ("tensor, all blocks at once", lambda row: "Jacobi" in row.method),
    ("tensor, best block", lambda row: "MBI" in row.method),
)


def figure(paths: Sequence[Path], rows: Sequence[Row]) -> None:
    """First x^k with a gap of at most eps; the same picture in every format."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    sheet = Figure(figsize=(13.0, 6.4), layout="constrained")
    axes = sheet.subplots(2, 4)
    for line, panels, kind in ((axes[0], UPPER, RESISTING), (axes[1], LOWER, USUAL)):
        for axis, (title, chosen) in zip(line, panels, strict=True):
            _panel(axis, [row for row in rows if row.problem == kind and chosen(row)])
            axis.set_title(title, fontsize=10)
        line[0].set_ylabel("iterations")
    for axis in axes[1]:
        axis.set_xlabel("eps, in units of the largest")
    marks = [Line2D([], [], ls="", label=name, **style) for name, style in STYLES.items()]
    bounds = [
        Line2D([], [], color=SHARP, label="allowed, sharp form"),
        Line2D([], [], color=PRINTED, ls="--", label="allowed, as printed"),
    ]
    sheet.legend(
        handles=[*marks, *bounds], loc="outside upper center", ncols=8, frameon=False, fontsize=8
    )
    for path in paths:
        sheet.savefig(path, dpi=200)


def _panel(axis: Any, rows: list[Row]) -> None:
    """Runs of every method, in units of the largest eps, and their bounds."""
    axis.set(xscale="log", yscale="log")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.invert_xaxis()
    every = sorted({row.eps / max(r.eps for r in rows) for row in rows}, reverse=True)
    if every and every[-1] > 0.01:  # less than two decades: figures, not powers of ten
        axis.set_xticks(every[::2], [f"{eps:.2g}" for eps in every[::2]])
        axis.set_xticks([], minor=True)
    for name, style in STYLES.items():
        own = sorted((row for row in rows if row.method == name), key=lambda row: -row.eps)
        if not own:
            continue
        eps = [row.eps / own[0].eps for row in own]
        axis.plot(eps, [row.paper for row in own], color=PRINTED, lw=1.0, ls="--", zorder=1)
        axis.plot(eps, [row.allowed for row in own], color=SHARP, lw=1.0, zorder=1)
        axis.plot(eps, [row.looks for row in own], ls="", zorder=2, **style)
