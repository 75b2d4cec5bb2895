"""What a joint refinement is asked for, and what can be proved about a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import real_number, whole_number
from restpoint.certificates import Certificate, certify
from restpoint.errors import DataError
from restpoint.models.tensor_pca._joint_door import checked_sets, per_mode
from restpoint.models.tensor_pca._joint_state import State, blocks, without_dead
from restpoint.models.tensor_pca._weights import weights_gap
from restpoint.penalties import L1
from restpoint.problem import Block, Problem
from restpoint.sets import Set
from restpoint.smooth import CanonicalPolyadic

# eps of a tensor that is 0: above what underflows in a certificate.
SMALLEST = 1e-280


class Proof(NamedTuple):
    """The certificate of the frozen problem, the gap of the weights, its part for rounding, and its range."""

    factors: tuple[np.ndarray, ...]
    certificate: Certificate
    gap: float
    floor: float
    limit: float

    @property
    def largest(self) -> float:
        """The larger one of both gaps."""
        return max(float(self.certificate.max), self.gap)

    def holds(self, eps: float) -> bool:
        """Whether both gaps are at most eps."""
        return bool(self.certificate.holds(eps)) and self.gap <= eps

    def exhausted(self, eps: float) -> bool:
        """Whether what is left above eps is mostly the allowance for rounding."""
        most, allowed = float(self.certificate.max), float(np.max(self.certificate.floor))
        return most <= max(eps, 2.0 * allowed) and self.gap <= max(eps, 2.0 * self.floor)


@dataclass(frozen=True)
class Task:
    """What is asked."""

    data: CanonicalPolyadic
    rho: np.ndarray
    sets: tuple[Set, ...]
    eps: float
    aim: float
    max_outer: int = 0
    deadline: float | None = None

    @property
    def absolute(self) -> float:
        """eps in the units of F."""
        return self._absolute(self.eps)

    @property
    def aimed(self) -> float:
        """What is gone on to: at most eps, in the units of F."""
        return self._absolute(self.aim)

    def _absolute(self, eps: float) -> float:
        return max(eps * 0.5 * self.data.observed.squared_norm.value, SMALLEST)

    def penalties(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """(d, R): rho_i ||x_ir||_1."""
        return np.stack([p * np.abs(X).sum(axis=1) for p, X in zip(self.rho, factors, strict=True)])

    def problem(self, weights: np.ndarray) -> Problem:
        """The frozen problem, in which the weights are data."""
        chosen = [
            Block(s, L1(float(w * p)))
            for s, p in zip(self.sets, self.rho, strict=True)
            for w in weights
        ]
        return Problem(self.data.reweighted(weights), chosen)

    def proof(self, state: State) -> Proof:
        """What can be proved about a point."""
        vectors = without_dead(state)
        problem, xs = self.problem(state.weights), blocks(vectors)
        size = float(np.sqrt(self.data.observed.squared_norm.value))
        limit = max(size, 2.0 * float(np.max(state.weights)))
        smooth = self.data.reweighted(state.weights)
        gap, floor = weights_gap(smooth, xs, self.penalties(vectors).sum(axis=0), limit)
        return Proof(vectors, certify(problem, xs), gap, floor, limit)


def task_of(
    data: CanonicalPolyadic,
    rho: Any,
    sets: Sequence[Set] | None,
    eps: Any,
    max_outer: Any = 0,
    aim: Any = None,
) -> Task:
    """What is asked, checked."""
    eps, aim = (
        real_number(name, value, "a number in (0, 1)")
        for name, value in (("eps", eps), ("aim", eps if aim is None else aim))
    )
    for name, value in (("eps", eps), ("aim", aim)):
        if not 0.0 < value < 1.0:
            raise DataError(f"{name} must be a number in (0, 1), got {value}")
    return Task(
        data,
        per_mode("rho", rho, data.sizes),
        checked_sets(sets, data.sizes),
        eps,
        min(eps, aim),
        whole_number("max_outer", max_outer, 0),
    )
