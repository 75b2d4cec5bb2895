"""The certificates of a run, asked for start by start where a user's code raises: one costs the others nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from restpoint.array import expand, take
from restpoint.certificates import PER_START, Certificate, certify, unproved
from restpoint.problem import Blocks, Problem


class Proofs:
    """Asks for certificates, and keeps the newest of every start with the iteration whose point it speaks of.

    What was proved about a point stays true of that point, even if the code that it took no longer answers.
    """

    def __init__(self, count: int) -> None:
        self.error: Exception | None = None  # the first one that a certificate met
        self._kept: dict[str, np.ndarray] = {}
        self._iteration = np.full(count, -1)
        self._whole: Certificate | None = None  # the last one, if it needs not be asked for again

    def propose(
        self, problem: Problem, xs: Blocks, starts: np.ndarray, iteration: int
    ) -> tuple[Certificate, np.ndarray]:
        """Certificates of the current points of some starts, and for which of them all code answered."""
        certificate, answered = self._certify(problem, xs)
        kept, who = {}, starts[answered]
        for name in PER_START:
            column = getattr(certificate, name)
            shape = (len(self._iteration), *column.shape[1:])
            kept[name] = self._kept[name].copy() if self._kept else np.full(shape, np.nan)
            kept[name][who] = column[answered]
        self._kept, self._iteration = kept, self._iteration.copy()
        self._iteration[who] = iteration
        everyone = len(who) == len(self._iteration)
        self._whole = certificate if everyone and certificate.floor_kind == "proved" else None
        return certificate, answered

    def conclude(
        self, problem: Problem, xs: Blocks, iteration: np.ndarray
    ) -> tuple[Certificate, np.ndarray]:
        """Certificates of the points returned: the last one made, if it is of all these very points, else fresh ones.

        Code whose rounding nobody has proved is asked again: it might say another thing now. Where code raises, those
        kept for these points. ``iteration`` says of every start where its point comes from. Second: which starts have
        a certificate.
        """
        if self._whole is not None and np.array_equal(self._iteration, iteration):
            return self._whole, np.ones(len(iteration), dtype=bool)
        certificate, answered = self._certify(problem, xs)
        recalled = ~answered & (self._iteration == iteration)
        if recalled.any():
            columns: dict[str, Any] = {
                name: np.where(expand(recalled, kept.ndim - 1), kept, getattr(certificate, name))
                for name, kept in self._kept.items()
            }
            certificate = replace(certificate, **columns)
        return certificate, answered | recalled

    def _certify(self, problem: Problem, xs: Blocks) -> tuple[Certificate, np.ndarray]:
        """Certificates, NaN where code raised, and where it did not."""
        count = xs[0].shape[0]
        try:
            with np.errstate(all="ignore"):
                return certify(problem, xs), np.ones(count, dtype=bool)
        except Exception as error:  # noqa: BLE001 - whatever user code raises
            self.error = self.error or error
        if count == 1:
            with np.errstate(all="ignore"):
                return unproved(problem, xs), np.zeros(1, dtype=bool)
        rows = np.arange(count).reshape(count, 1)
        parts = [self._certify(problem.take(row), take(xs, row)) for row in rows]
        certificates, answered = zip(*parts, strict=True)
        return Certificate.joined(certificates), np.concatenate(answered)
