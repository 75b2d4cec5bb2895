"""Which gradient a look sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restpoint.array import Array, convert, generator, namespace, real_number, whole_number
from restpoint.errors import CapabilityError, DataError
from restpoint.methods.state import Key
from restpoint.problem import Blocks, Problem
from restpoint.smooth import Sweep

Evaluation = tuple[Array | None, Blocks, float]


class Gradient(ABC):
    """Gives f (or None), its gradient or an estimate, and the number of samples used."""

    exact: ClassVar[bool] = False
    examples: ClassVar[str] = "Exact(), MiniBatch(m) or Smoothed(radius, m)"

    def check(self, problem: Problem) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse a function that cannot be sampled."""

    @abstractmethod
    def evaluate(
        self, problem: Problem, xs: Blocks, key: Key, sweep: Sweep | None = None
    ) -> Evaluation:
        """Look at f, with the help of the sweep that led to ``xs``."""


@dataclass(frozen=True)
class Exact(Gradient):
    """The gradient itself."""

    exact: ClassVar[bool] = True

    def evaluate(
        self, problem: Problem, xs: Blocks, key: Key, sweep: Sweep | None = None
    ) -> Evaluation:
        value, gradients = (
            problem.smooth.value_and_gradient(xs) if sweep is None else sweep.value_and_gradient()
        )
        return value, gradients, 0.0


@dataclass(frozen=True)
class MiniBatch(Gradient):
    """The mean over ``m`` summands drawn uniformly with replacement, per start (paper, Algorithm 3).

    The returned point is that of a uniformly random iteration, because the argmin of noisy gaps is biased (theory
    E14, E15); it is then certified with the exact gradient.
    """

    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", whole_number("m", self.m, 1))

    def check(self, problem: Problem) -> None:
        if problem.smooth.terms is None:
            raise CapabilityError(
                f"MiniBatch needs a finite sum, which {type(problem.smooth).__name__} is not; use Exact()"
            )

    def evaluate(
        self, problem: Problem, xs: Blocks, key: Key, sweep: Sweep | None = None
    ) -> Evaluation:
        terms = problem.smooth.terms or 0  # check() has refused functions that are not sums
        draws = [_stream(key, start).integers(terms, size=self.m) for start in key.starts]
        index = namespace(xs[0]).asarray(np.stack(draws), device=xs[0].device)
        return None, problem.smooth.batch_gradient(xs, index), float(self.m)


@dataclass(frozen=True)
class Smoothed(Gradient):
    """Gradients of nondifferentiable concave parts, averaged over ``m`` points of a ball (paper, Algorithm 4).

    x + radius u, u uniform in the unit ball of all blocks together; differentiable parts are taken exactly. The concave
    parts are asked as far as ``radius`` outside of the set, and have to be concave and finite there (theory E17).
    """

    radius: float
    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", whole_number("m", self.m, 1))
        radius = real_number("radius", self.radius, "a finite number > 0")
        if not radius > 0:
            raise DataError(f"radius must be a finite number > 0, got {radius}")
        object.__setattr__(self, "radius", radius)

    def evaluate(
        self, problem: Problem, xs: Blocks, key: Key, sweep: Sweep | None = None
    ) -> Evaluation:
        if problem.smooth.differentiable:  # nothing to smooth, nothing to sample
            return None, problem.smooth.gradient(xs), 0.0
        sizes = [int(np.prod(shape)) for shape in problem.shapes]
        balls = [_unit_ball(_stream(key, start), self.m, sum(sizes)) for start in key.starts]
        points = np.stack(balls, axis=1)  # (m, starts, all entries)
        cuts = np.split(points, np.cumsum(sizes)[:-1], axis=-1)
        noise = tuple(
            convert(cut.reshape((self.m, len(key.starts), *shape)), x)
            for cut, shape, x in zip(cuts, problem.shapes, xs, strict=True)
        )
        gradients = problem.smooth.smoothed_gradient(xs, noise, self.radius)
        return None, gradients, float(self.m)


def _stream(key: Key, start: int) -> np.random.Generator:
    return generator(key.seed, "gradient", int(start), key.iteration)


def _unit_ball(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """``count`` points uniform in the unit ball of R^size."""
    direction = rng.standard_normal((count, size))
    length = np.sqrt(np.sum(direction**2, axis=-1, keepdims=True))
    return np.asarray(direction / length * rng.random((count, 1)) ** (1.0 / size))
