"""Random numbers without a memory: a stream is named by (seed, purpose, start, iteration).

The draws of a start do not depend on how many others run beside it, on the backend, or on what was drawn
before, so a batch equals its starts one by one and a resumed run needs no generator state.
"""

from __future__ import annotations

import numpy as np

# What a stream is for; two purposes never share one.
PURPOSES = {"start": 0, "gradient": 1, "order": 2, "output": 3, "test": 4}


def generator(seed: int, purpose: str, start: int = 0, iteration: int = 0) -> np.random.Generator:
    """The stream of one start at one iteration (Philox: key = seed and start, counter = iteration)."""
    words = np.array([0, 0, PURPOSES[purpose], iteration], dtype=np.uint64)
    key = np.array([seed, start], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=words, key=key))
