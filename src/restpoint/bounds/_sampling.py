r"""Sampled gradients: what holds in place of the paper's Section 4.1.

All statements are in expectation, for the output x^R with R uniform on {1, ..., N} and independent of the samples: an
argmin of sampled gaps is biased (theory E14). sigma bounds E[||G - grad f||_q^q | past]^(1/q) of one sample.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array, whole_number
from restpoint.bounds._bound import Bound
from restpoint.bounds._counting import STANDING, Data, exact_omega
from restpoint.bounds._numbers import number, plain
from restpoint.bounds._plans import MAJORISED, UNIFORM, named, plan_bound, planned
from restpoint.errors import DataError
from restpoint.omega import conjugate, omega, omega_inverse

_SAMPLES = (
    "samples are independent, E[G | past] = grad f(x) and E[||G - grad f(x)||_q^q | past] <= sigma^q",
    UNIFORM,
)


def theorem_4_3(
    *,
    iterations: int,
    samples: int,
    sigma: Array,
    delta: Array | None,
    constant: Array,
    diameter: Array | None,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""Algorithm 3 with N ``iterations`` of m ``samples``: how large Triangle U of its output is in the mean.

    E[Triangle U(x^R)] <= delta / N + 2 / (lambda p)^(q-1) kappa_q(m) sigma^q, kappa_q(m) = 2^(2-q) m^(1-q), for p >= 2
    (p > 2 only for concave f, theory E2; for 1 < p < 2 see ``addition_8``); ``constants["gap"]`` bounds
    E[Triangle L(x^R)] by omega_D^{-1} of that. Proof: theory E13, E15. The paper prints 1 for 2^(2-q), which is false
    for q < 2 (E13), and claims it for the smallest sampled Triangle U, which is false too (E14).

    >>> bound = theorem_4_3(
    ...     iterations=1600, samples=1600, sigma=1.0, delta=1.0, constant=1.0, diameter=1.0
    ... )
    >>> round(bound.count, 8), round(bound.constants["gap"], 8)
    (0.00125, 0.05)
    """
    N, m = whole_number("iterations", iterations, 1), whole_number("samples", samples, 1)
    data = _with_weight(1.0, delta, constant, diameter, p, concave=concave)
    if data.p < 2.0:
        raise DataError(f"p is {data.p}; Theorem 4.3 is for p >= 2: for 1 < p < 2 use addition_8")
    noise, q = number("sigma", sigma), conjugate(data.p)
    known = {"N": N, "m": m, "sigma": plain(noise)}
    found: dict[str, Any] = {"count": None, "paper_bound": None}
    if not data.missing:
        (weight,) = data.constants
        printed = 2.0 / (weight * data.p) ** (q - 1.0) * float(m) ** (1.0 - q) * noise**q
        up = 1.0 + 64.0 * UNIT_ROUNDOFF * q
        mean = np.asarray((data.delta / N + 2.0 ** (2.0 - q) * printed) * up)
        known["gap"] = plain(np.asarray(omega_inverse(mean, data.curvature(), data.p) * up))
        found = {"count": plain(mean), "paper_bound": plain(data.delta / N + printed)}
    return Bound(
        **found,
        statement="Theorem 4.3, corrected (theory E15)",
        counts="as the mean of Triangle U",
        assumptions=(MAJORISED, *_SAMPLES, *STANDING),
        constants=named(data, "eps") | known,
        missing=data.missing,
        rate="O(1/N + 1/m^%.4g)" % (q - 1.0),
    )


