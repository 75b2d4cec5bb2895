"""Table 2 as a page of text and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restpoint.info import info
from restpoint.reproduce import files
from restpoint.reproduce.table2 import (
    ADMM,
    ADMM_CAP,
    ADMM_TOLERANCE,
    ALGORITHM_1,
    BETAS,
    CAP,
    CHANGE,
    EPS,
    KAPPAS,
    PAPER,
    WEIGHT,
    Row,
)
from restpoint.reproduce.table2_figure import figure
from restpoint.reproduce.table2_remarks import remarks
from restpoint.reproduce.table2_summary import Summary, summaries
from restpoint.reproduce.table2_verdicts import INSTANCES, verdicts
from restpoint.reproduce.text import aligned, judged, number, pair, several, wrapped

HEADER = (
    "n",
    "method",
    "objective",
    "sd",
    "iterations",
    "10 %",
    "90 %",
    "ratio",
    "less",
    "ms",
)
OWN_HEADER = (
    "n",
    "penalty",
    "method",
    "objective",
    "iterations",
    "ratio",
    "as low",
    "share",
    "ms",
    "gap",
    "distance",
    "same",
    "zeros",
)
# The first columns hold words, the others figures.
WORDS = 2


def page(rows: Sequence[Row]) -> str:
    """The tables, what does not fit, and the verdicts."""
    lines = summaries(rows)
    runs = [line.runs for line in lines]
    found = verdicts(rows)
    return "\n".join(
        [
            f"Table 2: paper (10 instances) / ours ({several(runs)} instances a size)",
            "objective: mean (no factor 1/2); iterations: median; ratio of iterations to those of Algorithm 1: median;",
            "less: objective of Algorithm 1 less that of ADMM, median; ms: median, with what is computed beforehand.",
            "",
            *aligned(HEADER, [cells(line) for line in lines if _in_paper(line)]),
            "",
            "Not in the paper: other beta, sparse solutions, Algorithm 1 with momentum (certified to 1e-8).",
            "as low: ratio of iterations until Phi is as low as where Algorithm 1 ended, share of the runs that come",
            "so low; gap: certified, median; distance to the end of Algorithm 1 up to the sign, median; same: share",
            "nearer than 0.1; zeros: share of the entries of DNx.",
            "",
            *aligned(OWN_HEADER, [own_cells(line) for line in lines]),
            "",
            *(part for words in remarks(lines, rows) for part in wrapped(words)),
            *judged(found, max((INSTANCES[v.n] for v in found), default=0), min(runs)),
        ]
    )


def _in_paper(line: Summary) -> bool:
    return line.penalty == PAPER and line.method in {ALGORITHM_1, ADMM}


def cells(line: Summary) -> tuple[str, ...]:
    """One line of the table: the paper's figure before ours."""
    return (
        str(line.n),
        line.method,
        pair(line.phi, ".1f"),
        number(line.phi.spread, ".1f"),
        pair(line.iterations, ".0f"),
        number(line.iterations_10, ".0f"),
        number(line.iterations_90, ".0f"),
        pair(line.ratio, ".1f"),
        pair(line.less, ".4f"),
        number(line.milliseconds, ".1f"),
    )


def own_cells(line: Summary) -> tuple[str, ...]:
    """What the paper does not print."""
    return (
        str(line.n),
        line.penalty,
        line.method,
        number(line.phi.ours, ".2f"),
        number(line.iterations.ours, ".0f"),
        number(line.ratio.ours, ".1f"),
        number(line.near, ".1f"),
        number(line.nearing, ".2f"),
        number(line.milliseconds, ".1f"),
        number(line.gap, ".0e"),
        number(line.distance, ".0e"),
        number(line.same, ".2f"),
        number(line.zeros, ".2f"),
    )


def content(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """Everything but the single runs, as plain data."""
    lines = summaries(rows)
    sizes = dict.fromkeys(row.n for row in rows)
    return {
        "recipe": {
            "m": "2 n",
            "objective": "-x'N'BNx + gamma sum_i sigma_i |(DNx)_i|, no factor 1/2",
            "gamma_sigma": {PAPER: WEIGHT}
            | {name: f"{k} L / sqrt(m)" for name, k in KAPPAS.items()},
            "relative_value_change": CHANGE,
            "max_iterations": CAP,
            "beta": [f"{beta:g} L" for beta in BETAS],
            "admm_tolerance": ADMM_TOLERANCE,
            "admm_max_iterations": ADMM_CAP,
            "momentum_eps": f"{EPS:g} max(|Phi|, gap) at the start",
            "seed": seed,
        },
        "instances": {str(n): len({r.instance for r in rows if r.n == n}) for n in sizes},
        "summaries": [asdict(line) for line in lines],
        "remarks": remarks(lines, rows),
        "verdicts": [asdict(verdict) | {"met": verdict.met} for verdict in verdicts(rows)],
        "info": info(),
    }


def write(out: Path, rows: Sequence[Row], seed: int) -> list[Path]:
    """table2.csv (every run), .json (all else), .tex, and the figure as .png and .pdf."""
    paths = [out / f"table2.{kind}" for kind in ("csv", "json", "tex", "png", "pdf")]
    files.write_csv(paths[0], [asdict(row) for row in rows])
    paths[1].write_text(files.as_json(content(rows, seed)), encoding="utf-8")
    printed = [cells(line) for line in summaries(rows) if _in_paper(line)]
    files.write_tex(paths[2], HEADER, printed, WORDS)
    figure(paths[3:], rows)
    return paths
