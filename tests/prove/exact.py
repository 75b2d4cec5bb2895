"""Gaps in 50 digits: gradients from the float64 data as they are, sets and competitors to 50 digits too.

Everything here works on one point, whose blocks are vectors; a number is an ``mpf`` and a vector a list of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import restpoint as rp

DIGITS = 50
Vector = list[Any]
mpf = mpmath.mpf


def vector(values: Any) -> Vector:
    """Exactly the floats given."""
    return [mpf(float(value)) for value in np.asarray(values).ravel()]


def dot(a: Vector, x: Vector) -> Any:
    return mpmath.fdot(a, x)


def norm(x: Vector) -> Any:
    return mpmath.sqrt(mpmath.fdot(x, x))


# --- gradients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gradient:
    """The gradient of every block in 50 digits, and in floats the size of the terms that it is summed from."""

    exact: Callable[[list[Vector]], list[Vector]]
    terms: Callable[[tuple[np.ndarray, ...]], tuple[np.ndarray, ...]]


def quadratic(Q: np.ndarray, b: np.ndarray) -> Gradient:
    rows, shift = [vector(row) for row in Q], vector(b)
    return Gradient(
        lambda xs: [[dot(row, xs[0]) + c for row, c in zip(rows, shift, strict=True)]],
        lambda xs: (np.abs(Q) @ np.abs(xs[0]) + np.abs(b),),
    )


def split_quadratic(Q: np.ndarray, b: np.ndarray, cuts: np.ndarray) -> Gradient:
    """The same with its variables in several blocks."""
    whole, ends = quadratic(Q, b), [0, *map(int, cuts), len(b)]

    def exact(xs: list[Vector]) -> list[Vector]:
        (g,) = whole.exact([[value for x in xs for value in x]])
        return [g[i:j] for i, j in itertools.pairwise(ends)]

    return Gradient(exact, lambda xs: tuple(np.split(whole.terms((np.concatenate(xs),))[0], cuts)))


def least_squares(A: np.ndarray, b: np.ndarray) -> Gradient:
    rows, columns, target = [vector(r) for r in A], [vector(c) for c in A.T], vector(b)

    def exact(xs: list[Vector]) -> list[Vector]:
        residual = [dot(row, xs[0]) - c for row, c in zip(rows, target, strict=True)]
        return [[dot(column, residual) for column in columns]]

    return Gradient(exact, lambda xs: ((np.abs(A) @ np.abs(xs[0]) + np.abs(b)) @ np.abs(A),))


def logistic(A: np.ndarray, y: np.ndarray) -> Gradient:
    rows = [vector(label * row) for label, row in zip(y, A, strict=True)]
    columns = [list(column) for column in zip(*rows, strict=True)]

    def exact(xs: list[Vector]) -> list[Vector]:
        slopes = [-1 / (1 + mpmath.exp(dot(row, xs[0]))) for row in rows]
        return [[dot(column, slopes) for column in columns]]

    def terms(xs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        # A margin that is wrong by its rounding moves a slope s by s (1 - s) of it.
        margins = (y[:, None] * A) @ xs[0]
        s = np.exp(-np.logaddexp(0.0, margins))
        return ((s + s * (1 - s) * (np.abs(A) @ np.abs(xs[0]))) @ np.abs(A),)

    return Gradient(exact, terms)


def powers(p: float, a: np.ndarray, b: np.ndarray) -> Gradient:
    """sum_j a_j |x_j|^p + b_j x_j."""
    weights, shift, exponent = vector(a), vector(b), mpf(p) - 1

    def slope(x: Any) -> Any:
        return mpmath.sign(x) * abs(x) ** exponent if x else mpf(0)

    return Gradient(
        lambda xs: [[p * w * slope(x) + c for w, x, c in zip(weights, xs[0], shift, strict=True)]],
        lambda xs: (p * np.abs(a) * np.abs(xs[0]) ** (p - 1) + np.abs(b),),
    )


def multilinear(A: np.ndarray, sign: float) -> Gradient:
    places = [(place, mpf(sign) * mpf(float(A[place]))) for place in np.ndindex(A.shape)]

    def exact(xs: list[Vector]) -> list[Vector]:
        found = [[mpf(0)] * n for n in A.shape]
        for place, entry in places:
            for i, j in enumerate(place):
                others = (x[k] for m, (x, k) in enumerate(zip(xs, place, strict=True)) if m != i)
                found[i][j] += entry * mpmath.fprod(others)
        return found

    def terms(xs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        form = rp.smooth.Multilinear(np.abs(A), 1.0)
        return form.gradient(tuple(np.abs(x) for x in xs))

    return Gradient(exact, terms)


# --- sets ---------------------------------------------------------------------------------------------


def weight_of(block: rp.Block) -> float:
    """The l1 weight, 0 without a penalty."""
    return float(getattr(block.penalty, "weight", 0.0))


def center_of(ball: rp.sets.L2Ball, n: int) -> Vector:
    return vector(np.broadcast_to(ball.center, n))


def bounds_of(box: rp.sets.Box, n: int) -> tuple[Vector, Vector]:
    return vector(np.broadcast_to(box.lower, n)), vector(np.broadcast_to(box.upper, n))


def into(s: rp.sets.Set, y: Vector) -> Vector:
    """A point of the set near y, feasible in 50 digits (by scaling, clipping, or scaling to the sum)."""
    n = len(y)
    if isinstance(s, rp.sets.L2Ball):
        center, radius = center_of(s, n), mpf(float(s.radius)) * (1 - mpf(10) ** -45)
        offset = [a - c for a, c in zip(y, center, strict=True)]
        size = norm(offset)
        if size <= radius:
            return y
        return [c + radius * d / size for c, d in zip(center, offset, strict=True)]
    if isinstance(s, rp.sets.Box):
        lower, upper = bounds_of(s, n)
        return [max(low, min(a, high)) for low, a, high in zip(lower, y, upper, strict=True)]
    clipped = [max(a, mpf(0)) for a in y]
    total = mpmath.fsum(clipped)
    if not total:
        clipped, total = [mpf(1)] * n, mpf(n)
    return [mpf(float(s.total)) * a / total for a in clipped]


def distance(s: rp.sets.Set, x: Vector) -> Any:
    """The Euclidean distance from the set."""
    n = len(x)
    if isinstance(s, rp.sets.L2Ball):
        offset = [a - c for a, c in zip(x, center_of(s, n), strict=True)]
        return max(norm(offset) - mpf(float(s.radius)), mpf(0))
    if isinstance(s, rp.sets.Box):
        return norm([a - b for a, b in zip(x, into(s, x), strict=True)])
    total, ordered, running = mpf(float(s.total)), sorted(x, reverse=True), mpf(0)
    shift = mpf(0)
    for k, value in enumerate(ordered, start=1):
        running += value
        if value > (running - total) / k:
            shift = (running - total) / k
    return norm([a - max(a - shift, mpf(0)) for a in x])


def objective(block: rp.Block, g: Vector, y: Vector) -> Any:
    """g'y + h(y)."""
    return dot(g, y) + mpf(weight_of(block)) * mpmath.fsum(map(abs, y))


