"""What a differentiable function must be able to do, and what it may declare."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from restpoint.array import Array, convert, expand, namespace
from restpoint.errors import CapabilityError

if TYPE_CHECKING:
    from restpoint.sets import Set

Blocks = tuple[Array, ...]


@dataclass(frozen=True)
class Curvature:
    """Constants of f(y) <= f(x) + grad f(x)'(y - x) + sum_i (constant_i / 2) ||y_i - x_i||_p^p.

    ``constants`` holds one number per block. What the inequality is claimed for (all blocks moving together, or one
    at a time) is said by the place where a ``Curvature`` stands: see ``Facts``.
    """

    constants: tuple[float, ...]
    p: float = 2.0


@dataclass(frozen=True)
class Facts:
    """What is known about f on the sets of its problem. None means unknown: it is never guessed.

    joint           the inequality of ``Curvature`` with all blocks moving together (paper, Assumption 1.1; theory E27)
    blockwise       the same with one block moving at a time
    cross           ||grad_i f(x) - grad_i f(x')||_q <= constant_i ||x - x'||_p^(p-1) where x_i = x'_i (theory A7)
    concave         f is concave in all blocks together (then it may be linearised at full step, Corollary 3.2)
    block_concave   f is concave in each block, the others fixed (theory A6)
    convex          f is convex in all blocks together
    lower_bound     a lower bound on f over the sets
    needed          no joint constant for p = 2 below this number is true; 0 where nothing of the kind is known
    odd_block       a block i with f(..., -x_i, ...) = -f(..., x_i, ...), None where none is known
    differentiable  False where a concave part only has supergradients (theory A10)
    """

    joint: Curvature | None = None
    blockwise: Curvature | None = None
    cross: Curvature | None = None
    concave: bool = False
    block_concave: bool = False
    convex: bool = False
    lower_bound: float | None = None
    needed: float = 0.0
    odd_block: int | None = None
    differentiable: bool = True


class Sweep:
    """Partial gradients while one block after another changes; the general form keeps nothing.

    ``spent`` counts the work, in gradients of all blocks.
    """

    def __init__(self, smooth: Smooth, xs: Blocks) -> None:
        self.smooth, self.xs, self.spent = smooth, xs, 0.0

    def partial(self, i: int) -> Array:
        """The gradient of block i at the current blocks."""
        self.spent += 1.0 / len(self.xs)
        return self.smooth.partial(self.xs, i)

    def value(self) -> Array | None:
        """f at the current blocks, where what was kept tells it at next to no cost; else None."""
        return None

    def value_and_gradient(self) -> tuple[Array, Blocks]:
        """f and the gradients of all blocks at the current ones."""
        self.spent += 1.0
        return self.smooth.value_and_gradient(self.xs)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The blocks, those together whose partials cost next to nothing while only blocks of theirs change."""
        return tuple((i,) for i in range(len(self.xs)))

    @property
    def carried(self) -> Any:
        """What the next sweep from the same blocks can start from: arrays with the batch first; None for nothing."""
        return None

    def update(self, i: int, x: Array) -> None:
        """Block i is now ``x``."""
        self.xs = (*self.xs[:i], x, *self.xs[i + 1 :])


class Smooth(ABC):
    """f(x_1, ..., x_d). Blocks have shape ``(*batch, *shapes[i])``; values have shape ``batch``.

    The data of f never carries the batch. Subclasses give ``value`` and ``value_and_gradient``; the rest has
    defaults that are correct, if not fast. A subclass that keeps arrays lists their attributes in ``_data``, and what
    it computes from others later on in ``_computed`` (unless it is a ``cached_property``): what is left tells whether
    the f of a checkpoint is this one.

    Data are not copied, because they may fill the memory: do not change them while a problem uses them.
    """

    shapes: tuple[tuple[int, ...], ...]
    differentiable: bool = True  # False: gradients are supergradients of a concave part

    _data: ClassVar[tuple[str, ...]] = ()
    _computed: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def value(self, xs: Blocks) -> Array:
        """f(xs) per start."""

    @abstractmethod
    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        """f(xs) and the gradients of all blocks."""

    def gradient(self, xs: Blocks) -> Blocks:
        """The gradients of all blocks."""
        return self.value_and_gradient(xs)[1]

    def partial(self, xs: Blocks, i: int) -> Array:
        """The gradient of block i alone."""
        return self.gradient(xs)[i]

    def sweep(self, xs: Blocks, carried: Any = None) -> Sweep:
        """Partial gradients for sequential updates from ``xs`` on; ``carried`` comes from a sweep that ended there."""
        del carried
        return Sweep(self, xs)

    def engine(self, xs: Blocks) -> str:
        """Which machinery computes the gradient at ``xs``, where there is a choice; "" where there is none."""
        del xs
        return ""

    def facts(self, sets: Sequence[Set]) -> Facts:
        """What is known of f on these sets (where parameters carry a batch: on all of them)."""
        del sets
        return Facts(differentiable=self.differentiable)

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """Bounds on the rounding errors of ``value`` (per start) and of every gradient entry, in float64.

        None where no bound is proved; certificates then use an estimate and say so (theory A12).
        """
        del xs
        return None

    @property
    def gradient_errors(self) -> tuple[float, ...] | None:
        """Declared bounds on ||g_i - grad_i f||_2, one per block, beyond rounding; None where gradients are exact."""
        return None

    @property
    def like(self) -> Array | None:
        """An array that shows library, dtype and device of the data; None without arrays."""
        return getattr(self, self._data[0]) if self._data else None

    def converted(self, like: Array) -> Smooth:
        """The same function with its data in the library, dtype and device of ``like``."""
        held = {name: getattr(self, name) for name in self._data}
        moved = {n: convert(array, like) for n, array in held.items() if array is not None}
        if all(array is held[name] for name, array in moved.items()):
            return self
        twin = copy.copy(self)
        twin.__dict__.update(moved)
        if any(_precision(array) != _precision(held[name]) for name, array in moved.items()):
            _forget_what_was_computed(twin)  # rounded data are other data: their constants differ
        return twin

    @property
    def numbers_a_start(self) -> int:
        """How many numbers an evaluation holds for each start, points and gradients aside; 0 where it is not known."""
        return 0

    @property
    def terms(self) -> int | None:
        """The number N of summands of a finite sum, or None."""
        return None

    def batch_gradient(self, xs: Blocks, index: Array) -> Blocks:
        """(N/m) times the gradients of the summands in ``index``, of shape ``(*batch, m)``: unbiased."""
        del xs, index
        raise CapabilityError(
            f"{type(self).__name__} is not a finite sum, so MiniBatch cannot sample it; use Exact()"
        )

    def smoothed_gradient(self, xs: Blocks, noise: Blocks, radius: Array) -> Blocks:
        """The gradient of f averaged over a ball, from samples (paper, Algorithm 4).

        ``noise[i]`` has shape ``(m, *batch, *shapes[i])`` and holds points of the unit ball; the answer is the mean
        over m of the gradients at xs + radius noise. What is differentiable needs no smoothing: its gradient is exact.
        """
        if self.differentiable:
            return self.gradient(xs)
        shifted = tuple(
            x + expand(radius, len(shape)) * shift
            for x, shift, shape in zip(xs, noise, self.shapes, strict=True)
        )
        return tuple(namespace(g).mean(g, axis=0) for g in self.gradient(shifted))


def _precision(array: Array) -> float:
    return float(namespace(array).finfo(array.dtype).eps)


def _forget_what_was_computed(smooth: Smooth) -> None:
    for kind in type(smooth).__mro__:
        for name, attribute in vars(kind).items():
            if isinstance(attribute, cached_property):
                smooth.__dict__.pop(name, None)
