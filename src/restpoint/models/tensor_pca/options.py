"""The parameters of the estimator, checked: what contradicts itself is refused with the way out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import real_number, whole_number
from restpoint.errors import DataError, described
from restpoint.models._shared import seed_of
from restpoint.models.tensor_pca.clock import Clock
from restpoint.models.tensor_pca.component import Wish
from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.task import Task
from restpoint.penalties import Penalty
from restpoint.sets import L2Ball, NonnegativeBall, Set

DEFLATIONS = ("joint", "subtract", "orthogonal")


@dataclass(frozen=True)
class Options:
    """What ``fit`` works with."""

    components: int
    wish: Wish
    task: Task
    deflation: str
    plain: bool  # unit balls, or their nonnegative parts, with l1 or nothing
    sweeps: int = 2000  # at most, of a joint refinement


def options_of(params: dict[str, Any], data: Data, clock: Clock) -> Options:
    """Check every parameter against the data."""
    components = whole_number("n_components", params["n_components"], 1)
    if params["deflation"] not in DEFLATIONS:
        raise DataError(f"deflation must be one of {DEFLATIONS}, got {params['deflation']!r}")
    starts = whole_number("starts", params["starts"], 1)
    seed = seed_of(params["random_state"])
    tol = real_number("tol", params["tol"], "a number in (0, 1)")
    if not 0.0 < tol < 1.0:
        raise DataError(f"tol must be a number in (0, 1), got {tol}")
    sets, fixed = _sets(params, data), _penalties(params, data)
    ratios, wish = _wish(params, data, fixed)
    blocks = [modes[0] for modes in data.form.modes_of]
    _refuse_different("sets (or nonneg)", sets, sets, data)
    _refuse_different("penalties", fixed, fixed, data)
    if wish.counts is not None:
        _refuse_different("n_nonzero", wish.counts, wish.counts, data)
    else:
        _refuse_different("rho", ratios, data.per_mode(params["rho"], "rho"), data)
    task = Task(
        form=data.form,
        sets=tuple(sets[m] for m in blocks),
        ratios=tuple(ratios[m] for m in blocks),
        fixed=tuple(fixed[m] for m in blocks),
        modes=data.form.modes_of,
        entries=data.entries,
        count=data.count,
        norm2=data.norm2,
        clock=clock,
        starts=starts,
        seed=seed,
        tol=tol,
        init=params["init"],
        names=data.names,
        labels=data.labels,
    )
    if wish.counts is not None:
        wish = Wish(counts=tuple(wish.counts[m] for m in blocks))
    plain = all(_is_unit(s) for s in sets) and all(own is None for own in fixed)
    _refuse_contradictions(params, data, task, wish, components, plain)
    return Options(components, wish, task, params["deflation"], plain)


def listed_rho(rho: Any) -> np.ndarray:
    """Several numbers >= 0."""
    try:
        grid = np.atleast_1d(np.asarray(rho, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.array([np.nan])
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all() or grid.min() < 0:
        raise DataError(f"rho must be finite numbers >= 0 to compare, got {rho!r}")
    return grid


def _is_unit(s: Set) -> bool:
    return (isinstance(s, L2Ball) and s.centered and s.radius == 1.0) or (
        isinstance(s, NonnegativeBall) and s.radius == 1.0
    )


def _sets(params: dict[str, Any], data: Data) -> tuple[Set, ...]:
    given = data.per_mode(params["sets"], "sets")
    nonneg = params["nonneg"]
    if isinstance(nonneg, (bool, np.bool_)):
        positive = (bool(nonneg),) * len(given)
    else:
        chosen = data.modes(nonneg, "nonneg")
        positive = tuple(m in chosen for m in range(len(given)))
    found = []
    for m, (own, want) in enumerate(zip(given, positive, strict=True)):
        if own is not None and want:
            raise DataError(
                f"nonneg and sets both speak of mode {data.names[m]!r}; give one of them (nonneg means "
                "sets.NonnegativeBall())"
            )
        if own is not None and not isinstance(own, Set):
            raise DataError(
                f"sets of mode {data.names[m]!r} must be a restpoint.sets.Set, got {described(own)}"
            )
        found.append(own if own is not None else NonnegativeBall() if want else L2Ball())
    return tuple(found)


def _penalties(params: dict[str, Any], data: Data) -> tuple[Penalty | None, ...]:
    given = data.per_mode(params["penalties"], "penalties")
    for m, own in enumerate(given):
        if own is not None and not isinstance(own, Penalty):
            raise DataError(
                f"penalties of mode {data.names[m]!r} must be a restpoint.penalties.Penalty, got {described(own)}"
            )
    return given


def _wish(
    params: dict[str, Any], data: Data, fixed: tuple[Penalty | None, ...]
) -> tuple[tuple[float, ...], Wish]:
    d, rho = len(data.names), params["rho"]
    if params["n_nonzero"] is not None:
        return (1.0,) * d, Wish(counts=_counts(params, data, fixed))
    by_mode = isinstance(rho, (dict, list, tuple))
    values = data.per_mode(rho, "rho")
    for m, value in enumerate(values):
        if by_mode and value is not None and fixed[m] is not None:
            raise DataError(
                f"rho and penalties both speak of mode {data.names[m]!r}; give one of them"
            )
        if isinstance(value, str) and value != "auto":
            raise DataError(f'rho must be "auto", a number >= 0, or these by mode, got {value!r}')
    automatic = [isinstance(value, str) for value in values]
    if any(automatic):
        if any(
            value is not None and not auto for value, auto in zip(values, automatic, strict=True)
        ):
            raise DataError(
                f'rho = {rho!r} is "auto" in some modes and a number in others; give one kind'
            )
        return tuple(float(auto) for auto in automatic), Wish("auto")
    numbers = [
        0.0 if value is None else real_number("rho", value, "a finite number >= 0")
        for value in values
    ]
    if min(numbers) < 0.0:
        raise DataError(f'rho must be >= 0 (or "auto"), got {min(numbers)}')
    base = max(numbers)
    if base == 0.0:
        return (0.0,) * d, Wish(0.0)
    return tuple(number / base for number in numbers), Wish(base)


def _counts(
    params: dict[str, Any], data: Data, fixed: tuple[Penalty | None, ...]
) -> tuple[int | None, ...]:
    if not (isinstance(params["rho"], str) and params["rho"] == "auto"):
        raise DataError(
            f"n_nonzero and rho = {params['rho']!r} both decide about sparsity; give one of them"
        )
    counts = data.per_mode(params["n_nonzero"], "n_nonzero")
    for m, k in enumerate(counts):
        if k is None:
            continue
        whole_number(f"n_nonzero of mode {data.names[m]!r}", k, 1)
        if k > data.sizes[m]:
            raise DataError(
                f"n_nonzero asks for {k} nonzeros in mode {data.names[m]!r}, which has {data.sizes[m]} entries"
            )
        if fixed[m] is not None:
            raise DataError(
                f"n_nonzero and penalties both speak of mode {data.names[m]!r}; give one of them"
            )
    return counts


def _refuse_different(
    argument: str, values: tuple[Any, ...], given: tuple[Any, ...], data: Data
) -> None:
    """Tied modes share one vector: what is said of one of them must be said of all."""
    for modes in data.form.modes_of:
        if any(values[m] != values[modes[0]] for m in modes):
            tied = ", ".join(repr(data.names[m]) for m in modes)
            raise DataError(
                f"{argument} must say the same of the modes {tied}, which are tied and share one vector; got "
                f"{[given[m] for m in modes]}"
            )


def _refuse_contradictions(
    params: dict[str, Any], data: Data, task: Task, wish: Wish, components: int, plain: bool
) -> None:
    if components > 1 and params["deflation"] == "joint":
        reason = (
            "n_nonzero: counts are not kept while components are refined together"
            if wish.counts is not None
            else "other sets or penalties than unit balls (nonneg) with l1"
            if not plain
            else "tied modes"
            if not task.untied
            else ""
        )
        if reason:
            raise DataError(
                f'deflation="joint" does not go with {reason}; use deflation="subtract"'
            )
    most = math.prod(data.sizes) // max(data.sizes)
    if components > most:
        raise DataError(
            f"n_components={components}, but no tensor of shape {data.sizes} has a rank above {most} (its size over "
            f"that of its longest mode); ask for at most {most}"
        )
    if components > 1 and params["deflation"] == "joint" and data.norm2 is None:
        raise DataError(
            'deflation="joint" needs ||X||, which is too expensive for a moment tensor of this size; use '
            'deflation="subtract"'
        )
    if params["deflation"] == "orthogonal" and components > min(data.sizes):
        raise DataError(
            f'n_components={components} with deflation="orthogonal" needs that many orthogonal vectors in every mode, '
            f"but mode {data.names[int(np.argmin(data.sizes))]!r} has {min(data.sizes)} entries; ask for fewer, or use "
            'deflation="joint"'
        )
    if data.observed is not None:
        if not plain:
            raise DataError(
                "X has missing entries, for which only unit balls (nonneg) with l1 are available; leave sets and "
                "penalties out"
            )
        if params["deflation"] != "joint" and components > 1:
            raise DataError(
                f'X has missing entries, for which deflation={params["deflation"]!r} makes no sense; use "joint"'
            )
        if wish.counts is not None:
            raise DataError("X has missing entries, for which n_nonzero is not available; use rho")
