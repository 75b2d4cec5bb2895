"""What the user's data are: one form to contract, the observed entries, and the names of modes and entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.models.tensor_pca.entries import Entries, squared_norm
from restpoint.models.tensor_pca.standardising import standardised
from restpoint.smooth import CanonicalPolyadic, MomentTensor, Multilinear, SparseTensor
from restpoint.smooth.multilinear import MultilinearForm

# Sums of squares beyond are refused: products of two of them must still be numbers.
SMALLEST, LARGEST = 1e-140, 1e140

__all__ = ["Data", "dense_array", "refuse_scale", "standardised", "take_in"]


@dataclass(frozen=True)
class Data:
    """A tensor of order d >= 2 as it is fitted.

    form      -A(x_1, ..., x_d); where entries are missing, of the observed ones alone: it only gives starting points
    entries   the entries, where they can be looked at one by one (dense, sparse); None for moments
    observed  the array with NaN where an entry is missing; None where nothing is
    count     how many entries are observed
    norm2     the sum of their squares; None where the data do not tell
    names     of the modes
    labels    of the entries of each mode; None where there are none
    """

    form: MultilinearForm
    entries: Entries | None
    observed: np.ndarray | None
    count: int
    norm2: float | None
    names: tuple[str, ...]
    labels: tuple[np.ndarray | None, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of every mode."""
        return self.form.kernel.sizes

    @cached_property
    def polyadic(self) -> CanonicalPolyadic:
        """Least squares over the observed entries: made when it is first asked for, once."""
        if self.observed is not None:
            return CanonicalPolyadic(self.observed, [1.0])
        told = self.norm2 if self.entries is None else None
        return CanonicalPolyadic(self.form, [1.0], squared_norm=told)

    def mode(self, word: Any, argument: str) -> int:
        """The number of the mode that ``word`` names, or numbers."""
        return chosen_mode(word, argument, self.names)

    def modes(self, words: Any, argument: str) -> tuple[int, ...]:
        """The numbers of several modes; None stands for none, one word for itself."""
        if words is None:
            return ()
        listed = words if isinstance(words, (list, tuple)) else [words]
        return tuple(dict.fromkeys(self.mode(word, argument) for word in listed))

    def per_mode(self, value: Any, argument: str, default: Any = None) -> tuple[Any, ...]:
        """One value for each mode: from a dict by name or number, a list with one for each, or one for all."""
        return per_mode(value, argument, self.names, default)


def chosen_mode(word: Any, argument: str, names: Sequence[str]) -> int:
    """The number of the mode that ``word`` names, or numbers."""
    if isinstance(word, str):
        if word not in names:
            raise DataError(
                f"{argument} names the mode {word!r}; the modes are {', '.join(map(repr, names))}"
            )
        return names.index(word)
    d = len(names)
    if isinstance(word, bool) or not isinstance(word, (int, np.integer)) or not -d <= word < d:
        raise DataError(
            f"{argument} must be the name of a mode ({', '.join(map(repr, names))}) or its number "
            f"from 0 to {d - 1}, got {word!r}"
        )
    return int(word) % d


def per_mode(
    value: Any, argument: str, names: Sequence[str], default: Any = None
) -> tuple[Any, ...]:
    """One value for each mode: from a dict by name or number, a list with one for each, or one for all."""
    d = len(names)
    if isinstance(value, dict):
        found: dict[int, Any] = {}
        for word, own in value.items():
            mode = chosen_mode(word, argument, names)
            if mode in found:
                raise DataError(f"{argument} names the mode {names[mode]!r} twice")
            found[mode] = own
        return tuple(found.get(m, default) for m in range(d))
    if isinstance(value, np.ndarray) and value.ndim:
        value = list(value)
    if isinstance(value, (list, tuple)):
        if len(value) != d:
            raise ShapeError(
                f"{argument} has {len(value)} values; expected {d}, one for each mode, or a dict by mode name"
            )
        return tuple(value)
    return (value,) * d


