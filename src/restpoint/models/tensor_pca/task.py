"""One component as an optimisation problem, and the budget in which it is sought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import Array
from restpoint.models.tensor_pca.clock import Clock
from restpoint.models.tensor_pca.entries import Entries
from restpoint.penalties import L1, Penalty
from restpoint.problem import Block, Blocks, Problem
from restpoint.run import Relative, Result, Status, Stop, solve
from restpoint.run.retire import Retire
from restpoint.sets import Set
from restpoint.smooth import Smooth


@dataclass(frozen=True)
class Task:
    """minimise -A(x_1, ..., x_b) + fixed penalties + rho sum_i r_i ||x_i||_1 over sets, for b blocks.

    ``form`` is -A with its deflations, ``ratios`` the r_i (0 leaves a block dense), ``fixed`` the penalties that a user
    gave instead of l1, ``modes`` the modes of every block (several where modes are tied), ``names`` those of the modes
    and ``labels`` those of their entries.
    """

    form: Smooth
    sets: tuple[Set, ...]
    ratios: tuple[float, ...]
    fixed: tuple[Penalty | None, ...]
    modes: tuple[tuple[int, ...], ...]
    entries: Entries | None
    count: int
    norm2: float | None
    clock: Clock
    starts: int
    seed: int
    tol: float
    init: Any
    names: tuple[str, ...]
    labels: tuple[Any, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The length of every block."""
        return tuple(shape[0] for shape in self.form.shapes)

    @property
    def untied(self) -> bool:
        """Whether every mode has a block of its own."""
        return all(len(own) == 1 for own in self.modes)

    @property
    def work(self) -> float:
        """Multiplications of one gradient, roughly."""
        if self.entries is not None and self.entries.tensor is not None:
            return float(self.count)
        return float(8 * self.count if self.entries is None else 8 * len(self.entries.index[0]))

    def problem(self, rho: Any) -> Problem:
        """The problem at ``rho``: one number, an array of them (a batch of problems), or a tuple with one a block."""
        rhos = rho if isinstance(rho, tuple) else tuple(_times(rho, r) for r in self.ratios)
        return Problem(
            self.form,
            [
                Block(s, fixed if fixed is not None else (L1(own) if np.any(own) else None))
                for s, fixed, own in zip(self.sets, self.fixed, rhos, strict=True)
            ],
        )

    def run(
        self,
        rho: Any,
        eps: float | Relative,
        *,
        x0: Blocks | None = None,
        iterations: int = 2000,
        **more: Any,
    ) -> Result:
        """``solve`` within the budget."""
        retire = more.pop("retire", None)
        problem = self.problem(rho)
        if x0 is not None:
            x0 = problem.project(x0)

        def run() -> Result:
            stop = Stop(max_iterations=iterations, max_seconds=self.clock.left, retire=retire)
            return solve(problem, eps=eps, x0=x0, rng=self.seed, stop=stop, **more)

        result = self.clock.interruptible(run)
        if bool(np.any(np.asarray(result.status, dtype=object) == Status.INTERRUPTED)):
            self.clock.interrupted = True
        return result

    def gain(self, xs: Blocks) -> Array:
        """A(xs) less the fixed penalties, per point."""
        value = -self.form.value(xs)
        for penalty, x in zip(self.fixed, xs, strict=True):
            if penalty is not None:
                value = value - penalty.value(x)
        return value

    def weighted(self, xs: Blocks) -> Array:
        """sum_i r_i ||x_i||_1 per point."""
        total = np.zeros(xs[0].shape[:-1])
        for r, x in zip(self.free, xs, strict=True):
            total = total + r * np.abs(x).sum(axis=-1)
        return total

    @property
    def penalised(self) -> bool:
        """Whether rho enters at all."""
        return any(self.free)

    @property
    def free(self) -> tuple[float, ...]:
        """The ratios, 0 where a penalty of the user stands instead."""
        return tuple(
            0.0 if own is not None else r for r, own in zip(self.ratios, self.fixed, strict=True)
        )


def _times(rho: Any, ratio: float) -> Any:
    if ratio == 0.0:
        return 0.0
    return float(rho) * ratio if np.ndim(rho) == 0 else np.asarray(rho) * ratio


RETIRE = Retire(closeness=1e-3, prospect=None)
