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
        """The points of the starts ``rows``."""
        for i, x in enumerate(xs):
            host = to_host(x)
            if i == len(self._blocks):
                self._blocks.append(np.empty((self._count, *host.shape[1:]), host.dtype))
            self._blocks[i][rows] = host

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
