"""The functions that the tests of ``restpoint.smooth`` share, each beside its definition in exact arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from restpoint.array import namespace
from restpoint.sets import Box, L2Ball, Set, Simplex
from restpoint.smooth import (
    CanonicalPolyadic,
    ConcaveQuadratic,
    FactoredTensor,
    Function,
    Inexact,
    LeastSquares,
    Logistic,
    Multilinear,
    PowerSum,
    Quadratic,
    Smooth,
    Sum,
)

mpmath.mp.dps = 250  # differences of 60 digits, data of 24 decades
mpf = mpmath.mpf

# What is observed of a tensor with missing entries.
KNOWN = np.array([[[1, 0], [1, 1]], [[0, 1], [1, 1]], [[1, 1], [0, 0]]], dtype=bool)

Exact = Callable[[list[list[Any]]], Any]


@dataclass(frozen=True)
class Case:
    """How to build a function from its data, its exact value, and sets for its blocks."""

    data: tuple[np.ndarray, ...]
    build: Callable[..., Smooth]
    exact: Callable[..., Any]
    sets: tuple[Set, ...]

    def smooth(self, convert: Callable[[np.ndarray], Any] = np.asarray) -> Smooth:
        return self.build(*(convert(part) for part in self.data))

    def exact_value(self, xs: tuple[np.ndarray, ...]) -> Any:
        return self.exact(_exact(xs), *self.data)

    def exact_gradient(self, xs: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """Central differences at 250 digits: good to 100, and independent of any formula for the gradient."""
        exact, gradients = _exact(xs), []
        for block in exact:
            entries = []
            for j, entry in enumerate(block):
                h = mpf(10) ** -60 * (abs(entry) if entry else 1)
                block[j] = entry + h
                above = self.exact(exact, *self.data)
                block[j] = entry - h
                below = self.exact(exact, *self.data)
                block[j] = entry
                entries.append((above - below) / (2 * h))
            gradients.append(np.array(entries, dtype=object))
        return gradients

    def points(self, rng: np.random.Generator, *batch: int) -> tuple[np.ndarray, ...]:
        """Random points of the sets."""
        count = int(np.prod(batch, dtype=int))
        blocks = []
        for own_set, shape in zip(self.sets, self.smooth().shapes, strict=True):
            scale = rng.random(count) ** 0.3
            points = [s * own_set.sample(rng, shape) for s in scale]
            if isinstance(own_set, Simplex):
                points = [own_set.sample(rng, shape) for _ in scale]
            blocks.append(np.array(points).reshape(*batch, *shape))
        return tuple(blocks)


def _exact(xs: tuple[np.ndarray, ...]) -> list[list[Any]]:
    return [[mpf(float(entry)) for entry in np.asarray(x).ravel()] for x in xs]


def _dot(a: Any, x: Any) -> Any:
    return mpmath.fsum(mpf(float(u)) * v for u, v in zip(a, x, strict=True))


def quadratic(xs: Any, Q: np.ndarray, b: np.ndarray) -> Any:
    (x,) = xs
    return mpmath.fsum(v * _dot(row, x) for v, row in zip(x, Q, strict=True)) / 2 + _dot(b, x)


def concave_quadratic(xs: Any, F: np.ndarray) -> Any:
    return -mpmath.fsum(_dot(column, xs[0]) ** 2 for column in F.T) / 2


def least_squares(xs: Any, A: np.ndarray, b: np.ndarray) -> Any:
    (x,) = xs
    residuals = [_dot(row, x) - mpf(float(target)) for row, target in zip(A, b, strict=True)]
    return mpmath.fsum(r * r for r in residuals) / 2


def logistic(xs: Any, A: np.ndarray, y: np.ndarray) -> Any:
    (x,) = xs
    margins = [mpf(float(label)) * _dot(row, x) for row, label in zip(A, y, strict=True)]
    return mpmath.fsum(max(-t, mpf(0)) + mpmath.log1p(mpmath.exp(-abs(t))) for t in margins)


def power_sum(p: float) -> Exact:
    def value(xs: Any, weights: np.ndarray) -> Any:
        (x,) = xs
        return _dot(weights.ravel(), [abs(entry) ** mpf(p) for entry in x])

    return value


def multilinear(sign: float) -> Exact:
    def value(xs: Any, A: np.ndarray) -> Any:
        places = itertools.product(*(range(n) for n in A.shape))
        return sign * mpmath.fsum(
            mpf(float(A[place])) * mpmath.fprod(x[j] for x, j in zip(xs, place, strict=True))
            for place in places
        )

    return value


def factored(xs: Any, weights: np.ndarray, *factors: np.ndarray) -> Any:
    return -mpmath.fsum(
        mpf(float(weight))
        * mpmath.fprod(_dot(F[:, r], x) for F, x in zip(factors, xs, strict=True))
        for r, weight in enumerate(weights)
    )


def polyadic(known: np.ndarray | None = None) -> Exact:
    """Half the squared residuals of a weighted sum of rank-one tensors, where ``known``."""

    def value(xs: Any, A: np.ndarray, weights: np.ndarray) -> Any:
        R, residuals = len(weights), []
        for place in itertools.product(*(range(n) for n in A.shape)):
            if known is not None and not known[place]:
                continue
            model = mpmath.fsum(
                mpf(float(weights[r])) * mpmath.fprod(xs[i * R + r][j] for i, j in enumerate(place))
                for r in range(R)
            )
            residuals.append(mpf(float(A[place])) - model)
        return mpmath.fsum(e * e for e in residuals) / 2

    return value


def summed(xs: Any, Q: np.ndarray, b: np.ndarray, weights: np.ndarray) -> Any:
    return quadratic(xs, Q, b) + power_sum(1.5)(xs, weights)


def with_holes(A: Any) -> Any:
    """NaN where nothing is observed."""
    xp = namespace(A)
    return xp.where(xp.asarray(KNOWN), A, xp.asarray(float("nan"), dtype=A.dtype))


def user_cosine(size: int) -> Function:
    """sum_j cos(x_j) as a user writes it; |cos''| <= 1."""
    return Function(
        lambda x: float(np.sum(np.cos(x))), lambda x: -np.sin(x), shapes=size, constant=1.0
    )


def cases(spread: float = 0.0) -> dict[str, Case]:
    """One case per function; entries are scaled by 10^u, u uniform in [-spread, spread]."""
    rng = np.random.default_rng(20240229)

    def data(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, spread, shape)

    ball, labels = L2Ball(2.0), np.sign(rng.standard_normal(7))
    square, tensor, signed = data(6, 6), data(3, 4, 2, 3), data(5)
    two_balls = (L2Ball(0.7), Box(-1.0, 1.5))
    return {
        "quadratic": Case((square, data(6)), Quadratic, quadratic, (ball,)),
        "concave": Case((-square @ square.T, data(6)), Quadratic, quadratic, (ball,)),
        "convex": Case((square @ square.T, data(6)), Quadratic, quadratic, (ball,)),
        "concave of low rank": Case((data(6, 2),), ConcaveQuadratic, concave_quadratic, (ball,)),
        "no linear part": Case(
            (square,),
            Quadratic,
            lambda xs, Q: quadratic(xs, Q, np.zeros(6)),
            (Box(-1.0, 0.5),),
        ),
        "tall least squares": Case((data(9, 4), data(9)), LeastSquares, least_squares, (ball,)),
        "wide least squares": Case((data(3, 8), data(3)), LeastSquares, least_squares, (ball,)),
        "logistic": Case((data(7, 4), labels), Logistic, logistic, (ball,)),
        "powers": Case((np.abs(data(5)),), lambda w: PowerSum(1.5, w), power_sum(1.5), (ball,)),
        "powers on the simplex": Case(
            (np.abs(data(5)),), lambda w: PowerSum(1.25, w), power_sum(1.25), (Simplex(2.0),)
        ),
        "powers of both signs": Case(
            (signed,), lambda w: PowerSum(1.75, w), power_sum(1.75), (Box(-0.5, 1.5),)
        ),
        "concave powers": Case(
            (-np.abs(signed),), lambda w: PowerSum(1.1, w), power_sum(1.1), (ball,)
        ),
        "squares": Case((signed,), lambda w: PowerSum(2.0, w), power_sum(2.0), (ball,)),
        "bilinear": Case((data(3, 5),), Multilinear, multilinear(-1.0), two_balls),
        "trilinear": Case(
            (data(2, 4, 3),),
            lambda A: Multilinear(A, 1.0),
            multilinear(1.0),
            (*two_balls, L2Ball(3.0)),
        ),
        "quartic": Case((tensor,), Multilinear, multilinear(-1.0), (ball, *two_balls, ball)),
        "factored": Case(
            (data(2), data(3, 2), data(4, 2), data(2, 2)),
            lambda weights, *factors: FactoredTensor((weights, factors)),
            factored,
            (*two_balls, ball),
        ),
        "sum": Case(
            (square, data(6), np.abs(data(6))),
            lambda Q, b, w: Sum(Quadratic(Q, b), PowerSum(1.5, w)),
            summed,
            (Box(-1.0, 2.0),),
        ),
        "inexact": Case(
            (square, data(6)), lambda Q, b: Inexact(Quadratic(Q, b), 1e-3), quadratic, (ball,)
        ),
        "user code": Case(
            (np.zeros(4),),
            lambda zero: user_cosine(zero.shape[0]),
            lambda xs, zero: mpmath.fsum(mpmath.cos(entry) for entry in xs[0]),
            (L2Ball(4.0),),
        ),
        "polyadic": Case(
            (data(3, 2, 2), np.abs(data(2))),
            CanonicalPolyadic,
            polyadic(),
            (ball, *two_balls) * 2,
        ),
        "polyadic with missing entries": Case(
            (data(*KNOWN.shape), np.abs(data(2))),
            lambda A, weights: CanonicalPolyadic(with_holes(A), weights),
            polyadic(KNOWN),
            (ball, L2Ball(0.7)) * 3,
        ),
    }
