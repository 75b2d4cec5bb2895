"""max{1, ceil(delta / decrease)}, computed so that it is never too small.

A count that is too small by one would be a false claim, so the decrease is bracketed by its rounding error: an
integer that the bracket leaves in doubt is decided in exact arithmetic where everything is rational (p = 2, or no
curvature), and by the smaller decrease otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array, truth
from restpoint.bounds._bound import Bound
from restpoint.bounds._numbers import (
    all_infinite,
    difference,
    exponent,
    is_zero,
    lacks,
    number,
    plain,
    product,
)
from restpoint.errors import ShapeError
from restpoint.omega import conjugate, omega

_EXACT_BELOW = 2.0**53  # every integer up to here is a float64
_UNDERFLOW = 1e-290  # decreases below have lost digits; the count that they give is infinite

STANDING = (
    "S is nonempty, convex and compact; h is convex, closed and finite on S",
    "every subproblem is solved exactly",
)


class Rule(NamedTuple):
    """By how much a step lowers Phi as long as the gap exceeds eps: from eps, D, p and further numbers.

    ``exact`` says the same of fractions, for p = 2 and for D = 0; None where that is no fraction.
    """

    floats: Callable[..., np.ndarray]
    exact: Callable[..., Fraction] | None


def exact_omega(a: Fraction, curvature: Fraction) -> Fraction:
    """omega_D(a) for p = 2."""
    return a - curvature / 2 if a >= curvature else a * a / (2 * curvature)


OMEGA = Rule(omega, exact_omega)


@dataclass(frozen=True)
class Data:
    """The checked numbers of one theorem: a step lowers Phi by what ``rule`` says of eps / divisor and D, or more.

    D is the sum of the blocks' D_i if ``joined`` (and the largest once more if ``twice``), else their maximum, whose
    decrease is the smallest. ``lost`` is what a step may fall short by (theory A5(i)), ``more`` what the rule needs
    beside D.
    """

    eps: np.ndarray
    delta: np.ndarray
    constants: tuple[np.ndarray, ...]
    diameters: tuple[np.ndarray, ...]
    p: float
    divisor: int
    joined: bool
    missing: tuple[str, ...]
    rule: Rule = OMEGA
    lost: np.ndarray = dataclasses.field(default_factory=lambda: np.asarray(0.0))
    more: tuple[np.ndarray, ...] = ()
    twice: bool = False

    @classmethod
    def checked(
        cls,
        eps: Array,
        delta: Array | None,
        constants: Sequence[Array | None] | None = (0.0,),
        diameters: Sequence[Array | None] | None = (0.0,),
        *,
        p: float = 2.0,
        concave: bool = False,
        divisor: int = 1,
        joined: bool = False,
    ) -> Data:
        """Read what the user gave; by default a concave f, which needs neither lambda nor diam."""
        if constants is not None and diameters is not None and len(constants) != len(diameters):
            raise ShapeError(
                f"constants has {len(constants)} entries and diameters {len(diameters)}; "
                "expected one of each per block"
            )
        missing = []
        if delta is None or all_infinite(delta):
            missing.append("a lower bound on Phi")
        if lacks(constants):
            missing.append("the constant lambda")
        if lacks(diameters):
            missing.append("the diameter of S")
        flat = constants is not None and all(v is not None and is_zero(v) for v in constants)
        return cls(
            eps=number("eps", eps, positive=True),
            delta=np.asarray(math.inf) if delta is None else difference(delta),
            constants=tuple(number("constant", v) for v in constants or () if v is not None),
            diameters=tuple(number("diameter", v) for v in diameters or () if v is not None),
            p=exponent(p, truth("concave", concave) or flat),
            divisor=divisor,
            joined=joined,
            missing=tuple(missing),
        ).with_shape()

    def with_shape(self) -> Data:
        """Itself; entries that do not broadcast are refused."""
        _ = self.shape
        return self

    def following(self, rule: Rule, *more: np.ndarray, lost: Array = 0.0) -> Data:
        """The same numbers under another rule."""
        lost = number("slack", lost)
        return dataclasses.replace(self, rule=rule, more=more, lost=lost).with_shape()

    def lacking(self, *missing: str) -> Data:
        """The same with more that is not known."""
        return dataclasses.replace(self, missing=(*self.missing, *missing))

    @property
    def shape(self) -> tuple[int, ...]:
        """The common batch shape."""
        numbers = (self.eps, self.delta, *self.constants, *self.diameters, self.lost, *self.more)
        shapes = [a.shape for a in numbers]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError as error:
            raise ShapeError(
                f"eps, delta, constants and diameters have shapes {shapes}, which do not broadcast; "
                "give numbers, or arrays with one entry per start"
            ) from error

    def curvature(self) -> np.ndarray:
        """D, in floating point."""
        pairs = zip(self.constants, self.diameters, strict=True)
        with np.errstate(over="ignore"):
            parts = [product(constant, diameter, self.p) for constant, diameter in pairs]
            largest = reduce(np.maximum, parts)
            if not self.joined:
                return np.asarray(largest)
            total = reduce(np.add, parts)
            return np.asarray(total + largest if self.twice else total)

    def decrease(self) -> np.ndarray:
        """What a step guarantees, in floating point."""
        with np.errstate(all="ignore"):
            gap, D = self.eps / self.divisor, self.curvature()
            return np.asarray(self.rule.floats(gap, D, self.p, *self.more))

    def count(self) -> np.ndarray:
        """max{1, ceil(delta / (decrease - lost))}; infinite where nothing is left of the decrease."""
        rational = self.rule.exact is not None and (
            self.p == 2.0 or all(is_zero(value) for value in self.constants)
        )
        exact = self._exact() if rational else None
        return counted(self.delta, self.decrease(), self.error(), self.lost, self.shape, exact)

    def paper(self) -> np.ndarray | None:
        """max{1, ceil(2 delta D^(q-1) / eps^q)}, the largest lambda and diameter making D.

        Entrywise NaN where its condition fails, eps < D with the smallest diameter; None if it fails
        everywhere. The largest gap is the paper's only criterion.
        """
        constant = reduce(np.maximum, self.constants)
        largest = dataclasses.replace(
            self, constants=(constant,), diameters=(reduce(np.maximum, self.diameters),), divisor=1
        )
        smallest = reduce(np.minimum, self.diameters)
        with np.errstate(over="ignore"):
            valid = np.broadcast_to(self.eps < product(constant, smallest, self.p), self.shape)
        if not bool(np.any(valid)):
            return None
        if self.p == 2.0:  # where eps < D, the sharp form and the printed one are the same number
            return np.where(valid, largest.count(), np.nan)
        with np.errstate(all="ignore"):
            power = (self.eps / largest.curvature()) ** (1.0 / (self.p - 1.0))
            decrease = 0.5 * self.eps * power
        return np.where(
            valid,
            counted(self.delta, decrease, largest.error(), np.asarray(0.0), self.shape),
            np.nan,
        )

    def bound(
        self,
        statement: str,
        *,
        assumption: str,
        counts: str = "iterations",
        paper: np.ndarray | None = None,
        blocks: int | None = None,
        hidden: tuple[str, ...] = (),
        more: dict[str, Any] | None = None,
    ) -> Bound:
        """The ``Bound``, numbers without axes as Python floats; ``hidden`` constants are left out, ``more`` put in."""
        count = None if self.missing else self.count()
        if count is not None and paper is not None:
            # Both are true. For p < 2 the bracket of the sharp quotient may be the wider one.
            count = np.fmin(count, paper)
        flat = bool(self.constants) and all(is_zero(value) for value in self.constants)
        named = {name: value for name, value in self.named().items() if name not in hidden}
        named |= ({} if blocks is None else {"blocks": blocks}) | (more or {})
        return Bound(
            count=plain(count),
            paper_bound=None if self.missing else plain(paper),
            statement=statement,
            counts=counts,
            assumptions=(assumption, *STANDING),
            constants=named,
            missing=self.missing,
            rate="O(1/eps)" if flat else f"O(1/eps^{conjugate(self.p):.4g})",
        )

    def named(self) -> dict[str, Any]:
        """What went in, by the names of the theory."""
        several = max(len(self.constants), len(self.diameters)) > 1
        named: dict[str, Any] = {"eps": plain(self.eps)}
        if "a lower bound on Phi" not in self.missing:
            named["delta"] = plain(self.delta)
        for name, values in (("lambda", self.constants), ("diameter", self.diameters)):
            for i, value in enumerate(values):
                named[f"{name}_{i + 1}" if several else name] = plain(value)
        named["p"] = self.p
        if self.constants and len(self.constants) == len(self.diameters):
            named |= {"D": plain(self.curvature()), "decrease": plain(self.decrease())}
        if np.any(self.lost > 0.0):
            named["slack"] = plain(self.lost)
        return named

    def _exact(self) -> Callable[[tuple[int, ...]], int]:
        """The ceiling at one start, in exact arithmetic on the floats given."""
        inputs = (self.eps, self.delta, self.lost, *self.more, *self.constants, *self.diameters)
        arrays = [np.broadcast_to(array, self.shape) for array in inputs]
        begin, blocks = 3 + len(self.more), len(self.constants)

        @cache  # starts that share all their numbers are common
        def ceiling(numbers: tuple[float, ...]) -> int:
            eps, delta, lost, *rest = (Fraction(number) for number in numbers)
            more, rest = rest[: begin - 3], rest[begin - 3 :]
            pairs = zip(rest[:blocks], rest[blocks:], strict=True)
            parts = [constant * diameter**2 for constant, diameter in pairs]
            curvature = sum(parts, self.twice * max(parts)) if self.joined else max(parts)
            assert self.rule.exact is not None
            decrease = self.rule.exact(eps / self.divisor, curvature, *more) - lost
            return math.ceil(delta / decrease)

        return lambda index: ceiling(tuple(float(array[index]) for array in arrays))

    def error(self) -> np.ndarray:
        """The relative rounding error of the decrease, to first order and generously.

        A power 1/(p-1) multiplies the errors of its base by the exponent, and that of its exponent
        by |log base|; where the step is full, a - D/2 >= (p-1) D/2 cancels no more than that.
        """
        with np.errstate(all="ignore"):
            base = self.eps / (self.divisor * 0.5 * self.p * self.curvature())
            logarithm = np.abs(np.log(np.where(base < 1.0, base, 1.0)))
        return np.asarray(
            UNIT_ROUNDOFF * (32.0 + len(self.constants) + (32.0 + logarithm) / (self.p - 1.0))
        )


def counted(
    delta: np.ndarray,
    decrease: np.ndarray,
    error: np.ndarray,
    lost: np.ndarray,
    shape: tuple[int, ...],
    exact: Callable[[tuple[int, ...]], int] | None = None,
) -> np.ndarray:
    """max{1, ceil(delta / (decrease - lost))}, where ``decrease`` has relative rounding error ``error``."""
    with np.errstate(all="ignore"):
        margin = np.where(error < 0.5, np.exp(2.0 * error), np.inf)
        usable = np.where(decrease < _UNDERFLOW, 0.0, decrease)
        least, most = usable / margin - lost, usable * margin - lost
        quotients = [np.where(v <= 0.0, np.inf, delta / v) for v in (most, least)]
    return np.where(
        np.broadcast_to(delta, shape) == 0.0, 1.0, ceiling(*quotients, shape=shape, exact=exact)
    )


def ceiling(
    low: np.ndarray,
    high: np.ndarray,
    *,
    shape: tuple[int, ...],
    exact: Callable[[tuple[int, ...]], int] | None = None,
) -> np.ndarray:
    """max{1, ceil(q)} of a quotient between ``low`` and ``high``; in doubt what ``exact`` says, or the larger."""
    with np.errstate(all="ignore"):
        low, high = (
            np.array(np.maximum(np.ceil(np.broadcast_to(v, shape)), 1.0)) for v in (low, high)
        )
    if exact is not None:
        for found in np.argwhere((low < high) & (high < _EXACT_BELOW)):
            index = tuple(int(i) for i in found)
            high[index] = max(1, exact(index))
    return np.asarray(high)
