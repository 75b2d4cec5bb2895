"""Tables and remarks as lines of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

WIDTH = 118


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The columns of a table below each other.

    >>> aligned(("n", "value"), [("8", "6.79"), ("12", "9.00")])
    ['n   value', '8   6.79', '12  9.00']
    """
    every = [header, *lines]
    widths = [max(len(line[k]) for line in every) for k in range(len(header))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in every
    ]


def wrapped(words: str) -> list[str]:
    """A remark, its further lines indented."""
    return textwrap.wrap(words, WIDTH, subsequent_indent="  ")


def number(value: float, form: str) -> str:
    """A figure, or a dash where there is none.

    >>> number(2.345, ".1f"), number(float("nan"), ".1f")
    ('2.3', '-')
    """
    return f"{value:{form}}" if math.isfinite(value) else "-"
