"""What is proved about moment tensors: rounding errors, step by step, and a bound on the spectral norm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from restpoint.array import Array, convert, gamma, inner, namespace
from restpoint.kernels import covariance
from restpoint.kernels.base import Vectors
from restpoint.kernels.spectra import largest_eigenvalue

if TYPE_CHECKING:
    from restpoint.kernels.moments import Moments

SLACK = 1.001  # for the roundings of the bounds themselves
# Matrices of products of two entries, or of two samples, up to this side: cubic work is then less than a second.
LARGEST_SIDE_OF_PAIRS = 1500


class _Rounded:
    """Entries of modulus at most ``size`` that were computed with errors of at most ``error``."""

    def __init__(self, size: Array, error: Array) -> None:
        self.size, self.error = size, error

    def times(self, other: _Rounded, tiny: float) -> _Rounded:
        """The rounded product: |ab - fl| <= e_a (|b| + e_b) + |a| e_b + u (|a| + e_a)(|b| + e_b) + underflow."""
        above = other.size + other.error
        error = self.error * above + self.size * other.error
        rounding = gamma(1) * (self.size + self.error) * above
        return _Rounded(self.size * other.size, SLACK * (error + rounding) + tiny)


def errors(kernel: Moments, xs: Vectors) -> tuple[Vectors, Vectors]:
    """Bounds on the rounding errors of ``all_partials``, and on its entries, whatever the order of the sums.

    With A = |x_r - mean|, one rounding an entry, and hats on computed numbers:

        y = W x      |y^ - y| <= e_y = gamma_k |W||x|                       (0 without W)
        c = a'y      |c^ - c| <= e_c = A (e_y + gamma_{n+2} (|y^| + e_y)), and |c| <= |c^| + e_c
        p = c c c    the product rule, one factor after the other
        g = A'p / N  |g^ - g| <= A'(e_p + gamma_{N+3} (|p| + e_p)) / N
        v = C y      |v^ - v| <= s s'(e_y + gamma_{N+n+8} (|y^| + e_y))     (s_i^2 = C_ii; see ``covariance``)
        W'g          |W|'(e_g + gamma_n (|g| + e_g))

    and products of v with the numbers c_kl = y_k'v_l by the same rules. Roundings of C's entries are bounded through
    Cauchy-Schwarz, |C_ij| <= s_i s_j. Underflow adds ``tiny`` at every step.
    """
    chain = _Chain(kernel, xs)
    batch, places = xs[0].shape[:-1], chain.places
    found = [chain.partial(places.index(u)) for u in range(max(places) + 1)]
    xp = namespace(*xs)
    shaped = [
        (xp.reshape(g.error, (*batch, -1)), xp.reshape(g.size + g.error, (*batch, -1)))
        for g in found
    ]
    return tuple(shaped[u][0] for u in places), tuple(shaped[u][1] for u in places)


class _Chain:
    """The steps of ``errors`` for all modes of one point."""

    def __init__(self, kernel: Moments, xs: Vectors, *, moduli: bool = False) -> None:
        from restpoint.kernels.moments import distinct

        xp, x = namespace(*xs), xs[0]
        self.kernel, self.xp, self.moduli = kernel, xp, moduli
        self.places, firsts = distinct(xs)
        n, N, k = kernel.features, kernel.samples, kernel.sizes[0]
        self.tiny = 8 * (n + N + k) * float(xp.finfo(x.dtype).smallest_normal)
        self.W = None if kernel._whitening is None else xp.abs(kernel._whitening)
        self.points = [self._point(xs[m]) for m in firsts]
        self.ys = [self._features(y, xs[m]) for y, m in zip(self.points, firsts, strict=True)]
        self.deviations = convert(deviations(kernel), kernel.X)
        self.sums = self._sums()
        self.covered = [self._covered(u) for u in range(len(firsts))] if kernel.pairs else []

    def partial(self, i: int) -> _Rounded:
        """The partial of mode i."""
        kernel, g = self.kernel, self.sums[self.places[i]]
        if kernel.pairs:
            j, k, m = (self.places[mode] for mode in range(4) if mode != i)
            for one, two, three in ((j, k, m), (k, j, m), (m, j, k)):
                pair = self.covered[one].times(self._number(two, three), self.tiny)
                g = _Rounded(g.size + pair.size, g.error + pair.error)
            # Three terms and a difference, in whichever order, terms of tied modes together.
            g = _Rounded(g.size, g.error + gamma(8) * (g.size + g.error))
        if self.W is None:
            return g
        rounding = gamma(kernel.features) * (g.size + g.error)
        return _Rounded(g.size @ self.W, SLACK * ((g.error + rounding) @ self.W) + self.tiny)

    def _point(self, x: Array) -> Array:
        """y^ = W x, or |W||x|."""
        if not self.moduli or self.W is None:
            return self.kernel.into_features(x)
        return self.xp.reshape(x, (-1, x.shape[-1])) @ self.W.T

    def _features(self, y: Array, x: Array) -> _Rounded:
        """Size and error of y."""
        y = self.xp.abs(y)
        if self.W is None:
            return _Rounded(y, 0.0 * y)
        size = self.xp.abs(self.xp.reshape(x, (-1, x.shape[-1]))) @ self.W.T
        return _Rounded(y, SLACK * gamma(self.kernel.sizes[0]) * size + self.tiny)

    def _sums(self) -> list[_Rounded]:
        """g for every distinct vector, before pairings."""
        kernel, xp = self.kernel, self.xp
        starts, n = self.ys[0].size.shape
        zero = xp.zeros((starts, n), dtype=kernel.X.dtype, device=kernel.X.device)
        sizes, found = [zero for _ in self.ys], [zero for _ in self.ys]
        for _, block in kernel.blocks(4 * len(self.ys) * starts):
            A = xp.abs(block)
            rows = [self._coefficient(u, block, A) for u in range(len(self.ys))]
            for u in range(len(rows)):
                factors = sorted(self.places)  # the order of ``products``
                factors.remove(u)
                p = rows[factors[0]]
                for v in factors[1:]:
                    p = p.times(rows[v], self.tiny)
                error = p.error + gamma(kernel.samples + 3) * (p.size + p.error)
                sizes[u] = sizes[u] + p.size @ A
                found[u] = found[u] + error @ A
        N = kernel.samples
        return [
            _Rounded(SLACK * size / N, SLACK * error / N + self.tiny)
            for size, error in zip(sizes, found, strict=True)
        ]

    def _coefficient(self, u: int, block: Array, A: Array) -> _Rounded:
        """c for the samples of a block."""
        y = self.ys[u]
        above = y.size + y.error
        error = SLACK * ((y.error + gamma(self.kernel.features + 2) * above) @ A.T) + self.tiny
        c = self.points[u] @ (A if self.moduli else block).T
        return _Rounded(self.xp.abs(c) + error, error)

    def _covered(self, u: int) -> _Rounded:
        """v = C y; the entries of C may have lost underflowing products."""
        s, y = self.deviations, self.ys[u]
        above, depth = y.size + y.error, self.kernel.samples + self.kernel.features + 8
        size, weight = (self.xp.vecdot(s, part)[..., None] * s for part in (above, y.error))
        error = SLACK * (weight + gamma(depth) * size)
        error = error + self.tiny * (1.0 + self.xp.sum(above, axis=-1))[..., None]
        v = size if self.moduli else self.xp.abs(self.kernel.covariance_times(self.points[u]))
        return _Rounded(v + error, error)

    def _number(self, k: int, m: int) -> _Rounded:
        """c_km = y_k'v_m per start."""
        y, v = self.ys[k], self.covered[m]
        above, most = y.size + y.error, v.size + v.error
        error = inner(y.error, most) + inner(above, v.error)
        error = error + gamma(self.kernel.features) * inner(above, most)
        size = SLACK * inner(above, v.size)
        return _Rounded(size[..., None], SLACK * error[..., None] + self.tiny)


