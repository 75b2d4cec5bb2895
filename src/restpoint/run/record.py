"""A run between two iterations, as a value that no later iteration changes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.methods import Method
from restpoint.problem import Blocks
from restpoint.run.stop import Relative, Stop

if TYPE_CHECKING:
    from restpoint.run.loop import Loop

# What iterations change. States, points and numbers are replaced; the books are copied, without their arrays, which
# are replaced too.
VALUES = ("iteration", "total", "error", "message", "poisoned", "state", "best", "first", "tried")
BOOKS = ("rows", "ledger", "trace", "proofs", "promise", "retirement", "best_store", "last_store")


@dataclass(frozen=True, eq=False)
class Record:
    """Together with the problem, all that a run needs to go on as if it had never ended.

    What was asked for: ``method``, ``eps``, ``stop``, ``seed``. Where it began: ``starts`` (their numbers, which name
    the random draws), ``batch_shape`` and ``x1``, on one flat axis. Where it is: ``progress``, the loop's own
    attributes, after ``seconds``.
    """

    method: Method
    eps: float | Relative
    stop: Stop
    seed: int
    starts: np.ndarray
    batch_shape: tuple[int, ...]
    x1: Blocks
    seconds: float
    progress: dict[str, Any]

    @classmethod
    def taken(cls, loop: Loop) -> Record:
        """The record of a run, at the price of a few small objects."""
        entrance = loop.entrance
        progress = {name: getattr(loop, name) for name in VALUES}
        progress |= {name: copy.copy(getattr(loop, name)) for name in BOOKS}
        return cls(
            method=loop.method,
            eps=loop.asked,
            stop=loop.stop,
            seed=loop.seed,
            starts=entrance.starts,
            batch_shape=entrance.batch_shape,
            x1=entrance.xs,
            seconds=loop.seconds,
            progress=progress,
        )

    def put_back(self, loop: Loop) -> None:
        """Give a new loop what this one had reached; the rows are those of the record."""
        loop.__dict__.update(self.progress)
        loop.previous, loop.spent = loop.state, self.seconds
        if len(loop.rows.start) < len(loop.ledger.status):  # survivors had been gathered
            loop.problem = loop.of(loop.problem, loop.rows.start)
            loop.stated = loop.of(loop.stated, loop.rows.start)

    @property
    def iteration(self) -> int:
        """How many iterations were done."""
        return int(self.progress["iteration"])
