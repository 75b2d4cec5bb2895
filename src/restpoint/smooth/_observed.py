"""A tensor, which of its entries are observed, and their sum of squares: what a least squares fit needs to know."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from restpoint.array import (
    UNIT_ROUNDOFF,
    Array,
    gamma,
    namespace,
    read,
    real_number,
    require_memory,
    to_host,
)
from restpoint.errors import DataError, ShapeError
from restpoint.kernels import Kernel, dense
from restpoint.kernels.factored import Factored
from restpoint.kernels.layout import Layout
from restpoint.kernels.sparse import Sparse
from restpoint.smooth import _checks
from restpoint.smooth._rounding import SLACK
from restpoint.smooth.multilinear import MultilinearForm

# Squares are summed in rows of so many entries, and the rows exactly.
ROW = 1024
# Entries squared at a time.
PIECE = ROW * 1024
# Below this share of observed entries they are kept by their indices.
FEW = 0.05


class Norm(NamedTuple):
    """A sum of squares, and a bound on its rounding error."""

    value: float
    error: float


class Observed(NamedTuple):
    """P A and the 0/1 tensor P as kernels, and ||P A||^2: P is 1 where A is observed, 0 elsewhere."""

    data: Kernel
    mask: Kernel
    squared_norm: Norm

    def converted(self, like: Array) -> Observed:
        """The same in the library, dtype and device of ``like``; itself where nothing changes."""
        data, mask = self.data.converted(like), self.mask.converted(like)
        same = data is self.data and mask is self.mask
        return self if same else Observed(data, mask, self.squared_norm)


def observed(A: Any, squared_norm: Any = None) -> Observed:
    """Read what a user gives as ``A``."""
    if isinstance(A, MultilinearForm):
        A = A.kernel
    if isinstance(A, Kernel):
        return Observed(A, _everything(A), _given_norm(A, squared_norm))
    if squared_norm is not None:
        raise DataError(
            "squared_norm is computed from an array A; give it only with a kernel or a multilinear form"
        )
    if isinstance(A, (str, Path)):
        A = _checks.memory_mapped("A", A)
    return _of_array(A)


def _of_array(A: Any) -> Observed:
    masked = np.ma.getmaskarray(A) if isinstance(A, np.ma.MaskedArray) else None
    A = np.ma.getdata(A) if masked is not None else _read(A)
    known = _known(A, masked)
    if known is None:
        kernel = dense(_checks.tensor("A", A, min_order=2))
        return Observed(kernel, _everything(kernel), _norm_of(kernel))
    xp = namespace(A)
    share = float(xp.mean(xp.astype(known, xp.float64)))
    if share == 0.0:
        raise DataError(
            "A has no observed entry: all are NaN or masked; give a tensor with data in it"
        )
    if xp is np and share < FEW:
        return _of_few(A, known)
    require_memory(
        16 * math.prod(A.shape),
        "A with missing entries, split into data and mask",
    )
    filled = _checks.tensor("A", xp.where(known, A, xp.zeros_like(A)), min_order=2)
    data = dense(filled)
    kind = xp.float32 if xp is np else filled.dtype
    return Observed(data, dense(xp.astype(known, kind)), _norm_of(data))


def _read(A: Any) -> Array:
    """An array of any library, NaN and all."""
    if any(hasattr(A, word) for word in ("toarray", "todense", "subs")):
        raise DataError(
            f"A is sparse ({type(A).__name__}); give SparseTensor(A) if what is not stored is zero, a dense array with "
            "NaN if it is missing"
        )
    return read("A", A)


def _of_few(A: np.ndarray, known: np.ndarray) -> Observed:
    """Both by the indices of the observed entries."""
    places = np.nonzero(known)
    values = _checks.tensor("A", A[places])
    if A.ndim < 2:
        raise ShapeError(f"A has shape {A.shape}; expected at least 2 axes")
    data = Sparse(values, places, A.shape)
    mask = Sparse(np.ones(len(values), np.float32), places, A.shape)
    return Observed(data, mask, _norm_of(data))


def _known(A: Array, masked: np.ndarray | None) -> Array | None:
    """True where an entry is observed; None where all are."""
    xp = namespace(A)
    if xp is np and A.dtype.kind not in "biuf":
        _checks.tensor("A", A)  # refuses it by name
    known = None if masked is None or not masked.any() else ~masked
    floating = A.dtype.kind == "f" if xp is np else xp.isdtype(A.dtype, "real floating")
    if not floating or 0 in A.shape:
        return known
    with np.errstate(invalid="ignore"):
        some = bool(xp.isnan(xp.min(A)))
    if not some:
        return known
    numbers = ~xp.isnan(A)
    return numbers if known is None else known & numbers


def _everything(kernel: Kernel) -> Kernel:
    """The tensor of ones, which is rank one."""
    xp, like = namespace(kernel.like), kernel.like
    kind = like.dtype

    def ones(*shape: int) -> Array:
        return xp.ones(shape, dtype=kind, device=like.device)

    return Factored(ones(1), tuple(ones(n, 1) for n in kernel.sizes))


def _given_norm(kernel: Kernel, squared_norm: Any) -> Norm:
    if squared_norm is None:
        return _norm_of(kernel)
    expected = "a finite number >= 0, the sum of the squares of all entries"
    value = real_number("squared_norm", squared_norm, expected)
    if value < 0.0:
        raise DataError(f"squared_norm must be {expected}, got {value}")
    return Norm(value, 0.0)


def _norm_of(kernel: Kernel) -> Norm:
    if isinstance(kernel, Factored):
        return _norm_of_factors(kernel)
    values = getattr(kernel, "values", None) if isinstance(kernel, Sparse) else None
    values = getattr(kernel, "tensor", None) if values is None else values
    if values is None:
        raise DataError(
            f"squared_norm is missing: a {kernel.name} tensor is never formed, so the sum of the squares of its "
            "entries has to be given"
        )
    rows = [
        float(s) for piece in _pieces(to_host(values)) for s in np.einsum("ij,ij->i", piece, piece)
    ]
    total = math.fsum(rows)
    return Norm(total, SLACK * gamma(min(ROW, math.prod(values.shape)) + 2) * total)


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    """All entries in float64, in rows of at most ``ROW``."""
    for panel in Layout(np.atleast_2d(array)).panels():
        flat = panel.matrix.reshape(-1)
        for begin in range(0, flat.size, PIECE):
            piece = np.asarray(flat[begin : begin + PIECE], dtype=np.float64)
            whole = piece.size - piece.size % ROW
            yield piece[:whole].reshape(-1, ROW)
            yield piece[whole:].reshape(1, -1)


def _norm_of_factors(kernel: Factored) -> Norm:
    """sum_rs w_r w_s prod_m (a_mr'a_ms)."""
    weights, factors, exponent = kernel.balanced()
    value, size = (
        float(np.sum(reduce(np.multiply, [F.T @ F for F in parts], np.outer(w, w))))
        for w, parts in ((weights, factors), (np.abs(weights), [np.abs(F) for F in factors]))
    )
    depth = sum(kernel.sizes) + 2 * len(factors) + weights.size**2
    error = SLACK * gamma(depth) * size + UNIT_ROUNDOFF * size
    return Norm(_scaled(max(value, 0.0), 2 * exponent), _scaled(error, 2 * exponent))


def _scaled(number: float, exponent: int) -> float:
    """number 2^exponent, infinite where it overflows."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.inf