def magnitudes(kernel: Moments, xs: Vectors) -> Vectors:
    """The chain with |x_r - mean|, |W| and plus signs, at vectors >= 0; C y becomes s s'y."""
    chain = _Chain(kernel, xs, moduli=True)
    batch, xp = xs[0].shape[:-1], namespace(*xs)
    found = [chain.partial(chain.places.index(u)).size for u in range(max(chain.places) + 1)]
    return tuple(xp.reshape(found[u], (*batch, -1)) for u in chain.places)


def deviations(kernel: Moments) -> np.ndarray:
    """The standard deviations of the features (about 0 where nothing is centred), rounded up."""
    squares = np.zeros(kernel.features)
    for block in covariance.blocks(kernel.X, kernel.mean):
        squares += np.sum(block**2, axis=0)
    # What underflows in a square is below the smallest normal number.
    tiny = float(np.finfo(np.float64).smallest_normal)
    return np.sqrt(squares / kernel.samples + tiny) * (1.0 + gamma(kernel.samples + 8))


def spectral_bound(kernel: Moments) -> float:
    """An upper bound on max |M(x_1, ..., x_d)| over unit vectors.

    With L_2 >= lambda_max of (1/N) sum_r a_r a_r' and L_4 >= lambda_max of (1/N) sum_r (a_r o a_r)(a_r o a_r)':

        order 4    |M| = |(x_1 o x_2)'[...](x_3 o x_4)| <= L_4
        order 3    |M|^2 <= mean (a'x_1)^2 mean ((a'x_2)(a'x_3))^2 <= L_2 L_4   (Cauchy-Schwarz over samples)

    and each pairing of the 4th cumulant is at most L_2^2. Always L_4 <= max_r ||a_r||^2 L_2 (Hölder: mean |c_1 c_2| at
    most L_2, the other two at most max ||a_r|| each). For few samples or features L_4 is computed, from that matrix or
    from the N x N matrix (a_r'a_s)^2 / N of the same spectrum: never more, and often much less.
    """
    second = _second_moment(kernel)
    fourth = min(_largest_length(kernel) ** 2 * second, _fourth_moment(kernel))
    bound = fourth if kernel.order == 4 else math.sqrt(second * fourth)
    if kernel.pairs:
        bound += 3.0 * second**2
    return bound * (1.0 + 1e-12)


