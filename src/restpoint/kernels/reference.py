"""Dense tensors in plain array API code: the definition, and the matrix-product kernel for many starts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from restpoint.array import Array, convert, namespace, to_host
from restpoint.kernels import groups
from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.spectra import spectral_bound

# Arrays of the length of a group of modes that each start has at a time: u, w, what is carried on, and temporaries.
HELD = 4


class Reference(Kernel):
    """All partials by two matrix products, w = v M' and s = u M: 2 reads of A, whatever the number of starts."""

    name = "reference"
    _computed = ("_spectral_bound",)

    def __init__(self, A: Array) -> None:
        self.sizes = tuple(int(size) for size in A.shape)
        self.first = groups.split(self.sizes)
        rows = math.prod(self.sizes[: self.first])
        self.matrix = namespace(A).reshape(A, (rows, -1))
        self._spectral_bound: float | None = None

    @property
    def tensor(self) -> Array:
        """A itself."""
        return namespace(self.matrix).reshape(self.matrix, self.sizes)

    @property
    def like(self) -> Array:
        return self.matrix

    def in_double(self, xs: Vectors) -> bool:
        """Entries in float32 are exact in float64, in which products with such vectors are."""
        return all(x.dtype == namespace(x).float64 for x in xs)

    def partial(self, xs: Vectors, i: int) -> Array:
        return self.keep(xs).partial(i)

    def all_partials(self, xs: Vectors) -> Vectors:
        xs = self.fitted(xs)
        first, second = xs[: self.first], xs[self.first :]
        w, s = self.onto_first(second), self.onto_second(first)
        return groups.partials(w, first) + groups.partials(s, second)

    def keep(self, xs: Vectors, carried: Any = None) -> Kept:
        return KeptProducts(self, xs)

    def onto_first(self, second: Vectors) -> Array:
        """w = M v per start."""
        return groups.outer(second) @ self.matrix.T

    def onto_second(self, first: Vectors) -> Array:
        """s = M'u per start."""
        return groups.outer(first) @ self.matrix

    @property
    def numbers_a_start(self) -> int:
        return HELD * sum(self.matrix.shape)

    def magnitudes(self, xs: Vectors) -> Vectors:
        return Reference(abs(self.tensor)).all_partials(xs)

    def depth(self, i: int) -> int:
        return groups.depth(self.sizes, self.first, i)

    def largest(self) -> float:
        xp = namespace(self.matrix)
        return float(xp.maximum(xp.max(self.matrix), -xp.min(self.matrix)))

    def spectral_bound(self) -> float:
        if self._spectral_bound is None:
            tensor = np.asarray(to_host(self.tensor), dtype=np.float64)
            self._spectral_bound = spectral_bound(tensor)
        return self._spectral_bound

    def converted(self, like: Array) -> Reference:
        matrix = convert(self.matrix, like)
        return (
            self
            if matrix is self.matrix
            else type(self)(namespace(matrix).reshape(matrix, self.sizes))
        )


class KeptProducts(Kept):
    """w stays true while only vectors of the first group change, s while only vectors of the second do."""

    kernel: Reference

    def __init__(self, kernel: Reference, xs: Vectors) -> None:
        super().__init__(kernel, kernel.fitted(xs))
        self._w: Array | None = None
        self._s: Array | None = None

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        modes, first = tuple(range(len(self.xs))), self.kernel.first
        return modes[:first], modes[first:]

    def partial(self, i: int) -> Array:
        kernel, first = self.kernel, self.kernel.first
        if i < first:
            if self._w is None:
                self._w = kernel.onto_first(self.xs[first:])
                self.spent += 0.5
            return groups.one_partial(self._w, self.xs[:first], i)
        if self._s is None:
            self._s = kernel.onto_second(self.xs[:first])
            self.spent += 0.5
        return groups.one_partial(self._s, self.xs[first:], i - first)

    def all_partials(self) -> Vectors:
        return tuple(self.partial(i) for i in range(len(self.xs)))

    def update(self, i: int, x: Array) -> None:
        if x is self.xs[i]:
            return
        super().update(i, x)
        if i < self.kernel.first:
            self._s = None
        else:
            self._w = None