def take_in(
    X: Any, *, mode_names: Any = None, center: Any = None, scale: Any = None
) -> tuple[Data, dict[str, Any]]:
    """The data of ``fit``, and the means and scales that were taken off."""
    X, found, labels = _unlabelled(X)
    if isinstance(X, (str, Path)):
        X = _mapped(X)
    if _is_form(X) or _is_sparse(X):
        if center is not None or scale is not None:
            raise DataError(
                "center and scale change the entries of a dense array; for a sparse tensor or a ready-made form leave "
                "both None (centring would fill a sparse tensor in)"
            )
        form = _form_of(X)
        names = _names(mode_names, found, len(form.kernel.sizes))
        return _from_form(form, names, _labels(labels, form.kernel.sizes)), {}
    array = dense_array(X)
    names = _names(mode_names, found, array.ndim)
    check = Data(Multilinear(np.zeros((1,) * array.ndim)), None, None, 0, 0.0, names, ())
    array, used = standardised(
        array, check.modes(center, "center"), check.modes(scale, "scale"), names
    )
    return _from_array(array, names, _labels(labels, array.shape)), used


def dense_array(X: Any, name: str = "X") -> np.ndarray:
    """Real numbers of order >= 2 with NaN where an entry is missing; float32 and float64 are taken as they are."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    if type(X).__module__ == "pyttb.tensor":
        X = X.double()
    array = np.asanyarray(X) if isinstance(X, np.memmap) else np.asarray(X)
    if array.dtype.kind == "c":
        raise DataError(
            f"Complex data not supported: {name} has dtype {array.dtype}; give real numbers"
        )
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except TypeError as error:
            raise CapabilityError(
                f"{name} holds something that is no number ({error}); expected real numbers"
            ) from error
        except ValueError as error:
            raise DataError(
                f"{name} is {described(X)} of dtype {array.dtype}; expected real numbers: {error}"
            ) from error
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    if array.ndim < 2:
        raise ShapeError(
            f"{name} has shape {array.shape}; expected an array of order 2 or more, one axis for each mode. "
            "Reshape your data either using array.reshape(-1, 1) if it has one feature, or "
            "array.reshape(1, -1) if it is one sample"
        )
    if 0 in array.shape:
        empty = "sample" if array.shape[0] == 0 else "feature"
        raise ShapeError(
            f"{name} has shape {array.shape}: 0 {empty}(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    return array


def _from_array(
    array: np.ndarray, names: tuple[str, ...], labels: tuple[np.ndarray | None, ...]
) -> Data:
    with np.errstate(all="ignore"):
        total = squared_norm(array)
    missing = math.isnan(total)
    if missing:
        holes = np.isnan(array)
        _refuse_empty_slices(~holes, names)
        count = int(array.size - np.count_nonzero(holes))
        filled = np.where(
            holes, array.dtype.type(0), array
        )  # starting points alone see these zeros
        total = squared_norm(filled)
    else:
        count, filled = array.size, array
    if not math.isfinite(total):
        if bool(np.isinf(np.max(np.abs(filled)))):
            raise DataError(
                "X contains infinity; expected finite numbers, or NaN where an entry is missing"
            )
        raise DataError(
            "X has entries so large that their squares overflow; divide X by its largest entry"
        )
    form = Multilinear(filled)
    observed = array if missing else None
    return Data(form, Entries.dense(filled), observed, count, total, names, labels)


def _from_form(
    form: MultilinearForm, names: tuple[str, ...], labels: tuple[np.ndarray | None, ...]
) -> Data:
    entries = Entries.of(form)
    norm2 = entries.norm2() if entries is not None else form_norm2(form)
    return Data(form, entries, None, math.prod(form.kernel.sizes), norm2, names, labels)


def form_norm2(form: MultilinearForm, most: int = 20_000) -> float | None:
    """||A||^2 through the fibres of the last mode, where there are few of them; None else."""
    *rest, _ = sizes = form.kernel.sizes
    count = math.prod(rest)
    if count > most:
        return None
    total = 0.0
    for begin in range(0, count, 256):
        index = np.unravel_index(np.arange(begin, min(begin + 256, count)), rest)
        xs = [np.eye(n)[i] for n, i in zip(rest, index, strict=True)]
        xs.append(np.zeros((len(index[0]), sizes[-1])))
        total += float(np.sum(form.kernel.partial(tuple(xs), len(rest)) ** 2))
    return total


def _refuse_empty_slices(seen: np.ndarray, names: tuple[str, ...]) -> None:
    for m, name in enumerate(names):
        others = tuple(k for k in range(seen.ndim) if k != m)
        empty = np.flatnonzero(~seen.any(axis=others))
        if len(empty):
            raise DataError(
                f"X has nothing observed in slice {empty[0]} of mode {name!r} (mode {m}; {len(empty)} such "
                "slice(s)): nothing can be said about it; drop it"
            )


def _is_form(X: Any) -> bool:
    return isinstance(X, (MultilinearForm,))


def _is_sparse(X: Any) -> bool:
    return (
        type(X).__module__.startswith("scipy.sparse")
        or (hasattr(X, "todense") and hasattr(X, "fill_value"))
        or (hasattr(X, "subs") and hasattr(X, "vals"))
    )


def _form_of(X: Any) -> MultilinearForm:
    """The form -A of what was given."""
    if not _is_form(X):
        return SparseTensor(X)
    if not isinstance(X, (Multilinear, SparseTensor, MomentTensor)):
        raise DataError(
            f"X is a {type(X).__name__}; expected an array, or a Multilinear, SparseTensor or MomentTensor"
        )
    if X.sign == -1.0:
        return X
    if not X.untied:
        raise DataError(
            "X is a form with tied modes and sign=1.0; SparseTensorPCA maximises A(x, ..., x): give sign=-1.0 "
            "for that, or the tensor -A for its minimum"
        )
    import copy

    twin = copy.copy(X)
    twin.sign = -1.0
    return twin


def _unlabelled(X: Any) -> tuple[Any, tuple[str, ...] | None, list[Any] | None]:
    """The bare data, and the names of modes and entries that pandas or xarray give them."""
    if hasattr(X, "data_vars") and hasattr(X, "coords"):
        raise DataError(
            f"X is a {type(X).__name__}, which holds several arrays; give one of them, as in "
            f"X[{next(iter(X.data_vars), 'name')!r}]"
        )
    if hasattr(X, "dims") and hasattr(X, "coords") and hasattr(X, "values"):  # xarray
        names = tuple(map(str, X.dims))
        labels = [np.asarray(X.coords[dim]) if dim in X.coords else None for dim in X.dims]
        return X.values, names, labels
    if hasattr(X, "columns") and hasattr(X, "index") and hasattr(X, "to_numpy"):  # pandas
        index, columns = (  # pandas numbers what has no names
            None if type(own).__name__ == "RangeIndex" else own.to_numpy()
            for own in (X.index, X.columns)
        )
        names = tuple(
            str(axis.name) if axis.name is not None else default
            for axis, default in ((X.index, "mode0"), (X.columns, "mode1"))
        )
        return _numbers(X), names, [index, columns]
    return X, None, None


def _numbers(frame: Any) -> np.ndarray:
    """The entries of a DataFrame; NaN for pandas' own NA."""
    values = frame.to_numpy()
    if values.dtype == object:
        try:
            return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return np.asarray(values)  # refused by name later
    return np.asarray(values)