def _fourth_moment(kernel: Moments) -> float:
    """An upper bound on L_4 from whichever matrix is smaller, infinite where both are large."""
    N, k = kernel.samples, kernel.sizes[0]
    if min(N, k**2) > LARGEST_SIDE_OF_PAIRS:
        return math.inf
    if k**2 > N:
        gram, lengths = _gram(kernel)
        matrix, sizes = gram**2, float(np.sum(lengths**4))
    else:
        matrix, sizes, step = np.zeros((k * k, k * k)), 0.0, max(1, covariance.BLOCK // k**2)
        for block in covariance.blocks(kernel.X, kernel.mean):
            for low in range(0, len(block), step):
                rows, moduli = _rows(kernel, block[low : low + step])
                pairs = (rows[:, :, None] * rows[:, None, :]).reshape(-1, k * k)
                matrix += pairs.T @ pairs
                sizes += float(np.sum(np.sum(moduli**2, axis=-1) ** 2))
        matrix = 0.5 * (matrix + matrix.T)
    # Entries err relative to products of moduli, whose matrix has at most the norm ``sizes``.
    rounding = SLACK * gamma(2 * _depth(kernel) + N + 4) * sizes
    return (largest_eigenvalue(matrix) + rounding) / N


def _second_moment(kernel: Moments) -> float:
    """An upper bound on lambda_max of (1/N) sum_r a_r a_r', from whichever matrix is smaller."""
    if kernel.features > kernel.samples:
        gram, lengths = _gram(kernel)
        rounding = gamma(_depth(kernel)) * float(np.sum(lengths**2))
        return SLACK * rounding / kernel.samples + largest_eigenvalue(gram) / kernel.samples
    C, s, W = kernel.covariance(), deviations(kernel), kernel.whitening
    if W is not None:
        C, s = W.T @ C @ W, s @ np.abs(W)
        C = 0.5 * (C + C.T)
    # Entries err by gamma times s_i s_j: a matrix of norm s's.
    rounding = gamma(_depth(kernel) + kernel.samples) * float(np.sum(s**2))
    return largest_eigenvalue(C) + SLACK * rounding


def _largest_length(kernel: Moments) -> float:
    """An upper bound on max_r ||a_r||."""
    longest = 0.0
    for block in covariance.blocks(kernel.X, kernel.mean):
        rows, moduli = _rows(kernel, block)
        lengths = np.sqrt(np.sum(rows**2, axis=-1)), np.sqrt(np.sum(moduli**2, axis=-1))
        longest = max(longest, float(np.max(lengths[0] + gamma(_depth(kernel)) * lengths[1])))
    lost = math.sqrt(kernel.sizes[0] * float(np.finfo(np.float64).smallest_normal))
    return longest * (1.0 + gamma(_depth(kernel))) + lost  # squares may have underflowed


def _gram(kernel: Moments) -> tuple[np.ndarray, np.ndarray]:
    """The N x N matrix a_r'a_s, and the lengths of the moduli of the a_r that its rounding is relative to."""
    N = kernel.samples
    gram, squares = np.zeros((N, N)), np.zeros(N)
    if kernel.whitening is not None:  # at most N - 1 components: no larger than the answer
        parts = [_rows(kernel, block) for block in covariance.blocks(kernel.X, kernel.mean)]
        rows, moduli = (np.concatenate(column) for column in zip(*parts, strict=True))
        gram, squares = rows @ rows.T, np.sum(moduli**2, axis=-1)
    else:
        step = max(1, covariance.BLOCK // N)
        for low in range(0, kernel.features, step):
            high = min(low + step, kernel.features)
            mean = None if kernel.mean is None else kernel.mean[low:high]
            columns = kernel.X[:, low:high]
            part = np.concatenate(list(covariance.blocks(columns, mean)))
            gram += part @ part.T
            squares += np.sum(part**2, axis=-1)
    return 0.5 * (gram + gram.T), np.sqrt(squares) * (1.0 + gamma(_depth(kernel)))


def _rows(kernel: Moments, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a_r for centred samples, and |W|'|x_r - mean|."""
    if kernel.whitening is None:
        return block, np.abs(block)
    return block @ kernel.whitening, np.abs(block) @ np.abs(kernel.whitening)


def _depth(kernel: Moments) -> int:
    """Roundings on the way of any term of a_r'a_s or of W'CW, and of the lengths."""
    return 4 * kernel.features + 2 * kernel.sizes[0] + 16
