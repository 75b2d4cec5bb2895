"""How strongly classes differ along a vector, whatever its length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from restpoint.array import Array, expand, namespace, norm
from restpoint.smooth import ConcaveQuadratic
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class Separation(Smooth):
    r"""f(x) = -||F'x||_2: concave, and of degree 1 like the penalty.

    -||F'x|| + t S(x) and -||F'x||^2/2 + gamma S(x) have the same stationary points x with F'x != 0, gamma = t ||F'x||:
    with c = F'x, the gradients are -Fc/||c|| and -Fc. But in the first form 0 is no better than x as soon as
    t < ||F'x|| / S(x), while in the second solutions are lost to 0 long before they are sparse: their length and
    sparsity pull at each other. At F'x = 0, where f has no gradient, 0 is a supergradient (theory E10).
    """

    _data = ("F",)

    def __init__(self, F: Any) -> None:
        self.F = F
        self.shapes = ((int(F.shape[0]),),)

    def value(self, xs: Blocks) -> Array:
        return -norm(xs[0] @ self.F)

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        c = xs[0] @ self.F
        xp, size = namespace(c), norm(c)
        unit = c / expand(xp.where(size > 0, size, xp.ones_like(size)))
        return -size, (-(unit @ self.F.T),)

    def facts(self, sets: Sequence[Set]) -> Facts:
        straight = Curvature((0.0,))
        lowest = ConcaveQuadratic(self.F).facts(sets).lower_bound
        return Facts(
            joint=straight,
            blockwise=straight,
            concave=True,
            block_concave=True,
            lower_bound=None if lowest is None else -((-2.0 * lowest) ** 0.5) * (1.0 + 1e-15),
        )
