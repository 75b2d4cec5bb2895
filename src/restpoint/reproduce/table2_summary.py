"""Table 2, one line for each size, penalty and method: what is printed beside what we find."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from restpoint.reproduce.compared import NAN, Compared, mean, means, median, medians, percentile
from restpoint.reproduce.printed import TABLE_2, Pair
from restpoint.reproduce.table2 import ADMM, ADMMS, ALGORITHM_1, PAPER, SAME, Row


@dataclass(frozen=True)
class Summary:
    """One method with one penalty at one size; all runs count.

    ``ratio`` is that of the iterations to those of Algorithm 1, instance by instance, each by its own rule; ``near``
    the same for the iterations until Phi is as low as where Algorithm 1 ended, over the ``nearing`` share of runs that
    came so low. ``less`` is Phi of Algorithm 1 less that of the method.
    """

    n: int
    penalty: str
    method: str
    runs: int
    phi: Compared  # means
    iterations: Compared  # medians
    iterations_10: float  # percentiles of ours
    iterations_90: float
    ratio: Compared  # medians
    near: float  # median
    nearing: float
    less: Compared  # medians
    less_median: float  # of its size, in units of |Phi|
    less_90: float
    milliseconds: float  # median
    gap: float  # median of the certified gaps
    distance: float  # median of the distances to the end of Algorithm 1, up to the sign
    same: float  # share of runs nearer than SAME
    zeros: float  # mean share of the (DNx)_i
    ended: float  # share of runs that ended by a rule, and not by a limit


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One line for each size, penalty and method, in the order of the rows."""
    firsts = {(r.n, r.penalty, r.instance): r for r in rows if r.method == ALGORITHM_1}
    keys = dict.fromkeys((r.n, r.penalty, r.method) for r in rows)
    found = []
    for key in keys:
        own = [r for r in rows if (r.n, r.penalty, r.method) == key]
        pairs = [(r, firsts.get((r.n, r.penalty, r.instance))) for r in own]
        found.append(_summary(own, [(r, first) for r, first in pairs if first is not None]))
    return found


def _summary(own: list[Row], pairs: list[tuple[Row, Row]]) -> Summary:
    row = own[0]
    printed = TABLE_2.get(row.n, []) if row.penalty == PAPER else []
    first, other = row.method == ALGORITHM_1, row.method == ADMM
    values, counts = _printed(printed, row.method)
    counted = [r.iterations for r in own]
    lows = [r.near / max(one.iterations, 1) for r, one in pairs if math.isfinite(r.near)]
    less = [one.phi - r.phi for r, one in pairs]
    relative = [abs(one.phi - r.phi) / abs(one.phi) for r, one in pairs if one.phi]
    return Summary(
        n=row.n,
        penalty=row.penalty,
        method=row.method,
        runs=len(own),
        phi=means(values, [r.phi for r in own]),
        iterations=medians(counts, counted),
        iterations_10=percentile(counted, 10),
        iterations_90=percentile(counted, 90),
        ratio=Compared(NAN, NAN)
        if first
        else medians(
            [p.admm_iterations / p.iterations for p in printed] if other else [],
            [r.iterations / max(one.iterations, 1) for r, one in pairs],
        ),
        near=NAN if first else median(lows),
        nearing=NAN if first or not pairs else len(lows) / len(pairs),
        less=Compared(NAN, NAN)
        if first
        else medians([p.value - p.admm_value for p in printed] if other else [], less),
        less_median=NAN if first else median(relative),
        less_90=NAN if first else percentile(relative, 90),
        milliseconds=median([r.milliseconds for r in own]),
        gap=median([r.gap for r in own]),
        distance=NAN if first else median([r.distance for r in own]),
        same=NAN if first else mean([r.distance <= SAME for r in own]),
        zeros=mean([r.zeros for r in own]),
        ended=mean([r.status != "ITERATION_LIMIT" for r in own]),
    )


def _printed(rows: list[Pair], method: str) -> tuple[list[float], list[float]]:
    """Objectives and iterations that the paper prints of a method."""
    if method == ALGORITHM_1:
        return [p.value for p in rows], [p.iterations for p in rows]
    if method == ADMM:
        return [p.admm_value for p in rows], [p.admm_iterations for p in rows]
    return [], []


def by_beta(lines: Sequence[Summary], figure: Callable[[Summary], float]) -> dict[float, float]:
    """A figure of the lines of ADMM for each beta."""
    return {ADMMS[line.method]: figure(line) for line in lines if line.method in ADMMS}


def spread_of_ratios(rows: Sequence[Row], n: int, penalty: str, method: str) -> np.ndarray:
    """The ratios of iterations to those of Algorithm 1, instance by instance."""
    own = {(r.instance, r.method): r for r in rows if (r.n, r.penalty) == (n, penalty)}
    return np.array(
        [
            row.iterations / max(own[k, ALGORITHM_1].iterations, 1)
            for (k, name), row in own.items()
            if name == method and (k, ALGORITHM_1) in own
        ]
    )
