"""Which array library an array belongs to, and the roads between libraries."""

from __future__ import annotations

import importlib
import math
import sys
from types import ModuleType
from typing import Any

import numpy as np

from restpoint.array._memory import require_memory
from restpoint.errors import CapabilityError, DataError, described

# Bytes from which on a conversion looks first whether there is room for it.
LARGE = 2**28

# Arrays of every library; the shapes are what the docstrings and the tests speak about.
Array = Any


def _compat() -> ModuleType:
    """array_api_compat, once an array that is not NumPy's turns up: NumPy 2 speaks the standard itself."""
    import array_api_compat

    return array_api_compat


def is_array(value: object) -> bool:
    """Whether ``value`` is an array of a library that speaks the array API; NumPy scalars are numbers."""
    kind = type(value)
    if kind not in _KNOWN:
        _KNOWN[kind] = not issubclass(kind, (type, int, float, np.generic)) and bool(
            _compat().is_array_api_obj(value)
        )
    return _KNOWN[kind]


# Whether values of a type are arrays: asking the general machinery every time would cost a microsecond.
_KNOWN: dict[type, bool] = {
    np.ndarray: True,
    **dict.fromkeys((int, float, str, tuple, list, dict, type(None)), False),
}


def namespace(*arrays: Array) -> Any:
    """The array API namespace shared by ``arrays``; Python numbers have no say."""
    for (
        array
    ) in arrays:  # NumPy is decided without the general machinery, which costs a microsecond
        if not isinstance(array, (np.ndarray, np.generic, int, float)):
            break
    else:
        return np
    present = [array for array in arrays if not isinstance(array, (int, float))]
    try:
        found = _compat().array_namespace(*present)
    except TypeError as error:
        kinds = sorted({type(array).__module__.split(".")[0] for array in present})
        raise CapabilityError(
            f"arrays of different libraries cannot be mixed: got {', '.join(kinds)}; "
            "convert them to one library first"
        ) from error
    return np if found.__name__ == "array_api_compat.numpy" else found


def to_host(array: Array) -> np.ndarray:
    """The array as NumPy, wherever it lives."""
    if isinstance(array, np.ndarray):
        return array
    if "torch" in sys.modules and _compat().is_torch_array(array):
        return array.detach().cpu().numpy()
    if "cupy" in sys.modules and _compat().is_cupy_array(array):
        return array.get()
    return np.asarray(array)


def convert(value: Array, like: Array) -> Array:
    """``value`` (array or number) as an array of the library, dtype and device of ``like``."""
    xp = namespace(like)
    if is_array(value) and namespace(value) is not xp:
        value = to_host(value)
    if is_array(value) and namespace(value) is xp:
        return xp.astype(value, like.dtype, copy=False)
    return xp.asarray(value, dtype=like.dtype, device=_device(like))


# The namespaces whose arrays can be written to files, and made again from what was read.
LIBRARIES = (
    "numpy",
    "array_api_compat.torch",
    "array_api_compat.cupy",
    "array_api_strict",
    "jax.numpy",
)


def library(array: Array) -> str:
    """The name of the library of an array, for files."""
    name = str(namespace(array).__name__)
    if name not in LIBRARIES:
        raise CapabilityError(
            f"arrays of {name} cannot be written to files; convert them to NumPy first"
        )
    return name


def from_host(array: np.ndarray, name: str, like: Array | None = None) -> Array:
    """The array in the library of that name, on the device of ``like`` if that is of this library."""
    if name not in LIBRARIES:
        raise DataError(f"arrays of a library {name!r} cannot be made here")
    try:
        xp = importlib.import_module(name)
    except ImportError as error:
        raise CapabilityError(
            f"the file holds arrays of {name}, which is not installed here"
        ) from error
    same = like is not None and namespace(like) is xp
    made = xp.asarray(array, device=_device(like)) if same else xp.asarray(array)
    if to_host(made).dtype != array.dtype:  # JAX without x64
        raise CapabilityError(
            f"{name} has no {array.dtype} here, which the file holds; allow it, as with jax_enable_x64"
        )
    return made


def own(array: Array) -> Array:
    """A copy that shares no memory with the array of somebody else."""
    return namespace(array).asarray(array, copy=True)


def asarray(name: str, value: Any, *, min_ndim: int = 0) -> Array:
    """Take a user's array at the door: real, floating, finite; anything else is refused by name.

    Integers become float64, float32 and float64 stay what they are, and nothing is copied that need not be.
    """
    value = read(name, value)
    if isinstance(value, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(value)):
        raise DataError(f"{name} has masked entries; fill them first, as in {name}.filled(0.0)")
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # a matrix multiplies otherwise
    xp = namespace(value)
    if xp is np and value.dtype.kind not in "biuf":
        hint = _CONVERSIONS.get(value.dtype.kind, "np.asarray({name}, dtype=float)")
        raise DataError(
            f"{name} has dtype {value.dtype}; expected real numbers (float64 or float32): "
            f"write {hint.format(name=name)} if that is what it holds"
        )
    if xp.isdtype(value.dtype, ("bool", "integral")):
        if 8 * math.prod(value.shape) >= LARGE:
            require_memory(8 * math.prod(value.shape), f"{name}, converted from {value.dtype},")
        value = xp.astype(value, xp.float64)
    elif not xp.isdtype(value.dtype, "real floating"):
        raise DataError(
            f"{name} has dtype {value.dtype}; expected real numbers (float64 or float32): take its real part, "
            "if that is what is meant"
        )
    elif value.dtype not in (xp.float64, xp.float32):
        order = "" if getattr(value.dtype, "isnative", True) else ", of another byte order"
        raise DataError(
            f"{name} has dtype {value.dtype}{order}; convert it to float64 or float32 first, "
            f"as in {name}.astype(float)"
        )
    if value.ndim < min_ndim:
        raise DataError(f"{name} has {value.ndim} axes; expected at least {min_ndim}")
    if not _is_finite(value, xp):
        raise DataError(f"{name} contains NaN or infinite entries; remove or impute them first")
    return value


# How real numbers are got out of arrays of other kinds.
_CONVERSIONS = {"c": "{name}.real"}


def read(name: str, value: Any) -> Array:
    """Arrays as they are; numbers, lists, and what NumPy makes of anything else. Nothing sparse, and no class."""
    if is_array(value) and not hasattr(value, "todense"):
        return value
    if isinstance(value, type):
        raise DataError(f"{name} must be an array or a number, got {described(value)}")
    for way in ("toarray", "todense"):
        if hasattr(value, way):
            raise DataError(
                f"{name} is sparse ({type(value).__name__}); expected a dense array: pass {name}.{way}()"
            )
    if hasattr(value, "double") and isinstance(getattr(value, "data", None), np.ndarray):
        return value.data  # a dense tensor of pyttb
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} cannot be read as an array: {error}; give numbers, all rows of one length"
        ) from error


def _is_finite(value: Array, xp: Any) -> bool:
    if xp is not np:
        return bool(xp.all(xp.isfinite(value)))
    if value.size == 0:
        return True
    # Both pass NaN on, and neither makes an array as large as the data.
    return bool(np.isfinite(np.min(value)) and np.isfinite(np.max(value)))


def _device(array: Array) -> Any:
    return array.device if isinstance(array, np.ndarray) else _compat().device(array)
