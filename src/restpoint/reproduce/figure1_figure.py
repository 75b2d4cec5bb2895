"""Figure 1 as a figure: points as dots, inequalities as lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from restpoint.omega import omega
from restpoint.reproduce.figure1 import DIAMETERS, Row

COLOURS = dict(zip(DIAMETERS, ("#e0893b", "#3b76af", "#3d8f5f"), strict=True))
LINE = "#333333"
# Points whose gap rounding may touch are left out.
CLEAR = 1e4


def figure(paths: Sequence[Path], rows: Sequence[Row]) -> None:
    """The same picture in every format."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    clear = [row for row in rows if row.gap > CLEAR * row.near]
    sheet = Figure(figsize=(10.5, 9.0), layout="constrained")
    axes = sheet.subplots(2, 2)
    for axis, panel in zip(axes.flat, (_chi, _there, _back, _model), strict=True):
        panel(axis, clear)
        axis.set(xscale="log", yscale="log")
        axis.grid(alpha=0.25)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    dots = [
        Line2D([], [], marker="o", ls="", ms=5, mew=0, color=colour, label=f"diam S = {diameter:g}")
        for diameter, colour in COLOURS.items()
    ]
    bound = Line2D([], [], color=LINE, lw=1.1, label="no point can lie beyond")
    sheet.legend(handles=[*dots, bound], loc="outside upper center", ncols=4, frameon=False)
    for path in paths:
        sheet.savefig(path, dpi=200)


def _chi(axis: Any, rows: Sequence[Row]) -> None:
    """Chi_S(x) against -psi_S(x): between the diagonal and max{1, diam} times as much."""
    low, high = _dots(axis, rows, lambda row: row.chi, lambda row: row.gap)
    for diameter in DIAMETERS:
        factor = max(1.0, diameter)
        axis.plot([low, high], [factor * low, factor * high], color=LINE, lw=1.1)
    axis.set_xlabel("χ")
    axis.set_ylabel("−ψ = △L")
    axis.set_title("χ ≤ −ψ ≤ max{1, diam} χ", fontsize=10)


def _there(axis: Any, rows: Sequence[Row]) -> None:
    """-psi bounds the squared residual."""
    low, high = _dots(axis, rows, lambda row: row.gap, lambda row: row.gamma * row.residual**2)
    axis.plot([low, high], [low, high], color=LINE, lw=1.1)
    axis.set_xlabel("−ψ = △L")
    axis.set_ylabel("γ ‖P‖²")
    axis.set_title("‖P‖² ≤ −ψ / γ", fontsize=10)


def _back(axis: Any, rows: Sequence[Row]) -> None:
    """The residual bounds -psi, by as much as the slope at the point and the diameter say."""
    low, high = _dots(
        axis,
        rows,
        lambda row: (row.gamma * row.slope + row.diameter) * row.residual,
        lambda row: row.gap,
    )
    axis.plot([low, high], [low, high], color=LINE, lw=1.1)
    axis.set_xlabel("(γ dist(0, ∇f + ∂h) + diam) ‖P‖")
    axis.set_ylabel("−ψ = △L")
    axis.set_title("−ψ ≤ (γ dist(0, ∇f + ∂h) + diam) ‖P‖", fontsize=10)


def _model(axis: Any, rows: Sequence[Row]) -> None:
    """Triangle U lies between omega(Triangle L) and Triangle L, in units of reach^2 / gamma."""
    low, high = _dots(
        axis,
        rows,
        lambda row: row.gap * row.gamma / row.reach**2,
        lambda row: row.improvement * row.gamma / row.reach**2,
    )
    gaps = np.geomspace(low, high, 200)
    axis.plot(gaps, gaps, color=LINE, lw=1.1)
    axis.plot(gaps, omega(gaps, 1.0), color=LINE, lw=1.1)
    axis.set_xlabel("△L in units of max ‖y − x‖² / γ")
    axis.set_ylabel("△U in the same units")
    axis.set_title("ω(△L) ≤ △U ≤ △L", fontsize=10)


def _dots(
    axis: Any,
    rows: Sequence[Row],
    across: Callable[[Row], float],
    along: Callable[[Row], float],
) -> tuple[float, float]:
    """The points, one colour a diameter; on vector pages as one picture. Returns how far they reach across."""
    reached = []
    for diameter, colour in COLOURS.items():
        own = [row for row in rows if abs(row.diameter / diameter - 1.0) < 1e-9]
        x, y = np.array([across(row) for row in own]), np.array([along(row) for row in own])
        shown = (x > 0.0) & (y > 0.0)
        style = {"color": colour, "ms": 3.5, "mew": 0.0, "alpha": 0.55, "rasterized": True}
        axis.plot(x[shown], y[shown], "o", **style)
        reached += [*x[shown]]
    return (min(reached), max(reached)) if reached else (0.1, 1.0)
