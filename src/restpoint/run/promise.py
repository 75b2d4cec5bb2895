"""Whether the trajectory keeps what the declared constants promise."""

from __future__ import annotations

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, Array, inner, namespace, power_sum, to_host
from restpoint.bounds import Bound
from restpoint.methods import Method, State, WithoutGuarantee
from restpoint.problem import Problem
from restpoint.run.covering import Number
from restpoint.run.guarantee import below
from restpoint.smooth import Curvature


class Promise:
    """Compares every step's decrease of Phi with the one that its curvature constants guarantee.

    A step that falls short by more than rounding can explain disproves the constants (or the declared concavity), a
    value below the declared lower bound disproves that one; and with them falls the iteration bound, for all starts:
    the constants are a property of f. Steps found by trial rely on no constant, but their bound does: of these the
    inequality itself is looked at, for what f declares of all blocks together.
    """

    def __init__(self, method: Method, lower: Number | None) -> None:
        self.watching = method.exact and not isinstance(method, WithoutGuarantee)
        self.lower = None if lower is None else float(np.min(lower))
        self.broken: str | None = None

    def check(
        self, problem: Problem, old: State, new: State, starts: np.ndarray, iteration: int
    ) -> None:
        """Look at one step; ``starts`` are the numbers of the starts that moved, -1 for the others."""
        if not self.watching or self.broken:
            return
        before, after = to_host(old.look.value), to_host(new.look.value)
        if self.lower is not None and np.any((starts >= 0) & below(after, self.lower)):
            self.broken = (
                f"iteration {iteration} reached Phi = {np.nanmin(after):.6g}, below the declared lower bound "
                f"{self.lower:.6g}"
            )
            return
        if new.promised is None:  # a trial: it was taken because Phi fell by enough, or refused
            self._check_declared(problem, old, new, starts, iteration)
            return
        promised = to_host(new.promised)
        size = np.abs(before) + np.abs(after) + np.abs(promised)
        unit = np.finfo(before.dtype).eps
        short = (
            _seen(promised, unit)
            & (starts >= 0)
            & (before - after < promised - 256.0 * unit * size)
        )
        if not short.any():
            return
        size = size + _gap_terms(problem, old)
        short &= before - after < promised - self._rounding(problem, old, new, size, unit)
        if short.any():
            i = int(np.flatnonzero(short)[0])
            self.broken = (
                f"iteration {iteration} of start {starts[i]} lowered Phi by {before[i] - after[i]:.3g} where "
                f"{promised[i]:.3g} was guaranteed, so {_declared(new.curvature)}"
            )

    def _check_declared(
        self, problem: Problem, old: State, new: State, starts: np.ndarray, iteration: int
    ) -> None:
        """f(x+) <= f(x) + grad f(x)'(x+ - x) + sum_i (constant_i/2) ||x+_i - x_i||_p^p (paper, Assumption 1.1)."""
        joint = problem.facts().joint
        if joint is None or problem.smooth.gradient_errors is not None:
            return
        linear, curved = _model(old, new, joint)
        phi = [to_host(state.look.value) for state in (old, new)]
        h = [to_host(sum(state.look.penalties)) for state in (old, new)]
        excess = (phi[1] - h[1]) - (phi[0] - h[0]) - linear - curved
        size = np.sum(np.abs([*phi, *h]), axis=0) + np.abs(linear) + curved
        unit = np.finfo(excess.dtype).eps
        broken = _seen(excess, unit) & (starts >= 0) & (excess > 256.0 * unit * size)
        if not broken.any():
            return
        size = size + _gap_terms(problem, old)
        rounding = self._rounding(problem, old, new, size, unit) + _of_slope(problem, old, new)
        broken &= excess > rounding
        if broken.any():
            i = int(np.flatnonzero(broken)[0])
            self.broken = (
                f"iteration {iteration} of start {starts[i]} found f higher by {excess[i]:.3g} than it may be, so "
                f"{_declared(joint)}"
            )

    def bound(self, bound: Bound) -> Bound:
        """The bound, withdrawn if the trajectory has disproved what it rests on."""
        return bound if self.broken is None else bound.withdraw(self.broken)

    @staticmethod
    def _rounding(
        problem: Problem, old: State, new: State, size: np.ndarray, unit: float
    ) -> np.ndarray:
        """What rounding may explain: proved where f proves it, else a generous 1e4 units."""
        total = 1e4 * unit * size
        if unit > 4 * UNIT_ROUNDOFF:  # not float64
            return np.asarray(total)
        errors = [problem.smooth.rounding(state.xs) for state in (old, new)]
        if any(error is None for error in errors):
            return np.asarray(total)
        xp = namespace(new.xs[0])
        proved = to_host(xp.astype(errors[0][0] + errors[1][0], xp.float64))  # type: ignore[index]
        return np.asarray(proved + 256.0 * unit * size)


def _seen(difference: np.ndarray, unit: float) -> np.ndarray:
    """Whether squares of numbers that lead to it do not underflow; norms are wrong by any number of units else."""
    return np.asarray(difference > np.sqrt(np.finfo(difference.dtype).smallest_normal) / unit)


def _declared(curvature: Curvature) -> str:
    """What a step relied on, said to be false."""
    if not any(curvature.constants):
        return "f is not concave in what it moves, as was declared"
    return f"the constants {curvature.constants} declared for f are too small"


def _model(old: State, new: State, curvature: Curvature) -> tuple[np.ndarray, np.ndarray]:
    """The linear and the curved term of the upper model of f at ``old``, where ``new`` is."""
    linear: Array = 0.0
    curved: Array = 0.0
    for i, (x, y) in enumerate(zip(old.xs, new.xs, strict=True)):
        ndim = x.ndim - old.look.gaps[i].ndim
        linear = linear + inner(old.look.gradients[i], y - x, ndim)
        curved = curved + 0.5 * curvature.constants[i] * power_sum(y - x, curvature.p, ndim)
    return to_host(linear), to_host(curved)


def _of_slope(problem: Problem, old: State, new: State) -> np.ndarray:
    """What rounding of the gradient can do to the linear term, where f proves how large it is."""
    proved, total = problem.smooth.rounding(old.xs), np.zeros(())
    for i, error in enumerate(() if proved is None else proved[1]):
        xp = namespace(error)
        move = xp.astype(xp.abs(new.xs[i] - old.xs[i]), error.dtype)
        total = total + to_host(inner(error, move, move.ndim - old.look.gaps[i].ndim))
    return total


def _gap_terms(problem: Problem, state: State) -> np.ndarray:
    """The size of what the promises of a step were summed from."""
    look, total = state.look, 0.0
    for block, x, g, answer in zip(
        problem.blocks, state.xs, look.gradients, look.answers, strict=True
    ):
        xp, ndim = namespace(x), block.set.event_ndim
        total = total + inner(xp.abs(g), xp.abs(x), ndim) + block.penalty.magnitude(x)
        total = total + block.oracle.magnitude(g, answer.point)
    return to_host(total)
