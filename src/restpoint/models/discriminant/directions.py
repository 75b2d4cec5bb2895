"""Discriminant vectors, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from restpoint.array import take, to_host
from restpoint.bounds import Bound
from restpoint.certificates import Certificate, certify
from restpoint.methods import ConditionalGradient, FullStep
from restpoint.models.discriminant.spaces import Space
from restpoint.problem import Problem
from restpoint.run import Result, Status, Stop, solve

# Of degree 1, the search settles in a few full steps; extrapolation would pay for its trials in vain.
METHOD = ConditionalGradient(smoothness=FullStep())
# The largest useful penalty is known to this share; what is tried to raise it, and for how long.
CEILING, RAISES, LEADERS = 1e-3, 50, 2
# A component along which classes differ by less than this share of the first is none.
NOTHING = 1e-6
# Halvings of the interval in which a number of features is sought, from this share of the largest penalty on.
HALVINGS, LEAST = 14, 1e-4
# gamma="auto", as a share of the largest penalty.
AUTO = 0.5
# Of the tolerance, what is asked of the search: what it finds is certified for the problem itself.
STRICTER = 0.25


@dataclass(frozen=True)
class Wish:
    """What decides about the sparsity of one component: a share of the largest penalty, or a number of features."""

    share: float = AUTO
    features: int | None = None


@dataclass(frozen=True)
class Budget:
    """Starts, tolerance, the seed of what is drawn, and how many seconds are left (None: no limit)."""

    starts: int
    tol: float
    seed: int
    left: Callable[[], float] | None = None

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left is not None and self.left() <= 0.01


@dataclass(frozen=True)
class Component:
    """One discriminant vector, and what is proved about it.

    x            the point of ``problem`` that the certificate speaks of
    w            what it stands for: one number for each feature, zeros exact
    share        the penalty of the search, as a share of the largest
    gamma        that of ``problem``: share * largest * ||F'x||
    """

    x: np.ndarray
    w: np.ndarray
    problem: Problem
    certificate: Certificate
    status: Status
    eps: float
    share: float
    gamma: float
    iterations: int
    bound: Bound | None

    @property
    def certified(self) -> bool:
        """Whether the gap is proved to be at most eps."""
        return self.status is Status.CERTIFIED

    @property
    def empty(self) -> bool:
        """Whether it is 0."""
        return not np.any(self.w)


@dataclass(frozen=True)
class Opening:
    """Where the search for a component begins: the largest useful penalty, and starts, the best of them first."""

    largest: float
    pool: np.ndarray

    @classmethod
    def of(cls, space: Space, number: int, budget: Budget) -> Opening:
        """For the component of this number."""
        starts = space.starts(budget.starts, np.random.default_rng((budget.seed, number)))
        largest, best = ceiling(space, starts, budget)
        return cls(largest, np.concatenate([best, starts])[: budget.starts + len(best)])


def sought(
    space: Space,
    wishes: list[Wish],
    budget: Budget,
    opening: Opening | None = None,
    near: Sequence[Component] = (),
) -> list[Component]:
    """One component for each wish, each orthogonal to the earlier ones.

    ``opening`` is that of the first, if known; ``near`` are components for similar wishes, which then take the place of
    all starts but the best.
    """
    found: list[Component] = []
    first = space.strongest
    for number, wish in enumerate(wishes):
        if not space.strongest > NOTHING * first:
            found.append(_nothing(space, budget))
            continue
        if opening is None:
            opening = Opening.of(space, number, budget)
        if wish.features is None:
            pool = opening.pool
            if near and not near[number].empty:
                pool = np.concatenate(
                    [space.kept(space.inward(near[number].w[None])), pool[:LEADERS]]
                )
            one = at(space, pool, (wish.share, opening.largest), budget)
        else:
            one = _with_features(space, opening, wish.features, budget)
        found.append(one)
        if not one.empty:
            space, opening = space.without(one.x), None
    return found


def ceiling(space: Space, starts: np.ndarray, budget: Budget) -> tuple[float, np.ndarray]:
    """The largest t at which a vector better than 0 is known, and the vectors that show it.

    t S(x) - ||F'x|| is negative exactly where t < ||F'x|| / S(x), S(x) = sum_j sigma_j |w_j|. Every vector takes full
    steps at its own t = ratio: a step ends at a value <= 0, for f is concave, hence at a ratio at least as large
    (Dinkelbach). The best few go on until none gains any more.
    """
    ratios, order = _leaders(space, starts)
    xs, hint = starts[order], None
    for _ in range(RAISES):
        best = float(ratios[0])
        if not best > 0.0 or budget.over:
            break
        # A little below the ratio, or 0 would be as good an answer as any.
        oracle = space.block(ratios * (1.0 - 0.1 * CEILING)).oracle
        slack = 0.1 * CEILING * space.separation(xs)
        answer = oracle.linear_near(space.steepness(xs), xs, hint, slack)
        rows = np.concatenate([answer.point, xs])
        ratios, order = _leaders(space, rows)
        xs, hint = rows[order], take(answer.hint, order % len(xs))
        if not ratios[0] > best * (1.0 + CEILING):
            break
    return float(ratios[0]), xs


def at(space: Space, pool: np.ndarray, penalty: tuple[float, float], budget: Budget) -> Component:
    """The best certified vector at a share of the largest penalty, from every point of the pool."""
    share, largest = penalty
    t = share * largest
    eps = 0.5 * budget.tol * space.strongest**2
    run = _run(space.search(t), pool, STRICTER * eps / space.strongest, budget)
    one = run.best()
    x = space.settled(np.asarray(to_host(one.x)))
    gamma = t * float(space.separation(x))
    problem = space.problem(gamma)
    certificate = certify(problem, x)
    holds = bool(np.all(certificate.holds(np.asarray(eps))))
    ended = one.status if one.status is not Status.CERTIFIED else Status.STALLED
    return Component(
        x=x,
        w=space.vector(x),
        problem=problem,
        certificate=certificate,
        status=Status.CERTIFIED if holds else ended,
        eps=eps,
        share=share,
        gamma=gamma,
        iterations=int(one.iterations),
        bound=one.bound,
    )


def _with_features(space: Space, opening: Opening, features: int, budget: Budget) -> Component:
    """The vector with the most features of those with at most ``features``; else the sparsest that was met.

    By halving the interval of the logarithm of the penalty, from the last vector found and the pool.
    """
    low, high, pool = np.log(LEAST), np.log(1.0 - CEILING), opening.pool
    best: Component | None = None
    iterations = 0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        one = at(space, pool, (float(np.exp(middle)), opening.largest), budget)
        iterations += one.iterations
        count = np.count_nonzero(one.w)
        best = one if best is None else _closer(one, best, features)
        if not one.empty:
            pool = np.concatenate([one.x[None], pool])[: len(pool)]
        low, high = (low, middle) if count <= features else (middle, high)
        if count == features or budget.over:
            break
    assert best is not None
    return replace(best, iterations=iterations)


def _closer(one: Component, other: Component, features: int) -> Component:
    a, b = (np.count_nonzero(c.w) for c in (one, other))
    if not (a and b):
        return one if a else other
    if a <= features and b <= features:
        return one if a >= b else other
    return one if a < b else other


def _nothing(space: Space, budget: Budget) -> Component:
    """The zero vector, where classes differ no more; to a tolerance that no constraint has taken anything from."""
    problem, eps = space.problem(0.0), max(0.5 * budget.tol * space.scale**2, 1e-300)
    x = np.zeros(problem.shapes[0])
    certificate = certify(problem, x)
    holds = bool(np.all(certificate.holds(np.asarray(eps))))
    status = Status.CERTIFIED if holds else Status.STALLED
    return Component(
        x, space.vector(x), problem, certificate, status, eps, 0.0, 0.0, 0, None
    )  # fmt: skip


def _run(problem: Problem, x0: np.ndarray, eps: float, budget: Budget) -> Result:
    stop = Stop(max_iterations=5000, max_seconds=None if budget.left is None else budget.left())
    return solve(problem, METHOD, eps=max(eps, 1e-300), x0=x0, stop=stop)


def _leaders(space: Space, xs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest ||F'x|| / S(x) of the rows, and where they are."""
    size = space.penalty(xs)
    ratio = np.where(size > 0, space.separation(xs) / np.where(size > 0, size, 1.0), 0.0)
    order = np.argsort(-ratio, kind="stable")[:LEADERS]
    return ratio[order], order
