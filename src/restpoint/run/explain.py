"""What would be done, and what is known about it, before anything is solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import to_host
from restpoint.bounds import Bound
from restpoint.errors import DataError, RestpointError
from restpoint.methods import (
    Armijo,
    BlockMethod,
    ConditionalGradient,
    Continuation,
    Doubling,
    FullStep,
    GaussSeidel,
    Jacobi,
    Key,
    Majorant,
    MaxImprovement,
    Method,
    ProximalGradient,
    Universal,
)
from restpoint.problem import Problem
from restpoint.run.choose import settle
from restpoint.run.door import Entrance, enter, mirrored
from restpoint.run.guarantee import first_tried, guarantee
from restpoint.run.solve import checked_eps
from restpoint.run.stop import Measure, Relative, absolute
from restpoint.smooth import Facts


class Covered(NamedTuple):
    """A method that could be used, and its bound."""

    method: Method
    bound: Bound


@dataclass(frozen=True)
class Explanation:
    """The method, why it was chosen, what f declares, and the bounds from the first starting point.

    ``bound`` is that of the method; ``others`` those of every other method of the grid that theory covers here.
    """

    method: Method
    reason: str
    facts: Facts
    oracles: tuple[str, ...]
    eps: float
    bound: Bound
    others: tuple[Covered, ...] = ()

    def __str__(self) -> str:
        lines = [f"method   {self.method}", f"because  {self.reason}", "f"]
        for name in ("joint", "blockwise", "cross"):
            found = getattr(self.facts, name)
            said = "unknown" if found is None else f"{found.constants} for p = {found.p:g}"
            if found is not None or name != "cross":
                lines.append(f"  {name:14} constants: {said}")
        declared = ("concave", "block_concave", "convex")
        lines += [f"  {name:14} {getattr(self.facts, name)}" for name in declared]
        lower = self.facts.lower_bound
        lines.append(
            f"  lower bound    {'unknown' if lower is None else np.min(to_host(np.asarray(lower)))}"
        )
        lines += [f"block {i}  {words}" for i, words in enumerate(self.oracles)]
        lines.append(f"bound for eps = {self.eps:.3g}, from the first starting point")
        lines += ["  " + line for line in str(self.bound).splitlines()]
        lines += ["bounds of the methods that theory covers here", *self._table()]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """One line a method: what it may take, what the paper says of it, the rate and the theorem."""
        rows: list[tuple[str, ...]] = [
            ("", "step", "order", "curvature", "at most", "", "paper", "rate", "by")
        ]
        rows += [
            ("*" if covered.method == self.method else "", *_row(covered))
            for covered in (Covered(self.method, self.bound), *self.others)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        used = [k for k, width in enumerate(widths) if width and (k != 2 or len(self.oracles) > 1)]
        return ["  " + "  ".join(row[k].ljust(widths[k]) for k in used).rstrip() for row in rows]


def explain(
    problem: Problem,
    method: Method | None = None,
    *,
    eps: float | Relative = 1e-6,
    x0: Any = None,
    rng: int = 0,
    measure: Measure = "max",
) -> Explanation:
    """Say which method fits and why, which theorems apply, and how many iterations they allow.

    The bounds depend on the starting point: ``x0``, or the first that ``solve`` would draw with this ``rng``.

    >>> import numpy as np, restpoint as rp
    >>> f = rp.smooth.Quadratic(-np.eye(2))
    >>> print(rp.explain(rp.Problem(f, rp.Block(rp.sets.L2Ball())), eps=0.1).reason)
    f is concave: full steps, O(1/eps), no constants (Corollary 3.2)
    """
    eps = checked_eps(eps)
    if measure not in ("max", "sum"):
        raise DataError(f'measure must be "max" or "sum", got {measure!r}')
    entrance = enter(problem, None, x0, rng, None)
    method, reason = settle(problem, method)
    if x0 is None and method.moves_together:
        entrance = mirrored(entrance)
    value = gap = to_host(entrance.problem.value(entrance.xs))
    if isinstance(eps, Relative):
        from restpoint.certificates import certify

        certificate = certify(entrance.stated, entrance.xs)
        gap = certificate.max if measure == "max" else certificate.sum
    numbers = absolute(eps, value, gap)

    def bound(one: Method) -> Bound:
        return _bound(entrance, one, numbers, value, measure, int(rng))

    own = Covered(method, bound(method))
    others = [Covered(one, bound(one)) for one in _covered(problem) if one != method]
    return Explanation(
        method,
        reason,
        problem.facts(),
        oracles=tuple(f"{b.oracle.name}: {b.oracle.kind}" for b in problem.blocks),
        eps=float(numbers[0]),
        bound=own.bound,
        others=tuple(one for one in others if one.bound.statement and _row(one) != _row(own)),
    )


def _bound(
    entrance: Entrance,
    method: Method,
    eps: np.ndarray,
    value: np.ndarray,
    measure: Measure,
    seed: int,
) -> Bound:
    """From the first starting point."""
    tried = None
    if isinstance(method, (BlockMethod, Continuation)):
        with np.errstate(all="ignore"):
            state = method.init(entrance.problem, entrance.xs, Key(seed, entrance.starts))
        tried = first_tried(method, state)
    bound = guarantee(
        entrance.problem, method, entrance.xs, eps=eps, value=value, tried=tried, measure=measure
    )
    return bound.at((0,))


def _covered(problem: Problem) -> Iterator[BlockMethod]:
    """The methods of the grid, with exact gradients, that theory covers on this problem.

    Where an order needs no constants, full steps need no trials either.
    """
    several = len(problem.blocks) > 1
    orders = (GaussSeidel(), GaussSeidel("cyclic"), MaxImprovement(), Jacobi())
    for order in orders if several else orders[:1]:
        full = ConditionalGradient(order, FullStep())
        curved = (
            ConditionalGradient(order, Majorant()),
            ProximalGradient(order, Majorant()),
            ConditionalGradient(order, Armijo()),
            ConditionalGradient(order, Doubling()),
            ProximalGradient(order, Doubling()),
            ProximalGradient(order, Universal()),
        )
        if _fits(full, problem):
            yield full
        else:
            yield from (method for method in curved if _fits(method, problem))


def _fits(method: BlockMethod, problem: Problem) -> bool:
    try:
        method.check(problem)
    except RestpointError:
        return False
    return True


def _row(covered: Covered) -> tuple[str, ...]:
    method, bound = covered
    name = (type(method).__name__, "", "")
    if isinstance(method, BlockMethod):
        order = type(method.order).__name__
        order += ", cyclic" * (getattr(method.order, "first", "") == "cyclic")
        name = (name[0], order, type(method.smoothness).__name__)
    if bound.count is None:
        why = bound.withdrawn or "; ".join(bound.missing)
        return *name, "unknown", "", "", "", f"{bound.statement or 'no theorem'}: {why}"
    paper = "" if bound.paper_bound is None else f"{float(bound.paper_bound):.4g}"
    return *name, f"{float(bound.count):.4g}", bound.counts, paper, bound.rate, bound.statement
