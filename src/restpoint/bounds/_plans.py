"""How many iterations of how many samples: what the bounds of sampled methods share."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import STANDING, Data, ceiling
from restpoint.bounds._numbers import plain
from restpoint.bounds._theorems import MAJORANT

UNIFORM = "the output is x^R, R uniform on 1, ..., N and independent of the samples"
MAJORISED = f"f is differentiable on S, with {MAJORANT}"


class Plan(NamedTuple):
    """How many iterations of how many samples."""

    iterations: np.ndarray
    samples: np.ndarray


def planned(
    data: Data,
    numbers: tuple[np.ndarray, ...],
    iterations: np.ndarray,
    samples: np.ndarray,
    exact: Callable[..., tuple[Fraction, Fraction]],
    error: np.ndarray,
) -> Plan:
    """Both rounded up: the ceilings in doubt by ``exact`` where p = 2, else upwards."""
    shape = np.broadcast_shapes(data.shape, *(a.shape for a in numbers))
    arrays = [
        np.broadcast_to(array, shape)
        for array in (data.eps, data.delta, data.constants[0], data.diameters[0], *numbers)
    ]

    def exactly(which: int) -> Callable[[tuple[int, ...]], int] | None:
        def decided(index: tuple[int, ...]) -> int:
            eps, delta, weight, diameter, *more = (Fraction(float(a[index])) for a in arrays)
            D = weight * diameter**2
            return math.ceil(exact(eps, delta, weight, D, *more)[which])

        return decided if data.p == 2.0 else None

    with np.errstate(all="ignore"):
        margin = np.where(error < 0.5, np.exp(4.0 * error), np.inf)
        return Plan(
            *(
                ceiling(quotient / margin, quotient * margin, shape=shape, exact=exactly(which))
                for which, quotient in enumerate((iterations, samples))
            )
        )


def plan_bound(
    statement: str,
    data: Data,
    plan: Plan | None,
    *,
    more: dict[str, Any],
    assumptions: tuple[str, ...],
    rate: float,
    printed: np.ndarray | None = None,
) -> Bound:
    if plan is not None:
        more = more | {"iterations": plain(plan.iterations), "samples": plain(plan.samples)}
    return Bound(
        count=None if plan is None else plain(plan.iterations * plan.samples),
        paper_bound=plain(printed)
        if printed is not None and np.any(np.isfinite(printed))
        else None,
        statement=statement,
        counts="samples",
        assumptions=(*assumptions, *STANDING),
        constants=named(data) | more,
        missing=data.missing,
        rate=f"O(1/eps^{rate:.4g})",
    )


def named(data: Data, *hidden: str) -> dict[str, Any]:
    return {n: v for n, v in data.named().items() if n not in ("decrease", *hidden)}
