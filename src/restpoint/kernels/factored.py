"""Tensors given by their factors (CP form), never formed."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from restpoint.array import Array, convert, namespace, product_up, to_host
from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.spectra import squared_spectral_norm, unscaled


class Factored(Kernel):
    """A = sum_r weights_r a_1r o ... o a_dr, with factor matrices (sizes[m], R): O(R sum of sizes) per contraction.

    With c_mr = a_mr'x_m, the partial of mode i is F_i (weights prod over m != i of c_m).
    """

    name = "factored"

    def __init__(self, weights: Array, factors: Vectors) -> None:
        self.weights, self.factors = weights, factors
        self.sizes = tuple(int(factor.shape[0]) for factor in factors)

    @property
    def like(self) -> Array:
        return self.factors[0]

    def partial(self, xs: Vectors, i: int) -> Array:
        return self.keep(xs).partial(i)

    def all_partials(self, xs: Vectors) -> Vectors:
        return self.keep(xs).all_partials()

    def keep(self, xs: Vectors, carried: Any = None) -> Kept:
        return _KeptCoefficients(self, xs, carried)

    @property
    def numbers_a_start(self) -> int:
        return 2 * len(self.sizes) * int(self.weights.shape[0])

    def magnitudes(self, xs: Vectors) -> Vectors:
        absolute = tuple(namespace(factor).abs(factor) for factor in self.factors)
        return Factored(namespace(self.weights).abs(self.weights), absolute).all_partials(xs)

    def depth(self, i: int) -> int:
        """The sums behind the other coefficients, their product, and the sum over r."""
        return sum(self.sizes) - self.sizes[i] + len(self.sizes) + int(self.weights.shape[0])

    def largest(self) -> float:
        """sum_r |weights_r| prod_m max |a_mr|."""
        weights, factors, exponent = self.balanced()
        peaks = [np.max(np.abs(factor), axis=0) for factor in factors]
        return self._up(float(np.sum(np.abs(weights) * reduce(np.multiply, peaks))), exponent)

    def amplification(self) -> float:
        """(1 + sum_r |weights_r|) prod_m (1 + max |a_mr|): factors apart may be larger than all that they make."""
        peaks = [float(np.max(np.abs(_host(factor)))) for factor in self.factors]
        total = math.fsum(np.abs(_host(self.weights)).tolist())
        return product_up(1.0 + total, *(1.0 + peak for peak in peaks))

    def spectral_bound(self) -> float:
        """The lesser of sum_r |weights_r| prod_m ||a_mr|| and, for orthogonal-like factors, a product of norms.

        |A(x)| <= max_r |weights_r| ||F_1'x_1|| ||F_2'x_2|| prod over m > 2 of max_r |a_mr'x_m|.
        """
        weights, factors, exponent = self.balanced()
        lengths = [np.sqrt(np.sum(factor**2, axis=0)) for factor in factors]
        by_terms = float(np.sum(np.abs(weights) * reduce(np.multiply, lengths)))
        norms = [math.sqrt(squared_spectral_norm(_host(factor))) for factor in self.factors]
        tops = [_longest_column(_host(factor)) for factor in self.factors]
        heaviest, modes = float(np.max(np.abs(_host(self.weights)))), range(len(factors))
        by_norms = min(
            product_up(heaviest, norms[i], norms[j], *(tops[m] for m in modes if m not in (i, j)))
            for i in modes
            for j in range(i)
        )
        return min(self._up(by_terms, exponent), self._up(by_norms))

    def balanced(self) -> tuple[np.ndarray, list[np.ndarray], int]:
        """Weights, factors and an exponent e: the tensor is 2^e times theirs; on the host, in float64.

        Every column of a factor, and the largest weight, is at least 1/2 and below 1 at its largest entry, by powers
        of 2 (exact but for what is far too small to count), so that products of them neither overflow nor vanish.
        """
        scaled = [_columns_below_one(_host(factor)) for factor in self.factors]
        weights, exponents = np.frexp(_host(self.weights))
        exponents = reduce(np.add, (own for _, own in scaled), exponents.astype(np.int64))
        used = (weights != 0.0) & np.all([np.any(F != 0.0, axis=0) for F, _ in scaled], axis=0)
        top = int(np.max(exponents[used], initial=-(2**62))) if np.any(used) else 0
        shift = np.clip(exponents - top, -2000, 0)
        return np.where(used, np.ldexp(weights, shift), 0.0), [F for F, _ in scaled], top

    def _up(self, bound: float, exponent: int = 0) -> float:
        """The bound times 2^exponent, raised by its own rounding errors."""
        slack = 1.0 + 4.0 * np.finfo(np.float64).eps * (sum(self.sizes) + self.weights.shape[0])
        return unscaled(bound * slack, exponent)

    def converted(self, like: Array) -> Factored:
        weights = convert(self.weights, like)
        factors = tuple(convert(factor, like) for factor in self.factors)
        same = weights is self.weights and all(
            new is old for new, old in zip(factors, self.factors, strict=True)
        )
        return self if same else Factored(weights, factors)


class _KeptCoefficients(Kept):
    """c_m for every mode; an update renews one of them."""

    kernel: Factored

    def __init__(self, kernel: Factored, xs: Vectors, carried: Any = None) -> None:
        super().__init__(kernel, kernel.fitted(xs))
        self._coefficients = (
            [x @ factor for x, factor in zip(self.xs, kernel.factors, strict=True)]
            if carried is None
            else list(carried)
        )

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """All together: there is no tensor to read."""
        return (tuple(range(len(self.xs))),)

    @property
    def carried(self) -> Any:
        return tuple(self._coefficients)

    def all_partials(self) -> Vectors:
        return tuple(self.partial(i) for i in range(len(self.xs)))

    def partial(self, i: int) -> Array:
        self.spent += 1.0 / len(self.xs)
        product = self.kernel.weights
        for m, coefficients in enumerate(self._coefficients):
            if m != i:
                product = product * coefficients
        return product @ self.kernel.factors[i].T

    def update(self, i: int, x: Array) -> None:
        if x is self.xs[i]:
            return
        super().update(i, x)
        self._coefficients[i] = x @ self.kernel.factors[i]


def _host(array: Array) -> np.ndarray:
    return np.asarray(to_host(array), dtype=np.float64)


def _columns_below_one(factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns times powers of 2, their largest entries in [1/2, 1), and the exponents taken out."""
    exponents = np.frexp(np.max(np.abs(factor), axis=0))[1].astype(np.int64)
    return np.ldexp(factor, -exponents), exponents


def _longest_column(factor: np.ndarray) -> float:
    """max_r ||a_r||, up to rounding: no square vanishes."""
    columns, exponents = _columns_below_one(factor)
    lengths = np.sqrt(np.sum(columns**2, axis=0))
    return max(unscaled(float(s), int(e)) for s, e in zip(lengths, exponents, strict=True))
