"""The certificate: an upper bound on how far a point is from stationary.

Nothing here knows any method: a certificate takes a problem and a point, evaluates f afresh in float64, and
bounds what its own rounding may have hidden (theory A2, A12).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.array import (
    UNIT_ROUNDOFF,
    Array,
    event_max,
    expand,
    gamma,
    inner,
    namespace,
    norm,
    real_number,
    to_host,
)
from restpoint.errors import DataError, described
from restpoint.oracles import Answer, DeclaredOracle, DeclaredPenalty
from restpoint.penalties import Zero
from restpoint.problem import Block, Blocks, Problem

# The fields of a certificate with one entry, or one row of blocks, for each start.
PER_START = ("per_block", "floor", "error", "violation", "relative_violation", "value")
FLOOR_KINDS = ("proved", "estimated")
# Second-order rounding terms that the first-order bound leaves out (theory A12).
SAFETY = 1.001
# A user's function has no proved rounding error; this many units of the largest entry are assumed.
ASSUMED_UNITS = 64.0
# How far below 0, relative to the numbers that it is summed from, a gap may be without showing its point outside of a
# set that cannot tell: the points of iterative solvers are a little outside.
TOLERATED = 1e-3
# Squares of numbers below the root of the smallest normal one underflow, and with them whole norms.
SMALLEST_NORMAL = 2.0**-1022
SQUARE_UNDERFLOWS = 2.0**-511
# Entries below this may give rise to such numbers: 2^-53 is what cancels.
SUSPECT = 2.0**-450


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved about a point ``xs``; NumPy arrays of the batch shape, float64.

    per_block   upper bounds on Gap_i = max over y in S_i of grad_i f'(x_i - y) + h_i(x_i) - h_i(y); the last axis
                counts blocks; ``floor`` and ``error`` are included
    floor       how much of that is allowance for rounding
    error       how much of that is allowance for declared errors of the gradient (theory A5)
    floor_kind  "proved" (error analysis) or "estimated" (f, h or a lower bound is a user's function)
    violation   the largest distance of a block from its set; ``relative_violation`` in units of the set's radius
    kind        the weakest word among the blocks: "exact oracle", "dual bound", "declared oracle"
    confidence  1.0, except for certificates from samples
    value       Phi(xs)
    feasibility_checked  False if some block's set (a user's) cannot tell its violation, which then counts as 0, unless
                the diameter of the set, or a gap below 0, shows it (infinite where that shows no distance)
    """

    per_block: np.ndarray
    floor: np.ndarray
    error: np.ndarray
    floor_kind: str
    violation: np.ndarray
    relative_violation: np.ndarray
    kind: str
    value: np.ndarray
    confidence: float = 1.0
    feasibility_checked: bool = True

    @property
    def max(self) -> np.ndarray:
        """The largest block gap: the paper's block notion, eq. (formu:epsilon-KKT-block)."""
        return np.asarray(np.max(self.per_block, axis=-1))

    @property
    def sum(self) -> np.ndarray:
        """The sum of the block gaps: joint stationarity, Definition 1.2 (theory E25)."""
        return np.asarray(np.sum(self.per_block, axis=-1))

    def holds(
        self, eps: float | np.ndarray, *, measure: str = "max", feasibility: float = 1e-12
    ) -> np.ndarray:
        """Whether the point is proved eps-stationary and feasible, per start. NaN never holds."""
        if measure not in ("max", "sum"):
            raise DataError(f'measure must be "max" or "sum", got {measure!r}')
        gap = self.max if measure == "max" else self.sum
        small = gap <= _threshold("eps", eps)
        return np.asarray(
            small & (self.relative_violation <= _threshold("feasibility", feasibility))
        )

    def reshape(self, batch_shape: tuple[int, ...]) -> Certificate:
        """The same certificate with its batch axes spread over ``batch_shape``."""
        wide = (*batch_shape, self.per_block.shape[-1])
        return replace(
            self,
            per_block=self.per_block.reshape(wide),
            floor=self.floor.reshape(wide),
            error=self.error.reshape(wide),
            violation=self.violation.reshape(batch_shape),
            relative_violation=self.relative_violation.reshape(batch_shape),
            value=self.value.reshape(batch_shape),
        )

    def at(self, index: tuple[int, ...]) -> Certificate:
        """The certificate of one start."""
        picked: dict[str, Any] = {
            name: np.asarray(getattr(self, name)[index]) for name in PER_START
        }
        return replace(self, **picked)

    @classmethod
    def joined(cls, parts: Sequence[Certificate]) -> Certificate:
        """One certificate for the starts of several, in words as weak as the weakest of them."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_START
        }
        return replace(
            parts[0],
            floor_kind=max((part.floor_kind for part in parts), key=FLOOR_KINDS.index),
            kind=_weakest(part.kind for part in parts),
            **columns,
        )

    def __str__(self) -> str:
        lines = [
            f"gap <= {_brief(self.max)} (largest block), <= {_brief(self.sum)} (sum of blocks)"
        ]
        lines.append(
            f"by {self.kind}; rounding allowance {_brief(np.max(self.floor, axis=-1))} "
            f"({self.floor_kind}), included; violation "
            + (
                _brief(self.violation)
                if self.feasibility_checked or np.any(self.violation > 0.0)
                else "not checked"
            )
        )
        if np.any(self.error > 0.0):
            widest = _brief(np.max(self.error, axis=-1))
            lines.append(f"declared errors of the gradient may account for {widest} of it")
        return "\n".join(lines)


def certify(problem: Problem, xs: Array | Blocks) -> Certificate:
    r"""Prove how far ``xs`` is from stationary.

    Gap_i(x) = grad_i f(x)'x_i + h_i(x_i) - min over y in S_i of [grad_i f(x)'y + h_i(y)]; x is eps-stationary
    iff the gaps are <= eps (paper, Definition 1.2 with theory E1; blocks: E25). The minimum is replaced by the
    oracle's lower bound, so a weaker oracle gives a weaker certificate, never a false one (A2). Everything is
    evaluated here, in float64, at this very point, and the rounding errors of that evaluation are bounded and
    added (A12):

        1.001 [gamma_k (|g|'|x| + |h(x)| + size of the oracle's sums) + e'|x| + max over S of e'|y| + underflow],

    where e bounds the rounding error of each gradient entry. A declared error of the gradient adds
    error max_y ||y - x||_2 (A5). One gradient and one oracle call per block.

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> bool(rp.certify(problem, np.array([0.0, 1.0])).max < 1e-14)
    True
    """
    if not isinstance(problem, Problem):
        raise DataError(f"problem must be a restpoint.Problem, got {described(problem)}")
    given = problem.as_blocks(xs)
    problem, xs, batch = problem.aligned(_in_double(given))
    value, gradients = problem.smooth.value_and_gradient(xs)
    proved = problem.smooth.rounding(xs)
    errors = proved[1] if proved is not None else _assumed_errors(problem, gradients)

    gaps, floors, doubts, violations = [], [], [], []
    declared = problem.smooth.gradient_errors or (0.0,) * len(xs)
    for block, x, g, error, eta in zip(
        problem.blocks, xs, gradients, errors, declared, strict=True
    ):
        penalty = block.penalty.value(x)
        answer = block.oracle.linear_near(g, x)  # at a stationary point, x is an answer itself
        gap = inner(g, x, block.set.event_ndim) + penalty - answer.lower
        floor = _floor(block, x, g, error, answer)
        value = value + penalty
        # A gap below zero is rounding (or an infeasible point, which ``violation`` shows).
        doubt = SAFETY * eta * to_host(block.set.reach(x, 2.0)) if eta else 0.0
        gaps.append(np.maximum(to_host(gap), 0.0) + to_host(floor) + doubt)
        floors.append(to_host(floor))
        doubts.append(np.asarray(doubt))
        violations.append(_violation(block, x, g, to_host(gap + floor), answer))
    certificate = Certificate(
        per_block=_stack(gaps),
        floor=_stack(floors),
        error=_stack(doubts, like=gaps[0]),
        floor_kind="estimated"
        if proved is None or any(map(_has_user_numbers, problem.blocks))
        else "proved",
        violation=np.max(_stack(violations), axis=-1),
        relative_violation=np.max(
            _stack(list(problem.relative_violations(xs, given, violations))), axis=-1
        ),
        kind=_weakest(block.oracle.kind for block in problem.blocks),
        value=to_host(value),
        feasibility_checked=all(s.declares_violation for s in problem.sets),
    )
    return certificate.reshape(batch)


def _threshold(name: str, value: Any) -> float | np.ndarray:
    """A number, or one for each start."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return value
    return real_number(name, value, "a number, or an array of one per start", finite=False)


