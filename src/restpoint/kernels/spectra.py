"""Upper bounds on eigenvalues and spectral norms that hold in spite of rounding.

The eigenvalue solver only proposes: a Cholesky factorisation that runs to completion proves (Rump, BIT 46, 2006).
Computed once per function, in NumPy float64, wherever the data live.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from restpoint.array import UNIT_ROUNDOFF, gamma

# Above this side, cubic work is no longer a matter of seconds; norms bound the spectrum instead.
LARGEST_SIDE = 4000
# Correctly rounded row sums, one Python call per row, decide exactly but slowly.
LARGEST_EXACT_SIDE = 1000
# Unfoldings with a larger smaller side are left out of the bound on a tensor's spectral norm.
LARGEST_UNFOLDED_SIDE = 2000
# Multiplications and additions spent on the first of them, about a second's worth, and on all of several.
MOST_WORK, LITTLE_WORK = 40_000_000_000, 4_000_000_000
# Entries of a tensor that are unfolded at a time.
PIECE = 2_000_000
# A rough bound: so many steps of the power method propose, and so much above it, then more, is tried.
POWERS, ABOVE, TRIES = 12, 1.05, 6
# Far above the backward error of a symmetric eigenvalue solver, in units of the side times ||Q||_F.
SOLVER_ERROR = 1e-12


def largest_eigenvalue(Q: np.ndarray) -> float:
    """An upper bound on lambda_max of a symmetric matrix: see ``largest_eigenvalue_between``."""
    return largest_eigenvalue_between(Q)[1]


def largest_eigenvalue_between(Q: np.ndarray) -> tuple[float, float]:
    """A lower and an upper bound on lambda_max of a symmetric matrix.

    Up to ``LARGEST_SIDE`` they are within about 1e-12 of it, times the side and relative to ||Q||; above that they are
    the largest diagonal entry and ||Q||_F. Where Gershgorin's circles decide (diagonal and diagonally dominant
    matrices), the sign of the upper bound is exact.
    """
    scaled, exponent = _scaled(Q)
    side, size = Q.shape[0], _frobenius(scaled)
    attained, bounds = float(np.max(np.diagonal(scaled))), [size]
    if side <= LARGEST_SIDE:
        estimate, proved = _proved_by_cholesky(scaled)
        attained = max(attained, estimate - SOLVER_ERROR * side * size)
        bounds.append(proved)
    try:
        low = math.ldexp(attained, exponent)
    except OverflowError:
        low = -math.inf
    high = unscaled(min(bounds), exponent)
    if side > LARGEST_EXACT_SIDE or _rounded_gershgorin(Q) > high:
        return low, high
    # Not of the scaled matrix, whose smallest entries may have become 0: this one decides the sign.
    return low, min(high, _gershgorin(Q))


def semidefinite_bound(Q: np.ndarray, share: float) -> float | None:
    """An upper bound on lambda_max of a symmetric matrix, some per cent above it, for Q >= -share ||Q||_2 I.

    None where that is not proved. Costs two Cholesky factorisations and a few products, far less than eigenvalues.
    """
    scaled, exponent = _scaled(Q)
    side = Q.shape[0]
    if side > LARGEST_SIDE:
        return None
    x = scaled[int(np.argmax(np.diagonal(scaled)))]
    size = 0.0
    for _ in range(POWERS):
        norm = float(np.sqrt(x @ x))
        if not norm > 0.0:
            return None
        x = scaled @ (x / norm)
        size = float(np.sqrt(x @ x))
    shift = 0.5 * share * size
    below = _below_zero(scaled, shift)
    if below is None or below - shift > 0.5 * shift:
        return None
    for tried in range(TRIES):
        above = _below_zero(-scaled, size * ABOVE ** (2**tried))
        if above is not None:
            return unscaled(above, exponent)
    return None


def squared_spectral_norm(A: np.ndarray, *, largest_side: int = LARGEST_SIDE) -> float:
    """An upper bound on ||A||_2^2, from the smaller of AA' and A'A; ||A||_F^2 if even that is too large."""
    scaled, exponent = _scaled(A)
    rows, columns = A.shape
    bound = _frobenius(scaled) ** 2 * (1.0 + 4.0 * UNIT_ROUNDOFF)
    if min(rows, columns) <= largest_side:
        gram = scaled @ scaled.T if rows <= columns else scaled.T @ scaled
        # ||fl(AA') - AA'||_2 <= gamma_k || |A||A'| ||_F <= gamma_k ||A||_F^2, k the inner dimension.
        rounding = 1.001 * gamma(max(rows, columns) + 1) * bound
        bound = min(bound, largest_eigenvalue(0.5 * gram + 0.5 * gram.T) + rounding)
    return unscaled(bound, 2 * exponent)


def spectral_bound(A: np.ndarray) -> float:
    """An upper bound on the spectral norm of a tensor: ||A||_F, or that of an unfolding (theory E31).

    Unfoldings are every mode alone, and the first modes against the last; for random tensors the square ones are the
    tightest. The cheapest come first: one for as much as ``MOST_WORK``, more only where they take no time that a user
    would notice. A is read in pieces and never copied as a whole.
    """
    d, sizes = A.ndim, A.shape
    total = A.size
    groups = [(k,) for k in range(d)] + [tuple(range(k)) for k in range(2, d - 1)]
    sides = {
        group if side <= total // side else tuple(k for k in range(d) if k not in group): min(
            side, total // side
        )
        for group in groups
        for side in [math.prod(sizes[k] for k in group)]
    }
    exponent = _exponent(A)
    frobenius = math.fsum(float(np.vdot(X, X)) for X in _pieces(A, (0,), exponent))
    frobenius *= 1.0 + gamma(total + 4)
    squares, work = [frobenius], 0
    for group, side in sorted(sides.items(), key=lambda item: item[1]):
        work += 2 * side * total
        if side > LARGEST_UNFOLDED_SIDE or work > (LITTLE_WORK if squares[1:] else MOST_WORK):
            break
        gram = np.zeros((side, side))
        for X in _pieces(A, group, exponent):
            gram += X @ X.T
        # As in ``squared_spectral_norm``; the sums are as long as the rows of the unfolding.
        rounding = 1.001 * gamma(total // side + 2) * frobenius
        squares.append(largest_eigenvalue(0.5 * gram + 0.5 * gram.T) + rounding)
    bound = min(squares)
    return unscaled(math.nextafter(math.sqrt(bound), math.inf), exponent) if bound > 0 else 0.0


def _pieces(A: np.ndarray, group: tuple[int, ...], exponent: int) -> Iterator[np.ndarray]:
    """The unfolding with the modes of ``group`` as rows, times 2^-exponent, a few columns at a time, in float64."""
    axis = next(k for k in range(A.ndim) if k not in group)
    step = max(1, PIECE // max(1, A.size // A.shape[axis]))
    side = math.prod(A.shape[k] for k in group)
    for i in range(0, A.shape[axis], step):
        part = A[(slice(None),) * axis + (slice(i, i + step),)]
        X = (
            np.moveaxis(part, group, range(len(group)))
            .reshape(side, -1)
            .astype(np.float64, copy=False)
        )
        yield np.ldexp(X, -exponent) if exponent else X


def _exponent(A: np.ndarray) -> int:
    """e such that A 2^-e is far from overflow and underflow; 0 where A already is."""
    exponent = math.frexp(float(max(np.max(A), -np.min(A))))[1]
    return exponent if abs(exponent) >= 64 else 0


def _scaled(A: np.ndarray) -> tuple[np.ndarray, int]:
    """A 2^-e with entries at most 1 in modulus (exact up to underflow far below the bounds), and e."""
    A = np.asarray(A, dtype=np.float64)
    exponent = _exponent(A)
    return (np.ldexp(A, -exponent), exponent) if exponent else (A, 0)


def unscaled(bound: float, exponent: int) -> float:
    """bound 2^exponent, rounded up."""
    if bound == 0.0 or exponent == 0:
        return bound
    try:
        return math.nextafter(math.ldexp(bound, exponent), math.inf)
    except OverflowError:
        return math.inf


def _frobenius(A: np.ndarray) -> float:
    return math.sqrt(float(np.sum(A * A))) * (1.0 + gamma(A.size + 4))


def _gershgorin(Q: np.ndarray) -> float:
    """max_i q_ii + sum_{j != i} |q_ij|; ``fsum`` rounds once, so a bound of 0 is really 0."""
    radii = np.abs(Q)
    np.fill_diagonal(radii, np.diagonal(Q))
    try:
        largest = max(math.fsum(row) for row in radii)
    except OverflowError:
        return math.inf
    return math.nextafter(largest, math.inf) if largest > 0 else largest


def _rounded_gershgorin(Q: np.ndarray) -> float:
    """The same by rounded sums, and not above it: tells whether the exact sums, which are slow, can be of use."""
    with np.errstate(all="ignore"):
        size, diagonal = np.abs(Q), np.diagonal(Q)
        sums = np.sum(size, axis=-1)
        lost = gamma(len(Q) + 4) * sums
        return float(np.max(diagonal - np.abs(diagonal) + (sums - lost)))


def _proved_by_cholesky(Q: np.ndarray) -> tuple[float, float]:
    """The solver's estimate, and shift + error such that fl(shift I - Q) has a Cholesky factor; infinite without."""
    side = Q.shape[0]
    try:
        estimate = float(np.linalg.eigvalsh(Q)[-1])
    except np.linalg.LinAlgError:
        return -math.inf, math.inf
    margin = UNIT_ROUNDOFF * side * (abs(estimate) + float(np.max(np.abs(Q))))
    for _ in range(16):
        proved = _below_zero(-Q, estimate + margin)
        if proved is not None:
            return estimate, proved
        margin *= 8.0
    return estimate, math.inf


def _below_zero(Q: np.ndarray, shift: float) -> float | None:
    """How far below 0 an eigenvalue of Q may be at most: about shift, if fl(Q + shift I) has a Cholesky factor."""
    side = Q.shape[0]
    shifted = Q.copy()
    shifted[np.diag_indices(side)] += shift
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return None
    # The factor R has |R'R - shifted| <= gamma_{n+1}/(1 - gamma_{n+1}) sqrt(t_ii t_jj) (Demmel),
    # so lambda_min(shifted) >= -that times trace(shifted); the diagonal was rounded once.
    error = gamma(2 * side + 4) * float(np.trace(shifted))
    error += 2.0 * UNIT_ROUNDOFF * float(np.max(np.abs(np.diagonal(shifted))))
    return shift + 1.001 * error + 2.0 * UNIT_ROUNDOFF * abs(shift)
