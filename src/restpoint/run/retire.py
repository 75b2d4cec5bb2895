"""Which starts to give up in favour of others: a heuristic, with a status of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restpoint.array import real_number, to_host, whole_number
from restpoint.errors import DataError
from restpoint.problem import Blocks


@dataclass(frozen=True)
class Retire:
    """Give up starts that others make superfluous; their status is RETIRED. A heuristic: no theorem covers it.

    Every ``every`` iterations the starts of each problem are compared, and of those still running are given up

    duplicates   whose blocks are those of a start with a lower value, up to signs and to ``closeness`` times the
                 norm of the block, and whose value is the same to ``closeness``
    dominated    that would not come down to the lowest value known even if they fell ``prospect`` times as far as in
                 the last ``every`` iterations

    None for ``closeness`` or ``prospect`` keeps them. The start with the lowest value is never given up.

    >>> Retire(prospect=5)
    Retire(every=8, closeness=0.001, prospect=5.0)
    """

    every: int = 8
    closeness: float | None = 1e-3
    prospect: float | None = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", whole_number("every", self.every, 1))
        for name in ("closeness", "prospect"):
            value = getattr(self, name)
            if value is None:
                continue
            number = real_number(name, value, "a finite number >= 0, or None")
            if number < 0.0:
                raise DataError(f"{name} must be a finite number >= 0, or None, got {number}")
            object.__setattr__(self, name, number)


class Retirement:
    """Applies the rule in one run; ``problem_of`` says for every start which problem of the batch it belongs to."""

    def __init__(self, rule: Retire, problem_of: np.ndarray) -> None:
        self.rule, self.problem_of = rule, problem_of
        self.before = np.full(len(problem_of), np.nan)  # values when the starts were last compared

    def due(self, iteration: int) -> bool:
        """By iteration counts alone, so that a run repeats itself."""
        return iteration % self.rule.every == 0

    def chosen(
        self, xs: Blocks, starts: np.ndarray, active: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Which rows to give up: ``starts`` are their numbers, ``values`` the newest Phi of all starts of the run."""
        given_up = np.zeros(len(starts), dtype=bool)
        own = values[starts]
        if self.rule.prospect is not None:
            low = np.full(int(self.problem_of.max()) + 1, np.inf)
            np.fmin.at(low, self.problem_of, values)
            hoped = own - self.rule.prospect * np.maximum(self.before[starts] - own, 0.0)
            given_up |= hoped > low[self.problem_of[starts]]  # False where nothing was seen before
        if self.rule.closeness is not None:
            given_up |= self._duplicates(xs, starts, own)
        self.before = self.before.copy()
        self.before[starts] = own
        return given_up & active

    def _duplicates(self, xs: Blocks, starts: np.ndarray, own: np.ndarray) -> np.ndarray:
        closeness = self.rule.closeness or 0.0
        found = np.zeros(len(starts), dtype=bool)
        blocks = [np.abs(to_host(x)).reshape(len(starts), -1) for x in xs]
        sizes = [np.linalg.norm(block, axis=1) for block in blocks]
        # From the lowest value up: only those that are kept make others superfluous.
        order = np.argsort(own, kind="stable")
        for place, row in enumerate(order[:-1]):
            later = order[place + 1 :]
            if found[row] or not np.isfinite(own[row]):
                continue
            near = own[later] - own[row] <= closeness * np.abs(own[row])
            later = later[near & (self.problem_of[starts[later]] == self.problem_of[starts[row]])]
            if not len(later):
                continue
            same = np.ones(len(later), dtype=bool)
            for block, size in zip(blocks, sizes, strict=True):
                far = np.linalg.norm(block[later] - block[row], axis=1)
                same &= far <= closeness * size[row]
            found[later[same]] = True
        return found
