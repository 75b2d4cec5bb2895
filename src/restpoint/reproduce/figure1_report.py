"""Figure 1 as a page of text and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restpoint.info import info
from restpoint.reproduce import files
from restpoint.reproduce.figure1 import AT, DIAMETERS, GAMMAS, Row, Summary, decades, summaries
from restpoint.reproduce.figure1_figure import figure
from restpoint.reproduce.text import aligned, number, wrapped

HEADER = ("inequality", "from", "points", "violated", "tightest", "median")
# The first columns hold words, the others figures.
WORDS = 2


def page(rows: Sequence[Row]) -> str:
    """The table, and what it says."""
    return "\n".join(
        [
            "Figure 1: three measures of stationarity at the points of random problems, and what holds between them;",
            "tightest, median: the share of the larger side that the smaller one takes.",
            "",
            *aligned(HEADER, [cells(line) for line in summaries(rows)]),
            "",
            *(part for words in remarks(rows) for part in wrapped(words)),
        ]
    )


def cells(line: Summary) -> tuple[str, ...]:
    """One line of the table."""
    return (
        line.words,
        line.source,
        str(line.points),
        str(line.violated),
        number(line.tightest, ".3f"),
        number(line.median, ".2g"),
    )


def remarks(rows: Sequence[Row]) -> list[str]:
    """What the table says."""
    low, high = decades(rows)
    violated = sum(line.violated for line in summaries(rows))
    small = [row for row in rows if row.diameter <= 1.0]
    small = [row for row in small if row.gap > 1e4 * row.near]
    alike = max((abs(row.gap - row.chi) / row.gap for row in small), default=0.0)
    one = "are one number" if alike < 1e-12 else f"differ by {alike:.0e} of that at most"
    points = (
        f"{len(rows)} points with Triangle L from {low:.1e} to {high:.1e}; {violated} violations."
    )
    general = (
        f"Where the diameter is at most 1, chi and -psi {one}: -psi is no more general than chi, but for the factor "
        "max{1, diam} (theory E6)."
    )
    trip = (
        "From -psi to the residual, ||P|| is bounded by a square root, and on the way back -psi by ||P||: a round trip "
        "loses a square root (theory E6)."
    )
    return [points, general, trip]


def content(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """Everything but the single points, as plain data."""
    return {
        "recipe": {
            "diameters": list(DIAMETERS),
            "gamma_times_lambda": list(GAMMAS),
            "iterations": list(AT),
            "seed": seed,
        },
        "instances": len({row.instance for row in rows}),
        "summaries": [asdict(line) for line in summaries(rows)],
        "remarks": remarks(rows),
        "info": info(),
    }


def write(out: Path, rows: Sequence[Row], seed: int) -> list[Path]:
    """figure1.csv (every point), .json (all else), .tex, and the figure as .png and .pdf."""
    paths = [out / f"figure1.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")]
    files.write_csv(paths[0], [asdict(row) for row in rows])
    paths[1].write_text(files.as_json(content(rows, seed)), encoding="utf-8")
    files.write_tex(paths[2], HEADER, [cells(line) for line in summaries(rows)], WORDS)
    figure(paths[3:], rows)
    return paths