def unproved(problem: Problem, xs: Blocks) -> Certificate:
    """For starts ``xs`` where code outside the library gave no answer: NaN, which never holds.

    The value alone is evaluated, if that code answers; it proves nothing.
    """
    count = xs[0].shape[0]
    unknown = np.full(count, np.nan)
    try:
        value = to_host(problem.value(_in_double(xs)))
    except Exception:  # noqa: BLE001 - the caller has an exception to show already
        value = unknown
    return Certificate(
        per_block=np.full((count, len(xs)), np.nan),
        floor=np.full((count, len(xs)), np.nan),
        error=np.full((count, len(xs)), np.nan),
        floor_kind="estimated",
        violation=unknown,
        relative_violation=unknown,
        kind=_weakest(block.oracle.kind for block in problem.blocks),
        value=value,
        feasibility_checked=all(s.declares_violation for s in problem.sets),
    )


def _in_double(xs: Blocks) -> Blocks:
    return tuple(namespace(x).astype(x, namespace(x).float64) for x in xs)


def _floor(block: Block, x: Array, g: Array, error: Array, answer: Answer) -> Array:
    """How far rounding can have pushed the computed gap below the true one."""
    xp, ndim = namespace(x), block.set.event_ndim
    size_x, size_g = xp.abs(x), xp.abs(g)
    terms = (
        inner(size_g, size_x, ndim)
        + block.penalty.magnitude(x)
        + block.oracle.magnitude(g, answer.point)
    )
    depth = 8 + int(np.prod(x.shape[x.ndim - ndim :]))
    if _has_user_numbers(block):
        depth += int(ASSUMED_UNITS)
    # In units of its largest entry: the squares of an error bound would underflow.
    unit = event_max(error, ndim)
    unit = xp.where(unit > 0, unit, 1.0)
    support = unit * block.set.absolute_support(error / expand(unit, ndim))
    gradient = inner(error, size_x, ndim) + support
    lost = xp.where((size_g > 0) & (size_g < SUSPECT), SQUARE_UNDERFLOWS, 0.0 * size_g)
    underflow = block.set.absolute_support(lost) + depth * SMALLEST_NORMAL
    return SAFETY * (gamma(depth) * terms + gradient + underflow)


