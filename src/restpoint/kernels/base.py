"""What a kernel must be able to do: contract one tensor with vectors, in all modes but one, or but none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from restpoint.array import Array, inner, is_array, namespace
from restpoint.errors import DataError, ShapeError, described

Vectors = tuple[Array, ...]


_FLOATING = (np.dtype(np.float64), np.dtype(np.float32))


class Kept:
    """Partial contractions while one vector after another changes; the general form keeps nothing.

    ``spent`` counts the work, in units of all partials computed afresh.
    """

    def __init__(self, kernel: Kernel, xs: Vectors) -> None:
        self.kernel, self.xs, self.spent = kernel, xs, 0.0

    def partial(self, i: int) -> Array:
        """A contracted with all current vectors but the i-th."""
        self.spent += 1.0 / len(self.xs)
        return self.kernel.partial(self.xs, i)

    def all_partials(self) -> Vectors:
        """``partial`` for every i."""
        self.spent += 1.0
        return self.kernel.all_partials(self.xs)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The modes, those together whose partials need no new read of A while only vectors of theirs change."""
        return tuple((i,) for i in range(len(self.xs)))

    @property
    def carried(self) -> Any:
        """What a later ``keep`` at the same vectors can start from: arrays with the batch first; None for nothing."""
        return None

    def update(self, i: int, x: Array) -> None:
        """The i-th vector is now ``x``."""
        self.xs = (*self.xs[:i], x, *self.xs[i + 1 :])


class Kernel(ABC):
    """The multilinear form A(x_1, ..., x_d) of one tensor of order d >= 2.

    Vector i has shape ``(*batch, sizes[i])``; the tensor never carries the batch. ``reference`` is the definition;
    every other kernel is checked against it. ``_computed`` lists attributes that follow from the others.
    """

    _computed: ClassVar[tuple[str, ...]] = ()

    name: str  # said in reports
    sizes: tuple[int, ...]

    def fitted(self, xs: Vectors) -> Vectors:
        """The vectors, if there is one of the right length for every mode; whole numbers in floating point.

        Compiled loops read whatever lies in memory, and answers in whole numbers would be cut off.
        """
        if len(xs) == len(self.sizes):
            for x, n in zip(xs, self.sizes, strict=True):
                if type(x) is not np.ndarray or x.shape[-1:] != (n,) or x.dtype not in _FLOATING:
                    break
            else:
                return xs
        return tuple(_floating(x, self.like) for x in self._of_right_length(xs))

    def _of_right_length(self, xs: Vectors) -> Vectors:
        wrong = next((x for x in xs if not is_array(x)), None)
        if wrong is not None:
            raise DataError(f"vectors must be arrays, got {described(wrong)}")
        if [x.shape[-1:] for x in xs] != [(n,) for n in self.sizes]:
            raise ShapeError(
                f"vectors have shapes {[tuple(x.shape) for x in xs]}; expected last axes {self.sizes}"
            )
        return xs

    @abstractmethod
    def partial(self, xs: Vectors, i: int) -> Array:
        """A contracted with all vectors but the i-th: the gradient of the form in block i."""

    @abstractmethod
    def all_partials(self, xs: Vectors) -> Vectors:
        """``partial`` for every i, sharing the reads of A."""

    def value(self, xs: Vectors) -> Array:
        """A(x_1, ..., x_d)."""
        return inner(xs[0], self.partial(xs, 0))

    def keep(self, xs: Vectors, carried: Any = None) -> Kept:
        """Partial products for sequential updates from ``xs`` on; ``carried`` comes from another ``Kept`` there."""
        del carried
        return Kept(self, xs)

    @abstractmethod
    def magnitudes(self, xs: Vectors) -> Vectors:
        """``all_partials`` of |A| at vectors that are >= 0: what rounding errors are relative to."""

    @property
    def numbers_a_start(self) -> int:
        """How many numbers contractions and kept products hold for each start, vectors aside."""
        return 0

    def in_double(self, xs: Vectors) -> bool:
        """Whether contractions with ``xs`` are computed in float64, so that ``depth`` bounds their rounding."""
        return all(array.dtype == namespace(array).float64 for array in (self.like, *xs))

    @abstractmethod
    def depth(self, i: int) -> int:
        """The summation depth of ``partial(xs, i)``: at most so many roundings on the way of any term (theory A12)."""

    @abstractmethod
    def largest(self) -> float:
        """max |A|, entry by entry, or an upper bound."""

    def amplification(self) -> float:
        """At least whatever numbers of the tensor an intermediate product is multiplied with, and 1: see underflow."""
        return 1.0 + self.largest()

    @abstractmethod
    def spectral_bound(self) -> float:
        """An upper bound on the spectral norm of A (theory E31), infinite where none is known."""

    @property
    @abstractmethod
    def like(self) -> Array:
        """An array that shows library, dtype and device of the tensor."""

    @abstractmethod
    def converted(self, like: Array) -> Kernel:
        """The same tensor in the library, dtype and device of ``like``; itself where nothing changes."""

    def describe(self, xs: Vectors) -> str:
        """What is done for all partials at these vectors, in a few words."""
        del xs
        return f"{' x '.join(map(str, self.sizes))}"


def _floating(x: Array, like: Array) -> Array:
    """Whole numbers in the dtype of ``like``; complex numbers, and what no loop is made for, are refused."""
    xp = namespace(x)
    if xp.isdtype(x.dtype, ("bool", "integral")):
        return xp.astype(x, xp.float64 if xp is np else like.dtype)
    if x.dtype not in (xp.float32, xp.float64):
        raise DataError(
            f"vectors have dtype {x.dtype}; tensors are contracted with float32 or float64"
        )
    return x
