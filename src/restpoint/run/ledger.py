"""The books of a run: rows that are still carried along, and the final word on every start.

Their arrays are replaced, never written into: a shallow copy of the books is a record of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.methods import Work
from restpoint.run.status import Status


@dataclass
class Rows:
    """What is known of the starts that are still carried along; every array has one entry a row."""

    start: np.ndarray  # which start of the run this row is
    active: np.ndarray  # still running
    limit: np.ndarray  # iterations allowed
    eps: np.ndarray
    target: np.ndarray  # the gap at which a certificate is asked for
    refusals: np.ndarray  # how often it was refused
    value: np.ndarray
    gap: np.ndarray
    best_gap: np.ndarray
    unchanged: np.ndarray  # iterations without a change of value or gap

    @classmethod
    def opened(cls, eps: np.ndarray, limit: np.ndarray) -> Rows:
        """All starts, before the first look."""
        count = len(eps)
        return cls(
            start=np.arange(count),
            active=np.ones(count, dtype=bool),
            limit=limit,
            eps=eps,
            target=eps.copy(),
            refusals=np.zeros(count, dtype=np.int64),
            value=np.full(count, np.nan),
            gap=np.full(count, np.nan),
            best_gap=np.full(count, np.inf),
            unchanged=np.zeros(count, dtype=np.int64),
        )

    def take(self, index: np.ndarray) -> Rows:
        return Rows(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


class Ledger:
    """The final word on every start, written when it finishes."""

    def __init__(self, count: int) -> None:
        self.status = np.full(count, Status.ITERATION_LIMIT, dtype=object)
        self.iterations = np.zeros(count, dtype=np.int64)  # steps taken
        self.best_iteration = np.zeros(count, dtype=np.int64)  # the one whose point is returned
        self.work = {name: np.zeros(count) for name in Work._fields}
        # What passed while a start had ended, of those that were taken up again.
        self.idle = np.zeros(count, dtype=np.int64)
        self.idle_work = {name: np.zeros(count) for name in Work._fields}
        self.value = np.full(count, np.nan)
        self.gap = np.full(count, np.nan)
        self.active = np.ones(count, dtype=bool)

    def note(self, who: np.ndarray, value: np.ndarray, gap: np.ndarray) -> None:
        """The newest value and gap of the starts ``who``."""
        self.value, self.gap = _with(self.value, who, value), _with(self.gap, who, gap)

    @property
    def ended(self) -> np.ndarray:
        """The iteration of the run at which each start ended."""
        return np.where(self.active, -1, self.iterations + self.idle)

    def close(self, who: np.ndarray, status: Status, iteration: int, spent: Work) -> None:
        """The starts ``who`` are finished."""
        self.active = _with(self.active, who, False)
        self.status = _with(self.status, who, status)
        self.iterations = _with(self.iterations, who, iteration - self.idle[who])
        self.work = {
            name: _with(column, who, getattr(spent, name) - self.idle_work[name][who])
            for name, column in self.work.items()
        }

    def reopen(self, who: np.ndarray, iteration: int, spent: Work) -> None:
        """The starts ``who`` go on after all."""
        self.active = _with(self.active, who, True)
        self.status = _with(self.status, who, Status.ITERATION_LIMIT)
        self.idle = _with(self.idle, who, iteration - self.iterations[who])
        self.idle_work = {
            name: _with(column, who, getattr(spent, name) - self.work[name][who])
            for name, column in self.idle_work.items()
        }

    def judge(self, proved: np.ndarray, answered: np.ndarray) -> None:
        """The last word is the final certificate's: it alone says CERTIFIED. Some starts may have none."""
        late = proved & (self.status != Status.CERTIFIED)
        sooner = np.minimum(self.best_iteration, self.iterations)
        self.iterations = np.where(late, sooner, self.iterations)
        status = self.status.copy()
        status[proved] = Status.CERTIFIED
        status[~proved & (self.status == Status.CERTIFIED)] = Status.STALLED
        status[~answered] = Status.ORACLE_FAILED
        self.status = status


def _with(column: np.ndarray, who: np.ndarray, entries: Any) -> np.ndarray:
    """The column with other entries at ``who``."""
    column = column.copy()
    column[who] = entries
    return column
