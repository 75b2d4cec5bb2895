"""Three measures of stationarity, and the inequalities between them (paper, Section 2)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import (
    Array,
    convert,
    expand,
    inner,
    namespace,
    real_number,
    to_host,
)
from restpoint.errors import CapabilityError, DataError, described
from restpoint.omega import omega, omega_inverse
from restpoint.penalties import Penalty, SeparableSublinear
from restpoint.problem import Blocks, Problem

# Halvings of the bracket of the multiplier, in logarithms. Any multiplier gives a sound bound.
HALVINGS = 64
# The bracket of the multiplier, in units of the one that is certainly large enough.
SMALLEST_SHARE = 1e-16


class Inequality(NamedTuple):
    """``smaller`` <= ``larger``, per start, and where that is proved."""

    words: str
    source: str
    smaller: np.ndarray
    larger: np.ndarray


@dataclass(frozen=True, eq=False)
class Measures:
    r"""How far points are from stationary, in the three ways of the paper and through the proximal step.

    NumPy arrays of the batch shape. Blocks count together, as one block of the product of the sets; ||.|| is Euclidean.

    gap             Triangle L = max over y in S of grad f(x)'(x - y) + h(x) - h(y) = -psi_S(x)
    chi             the same with ||y - x|| <= 1 only: an upper bound, found by one multiplier; for h = 0 the chi_S of
                    Cartis, Gould and Toint
    chi_lower       what a point y with ||y - x|| <= 1 attains: chi lies between the two
    residual        ||P_S(x, gamma)||, P_S = (x - x+)/gamma with the proximal point x+ of weight 1/gamma, p = 2
    improvement     Triangle U = the decrease of the model at x+
    by_step         the bound on Triangle L that the move to x+ implies (theory A1)
    by_improvement  the one that Triangle U implies (theory E7), never smaller
    slope           dist(0, grad f(x) + subdifferential of h at x); NaN where h does not tell
    reach           max over y in S of ||y - x||
    diameter        diam_2(S)
    gamma           as given

    These are numbers, not proofs: rounding is not allowed for. ``certify`` does that.
    """

    gap: np.ndarray
    chi: np.ndarray
    chi_lower: np.ndarray
    residual: np.ndarray
    improvement: np.ndarray
    by_step: np.ndarray
    by_improvement: np.ndarray
    slope: np.ndarray
    reach: np.ndarray
    diameter: np.ndarray
    gamma: np.ndarray

    @property
    def psi(self) -> np.ndarray:
        """psi_S(x) = min over y in S of grad f(x)'(y - x) + h(y) - h(x) <= 0 (paper, Definition 1.2 with theory E1)."""
        return -self.gap

    @property
    def inequalities(self) -> tuple[Inequality, ...]:
        """Proposition 2.1 and Lemma 2.2 as they are true, pointwise; where the slope is unknown, NaN."""
        weight = self.reach**2 / self.gamma
        lipschitz = self.gamma * self.slope + self.diameter
        return (
            Inequality("chi <= Triangle L", "Prop. 2.1(i)", self.chi_lower, self.gap),
            Inequality(
                "Triangle L <= max{1, diam} chi",
                "theory E6",
                self.gap,
                np.maximum(1.0, self.diameter) * self.chi,
            ),
            Inequality(
                "||P||^2 <= Triangle L / gamma",
                "Prop. 2.1(ii)",
                self.residual**2,
                self.gap / self.gamma,
            ),
            Inequality(
                "Triangle L <= (gamma slope + diam) ||P||",
                "theory E6",
                self.gap,
                lipschitz * self.residual,
            ),
            Inequality("Triangle U <= Triangle L", "theory E7", self.improvement, self.gap),
            Inequality(
                "omega(Triangle L) <= Triangle U",
                "theory E7",
                np.asarray(omega(self.gap, weight)),
                self.improvement,
            ),
            Inequality("Triangle L <= by_step", "theory A1", self.gap, self.by_step),
            Inequality("by_step <= by_improvement", "theory A1", self.by_step, self.by_improvement),
        )

    def reshape(self, batch_shape: tuple[int, ...]) -> Measures:
        """The same with its batch axes spread over ``batch_shape``."""
        changes: dict[str, Any] = {
            field.name: np.broadcast_to(getattr(self, field.name), self.gap.shape).reshape(
                batch_shape
            )
            for field in fields(self)
        }
        return replace(self, **changes)

    def __str__(self) -> str:
        shown = [
            ("Triangle L = -psi", self.gap),
            ("chi, from below", self.chi_lower),
            ("chi, from above", self.chi),
            ("||P||", self.residual),
            ("Triangle U", self.improvement),
            ("Triangle L by the step (A1)", self.by_step),
            ("Triangle L by Triangle U (E7)", self.by_improvement),
        ]
        return "\n".join(f"{name:30} {_brief(value)}" for name, value in shown)


