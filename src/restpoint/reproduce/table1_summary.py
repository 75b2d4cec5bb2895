"""Table 1, one line for each size and method: what is printed beside what we find, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restpoint.reproduce.compared import NAN, Compared, apart, means, median, percentile
from restpoint.reproduce.printed import TABLE_1, Run
from restpoint.reproduce.table1 import CAP, LOW, PRINTED, SPHERES, ZERO, Row


@dataclass(frozen=True)
class Summary:
    """One method at one size.

    ``value`` and ``nonzeros`` are means over the runs that did not collapse; on the spheres of |A(x)|. ``iterations``
    is the median over the same runs, on the spheres over all. Shares are of all runs.
    """

    n: int
    method: str
    runs: int
    kept: int  # runs that did not collapse
    value: Compared
    nonzeros: Compared
    iterations: Compared
    iterations_10: float  # percentiles of ours
    iterations_90: float
    collapsed: Compared  # share that ended at zero; on the spheres: in cycles of low value
    negative: Compared  # share with A(x) < 0
    capped: Compared  # share that reached the last iteration allowed
    rising: float  # share in which Phi rose at some iteration
    lambda_mean: float  # needed by the steps of a run
    lambda_largest: float
    gap: float  # median of the certified gaps
    gap_negative: float  # smallest certified gap of the runs with A(x) < 0; NaN without such runs
    phi: float  # mean over all runs


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """One line for each size and method, in the order of the rows."""
    keys = dict.fromkeys((row.n, row.method) for row in rows)
    return [_summary(*key, [row for row in rows if (row.n, row.method) == key]) for key in keys]


def _summary(n: int, name: str, rows: list[Row]) -> Summary:
    spheres = name in SPHERES
    printed = printed_runs(n, name)
    kept = [row for row in rows if not row.collapsed]
    printed_kept = [run for run in printed if abs(run.value) > (LOW if spheres else ZERO)]
    timed, printed_timed = (rows, printed) if spheres else (kept, printed_kept)
    iterations = [row.iterations for row in timed]
    negative = [row for row in rows if row.value < -ZERO]
    return Summary(
        n=n,
        method=name,
        runs=len(rows),
        kept=len(kept),
        value=means(
            [abs(run.value) for run in printed_kept],
            [abs(row.value) if spheres else row.value for row in kept],
        ),
        nonzeros=means([run.nonzeros for run in printed_kept], [row.nonzeros for row in kept]),
        iterations=Compared(median([run.iterations for run in printed_timed]), median(iterations)),
        iterations_10=percentile(iterations, 10),
        iterations_90=percentile(iterations, 90),
        collapsed=_shares(
            len(printed) - len(printed_kept), len(printed), len(rows) - len(kept), rows
        ),
        negative=_shares(sum(run.value < 0 for run in printed), len(printed), len(negative), rows),
        capped=_shares(
            sum(run.iterations >= CAP for run in printed),
            len(printed),
            sum(row.capped for row in rows),
            rows,
        ),
        rising=sum(row.rises > 0 for row in rows) / len(rows),
        lambda_mean=float(np.mean([row.lambda_needed for row in rows])),
        lambda_largest=max(row.lambda_needed for row in rows),
        gap=median([row.gap for row in rows]),
        gap_negative=min((row.gap for row in negative), default=NAN),
        phi=float(np.mean([row.phi for row in rows])),
    )


def printed_runs(n: int, name: str) -> list[Run]:
    """What the paper prints of one method at one size, if anything."""
    if name not in PRINTED:
        return []
    return [runs[PRINTED.index(name)] for runs in TABLE_1.get(n, [])]


def _shares(printed: int, of: int, ours: int, rows: list[Row]) -> Compared:
    """The spread of one run is that of a coin with the share of both together."""
    if not of:
        return Compared(NAN, ours / len(rows))
    share = (printed + ours) / (of + len(rows))
    spread = float(np.sqrt(share * (1.0 - share)))
    return apart(printed / of, of, ours / len(rows), len(rows), spread)
