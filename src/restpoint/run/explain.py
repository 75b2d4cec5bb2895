"""What would be done, and what is known about it, before anything is solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import to_host
from restpoint.bounds import Bound
from restpoint.errors import DataError
from restpoint.methods import Method
from restpoint.problem import Problem
from restpoint.run.choose import settle
from restpoint.run.door import enter, mirrored
from restpoint.run.guarantee import guarantee
from restpoint.run.solve import checked_eps
from restpoint.run.stop import Measure, Relative, absolute
from restpoint.smooth import Facts


@dataclass(frozen=True)
class Explanation:
    """The method, why it was chosen, what f declares, and the bound from the first starting point."""

    method: Method
    reason: str
    facts: Facts
    oracles: tuple[str, ...]
    eps: float
    bound: Bound

    def __str__(self) -> str:
        lines = [f"method   {self.method}", f"because  {self.reason}", "f"]
        for name in ("joint", "blockwise"):
            found = getattr(self.facts, name)
            said = "unknown" if found is None else f"{found.constants} for p = {found.p:g}"
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
        return "\n".join(lines)


def explain(
    problem: Problem,
    method: Method | None = None,
    *,
    eps: float | Relative = 1e-6,
    x0: Any = None,
    rng: int = 0,
    measure: Measure = "max",
) -> Explanation:
    """Say which method fits and why, which theorem applies, and how many iterations it allows.

    The bound depends on the starting point: ``x0``, or the first that ``solve`` would draw with this ``rng``.

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
    bound = guarantee(
        entrance.problem, method, entrance.xs, eps=numbers, value=value, measure=measure
    ).at((0,))
    oracles = tuple(f"{b.oracle.name}: {b.oracle.kind}" for b in problem.blocks)
    return Explanation(method, reason, problem.facts(), oracles, float(numbers[0]), bound)
