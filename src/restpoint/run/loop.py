"""The one loop: it counts, watches the clock, freezes finished starts, asks for certificates, and concludes.

Methods know nothing of this. All bookkeeping is in NumPy, one entry for each start; the points stay where they live.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from restpoint.array import generator as stream
from restpoint.array import is_array, namespace, own, take, to_host, where
from restpoint.bounds import Bound
from restpoint.certificates import Certificate
from restpoint.methods import Key, Method, State, Work
from restpoint.problem import Blocks, Problem
from restpoint.run.door import Entrance
from restpoint.run.guarantee import MARGIN, first_tried, guarantee, lower_bound, unless_exceeded
from restpoint.run.ledger import Ledger, Rows
from restpoint.run.observers import Observer, Trace, View, wants_to_end
from restpoint.run.promise import Promise
from restpoint.run.proofs import Proofs
from restpoint.run.record import Record
from restpoint.run.retire import Retirement
from restpoint.run.status import Status
from restpoint.run.stop import Relative, Stop, absolute, trouble_of_scale
from restpoint.run.store import Store

# Survivors are gathered at multiples of this many iterations, when at most this share of the rows still run, and
# whenever a start turned NaN (no code shall see it again): rules without a clock, so that a run repeats itself.
GATHER_EVERY, GATHER_SHARE = 4, 0.85
# A start whose proposals were refused so often sits at the rounding floor.
REFUSALS = 40


class Loop:
    """One run of one method from all its starts."""

    def __init__(
        self,
        entrance: Entrance,
        method: Method,
        *,
        eps: float | Relative,
        stop: Stop,
        seed: int,
        observers: Sequence[Observer] = (),
        record: Record | None = None,
    ) -> None:
        self.entrance, self.method, self.stop, self.observers = entrance, method, stop, observers
        self.asked, self.seed = eps, seed
        self.problem, self.stated = entrance.problem, entrance.stated
        self.batched = entrance.problem.batch_shape != ()
        self.spent = self.uncounted = 0.0  # seconds of runs before this one; those no limit counts
        if record is None:
            self._begin()
        else:
            record.put_back(self)
        value, gap = self.first
        self.eps = absolute(eps, value, gap)
        self.bound = guarantee(
            entrance.problem,
            method,
            entrance.xs,
            eps=self.eps,
            value=value,
            tried=self.tried,
            measure=stop.measure,
        )
        if record is None:
            self.message = trouble_of_scale(self.eps, value, gap)
            self.rows = Rows.opened(self.eps, self.limits())
            self._judge(value, gap)

    def _begin(self) -> None:
        """Empty books, and the first look."""
        entrance, count = self.entrance, len(self.entrance.starts)
        self.iteration, self.total = 0, Work()
        self.error: Exception | None = None
        self.poisoned = False  # whether some row holds NaN
        self.ledger, self.trace, self.proofs = Ledger(count), Trace(), Proofs(count)
        self.promise = Promise(self.method, lower_bound(entrance.problem))
        self.retirement = (
            None if self.stop.retire is None else Retirement(self.stop.retire, entrance.problem_of)
        )
        self.best_store, self.last_store = Store(count), Store(count)
        with np.errstate(all="ignore"):  # what is not finite gets a status, not a warning
            self.state = self.method.init(
                entrance.problem, entrance.xs, Key(self.seed, entrance.starts)
            )
        self.previous = self.state
        self.best = self.state.xs
        self.total = self.total.plus(*self.state.work)
        self.first, self.tried = self.read(self.state), first_tried(self.method, self.state)

    # -- moving ------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return bool(self.rows.active.any())

    @property
    def seconds(self) -> float:
        return self.spent + time.monotonic() - self.entrance.began

    def advance(self) -> None:
        """One iteration of all starts that still run."""
        self._gather()
        try:
            with np.errstate(all="ignore"):
                state = self.method.step(self.problem, self.state)
        except Exception as error:  # noqa: BLE001 - whatever user code raises; what was reached is kept
            self.fail(error)
            return
        if not self.rows.active.all():
            state = where(self.rows.active, state, self.state)
        self.iteration += 1
        self.total = self.total.plus(*state.work)
        self.previous, self.state = self.state, state
        value, gap = self.read(state)
        moved = np.where(self.rows.active, self.rows.start, -1)
        self.promise.check(self.problem, self.previous, state, moved, self.iteration)
        self._judge(value, gap)

    def fail(self, error: Exception) -> None:
        """Code outside the library raised: end here with what there is."""
        self._note(error)
        self._finish(self.rows.active, Status.ORACLE_FAILED)

    def _note(self, error: Exception | None) -> None:
        """Remember the first exception: the others follow from it."""
        if error is not None and self.error is None:
            self.error = error
            self._say(f"{type(error).__name__}: {error}")

    def _say(self, words: str) -> None:
        self.message = f"{self.message}; {words}" if self.message else words

    def interrupt(self, message: str) -> None:
        self._say(message)
        self._finish(self.rows.active, Status.INTERRUPTED)

    def close(self) -> None:
        """End the observers that can be closed; one that raises costs neither the others nor the result."""
        for observer in self.observers:
            try:
                close = getattr(observer, "close", None)
                if callable(close):
                    close()
            except Exception as error:  # noqa: BLE001 - the run is over, and its result stands
                self._note(error)

    def watch(self) -> None:
        """Show the iteration to the observers; one that returns True ends the run."""
        if not self.observers:
            return
        view = self.view()
        for observer in self.observers:
            try:
                if wants_to_end(observer(view)) and self.running:
                    self.interrupt("an observer ended the run")
            except Exception as error:  # noqa: BLE001 - an observer must not cost the user the run
                self.fail(error)

    def view(self) -> View:
        """What observers see; arrays in the user's batch shape."""
        shape, ledger = self.entrance.batch_shape, self.ledger
        state, previous, rows = self.state, self.previous, self.rows.start
        return View(
            iteration=self.iteration,
            value=ledger.value.reshape(shape).copy(),
            gap=ledger.gap.reshape(shape).copy(),
            active=ledger.active.reshape(shape).copy(),
            gradients=self.total.gradients,
            oracle_calls=self.total.oracle_calls,
            samples=self.total.samples,
            seconds=self.seconds,
            max_iterations=self.stop.max_iterations,
            _points=lambda: (
                self.last_store.whole(state.xs, rows, shape),
                self.last_store.whole(previous.xs, rows, shape),
            ),
            _record=lambda: Record.taken(self),
            _identity=lambda: self.entrance.identity,
        )

    # -- judging -----------------------------------------------------------------------------------------

    def read(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Value and gap of the rows of a state: the only look at the device in an iteration."""
        gaps = [to_host(gap) for gap in state.look.gaps]
        if len(gaps) == 1:
            gap = gaps[0]
        else:
            stacked = np.stack(gaps)
            gap = stacked.max(axis=0) if self.stop.measure == "max" else stacked.sum(axis=0)
        found = state.look.value
        return np.full(len(gap), np.nan) if found is None else to_host(found), gap

    def _judge(self, value: np.ndarray, gap: np.ndarray) -> None:
        """Decide, for every row, whether it has arrived, must end, or goes on."""
        rows = self.rows
        finite = np.isfinite(gap)
        if self.method.exact:
            finite &= np.isfinite(value)
        if not finite.all():
            self._finish(rows.active & ~finite, Status.NON_FINITE)
            self.poisoned = True
        if self.method.exact:
            self._keep_best(gap)
            self.propose(gap)
            self._judge_progress(value, gap)
        rows.value, rows.gap = value, gap
        self.ledger.note(rows.start, value, gap)
        if self.retirement is not None and self.retirement.due(self.iteration):
            given_up = self.retirement.chosen(
                self.state.xs, rows.start, rows.active, self.ledger.value
            )
            self._finish(given_up, Status.RETIRED)
        self.judge_budgets()
        self.trace.record(
            self.iteration,
            self.seconds,
            self.total.gradients,
            self.ledger.value.reshape(self.entrance.batch_shape),
            self.ledger.gap.reshape(self.entrance.batch_shape),
        )

    def _keep_best(self, gap: np.ndarray) -> None:
        better = self.rows.active & (gap < self.rows.best_gap)
        if better.any():
            self._return_current(better)
            self.rows.best_gap = np.where(better, gap, self.rows.best_gap)

    def _return_current(self, which: np.ndarray) -> None:
        """The point that these rows would return is the current one."""
        self.best = self.state.xs if which.all() else where(which, self.state.xs, self.best)
        self.ledger.best_iteration = self.ledger.best_iteration.copy()
        self.ledger.best_iteration[self.rows.start[which]] = self.iteration

    def propose(self, gap: np.ndarray) -> None:
        """The gap proposes, the certificate disposes."""
        rows = self.rows
        index = np.flatnonzero(rows.active & (gap <= rows.target))
        if not len(index):
            return
        everyone = len(index) == len(gap)
        problem = self.stated if everyone else self.of(self.stated, index)
        xs = self.state.xs if everyone else take(self.state.xs, index)
        certificate, answered = self.proofs.propose(problem, xs, rows.start[index], self.iteration)
        self._note(self.proofs.error)
        self._finish(self._among(index[~answered]), Status.ORACLE_FAILED)
        good = certificate.holds(
            rows.eps[index] * MARGIN,
            measure=self.stop.measure,
            feasibility=self.entrance.feasibility,
        )
        if good.any():
            proved = self._among(index[good])
            self._return_current(proved)
            self._finish(proved, Status.CERTIFIED)
        bad = answered & ~good
        refused = index[bad]
        rows.refusals = rows.refusals + self._among(refused)
        reached = certificate.max if self.stop.measure == "max" else certificate.sum
        missing = (reached - rows.eps[index] * MARGIN)[bad]
        half = 0.5 * np.maximum(np.minimum(rows.target, gap)[refused], 0.0)
        # Missed by rounding: ask again as soon as the same rounding would do (twice that, as it varies).
        near = np.where(missing > 0, gap[refused] - 2.0 * missing, 0.0)
        rows.target = rows.target.copy()
        rows.target[refused] = np.maximum(half, near)
        self._finish(rows.active & (rows.refusals > REFUSALS), Status.STALLED)

    def _among(self, index: np.ndarray) -> np.ndarray:
        """A mask of the rows in ``index``."""
        return np.isin(np.arange(len(self.rows.active)), index)

    def _judge_progress(self, value: np.ndarray, gap: np.ndarray) -> None:
        rows, stop = self.rows, self.stop
        still = value == rows.value
        same, refused = still & (gap == rows.gap), np.zeros_like(still)
        if still.any():  # a refused trial changes what the next one will be, and perhaps the gap: no step was made
            alike = still & _alike(self.state.memory, self.previous.memory)
            same, refused = same & alike, still & ~alike
        rows.unchanged = np.where(same, rows.unchanged + 1, 0)
        if stop.patience is not None:
            self._finish(rows.active & (rows.unchanged >= stop.patience), Status.STALLED)
        if not stop.watches_value:
            return
        if stop.target_value is not None:
            reached = rows.active & (value <= stop.target_value)
            if reached.any():
                self._return_current(reached)  # the status speaks of the point returned
                self._finish(reached, Status.TARGET_REACHED)
        # NaN, and so no verdict, at the first look and where no step was made
        change = np.where(refused, np.nan, np.abs(value - rows.value))
        if stop.value_change is not None:
            self._finish(rows.active & (change <= stop.value_change), Status.STALLED)
        if stop.relative_value_change is not None:
            small = change <= stop.relative_value_change * np.abs(value)
            self._finish(rows.active & small, Status.STALLED)

    def judge_budgets(self) -> None:
        stop, active = self.stop, self.rows.active
        spent = (
            (stop.max_gradients, self.total.gradients),
            (stop.max_oracle_calls, self.total.oracle_calls),
        )
        over = any(most is not None and used >= most for most, used in spent)
        if over or not (self.iteration < self.rows.limit).all():
            self._finish(
                active & ((self.rows.limit <= self.iteration) | over), Status.ITERATION_LIMIT
            )
        if stop.max_seconds is not None and self.seconds - self.uncounted >= stop.max_seconds:
            self._finish(self.rows.active, Status.TIME_LIMIT)

    def limits(self) -> np.ndarray:
        """How many iterations each start may take; with sampled gradients a uniformly random one is the output.

        x^R with R uniform on {1, ..., N}, N = max_iterations, is reached after R - 1 steps (theory E15).
        """
        most, starts = self.stop.max_iterations, self.entrance.starts
        if self.method.exact:
            return np.full(len(starts), most, dtype=np.int64)
        draws = [int(stream(self.seed, "output", int(s)).integers(max(most, 1))) for s in starts]
        return np.array(draws, dtype=np.int64)

    # -- finishing ---------------------------------------------------------------------------------------

    def _finish(self, mask: np.ndarray, status: Status) -> None:
        if not mask.any():
            return
        mask = mask.copy()
        if not self.method.exact and status is not Status.NON_FINITE:
            self._return_current(mask)
        who = self.rows.start[mask]
        self.rows.active = self.rows.active & ~mask
        self.ledger.close(who, status, self.iteration, self.total)

    def _gather(self) -> None:
        """Carry on with the survivors alone, once enough of the rows are finished."""
        active = self.rows.active
        few = active.sum() <= GATHER_SHARE * len(active)
        due = self.iteration % GATHER_EVERY == 0 and few
        if not (due or self.poisoned) or not active.any():
            return
        self.best_store.write(self.best, self.rows.start)
        self.last_store.write(self.state.xs, self.rows.start)
        index = np.flatnonzero(active)
        key = self.state.key.take(index)
        state, previous = (replace(take(s, index), key=key) for s in (self.state, self.previous))
        problem, stated = self.of(self.problem, index), self.of(self.stated, index)
        best, rows = take(self.best, index), self.rows.take(index)
        # Together: Ctrl-C must not find some of them gathered and others not.
        self.__dict__.update(
            problem=problem,
            stated=stated,
            state=state,
            previous=previous,
            best=best,
            rows=rows,
            poisoned=False,
        )

    def of(self, problem: Problem, index: np.ndarray) -> Problem:
        """The problem of some of the rows."""
        return problem.take(index) if self.batched else problem

    def conclude(self) -> tuple[Blocks, Blocks, Certificate, Bound]:
        """The points returned, the last ones, and what is proved about the former, evaluated afresh."""
        rows, shape = self.rows.start, self.entrance.batch_shape
        best = tuple(map(own, self.best_store.whole(self.best, rows, shape)))
        last = tuple(map(own, self.last_store.whole(self.state.xs, rows, shape)))
        flat = tuple(
            namespace(x).reshape(x, (len(self.ledger.status), *event))
            for x, event in zip(best, self.entrance.problem.shapes, strict=True)
        )
        certificate, answered = self.proofs.conclude(
            self.entrance.stated, flat, self.ledger.best_iteration
        )
        self._note(self.proofs.error)
        proved = certificate.holds(
            self.eps, measure=self.stop.measure, feasibility=self.entrance.feasibility
        )
        self.ledger.judge(proved, answered)
        used, bound = self.ledger.iterations + 1, self.promise.bound(self.bound)
        return best, last, certificate, unless_exceeded(bound, used, certificate.floor, self.eps)


def _alike(one: Any, other: Any) -> Any:
    """Where two states remember the same, bit by bit."""
    if isinstance(one, tuple):
        return reduce(and_, map(_alike, one, other), True)
    if not is_array(one):
        return True
    same = to_host(one) == to_host(other)
    return np.all(same, axis=tuple(range(1, same.ndim)))