def measures(problem: Problem, xs: Array | Blocks, gamma: float | np.ndarray = 1.0) -> Measures:
    r"""psi, chi, the proximal residual and Triangle U at ``xs``, in float64, and what they imply about each other.

    ``gamma`` > 0 is a number, or one per start: the step of the proximal point
    x+ = argmin over y in S of grad f(x)'y + ||y - x||^2 / (2 gamma) + h(y). One gradient, a linear oracle and about
    70 proximal ones per block: chi is min over w >= 0 of w/2 + Triangle U of weight w, which is convex in w and whose
    every value is an upper bound. (Paper, Section 2 with theory E1, E6, E7, A1.)

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> found = rp.measures(problem, np.array([0.6, 0.0]), gamma=0.5)
    >>> float(found.gap), round(float(found.residual), 6)
    (0.96, 0.6)
    """
    if not isinstance(problem, Problem):
        raise DataError(f"problem must be a restpoint.Problem, got {described(problem)}")
    given = problem.as_blocks(xs)
    problem, xs, batch = problem.aligned(
        tuple(namespace(x).astype(x, namespace(x).float64) for x in given)
    )
    for i, block in enumerate(problem.blocks):
        if not block.oracle.can_prox(2.0):
            raise CapabilityError(
                f"block {i} ({block.oracle.name}) has no prox for p = 2, which chi, the residual and Triangle U need; "
                "psi alone is minus the sum of certify(problem, xs)"
            )
    point = _Point(problem, xs)
    return point.measured(_steps(gamma, batch, point.gap)).reshape(batch)


