"""Discriminant vectors, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restpoint.array import to_host
from restpoint.certificates import Certificate, certify
from restpoint.methods import ConditionalGradient, FullStep, Method, Momentum
from restpoint.models.discriminant.spaces import Space
from restpoint.problem import Problem
from restpoint.run import Result, Status, Stop, solve

# Gradients depend on as few numbers as there are classes: mixing the last few of them is cheap, and pays.
METHOD: Method = Momentum(ConditionalGradient(smoothness=FullStep()), memory=5)
# gamma_max is known to this share; what is tried to raise it, and for how long.
CEILING, RAISES, SHORT = 1e-3, 12, 40
# A component that explains less than this share of the first one's scatter between classes is none.
NOTHING = 1e-12
# Halvings of the interval in which a number of features is sought.
HALVINGS = 14
# gamma="auto", as a share of gamma_max.
AUTO = 0.5


@dataclass(frozen=True)
class Wish:
    """What decides about the sparsity of one component: a share of gamma_max, or a number of features."""

    share: float = AUTO
    features: int | None = None


@dataclass(frozen=True)
class Budget:
    """Starts, tolerance, and what they are drawn from."""

    starts: int
    tol: float
    seed: int
    deadline: Any  # () -> seconds left, or None


@dataclass(frozen=True)
class Component:
    """One discriminant vector, and what is proved about it.

    x            the point of ``problem`` that is certified
    w            what it stands for: one number for each feature, zeros exact
    gamma        the penalty, gamma_max the largest at which a vector better than 0 is known
    """

    x: np.ndarray
    w: np.ndarray
    problem: Problem
    certificate: Certificate
    status: Status
    eps: float
    gamma: float
    gamma_max: float
    iterations: int
    bound: Any

    @property
    def certified(self) -> bool:
        """Whether the gap is proved to be at most eps."""
        return self.status is Status.CERTIFIED

    @property
    def empty(self) -> bool:
        """Whether it is 0."""
        return not np.any(self.w)


def sought(space: Space, wishes: list[Wish], budget: Budget) -> list[Component]:
    """One component for each wish, each orthogonal to the earlier ones."""
    found: list[Component] = []
    first = space.strongest
    for number, wish in enumerate(wishes):
        rng = np.random.default_rng((budget.seed, number))
        scale = space.strongest
        if not scale > NOTHING * first or scale <= 0.0:
            found.append(_nothing(space, budget.tol * first))
            continue
        starts = space.starts(budget.starts, rng)
        gamma_max, best = ceiling(space, starts, budget)
        pool = np.concatenate([best, starts])[: max(budget.starts, 1)]
        if wish.features is not None:
            one = _with_features(space, pool, gamma_max, wish.features, budget)
        else:
            one = at(space, pool, wish.share * gamma_max, gamma_max, budget)
        found.append(one)
        if not one.empty:
            space = space.without(one.x)
    return found


def ceiling(space: Space, starts: np.ndarray, budget: Budget) -> tuple[float, np.ndarray]:
    """gamma_max: the largest gamma at which a vector better than 0 is known, and the vectors that show it.

    Phi(x) = gamma S(x) - G(x), G(x) = ||F'x||^2 / 2, S(x) = sum_j sigma_j |w_j|, is negative exactly where
    gamma < G/S. As Dinkelbach does, the ratio is raised by descents at gamma = ratio, which end at a Phi <= 0, hence
    at a ratio at least as large, until it gains no more. Along a ray G/S grows with the length: only lengths 1 count.
    """
    xs, ratio, order = starts, *_ratios(space, starts)
    for _ in range(RAISES):
        if not ratio > 0.0 or over(budget):
            break
        # Just below, or 0 would be as good an end as any.
        gamma = ratio * (1.0 - 0.1 * CEILING)
        result = _run(space.problem(gamma), xs[order], CEILING * space.strongest, budget, SHORT)
        moved = _rows(result)
        raised, places = _ratios(space, moved)
        if raised > ratio:
            xs, order = np.concatenate([moved[places], xs[order]]), np.arange(min(2, len(moved)))
        gained, ratio = raised - ratio, max(ratio, raised)
        if not gained > CEILING * ratio:
            break
    return ratio, xs[order]


def at(space: Space, pool: np.ndarray, gamma: float, gamma_max: float, budget: Budget) -> Component:
    """The best certified vector at one gamma, from every point of the pool; 0 where nothing better is known."""
    problem, eps = space.problem(gamma), budget.tol * space.strongest
    result = _run(problem, pool, eps, budget).best()
    x = space.settled(np.asarray(to_host(result.x)))
    zero = np.zeros_like(x)
    certificate = certify(problem, x)
    if not float(certificate.value) < 0.0:
        x, certificate = zero, certify(problem, zero)
    holds = bool(np.all(certificate.holds(np.asarray(eps))))
    status = result.status if result.status is not Status.CERTIFIED else Status.STALLED
    return Component(
        x=x,
        w=space.vector(x),
        problem=problem,
        certificate=certificate,
        status=Status.CERTIFIED if holds else status,
        eps=eps,
        gamma=gamma,
        gamma_max=gamma_max,
        iterations=int(result.iterations),
        bound=result.bound,
    )


def _with_features(
    space: Space, pool: np.ndarray, gamma_max: float, features: int, budget: Budget
) -> Component:
    """The vector with the most features of those with at most ``features``; else the sparsest that was met.

    By halving the interval of log gamma, from the last vector found and the pool.
    """
    low, high = np.log(1e-4 * gamma_max), np.log(0.999 * gamma_max)
    best: Component | None = None
    iterations = 0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        one = at(space, pool, float(np.exp(middle)), gamma_max, budget)
        iterations += one.iterations
        count = np.count_nonzero(one.w)
        if not one.empty:
            best = one if best is None else _closer(one, best, features)
            pool = np.concatenate([one.x[None], pool])[: len(pool)]
        low, high = (low, middle) if count <= features else (middle, high)
        if count == features or over(budget):
            break
    return replace(best, iterations=iterations) if best is not None else one


def _closer(one: Component, other: Component, features: int) -> Component:
    a, b = (np.count_nonzero(c.w) for c in (one, other))
    if a <= features and b <= features:
        return one if a >= b else other
    return one if a < b else other


def _nothing(space: Space, eps: float) -> Component:
    """The zero vector, where classes differ no more."""
    problem = space.problem(0.0)
    x = np.zeros(problem.shapes[0])
    certificate = certify(problem, x)
    holds = bool(np.all(certificate.holds(np.asarray(eps))))
    status = Status.CERTIFIED if holds else Status.STALLED
    return Component(x, space.vector(x), problem, certificate, status, eps, 0.0, 0.0, 0, None)


def _run(
    problem: Problem, x0: np.ndarray, eps: float, budget: Budget, iterations: int = 5000
) -> Result:
    left = budget.deadline() if budget.deadline is not None else None
    stop = Stop(max_iterations=iterations, max_seconds=left)
    return solve(problem, METHOD, eps=max(eps, 1e-300), x0=problem.project(x0)[0], stop=stop)


def _rows(result: Result) -> np.ndarray:
    return np.asarray(to_host(result.last[0])).reshape(-1, *result.problem.shapes[0])


def _ratios(space: Space, xs: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest G/S of the rows, and where the two largest are."""
    size = space.penalty(xs)
    ratio = np.where(size > 0, space.gain(xs) / np.where(size > 0, size, 1.0), 0.0)
    order = np.argsort(-ratio, kind="stable")[:2]
    return float(ratio[order[0]]), order


def over(budget: Budget) -> bool:
    """Whether the time is up."""
    return budget.deadline is not None and budget.deadline() <= 0.01
