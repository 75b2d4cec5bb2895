"""Trees of arrays as words and a table of arrays, and back.

A tree is made of numbers, strings, arrays of any library, tuples, lists, dictionaries, members of enumerations, and
objects that are known by their fields: dataclasses, named tuples, plain classes. Arrays come back with their bits,
dtype and strides, because the order of sums follows the strides; arrays that were one object are one object again.
Reading builds objects of known classes from their fields, and runs no code that a file names.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

from restpoint.array import Array, from_host, is_array, library, to_host
from restpoint.errors import CapabilityError, EvaluationError, StorageError

Words = Any  # what JSON can hold
PLAIN = (type(None), bool, int, str)
LARGEST = 2**63 - 1


class Writer:
    """Puts trees into words; ``arrays`` are the arrays that the words refer to."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        # By id; the array itself is kept too, lest its id be given away.
        self._known: dict[int, tuple[Array, Words]] = {}

    def words(self, tree: Any, place: str) -> Words:
        """The tree in words; ``place`` is what messages call it."""
        kind = type(tree)
        if kind in PLAIN or (kind is float and math.isfinite(tree)):
            return tree
        if kind is float:
            return {"is": "float", "of": repr(tree)}
        if isinstance(tree, np.generic):
            return {"is": "number", "of": self._added(np.asarray(tree))}
        if is_array(tree):
            return self._array(tree, place)
        return self._several(tree, place) if kind in (list, tuple, dict) else self._one(tree, place)

    def _several(self, tree: Any, place: str) -> Words:
        if isinstance(tree, dict):
            return {"is": "dict", "of": self._fields(tree, place)}
        if isinstance(tree, tuple):
            return {"is": "tuple", "of": self._each(tree, place)}
        return self._list(tree, place)

    def _one(self, value: Any, place: str) -> Words:
        kind = type(value)
        if isinstance(value, Exception):
            return {"is": "error", "of": [kind.__name__, str(value)]}
        if isinstance(value, Enum):
            return {"is": "member", "class": _name(kind, place), "of": value.name}
        names = field_names(value)
        if names is None:
            raise CapabilityError(
                f"{place} is a {kind.__name__}, which cannot be written to a file: only numbers, arrays, tuples and "
                "objects made of them can"
            )
        fields = self._fields({name: getattr(value, name) for name in names}, place)
        return {"is": "object", "class": _name(kind, place), "of": fields}

    def _each(self, items: Iterable[Any], place: str) -> list[Words]:
        return [self.words(item, f"{place}[{i}]") for i, item in enumerate(items)]

    def _fields(self, fields: dict[str, Any], place: str) -> dict[str, Words]:
        return {name: self.words(value, f"{place}.{name}") for name, value in fields.items()}

    def _array(self, array: Array, place: str) -> Words:
        if id(array) not in self._known:
            self._known[id(array)] = array, self._new_array(array, place)
        return self._known[id(array)][1]

    def _new_array(self, array: Array, place: str) -> Words:
        host = to_host(array)
        if host.dtype == object:
            return self._members(host, place)
        found: dict[str, Words] = {"is": "array", "of": self._added(host)}
        if library(array) != "numpy":
            found["library"] = library(array)
        if host.size and host.strides != _usual_strides(host):
            found["strides"] = list(host.strides)
        return found

    def _members(self, array: np.ndarray, place: str) -> Words:
        """An array of members of one enumeration, by their names."""
        kinds = {type(member) for member in array.flat}
        if len(kinds) != 1 or not issubclass(kind := kinds.pop(), Enum):
            raise CapabilityError(
                f"{place} is an array of objects, which cannot be written to a file"
            )
        names = np.array([member.name for member in array.flat], dtype=str).reshape(array.shape)
        return {"is": "members", "class": _name(kind, place), "of": self._added(names)}

    def _list(self, items: list[Any], place: str) -> Words:
        """Lists of like things become arrays: a long one must not be many members of a file."""
        kinds = {type(item) for item in items}
        if kinds == {float} or (kinds == {int} and all(abs(item) <= LARGEST for item in items)):
            return {"is": "numbers", "of": self._added(np.array(items))}
        if kinds == {np.ndarray} and len({(item.dtype.str, item.shape) for item in items}) == 1:
            return {"is": "stack", "of": self._added(np.stack(items))}
        if kinds == {tuple} and len({len(item) for item in items}) == 1:
            columns = [list(column) for column in zip(*items, strict=True)]
            return {"is": "rows", "of": self._each(columns, f"{place}[:]")}
        return self._each(items, place)

    def _added(self, array: np.ndarray) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name


