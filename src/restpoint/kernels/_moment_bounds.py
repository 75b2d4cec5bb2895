"""What is proved about moment tensors: rounding errors, step by step, and a bound on the spectral norm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from restpoint.array import Array, convert, gamma, inner, namespace, require_memory
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
        W'g          |W|'(e_g + gamma_n (|g| + e_g))                        (g itself without W)
        v = C x      |v^ - v| <= gamma_k s s'|x|, k = ``depth_of_covered``

    and products of v with the numbers c_kl = x_k'v_l by the same rules, subtracted after W'. s_i, the root mean square
    of A_i or of (|W|'A)_i (``deviations``), bounds C's entries and their roundings through Cauchy-Schwarz, |C_ij| <=
    s_i s_j; see ``covariance``. Underflow adds ``tiny`` at every step.
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

        xs = kernel.fitted(xs)
        xp, x = namespace(*xs), xs[0]
        self.kernel, self.xp, self.moduli = kernel, xp, moduli
        self.places, firsts = distinct(xs)
        n, N, k = kernel.features, kernel.samples, kernel.sizes[0]
        self.tiny = 8 * (n + N + k) * float(xp.finfo(x.dtype).smallest_normal)
        self.W = None if kernel._whitening is None else xp.abs(kernel._whitening)
        self.xs = [xp.reshape(xs[m], (-1, k)) for m in firsts]
        self.points = [self._point(x) for x in self.xs]
        self.ys = [self._features(y, x) for y, x in zip(self.points, self.xs, strict=True)]
        self.sums = self._sums()
        if kernel.pairs:
            self.deviations = convert(kernel.deviations(), kernel.X)
            self.covered = [self._covered(x) for x in self.xs]

    def partial(self, i: int) -> _Rounded:
        """The partial of mode i."""
        kernel, g = self.kernel, self.sums[self.places[i]]
        if self.W is not None:
            error = g.error + gamma(kernel.features) * (g.size + g.error)
            g = _Rounded(g.size @ self.W, SLACK * (error @ self.W) + self.tiny)
        if not kernel.pairs:
            return g
        j, k, m = (self.places[mode] for mode in range(4) if mode != i)
        for one, two, three in ((j, k, m), (k, j, m), (m, j, k)):
            pair = self.covered[one].times(self._number(two, three), self.tiny)
            g = _Rounded(g.size + pair.size, g.error + pair.error)
        # Three terms and a difference, in whichever order, terms of tied modes together.
        return _Rounded(g.size, g.error + gamma(8) * (g.size + g.error))

    def _point(self, x: Array) -> Array:
        """y^ = W x, or |W||x|."""
        return x @ self.W.T if self.moduli and self.W is not None else self.kernel.into_features(x)

    def _features(self, y: Array, x: Array) -> _Rounded:
        """Size and error of y."""
        y = self.xp.abs(y)
        if self.W is None:
            return _Rounded(y, 0.0 * y)
        size = self.xp.abs(x) @ self.W.T
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

    def _covered(self, x: Array) -> _Rounded:
        """v = C x; the entries of C, or the c where it is not formed, may have lost underflowing products."""
        s, moduli = self.deviations, self.xp.abs(x)
        size = self.xp.vecdot(s, moduli)[..., None] * s
        error = SLACK * gamma(depth_of_covered(self.kernel)) * size
        error = error + self.tiny * (1.0 + s + self.xp.sum(moduli, axis=-1)[..., None])
        v = size if self.moduli else self.xp.abs(self.kernel.covariance_times(x))
        return _Rounded(v + error, error)

    def _number(self, k: int, m: int) -> _Rounded:
        """c_km = x_k'v_m per start."""
        x, v = self.xp.abs(self.xs[k]), self.covered[m]
        error = inner(x, v.error + gamma(self.kernel.sizes[0]) * (v.size + v.error))
        size = SLACK * inner(x, v.size)
        return _Rounded(size[..., None], SLACK * error[..., None] + self.tiny)


def magnitudes(kernel: Moments, xs: Vectors) -> Vectors:
    """The chain with |x_r - mean|, |W| and plus signs, at vectors >= 0; C x becomes s s'x."""
    chain = _Chain(kernel, xs, moduli=True)
    batch, xp = xs[0].shape[:-1], namespace(*xs)
    found = [chain.partial(chain.places.index(u)).size for u in range(max(chain.places) + 1)]
    return tuple(xp.reshape(found[u], (*batch, -1)) for u in chain.places)


def deviations(kernel: Moments) -> np.ndarray:
    """s, the root mean squares of |x_r - mean|, or of |W|'|x_r - mean|, entry by entry, rounded up."""
    squares = np.zeros(kernel.sizes[0])
    for block in covariance.blocks(kernel.X, kernel.mean):
        squares += np.sum(_rows(kernel, block)[1] ** 2, axis=0)
    # What underflows in a square is below the smallest normal number.
    tiny = float(np.finfo(np.float64).smallest_normal)
    depth = kernel.samples + 2 * kernel.features + 8
    return np.sqrt(squares / kernel.samples + tiny) * (1.0 + gamma(depth))


def depth_of_covered(kernel: Moments) -> int:
    """k such that C x errs by at most gamma_k s s'|x|.

    A formed C errs by gamma_{N+6} s_i s_j, with W by gamma_{N+2n+6} (see ``covariance``), and the product sums as many
    terms as x has entries. Else c has n + 1 roundings, centring among them, and the sum over samples N + 2. Two more
    cover what underflows in W'(x_r - mean), since s is at least the root of the smallest normal number.
    """
    whitened = 0 if kernel.whitening is None else 2 * kernel.features
    return kernel.samples + whitened + kernel.sizes[0] + 8


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
    """An upper bound on lambda_max of C = (1/N) sum_r a_r a_r', or of the smaller matrix a_r'a_s / N."""
    if not kernel.forms_covariance:
        gram, lengths = _gram(kernel)
        rounding = gamma(_depth(kernel)) * float(np.sum(lengths**2))
        return SLACK * rounding / kernel.samples + largest_eigenvalue(gram) / kernel.samples
    # Entries err by gamma times s_i s_j: a matrix of norm s's.
    rounding = gamma(depth_of_covered(kernel)) * float(np.sum(kernel.deviations() ** 2))
    return largest_eigenvalue(kernel.covariance()) + SLACK * rounding


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
    require_memory(3 * 8 * N**2, f"the products of all {N:,} samples")
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
    """Roundings on the way of any term of a_r'a_s, and of the lengths."""
    return 4 * kernel.features + 2 * kernel.sizes[0] + 16
