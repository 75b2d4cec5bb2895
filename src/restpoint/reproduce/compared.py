"""A figure of the paper beside ours, and figures with the windows that they have to lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NAN = float("nan")
# A printed figure further than this from ours, in standard errors, does not fit.
FITS = 3.0


@dataclass(frozen=True)
class Compared:
    """A figure of the paper (NaN where it prints none) beside ours.

    ``deviations`` is how far the printed figure is from ours in standard errors of their difference: the spread of
    single runs is taken from ours, which are more.
    """

    printed: float
    ours: float
    spread: float = NAN  # standard deviation of one run
    deviations: float = NAN


@dataclass(frozen=True)
class Verdict:
    """One figure, and the window that it has to lie in."""

    name: str  # R1 to R6
    n: int
    what: str
    figure: float
    low: float
    high: float

    @property
    def met(self) -> bool:
        """NaN meets nothing."""
        return self.low <= self.figure <= self.high


def means(printed: Sequence[float], ours: Sequence[float]) -> Compared:
    """The means of single runs."""
    if not ours:
        return Compared(mean(printed), NAN)
    spread = float(np.std(ours, ddof=1)) if len(ours) > 1 else NAN
    return apart(mean(printed), len(printed), mean(ours), len(ours), spread)


def medians(printed: Sequence[float], ours: Sequence[float]) -> Compared:
    """The medians of single runs; no standard errors."""
    return Compared(median(printed), median(ours))


def apart(printed: float, of: int, ours: float, count: int, spread: float) -> Compared:
    """Two means, over ``of`` and ``count`` runs of the same spread."""
    error = spread * np.sqrt(1.0 / of + 1.0 / count) if of else NAN
    return Compared(printed, ours, spread, float((printed - ours) / error) if error > 0 else NAN)


def mean(values: Sequence[float]) -> float:
    """NaN for none."""
    return float(np.mean(values)) if values else NAN


def median(values: Sequence[float]) -> float:
    """NaN for none."""
    return float(np.median(values)) if values else NAN


def percentile(values: Sequence[float], q: float) -> float:
    """NaN for none."""
    return float(np.percentile(values, q)) if values else NAN
