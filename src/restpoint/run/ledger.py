"""The books of a run: rows that are still carried along, and the final word on every start."""

from __future__ import annotations

from dataclasses import dataclass

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
        self.value = np.full(count, np.nan)
        self.gap = np.full(count, np.nan)
        self.active = np.ones(count, dtype=bool)

    def close(self, who: np.ndarray, status: Status, iteration: int, spent: Work) -> None:
        """The starts ``who`` are finished."""
        self.active[who] = False
        self.status[who] = status
        self.iterations[who] = iteration
        for name, column in self.work.items():
            column[who] = getattr(spent, name)

    def judge(self, proved: np.ndarray, answered: np.ndarray) -> None:
        """The last word is the final certificate's: it alone says CERTIFIED. Some starts may have none."""
        late = proved & (self.status != Status.CERTIFIED)
        self.iterations[late] = self.best_iteration[late]
        self.status[proved] = Status.CERTIFIED
        self.status[~proved & (self.status == Status.CERTIFIED)] = Status.STALLED
        self.status[~answered] = Status.ORACLE_FAILED
