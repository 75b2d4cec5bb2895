"""What is fixed where the mathematics leaves a choice: length, sign and order of components."""

from __future__ import annotations

import numpy as np

from restpoint.penalties import L1, Penalty, Zero
from restpoint.problem import Blocks
from restpoint.sets import L2Ball, Set


def may_turn(
    sets: tuple[Set, ...], fixed: tuple[Penalty | None, ...], untied: bool
) -> tuple[bool, ...]:
    """Which blocks may change their sign: where the set and the penalty do not feel it, and A changes with it."""
    return tuple(
        untied and isinstance(s, L2Ball) and s.centered and isinstance(own, (L1, Zero, type(None)))
        for s, own in zip(sets, fixed, strict=True)
    )


def oriented(xs: Blocks, turns: tuple[bool, ...]) -> Blocks:
    """The largest entry positive in every block that may turn but the first such, which carries the sign.

    Pairs of signs leave A(xs) as it is; blocks that may not turn stay.

    >>> oriented((np.array([1.0, 0.0]), np.array([0.5, -2.0])), (True, True))
    (array([-1., 0.]), array([-0.5,  2. ]))
    """
    signs = np.array(
        [-1.0 if may and _largest(x) < 0 else 1.0 for x, may in zip(xs, turns, strict=True)]
    )
    if True in turns:
        carrier = turns.index(True)
        signs[carrier] = 1.0
        signs[carrier] = np.prod(signs)
    return tuple(0.0 - x if sign < 0 else x for x, sign in zip(xs, signs, strict=True))


def _largest(x: np.ndarray) -> float:
    """The entry of largest modulus."""
    return float(x[int(np.argmax(np.abs(x)))])


def unit_rows(xs: Blocks) -> tuple[tuple[np.ndarray, ...], float]:
    """Vectors of length 1, and the product of the lengths they had; zero vectors stay."""
    rows, size = [], 1.0
    for x in xs:
        length = float(np.linalg.norm(x))
        rows.append(x / length + 0.0 if length > 0 else np.array(x))  # + 0.0: no -0.0
        size *= length
    return tuple(rows), size