def corollary_4_4(
    *,
    eps: Array,
    sigma: Array | None,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""How many samples Algorithm 3 takes in all to bring E[Triangle U(x^R)] below omega_D(eps), p >= 2.

    N = ceil(p delta / T) iterations of m = ceil((q A / T)^(p-1)) samples, T = omega_D(eps),
    A = 2 2^(2-q) sigma^q / (lambda p)^(q-1); then E[Triangle L(x^R)] <= eps, for every eps > 0. ``count`` is N m;
    ``constants`` hold "iterations" and "samples". Proof: theory E16, which also says where the printed total
    (``paper_bound``, under its own conditions) is wrong: it can be far too small.

    >>> bound = corollary_4_4(eps=0.05, sigma=1.0, delta=1.0, constant=1.0, diameter=1.0)
    >>> bound.count, bound.constants["iterations"], bound.constants["samples"]
    (2560000.0, 1600.0, 1600.0)
    """
    data = _with_weight(eps, delta, constant, diameter, p, concave=concave)
    if data.p < 2.0:
        raise DataError(f"p is {data.p}; Corollary 4.4 is for p >= 2: for 1 < p < 2 use addition_8")
    data, noise = _noise(data, sigma)
    plan = None
    if not data.missing:
        (weight,), power, q = data.constants, data.p, conjugate(data.p)
        with np.errstate(all="ignore"):
            T = data.decrease()
            A = 2.0 ** (3.0 - q) * noise**q / (weight * power) ** (q - 1.0)
            plan = planned(
                data,
                (noise,),
                power * data.delta / T,
                (q * A / T) ** (power - 1.0),
                lambda eps, delta, w, D, s: (
                    2 * delta / exact_omega(eps, D),
                    2 * s * s / (w * exact_omega(eps, D)),
                ),
                data.error() * power,
            )
    return plan_bound(
        "Corollary 4.4, corrected (theory E16)",
        data,
        plan,
        printed=None if plan is None else _printed_4_4(data, noise),
        more={} if sigma is None else {"sigma": plain(noise)},
        assumptions=(MAJORISED, *_SAMPLES),
        rate=data.p * conjugate(data.p),
    )


def addition_8(
    *,
    eps: Array,
    sigma: Array | None,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    p: float = 2.0,
    concave: bool = False,
) -> Bound:
    r"""How many samples the stochastic proximal step of weight 2 lambda takes in all, for every p > 1.

    With T = omega_{2D}(eps): N = max{1, ceil(2 delta / T)} iterations, and the smallest m with
    (1/q) (2 / (p lambda))^(q-1) kappa_q(m) sigma^q <= T / 2, kappa_q(m) = ((q-1)/m)^(q/2) for q >= 2 and
    2^(2-q) m^(1-q) below; then E[Triangle L(x^R)] <= eps. ``count`` is N m. Proof: theory A8, E13.

    >>> bound = addition_8(eps=0.05, sigma=1.0, delta=1.0, constant=1.0, diameter=1.0)
    >>> bound.constants["iterations"], bound.constants["samples"]
    (3200.0, 1600.0)
    """
    data = _with_weight(eps, delta, constant, diameter, p, concave=concave)
    data, noise = _noise(data, sigma)
    plan = None
    if not data.missing:
        (weight,), power, q = data.constants, data.p, conjugate(data.p)
        with np.errstate(all="ignore"):
            T = np.asarray(omega(data.eps, 2.0 * data.curvature(), power))
            level = (2.0 / (power * weight)) ** (q - 1.0) / q * noise**q / (0.5 * T)
            fewest = (
                (q - 1.0) * level ** (2.0 / q)
                if q >= 2.0
                else (2.0 ** (2.0 - q) * level) ** (1.0 / (q - 1.0))
            )
            plan = planned(
                data,
                (noise,),
                2.0 * data.delta / T,
                fewest,
                lambda eps, delta, w, D, s: (
                    2 * delta / exact_omega(eps, 2 * D),
                    s * s / (w * exact_omega(eps, 2 * D)),
                ),
                data.error() * max(power, 2.0),
            )
    return plan_bound(
        "Stochastic proximal steps of weight 2 lambda (theory A8)",
        data,
        plan,
        more={} if sigma is None else {"sigma": plain(noise)},
        assumptions=(MAJORISED, *_SAMPLES),
        rate=conjugate(data.p) + 2.0 if data.p <= 2.0 else data.p * conjugate(data.p),
    )


def _with_weight(
    eps: Array,
    delta: Array | None,
    constant: Array | None,
    diameter: Array | None,
    p: float,
    *,
    concave: bool,
) -> Data:
    data = Data.checked(eps, delta, (constant,), (diameter,), p=p, concave=concave)
    if any(np.any(weight <= 0.0) for weight in data.constants):
        raise DataError(
            "constant must be > 0: it is the weight of the proximal step, and any number above a true one is true"
        )
    return data


def _noise(data: Data, sigma: Array | None) -> tuple[Data, np.ndarray]:
    if sigma is None:
        return data.lacking("the noise sigma of one sample"), np.asarray(math.nan)
    return data, number("sigma", sigma)


def _printed_4_4(data: Data, sigma: np.ndarray) -> np.ndarray:
    """The total number of calls in (choose-N), NaN where (N-large), (N-large2) or eps <= D fails."""
    (weight,), (diameter,), p, q = data.constants, data.diameters, data.p, conjugate(data.p)
    with np.errstate(all="ignore"):
        shape = (1.0 + (q - 1.0) ** (1.0 / q - 1.0 / p)) ** p
        total = (4.0 * sigma) ** p * weight ** (q - 1.0) * diameter ** (p * q) * data.delta
        total = np.ceil(total * shape / (p * data.eps ** (p * q)))
        large = sigma**p * (q - 1.0) ** (p / q) / (weight * p * data.delta ** (p / q))
        large_2 = (weight * p) ** (q / p) * sigma**q / data.delta
        valid = (total >= large) & (total >= large_2) & (data.eps <= data.curvature())
        return np.where(valid, total, np.nan)
