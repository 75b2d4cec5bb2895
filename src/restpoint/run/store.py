"""The points of all starts, of which the loop carries only some along."""

from __future__ import annotations

import numpy as np

from restpoint.array import convert, namespace, to_host
from restpoint.problem import Blocks


class Store:
    """Keeps, on the host, the points of starts that were left behind when the survivors were gathered."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._blocks: list[np.ndarray] = []

    def write(self, xs: Blocks, rows: np.ndarray) -> None:
        """The points of the starts ``rows``; what was written before stays as it is, in an array of its own."""
        blocks = []
        for i, x in enumerate(xs):
            host = to_host(x)
            block = (
                self._blocks[i].copy()
                if self._blocks
                else np.empty((self._count, *host.shape[1:]), host.dtype)
            )
            block[rows] = host
            blocks.append(block)
        self._blocks = blocks

    def whole(self, xs: Blocks, rows: np.ndarray, batch_shape: tuple[int, ...]) -> Blocks:
        """The points of all starts in the user's batch shape: ``xs`` for ``rows``, the others as they were."""
        whole = []
        for i, x in enumerate(xs):
            full = x
            if self._blocks:
                host = self._blocks[i].copy()
                host[rows] = to_host(x)
                full = convert(host, x)
            whole.append(namespace(x).reshape(full, (*batch_shape, *x.shape[1:])))
        return tuple(whole)
