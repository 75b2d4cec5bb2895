"""Gradients ahead of the iterates: Nesterov's rule from two of them, Anderson's from more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from restpoint.array import Array, expand, flatten_event, namespace
from restpoint.problem import Blocks

# Of the mean square of what is mixed: differences smaller than that cannot be told from rounding.
RIDGE = 1e-10


class Extrapolation(ABC):
    """Which gradient to ask for; what it remembers travels in the state, arrays with the batch first."""

    @abstractmethod
    def begun(self, gradients: Blocks, ones: Array) -> Any:
        """What is remembered at a start with these gradients; ``ones`` has the batch shape."""

    @abstractmethod
    def ahead(self, gradients: Blocks, trail: Any) -> tuple[Blocks, Array]:
        """The gradients to ask for at a point with these, and the share of the last move that they stand for."""

    @abstractmethod
    def went(self, gradients: Blocks, asked: Blocks, new: Blocks, trail: Any) -> Any:
        """What to remember after a step by ``asked``, from where ``gradients`` to where ``new`` were seen."""

    @abstractmethod
    def forgotten(self, trail: Any) -> Any:
        """The same with nothing to extrapolate from."""


class Pace(NamedTuple):
    """Nesterov's t, and the gradients one step ago."""

    t: Array
    last: Blocks


class Nesterov(Extrapolation):
    """g + (t_k - 1)/t_(k+1) (g - g_last), t_(k+1) = (1 + sqrt(1 + 4 t_k^2))/2."""

    def begun(self, gradients: Blocks, ones: Array) -> Pace:
        return Pace(ones, gradients)

    def ahead(self, gradients: Blocks, trail: Pace) -> tuple[Blocks, Array]:
        share = (trail.t - 1.0) / _next(trail.t)
        return tuple(
            g + expand(share, g.ndim - share.ndim) * (g - last)
            for g, last in zip(gradients, trail.last, strict=True)
        ), share

    def went(self, gradients: Blocks, asked: Blocks, new: Blocks, trail: Pace) -> Pace:
        return Pace(_next(trail.t), gradients)

    def forgotten(self, trail: Pace) -> Pace:
        return Pace(namespace(trail.t).ones_like(trail.t), trail.last)


def _next(t: Array) -> Array:
    return 0.5 * (1.0 + namespace(t).sqrt(1.0 + 4.0 * t * t))


class Pairs(NamedTuple):
    """Gradients asked for and those where they led, the newest first, on an axis after the batch; how many count."""

    count: Array
    asked: Blocks
    got: Blocks


@dataclass(frozen=True)
class Anderson(Extrapolation):
    """The mixture sum_j a_j got_j, sum_j a_j = 1, for which ||sum_j a_j (got_j - asked_j)|| is least.

    A fixed point of the method is a gradient that leads to itself; the mixture is where the last ``memory`` steps,
    taken as affine, would have one.
    """

    memory: int

    def begun(self, gradients: Blocks, ones: Array) -> Pairs:
        xp = namespace(ones)
        empty = tuple(xp.stack([0.0 * g] * self.memory, axis=1) for g in gradients)
        return Pairs(0.0 * ones, empty, empty)

    def ahead(self, gradients: Blocks, trail: Pairs) -> tuple[Blocks, Array]:
        xp = namespace(trail.count)
        older = xp.arange(1, self.memory, device=trail.count.device)
        counts = older < trail.count[:, None]  # (starts, memory - 1)
        rests = [got - asked for got, asked in zip(trail.got, trail.asked, strict=True)]
        matrix, right = 0.0, 0.0
        for rest in rests:
            flat = flatten_event(rest, rest.ndim - 2)
            changes = xp.where(counts[..., None], flat[:, :1, :] - flat[:, 1:, :], 0.0)
            matrix = matrix + changes @ xp.matrix_transpose(changes)
            right = right + changes @ flat[:, 0, :, None]
        trace = xp.sum(xp.linalg.diagonal(matrix), axis=-1)[:, None, None]
        ridge = xp.where(trace > 0.0, RIDGE * trace, 1.0) * xp.eye(
            self.memory - 1, dtype=trace.dtype, device=trace.device
        )
        shares = xp.linalg.solve(matrix + ridge, right)[..., 0]
        mixed = tuple(
            g - xp.sum(expand(shares, g.ndim - 1) * (g[:, None, ...] - got[:, 1:, ...]), axis=1)
            for g, got in zip(gradients, trail.got, strict=True)
        )
        return mixed, 0.0 * trail.count

    def went(self, gradients: Blocks, asked: Blocks, new: Blocks, trail: Pairs) -> Pairs:
        xp = namespace(trail.count)

        def pushed(held: Blocks, newest: Blocks) -> Blocks:
            return tuple(
                xp.concat([one[:, None, ...], many[:, :-1, ...]], axis=1)
                for one, many in zip(newest, held, strict=True)
            )

        count = xp.minimum(trail.count + 1.0, 1.0 * self.memory)
        return Pairs(count, pushed(trail.asked, asked), pushed(trail.got, new))

    def forgotten(self, trail: Pairs) -> Pairs:
        return Pairs(0.0 * trail.count, trail.asked, trail.got)
