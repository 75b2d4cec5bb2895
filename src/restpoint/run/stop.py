"""When to end, and what eps means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from restpoint.array import real_number
from restpoint.errors import DataError, described
from restpoint.run.retire import Retire

# The eps of a start without a scale: above what underflows in a certificate of the zero function.
SMALLEST = 1e-280
# Below, the gap that certificates allow for the underflow of squares is no longer small beside eps.
UNDERFLOWING = 2.0**-500


@dataclass(frozen=True)
class Relative:
    """eps in units of max(|Phi(x1)|, gap(x1)), per start: data in other units get the same answer.

    >>> Relative(1e-8)
    Relative(eps=1e-08)
    """

    eps: float

    def __post_init__(self) -> None:
        eps = real_number("eps of Relative", self.eps, "a number in (0, 1)")
        if not 0 < eps < 1:
            raise DataError(f"eps of Relative must be a number in (0, 1), got {eps}")
        object.__setattr__(self, "eps", eps)

    def absolute(self, value: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """eps of every start; one with Phi = gap = 0 has no scale, and whatever is positive will do."""
        return np.maximum(self.eps * np.maximum(np.abs(value), gap), SMALLEST)


def usable(eps: np.ndarray) -> np.ndarray:
    """A start whose Phi is NaN has no relative eps; it ends as NON_FINITE, and others keep their bounds."""
    return np.where(np.isfinite(eps), eps, SMALLEST)


def absolute(eps: float | Relative, value: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """eps of every start, from what was seen first."""
    if isinstance(eps, Relative):
        return usable(eps.absolute(value, gap))
    return usable(np.full(len(value), eps, dtype=np.float64))


def trouble_of_scale(eps: np.ndarray, value: np.ndarray, gap: np.ndarray) -> str:
    """What to do about data so small or large that the squares in a norm underflow or overflow; "" if they are not."""
    if np.any(np.isinf(value) | np.isinf(gap)):
        return (
            "Phi or its gap overflows at a starting point; if it is the data that are so large, "
            "divide f and the penalties by one number"
        )
    if np.any((eps < UNDERFLOWING) & ((value != 0) | (gap > 0))):
        return (
            f"eps is {np.min(eps):.1e} at some start, where squares underflow and nothing can be told apart; "
            "multiply f and the penalties by one number"
        )
    return ""


Measure = Literal["max", "sum"]


@dataclass(frozen=True)
class Stop:
    """The rules that end a run, apart from the certificate; each start is judged by itself.

    max_iterations         iterations of the method, default 10,000
    max_seconds            wall time of the whole run, default none
    max_gradients          gradient evaluations (of all blocks; a partial one counts 1/d), default none
    max_oracle_calls       linear and proximal oracle calls, default none
    target_value           end with TARGET_REACHED once Phi <= target_value, default none
    value_change           STALLED once a step made |Phi_k - Phi_(k-1)| <= value_change, default none
    relative_value_change  the same in units of |Phi_k|, default none
    patience               STALLED after so many iterations without a change of Phi, the gap, or what the method tries
                           next, in any bit; None: go on
    retire                 which starts to give up in favour of others, see ``Retire``; default none
    measure                what eps bounds: "max" of the block gaps (the paper's notion) or their "sum" (joint)
    feasibility            the violation that a certified point may have, in units of the set's radius;
                           default 1e-12, or 1e-6 for float32 points
    """

    max_iterations: int = 10_000
    max_seconds: float | None = None
    max_gradients: float | None = None
    max_oracle_calls: float | None = None
    target_value: float | None = None
    value_change: float | None = None
    relative_value_change: float | None = None
    patience: int | None = 100
    retire: Retire | None = None
    measure: Measure = "max"
    feasibility: float | None = None

    def __post_init__(self) -> None:
        if self.measure not in ("max", "sum"):
            raise DataError(f'measure must be "max" or "sum", got {self.measure!r}')
        if self.retire is not None and not isinstance(self.retire, Retire):
            raise DataError(
                f"retire must be restpoint.Retire() or None, got {described(self.retire)}"
            )
        for name in ("max_seconds", "max_gradients", "max_oracle_calls"):
            self._settle(name, 0, finite=False)
        for name in ("value_change", "relative_value_change", "feasibility"):
            self._settle(name, 0)
        self._settle("target_value")
        self._settle("patience", 1, whole=True)
        if self.max_iterations is None:
            raise DataError("max_iterations must be a whole number >= 0, got None")
        self._settle("max_iterations", 0, whole=True)

    def _settle(
        self, name: str, least: int | None = None, *, whole: bool = False, finite: bool = True
    ) -> None:
        """Check one rule and keep it as a plain number."""
        value: Any = getattr(self, name)
        if value is None:
            return
        expected = "a whole number" if whole else "a finite number" if finite else "a number"
        expected += "" if least is None else f" >= {least}"
        number = real_number(name, value, expected, finite=finite)
        if (whole and not number.is_integer()) or (least is not None and number < least):
            raise DataError(f"{name} must be {expected}, got {value!r}")
        object.__setattr__(self, name, int(number) if whole else number)

    @property
    def watches_value(self) -> bool:
        """Whether some rule needs Phi, which sampled gradients do not come with."""
        rules = (self.target_value, self.value_change, self.relative_value_change, self.retire)
        return any(rule is not None for rule in rules)
