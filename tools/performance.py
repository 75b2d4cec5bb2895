"""Write docs/performance.md from benchmarks/results/*.json, or see (``--check``) that it says what they say.

Of each benchmark the page has what its script says of itself, the machine, and every floor with the figure found.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "performance.md"
HEAD = """# Performance

What `make bench` found, and what was asked for. This page is written by `tools/performance.py` from
`benchmarks/results/*.json`; figures are ratios measured in one run where the name does not say otherwise,
and hold for the machine named. A floor that was missed stays on the page.
"""


def section(result: Path) -> str:
    """One benchmark: what it does, on what machine, and a row for each floor."""
    figures: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    script = ROOT / "benchmarks" / f"{result.stem}.py"
    says = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    machine = figures["machine"]
    versions = ", ".join(
        f"{name} {found.split('.dev')[0]}" for name, found in machine["versions"].items()
    )
    rows = [
        f"| {name} | {shown(row['found'])} | {row['asked']} | {'yes' if row['met'] else '**no**'} |"
        for name, row in figures["floors"].items()
    ]
    return "\n".join(
        [
            f"## {result.stem.removeprefix('bench_').replace('_', ' ')}",
            "",
            says,
            "",
            f"{machine['cores']} cores, {machine['processor']}, Python {machine['python']}, {versions}.",
            "",
            "| figure | found | asked for | met |",
            "| --- | ---: | ---: | --- |",
            *rows,
            "",
        ]
    )


def shown(figure: float) -> str:
    """Three digits."""
    return f"{figure:.3g}"


def page() -> str:
    """The whole text."""
    return "\n".join([HEAD, *(section(result) for result in sorted(RESULTS.glob("bench_*.json")))])


def main() -> int:
    """The exit status."""
    wanted = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") != wanted:
        print(
            f"{PAGE.name} is not what benchmarks/results say: run tools/performance.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
