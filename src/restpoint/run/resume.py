"""Going on with a run that a checkpoint was made of."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from restpoint.array import take, truth
from restpoint.errors import CapabilityError, DataError, GuaranteeWarning, described
from restpoint.methods import Key, Method
from restpoint.problem import Problem
from restpoint.run.archive import Archive, read
from restpoint.run.checkpoint import KIND
from restpoint.run.door import enter_again
from restpoint.run.identity import Identity, differences, listed
from restpoint.run.ledger import Rows
from restpoint.run.loop import Loop
from restpoint.run.observers import Observer
from restpoint.run.record import Record
from restpoint.run.result import Result
from restpoint.run.retire import Retirement
from restpoint.run.solve import check_sampled, checked_eps, checked_observers, checked_stop, driven
from restpoint.run.status import Status
from restpoint.run.stop import Relative, Stop, absolute
from restpoint.run.tree import Reader

# How far f and the oracles may be from what they answered before, in units of the largest number of the trace: more
# than rounding explains, where products were kept along the way and are now formed afresh.
AGREEMENT = {"float64": 1e-6, "float32": 1e-2}
# Which rules end a start with which status; where one of them is another now, such starts go on.
RULES = {
    Status.TARGET_REACHED: ("target_value",),
    Status.STALLED: ("value_change", "relative_value_change", "patience"),
}


def resume(
    path: Any,
    problem: Problem,
    *,
    method: Method | None = None,
    eps: float | Relative | None = None,
    stop: Stop | None = None,
    observers: Sequence[Observer] = (),
    total_seconds: bool = False,
) -> Result:
    """Go on with the run whose ``Checkpoint`` is in the file ``path``, as if it had never ended.

    path           what a ``Checkpoint`` wrote
    problem        the same problem, built again: the file knows its parameters, and digests of its data
    method         needed only for a method of your own; it must be the one of the run
    eps, stop      instead of those of the run: a smaller eps, a larger ``max_iterations`` (from the very beginning).
                   None: the same
    observers      those of this part of the run; name a ``Checkpoint`` here to have further ones written
    total_seconds  whether ``Stop(max_seconds=...)`` counts the seconds of all parts; else they count anew

    On the same machine, with the same versions and numbers of threads, points, statuses, certificates and trace are
    those of a run without interruption, bit by bit (but for the seconds); where something of this is known to differ,
    a warning says so. A run that had ended gives its result again; starts that were ended by a rule that is now
    another go on. Those of them that are no longer carried along begin anew at their last points, and all others with
    them. Random draws are named by the iteration, so they go on where they were.

    Another problem is refused, with the first differences by name. Functions of yours are known by their names, and by
    what they answer at the points reached.

    >>> import numpy as np, restpoint as rp, tempfile
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> file = tempfile.NamedTemporaryFile()
    >>> method, stop = rp.ProximalGradient(), rp.Stop(max_iterations=3)
    >>> part = rp.solve(problem, method, stop=stop, observers=[rp.Checkpoint(file.name)])
    >>> whole = rp.resume(file.name, problem, stop=rp.Stop())
    >>> bool(np.all(whole.x == rp.solve(problem, method).x))
    True
    """
    began = time.monotonic()
    observers = checked_observers(observers)
    total_seconds = truth("total_seconds", total_seconds)
    if not isinstance(problem, Problem):
        raise DataError(f"problem must be a restpoint.Problem, got {described(problem)}")
    archive = read(path, KIND)
    record = _record(archive, problem, method)
    stop = record.stop if stop is None else checked_stop(stop)
    eps = record.eps if eps is None else checked_eps(eps)
    _check_rules(record, eps, stop)
    identity = Identity(problem)
    _check_identity(archive, identity)
    record.method.check(problem)
    entrance = enter_again(
        problem,
        record.x1,
        record.starts,
        record.batch_shape,
        feasibility=stop.feasibility,
        began=began,
    )
    entrance = replace(entrance, identity=identity)  # whose data have been read
    if _circumstances(archive, identity):
        # What f kept, and which blocks the order keeps, follow the order of data in memory: both are found again.
        state = replace(record.progress["state"], carried=None, trail=None)
        record.progress["state"] = state
    loop = Loop(
        entrance,
        record.method,
        eps=eps,
        stop=stop,
        seed=record.seed,
        observers=observers,
        record=record,
    )
    loop.uncounted = 0.0 if total_seconds else loop.spent
    _check_answers(loop)
    _go_on(loop, record)
    return driven(problem, loop)


def _record(archive: Archive, problem: Problem, method: Method | None) -> Record:
    """The record in the file; ``method`` tells where to look for classes that are not of this package."""
    if method is not None and not isinstance(method, Method):
        raise CapabilityError(
            f"method must be a restpoint method such as ConditionalGradient(), got {described(method)}"
        )
    modules = {type(part).__module__ for part in _parts(method)}
    reader = Reader(archive.arrays, modules=modules, like=problem.smooth.like)
    record: Record = reader.tree(archive.words["record"])
    if method is not None and method != record.method:
        raise DataError(
            f"the checkpoint was made by {record.method}, not by {method}; leave method out, or begin a new run with "
            "solve(...)"
        )
    return record


def _parts(value: Any) -> list[Any]:
    """An object and, if it is a dataclass, whatever it is made of."""
    if not dataclasses.is_dataclass(value):
        return [value]
    fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value, *(part for field in fields for part in _parts(field))]


def _check_rules(record: Record, eps: float | Relative, stop: Stop) -> None:
    if stop.measure != record.stop.measure:
        raise DataError(
            f"the run is measured by the {record.stop.measure} of the gaps, so stop must have "
            f"measure={record.stop.measure!r}; certify(problem, xs) gives both at any point"
        )
    check_sampled(record.method, eps, stop)
    if not record.method.exact and stop.max_iterations != record.stop.max_iterations:
        raise DataError(
            f"with sampled gradients the iteration returned was drawn from max_iterations = "
            f"{record.stop.max_iterations} beforehand (theory E15), so stop must keep that number; for a longer run "
            "begin anew"
        )


def _check_identity(archive: Archive, identity: Identity) -> None:
    found = differences(identity.parts, archive.words["identity"])
    if found:
        raise DataError(
            f"problem is not the one of the checkpoint {str(archive.path)!r}: {listed(found)}; give the problem that "
            "the run was begun with"
        )


def _circumstances(archive: Archive, identity: Identity) -> bool:
    """Warn of what bits depend on and is not as it was."""
    then, now = archive.words["circumstances"], identity.circumstances()
    found = [
        f"{name} {now.get(name) or 'none'} (was {old or 'none'})"
        for name, old in then.items()
        if now.get(name) != old
    ]
    if found:
        warnings.warn(
            f"the run goes on, but not bit by bit as it would have without the interruption: {listed(found)}",
            GuaranteeWarning,
            stacklevel=3,
        )
    return bool(found)


def _check_answers(loop: Loop) -> None:
    """Refuse an f, or oracles, that answer otherwise at the points reached than they did."""
    rows = loop.rows
    newest = rows.active | (loop.ledger.ended[rows.start] == loop.iteration)
    finite = np.isfinite(rows.gap) & (np.isfinite(rows.value) | (not loop.method.exact))
    index = np.flatnonzero(newest & finite)
    if not len(index):
        return
    xs, key = take(loop.state.xs, index), loop.state.key.take(index)
    with np.errstate(all="ignore"):
        found = loop.read(loop.method.init(loop.of(loop.problem, index), xs, key))
    largest = np.maximum(_largest(loop.trace.value), _largest(loop.trace.gap))
    precision = "float32" if "float32" in str(xs[0].dtype) else "float64"
    for name, new, old in zip(("Phi", "the gap"), found, (rows.value, rows.gap), strict=True):
        far = np.abs(new - old[index])
        if name == "the gap" and any(block.oracle.remembers for block in loop.problem.blocks):
            # Answers to other gradients may have been good enough (``Momentum``): they prove a larger gap at most.
            far = np.where(new < old[index], 0.0, far)
        if np.any(far > AGREEMENT[precision] * largest):
            k = int(np.nanargmax(far))
            raise DataError(
                f"problem is not the one of the checkpoint: at the points reached {name} of start "
                f"{rows.start[index[k]]} is {new[k]:.9g}, and was {old[index[k]]:.9g}; f, or an oracle, is another "
                "function now"
            )


def _largest(column: np.ndarray) -> float:
    return float(np.max(np.abs(column), where=np.isfinite(column), initial=0.0))


def _go_on(loop: Loop, record: Record) -> None:
    """Put new rules and budgets in force, also for starts that others had ended."""
    rows, before = loop.rows, absolute(record.eps, *loop.first)
    loop.retirement = _retirement(loop)
    rows.eps = loop.eps[rows.start]
    if loop.method.exact:
        rows.limit = loop.limits()[rows.start]
    other_eps = not np.array_equal(loop.eps, before)
    if other_eps:
        rows.target, rows.refusals = rows.eps.copy(), np.zeros_like(rows.refusals)
    budgets, rules = _out_of_budget(loop), _ended_by_other_rules(loop, record.stop, before)
    again = budgets | rules
    if again.any():
        loop.ledger.reopen(np.flatnonzero(again), loop.iteration, loop.total)
        if np.isin(np.flatnonzero(again), rows.start).all():
            rows.active = loop.ledger.active[rows.start]
            rows.unchanged = np.where(rules[rows.start], 0, rows.unchanged)
        else:
            _begin_anew(loop)
    if other_eps and loop.method.exact:
        loop.propose(loop.rows.gap)
    loop.judge_budgets()


def _retirement(loop: Loop) -> Retirement | None:
    """What is known of the starts, under the rule that is in force now."""
    rule = loop.stop.retire
    if rule is None or loop.retirement is None:
        return None if rule is None else Retirement(rule, loop.entrance.problem_of)
    loop.retirement.rule = rule
    return loop.retirement


def _out_of_budget(loop: Loop) -> np.ndarray:
    """Which starts the budgets had ended, all at the last iteration."""
    status = np.isin(_names(loop.ledger.status), ["ITERATION_LIMIT", "TIME_LIMIT"])
    return np.asarray(status & (loop.ledger.ended == loop.iteration))


def _ended_by_other_rules(loop: Loop, stop: Stop, eps: np.ndarray) -> np.ndarray:
    """Which starts had been ended by a rule of ``stop``, or by an ``eps``, that is another now."""
    names = _names(loop.ledger.status)
    found = (names == "CERTIFIED") & (loop.eps < eps)
    for status, rules in RULES.items():
        if any(getattr(stop, rule) != getattr(loop.stop, rule) for rule in rules):
            found |= names == status.name
    return np.asarray(found & ~loop.ledger.active)


def _names(status: np.ndarray) -> np.ndarray:
    return np.array([member.name for member in status])


def _begin_anew(loop: Loop) -> None:
    """Look again at the last points of all starts that go on: some of them are no longer carried along."""
    entrance, rows, ledger = loop.entrance, loop.rows, loop.ledger
    loop.best_store.write(loop.best, rows.start)
    loop.last_store.write(loop.state.xs, rows.start)
    index, shape = np.flatnonzero(ledger.active), ledger.active.shape
    best = take(loop.best_store.whole(loop.best, rows.start, shape), index)
    last = take(loop.last_store.whole(loop.state.xs, rows.start, shape), index)
    key = Key(loop.seed, entrance.starts[index], loop.iteration)
    problem = loop.of(entrance.problem, index)
    with np.errstate(all="ignore"):
        state, there = (loop.method.init(problem, xs, key) for xs in (last, best))
    opened = Rows.opened(loop.eps, loop.limits()).take(index)
    opened.value, opened.gap = loop.read(state)
    opened.best_gap = loop.read(there)[1]
    loop.total = loop.total.plus(*state.work).plus(*there.work)
    if state.memory is not None:
        loop.bound = loop.bound.withdraw(
            f"some starts were taken up again at iteration {loop.iteration}, and what the method remembers of all "
            "starts began anew"
        )
    loop.problem, loop.stated = problem, loop.of(entrance.stated, index)
    loop.state = loop.previous = state
    loop.best, loop.rows = best, opened
