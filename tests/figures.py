"""Figures that tests report: tables at the end of the run, whatever process a test ran in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "least": min,
    "largest": max,
    "sum": lambda a, b: a + b,
}


@pytest.fixture
def figures(record_property):
    """``figures(table, row, column=("least", 1.5), ...)``: what several tests say of a row is combined."""

    def record(table: str, row: str, **columns: tuple[str, float]) -> None:
        plain = {name: (how, float(value)) for name, (how, value) in columns.items()}
        record_property("figures", [table, row, plain])

    return record


def pytest_terminal_summary(terminalreporter):
    tables: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, content in getattr(report, "user_properties", ()):
            if name == "figures" and report.when == "call":
                table, row, columns = content
                _add(tables[table][row], columns)
    for table, rows in tables.items():
        terminalreporter.section(table)
        for line in _lines(rows):
            terminalreporter.line(line)


def _add(row: dict[str, float], columns: dict[str, tuple[str, float]]) -> None:
    for name, (how, value) in columns.items():
        row[name] = COMBINE[how](row[name], value) if name in row else value


def _lines(rows: dict[str, dict[str, float]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    heads = [name.replace("_", " ") for name in names]
    first = max(map(len, rows))
    wide = [max(len(head), 9) for head in heads]
    lines = ["  ".join([" " * first, *(f"{h:>{w}}" for h, w in zip(heads, wide, strict=True))])]
    for label in sorted(rows):
        cells = [
            f"{rows[label][name]:>{w}.4g}" if name in rows[label] else " " * w
            for name, w in zip(names, wide, strict=True)
        ]
        lines.append("  ".join([f"{label:<{first}}", *cells]))
    return lines
