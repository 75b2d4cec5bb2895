"""Table 1 as a page of text and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restpoint.info import info
from restpoint.reproduce import files
from restpoint.reproduce.table1 import (
    CAP,
    CHANGE,
    LAMBDA,
    NONZERO,
    RHO,
    Row,
)
from restpoint.reproduce.table1_figure import figure
from restpoint.reproduce.table1_remarks import remarks
from restpoint.reproduce.table1_summary import Summary, summaries
from restpoint.reproduce.table1_verdicts import verdicts
from restpoint.reproduce.text import aligned, judged, number, pair, several, wrapped

HEADER = (
    "n",
    "method",
    "A(x)",
    "sd",
    "nonzeros",
    "iterations",
    "10 %",
    "90 %",
    "zero",
    "negative",
    "cap",
)
OWN_HEADER = ("n", "method", "lambda mean", "largest", "Phi rose", "gap median", "mean Phi")
# The windows of the verdicts are for so many instances a size.
INSTANCES = 100
# The first columns hold words, the others figures.
WORDS = 2


def page(rows: Sequence[Row]) -> str:
    """The tables, what does not fit, and the verdicts."""
    lines = summaries(rows)
    runs = [line.runs for line in lines]
    return "\n".join(
        [
            f"Table 1: paper (10 instances) / ours ({several(runs)} instances a size)",
            "A(x), nonzeros: means over the runs that did not collapse; iterations: their median (BCD: of all runs);",
            "zero: share that collapsed to zero, or on the spheres (BCD) to cycles with |A(x)| <= 2.",
            "",
            *aligned(HEADER, [cells(line) for line in lines]),
            "",
            "Not in the paper: the lambda that the steps of a run needed, the share of runs in which Phi rose, the",
            "certified gap and Phi at the last iterate.",
            "",
            *aligned(OWN_HEADER, [own_cells(line) for line in lines]),
            "",
            *(part for words in remarks(lines, rows) for part in wrapped(words)),
            *judged(verdicts(rows), INSTANCES, min(runs)),
        ]
    )


def cells(line: Summary) -> tuple[str, ...]:
    """One line of the table: the paper's figure before ours."""
    return (
        str(line.n),
        line.method,
        pair(line.value, ".2f"),
        number(line.value.spread, ".2f"),
        pair(line.nonzeros, ".1f"),
        pair(line.iterations, ".0f"),
        number(line.iterations_10, ".0f"),
        number(line.iterations_90, ".0f"),
        pair(line.collapsed, ".2f"),
        pair(line.negative, ".2f"),
        pair(line.capped, ".2f"),
    )


def own_cells(line: Summary) -> tuple[str, ...]:
    """What the paper does not print."""
    return (
        str(line.n),
        line.method,
        number(line.lambda_mean, ".1f"),
        number(line.lambda_largest, ".1f"),
        number(line.rising, ".2f"),
        number(line.gap, ".1e"),
        number(line.phi, ".2f"),
    )


def content(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """Everything but the single runs, as plain data."""
    lines = summaries(rows)
    return {
        "recipe": {
            "rho": RHO,
            "lambda": LAMBDA,
            "value_change": CHANGE,
            "max_iterations": CAP,
            "nonzero_above": NONZERO,
            "seed": seed,
        },
        "instances": {str(n): len({r.instance for r in rows if r.n == n}) for n in _sizes(rows)},
        "summaries": [asdict(line) for line in lines],
        "remarks": remarks(lines, rows),
        "verdicts": [asdict(verdict) | {"met": verdict.met} for verdict in verdicts(rows)],
        "info": info(),
    }


def write(out: Path, rows: Sequence[Row], seed: int) -> list[Path]:
    """table1.csv (every run), .json (all else), .tex, and the figure as .png and .pdf."""
    paths = [out / f"table1.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")]
    files.write_csv(paths[0], [asdict(row) for row in rows])
    paths[1].write_text(files.as_json(content(rows, seed)), encoding="utf-8")
    files.write_tex(paths[2], HEADER, [cells(line) for line in summaries(rows)], WORDS)
    figure(paths[3:], rows)
    return paths


def _sizes(rows: Sequence[Row]) -> list[int]:
    return list(dict.fromkeys(row.n for row in rows))
