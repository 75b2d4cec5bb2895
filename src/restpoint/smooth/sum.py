"""Sums of functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from restpoint.array import UNIT_ROUNDOFF, Array, gamma, namespace
from restpoint.errors import CapabilityError, DataError
from restpoint.smooth import _bounds, _checks
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth, Sweep

if TYPE_CHECKING:
    from restpoint.sets import Set


class Sum(Smooth):
    r"""f = f_1 + ... + f_k of functions of the same blocks.

    Facts combine soundly: constants add, and those of concave parts are 0; where exponents differ, the smallest p
    is kept, by ||d||_r^r <= diam_p(S)^(r-p) ||d||_p^p for r >= p; lower bounds add; one unknown makes the sum unknown.
    Gradients cost what those of the parts cost together. ``MiniBatch`` samples the parts that are finite sums (of one
    common length) and keeps the others exact; ``Smoothed`` smooths those that are not differentiable.

    >>> import numpy as np
    >>> from restpoint.smooth import PowerSum, Quadratic
    >>> f = Sum(Quadratic([[2.0]]), PowerSum(1.5, shape=1))
    >>> float(f.value((np.array([4.0]),)))
    24.0
    """

    def __init__(self, *parts: Smooth) -> None:
        if not parts:
            raise DataError("Sum needs at least one part, as in Sum(f, g)")
        for j, part in enumerate(parts):
            if not isinstance(part, Smooth):
                raise DataError(
                    f"part {j} of Sum is {part!r}; expected a function such as Quadratic or Function"
                )
        _checks.same_shapes([part.shapes for part in parts], "Sum")
        self.parts, self.shapes = parts, parts[0].shapes
        self.differentiable = all(part.differentiable for part in parts)

    @property
    def like(self) -> Array | None:
        """Data in float64, if some part has them."""
        likes = [part.like for part in self.parts if part.like is not None]
        double = (like for like in likes if like.dtype == namespace(like).float64)
        return next(double, likes[0] if likes else None)

    @property
    def numbers_a_start(self) -> int:
        return sum(part.numbers_a_start for part in self.parts)

    def converted(self, like: Array) -> Smooth:
        parts = tuple(part.converted(like) for part in self.parts)
        same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if same else Sum(*parts)

    def value(self, xs: Blocks) -> Array:
        return reduce(add, (part.value(xs) for part in self.parts))

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        values, gradients = zip(*(part.value_and_gradient(xs) for part in self.parts), strict=True)
        return reduce(add, values), _added(gradients)

    def gradient(self, xs: Blocks) -> Blocks:
        return _added([part.gradient(xs) for part in self.parts])

    def partial(self, xs: Blocks, i: int) -> Array:
        return reduce(add, (part.partial(xs, i) for part in self.parts))

    def sweep(self, xs: Blocks, carried: Any = None) -> Sweep:
        """Every part keeps what its own sweep keeps."""
        return _SumSweep(self, xs, carried)

    def smoothed_gradient(self, xs: Blocks, noise: Blocks, radius: Array) -> Blocks:
        """Exact where a part is differentiable, sampled where it is not."""
        return _added([part.smoothed_gradient(xs, noise, radius) for part in self.parts])

    def engine(self, xs: Blocks) -> str:
        return "; ".join(words for part in self.parts if (words := part.engine(xs)))

    def facts(self, sets: Sequence[Set]) -> Facts:
        all_facts = [part.facts(sets) for part in self.parts]
        zero = Curvature((0.0,) * len(self.shapes))
        joint = [zero if facts.concave else facts.joint for facts in all_facts]
        blockwise = [
            zero if facts.concave or facts.block_concave else facts.blockwise or facts.joint
            for facts in all_facts
        ]
        bounds = [facts.lower_bound for facts in all_facts]
        return Facts(
            joint=self._added_curvature(joint, sets),
            blockwise=self._added_curvature(blockwise, sets),
            cross=_added_cross([facts.cross for facts in all_facts]),
            concave=all(facts.concave for facts in all_facts),
            block_concave=all(facts.concave or facts.block_concave for facts in all_facts),
            convex=all(facts.convex for facts in all_facts),
            lower_bound=_added_bounds(bounds),
            odd_block=all_facts[0].odd_block
            if len({facts.odd_block for facts in all_facts}) == 1
            else None,
            differentiable=self.differentiable,
        )

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """The sum of the bounds of the parts, and the roundings of the additions."""
        bounds = [part.rounding(xs) for part in self.parts]
        if any(bound is None for bound in bounds):
            return None
        answers = [part.value_and_gradient(xs) for part in self.parts]
        adding = 1.001 * gamma(len(self.parts))
        value = reduce(
            add,
            (b[0] + adding * abs(v) for b, (v, _) in zip(bounds, answers, strict=True) if b),
        )
        entries = _added(
            [
                tuple(e + adding * abs(g) for e, g in zip(b[1], gradient, strict=True))
                for b, (_, gradient) in zip(bounds, answers, strict=True)
                if b
            ]
        )
        return 1.001 * value, tuple(1.001 * e for e in entries)

    @property
    def gradient_errors(self) -> tuple[float, ...] | None:
        declared = [part.gradient_errors for part in self.parts]
        known = [errors for errors in declared if errors is not None]
        return tuple(map(_total_up, zip(*known, strict=True))) if known else None

    @property
    def terms(self) -> int | None:
        lengths = {part.terms for part in self.parts if part.terms is not None}
        return lengths.pop() if len(lengths) == 1 else None

    def batch_gradient(self, xs: Blocks, index: Array) -> Blocks:
        if self.terms is None:
            lengths = sorted({part.terms for part in self.parts if part.terms is not None})
            raise CapabilityError(
                f"the parts of this Sum are finite sums of {lengths} terms; MiniBatch needs exactly one length: "
                "use Exact()"
            )
        return _added(
            [
                part.gradient(xs) if part.terms is None else part.batch_gradient(xs, index)
                for part in self.parts
            ]
        )

    def _added_curvature(
        self, parts: Sequence[Curvature | None], sets: Sequence[Set]
    ) -> Curvature | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        curved = [part for part in known if any(part.constants)] or known
        p = min(part.p for part in curved)
        totals = []
        for i, (own_set, shape) in enumerate(zip(sets, self.shapes, strict=True)):
            total = _total(
                part.constants[i]
                if part.p == p or part.constants[i] == 0.0
                else part.constants[i]
                * _bounds.power(_bounds.largest_distance(own_set, p, shape), part.p - p)
                for part in curved
            )
            totals.append(total * (1.0 + 16.0 * UNIT_ROUNDOFF) if len(curved) > 1 else total)
        return Curvature(tuple(totals), p) if all(map(math.isfinite, totals)) else None


class _SumSweep(Sweep):
    def __init__(self, smooth: Sum, xs: Blocks, carried: Any = None) -> None:
        super().__init__(smooth, xs)
        parts = carried or (None,) * len(smooth.parts)
        self._sweeps = [part.sweep(xs, own) for part, own in zip(smooth.parts, parts, strict=True)]

    def partial(self, i: int) -> Array:
        partial = reduce(add, (sweep.partial(i) for sweep in self._sweeps))
        self.spent = max(sweep.spent for sweep in self._sweeps)
        return partial

    def value(self) -> Array | None:
        values = [sweep.value() for sweep in self._sweeps]
        return None if any(value is None for value in values) else reduce(add, values)

    def value_and_gradient(self) -> tuple[Array, Blocks]:
        answers = [sweep.value_and_gradient() for sweep in self._sweeps]
        self.spent = max(sweep.spent for sweep in self._sweeps)
        values, gradients = zip(*answers, strict=True)
        return reduce(add, values), _added(gradients)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Blocks that are together in every part."""
        places = [
            tuple(k for sweep in self._sweeps for k, g in enumerate(sweep.groups) if i in g)
            for i in range(len(self.xs))
        ]
        return tuple(
            tuple(i for i, place in enumerate(places) if place == group)
            for group in dict.fromkeys(places)
        )

    @property
    def carried(self) -> Any:
        return tuple(sweep.carried for sweep in self._sweeps)

    def update(self, i: int, x: Array) -> None:
        super().update(i, x)
        for sweep in self._sweeps:
            sweep.update(i, x)


def _added(gradients: Sequence[Blocks]) -> Blocks:
    return tuple(reduce(add, parts) for parts in zip(*gradients, strict=True))


def _added_bounds(bounds: Sequence[float | None]) -> float | None:
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    total = _total(known)
    if not math.isfinite(total):
        return None
    return total if len(known) == 1 or total == 0.0 else math.nextafter(total, -math.inf)


def _added_cross(parts: Sequence[Curvature | None]) -> Curvature | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.p for part in known}) > 1:
        return None
    totals = tuple(map(_total_up, zip(*(part.constants for part in known), strict=True)))
    return Curvature(totals, known[0].p) if all(map(math.isfinite, totals)) else None


def _total_up(numbers: Iterable[float]) -> float:
    """The sum of numbers >= 0, rounded up where it was rounded at all."""
    several = [number for number in numbers if number > 0.0]
    total = _total(several)
    return math.nextafter(total, math.inf) if len(several) > 1 else total


def _total(numbers: Iterable[float]) -> float:
    """The sum, rounded once; infinite where it overflows."""
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf
