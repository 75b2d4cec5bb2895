"""Tables and sentences on a page of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from restpoint.reproduce.compared import Compared, Verdict

WIDTH = 118
VERDICT_HEADER = ("", "n", "figure", "found", "window", "")


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns under their headings.

    >>> aligned(("n", "value"), [("8", "6.79"), ("12", "9.00")])
    ['n   value', '8   6.79', '12  9.00']
    """
    every = [header, *lines]
    widths = [max(len(line[k]) for line in every) for k in range(len(header))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in every
    ]


def wrapped(words: str) -> list[str]:
    """A sentence, its further lines indented."""
    return textwrap.wrap(words, WIDTH, subsequent_indent="  ")


def pair(figure: Compared, form: str) -> str:
    """The paper's figure before ours."""
    return f"{number(figure.printed, form)} / {number(figure.ours, form)}"


def number(value: float, form: str) -> str:
    """A figure; a dash where there is none.

    >>> number(2.345, ".1f"), number(float("nan"), ".1f")
    ('2.3', '-')
    """
    return f"{value:{form}}" if math.isfinite(value) else "-"


def several(counts: Sequence[int]) -> str:
    """How many, where the lines may differ."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def judged(verdicts: Sequence[Verdict], instances: int, runs: int) -> list[str]:
    """The verdicts as a table, and a warning where the windows are for more instances; nothing without verdicts."""
    if not verdicts:
        return []
    few = f"The windows are for {instances} instances a size."
    table = aligned(VERDICT_HEADER, [verdict_cells(verdict) for verdict in verdicts])
    return ["", *table, *([few] if runs < instances else [])]


def verdict_cells(verdict: Verdict) -> tuple[str, ...]:
    """One verdict in words."""
    window = f"[{verdict.low:.4g}, {verdict.high:.4g}]"
    said = "met" if verdict.met else "NOT MET"
    return (
        verdict.name,
        str(verdict.n),
        verdict.what,
        number(verdict.figure, ".4g"),
        window,
        said,
    )
