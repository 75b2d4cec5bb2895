"""What does not fit Table 1, and what the runs show beyond it, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from restpoint.reproduce.compared import FITS
from restpoint.reproduce.printed import TABLE_1
from restpoint.reproduce.table1 import (
    ALGORITHM_5,
    ALGORITHM_6,
    LAMBDA,
    METHODS,
    ORDER,
    PRINTED,
    Row,
)
from restpoint.reproduce.table1_summary import Summary

FORMS = {
    "value": ("mean value", ".2f"),
    "nonzeros": ("mean number of nonzeros", ".1f"),
    "collapsed": ("share of zeros", ".2f"),
    "negative": ("share of negative values", ".2f"),
    "capped": ("share at the cap", ".2f"),
}


def remarks(summaries: Sequence[Summary], rows: Sequence[Row]) -> list[str]:
    """All of them: first what does not fit, then size by size."""
    found = [*_misfits(summaries)]
    for n in dict.fromkeys(row.n for row in rows):
        of_size = [row for row in rows if row.n == n]
        found += [*_lambda(n, of_size), *_zeros(n, of_size), *_spheres(n, of_size)]
    return found


def _misfits(summaries: Sequence[Summary]) -> Iterator[str]:
    compared = 0
    for line in summaries:
        for name, (words, form) in FORMS.items():
            figure = getattr(line, name)
            compared += math.isfinite(figure.deviations)
            if abs(figure.deviations) > FITS:
                yield (
                    f"DOES NOT FIT: n = {line.n}, {line.method}: the printed {words}, {figure.printed:{form}}, is "
                    f"{figure.deviations:+.1f} standard errors from ours, {figure.ours:{form}}."
                )
    if compared:
        yield (
            f"{compared} printed figures were compared in standard errors; by chance alone fewer than one is beyond "
            f"{FITS:g}."
        )


def _lambda(n: int, rows: list[Row]) -> Iterator[str]:
    for name in (ALGORITHM_5, ALGORITHM_6):
        own = [row for row in rows if row.method == name]
        if own:
            needed = [row.lambda_needed for row in own]
            yield (
                f"n = {n}, {name}: the steps of a run needed lambda = {np.mean(needed):.1f} in the mean and "
                f"{max(needed):.1f} at most; {LAMBDA:g} was used, and Phi rose {sum(r.rises for r in own)} times."
            )
    # Blocks of norm 1: |A(x)| is at most sigma.
    best: dict[int, float] = {}
    for row in rows:
        if row.on_spheres:
            best[row.instance] = max(best.get(row.instance, 0.0), abs(row.value))
    constants = [(ORDER - 1) * value for value in best.values()]
    if constants:
        yield (
            f"n = {n}: the constant of the theorem, 3 sigma, is at least {np.mean(constants):.1f} in the mean (by the "
            f"largest A(x) found at unit vectors) and above {LAMBDA:g} in {sum(c > LAMBDA for c in constants)} of "
            f"{len(constants)} instances: the theorem does not cover the runs, the steps taken did not need it."
        )


def _zeros(n: int, rows: list[Row]) -> Iterator[str]:
    for name in (ALGORITHM_5, ALGORITHM_6):
        own = [row for row in rows if row.method == name]
        negative, others = ([r for r in own if (r.start < 0) == sign] for sign in (True, False))
        if negative and others:
            yield (
                f"n = {n}, {name}: zero was reached from {_zero_share(negative):.0%} of the starts with A(x) < 0 and "
                f"from {_zero_share(others):.0%} of the others."
            )
    blocks = [runs[PRINTED.index(ALGORITHM_5)] for runs in TABLE_1.get(n, [])]
    odd = [run.nonzeros for run in blocks if run.value == 0.0 and run.nonzeros]
    if odd:
        yield (
            f"n = {n}: rows printed for Algorithm 5 with the value 0.00 keep {', '.join(map(str, odd))} nonzeros, "
            "whole blocks: no stationary points (theory E35), unless those entries are tiny."
        )


def _spheres(n: int, rows: list[Row]) -> Iterator[str]:
    bcd = [row for row in rows if row.method == "BCD"]
    if bcd:
        yield f"n = {n}: Phi rose in {_rising(bcd):.0%} of the runs of BCD, which updates all blocks at once."
    negative = [row.gap for row in bcd if row.value < -1.0]
    if negative:
        yield (
            f"n = {n}: BCD ended at A(x) < -1 in {len(negative)} of {len(bcd)} runs, with certified gaps of "
            f"{min(negative):.2g} and more: none of these points is stationary."
        )
    for name in METHODS[len(PRINTED) :]:
        own = [row for row in rows if row.method == name]
        if own:
            yield (
                f"n = {n}: {name} raised Phi in {sum(r.rises > 0 for r in own)} and ended at A(x) < 0 in "
                f"{sum(r.value < 0 for r in own)} of {len(own)} runs."
            )


def _zero_share(rows: list[Row]) -> float:
    return float(np.mean([row.collapsed for row in rows]))


def _rising(rows: list[Row]) -> float:
    return float(np.mean([row.rises > 0 for row in rows]))