class _Point:
    """A batch of points with what is seen there."""

    def __init__(self, problem: Problem, xs: Blocks) -> None:
        self.problem, self.xs = problem, xs
        self.gradients = problem.smooth.gradient(xs)
        self.penalties = [b.penalty.value(x) for b, x in zip(problem.blocks, xs, strict=True)]
        answers = [
            block.oracle.linear(g) for block, g in zip(problem.blocks, self.gradients, strict=True)
        ]
        self.farthest = tuple(answer.point for answer in answers)
        self.gap = self._sum(
            inner(g, x, block.set.event_ndim) + h - answer.lower
            for block, x, g, h, answer in zip(
                problem.blocks, xs, self.gradients, self.penalties, answers, strict=True
            )
        )

    def measured(self, gamma: Array) -> Measures:
        """Everything, for one step gamma per start."""
        weight = 1.0 / gamma
        points, improvement = self.proximal(weight)
        moved = self.square(points)
        upper, lower = self.chi()
        reach = self._root(b.set.reach(x, 2.0) for b, x in self.blocks)
        diameter = self._root(
            b.set.diameter(2.0, shape) + 0.0 * self.gap
            for (b, _), shape in zip(self.blocks, self.problem.shapes, strict=True)
        )
        # R_w = max over y of d'(y - x), d = x+ - x: a linear maximisation, without h (theory A1).
        farthest = self._sum(
            block.set.support(y - x) - inner(y - x, x, block.set.event_ndim)
            for (block, x), y in zip(self.blocks, points, strict=True)
        )
        return Measures(
            gap=to_host(self.gap),
            chi=to_host(upper),
            chi_lower=to_host(lower),
            residual=to_host(namespace(moved).sqrt(moved) * weight),
            improvement=to_host(improvement),
            by_step=to_host(improvement - 0.5 * weight * moved + weight * farthest),
            by_improvement=to_host(omega_inverse(improvement, weight * reach * reach)),
            slope=to_host(self._slope()),
            reach=to_host(reach),
            diameter=to_host(diameter),
            gamma=to_host(gamma),
        )

    @property
    def blocks(self) -> list[tuple[Any, Array]]:
        """Every block with its point."""
        return list(zip(self.problem.blocks, self.xs, strict=True))

    def proximal(self, weight: Array) -> tuple[Blocks, Array]:
        """The proximal points of that weight, and the decrease of the model, Triangle U."""
        answers = [
            block.oracle.prox(g, x, weight, 2.0)
            for (block, x), g in zip(self.blocks, self.gradients, strict=True)
        ]
        decrease = self._sum(h - a.value for h, a in zip(self.penalties, answers, strict=True))
        return tuple(answer.point for answer in answers), decrease

    def chi(self) -> tuple[Array, Array]:
        """An upper and a lower bound on max of grad f'(x - y) + h(x) - h(y) over y in S with ||y - x|| <= 1.

        Above: w/2 + Triangle U of weight w (Lagrange), at a w where ||x+ - x|| is 1; w = 0 where the farthest point is
        near. Below: the value at x + (x+ - x) / max{1, ||x+ - x||}.
        """
        xp = namespace(self.gap)
        # ||x+ - x||^2 <= 2 Triangle U / w <= 2 Triangle L / w: 1 at the most for this w.
        enough = xp.maximum(2.0 * self.gap, float(xp.finfo(self.gap.dtype).smallest_normal))
        low, high = SMALLEST_SHARE * enough, enough
        for _ in range(HALVINGS):
            middle = xp.sqrt(low) * xp.sqrt(high)
            far = self.square(self.proximal(middle)[0]) > 1.0
            low, high = xp.where(far, middle, low), xp.where(far, high, middle)
        points, decrease = self.proximal(high)
        near = self.square(self.farthest) <= 1.0
        upper = xp.where(near, self.gap, xp.minimum(self.gap, 0.5 * high + decrease))
        points = tuple(
            xp.where(expand(near, x.ndim - near.ndim), y, z)
            for x, y, z in zip(self.xs, self.farthest, points, strict=True)
        )
        length = xp.maximum(xp.sqrt(self.square(points)), 1.0)
        return upper, self._attained(points, length)

    def _attained(self, points: Blocks, length: Array) -> Array:
        """What x + (y - x) / length gains in the linear model."""
        total = []
        for (block, x), y, g, h in zip(
            self.blocks, points, self.gradients, self.penalties, strict=True
        ):
            ndim = block.set.event_ndim
            d = (y - x) / expand(length, ndim)
            total.append(h - inner(g, d, ndim) - block.penalty.value(x + d))
        return self._sum(total)

    def square(self, points: Blocks) -> Array:
        """||y - x||^2."""
        return self._sum(
            inner(y - x, y - x, block.set.event_ndim)
            for (block, x), y in zip(self.blocks, points, strict=True)
        )

    def _slope(self) -> Array:
        """dist(0, grad f + subdifferential of h), entry by entry where h is a sum of max(low x, high x)."""
        total = []
        for (block, x), g in zip(self.blocks, self.gradients, strict=True):
            nearest = _least_subgradient(block.penalty, x, g)
            total.append(inner(nearest, nearest, block.set.event_ndim))
        return namespace(self.gap).sqrt(self._sum(total))

    def _root(self, parts: Any) -> Array:
        """The root of a sum of squares."""
        return namespace(self.gap).sqrt(self._sum(part * part for part in parts))

    @staticmethod
    def _sum(parts: Any) -> Array:
        return reduce(add, parts)


def _least_subgradient(penalty: Penalty, x: Array, g: Array) -> Array:
    """The smallest element of g + the subdifferential of h at x, NaN where h does not tell."""
    if not isinstance(penalty, SeparableSublinear):
        return g + float("nan")
    xp = namespace(x)
    low, high = (slope + 0.0 * x for slope in penalty.slopes())
    least, most = xp.where(x > 0.0, high, low), xp.where(x < 0.0, low, high)
    return g + xp.minimum(xp.maximum(-g, least), most)


def _steps(gamma: Any, batch: tuple[int, ...], like: Array) -> Array:
    """gamma for every start of a batch, on the axes of ``like``."""
    expected = "a finite number > 0, or one per start"
    if not isinstance(gamma, np.ndarray) or gamma.ndim == 0:
        steps = np.full(batch, real_number("gamma", gamma, expected))
    else:
        steps = np.broadcast_to(_numbers(gamma, batch, expected), batch)
    if not np.all(np.isfinite(steps) & (steps > 0.0)):
        raise DataError(f"gamma must be {expected}, got {gamma!r}")
    return convert(np.ascontiguousarray(steps).reshape(like.shape), like)


def _numbers(gamma: np.ndarray, batch: tuple[int, ...], expected: str) -> np.ndarray:
    try:
        np.broadcast_shapes(gamma.shape, batch)
        fits = np.broadcast_shapes(gamma.shape, batch) == batch and gamma.dtype.kind in "iuf"
    except ValueError:
        fits = False
    if not fits:
        raise DataError(
            f"gamma must be {expected}, got an array of shape {gamma.shape} and type {gamma.dtype} for starts {batch}"
        )
    return gamma.astype(np.float64)


def _brief(values: np.ndarray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.3g}" if low == high else f"{low:.3g} .. {high:.3g}"
