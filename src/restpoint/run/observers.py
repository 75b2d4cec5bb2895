"""What watches a run: the view that observers get, the trace, the progress bar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, to_host
from restpoint.errors import EvaluationError
from restpoint.problem import Blocks

if TYPE_CHECKING:
    from restpoint.run.identity import Identity
    from restpoint.run.record import Record


@dataclass(frozen=True)
class View:
    """One iteration as observers and ``iterate`` see it; arrays have the batch shape.

    ``value`` and ``gap`` are the loop's own figures at the current points (Phi, and the largest or summed block gap,
    as ``Stop.measure`` says); for a proof ask ``certify(problem, view.xs)``. With sampled gradients ``value`` is NaN
    and ``gap`` an estimate.
    """

    iteration: int
    value: np.ndarray
    gap: np.ndarray
    active: np.ndarray  # starts still running
    gradients: float
    oracle_calls: float
    samples: float
    seconds: float
    max_iterations: int
    _points: Callable[[], tuple[Blocks, Blocks]]
    _record: Callable[[], Record]
    _identity: Callable[[], Identity]

    @property
    def xs(self) -> Blocks:
        """The current blocks (NumPy arrays are read-only: the run goes on with them)."""
        return tuple(map(_read_only, self._points()[0]))

    @property
    def step(self) -> np.ndarray:
        """How far the blocks moved in this iteration (Euclidean)."""
        new, old = self._points()
        rank, total = self.value.ndim, 0.0
        for a, b in zip(new, old, strict=True):
            difference = to_host(a) - to_host(b)
            total = total + np.sum(difference**2, axis=tuple(range(rank, difference.ndim)))
        return np.asarray(np.sqrt(total))


Observer = Callable[[View], bool | None]


def wants_to_end(answer: Any) -> bool:
    """Whether an observer's answer is True; anything but a truth value counts as None."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, np.ndarray) and answer.dtype == bool:
        if answer.ndim == 0:
            return bool(answer)
        raise EvaluationError(
            f"an observer returned {answer.size} truth values; return one: .all() or .any() of them"
        )
    return False


def _read_only(x: Array) -> Array:
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


class Trace:
    """Value and gap of every start over the iterations.

    Long runs are thinned, evenly, to at most 2,000 rows, and with many starts to about a million entries.
    """

    LIMIT = 2000
    ENTRIES = 1_000_000

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, float, np.ndarray, np.ndarray]] = []
        self._every = 1

    def __copy__(self) -> Trace:
        twin = Trace()
        twin._every, twin._rows = self._every, list(self._rows)
        return twin

    def record(
        self, iteration: int, seconds: float, gradients: float, value: np.ndarray, gap: np.ndarray
    ) -> None:
        # The newest row stands until the next one comes, so that the last iteration is always there.
        if self._rows and self._rows[-1][0] % self._every:
            self._rows.pop()
        self._rows.append((iteration, seconds, gradients, value, gap))
        if len(self._rows) > min(self.LIMIT, max(50, self.ENTRIES // max(1, value.size))):
            self._every *= 2
            kept = [row for row in self._rows[:-1] if row[0] % self._every == 0]
            self._rows = [*kept, self._rows[-1]]

    def at(self, index: tuple[int, ...]) -> Trace:
        """The trace of one start."""
        one = Trace()
        one._every = self._every
        one._rows = [(*row[:3], row[3][index], row[4][index]) for row in self._rows]
        return one

    def _column(self, i: int) -> np.ndarray:
        return np.array([row[i] for row in self._rows])

    @property
    def iteration(self) -> np.ndarray:
        return self._column(0)

    @property
    def seconds(self) -> np.ndarray:
        return self._column(1)

    @property
    def gradients(self) -> np.ndarray:
        return self._column(2)

    @property
    def value(self) -> np.ndarray:
        """Phi, of shape (rows, *batch)."""
        return self._column(3)

    @property
    def gap(self) -> np.ndarray:
        """The gap, of shape (rows, *batch)."""
        return self._column(4)

    def __len__(self) -> int:
        return len(self._rows)


class Progress:
    """A progress bar: iterations, starts still running, smallest gap. Use as ``observers=[Progress()]``.

    Nothing is printed where standard output is not a terminal, unless a ``console`` is given.
    """

    def __init__(self, console: Any = None) -> None:
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, view: View) -> None:
        bar = self._open(view)
        running = int(np.sum(view.active))
        gap = np.min(view.gap, initial=math.inf)
        words = f"gap {gap:.2e}  {running}/{view.active.size} running"
        bar.update(self._task, completed=view.iteration, description=words)
        if running == 0:
            self.close()

    def close(self) -> None:
        """End the bar; the run calls this whatever way it ends."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open(self, view: View) -> Any:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            console = self._console or Console()
            self._bar = Bar(console=console, transient=True, disable=not console.is_terminal)
            self._task = self._bar.add_task("", total=view.max_iterations)
            self._bar.start()
        return self._bar
