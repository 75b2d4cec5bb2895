"""Least squares fits of a tensor by a weighted sum of rank-one tensors, on its observed entries."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from restpoint.array import (
    UNIT_ROUNDOFF,
    Array,
    asarray,
    convert,
    event_sum,
    gamma,
    inner,
    namespace,
    product_up,
    to_host,
)
from restpoint.errors import DataError, ShapeError
from restpoint.kernels import Kept, Vectors
from restpoint.smooth import _bounds
from restpoint.smooth._observed import observed
from restpoint.smooth._rounding import SLACK, underflow
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth, Sweep

if TYPE_CHECKING:
    from restpoint.sets import Set


class ModeTerms(NamedTuple):
    """f as a quadratic in the vectors of one mode.

    With a_r = w_r x_r, f = 1/2 sum_rs a_r'(pairs_rs o a_s) - sum_r a_r'linear_r and a constant, o entry by entry.

    ``linear`` has shape (*batch, R, n), ``pairs`` (*batch, R, R, n).
    """

    linear: Array
    pairs: Array


class CanonicalPolyadic(Smooth):
    r"""f(x) = 1/2 sum over observed entries of (A - sum_r w_r x_1r o ... o x_dr)^2, with weights w_r >= 0 fixed.

    Block i R + r is the vector of mode i, component r. ``A`` is an array of order d >= 2, of any strides, float32 or
    memory-mapped; NaN, and what a numpy.ma array masks, is missing: left out of the sum, never imputed. Or it is a
    multilinear form such as ``SparseTensor``, or a kernel: then all its entries are observed (zeros of a sparse tensor
    are zeros), its sign has no say, and ``squared_norm`` = ||A||^2 is needed where the tensor is never formed.

    With P the 0/1 tensor of what is observed, and o the product entry by entry,

        f = ||PA||^2/2 - sum_r w_r PA(x_1r, ..., x_dr) + 1/2 sum_rs w_r w_s P(x_1r o x_1s, ..., x_dr o x_ds)
        grad_ir f = w_r [sum_s w_s P(x_jr o x_js, all modes j but i) o x_is - PA(x_jr, all modes j but i)]

    so everything is contractions of two tensors, with components and pairs of components as starts; without missing
    entries P is the rank-one tensor of ones. A sweep costs two products with A, whatever the number of components.

    Facts, p = 2, with R_ir the largest norm in the set of block (i, r), size_r = w_r prod_i R_ir, S = sum_r size_r and
    sigma >= the spectral norm of PA. Alone, a block has the diagonal Hessian w_r^2 P(x_jr o x_jr, j but i): blockwise
    constants w_r^2 prod over j but i of R_jr^2. Together, T the model, v'Hv = ||P DT[v]||^2 + <P(T - A), D^2T[v, v]>.
    Let t_ir = ||v_ir|| / R_ir, and note ||P.|| <= ||.||. The first term is at most (sum_ir size_r t_ir)^2
    <= d S sum_ir size_r t_ir^2, the second at most sum_r (S + sigma) size_r sum over i != j of t_ir t_jr
    <= (d - 1) (S + sigma) sum_ir size_r t_ir^2: joint constants size_r ((2d - 1) S + (d - 1) sigma) / R_ir^2.

    >>> import numpy as np
    >>> f = CanonicalPolyadic([[3.0, 0.0], [np.nan, 1.0]], [2.0])
    >>> value, (first, second) = f.value_and_gradient((np.array([1.0, 0.0]), np.array([1.0, 0.0])))
    >>> float(value), first, second  # the residuals are 1, 0 and 1
    (1.0, array([-2., 0.]), array([-2., 0.]))
    """

    def __init__(self, A: Any, weights: Any, *, squared_norm: float | None = None) -> None:
        self.observed = observed(A, squared_norm)
        self.sizes = self.observed.data.sizes
        self._settle(weights)

    def reweighted(self, weights: Any) -> CanonicalPolyadic:
        """The same data with other weights, one for each component; nothing is computed anew."""
        twin = copy.copy(self)
        twin._settle(weights)
        return twin

    def _settle(self, weights: Any) -> None:
        given = asarray("weights", weights)
        self.weights = np.array(to_host(given), dtype=np.float64)
        if self.weights.ndim != 1 or self.weights.size == 0:
            raise ShapeError(
                f"weights has shape {self.weights.shape}; expected (R,), one weight for each component"
            )
        if np.min(self.weights) < 0.0:
            raise DataError(
                f"weights must be >= 0, got {float(np.min(self.weights))}: let a vector carry the sign"
            )
        self.rank = self.weights.size
        self.shapes = tuple((n,) for n in self.sizes for _ in range(self.rank))
        first, second = np.triu_indices(self.rank)
        self._pairs = first, second
        places = np.zeros((self.rank, self.rank), dtype=np.int64)
        places[first, second] = places[second, first] = np.arange(first.size)
        self._places = places.reshape(-1)

    @property
    def like(self) -> Array:
        return self.observed.data.like

    @property
    def numbers_a_start(self) -> int:
        R, (data, mask, _) = self.rank, self.observed
        return R * data.numbers_a_start + R * (R + 1) // 2 * mask.numbers_a_start

    def converted(self, like: Array) -> CanonicalPolyadic:
        moved = self.observed.converted(like)
        if moved is self.observed:
            return self
        twin = copy.copy(self)
        twin.observed = moved
        return twin

    def value(self, xs: Blocks) -> Array:
        sweep = PolyadicSweep(self, xs)
        return self._value(sweep.factors[0], sweep.mode(0))

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        factors = self.factors(xs)
        linear = self.observed.data.all_partials(factors)
        pairs = self.observed.mask.all_partials(tuple(self.products(X) for X in factors))
        terms = [ModeTerms(b, self._square(Q)) for b, Q in zip(linear, pairs, strict=True)]
        return self._value(factors[0], terms[0]), self._gradients(factors, terms)

    def partial(self, xs: Blocks, i: int) -> Array:
        return PolyadicSweep(self, xs).partial(i)

    def sweep(self, xs: Blocks, carried: Any = None) -> PolyadicSweep:
        """Keeps what the kernels keep: for a dense tensor one read for each half of the modes, for all components."""
        return PolyadicSweep(self, xs, carried)

    def engine(self, xs: Blocks) -> str:
        data = self.observed.data
        return f"{data.name}: {data.describe(self.factors(xs))}"

    def facts(self, sets: Sequence[Set]) -> Facts:
        d, R = len(self.sizes), self.rank
        radii = [_bounds.largest_norm(s, n) for s, n in zip(sets, self.shapes, strict=True)]
        weights = [float(w) for w in self.weights]
        sizes = [product_up(w, *radii[r::R]) for r, w in enumerate(weights)]
        total = math.nextafter(math.fsum(sizes), math.inf)
        sigma = self.observed.data.spectral_bound()
        both = ((2 * d - 1) * total + (d - 1) * sigma) * (1.0 + 8.0 * UNIT_ROUNDOFF)
        joint, blockwise = [], []
        for k, radius in enumerate(radii):
            w = weights[k % R]
            others = list(radii[k % R :: R])
            del others[k // R]
            blockwise.append(product_up(w, w, *others, *others))
            # size_r / R_ir^2 = w_r prod over j but i of R_jr / R_ir; a block of one point does not move
            joint.append(product_up(w, *others, both, over=(radius,)) if radius else 0.0)
        return Facts(joint=_finite(joint), blockwise=_finite(blockwise), lower_bound=0.0)

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """gamma_k times the same formulas with absolute values, k the depths of the kernels and of what follows."""
        factors = self.factors(xs)
        data, mask, norm = self.observed
        pairs = tuple(self.products(X) for X in factors)
        if not (data.in_double(factors) and mask.in_double(pairs)):
            return None
        xp, d, R = namespace(*factors), len(factors), self.rank
        sizes = tuple(xp.abs(X) for X in factors)
        linear = data.magnitudes(sizes)
        quadratic = mask.magnitudes(tuple(xp.abs(u) for u in pairs))
        weights, errors = self._weights(factors[0]), []
        tiny = self._underflow(sizes)
        for i, X in enumerate(sizes):
            terms = ModeTerms(linear[i], self._square(quadratic[i]))
            own = gamma(data.depth(i) + 4) * terms.linear
            # d - 1 pairs, two products, R - 1 sums, the difference, the weight
            own = own + gamma(mask.depth(i) + d + R + 8) * self._together(X, terms)
            spread = 1.0 + xp.sum(xp.sum(X, axis=-1), axis=-1)
            error = SLACK * weights[:, None] * own + (tiny * spread)[..., None, None]
            errors += [error[..., r, :] for r in range(R)]
        terms, more = ModeTerms(linear[0], self._square(quadratic[0])), self.sizes[0] + R + 12
        first = gamma(data.depth(0) + more) * self._summed(sizes[0], terms.linear)
        second = gamma(mask.depth(0) + d + R + more) * self._summed(
            sizes[0], self._together(sizes[0], terms)
        )
        constant = 0.5 * norm.error + gamma(4) * norm.value
        spread = (1.0 + xp.sum(xp.sum(sizes[0], axis=-1), axis=-1)) ** 2
        return SLACK * (first + second + constant) + tiny * spread, tuple(errors)

    def weight_gradient(self, xs: Blocks) -> tuple[Array, Array | None]:
        """df/dw_r = x_1r'(sum_s w_s pairs_rs o x_1s - linear_r), (*batch, R), and its rounding bound if proved."""
        factors = self.factors(xs)
        sweep, X = PolyadicSweep(self, xs), factors[0]
        terms = sweep.mode(0)
        slopes = inner(X, self._together(X, terms) - terms.linear)
        data, mask, _ = self.observed
        pairs = tuple(self.products(Y) for Y in factors)
        if not (data.in_double(factors) and mask.in_double(pairs)):
            return slopes, None
        xp, d, n = namespace(X), len(factors), self.sizes[0]
        sizes = tuple(xp.abs(Y) for Y in factors)
        terms = ModeTerms(
            data.magnitudes(sizes)[0],
            self._square(mask.magnitudes(tuple(xp.abs(u) for u in pairs))[0]),
        )
        quadratic = inner(sizes[0], self._together(sizes[0], terms))
        error = gamma(data.depth(0) + n + 4) * inner(sizes[0], terms.linear)
        error = error + gamma(mask.depth(0) + d + self.rank + n + 8) * quadratic
        spread = (1.0 + xp.sum(xp.sum(sizes[0], axis=-1), axis=-1)) ** 2
        return slopes, SLACK * error + (self._underflow(sizes) * spread)[..., None]

    def factors(self, xs: Blocks) -> Vectors:
        """For each mode the vectors of all components, (*batch, R, n_i)."""
        xp, R = namespace(*xs), self.rank
        return tuple(xp.stack(xs[i * R : (i + 1) * R], axis=-2) for i in range(len(self.sizes)))

    def products(self, X: Array) -> Array:
        """The entry by entry products of every two components of one mode, (*batch, R (R + 1) / 2, n)."""
        xp = namespace(X)
        first, second = (xp.asarray(p, device=X.device) for p in self._pairs)
        return xp.take(X, first, axis=-2) * xp.take(X, second, axis=-2)

    def _square(self, Q: Array) -> Array:
        """What belongs to the pairs, as (*batch, R, R, n)."""
        xp = namespace(Q)
        every = xp.take(Q, xp.asarray(self._places, device=Q.device), axis=-2)
        return xp.reshape(every, (*Q.shape[:-2], self.rank, self.rank, Q.shape[-1]))

    def _weights(self, like: Array) -> Array:
        return convert(self.weights, like)

    def _together(self, X: Array, terms: ModeTerms) -> Array:
        """sum_s w_s pairs_rs o x_s."""
        weighted = self._weights(X)[:, None] * X
        return namespace(X).sum(terms.pairs * weighted[..., None, :, :], axis=-2)

    def _summed(self, X: Array, rows: Array) -> Array:
        """sum_r w_r x_r'rows_r."""
        return event_sum(self._weights(X) * inner(X, rows))

    def _value(self, X: Array, terms: ModeTerms) -> Array:
        """f from the terms of one mode; what rounding pushes below 0 is 0."""
        change = self._summed(X, 0.5 * self._together(X, terms) - terms.linear)
        return namespace(X).maximum(change + 0.5 * self.observed.squared_norm.value, 0.0)

    def _gradient(self, X: Array, terms: ModeTerms) -> Array:
        return self._weights(X)[:, None] * (self._together(X, terms) - terms.linear)

    def _gradients(self, factors: Vectors, terms: Sequence[ModeTerms]) -> Blocks:
        found = [self._gradient(X, t) for X, t in zip(factors, terms, strict=True)]
        return tuple(g[..., r, :] for g in found for r in range(self.rank))

    def _underflow(self, sizes: Vectors) -> Array:
        """What underflowing products can lose in any contraction and what it is multiplied with, per start."""
        xp, (data, mask, _) = namespace(*sizes), self.observed
        sums = [1.0 + xp.sum(xp.sum(X, axis=-1), axis=-1) for X in sizes]
        growth = reduce(lambda a, b: a * b, sums) ** 2
        depths = sum(data.depth(i) + mask.depth(i) + n for i, n in enumerate(self.sizes))
        heavy = data.amplification() * (1.0 + float(np.sum(self.weights))) ** 2
        return underflow(sizes[0], 16 * self.rank**2 * depths) * heavy * growth


