"""Table 2 as a figure: the iterations of every run and what is printed, and what beta makes of their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from restpoint.reproduce.printed import TABLE_2
from restpoint.reproduce.table2 import ADMM, ADMMS, ALGORITHM_1, MOMENTUM, PAPER, Row
from restpoint.reproduce.table2_summary import spread_of_ratios

OURS, PRINTED = "#3b76af", "#c4441c"
COLOURS = ("#3b76af", "#d98a1f", "#4f9a57")
SHORT = {ALGORITHM_1: "Alg. 1", ADMM: "ADMM\n2.5 L", MOMENTUM: "with\nmomentum"}
# Ours to the left of the mark of a method, the paper's to its right.
SPREAD, LEFT, RIGHT = 0.18, -0.12, 0.27


def figure(paths: Sequence[Path], rows: Sequence[Row]) -> None:
    """Iterations above, their ratio by beta below, one column for each size; the same picture in every format."""
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(row.n for row in rows))
    width = max(3.2 * len(sizes) + 0.6, 6.4)
    sheet = Figure(figsize=(width, 6.2), layout="constrained")
    axes = sheet.subplots(2, len(sizes), squeeze=False, sharey="row")
    rng = np.random.default_rng(0)
    for column, n in enumerate(sizes):
        above, below = axes[:, column]
        _iterations(above, [r for r in rows if r.n == n and r.penalty == PAPER], n, rng)
        _ratios(below, rows, n)
        above.set_title(f"n = {n}")
        for axis in (above, below):
            axis.grid(axis="y", alpha=0.25)
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("iterations, the paper's penalty")
    axes[1, 0].set_ylabel("iterations of ADMM / Algorithm 1")
    _legend(sheet, rows, any(n in TABLE_2 for n in sizes))
    for path in paths:
        sheet.savefig(path, dpi=200)


def _iterations(axis: Any, rows: list[Row], n: int, rng: np.random.Generator) -> None:
    """Dots for our runs, bars for the printed ones; on vector pages dots are one picture."""
    names = [name for name in SHORT if any(row.method == name for row in rows)]
    for place, name in enumerate(names):
        own = [max(row.iterations, 1) for row in rows if row.method == name]
        printed = {
            ALGORITHM_1: [p.iterations for p in TABLE_2.get(n, [])],
            ADMM: [p.admm_iterations for p in TABLE_2.get(n, [])],
        }.get(name, [])
        x = place + (LEFT if printed else 0.0) + rng.uniform(-SPREAD, SPREAD, len(own))
        axis.plot(x, own, ".", color=OURS, ms=5.5, mew=0.0, alpha=0.6, rasterized=True)
        axis.plot([place + RIGHT] * len(printed), printed, "_", color=PRINTED, ms=8.0, mew=1.4)
    axis.set_yscale("log")
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.set_xticks(range(len(names)), [SHORT[name] for name in names], fontsize=8)
    axis.tick_params(axis="x", length=0)


def _ratios(axis: Any, rows: Sequence[Row], n: int) -> None:
    """For each penalty the median over beta, and the band of the middle 80 %."""
    penalties = list(dict.fromkeys(row.penalty for row in rows if row.n == n))
    for penalty, colour in zip(penalties, COLOURS, strict=False):
        found = {
            beta: spread_of_ratios(rows, n, penalty, name) for name, beta in sorted(ADMMS.items())
        }
        betas = sorted(beta for beta, ratios in found.items() if len(ratios))
        low, middle, high = (
            [np.percentile(found[beta], q) for beta in betas] for q in (10, 50, 90)
        )
        axis.fill_between(betas, low, high, color=colour, alpha=0.12, lw=0)
        axis.plot(betas, middle, "o-", color=colour, ms=3.5, lw=1.4)
    if n in TABLE_2:
        printed = [p.admm_iterations / p.iterations for p in TABLE_2[n]]
        axis.axhline(float(np.median(printed)), color=PRINTED, lw=1.2, ls="--", zorder=0)
    axis.set_yscale("log")
    axis.set_xlabel("beta / L")


def _legend(sheet: Any, rows: Sequence[Row], printed: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=OURS, marker=".", ls="", ms=9.0, mew=0.0, label="our runs")]
    if printed:
        style: dict[str, Any] = {"color": PRINTED, "marker": "_", "ls": "", "ms": 9, "mew": 1.6}
        handles.append(Line2D([], [], label="printed runs", **style))
        handles.append(Line2D([], [], color=PRINTED, ls="--", lw=1.2, label="median printed ratio"))
    penalties = list(dict.fromkeys(row.penalty for row in rows))
    for penalty, colour in zip(penalties, COLOURS, strict=False):
        label = "the paper's penalty" if penalty == PAPER else penalty
        handles.append(Line2D([], [], color=colour, marker="o", ms=3.5, label=label))
    sheet.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
