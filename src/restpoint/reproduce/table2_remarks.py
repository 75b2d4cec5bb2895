"""What does not fit Table 2, and what the runs show beyond it, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from restpoint.reproduce.compared import FITS
from restpoint.reproduce.table2 import (
    ADMM,
    ADMMS,
    ALGORITHM_1,
    MOMENTUM,
    NEAR,
    PAPER,
    SAME,
    Row,
)
from restpoint.reproduce.table2_summary import Summary, by_beta


def remarks(lines: Sequence[Summary], rows: Sequence[Row]) -> list[str]:
    """All of them: first what does not fit, then size by size."""
    found = [*_misfits(lines)]
    for n, penalty in dict.fromkeys((line.n, line.penalty) for line in lines):
        own = {line.method: line for line in lines if (line.n, line.penalty) == (n, penalty)}
        place = f"n = {n}, {penalty}" if penalty != PAPER else f"n = {n}, the paper's penalty"
        found += [*_betas(place, own), *_points(place, own), *_momentum(place, own, rows)]
    return found


def _misfits(lines: Sequence[Summary]) -> Iterator[str]:
    compared = 0
    for line in lines:
        compared += math.isfinite(line.phi.deviations)
        if abs(line.phi.deviations) > FITS:
            yield (
                f"DOES NOT FIT: n = {line.n}, {line.method}: the printed mean objective, {line.phi.printed:.1f}, is "
                f"{line.phi.deviations:+.1f} standard errors from ours, {line.phi.ours:.1f}."
            )
    if compared:
        yield (
            f"{compared} printed means were compared in standard errors; by chance alone fewer than one is beyond "
            f"{FITS:g}."
        )


def _betas(place: str, own: dict[str, Summary]) -> Iterator[str]:
    """That the ratio of iterations is a choice of beta."""
    lines = list(own.values())
    ratios = by_beta(lines, lambda line: line.ratio.ours)
    ratios = {beta: ratio for beta, ratio in ratios.items() if math.isfinite(ratio)}
    if len(ratios) < 2:
        return
    near = by_beta(lines, lambda line: line.near)
    said = ", ".join(
        f"{ratios[b]:.1f} ({near[b]:.1f}) at {b:g} L"
        if math.isfinite(near[b])
        else f"{ratios[b]:.1f} at {b:g} L"
        for b in ratios
    )
    yield (
        f"{place}: ADMM takes so many times the iterations of Algorithm 1, each by its own rule (in brackets: until "
        f"Phi is as low, to {NEAR:g} of it): {said}. The ratio is a choice of beta."
    )


def _points(place: str, own: dict[str, Summary]) -> Iterator[str]:
    """Whether both end at the same point, as the paper says."""
    first, other = own.get(ALGORITHM_1), own.get(ADMM)
    if first is None or other is None:
        return
    yield (
        f"{place}: the end points of Algorithm 1 and of {ADMM} are {other.distance:.1e} apart in the median, up to the "
        f"sign, and nearer than {SAME:g} in {other.same:.0%} of the runs; {first.zeros:.1%} of the entries of DNx are "
        "zero."
    )


def _momentum(place: str, own: dict[str, Summary], rows: Sequence[Row]) -> Iterator[str]:
    """What the accelerated method does beside both, in iterations and in time."""
    line, first = own.get(MOMENTUM), own.get(ALGORITHM_1)
    if line is None or first is None:
        return
    quickest = min(
        (other for name, other in own.items() if name in ADMMS),
        key=lambda other: other.milliseconds,
        default=None,
    )
    times = (
        ""
        if quickest is None
        else f"; {quickest.method}, the quickest: {quickest.milliseconds:.1f} ms"
    )
    yield (
        f"{place}: with momentum {line.iterations.ours:.0f} iterations in the median to a certified gap of "
        f"{line.gap:.0e}, {line.milliseconds:.1f} ms (Algorithm 1 by its own rule: {first.iterations.ours:.0f}, gap "
        f"{first.gap:.0e}, {first.milliseconds:.1f} ms{times})."
    )
    worse = [
        row.phi - one.phi
        for row in rows
        for one in rows
        if (row.n, row.penalty, row.method) == (line.n, line.penalty, MOMENTUM)
        and (one.n, one.penalty, one.instance) == (row.n, row.penalty, row.instance)
        and one.method == ALGORITHM_1
        and abs(row.phi - one.phi) > 1e-3 * abs(one.phi)
    ]
    if worse:
        yield (
            f"{place}: with momentum {len(worse)} of {line.runs} runs end elsewhere than Algorithm 1, lower in "
            f"{sum(d < 0 for d in worse)} (Phi by {max(0.0, -min(worse)):.1f} at most) and higher in "
            f"{sum(d > 0 for d in worse)} (by {max(0.0, *worse):.1f}); means {line.phi.ours:.2f} and "
            f"{first.phi.ours:.2f}."
        )
