"""Multilinear forms of dense tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, gamma, inner, namespace, to_host
from restpoint.errors import DataError
from restpoint.smooth import _bounds, _checks
from restpoint.smooth._rounding import SLACK, is_double, underflow
from restpoint.smooth._spectra import squared_spectral_norm
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth, Sweep

if TYPE_CHECKING:
    from restpoint.sets import Set

# Unfoldings with a larger smaller side are left out of the bound on the spectral norm.
LARGEST_UNFOLDED_SIDE = 2000


class Multilinear(Smooth):
    r"""f(x_1, ..., x_d) = sign A(x_1, ..., x_d), d >= 2, sign = -1 (maximise the form) or 1.

    The modes are split into two groups and A is read as a matrix M: with u and v the outer products of the
    groups' vectors, w = M v and s = M'u give all gradients after contractions of the small w and s. Linear in every
    block: blockwise constants 0, block-concave (theory A6). Joint constants, p = 2, on sets of norm at most R_i:
    (d - 1) sigma prod_k R_k / R_i^2, sigma >= the spectral norm of A (theory E31: the smallest spectral norm of
    some unfoldings; they are computed when first asked for). All gradients cost two products with M, one costs one.

    >>> f = Multilinear([[1.0, 0.0], [0.0, 2.0]])
    >>> value, (first, second) = f.value_and_gradient((np.array([1.0, 1.0]), np.array([3.0, 4.0])))
    >>> float(value), first, second
    (-11.0, array([-3., -8.]), array([-1., -2.]))
    """

    _data = ("_matrix",)

    def __init__(self, A: Any, sign: float = -1.0) -> None:
        A = _checks.tensor("A", A, min_order=2)
        if sign not in (-1, 1):
            raise DataError(f"sign must be -1.0 or 1.0, got {sign!r}; scale A for other factors")
        self.sign = float(sign)
        self.shapes = tuple((int(size),) for size in A.shape)
        sizes = [shape[0] for shape in self.shapes]
        # The split that makes w and s, together, as small as possible.
        self._split = min(
            range(1, len(sizes)), key=lambda k: math.prod(sizes[:k]) + math.prod(sizes[k:])
        )
        self._matrix = namespace(A).reshape(A, (math.prod(sizes[: self._split]), -1))

    @property
    def A(self) -> Array:
        """The tensor."""
        sizes = tuple(shape[0] for shape in self.shapes)
        return namespace(self._matrix).reshape(self._matrix, sizes)

    def value(self, xs: Blocks) -> Array:
        return inner(xs[0], self.partial(xs, 0))

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        gradient = self.gradient(xs)
        return inner(xs[0], gradient[0]), gradient

    def gradient(self, xs: Blocks) -> Blocks:
        first, second = xs[: self._split], xs[self._split :]
        return _all_partials(self._onto_first(second), first) + _all_partials(
            self._onto_second(first), second
        )

    def partial(self, xs: Blocks, i: int) -> Array:
        first, second = xs[: self._split], xs[self._split :]
        if i < self._split:
            return _one_partial(self._onto_first(second), first, i)
        return _one_partial(self._onto_second(first), second, i - self._split)

    def sweep(self, xs: Blocks) -> Sweep:
        """Keeps w = M v while blocks of the first group move and s = M'u while blocks of the second do."""
        return _MultilinearSweep(self, xs)

    def facts(self, sets: Sequence[Set]) -> Facts:
        d = len(self.shapes)
        radii = [_bounds.largest_norm(s, n) for s, n in zip(sets, self.shapes, strict=True)]
        # |d_i'H_ij d_j| <= (size / (R_i R_j)) |d_i||d_j| <= (size / 2) (|d_i|^2 / R_i^2 + |d_j|^2 / R_j^2);
        # where a block is fixed at 0, f = 0 on the sets.
        joint = tuple(
            _bounds.product_up(d - 1, self.spectral_bound, *radii, over=(r, r)) for r in radii
        )
        size = _bounds.product_up(self.spectral_bound, *radii)
        return Facts(
            joint=Curvature(joint) if all(map(math.isfinite, joint)) else None,
            blockwise=Curvature((0.0,) * d),
            block_concave=True,
            lower_bound=-size if math.isfinite(size) else None,
        )

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """gamma_k |A|(|x|), k the summation depth of this kernel: one long sum, then sums of single modes.

        For block i of the first group, d_2 - 1 products make v, Q terms make w, and the other modes of the group
        are summed one after the other; so k = Q + (d_2 - 1) + sum of n_j, far below the number of entries.
        """
        if not is_double(self._matrix, *xs):
            return None
        xp = namespace(*xs)
        absolute = Multilinear.__new__(Multilinear)
        absolute.__dict__.update(self.__dict__, sign=1.0, _matrix=xp.abs(self._matrix))
        magnitudes = tuple(xp.abs(x) for x in xs)
        terms = absolute.gradient(magnitudes)
        tiny = self._underflow(magnitudes)
        depths = [self._depth(i) for i in range(len(xs))]
        entries = tuple(
            SLACK * gamma(depth) * term + tiny[..., None]
            for depth, term in zip(depths, terms, strict=True)
        )
        value = SLACK * gamma(depths[0] + xs[0].shape[-1]) * inner(magnitudes[0], terms[0])
        return value + tiny * (1.0 + xp.sum(magnitudes[0], axis=-1)), entries

    @cached_property
    def spectral_bound(self) -> float:
        """An upper bound on the spectral norm of A: the least spectral norm of the unfoldings looked at."""
        A = np.asarray(to_host(self.A), dtype=np.float64)
        d, sizes = A.ndim, A.shape
        # Every mode alone, and the first modes against the last: for random tensors the square unfoldings are the
        # tightest. For d = 2 the two modes are one unfolding.
        groups: list[tuple[int, ...]] = [(k,) for k in range(d if d > 2 else 1)]
        groups += [tuple(range(k)) for k in range(2, d - 1)]
        squares: list[float] = []
        for group in groups:
            side = math.prod(sizes[k] for k in group)
            if min(side, A.size // side) <= LARGEST_UNFOLDED_SIDE or not squares:
                unfolding = np.moveaxis(A, group, range(len(group))).reshape(side, -1)
                squares.append(squared_spectral_norm(unfolding, largest_side=LARGEST_UNFOLDED_SIDE))
        return math.nextafter(math.sqrt(min(squares)), math.inf) if min(squares) > 0 else 0.0

    def _onto_first(self, second: Blocks) -> Array:
        """w = sign M v per start."""
        return (self.sign * _outer(second)) @ self._matrix.T

    def _onto_second(self, first: Blocks) -> Array:
        """s = sign M'u per start."""
        return (self.sign * _outer(first)) @ self._matrix

    def _depth(self, i: int) -> int:
        sizes = [shape[0] for shape in self.shapes]
        first, second = sizes[: self._split], sizes[self._split :]
        own, other = (first, second) if i < self._split else (second, first)
        return math.prod(other) + len(other) - 1 + sum(own) - sizes[i]

    def _underflow(self, magnitudes: Blocks) -> Array:
        """What underflowing products can lose in any gradient entry, however large the other factors are."""
        xp = namespace(*magnitudes)
        largest = 1.0 + xp.max(xp.abs(self._matrix))
        growth = reduce(
            lambda a, b: a * b, (1.0 + xp.sum(magnitude, axis=-1) for magnitude in magnitudes)
        )
        operations = 4 * (sum(self._matrix.shape) + sum(n for (n,) in self.shapes))
        return underflow(magnitudes[0], operations) * largest * growth


class _MultilinearSweep(Sweep):
    """w stays true while only blocks of the first group change, s while only blocks of the second do."""

    smooth: Multilinear

    def __init__(self, smooth: Multilinear, xs: Blocks) -> None:
        super().__init__(smooth, xs)
        self._onto_first: Array | None = None
        self._onto_second: Array | None = None

    def partial(self, i: int) -> Array:
        form, split = self.smooth, self.smooth._split
        first, second = self.xs[:split], self.xs[split:]
        if i < split:
            if self._onto_first is None:
                self._onto_first = form._onto_first(second)
            return _one_partial(self._onto_first, first, i)
        if self._onto_second is None:
            self._onto_second = form._onto_second(first)
        return _one_partial(self._onto_second, second, i - split)

    def update(self, i: int, x: Array) -> None:
        super().update(i, x)
        if i < self.smooth._split:
            self._onto_second = None
        else:
            self._onto_first = None


def _outer(vectors: Blocks) -> Array:
    """The outer product of the vectors as one axis, per start."""
    product = vectors[0]
    for vector in vectors[1:]:
        table = product[..., :, None] * vector[..., None, :]
        size = product.shape[-1] * vector.shape[-1]
        product = namespace(table).reshape(table, (*vector.shape[:-1], size))
    return product


def _one_partial(w: Array, vectors: Blocks, i: int) -> Array:
    """w, seen as a tensor, contracted with all vectors but the i-th."""
    for vector in reversed(vectors[i + 1 :]):
        w = _contract_last(w, vector)
    for vector in vectors[:i]:
        w = _contract_first(w, vector)
    return w


def _all_partials(w: Array, vectors: Blocks) -> Blocks:
    """``_one_partial`` for every i, sharing what comes after i."""
    partials = []
    for i in reversed(range(len(vectors))):
        partials.append(_one_partial(w, vectors[: i + 1], i))
        if i:
            w = _contract_last(w, vectors[i])
    return tuple(reversed(partials))


def _contract_last(w: Array, vector: Array) -> Array:
    size = vector.shape[-1]
    w = namespace(w).reshape(w, (*w.shape[:-1], w.shape[-1] // size, size))
    return w @ vector if vector.ndim == 1 else (w @ vector[..., None])[..., 0]


def _contract_first(w: Array, vector: Array) -> Array:
    size = vector.shape[-1]
    w = namespace(w).reshape(w, (*w.shape[:-1], size, w.shape[-1] // size))
    return vector @ w if vector.ndim == 1 else (vector[..., None, :] @ w)[..., 0, :]
