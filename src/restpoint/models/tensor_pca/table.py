"""Results in columns that can be read."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from restpoint.models._shared import needed


class Table(dict[str, np.ndarray]):
    """Columns by name, one entry a line; a column may have further axes. It prints as a table.

    ``reason`` tells why entries are NaN; ``chosen`` is the line that was taken, marked with a star.

    >>> table = Table(n_components=np.array([1, 2]), error=np.array([0.5, 0.25]), errors=np.eye(2))
    >>> table.chosen = 1
    >>> table
       n_components  error
                  1    0.5
    *             2   0.25
    """

    reason: str = ""
    chosen: int | None = None

    def to_dataframe(self) -> Any:
        """A pandas table; a column of shape (lines, k) becomes k columns."""
        flat: dict[str, np.ndarray] = {}
        for name, values in self.items():
            if values.ndim == 1:
                flat[name] = values
            else:
                flat |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}
        return needed("pandas", "to_dataframe()", extra="frames").DataFrame(flat)

    def _cells(self) -> list[list[str]]:
        """Names, then lines, of the columns with one number a line."""
        columns = {name: values for name, values in self.items() if values.ndim == 1}
        lines = [[_shown(value) for value in line] for line in zip(*columns.values(), strict=True)]
        return [list(columns), *lines]

    def _marks(self) -> list[str]:
        """A star at the line that was taken, nothing elsewhere."""
        lines = len(self._cells()) - 1
        if self.chosen is None:
            return [""] * (lines + 1)
        return ["  ", *("* " if k == self.chosen else "  " for k in range(lines))]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            mark + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
            for mark, line in zip(self._marks(), cells, strict=True)
        ]
        if self.reason:
            lines.append(f"nan: {self.reason}")
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        head, *lines = self._cells()
        rows = ["".join(f"<th>{escape(name)}</th>" for name in ("", *head))]
        for mark, line in zip(self._marks()[1:], lines, strict=True):
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in (mark.strip(), *line)))
        reason = f"<p>nan: {escape(self.reason)}</p>" if self.reason else ""
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>{reason}"


def _shown(value: Any) -> str:
    """A whole number as it is, others to four digits."""
    return str(value) if isinstance(value, (int, np.integer, str)) else f"{value:.4g}"
