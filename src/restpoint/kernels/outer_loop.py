"""Many steps of an accelerated outer loop in one call, where f and the oracle are a few small products each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from restpoint.kernels.analysis import Analysis


class Walk(NamedTuple):
    """Where every start is, a row each. ``answered``: whether ``point`` answers to the gradient at x itself."""

    x: np.ndarray
    gradient: np.ndarray
    last: np.ndarray  # the gradient one step ago
    point: np.ndarray
    dual: np.ndarray  # u in the box
    numbers: (
        np.ndarray
    )  # Phi, h, the gap, value and lower bound of the answer, t of Nesterov's rule
    answered: np.ndarray


class Form(NamedTuple):
    """f by a matrix with contiguous rows: x'Mx/2 (kind 0, M symmetric), -||M'x||^2/2 (1) or -||Mx||^2/2 (2)."""

    M: np.ndarray
    kind: int


def walked(
    kernel: Analysis,
    form: Form,
    scale: tuple[np.ndarray, np.ndarray],
    walk: Walk,
    steps: int,
    rules: tuple[float, float],
) -> tuple[Walk, np.ndarray]:
    """The walk ``steps`` later, for f + weight ||Kx||_1 on a ball; nothing given is written to.

    ``scale`` is weight and radius of every start; ``rules`` say how far from optimal answers to extrapolated gradients
    may be, in units of the gap, and what rounding hides of a change of Phi, in units of both values. Second: how many
    steps were kept and how many refused, and oracle calls, a row each start.
    """
    from restpoint.kernels._outer_loops import accelerated

    new = Walk(*(np.array(part, order="C") for part in walk))
    counts = np.zeros((len(new.x), 3), np.int64)
    accelerated()(*kernel.prepared, *form, *scale, steps, rules, *new, counts)
    return new, counts
