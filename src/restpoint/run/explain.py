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
    Look,
    Majorant,
    MaxImprovement,
    Method,
    ProximalGradient,
    Universal,
    Weighted,
)
from restpoint.problem import Problem
from restpoint.run.choose import settle
from restpoint.run.door import Entrance, enter, mirrored
from restpoint.run.guarantee import guarantee
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
    begin = _Beginning(entrance, eps, measure)
    # As in a run, drawn starts of methods that move all blocks from one gradient are mirrored.
    together = begin if x0 is not None else None

    def bound(one: Method) -> Bound:
        nonlocal together
        if not one.moves_together:
            return begin.bound(one)
        together = together or _Beginning(mirrored(entrance), eps, measure)
        return together.bound(one)

    own = Covered(method, bound(method))
    others = [Covered(one, bound(one)) for one in _covered(problem) if one != method]
    from_here = together if method.moves_together and together is not None else begin
    return Explanation(
        method,
        reason,
        problem.facts(),
        oracles=tuple(f"{b.oracle.name}: {b.oracle.kind}" for b in problem.blocks),
        eps=float(from_here.eps[0]),
        bound=own.bound,
        others=tuple(one for one in others if one.bound.statement and _row(one) != _row(own)),
    )


class _Beginning:
    """A first point, and what bounds ask of it."""

    def __init__(self, entrance: Entrance, eps: float | Relative, measure: Measure) -> None:
        self.entrance, self.measure = entrance, measure
        self.value = gap = to_host(entrance.problem.value(entrance.xs))
        if isinstance(eps, Relative):
            from restpoint.certificates import certify

            certificate = certify(entrance.stated, entrance.xs)
            gap = certificate.max if measure == "max" else certificate.sum
        self.eps = absolute(eps, self.value, gap)
        self._look: Look | None = None

    def bound(self, method: Method) -> Bound:
        """The bound of a run from here."""
        return guarantee(
            self.entrance.problem,
            method,
            self.entrance.xs,
            eps=self.eps,
            value=self.value,
            tried=self._tried(method),
            measure=self.measure,
        ).at((0,))

    def _tried(self, method: Method) -> np.ndarray | None:
        """What a rule of trials would try first."""
        inner = method.method if isinstance(method, Continuation) else method
        if not (isinstance(inner, BlockMethod) and isinstance(inner.smoothness, Weighted)):
            return None
        if self._look is None:
            key = Key(0, self.entrance.starts)  # gradients are exact: nothing is drawn
            with np.errstate(all="ignore"):
                self._look, _ = inner.look(self.entrance.problem, self.entrance.xs, key)
        return to_host(inner.smoothness.remembered(self.entrance.xs, self._look))


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
