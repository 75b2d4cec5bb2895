"""The methods that the paper compares with, as methods of the grid, and what is noted of a run on its way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from restpoint.array import Array, expand, inner, namespace, to_host
from restpoint.errors import CapabilityError
from restpoint.methods import (
    BlockMethod,
    FullStep,
    Key,
    Method,
    Smoothness,
    State,
    WithoutGuarantee,
)
from restpoint.methods.state import Seen
from restpoint.penalties import L1
from restpoint.problem import Block, Blocks, Problem
from restpoint.sets import L2Ball
from restpoint.smooth import Curvature

# What counts as a rise of Phi, and not as rounding.
RISE = 1e-9
# Of ||y - x||^2: below, the rounding of the values decides what lambda a step seems to need.
MOVED = 1e-10


@dataclass(frozen=True)
class SphereBlockMinimisation(BlockMethod):
    r"""Exact block minimisation on unit spheres: y = argmin over ||y|| = 1 of g'y + rho ||y||_1 (theory E34).

    With z = soft(-g, rho): y = z / ||z||, and where z = 0 the unit vector -sgn(g_j) e_j with the largest |g_j|, the
    case that the paper leaves out. ``Jacobi()`` is the paper's BCD, whose Phi may rise (theory E37);
    ``GaussSeidel("cyclic")`` and ``MaxImprovement("decrease")``, the MBI of Chen et al., never raise it where f is
    linear in each block. Spheres are not convex, and no theorem of the paper covers any of the three.

    The problem states unit balls, and so does the certificate: max over ||y|| <= 1 of g'(x - y) + h(x) - h(y). The
    spheres lie in the balls, so for f linear in each block it bounds from above what exact minimisation of any one
    block can still gain on its sphere. The two are equal where z != 0. Where z = 0 the ball's minimiser is 0, and the
    certificate exceeds the gain on the sphere by rho - ||g||_inf: then a point that no step on the spheres improves
    is not certified, rightly, because the balls hold a better one.
    """

    smoothness: Smoothness = field(default_factory=FullStep)

    def check_blocks(self, problem: Problem, curvature: Curvature) -> None:
        for i, block in enumerate(problem.blocks):
            if block.set != L2Ball() or not isinstance(block.penalty, L1):
                raise CapabilityError(
                    f"block {i} is {block.set} x {block.penalty}; SphereBlockMinimisation is written for "
                    "L2Ball() x L1(weight): use ConditionalGradient for other blocks"
                )

    def move(
        self, block: Block, x: Array, seen: Seen, constant: Array, p: float
    ) -> tuple[Array, Array]:
        g, xp = seen.gradient, namespace(seen.gradient)
        z = block.penalty.prox(-g, 1.0)
        length = xp.sqrt(inner(z, z))
        largest = xp.argmax(xp.abs(g), axis=-1)[..., None] == xp.arange(g.shape[-1])
        unit = xp.where(largest, xp.where(g > 0, -1.0, 1.0), 0.0)
        outside = expand(length > 0.0)
        y = xp.where(outside, z / xp.where(outside, expand(length), 1.0), unit)
        return y, seen.penalty - block.penalty.value(y) + inner(g, x - y)


class Watched(Method):
    """Runs a method and notes, of what was seen anyway, the lambda that its steps needed and how often Phi rose.

    ``lambda_needed`` is the smallest lambda >= 0 that makes Assumption 1.1 (p = 2) true for every step taken, from
    one iterate to the next: the largest 2 [f(y) - f(x) - grad f(x)'(y - x)] / ||y - x||^2. It is no constant of f:
    elsewhere more may be needed (theory E32). ``rises`` counts the iterations that raised Phi by more than RISE.
    Both are those of one run: make a new one for the next.
    """

    def __init__(self, method: WithoutGuarantee) -> None:
        self.method, self.lambda_needed, self.rises = method, 0.0, 0

    @property
    def exact(self) -> bool:
        return self.method.exact

    @property
    def moves_together(self) -> bool:
        return self.method.moves_together

    def check(self, problem: Problem) -> None:
        self.method.check(problem)

    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        return self.method.init(problem, xs, key)

    def step(self, problem: Problem, state: State) -> State:
        new = self.method.step(problem, state)
        before, after = _phi(state), _phi(new)
        excess = after - sum(new.look.penalties) - (before - sum(state.look.penalties))
        moved = 0.0 * excess
        for x, y, g in zip(state.xs, new.xs, state.look.gradients, strict=True):
            excess = excess - inner(g, y - x)
            moved = moved + inner(y - x, y - x)
        far = moved > MOVED
        needed = np.max(
            2.0 * to_host(excess)[to_host(far)] / to_host(moved)[to_host(far)], initial=0.0
        )
        self.lambda_needed = max(self.lambda_needed, float(needed))
        self.rises += int(np.sum(to_host(after - before) > RISE))
        return new


def _phi(state: State) -> Array:
    value = state.look.value
    assert value is not None  # seen with exact gradients
    return value
