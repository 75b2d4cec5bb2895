r"""Smoothing of a concave part by samples from a ball: what holds in place of the paper's Section 4.2.

All statements are in expectation, for the output x^R with R uniform on {1, ..., N} and independent of the samples: an
argmin of sampled gaps is biased (theory E22). They speak of the smoothed problem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from restpoint.array import Array
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import Data, exact_omega
from restpoint.bounds._numbers import number, plain
from restpoint.bounds._plans import MAJORISED, UNIFORM, plan_bound, planned
from restpoint.omega import conjugate

_SMOOTHING = (
    "h is concave, with supergradients of norm at most `slope` on S + ball(radius)",
    "samples are uniform on the unit ball",
    UNIFORM,
)


def theorem_4_6(
    *,
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    diameter_2: Array | None,
    slope: Array | None,
    radius: Array,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""How many samples Algorithm 4 takes in all to bring E[Triangle L(x^R)] of the smoothed problem down to eps.

    h is concave with supergradients of norm at most M = ``slope`` and is smoothed over a ball of ``radius`` r;
    ``diameter_2`` is the Euclidean one. With T = omega_D(eps): N = max{1, ceil(2 (delta + M r) / T)} iterations of
    m = max{1, ceil((2 diam_2(S) M / T)^2)} samples, for every eps > 0; ``count`` is N m. Smoothing itself moves Phi
    by at most M r. Proof: theory E21 to E23; averaging s Triangle L~ - s^p D/2 - ||delta_k|| diam_2 <= the decrease
    of Phi_r over k, for every s in [0, 1], gives E[Triangle L_R] <= omega_D^{-1}((delta + M r)/N + diam_2 M/sqrt(m)).
    The printed total (``paper_bound``) forgets M r (E21) and speaks of a biased output (E22).

    >>> bound = theorem_4_6(
    ...     eps=1.0, delta=1.0, constant=2.0, diameter=1.0, diameter_2=1.0, slope=1.0, radius=0.5
    ... )
    >>> bound.constants["iterations"], bound.constants["samples"]
    (12.0, 64.0)
    """
    data, numbers = _smoothed(eps, delta, constant, diameter, diameter_2, slope, radius, p, concave)
    plan = printed = None
    if not data.missing:
        far, steep, r = numbers
        with np.errstate(all="ignore"):
            T = data.decrease()
            plan = planned(
                data,
                numbers,
                2.0 * (data.delta + steep * r) / T,
                (2.0 * far * steep / T) ** 2,
                lambda eps, delta, w, D, far, steep, r: (
                    2 * (delta + steep * r) / exact_omega(eps, D),
                    (2 * far * steep / exact_omega(eps, D)) ** 2,
                ),
                2.0 * data.error(),
            )
            printed = _printed_4_6(data, far * steep)
    return plan_bound(
        "Theorem 4.6, corrected (theory E21 to E23)",
        data,
        plan,
        printed=printed,
        more=_smoothing_numbers(numbers),
        assumptions=(MAJORISED, *_SMOOTHING),
        rate=3.0 * conjugate(data.p),
    )


def addition_11(
    *,
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    diameter_2: Array | None,
    slope: Array | None,
    radius: Array,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""Algorithm 4 with steps of length at most s = min{1, (eps / D)^(1/(p-1))} (``constants["longest_step"]``).

    N = max{1, ceil(4 (delta + M r) / (eps s))} iterations of m = max{1, ceil(16 diam_2(S)^2 M^2 / eps^2)} samples bring
    E[Triangle L(x^R)] of the smoothed problem down to eps; ``count`` is N m, O(1/eps^(q+2)) in place of
    O(1/eps^(3q)). Arguments as in ``theorem_4_6``. Proof: theory A11; for eps > D the cap is 1, and
    s^(p-1) D / 2 <= eps / 2 all the same.

    >>> bound = addition_11(
    ...     eps=1.0, delta=1.0, constant=2.0, diameter=1.0, diameter_2=1.0, slope=1.0, radius=0.5
    ... )
    >>> bound.constants["iterations"], bound.constants["samples"], bound.constants["longest_step"]
    (12.0, 16.0, 0.5)
    """
    data, numbers = _smoothed(eps, delta, constant, diameter, diameter_2, slope, radius, p, concave)
    plan, more = None, _smoothing_numbers(numbers)
    if not data.missing:
        far, steep, r = numbers
        with np.errstate(all="ignore"):
            cap = np.minimum(1.0, (data.eps / data.curvature()) ** (1.0 / (data.p - 1.0)))
            more["longest_step"] = plain(np.asarray(cap))
            plan = planned(
                data,
                numbers,
                4.0 * (data.delta + steep * r) / (data.eps * cap),
                (4.0 * far * steep / data.eps) ** 2,
                lambda eps, delta, w, D, far, steep, r: (
                    4 * (delta + steep * r) / (eps * (1 if eps >= D else eps / D)),
                    (4 * far * steep / eps) ** 2,
                ),
                2.0 * data.error(),
            )
    return plan_bound(
        "Smoothing with capped steps (theory A11)",
        data,
        plan,
        more=more,
        assumptions=(MAJORISED, *_SMOOTHING, "no step is longer than `longest_step`"),
        rate=conjugate(data.p) + 2.0,
    )


def _smoothed(  # noqa: PLR0917 - the numbers of a theorem, as they came
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    diameter_2: Array | None,
    slope: Array | None,
    radius: Array,
    p: float,
    concave: bool,
) -> tuple[Data, tuple[np.ndarray, ...]]:
    data = Data.checked(eps, delta, (constant,), (diameter,), p=p, concave=concave)
    given = {"diameter_2": diameter_2, "slope": slope, "radius": radius}
    lacking = {"diameter_2": "the Euclidean diameter of S", "slope": "the slope M of h"}
    data = data.lacking(*(words for name, words in lacking.items() if given[name] is None))
    numbers = tuple(
        np.asarray(math.nan) if value is None else number(name, value, positive=name == "radius")
        for name, value in given.items()
    )
    return data, numbers


def _smoothing_numbers(numbers: tuple[np.ndarray, ...]) -> dict[str, Any]:
    return {
        name: plain(value)
        for name, value in zip(("diameter_2", "slope", "radius"), numbers, strict=True)
        if not np.all(np.isnan(value))
    }


def _printed_4_6(data: Data, noise: np.ndarray) -> np.ndarray:
    """N times m_k as printed, NaN where eps > D and where delta = 0 leaves 0/0."""
    q = conjugate(data.p)
    with np.errstate(all="ignore"):
        N = np.ceil(4.0 * data.delta * data.curvature() ** (q - 1.0) / data.eps**q)
        m = np.ceil((noise * N / data.delta) ** 2)
        return np.where((data.eps <= data.curvature()) & (data.delta > 0.0), N * m, np.nan)
