"""Functions whose gradients come with a declared error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from restpoint.array import Array
from restpoint.errors import DataError, ShapeError, described
from restpoint.smooth import _checks
from restpoint.smooth.base import Blocks, Facts, Smooth, Sweep

if TYPE_CHECKING:
    from restpoint.sets import Set


class Inexact(Smooth):
    r"""f whose gradients g are computed with an error: ||g_i - grad_i f(x)||_2 <= error at every point of the sets.

    ``error`` is one number for all blocks, or one per block; what an iterative solver or a simulation behind f leaves.
    Values, and what f declares, are those of f itself. Certificates add error max_y ||y - x||_2 to the gap of a block,
    so they are true of f and not of g; steps take as much from the decrease that they rely on, and stay where nothing
    is left (theory A5). An eps below twice that (three times, for proximal steps) is out of reach of the theory.

    >>> import numpy as np, restpoint as rp
    >>> noisy = rp.smooth.Function(
    ...     lambda x: float(x @ x), lambda x: 2 * x + 1e-6 * np.sin(1e9 * x), shapes=2, constant=2.0
    ... )
    >>> problem = rp.Problem(rp.smooth.Inexact(noisy, 2e-6), rp.Block(rp.sets.L2Ball()))
    >>> result = rp.solve(problem, eps=1e-4)
    >>> result.status, bool(result.certificate.error[0] <= 2e-6 * 2.0)
    (CERTIFIED, True)
    """

    def __init__(self, f: Smooth, error: float | Sequence[float]) -> None:
        if not isinstance(f, Smooth):
            raise DataError(f"f must be a restpoint.smooth.Smooth, got {described(f)}")
        self.f, self.shapes = f, f.shapes
        self.differentiable = f.differentiable
        given = tuple(error) if isinstance(error, (tuple, list)) else (error,) * len(f.shapes)
        if len(given) != len(f.shapes):
            raise ShapeError(
                f"error has {len(given)} entries; expected one number, or one for each of the {len(f.shapes)} blocks"
            )
        errors = tuple(_checks.number("error", e, hint="one per block") for e in given)
        if min(errors) < 0.0:
            raise DataError(
                f"error must be >= 0, got {min(errors)}: it bounds the norm of the error of a gradient"
            )
        self._errors = errors

    @property
    def gradient_errors(self) -> tuple[float, ...] | None:
        inner = self.f.gradient_errors
        errors = self._errors
        if inner is not None:
            errors = tuple(a + b for a, b in zip(errors, inner, strict=True))
        return errors if any(errors) else None

    @property
    def like(self) -> Array | None:
        return self.f.like

    def converted(self, like: Array) -> Smooth:
        f = self.f.converted(like)
        return self if f is self.f else Inexact(f, self._errors)

    def value(self, xs: Blocks) -> Array:
        return self.f.value(xs)

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        return self.f.value_and_gradient(xs)

    def gradient(self, xs: Blocks) -> Blocks:
        return self.f.gradient(xs)

    def partial(self, xs: Blocks, i: int) -> Array:
        return self.f.partial(xs, i)

    def sweep(self, xs: Blocks, carried: Any = None) -> Sweep:
        return self.f.sweep(xs, carried)

    def engine(self, xs: Blocks) -> str:
        return self.f.engine(xs)

    def facts(self, sets: Sequence[Set]) -> Facts:
        return self.f.facts(sets)

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        return self.f.rounding(xs)
