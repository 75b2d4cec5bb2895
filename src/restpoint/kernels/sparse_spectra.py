"""Upper bounds on the spectral norm of a tensor given by its nonzeros, sound in spite of rounding, in bounded work."""

from __future__ import annotations

import math

import numpy as np

from restpoint.array import gamma
from restpoint.kernels.spectra import LARGEST_UNFOLDED_SIDE, largest_eigenvalue

# Sorting for one unfolding costs about a second for so many nonzeros; together they may cost two.
LARGEST_SORTED = 20_000_000
# Products that a Gram matrix may cost: about a second.
LARGEST_GRAM_WORK = 200_000_000


def spectral_bound(
    values: np.ndarray, indices: tuple[np.ndarray, ...], sizes: tuple[int, ...]
) -> float:
    """An upper bound on the spectral norm (theory E31): the least one of several.

    ||A||_F; prod_m r_m^(1/d), r_m the largest sum of |a| over a slice of mode m (sum |a| prod |x_m| is at most
    prod_m (sum |a| |x_m|^d)^(1/d), and ||x||_d <= ||x||_2 for d >= 2); and of unfoldings.
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return 0.0
    exponent = math.frexp(largest)[1]
    entries = np.ldexp(values.astype(np.float64), -exponent)
    slack = 1.0 + gamma(values.size + 16 * len(sizes))
    absolute = np.abs(entries)
    norm = math.sqrt(float(entries @ entries)) * slack
    slices = [
        float(np.max(np.bincount(index, absolute, minlength=n)))
        for index, n in zip(indices, sizes, strict=True)
    ]
    # Powers of libraries in use are within a few units in the last place.
    bounds = [norm, math.prod(r ** (1.0 / len(sizes)) for r in slices) * slack]
    # Small sides first: their Gram matrices are the cheapest. A matrix has but one unfolding.
    modes = sorted(range(len(sizes)), key=lambda m: sizes[m])[: len(sizes) if len(sizes) > 2 else 1]
    work = 0
    for mode in modes:
        work += values.size
        if work > LARGEST_SORTED:
            break
        bounds.append(_unfolding_bound(entries, indices, sizes, mode, norm))
    try:
        return math.nextafter(math.ldexp(min(bounds), exponent), math.inf)
    except OverflowError:
        return math.inf


def _unfolding_bound(
    entries: np.ndarray,
    indices: tuple[np.ndarray, ...],
    sizes: tuple[int, ...],
    mode: int,
    norm: float,
) -> float:
    """The lesser of sqrt(||M||_1 ||M||_inf) and sqrt(lambda_max(M M')), M the unfolding of one mode."""
    import scipy.sparse

    rest = [m for m in range(len(sizes)) if m != mode]
    if math.prod(sizes[m] for m in rest) >= 2**63:
        return math.inf
    key = np.zeros(entries.size, np.int64)
    for m in rest:
        key *= sizes[m]
        key += indices[m]
    # Only columns that hold something: M would have more columns than the tensor has nonzeros.
    columns, column = np.unique(key, return_inverse=True)
    row = indices[mode].astype(np.int64)
    absolute, slack = np.abs(entries), 1.0 + gamma(entries.size + 16)
    one = float(np.max(np.bincount(column, absolute)))
    infinity = float(np.max(np.bincount(row, absolute)))
    bound = math.sqrt(one * infinity) * slack
    counts = np.bincount(column)
    if sizes[mode] <= LARGEST_UNFOLDED_SIDE and float(counts @ counts) <= LARGEST_GRAM_WORK:
        M = scipy.sparse.csr_array((entries, (row, column)), shape=(sizes[mode], columns.size))
        gram = (M @ M.T).toarray()
        # ||fl(MM') - MM'||_2 <= gamma_k || |M||M'| ||_F <= gamma_k ||M||_F^2, k the longest row.
        rounding = 1.001 * gamma(int(np.max(np.bincount(row))) + 1) * norm**2
        square = largest_eigenvalue(0.5 * gram + 0.5 * gram.T) + rounding
        bound = min(bound, math.sqrt(max(square, 0.0)) * (1.0 + gamma(4)))
    return bound
