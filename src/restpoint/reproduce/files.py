"""Records as CSV, JSON and LaTeX."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from restpoint.errors import DataError

Records = Sequence[dict[str, Any]]


def folder(path: Path) -> Path:
    """The folder, made if need be; refused before the work if nothing can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(
            f"out must be a folder that can be written to, got {str(path)!r} ({error.strerror}); name another"
        ) from error
    return path


def write_csv(path: Path, records: Records) -> None:
    """One line a record."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def as_json(content: Any) -> str:
    """Indented; NaN and infinities, which JSON does not know, become null."""
    return json.dumps(_plain(content), indent=1) + "\n"


def write_tex(path: Path, header: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> None:
    """A tabular, without a float around it; the first ``left`` columns are words, the others figures."""
    columns = "l" * left + "r" * (len(header) - left)
    body = [" & ".join(map(_escaped, cells)) + r" \\" for cells in (header, *lines)]
    text = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", body[0], r"\hline", *body[1:]]
    path.write_text("\n".join([*text, r"\hline", r"\end{tabular}", ""]), encoding="utf-8")


def _escaped(cell: str) -> str:
    for sign in "%&_#":
        cell = cell.replace(sign, "\\" + sign)
    # A minus, not a hyphen, before a figure.
    return cell if not cell.startswith("-") or cell[1:2] in ("", " ") else f"${cell}$"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