class Reader:
    """Builds trees from words and the arrays that they refer to.

    Classes are those of this package, and of the modules in ``modules``, as far as they are loaded. ``like`` shows the
    device for arrays of its library.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        *,
        modules: Iterable[str] = (),
        like: Array | None = None,
    ) -> None:
        self._arrays, self._modules, self._like = arrays, frozenset(modules), like
        self._built: dict[str, Array] = {}
        self._ways: dict[str, Callable[[Words], Any]] = {
            "float": lambda words: float(words["of"]),
            "number": lambda words: arrays[words["of"]][()],
            "numbers": lambda words: arrays[words["of"]].tolist(),
            "array": self._array,
            "stack": self._stack,
            "rows": self._rows,
            "tuple": self._tuple,
            "dict": self._dict,
            "error": _error,
            "member": self._member,
            "members": self._members,
            "object": self._object,
        }

    def tree(self, words: Words) -> Any:
        """The tree that was put into ``words``."""
        if isinstance(words, list):
            return [self.tree(part) for part in words]
        if not isinstance(words, dict):
            return words
        if words["is"] not in self._ways:
            raise StorageError(f"the file speaks of {words['is']!r}, which is not known here")
        return self._ways[words["is"]](words)

    def _tuple(self, words: Words) -> tuple[Any, ...]:
        return tuple(self.tree(part) for part in words["of"])

    def _dict(self, words: Words) -> dict[str, Any]:
        return {name: self.tree(part) for name, part in words["of"].items()}

    def _rows(self, words: Words) -> list[tuple[Any, ...]]:
        return list(zip(*self._tuple(words), strict=True))

    def _stack(self, words: Words) -> list[np.ndarray]:
        stacked = self._arrays[words["of"]]
        return [stacked[i, ...] for i in range(len(stacked))]

    def _member(self, words: Words) -> Any:
        return self._class(words["class"])[words["of"]]

    def _members(self, words: Words) -> np.ndarray:
        kind, names = self._class(words["class"]), self._arrays[words["of"]]
        members = np.empty(names.size, dtype=object)
        members[:] = [kind[name] for name in names.reshape(-1).tolist()]
        return members.reshape(names.shape)

    def _object(self, words: Words) -> Any:
        return _built(self._class(words["class"]), self._dict(words))

    def _array(self, words: Words) -> Array:
        name = words["of"]
        if name not in self._built:
            host = self._arrays[name]
            if "strides" in words:
                host = _laid_out(host, tuple(words["strides"]))
            if "library" in words:
                host = from_host(host, words["library"], self._like)
            self._built[name] = host
        return self._built[name]

    def _class(self, name: str) -> Any:
        module, _, path = name.partition(":")
        known = module.split(".")[0] == __name__.split(".")[0] or module in self._modules
        found: Any = sys.modules.get(module) if known else None
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or found.__module__ != module:
            raise StorageError(
                f"the file holds a {path} of the module {module}, which is not known here; if it belongs to a method "
                "of yours, pass that method: resume(path, problem, method=...)"
            )
        return found


def field_names(value: Any) -> tuple[str, ...] | None:
    """What an object is known by: the names of its fields; None where it is something else than its fields."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    if isinstance(value, (type, ModuleType, tuple, list, dict, set)) or callable(value):
        return None
    if hasattr(value, "__dict__"):
        return tuple(vars(value))
    return tuple(kind.__slots__) if isinstance(getattr(kind, "__slots__", None), tuple) else None


def _error(words: Words) -> Exception:
    name, said = words["of"]
    return EvaluationError(said if name == "EvaluationError" else f"{name}: {said}")


def _built(kind: Any, fields: dict[str, Any]) -> Any:
    """An object with these fields, as it was when it was written: its class is not asked again."""
    if issubclass(kind, tuple):
        _check_names(kind, kind._fields, fields)
        return kind._make(fields[name] for name in kind._fields)
    if dataclasses.is_dataclass(kind):
        _check_names(kind, [field.name for field in dataclasses.fields(kind)], fields)
    value = object.__new__(kind)
    for name, part in fields.items():
        object.__setattr__(value, name, part)
    return value


def _check_names(kind: Any, expected: Iterable[str], found: Iterable[str]) -> None:
    if set(expected) != set(found):
        raise StorageError(
            f"the file holds a {kind.__name__} of {', '.join(sorted(found))}; here it has "
            f"{', '.join(sorted(expected))}: read it with the version that wrote it"
        )


def _name(kind: type, place: str) -> str:
    if "<locals>" in kind.__qualname__:
        raise CapabilityError(
            f"{place} is a {kind.__name__}, a class made inside a function, which no other process can find: define it "
            "in a module"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def _usual_strides(array: np.ndarray) -> tuple[int, ...]:
    """Those of an array that comes from a file: also along axes of length 1, which matrix products look at."""
    steps = [array.itemsize]
    for n in array.shape[:0:-1]:
        steps.append(steps[-1] * n)
    return tuple(steps[: array.ndim][::-1])


def _laid_out(array: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The same entries with these strides: sums run over memory in its order."""
    ends = [(n - 1) * step for n, step in zip(array.shape, strides, strict=True)]
    below = -sum(end for end in ends if end < 0)
    extent = below + sum(end for end in ends if end > 0) + array.itemsize
    view = np.ndarray(array.shape, array.dtype, np.zeros(extent, np.uint8), below, strides)
    view[...] = array
    return view