def _mapped(path: str | Path) -> np.ndarray:
    from restpoint.smooth._checks import memory_mapped

    return memory_mapped("X", path)


def _names(given: Any, found: tuple[str, ...] | None, d: int) -> tuple[str, ...]:
    if given is None:
        return found or tuple(f"mode{m}" for m in range(d))
    listed = isinstance(given, (list, tuple, np.ndarray))
    if not listed or not all(isinstance(name, str) for name in given):
        raise DataError(f"mode_names must be a list of {d} names, got {given!r}")
    names = tuple(map(str, given))
    if len(names) != d or len(set(names)) != d:
        raise DataError(f"mode_names must be {d} different names, one for each mode, got {names}")
    return names


def _labels(found: list[Any] | None, sizes: Sequence[int]) -> tuple[np.ndarray | None, ...]:
    if found is None:
        return (None,) * len(sizes)
    return tuple(None if own is None else np.asarray(own) for own in found)


def refuse_scale(data: Data, after: str = "") -> None:
    """Refuse what is zero, and what is so small or large that products of squares leave the range of numbers."""
    if data.norm2 is None or SMALLEST < data.norm2 < LARGEST:
        return
    values = None if data.entries is None else (data.entries.tensor, data.entries.values)
    largest = max(
        (float(np.max(np.abs(v))) for v in values or () if v is not None and v.size), default=0.0
    )
    if largest == 0.0:
        raise DataError(f"X is zero in all observed entries{after}: there is no component to find")
    raise DataError(
        f"X has {largest:.1e} for its largest entry, so that products of its squares "
        f"{'overflow' if largest > 1.0 else 'underflow'}; divide X by that entry"
    )
