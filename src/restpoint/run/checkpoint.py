"""The observer that writes the state of a run to a file, for ``resume``."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

from restpoint.array import real_number, whole_number
from restpoint.errors import DataError, GuaranteeWarning, StorageError
from restpoint.run.archive import checked_path, write
from restpoint.run.identity import Identity
from restpoint.run.observers import View
from restpoint.run.record import Record
from restpoint.run.tree import Writer

KIND = "checkpoint"


class Checkpoint:
    """Writes a run to a file as it goes, so that ``resume(path, problem)`` can go on with it. Use as an observer.

    path              the file; it is replaced as a whole, so that whatever happens it holds a complete checkpoint
    every_seconds     at the first iteration that ends so long after the last writing; None: never for that reason
    every_iterations  at the multiples of this number; None: never for that reason

    The file is written when the run begins, and when it ends, also by Ctrl-C, by an observer or by an exception; a
    process that is killed loses what it did since the last writing. It holds what the method knows (points,
    gradients, products kept along sweeps) and the trace, but not the problem: of its data, digests, for which they are
    read once. Where a later writing fails (a full disk), a warning says so, the run goes on, and it is tried again.
    A script that may be killed calls ``resume(path, problem, observers=[checkpoint])`` if the file is there, else
    ``solve(problem, observers=[checkpoint])``.

    >>> import numpy as np, restpoint as rp, tempfile
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = rp.Checkpoint(f"{folder}/run.restpoint", every_iterations=10)
    ...     first = rp.solve(problem, stop=rp.Stop(max_iterations=0), observers=[checkpoint])
    ...     more = rp.resume(f"{folder}/run.restpoint", problem, stop=rp.Stop())
    >>> first.status, more.status
    (ITERATION_LIMIT, CERTIFIED)
    """

    def __init__(
        self,
        path: Any,
        *,
        every_seconds: float | None = 60.0,
        every_iterations: int | None = None,
    ) -> None:
        self.path = checked_path(path)
        folder = self.path.parent
        if self.path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise DataError(
                f"path must name a file in a folder that can be written to, got {str(path)!r}; make the folder first"
            )
        if every_seconds is not None:
            expected = "a number >= 0, or None"
            every_seconds = real_number("every_seconds", every_seconds, expected)
            if every_seconds < 0.0:
                raise DataError(f"every_seconds must be {expected}, got {every_seconds}")
        if every_iterations is not None:
            every_iterations = whole_number("every_iterations", every_iterations, 1)
        self.every_seconds, self.every_iterations = every_seconds, every_iterations
        self._newest: Record | None = None
        self._identity: Identity | None = None
        self._written = False  # whether the newest record is in the file
        self._last = 0.0  # when a record was last written, or could not be
        self._failing = False

    def __call__(self, view: View) -> None:
        # A look at the iteration that was seen last comes when an exception has ended the run: the first one counts.
        if self._newest is None:
            self._newest, self._identity = view._record(), view._identity()
            self._written = self._failing = False
            self._write()
            return
        if view.iteration != self._newest.iteration:
            self._newest, self._written = view._record(), False
        if self._due(view):
            self._attempt()

    def close(self) -> None:
        """Write what has not been written yet; the run calls this whatever way it ends."""
        try:
            if self._newest is not None and not self._written:
                self._write()
        finally:
            self._newest = self._identity = None

    def _due(self, view: View) -> bool:
        if self._written or not view.active.any():  # the end is for ``close``
            return False
        if self.every_iterations is not None and view.iteration % self.every_iterations == 0:
            return True
        return (
            self.every_seconds is not None and time.monotonic() - self._last >= self.every_seconds
        )

    def _attempt(self) -> None:
        try:
            self._write()
        except StorageError as error:
            if not self._failing:
                warnings.warn(
                    f"{error}; the run goes on and tries again later",
                    GuaranteeWarning,
                    stacklevel=2,
                )
            self._failing, self._last = True, time.monotonic()

    def _write(self) -> None:
        assert self._identity is not None
        writer = Writer()
        words = {
            "identity": self._identity.parts,
            "circumstances": self._identity.circumstances(),
            "record": writer.words(self._newest, "the run"),
        }
        write(self.path, KIND, words, writer.arrays)
        self._written, self._failing, self._last = True, False, time.monotonic()
