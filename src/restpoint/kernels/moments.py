"""Moment and cumulant tensors of samples, never formed."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from restpoint.array import Array, convert, inner, namespace
from restpoint.kernels import _moment_bounds, _moment_reads, covariance
from restpoint.kernels.base import Kept, Kernel, Vectors

# Numbers in one temporary of the products by blocks: 1 MB stays in cache; other devices want larger products.
BLOCK_OF_NUMPY, BLOCK_OF_OTHERS = 2**17, 2**22
# Numbers in X from which on the compiled loops are used: below, a gradient takes no millisecond either way.
LEAST_COMPILED = 2**18
# Vectors that the covariance is multiplied with by a compiled loop; matrix products are for more.
MOST_VECTORS = 16
# Numbers that kept coefficients may always have, however small X is: 32 MB.
NUMBERS_KEPT = 2**22


class Moments(Kernel):
    """M(x_1, ..., x_d) = (1/N) sum_r prod_m a_r'x_m, d = 3 or 4, with a_r = W'(x_r - mean), or that cumulant.

    The 4th cumulant subtracts C(x_1, x_2) C(x_3, x_4) and the two other pairings, C = (1/N) sum_r a_r a_r'; the 3rd is
    the central moment. With c_mr = a_r'x_m the partial of mode i is (1/N) sum_r a_r prod over m != i of c_mr, less
    C x_j c_kl + C x_k c_jl + C x_l c_jk with c_kl = x_k'C x_l. The mean and W are float64 numbers that define the
    tensor: that they are the true mean and inverse root of the covariance only up to rounding is no error of ours.

    All partials cost one read of the samples by compiled loops (NumPy, rows next to each other), else two products
    with each block of samples; blocks are centred where they lie in cache, so X is never copied. C, formed once from
    the a_r themselves, gives the pairings; without W and with n > N, products with the samples do.
    """

    name = "moments"
    _computed = (
        "_mean",
        "_whitening",
        "_covariance",
        "_covariance_like",
        "_deviations",
        "_spectral_bound",
    )

    def __init__(
        self,
        X: Array,
        order: int,
        *,
        cumulant: bool = False,
        mean: np.ndarray | None = None,
        whitening: np.ndarray | None = None,
    ) -> None:
        self.X, self.order, self.cumulant = X, order, cumulant
        self.mean, self.whitening = mean, whitening
        self.samples, self.features = (int(size) for size in X.shape)
        side = self.features if whitening is None else whitening.shape[1]
        self.sizes = (side,) * order
        self._settle()

    def _settle(self) -> None:
        """What depends on library and dtype of X; what is computed from its entries is forgotten."""
        self._mean = None if self.mean is None else convert(self.mean, self.X)
        self._whitening = None if self.whitening is None else convert(self.whitening, self.X)
        self._covariance: np.ndarray | None = None
        self._covariance_like: Array = None
        self._deviations: np.ndarray | None = None
        self._spectral_bound: float | None = None

    @property
    def like(self) -> Array:
        return self.X

    @property
    def pairs(self) -> bool:
        """Whether pairings are subtracted: in the 4th cumulant."""
        return self.cumulant and self.order == 4

    @property
    def compiled(self) -> bool:
        """Whether the compiled loops apply, and pay for being loaded."""
        plain = isinstance(self.X, np.ndarray) and self.X.flags.c_contiguous
        return plain and self.samples * self.features >= LEAST_COMPILED

    @property
    def forms_covariance(self) -> bool:
        """Whether C is formed: where it is no larger than X, or than W."""
        return self.whitening is not None or self.features <= self.samples

    def partial(self, xs: Vectors, i: int) -> Array:
        return _KeptCoefficients(self, xs).partial(i)

    def all_partials(self, xs: Vectors) -> Vectors:
        """Vectors that are one and the same object (tied modes) are multiplied once."""
        xs = self.fitted(xs)
        places, firsts = distinct(xs)
        batch, xp = xs[0].shape[:-1], namespace(*xs)
        points = xp.stack([xp.reshape(xs[m], (-1, self.sizes[m])) for m in firsts], axis=1)
        Y = xp.reshape(self.into_features(points), (*points.shape[:-1], self.features))
        counts = [places.count(u) for u in range(len(firsts))]
        partials = self.from_features(self._sums(Y, counts))
        if self.pairs:
            partials = partials - self._pairings(points, places, firsts)
        partials = namespace(partials).reshape(partials, (*batch, len(firsts), -1))
        return tuple(partials[..., u, :] for u in places)

    def keep(self, xs: Vectors, carried: Any = None) -> Kept:
        """The c_m, while they are not much larger than X itself; else nothing."""
        numbers = self.samples * self.order * math.prod(xs[0].shape[:-1])
        fit = numbers <= max(self.samples * self.features, NUMBERS_KEPT)
        return _KeptCoefficients(self, xs, carried) if fit else Kept(self, xs)

    def into_features(self, x: Array) -> Array:
        """W x per start, starts on one axis."""
        x = namespace(x).reshape(x, (-1, x.shape[-1]))
        return x if self._whitening is None else x @ self._whitening.T

    def from_features(self, sums: Array) -> Array:
        """W's for the last axis."""
        return sums if self._whitening is None else sums @ self._whitening

    def blocks(self, width: int) -> Iterator[tuple[slice, Array]]:
        """Ranges of samples and the centred samples, so many that ``width`` numbers for each are a small temporary."""
        entries = BLOCK_OF_NUMPY if isinstance(self.X, np.ndarray) else BLOCK_OF_OTHERS
        rows = max(8, entries // max(width, self.features))
        for low in range(0, self.samples, rows):
            part = slice(low, min(low + rows, self.samples))
            block = self.X[part, :]
            yield part, block if self._mean is None else block - self._mean

    def coefficients(self, y: Array) -> Array:
        """c for every sample, from y = W x of shape (starts, n)."""
        parts = [y @ block.T for _, block in self.blocks(y.shape[0])]
        return namespace(y).concat(parts, axis=-1)

    def weighted(self, p: Array) -> Array:
        """(1/N) sum_r p_r (x_r - mean) per start."""
        parts = (p[:, part] @ block for part, block in self.blocks(p.shape[0]))
        return reduce(lambda a, b: a + b, parts) / self.samples

    def describe(self, xs: Vectors) -> str:
        order, tail = ("third", "fourth")[self.order - 3], "cumulant" if self.cumulant else "moment"
        way = "one read by compiled loops" if self.compiled else "matrix products by blocks"
        return f"{order} {tail} of {self.samples} x {self.features} samples, {way}"

    def covariance_times(self, x: Array) -> Array:
        """C x."""
        xp = namespace(x)
        flat = xp.reshape(x, (-1, x.shape[-1]))
        if not self.forms_covariance:
            covered = self.weighted(self.coefficients(flat))
        elif self.compiled and flat.shape[0] <= MOST_VECTORS and self.sizes[0] >= 4:
            covered = _moment_reads.products(self.covariance(), flat)
        else:
            if self._covariance_like is None:
                self._covariance_like = convert(self.covariance(), self.X)
            covered = flat @ self._covariance_like
        return xp.reshape(covered, x.shape)

    def covariance(self) -> np.ndarray:
        """C = (1/N) sum_r a_r a_r' (about 0, where nothing is centred), computed once."""
        if self._covariance is None:
            self._covariance = covariance.covariance(self.X, self.mean, self.whitening)
        return self._covariance

    def deviations(self) -> np.ndarray:
        """See ``_moment_bounds.deviations``; computed once."""
        if self._deviations is None:
            self._deviations = _moment_bounds.deviations(self)
        return self._deviations

    def pairings(self, xs: Vectors, covered: Vectors, i: int) -> Array:
        """C x_j c_kl + C x_k c_jl + C x_l c_jk for the modes other than i; ``covered`` holds the C x."""
        return reduce(
            lambda a, b: a + b,
            (covered[j] * inner(xs[k], covered[m])[..., None] for j, k, m in _others(i)),
        )

    def _pairings(self, points: Array, places: list[int], firsts: list[int]) -> Array:
        """``pairings`` for every distinct vector: one small matrix of numbers c_kl times all C x."""
        xp = namespace(points)
        covered = self.covariance_times(points)
        c = points @ xp.matrix_transpose(covered)
        zero, rows = xp.zeros_like(c[:, 0, 0]), []
        for i in firsts:
            factors = [zero for _ in firsts]
            for j, k, m in _others(i):
                factors[places[j]] = factors[places[j]] + c[:, places[k], places[m]]
            rows.append(xp.stack(factors, axis=-1))
        return xp.stack(rows, axis=1) @ covered

    def _sums(self, Y: Array, counts: list[int]) -> Array:
        """(1/N) sum_r p_ru (x_r - mean) for every distinct vector u; Y is (starts, U, n)."""
        if self.compiled:
            return _moment_reads.sums(self.X, self.mean, Y, counts)
        xp = namespace(Y)
        starts, many, n = Y.shape
        flat, total = xp.reshape(Y, (-1, n)), None
        for _, block in self.blocks(2 * starts * many):
            c = xp.reshape(flat @ block.T, (starts, many, -1))
            rows = [c[:, u, :] for u in range(many)]
            weights = [products(rows, counts, but=u) for u in range(many)]
            p = xp.reshape(xp.stack(weights, axis=1), (starts * many, -1))
            total = p @ block if total is None else total + p @ block
        return xp.reshape(total, (starts, many, n)) / self.samples

    def magnitudes(self, xs: Vectors) -> Vectors:
        """The chain with |x_r - mean|, |W| and |x|; C x becomes s s'|x|, s the ``deviations``."""
        return _moment_bounds.magnitudes(self, xs)

    def errors(self, xs: Vectors) -> tuple[Vectors, Vectors]:
        """Bounds on the rounding errors of all partials, and on their entries: see ``_moment_bounds``."""
        return _moment_bounds.errors(self, xs)

    def depth(self, i: int) -> int:
        """Three c's, each W x, centring and a sum over features; the sum over samples; W'g. Or a pairing.

        A pairing has C x twice (see ``_moment_bounds.errors``), and x'C x is a sum once more.
        """
        side, n, N = self.sizes[0], self.features, self.samples
        into, back = (0, 0) if self.whitening is None else (side, n)
        by_samples = (self.order - 1) * (into + n + 3) + N + 2 + back
        by_pairs = 2 * _moment_bounds.depth_of_covered(self) + side + 4 if self.pairs else 0
        return max(by_samples, by_pairs) + 4

    def largest(self) -> float:
        """t^d, and 4 t^4 for the 4th cumulant, t >= every |entry| of every a_r."""
        top = covariance.largest_entry(self.X, self.mean)
        if self.whitening is not None:
            top *= float(np.max(np.sum(np.abs(self.whitening), axis=0)))
        with np.errstate(over="ignore"):
            return float(
                np.float64(top) ** self.order * (4.0 if self.pairs else 1.0) * (1.0 + 1e-9)
            )

    def spectral_bound(self) -> float:
        """See ``_moment_bounds.spectral_bound``."""
        if self._spectral_bound is None:
            self._spectral_bound = _moment_bounds.spectral_bound(self)
        return self._spectral_bound

    def converted(self, like: Array) -> Moments:
        X = convert(self.X, like)
        if X is self.X:
            return self
        twin = copy.copy(self)
        twin.X = X
        twin._settle()
        return twin


class _KeptCoefficients(Kept):
    """c_m for every mode; an update renews one of them. Modes with one and the same vector share what they need."""

    kernel: Moments

    def __init__(self, kernel: Moments, xs: Vectors, carried: Any = None) -> None:
        super().__init__(kernel, kernel.fitted(xs))
        nothing = ((None,) * len(xs),) * 2
        self._c, self._covered = (list(part) for part in carried or nothing)
        self._partials: dict[int, Array] = {}

    @property
    def carried(self) -> Any:
        """With one axis of starts, as in a run; an entry that was not needed is None."""
        one_axis = self.xs[0].ndim == 2
        return (tuple(self._c), tuple(self._covered)) if one_axis else None

    def all_partials(self) -> Vectors:
        return tuple(self.partial(i) for i in range(len(self.xs)))

    def partial(self, i: int) -> Array:
        first = next(m for m, x in enumerate(self.xs) if x is self.xs[i])
        if first not in self._partials:
            self._partials[first] = self._partial(first)
        return self._partials[first]

    def update(self, i: int, x: Array) -> None:
        if x is self.xs[i]:
            return
        super().update(i, x)
        self._c[i] = self._covered[i] = None
        self._partials = {}

    def _partial(self, i: int) -> Array:
        kernel = self.kernel
        places, firsts = distinct(self.xs)
        counts = [places.count(u) for u in range(len(firsts))]
        alone = counts[places[i]] == 1  # then mode i itself is not asked for
        for m in range(len(self.xs)):
            if m != i or not alone:
                self._renew(m)
        rows = [self._c[m] for m in firsts]
        self.spent += 0.5 / len(self.xs)  # one of 2 d products with X
        answer = kernel.from_features(kernel.weighted(products(rows, counts, but=places[i])))
        answer = namespace(answer).reshape(answer, self.xs[i].shape)
        if kernel.pairs:
            answer = answer - kernel.pairings(self.xs, tuple(self._covered), i)
        return answer

    def _renew(self, m: int) -> None:
        """What mode m contributes, taken from a mode with the same vector where there is one."""
        if self._c[m] is not None:
            return
        for other, x in enumerate(self.xs):
            if x is self.xs[m] and self._c[other] is not None:
                self._c[m], self._covered[m] = self._c[other], self._covered[other]
                return
        self.spent += 0.5 / len(self.xs)
        self._c[m] = self.kernel.coefficients(self.kernel.into_features(self.xs[m]))
        if self.kernel.pairs:
            self._covered[m] = self.kernel.covariance_times(self.xs[m])


def _others(i: int) -> tuple[tuple[int, int, int], ...]:
    """The three modes other than i, each once in front."""
    j, k, m = (mode for mode in range(4) if mode != i)
    return (j, k, m), (k, j, m), (m, j, k)


def distinct(xs: Vectors) -> tuple[list[int], list[int]]:
    """For every mode the number of its vector, and for every vector its first mode; the same object counts once."""
    firsts: list[int] = []
    places = []
    for m, x in enumerate(xs):
        known = [u for u, first in enumerate(firsts) if xs[first] is x]
        places.append(known[0] if known else len(firsts))
        if not known:
            firsts.append(m)
    return places, firsts


def products(rows: list[Array], counts: list[int], *, but: int) -> Array:
    """The product of every row as often as it counts, one of them once less."""
    factors = [row for u, row in enumerate(rows) for _ in range(counts[u] - (u == but))]
    return reduce(lambda a, b: a * b, factors)