def minimiser(block: rp.Block, g: Vector) -> Vector:
    """A feasible point with the least g'y + h(y), by the closed form of the pair.

    The ball off the centre with l1 has one as soon as the signs of the point are known.
    """
    s, rho, n = block.set, mpf(weight_of(block)), len(g)
    if isinstance(s, rp.sets.Simplex):
        best = min(range(n), key=lambda j: g[j])
        return [mpf(float(s.total)) if j == best else mpf(0) for j in range(n)]
    if isinstance(s, rp.sets.Box):
        found = []
        for c, low, high in zip(g, *bounds_of(s, n), strict=True):
            candidates = (low, high, max(low, min(mpf(0), high)))
            found.append(min(candidates, key=lambda t, c=c: c * t + rho * abs(t)))
        return found
    if s.centered or not rho:
        shrunk = [-_soft(c, rho) for c in g]
        size, radius = norm(shrunk), mpf(float(s.radius))
        center = center_of(s, n)
        return [c + (radius * v / size if size else 0) for c, v in zip(center, shrunk, strict=True)]
    return into(s, _off_centre(s, rho, g))


def _soft(c: Any, rho: Any) -> Any:
    return mpmath.sign(c) * max(abs(c) - rho, mpf(0))


def _off_centre(s: rp.sets.L2Ball, rho: Any, g: Vector) -> Vector:
    """y(mu) = soft(mu c - g, rho) / mu with ||y(mu) - c|| = r, or 0 where h alone decides.

    Bisection in floats finds the signs of y (in y - c, which does not cancel); with them mu has a closed form.
    """
    center, zero = center_of(s, len(g)), [mpf(0)] * len(g)
    if all(abs(c) <= rho for c in g) and distance(s, zero) == 0:
        return zero
    c, radius = np.array(center, float), float(s.radius)
    # Subtracted in 50 digits: g near rho is where floats would mistake the sign.
    up, down = (np.array([a + t * rho for a in g], float) for t in (1, -1))

    def signs(mu: float) -> np.ndarray:
        return (mu * c > up).astype(float) - (mu * c < down)

    high = float(np.linalg.norm(np.maximum(np.abs(up), np.abs(down)))) / radius
    low = 1e-60 * high
    for _ in range(280):
        middle = (low * high) ** 0.5
        sign = signs(middle)
        offset = np.where(sign == 0, -c, -np.where(sign > 0, up, down) / middle)
        inside = np.linalg.norm(offset) <= radius
        low, high = (low, middle) if inside else (middle, high)
    pulls = [a + rho * mpf(t) if t else None for a, t in zip(g, signs(high), strict=True)]
    moving = mpmath.fsum(v**2 for v in pulls if v is not None)
    still = mpmath.fsum(a**2 for a, v in zip(center, pulls, strict=True) if v is None)
    mu = mpmath.sqrt(moving / (mpf(radius) ** 2 - still))
    return [mpf(0) if v is None else a - v / mu for a, v in zip(center, pulls, strict=True)]


def competitors(
    block: rp.Block, g: Vector, rng: np.random.Generator, answer: np.ndarray
) -> Iterator[Vector]:
    """Points of the set: the oracle's own, vertices, and random ones."""
    s, n = block.set, len(g)
    yield into(s, vector(answer))
    for j in rng.permutation(n)[:3]:  # simplex: vertices; ball: poles; box: signs, below
        far = float(np.max(np.broadcast_to(getattr(s, "radius", 1.0), 1)))
        pole = np.zeros(n)
        pole[j] = far * 1e3
        yield into(s, vector(pole))
    for _ in range(3):
        if isinstance(s, rp.sets.Box):
            lower, upper = bounds_of(s, n)
            ends = rng.integers(2, size=n)
            yield [low if end else high for low, high, end in zip(lower, upper, ends, strict=True)]
        yield into(s, vector(s.sample(rng, (n,))))