class PolyadicSweep(Sweep):
    """Terms of a mode stay true while only its own vectors change; behind them, the kernels' kept products."""

    smooth: CanonicalPolyadic

    def __init__(self, smooth: CanonicalPolyadic, xs: Blocks, carried: Any = None) -> None:
        super().__init__(smooth, xs)
        self.factors = list(smooth.factors(xs))
        data, mask, _ = smooth.observed
        pairs = tuple(smooth.products(X) for X in self.factors)
        of_data, of_mask = (None, None) if carried is None else carried
        self._data: Kept = data.keep(tuple(self.factors), of_data)
        self._mask: Kept = mask.keep(pairs, of_mask)
        self._behind: set[int] = set()  # modes whose new vectors the kernels have not been told
        self._terms: dict[int, ModeTerms] = {}

    def mode(self, i: int) -> ModeTerms:
        """f as a quadratic in the vectors of mode i, at the current vectors of the others."""
        if i not in self._terms:
            self._tell()
            square = self.smooth._square(self._mask.partial(i))
            self._terms[i] = ModeTerms(self._data.partial(i), square)
            self.spent = self._data.spent
        return self._terms[i]

    def partial(self, i: int) -> Array:
        smooth, (mode, r) = self.smooth, divmod(i, self.smooth.rank)
        return smooth._gradient(self.factors[mode], self.mode(mode))[..., r, :]

    def value_and_gradient(self) -> tuple[Array, Blocks]:
        terms = [self.mode(i) for i in range(len(self.factors))]
        value = self.smooth._value(self.factors[0], terms[0])
        return value, self.smooth._gradients(tuple(self.factors), terms)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        R = self.smooth.rank
        return tuple(
            tuple(i * R + r for i in group for r in range(R)) for group in self._data.groups
        )

    @property
    def carried(self) -> Any:
        self._tell()
        return self._data.carried, self._mask.carried

    def update(self, i: int, x: Array) -> None:
        if x is self.xs[i]:
            return
        super().update(i, x)
        mode, R = i // self.smooth.rank, self.smooth.rank
        own = self.xs[mode * R : (mode + 1) * R]
        self.replace(mode, namespace(*own).stack(own, axis=-2))

    def replace(self, mode: int, X: Array) -> None:
        """All vectors of one mode are now the rows of X."""
        R = self.smooth.rank
        rows = tuple(X[..., r, :] for r in range(R))
        self.xs = (*self.xs[: mode * R], *rows, *self.xs[(mode + 1) * R :])
        self.factors[mode] = X
        self._behind.add(mode)
        self._terms = {m: terms for m, terms in self._terms.items() if m == mode}

    def _tell(self) -> None:
        for mode in sorted(self._behind):
            self._data.update(mode, self.factors[mode])
            self._mask.update(mode, self.smooth.products(self.factors[mode]))
        self._behind.clear()


def _finite(constants: list[float]) -> Curvature | None:
    return Curvature(tuple(constants)) if all(map(math.isfinite, constants)) else None
