"""The door: what the user gave becomes one flat batch of starts, or an error that says what to do."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.array import (
    Array,
    convert,
    expand,
    generator,
    namespace,
    own,
    require_memory,
    to_host,
    whole_number,
)
from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.problem import Blocks, Problem, common
from restpoint.run.identity import Identity

# What a run keeps of every start, at least: its points, gradients and oracle answers, now and one iteration ago, and
# the bytes of its books and its trace.
COPIES, BOOKS = 8, 1000
FEASIBILITY = {"float64": 1e-12, "float32": 1e-6}


@dataclass(frozen=True)
class Entrance:
    """A problem and its starting points with exactly one batch axis, and the way back."""

    identity: Identity  # of the problem as the user gave it
    problem: Problem  # flat: parameters carry one batch axis or none
    stated: Problem  # the same, nothing rounded to the dtype of the run: what certificates speak of
    xs: Blocks
    batch_shape: tuple[int, ...]  # of the user: (*problem.batch_shape, starts)
    starts: np.ndarray  # the number of each start within its problem: names its random draws
    feasibility: float
    problem_of: np.ndarray  # which problem of the batch each start belongs to
    began: float  # time.monotonic() when the user called: the clock of a run starts here


def enter(
    problem: Problem, starts: int | None, x0: Any, rng: int, feasibility: float | None
) -> Entrance:
    """Check, draw what is missing, flatten the batch."""
    began = time.monotonic()
    if not isinstance(problem, Problem):
        raise DataError(f"problem must be a restpoint.Problem, got {described(problem)}")
    if isinstance(rng, bool) or not isinstance(rng, (int, np.integer)) or not 0 <= rng < 2**63:
        raise DataError(
            f"rng must be a whole number from 0 to 2**63 - 1, the seed that names all draws, got {rng!r}; "
            "write rng=0 for instance (a generator cannot name draws, so none is accepted)"
        )
    if starts is not None:
        starts = whole_number("starts", starts, 1)
    given = None if x0 is None else problem.as_blocks(x0, "x0")
    batch_shape = _batch_shape(problem, starts, given)
    like = _like(problem, given)
    flat, count = _laid_out(problem, batch_shape, like), math.prod(batch_shape)
    if given is None:
        _check_memory(problem, count, like)
    numbers = np.arange(count) % (batch_shape[-1] if len(batch_shape) else 1)
    if len(batch_shape) == len(problem.batch_shape):
        numbers = np.zeros(count, dtype=np.int64)  # one start for each problem of the batch
    xs = (
        _drawn(flat, numbers, int(rng), like)
        if given is None
        else _spread(given, problem, batch_shape, like)
    )
    if given is not None:
        _check_feasible(flat, xs, _tolerance(feasibility, like), batch_shape)
        xs = _brought_in(flat, xs)
    return _entrance(problem, flat, xs, numbers, batch_shape, feasibility=feasibility, began=began)


def enter_again(
    problem: Problem,
    xs: Blocks,
    numbers: np.ndarray,
    batch_shape: tuple[int, ...],
    *,
    feasibility: float | None,
    began: float,
) -> Entrance:
    """The same from starting points that have been through this door before."""
    flat = _laid_out(problem, batch_shape, common(xs))
    return _entrance(problem, flat, xs, numbers, batch_shape, feasibility=feasibility, began=began)


def _entrance(
    problem: Problem,
    flat: Problem,
    xs: Blocks,
    numbers: np.ndarray,
    batch_shape: tuple[int, ...],
    *,
    feasibility: float | None,
    began: float,
) -> Entrance:
    like, count = common(xs), math.prod(batch_shape)
    return Entrance(
        identity=Identity(problem),
        problem=flat,
        stated=_stated(problem, flat, batch_shape, like),
        xs=xs,
        batch_shape=batch_shape,
        starts=numbers,
        feasibility=_tolerance(feasibility, like),
        problem_of=np.arange(count) // (count // math.prod(problem.batch_shape)),
        began=began,
    )


def _precision(like: Array) -> str:
    return "float32" if like.dtype == namespace(like).float32 else "float64"


def _tolerance(feasibility: float | None, like: Array) -> float:
    return FEASIBILITY[_precision(like)] if feasibility is None else feasibility


def _laid_out(problem: Problem, batch_shape: tuple[int, ...], like: Array) -> Problem:
    """The problem on one flat axis of starts, in the library, dtype and device of ``like``."""
    problem.check_scale(_precision(like))
    return problem.converted(like).laid_out(batch_shape)


def mirrored(entrance: Entrance) -> Entrance:
    """The same with better signs, see ``Problem.mirrored``: for methods that move all blocks from one gradient.

    Others choose the signs themselves: by symmetry, their steps from both points are the same up to signs.
    """
    return replace(entrance, xs=entrance.problem.mirrored(entrance.xs))


def _stated(problem: Problem, flat: Problem, batch_shape: tuple[int, ...], like: Array) -> Problem:
    """The problem as the user stated it: float64 data stay float64 where the run is in float32."""
    xp = namespace(like)
    if like.dtype == xp.float64:
        return flat
    return problem.converted(xp.astype(like[:0], xp.float64)).laid_out(batch_shape)


def _batch_shape(problem: Problem, starts: int | None, given: Blocks | None) -> tuple[int, ...]:
    own = problem.batch_shape
    if 0 in own:
        raise DataError(
            f"the parameters of the sets and penalties have batch shape {own}: no problem at all; give at least one"
        )
    if given is None:
        return own if starts is None else (*own, starts)
    found = problem.batch_of(given, "x0")
    if len(found) > len(own) + 1:
        raise ShapeError(
            f"x0 has batch shape {found}; expected {own} or {(*own, 'starts')}: give the starts one axis"
        )
    if starts is not None and found != (*own, starts):
        raise ShapeError(
            f"x0 holds the starts already (batch shape {found}), which is not starts={starts}; leave starts out"
        )
    return found


def _like(problem: Problem, given: Blocks | None) -> Array:
    """The array whose library, dtype and device the run uses: x0's, else the data's, else NumPy float64."""
    if given is not None:
        return common(given)
    return problem.smooth.like if problem.smooth.like is not None else np.zeros(1)


def _check_memory(problem: Problem, count: int, like: Array) -> None:
    entry = namespace(like).finfo(like.dtype).bits // 8
    numbers = COPIES * sum(map(math.prod, problem.shapes)) + problem.smooth.numbers_a_start
    start = entry * numbers + BOOKS
    require_memory(count * start, f"a run from {count:,} starts")


def _drawn(flat: Problem, numbers: np.ndarray, seed: int, like: Array) -> Blocks:
    host = flat.converted(np.zeros(1)) if flat.batch_shape else flat
    points: list[list[np.ndarray]] = [[] for _ in flat.shapes]
    for row, number in enumerate(numbers):
        rng = generator(seed, "start", int(number))
        for i, (s, shape) in enumerate(zip(host.sets, flat.shapes, strict=True)):
            points[i].append((s.at(row) if s.batch_shape else s).sample(rng, shape))
    return tuple(convert(np.stack(block), like) for block in points)


def _spread(given: Blocks, problem: Problem, batch_shape: tuple[int, ...], like: Array) -> Blocks:
    flat = problem.spread(given, batch_shape)
    return tuple(convert(own(x), like) for x in flat)  # x0 stays the user's


def _check_feasible(
    flat: Problem, xs: Blocks, tolerance: float, batch_shape: tuple[int, ...]
) -> None:
    for i, (s, x, far) in enumerate(zip(flat.sets, xs, flat.relative_violations(xs), strict=True)):
        if not np.all(far <= tolerance):
            worst = int(np.argmax(np.where(np.isnan(far), np.inf, far)))
            start = tuple(int(k) for k in np.unravel_index(worst, batch_shape))
            place = f" at start {start[0] if len(start) == 1 else start}" if start else ""
            raise DataError(
                f"x0[{i}] lies outside {type(s).__name__}{place}: "
                f"violation {float(to_host(s.violation(x))[worst]):.3g}, more than {tolerance:.0e} of "
                "the set's radius; pass x0=problem.project(x0) if the nearest point will do"
            )


def _brought_in(flat: Problem, xs: Blocks) -> Blocks:
    """The starts, those that the tolerance let in projected: what f declares holds on the sets, and nowhere else.

    A constant on the orthant fails at -1e-13 already. Where a user's set has no projection, the start stays.
    """
    moved = []
    for s, x in zip(flat.sets, xs, strict=True):
        inside = s.inside(x)
        if not bool(namespace(x).all(inside)):
            with contextlib.suppress(CapabilityError):
                x = namespace(x).where(expand(inside, s.event_ndim), x, s.project(x))  # noqa: PLW2901
        moved.append(x)
    return tuple(moved)
