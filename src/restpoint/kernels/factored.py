"""Tensors given by their factors (CP form), never formed."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from restpoint.array import Array, convert, namespace, to_host
from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.spectra import squared_spectral_norm


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

    def magnitudes(self, xs: Vectors) -> Vectors:
        absolute = tuple(namespace(factor).abs(factor) for factor in self.factors)
        return Factored(namespace(self.weights).abs(self.weights), absolute).all_partials(xs)

    def depth(self, i: int) -> int:
        """The sums behind the other coefficients, their product, and the sum over r."""
        return sum(self.sizes) - self.sizes[i] + len(self.sizes) + int(self.weights.shape[0])

    def largest(self) -> float:
        """sum_r |weights_r| prod_m max |a_mr|."""
        peaks = [np.max(np.abs(_host(factor)), axis=0) for factor in self.factors]
        return float(np.sum(np.abs(_host(self.weights)) * reduce(np.multiply, peaks)))

    def spectral_bound(self) -> float:
        """The lesser of sum_r |weights_r| prod_m ||a_mr|| and, for orthogonal-like factors, a product of norms.

        |A(x)| <= max_r |weights_r| ||F_1'x_1|| ||F_2'x_2|| prod over m > 2 of max_r |a_mr'x_m|.
        """
        weights, factors = np.abs(_host(self.weights)), [_host(factor) for factor in self.factors]
        lengths = [np.sqrt(np.sum(factor**2, axis=0)) for factor in factors]
        by_terms = float(np.sum(weights * reduce(np.multiply, lengths)))
        norms = [math.sqrt(squared_spectral_norm(factor)) for factor in factors]
        tops = [float(np.max(length)) for length in lengths]
        by_norms = math.inf
        for i in range(len(factors)):
            for j in range(i):
                rest = (tops[m] for m in range(len(factors)) if m not in (i, j))
                by_norms = min(by_norms, norms[i] * norms[j] * math.prod(rest))
        bound = min(by_terms, float(np.max(weights)) * by_norms)
        return bound * (1.0 + 4.0 * np.finfo(np.float64).eps * (sum(self.sizes) + weights.size))

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
        super().__init__(kernel, xs)
        self._coefficients = (
            [x @ factor for x, factor in zip(xs, kernel.factors, strict=True)]
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
