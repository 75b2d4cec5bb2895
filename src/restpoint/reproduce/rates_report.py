"""The study of rates as a page of text and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restpoint.info import info
from restpoint.reproduce import files
from restpoint.reproduce.rates import RESISTING, USUAL, Row, Summary, summaries
from restpoint.reproduce.rates_figure import figure
from restpoint.reproduce.text import aligned, number, wrapped

HEADER = ("method", "f", "problems", "exponent", "found", "used / allowed", "at most", "allowed")
# The first columns hold words, the others figures.
WORDS = 3


def page(rows: Sequence[Row]) -> str:
    """The table, and what it says."""
    lines = summaries(rows)
    return "\n".join(
        [
            "Iterations to a certified gap of eps: N = O(1 / eps^exponent) by the theorem, and the exponent found;",
            "used / allowed: the largest share of a bound; at most, allowed: at the smallest eps.",
            "",
            *aligned(HEADER, [cells(line) for line in lines]),
            "",
            *(part for words in remarks(lines) for part in wrapped(words)),
        ]
    )


def cells(line: Summary) -> tuple[str, ...]:
    """One line of the table."""
    return (
        line.method,
        line.of,
        line.problem,
        f"{line.exponent:g}",
        number(line.slope, ".2f"),
        number(line.share, ".2g"),
        str(line.looks),
        number(line.allowed, ".4g"),
    )


def remarks(lines: Sequence[Summary]) -> list[str]:
    """What the table says."""
    resisting = [line for line in lines if line.problem == RESISTING]
    usual = [line for line in lines if line.problem == USUAL]
    found = []
    if resisting:
        fits = sum(line.fits for line in resisting)
        attained = sum(line.share > 0.99 for line in resisting)
        found.append(
            f"{fits} of {len(resisting)} cases show the exponent of their theorem on problems that resist; "
            f"in {attained} of them a run takes every iteration that is allowed, so the bounds cannot be improved. "
            "Jacobi stays at half of its bound, which is for the worse case that one block moves and the others rest."
        )
    if usual:
        share = max(line.looks / line.allowed for line in usual)
        found.append(
            f"On the usual problems the exponents found are {min(line.slope for line in usual):.2f} to "
            f"{max(line.slope for line in usual):.2f}, and at the smallest eps no run takes more than {share:.0e} of "
            "what is allowed: once the support is found, convergence is linear, which no theorem here knows."
        )
    return found


def content(rows: Sequence[Row], most: int) -> dict[str, Any]:
    """Everything but the single runs, as plain data."""
    lines = summaries(rows)
    return {
        "recipe": {"most": most},
        "summaries": [asdict(line) | {"fits": line.fits} for line in lines],
        "remarks": remarks(lines),
        "info": info(),
    }


def write(out: Path, rows: Sequence[Row], most: int) -> list[Path]:
    """rates.csv (every run), .json (all else), .tex, and the figure as .png and .pdf."""
    paths = [out / f"rates.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")]
    files.write_csv(paths[0], [asdict(row) for row in rows])
    paths[1].write_text(files.as_json(content(rows, most)), encoding="utf-8")
    files.write_tex(paths[2], HEADER, [cells(line) for line in summaries(rows)], WORDS)
    figure(paths[3:], rows)
    return paths