def _violation(block: Block, x: Array, g: Array, gap: np.ndarray, answer: Answer) -> np.ndarray:
    """The violation of a block, and where its set cannot tell, what a gap below 0 shows.

    On S no gap is negative. Without a penalty, g'(y - x) >= -gap for all y in S, so that x is -gap / ||g||_2 away or
    more; with one the distance is not known, and infinity stands for it. Small gaps below 0 are put down to oracles
    whose points are a little outside.
    """
    far = to_host(block.set.violation(x))
    if block.set.declares_violation:
        return far
    ndim = block.set.event_ndim
    size = inner(namespace(x).abs(g), namespace(x).abs(x), ndim) + block.penalty.magnitude(x)
    outside = -gap > TOLERATED * (to_host(size) + np.abs(to_host(answer.lower)))
    slope = to_host(norm(g, ndim)) if isinstance(block.penalty, Zero) else 0.0
    with np.errstate(all="ignore"):
        return np.where(outside, np.maximum(-gap / slope, far), far)


def _has_user_numbers(block: Block) -> bool:
    """Whether h, or the lower bound, is computed by code whose rounding nobody has bounded."""
    oracle = block.oracle
    bounded = isinstance(oracle, DeclaredOracle) and oracle.lower_bound_of is not None
    return bounded or isinstance(block.penalty, DeclaredPenalty)


def _assumed_errors(problem: Problem, gradients: Blocks) -> Blocks:
    """The rounding error assumed for every entry of gradients that somebody else computed."""
    errors = []
    for g, s in zip(gradients, problem.sets, strict=True):
        largest = event_max(namespace(g).abs(g), s.event_ndim)
        unit = ASSUMED_UNITS * UNIT_ROUNDOFF * expand(largest, s.event_ndim)
        errors.append(unit + 0 * g)
    return tuple(errors)


def _weakest(kinds: Iterable[str]) -> str:
    """The kind of a certificate is that of its weakest block."""
    strength = ("exact oracle", "dual bound", "fresh sample", "declared oracle")
    return max(kinds, key=strength.index)


def _stack(parts: list[np.ndarray], like: np.ndarray | None = None) -> np.ndarray:
    """One more axis, for the blocks."""
    shape = np.broadcast_shapes(
        *(part.shape for part in parts), *([] if like is None else [like.shape])
    )
    return np.stack([np.broadcast_to(part, shape) for part in parts], axis=-1).astype(np.float64)


def _brief(values: np.ndarray) -> str:
    """One number, or the range of many."""
    values = np.asarray(values)
    if values.size == 1:
        return f"{float(values.reshape(())):.3g}"
    return f"{float(np.min(values)):.3g} .. {float(np.max(values)):.3g}"
