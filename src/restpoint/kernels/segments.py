"""Groups of entries that do not overlap: sums over each, and numbers spread over their entries."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from restpoint.array import Array, namespace


class Segments:
    """A label 0, 1, ..., groups - 1 for each entry of an event, as one axis."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = np.array(labels).reshape(
            -1
        )  # a copy that may be written to, which torch insists on
        self.lengths = np.bincount(self.labels)
        self.order = np.argsort(self.labels, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        self.sorted = bool(np.all(self.labels[1:] >= self.labels[:-1]))

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Which entries each group has, as many for all, and which of these count."""
        steps = np.arange(int(np.max(self.lengths)))
        counts = steps < self.lengths[:, None]
        index = np.minimum(self.starts[:, None] + steps, len(self.order) - 1)
        return self.order[index], counts

    def sums(self, x: Array) -> Array:
        """The sum over each group: from shape (..., n) to (..., groups)."""
        if isinstance(x, np.ndarray):
            ordered = x if self.sorted else x[..., self.order]
            return np.add.reduceat(ordered, self.starts, axis=-1)
        xp = namespace(x)
        index, counts = self.places
        flat = xp.take(x, xp.asarray(index.reshape(-1), device=x.device), axis=-1)
        parts = xp.reshape(flat, (*x.shape[:-1], *index.shape))
        return xp.sum(xp.where(xp.asarray(counts, device=x.device), parts, 0.0 * parts), axis=-1)

    def spread(self, numbers: Array) -> Array:
        """A number per group, for every entry: from shape (..., groups) to (..., n)."""
        xp = namespace(numbers)
        device = None if isinstance(numbers, np.ndarray) else numbers.device
        return xp.take(numbers, xp.asarray(self.labels, device=device), axis=-1)

    def norms(self, x: Array) -> Array:
        """||x_g||_2 for each group."""
        return namespace(x).sqrt(self.sums(x * x))
