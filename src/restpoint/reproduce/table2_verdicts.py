"""What a reproduction of Table 2 must show: windows of some three standard errors for 40, 20 and 8 instances."""

from __future__ import annotations

from collections.abc import Sequence

from restpoint.reproduce.compared import Verdict
from restpoint.reproduce.table2 import ADMM, ALGORITHM_1, PAPER, Row
from restpoint.reproduce.table2_summary import summaries

# For each n: centre and half width. Measured beforehand, on other instances.
OBJECTIVE = {50: (-275.0, 7.0), 100: (-562.0, 11.0), 200: (-1142.0, 22.0)}
RATIO = (4.0, 8.0)
# Of |Phi|: the median and the 90th percentile of the difference between the two methods.
LESS, LESS_90 = 4e-5, 3e-4
INSTANCES = {50: 40, 100: 20, 200: 8}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """R6, as far as the rows go: sizes without a window, and methods that were not run, have none."""
    lines = {(s.n, s.method): s for s in summaries(rows) if s.penalty == PAPER}
    found: list[Verdict] = []
    for n, (centre, width) in OBJECTIVE.items():
        first, other = lines.get((n, ALGORITHM_1)), lines.get((n, ADMM))
        if first is not None:
            low, high = centre - width, centre + width
            found.append(Verdict("R6", n, "mean objective, Algorithm 1", first.phi.ours, low, high))
        if first is not None and other is not None:
            what = "median ratio of iterations, ADMM / Algorithm 1"
            found += [
                Verdict("R6", n, what, other.ratio.ours, *RATIO),
                Verdict("R6", n, "objectives apart, median", other.less_median, 0.0, LESS),
                Verdict("R6", n, "objectives apart, 90th percentile", other.less_90, 0.0, LESS_90),
            ]
    return found
