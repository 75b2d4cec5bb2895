"""Table 1 as a figure: every run, and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from restpoint.reproduce.printed import Run
from restpoint.reproduce.table1 import CAP, METHODS, Row
from restpoint.reproduce.table1_summary import printed_runs

OURS, COLLAPSED, PRINTED = "#3b76af", "#8c8c8c", "#c4441c"
SHORT = {
    "BCD": "BCD\n(Jacobi)",
    "Algorithm 6": "Alg. 6",
    "Algorithm 5": "Alg. 5",
    "BCD Gauss-Seidel": "BCD\n(G.-S.)",
    "BCD MBI": "BCD\n(MBI)",
}
# Ours to the left of the mark of a method, the paper's to its right.
SPREAD, LEFT, RIGHT = 0.2, -0.13, 0.27


def figure(paths: Sequence[Path], rows: Sequence[Row]) -> None:
    """A(x) and iterations of every run, those of the paper beside them; the same picture in every format."""
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(row.n for row in rows))
    names = [name for name in METHODS if any(row.method == name for row in rows)]
    width = max(3.2 * len(sizes) + 0.6, 6.4)
    sheet = Figure(figsize=(width, 6.0), layout="constrained")
    axes = sheet.subplots(2, len(sizes), squeeze=False, sharex=True, sharey="row")
    rng = np.random.default_rng(0)
    for column, n in enumerate(sizes):
        above, below = axes[:, column]
        for place, name in enumerate(names):
            printed = printed_runs(n, name)
            own = [row for row in rows if (row.n, row.method) == (n, name)]
            x = place + (LEFT if printed else 0.0) + rng.uniform(-SPREAD, SPREAD, len(own))
            _runs(above, x, own, [row.value for row in own])
            _runs(below, x, own, [max(row.iterations, 1) for row in own])
            _printed(above, below, place + RIGHT, printed)
        above.set_title(f"n = {n}")
        above.axhline(0.0, color="#555555", lw=0.7, zorder=0)
        below.axhline(CAP, color="#555555", lw=0.7, ls=":", zorder=0)
        below.set_yscale("log")
        below.set_xlim(-0.6, len(names) - 0.4)
        below.set_xticks(range(len(names)), [SHORT[name] for name in names], fontsize=8)
        for axis in (above, below):
            axis.grid(axis="y", alpha=0.25)
            axis.set_axisbelow(True)
            axis.tick_params(axis="x", length=0)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("A(x) at the last iterate")
    axes[1, 0].set_ylabel("iterations (dotted: cap)")
    _legend(sheet, any(printed_runs(n, name) for n in sizes for name in names))
    for path in paths:
        sheet.savefig(path, dpi=200)


def _runs(axis: Any, x: np.ndarray, rows: list[Row], y: list[float]) -> None:
    """Dots, those of collapsed runs in grey; on vector pages as one picture, or they fill megabytes."""
    collapsed, values = np.array([row.collapsed for row in rows], dtype=bool), np.array(y)
    for mask, colour in ((~collapsed, OURS), (collapsed, COLLAPSED)):
        style = {"color": colour, "ms": 5.5, "mew": 0.0, "alpha": 0.6, "rasterized": True}
        axis.plot(x[mask], values[mask], ".", **style)


def _printed(above: Any, below: Any, place: float, runs: list[Run]) -> None:
    style: dict[str, Any] = {"color": PRINTED, "ms": 8.0, "mew": 1.4}
    above.plot([place] * len(runs), [run.value for run in runs], "_", **style)
    below.plot([place] * len(runs), [run.iterations for run in runs], "_", **style)


def _legend(sheet: Any, printed: bool) -> None:
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"marker": ".", "ls": "", "ms": 9.0, "mew": 0.0}
    handles = [
        Line2D([], [], color=OURS, label="our runs", **dot),
        Line2D([], [], color=COLLAPSED, label="ours, ended at zero (BCD: |A(x)| ≤ 2)", **dot),
    ]
    if printed:
        style: dict[str, Any] = {"marker": "_", "ls": "", "ms": 9, "mew": 1.6}
        handles.append(Line2D([], [], color=PRINTED, label="printed runs", **style))
    sheet.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
