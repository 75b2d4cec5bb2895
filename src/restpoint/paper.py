"""The paper's six algorithms, each as a point of the grid."""

from __future__ import annotations

from numbers import Integral

from restpoint.errors import DataError
from restpoint.methods import (
    BlockMethod,
    ConditionalGradient,
    Jacobi,
    Majorant,
    MaxImprovement,
    MiniBatch,
    Order,
    ProximalGradient,
    Smoothed,
)


def algorithm(
    k: int,
    constant: float | None = None,
    p: float = 2.0,
    *,
    order: str = "jacobi",
    m: int | None = None,
    radius: float | None = None,
) -> BlockMethod:
    """Algorithm ``k`` of the paper, to the letter (with theory E8, E20 and E24 corrected).

    | k | step | order | gradient |
    |---|------|-------|----------|
    | 1 | conditional gradient | one block | exact |
    | 2 | proximal gradient | one block | exact |
    | 3 | proximal gradient | one block | mini-batch of ``m`` |
    | 4 | conditional gradient | one block | smoothed over a ball of ``radius``, ``m`` points |
    | 5 | conditional gradient | "jacobi", or "mbi" by the largest gap | exact |
    | 6 | proximal gradient | "jacobi", or "mbi" by the largest decrease | exact |

    The paper states 1 to 4 for one block. On a problem of several, these points of the grid move all blocks from one
    gradient, each with its own step, which makes 1 and 2 the same as 5 and 6 with "jacobi".

    ``constant`` and ``p`` are those of Assumption 1.1; None takes the constant that f declares, for its own p.

    >>> algorithm(5, 20.0)
    ConditionalGradient(order=Jacobi(), smoothness=Majorant(constant=20.0, p=2.0, joint=False), gradient=Exact())
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= 6:
        raise DataError(f"k must be one of 1, 2, 3, 4, 5, 6, got {k!r}")
    if order not in ("jacobi", "mbi"):
        raise DataError(f'order must be "jacobi" or "mbi", got {order!r}')
    if order == "mbi" and k < 5:
        raise DataError(f'order="mbi" belongs to algorithms 5 and 6, got k = {k}; leave order out')
    if (m is None) == (k in (3, 4)):
        raise DataError("m, the number of samples, belongs to algorithms 3 and 4, and only to them")
    if (radius is None) == (k == 4):
        raise DataError("radius belongs to algorithm 4, and only to it")
    majorant = Majorant(constant, p)
    if k == 3:
        assert m is not None
        return ProximalGradient(Jacobi(), majorant, MiniBatch(m))
    if k == 4:
        assert m is not None
        assert radius is not None
        return ConditionalGradient(Jacobi(), majorant, Smoothed(radius, m))
    step = ConditionalGradient if k in (1, 5) else ProximalGradient
    rule = "gap" if k == 5 else "decrease"
    blocks: Order = MaxImprovement(rule) if order == "mbi" else Jacobi()
    return step(blocks, majorant)
