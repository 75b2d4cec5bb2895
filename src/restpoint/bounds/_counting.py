"""max{1, ceil(delta / omega_D(eps))}, computed so that it is never too small.

A count that is too small by one would be a false claim, so the quotient is bracketed by its rounding
error: an integer inside the bracket is decided in exact arithmetic where the quotient is rational
(p = 2, or no curvature), and by the upper end of the bracket otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from typing import Any

import numpy as np

from restpoint.array import (
    UNIT_ROUNDOFF,
    Array,
    is_array,
    real_number,
    to_host,
    truth,
    whole_number,
)
from restpoint.bounds._bound import Bound, shown
from restpoint.errors import DataError, ShapeError
from restpoint.omega import conjugate, omega

_EXACT_BELOW = 2.0**53  # every integer up to here is a float64
_UNDERFLOW = 1e-290  # decreases below have lost digits; the count that they give is infinite

_STANDING = (
    "S is nonempty, convex and compact; h is convex, closed and finite on S",
    "every subproblem is solved exactly",
)


@dataclass(frozen=True)
class Data:
    """The checked numbers of one theorem: a step lowers Phi by omega_D(eps / divisor) or more.

    D is the sum of the blocks' D_i if ``joined``, else their maximum, whose omega is the smallest.
    """

    eps: np.ndarray
    delta: np.ndarray
    constants: tuple[np.ndarray, ...]
    diameters: tuple[np.ndarray, ...]
    p: float
    divisor: int
    joined: bool
    missing: tuple[str, ...]

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
        if delta is None or _all_infinite(delta):
            missing.append("a lower bound on Phi")
        if _lacks(constants):
            missing.append("the constant lambda")
        if _lacks(diameters):
            missing.append("the diameter of S")
        flat = constants is not None and all(v is not None and _is_zero(v) for v in constants)
        data = cls(
            eps=_number("eps", eps, positive=True),
            delta=np.asarray(math.inf) if delta is None else _difference(delta),
            constants=tuple(_number("constant", v) for v in constants or () if v is not None),
            diameters=tuple(_number("diameter", v) for v in diameters or () if v is not None),
            p=_exponent(p, truth("concave", concave) or flat),
            divisor=divisor,
            joined=joined,
            missing=tuple(missing),
        )
        _ = data.shape  # entries that do not broadcast are refused here
        return data

    @property
    def shape(self) -> tuple[int, ...]:
        """The common batch shape."""
        shapes = [a.shape for a in (self.eps, self.delta, *self.constants, *self.diameters)]
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
            parts = [_product(constant, diameter, self.p) for constant, diameter in pairs]
            return np.asarray(reduce(np.add if self.joined else np.maximum, parts))

    def decrease(self) -> np.ndarray:
        """omega_D(eps / divisor), in floating point."""
        return np.asarray(omega(self.eps / self.divisor, self.curvature(), self.p))

    def count(self) -> np.ndarray:
        """max{1, ceil(delta / omega_D(eps / divisor))}."""
        decrease = self.decrease()
        with np.errstate(all="ignore"):
            quotient = np.where(decrease < _UNDERFLOW, np.inf, self.delta / decrease)
        return self._ceiling(quotient, self._exact() if self._rational() else None)

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
            valid = np.broadcast_to(self.eps < _product(constant, smallest, self.p), self.shape)
        if not bool(np.any(valid)):
            return None
        if self.p == 2.0:  # where eps < D, the sharp form and the printed one are the same number
            return np.where(valid, largest.count(), np.nan)
        with np.errstate(all="ignore"):
            power = (largest.curvature() / self.eps) ** (1.0 / (self.p - 1.0))
            quotient = 2.0 * self.delta / self.eps * power
        return np.where(valid, largest._ceiling(quotient, None), np.nan)

    def armijo(self, assumption: str) -> Bound:
        """The bound of theory A3: 2 delta / (eps s) accepted steps, s the shortest step length but for a factor 2."""
        bound = self.bound(
            "Armijo steps",
            assumption=f"f is differentiable on S, with {assumption}",
            hidden=("decrease",),
        )
        if bound.count is None:
            return bound.with_trials("one step length found by trial", 0.0)
        with np.errstate(all="ignore"):
            shortest = np.minimum(
                1.0, 0.5 * (self.eps / self.curvature()) ** (1.0 / (self.p - 1.0))
            )
            quotient = 2.0 * self.delta / (self.eps * shortest)
        steps = dataclasses.replace(bound, count=_plain(self._ceiling(quotient, None)))
        return steps.with_trials("one step length found by trial", _plain(-np.log2(shortest)))

    def bound(
        self,
        statement: str,
        *,
        assumption: str,
        counts: str = "iterations",
        paper: np.ndarray | None = None,
        blocks: int | None = None,
        hidden: tuple[str, ...] = (),
    ) -> Bound:
        """The ``Bound``, numbers without axes as Python floats; ``hidden`` constants are left out."""
        count = None if self.missing else self.count()
        if count is not None and paper is not None:
            # Both are true. For p < 2 the bracket of the sharp quotient may be the wider one.
            count = np.fmin(count, paper)
        flat = bool(self.constants) and all(_is_zero(value) for value in self.constants)
        named = self._named() | ({} if blocks is None else {"blocks": blocks})
        return Bound(
            count=_plain(count),
            paper=None if self.missing else _plain(paper),
            statement=statement,
            counts=counts,
            assumptions=(assumption, *_STANDING),
            constants={name: value for name, value in named.items() if name not in hidden},
            missing=self.missing,
            rate="O(1/eps)" if flat else f"O(1/eps^{conjugate(self.p):.4g})",
        )

    def _named(self) -> dict[str, Any]:
        """What went in, by the names of the theory."""
        several = max(len(self.constants), len(self.diameters)) > 1
        named: dict[str, Any] = {"eps": _plain(self.eps)}
        if "a lower bound on Phi" not in self.missing:
            named["delta"] = _plain(self.delta)
        for name, values in (("lambda", self.constants), ("diameter", self.diameters)):
            for i, value in enumerate(values):
                named[f"{name}_{i + 1}" if several else name] = _plain(value)
        named["p"] = self.p
        if self.constants and len(self.constants) == len(self.diameters):
            named |= {"D": _plain(self.curvature()), "decrease": _plain(self.decrease())}
        return named

    def _rational(self) -> bool:
        """Whether delta / omega_D(eps / divisor) is a rational function of the inputs."""
        return self.p == 2.0 or all(_is_zero(value) for value in self.constants)

    def _exact(self) -> Callable[[tuple[int, ...]], int]:
        """The ceiling at one start, in exact arithmetic on the floats given."""
        inputs = (self.eps, self.delta, *self.constants, *self.diameters)
        arrays = [np.broadcast_to(array, self.shape) for array in inputs]
        blocks = len(self.constants)

        @cache  # starts that share all their numbers are common
        def ceiling(numbers: tuple[float, ...]) -> int:
            eps, delta, *rest = (Fraction(number) for number in numbers)
            gap, pairs = eps / self.divisor, zip(rest[:blocks], rest[blocks:], strict=True)
            parts = [constant * diameter**2 for constant, diameter in pairs]
            curvature = sum(parts, Fraction(0)) if self.joined else max(parts)
            full = gap >= curvature
            decrease = gap - curvature / 2 if full else gap * gap / (2 * curvature)
            return math.ceil(delta / decrease)

        return lambda index: ceiling(tuple(float(array[index]) for array in arrays))

    def _ceiling(
        self, quotient: np.ndarray, exact: Callable[[tuple[int, ...]], int] | None
    ) -> np.ndarray:
        """max{1, ceil(quotient)}, its rounding error settled by ``exact`` or else upwards."""
        slack = self._slack()
        with np.errstate(all="ignore"):
            quotient = np.maximum(np.broadcast_to(quotient, self.shape), 1e-300)
            margin = np.where(slack < 0.5, np.exp(2.0 * slack), np.inf)
            low, high = np.ceil(quotient / margin), np.ceil(quotient * margin)
        high = np.where(self.delta == 0.0, 1.0, np.maximum(high, 1.0))
        if exact is not None:
            for found in np.argwhere((low < high) & (high > 1.0) & (high < _EXACT_BELOW)):
                index = tuple(int(i) for i in found)
                high[index] = max(1, exact(index))
        return high

    def _slack(self) -> np.ndarray:
        """The relative rounding error of the quotients, to first order and generously.

        A power 1/(p-1) multiplies the errors of its base by the exponent, and that of its exponent
        by |log base|; where the step is full, a - D/2 >= (p-1) D/2 cancels no more than that.
        """
        with np.errstate(all="ignore"):
            base = self.eps / (self.divisor * 0.5 * self.p * self.curvature())
            logarithm = np.abs(np.log(np.where(base < 1.0, base, 1.0)))
        return np.asarray(
            UNIT_ROUNDOFF * (32.0 + len(self.constants) + (32.0 + logarithm) / (self.p - 1.0))
        )


# --- the door ------------------------------------------------------------------------------------


def block_divisor(blocks: Any, measure: str) -> int:
    """1 for the largest gap; d for the sum, which exceeds eps only if some gap exceeds eps / d."""
    blocks = whole_number("blocks", blocks, 1)
    if measure not in ("max", "sum"):
        raise DataError(f"measure is {measure!r}; expected 'max' or 'sum'")
    return blocks if measure == "sum" else 1


def _product(constant: np.ndarray, diameter: np.ndarray, p: float) -> np.ndarray:
    """The D of one block: lambda diam^p, and 0 where lambda is 0 even if the power overflows.

    Half of the power at a time: for p <= 2 neither half overflows or underflows, and the product only if D does. (For
    p > 2, f is concave, and any D is true.)
    """
    half = np.where(constant == 0.0, 0.0, diameter) ** (0.5 * p)
    return np.asarray(constant * half * half)


def _lacks(values: Sequence[Array | None] | None) -> bool:
    """Whether something is unknown; an empty sequence speaks of no block at all."""
    if values is None:
        return True
    if not values:
        raise ShapeError("constants and diameters are empty; expected one entry per block")
    return any(value is None for value in values)


def _is_zero(value: Array) -> bool:
    return bool(np.all(_host("constant", value) == 0))


def _all_infinite(delta: Array) -> bool:
    return bool(np.all(_host("delta", delta) == math.inf))


def _host(name: str, value: Array) -> np.ndarray:
    """A number or an array of any library as NumPy float64."""
    array = np.asarray(to_host(value) if is_array(value) else value)
    if array.dtype.kind not in "iuf":
        raise DataError(f"{name} is {value!r}; expected a number, or an array of numbers")
    return array.astype(np.float64)


def entries(name: str, values: Any) -> Sequence[Array | None] | None:
    """What was given for each block, in a tuple, a list or an array of one axis; None if nothing was."""
    if values is None or isinstance(values, (tuple, list)):
        return values
    if is_array(values) and values.ndim == 1:
        return tuple(to_host(values))
    raise ShapeError(f"{name} is {values!r}; expected one entry per block, as in {name}=(1.0, 2.0)")


def _number(name: str, value: Array, *, positive: bool = False) -> np.ndarray:
    """One of the numbers of a theorem: finite, and > 0 or >= 0."""
    array = _host(name, value)
    if not bool(np.all(np.isfinite(array))):
        unknown = "" if positive else "; pass None for what is not known"
        raise DataError(f"{name} is {shown(array)}; expected finite numbers{unknown}")
    if not bool(np.all(array > 0 if positive else array >= 0)):
        raise DataError(f"{name} is {shown(array)}; expected {'> 0' if positive else '>= 0'}")
    return array


def _difference(delta: Array) -> np.ndarray:
    """Phi(x1) - lower bound >= 0; NaN and infinity are kept. What rounding may explain, only its origin can tell."""
    array = _host("delta", delta)
    if bool(np.any(array < 0.0)):
        raise DataError(
            f"delta is {shown(array)}: Phi(x1) lies below its lower bound, which is therefore wrong; "
            "correct it, pass delta=None, or add to delta what rounding explains"
        )
    if bool(np.all(np.isnan(array))):
        raise DataError(
            f"delta is {shown(array)}; pass delta=None if no lower bound on Phi is known"
        )
    return array


def _exponent(p: float, concave: bool) -> float:
    p = real_number("p", p, "a number in (1, 2]")
    if not p > 1.0:
        raise DataError(f"p must be a number in (1, 2], got {p}")
    if p > 2.0 and not concave:
        raise DataError(
            f"p is {p}; for p > 2 the inequality holds for concave f alone (theory E2): "
            "say concave=True if f is, else take p <= 2"
        )
    return p


def _plain(value: np.ndarray | None) -> Any:
    """A number without axes as a Python float."""
    return float(value) if value is not None and value.ndim == 0 else value
