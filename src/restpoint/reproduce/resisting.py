"""Functions that resist as long as the theorems let them: on these the bounds are attained, or nearly so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.smooth import Function


@dataclass(frozen=True)
class Sawtooth:
    r"""f on [0, length] whose slope starts at -a, climbs as fast as (lambda, p) allows, and falls back to -a.

    The step of both algorithms from the foot of a tooth ends at the foot of the next, because its upper model is f
    up to there; so every step achieves hardly more than what is guaranteed. Flat after the last tooth.
    """

    slope: float
    constant: float
    p: float
    teeth: int
    drop: float = 1e-4  # the part of a tooth in which the slope falls back, and then waits

    @property
    def width(self) -> float:
        return float((2.0 * self.slope / (self.constant * self.p)) ** (1.0 / (self.p - 1.0)))

    def _climb(self, t: float) -> tuple[float, float]:
        """Value and slope at ``t`` from the foot, as long as the slope climbs."""
        k = 0.5 * self.constant
        return -self.slope * t + k * t**self.p, -self.slope + k * self.p * t ** (self.p - 1.0)

    def _tooth(self, t: float) -> tuple[float, float]:
        """The same up to the next foot: half of the drop falls, the rest forgives rounding."""
        peak, span = (1.0 - self.drop) * self.width, 0.5 * self.drop * self.width
        if t <= peak:
            return self._climb(t)
        value, slope = self._climb(peak)
        fall, rest = slope + self.slope, t - peak
        fallen = min(rest, span)
        value += slope * fallen - 0.5 * fall / span * fallen**2 - self.slope * (rest - fallen)
        return value, slope - fall / span * fallen

    def at(self, x: float) -> tuple[float, float]:
        """f and f' at x >= 0."""
        last = self._climb(self.width)[0]
        whole = self._tooth(self.width)[0]
        k = min(int(x / self.width), self.teeth)
        if k == self.teeth:
            return (self.teeth - 1) * whole + last, 0.0
        t = x - k * self.width
        value, slope = self._climb(t) if k == self.teeth - 1 else self._tooth(t)
        return k * whole + value, slope

    def gap(self, length: float) -> float:
        """The gap at the foot of the last tooth: no foot on the way has a smaller one."""
        return self.slope * (length - (self.teeth - 1) * self.width)

    @property
    def lowest(self) -> float:
        bottom = self.at(2.0 * self.teeth * self.width)[0]
        return bottom - 1e-12 * abs(bottom)


@dataclass(frozen=True)
class Staircase:
    """min_k l_k on the simplex of n vertices: concave, and the only way down is one vertex after the other.

    l_k is -k height at vertex k, -(k + 1) height at the next one, and large elsewhere; so the gap at every vertex but
    the last is ``height``.
    """

    stairs: int
    height: float

    @property
    def lines(self) -> np.ndarray:
        n = self.stairs
        lines = np.full((n, n), float(n) * self.height)
        for k in range(n):
            lines[k, k] = -k * self.height
            if k + 1 < n:
                lines[k, k + 1] = -(k + 1) * self.height
        return lines

    def at(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value, and the last of the active lines as a supergradient."""
        values = self.lines @ x
        k = self.stairs - 1 - int(np.argmin(values[::-1]))
        return float(values[k]), self.lines[k]

    @property
    def lowest(self) -> float:
        return -(self.stairs - 1) * self.height

    @property
    def top(self) -> np.ndarray:
        return np.eye(self.stairs)[0]


def separable(parts: list[Callable[[Any], tuple[float, Any]]], shapes: Any, **facts: Any) -> Any:
    """sum_i f_i(x_i) from functions that return value and gradient of one block."""

    def value(*xs: np.ndarray) -> float:
        return sum(part(_scalar(x))[0] for part, x in zip(parts, xs, strict=True))

    def gradient(*xs: np.ndarray) -> tuple[np.ndarray, ...]:
        found = [part(_scalar(x))[1] for part, x in zip(parts, xs, strict=True)]
        return tuple(np.broadcast_to(g, x.shape) + 0.0 for g, x in zip(found, xs, strict=True))

    return Function(value, gradient, shapes=shapes, **facts)


def _scalar(x: np.ndarray) -> Any:
    return float(x[0]) if x.size == 1 else x
