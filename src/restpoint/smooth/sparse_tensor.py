"""Multilinear forms of tensors that are given by their nonzeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from restpoint.array import asarray, is_array, namespace
from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.kernels.sparse import Sparse
from restpoint.smooth import _checks
from restpoint.smooth.multilinear import MultilinearForm


class SparseTensor(MultilinearForm):
    r"""f(x) = sign sum over nonzeros a of a x_1[i_1] ... x_d[i_d]: a tensor of order d >= 2 by its nonzeros.

    ``tensor`` is a sparse.COO, a SciPy sparse array (n-D coo_array, or any 2-D format), a pyttb sptensor, or the
    indices, a matrix (d, nnz) or (nnz, d) or a tuple of d vectors, with ``values`` and ``shape``. Indices count from
    0, duplicates are summed, zeros dropped. A gradient costs one pass over the nonzeros, in the wider precision of
    values and vectors; NumPy only. Facts: see ``MultilinearForm``.

    >>> import numpy as np
    >>> f = SparseTensor(([0, 1, 1], [0, 0, 2]), [3.0, 1.0, 2.0], (2, 3), sign=1.0)
    >>> float(f.value((np.array([1.0, 10.0]), np.array([1.0, 5.0, 2.0]))))
    53.0
    >>> f.nnz, f.density
    (3, 0.5)
    """

    kernel: Sparse

    def __init__(
        self,
        tensor: Any,
        values: Any = None,
        shape: Sequence[int] | None = None,
        *,
        sign: float = -1.0,
        tied: Sequence[int] | None = None,
    ) -> None:
        names = "tensor", "values"
        if values is None and shape is None:
            tensor, values, shape, names = _parts(tensor)
        elif values is None or shape is None:
            raise ShapeError(
                f"{'values' if values is None else 'shape'} is missing: indices need both values and shape, as in "
                "SparseTensor(indices, values, shape); a sparse array goes alone, as in SparseTensor(array)"
            )
        sizes = _sizes(shape)
        entries = _values(names[1], values)
        coordinates = _coordinates(names[0], tensor, sizes, entries.size)
        super().__init__(Sparse(entries, coordinates, sizes), sign, tied)

    @property
    def nnz(self) -> int:
        """The number of nonzeros."""
        return self.kernel.values.size

    @property
    def density(self) -> float:
        """nnz over the number of entries."""
        return self.nnz / math.prod(self.kernel.sizes)


def _parts(tensor: Any) -> tuple[Any, Any, Any, tuple[str, str]]:
    """Indices, values, shape, and what the owner calls the first two, of a sparse array of any library."""
    fill = getattr(tensor, "fill_value", 0)
    if np.ndim(fill) == 0 and fill != 0:
        raise DataError(
            f"tensor has fill_value {fill}; expected 0: what is not stored must be zero"
        )
    if all(hasattr(tensor, name) for name in ("subs", "vals", "shape")):  # pyttb
        return tensor.subs, np.ravel(tensor.vals), tensor.shape, ("tensor.subs", "tensor.vals")
    if all(
        hasattr(tensor, name) for name in ("coords", "data", "shape")
    ):  # sparse.COO, SciPy's COO
        coords = tensor.coords
        return tuple(coords), tensor.data, tensor.shape, ("tensor.coords", "tensor.data")
    for convert in ("tocoo", "to_coo"):
        if hasattr(tensor, convert):
            return _parts(getattr(tensor, convert)())
    raise DataError(
        f"tensor is {described(tensor)}; expected a sparse array (sparse.COO, SciPy, pyttb), or indices with values "
        "and shape; a dense tensor goes to Multilinear"
    )


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    if not all(_checks.is_size(size) for size in sizes):
        raise ShapeError(f"shape is {shape!r}; expected positive integers, one for each mode")
    if len(sizes) < 2:
        raise ShapeError(
            f"shape is {shape!r}; a multilinear form needs at least 2 modes (for a vector use Function or Quadratic)"
        )
    return tuple(int(size) for size in sizes)


def _values(name: str, values: Any) -> np.ndarray:
    data = _in_numpy(name, asarray(name, values))
    if data.ndim != 1:
        raise ShapeError(
            f"{name} has shape {data.shape}; expected one axis, one number for each nonzero"
        )
    return data


def _coordinates(
    name: str, given: Any, sizes: tuple[int, ...], count: int
) -> tuple[np.ndarray, ...]:
    """One vector of indices for each mode, all within range."""
    modes = len(sizes)
    if isinstance(given, tuple):
        if len(given) != modes:
            raise ShapeError(
                f"{name} has {len(given)} vectors of indices; expected {modes}, because shape is {sizes}"
            )
        rows = [_indices(f"{name}[{m}]", vector) for m, vector in enumerate(given)]
        for m, row in enumerate(rows):
            if row.shape != (count,):
                raise ShapeError(
                    f"{name}[{m}] has shape {row.shape}; expected ({count},), because there are {count} values"
                )
    else:
        matrix = _indices(name, given)
        if matrix.size == count == 0:  # libraries differ in the shape of no indices
            matrix = np.zeros((modes, 0), np.int64)
        fits = matrix.shape == (modes, count), matrix.shape == (count, modes)
        if all(fits) and count > 1:
            raise ShapeError(
                f"{name} has shape {matrix.shape}: is an index a row or a column? "
                "Give a tuple with one vector of indices for each mode"
            )
        if not any(fits):
            raise ShapeError(
                f"{name} has shape {matrix.shape}; expected ({modes}, {count}) or ({count}, {modes}), because shape "
                f"is {sizes} and there are {count} values"
            )
        rows = list(matrix if fits[0] else matrix.T)
    for m, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        _within(name, m, row, size)
    return tuple(row.astype(np.int64, copy=False) for row in rows)


def _indices(name: str, given: Any) -> np.ndarray:
    try:
        array = _in_numpy(name, given if is_array(given) else np.asarray(given))
    except ValueError as error:
        raise DataError(f"{name} cannot be read as an array of indices: {error}") from error
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(
            f"{name} has dtype {array.dtype}; expected integers: convert it with astype(int)"
        )
    return array


def _within(name: str, mode: int, row: np.ndarray, size: int) -> None:
    if row.size and (row.min() < 0 or row.max() >= size):
        wrong = row.min() if row.min() < 0 else row.max()
        place = int(np.flatnonzero(row == wrong)[0])
        raise DataError(
            f"{name} has index {wrong} in mode {mode} (entry {place}); expected 0 to {size - 1}: indices count "
            "from 0, and shape must be large enough"
        )


def _in_numpy(name: str, array: Any) -> np.ndarray:
    if namespace(array) is not np:
        raise CapabilityError(
            f"{name} is an array of {namespace(array).__name__}; sparse tensors are held in NumPy: convert it first"
        )
    return np.asarray(array)
