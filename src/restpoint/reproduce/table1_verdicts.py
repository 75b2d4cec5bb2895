"""What a reproduction of Table 1 must show: windows of some three standard errors for 100 instances a size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from restpoint.reproduce.comparators import RISE
from restpoint.reproduce.compared import Verdict
from restpoint.reproduce.table1 import ALGORITHM_5, ALGORITHM_6, Row
from restpoint.reproduce.table1_summary import Summary, summaries

# For each n: centre and half width. Measured beforehand, on other instances.
VALUE = {8: (6.95, 0.35), 12: (8.85, 0.35), 20: (11.9, 0.4), 30: (14.85, 0.4)}
NONZEROS = {8: (17.4, 1.2), 12: (25.6, 1.2), 20: (42.0, 1.5), 30: (62.5, 2.0)}
ZERO_SHARE = {
    ALGORITHM_5: {8: 0.31, 12: 0.16, 20: 0.10, 30: 0.04},
    ALGORITHM_6: {8: 0.34, 12: 0.22, 20: 0.17, 30: 0.18},
}
ZERO_WIDTH, ZERO_ORDER = 0.14, 0.05
# For each n: lowest and highest median.
ITERATIONS = {
    ALGORITHM_5: {8: (110, 190), 12: (125, 215), 20: (170, 290), 30: (190, 330)},
    ALGORITHM_6: {8: (130, 230), 12: (160, 280), 20: (220, 380), 30: (260, 440)},
}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """R1 to R5, as far as the rows go: sizes without a window, and methods that were not run, have none."""
    lines = {(line.n, line.method): line for line in summaries(rows)}
    found: list[Verdict] = []
    for n in dict.fromkeys(row.n for row in rows):
        five, six, bcd = (lines.get((n, name)) for name in (ALGORITHM_5, ALGORITHM_6, "BCD"))
        if n not in VALUE:
            continue
        if five is not None:
            found += _of_algorithm_5(five)
        for line in (five, six):
            if line is not None:
                found += _of_either(line)
                found.append(_of_rises(line, rows))
        if five is not None and six is not None:
            more = six.collapsed.ours - five.collapsed.ours
            what = "zero share, Algorithm 6 - Algorithm 5"
            found.append(Verdict("R2", n, what, more, -ZERO_ORDER, 1.0))
        if bcd is not None:
            found += _of_bcd(bcd)
    return sorted(found, key=lambda verdict: verdict.name)


def _of_algorithm_5(line: Summary) -> Iterator[Verdict]:
    for what, figure, (centre, width) in (
        ("mean A(x), Algorithm 5", line.value.ours, VALUE[line.n]),
        ("mean nonzeros, Algorithm 5", line.nonzeros.ours, NONZEROS[line.n]),
    ):
        yield Verdict("R1", line.n, what, figure, centre - width, centre + width)


def _of_either(line: Summary) -> Iterator[Verdict]:
    share, n = ZERO_SHARE[line.method][line.n], line.n
    low, high = max(share - ZERO_WIDTH, 0.0), share + ZERO_WIDTH
    yield Verdict("R2", n, f"zero share, {line.method}", line.collapsed.ours, low, high)
    low, high = ITERATIONS[line.method][n]
    yield Verdict("R3", n, f"median iterations, {line.method}", line.iterations.ours, low, high)


def _of_bcd(line: Summary) -> Iterator[Verdict]:
    n = line.n
    if n <= 20:
        yield Verdict("R4", n, "negative share, BCD", line.negative.ours, 0.35, 0.65)
    yield Verdict("R4", n, "share of runs in which Phi rose, BCD", line.rising, 0.95, 1.0)
    if n == 30:
        yield Verdict("R4", n, "share at the cap, BCD", line.capped.ours, 0.5, 1.0)


def _of_rises(line: Summary, rows: Sequence[Row]) -> Verdict:
    rises = sum(row.rises for row in rows if (row.n, row.method) == (line.n, line.method))
    known = all(math.isfinite(row.lambda_needed) for row in rows)
    what = f"iterations that raised Phi by > {RISE:g}, {line.method}"
    return Verdict("R5", line.n, what, float(rises) if known else math.nan, 0.0, 0.0)
