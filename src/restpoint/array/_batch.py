"""Selecting among starts: gather survivors, freeze the finished.

Both walk through tuples and frozen dataclasses, so a whole state goes in one call. Arrays carry the batch
on their first axis; anything else (numbers, strings, None) is shared by all starts and passes through.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar, cast

import numpy as np

from restpoint.array._namespace import Array, is_array, namespace
from restpoint.array._reductions import expand

Tree = TypeVar("Tree")


def take(tree: Tree, index: Array) -> Tree:
    """Keep the starts in ``index`` (integers, repeats allowed)."""
    return cast(Tree, _take(tree, index))


def where(mask: Array, new: Tree, old: Tree) -> Tree:
    """Per start, ``new`` where ``mask`` holds and ``old`` elsewhere."""
    return cast(Tree, _where(mask, new, old))


def _take(tree: Any, index: Array) -> Any:
    if is_array(tree):
        return namespace(tree).take(tree, beside(index, tree), axis=0)
    if isinstance(tree, tuple):
        return _tuple_like(tree, [_take(part, index) for part in tree])
    if dataclasses.is_dataclass(tree):
        kind: Any = type(tree)
        return kind(*[_take(getattr(tree, name), index) for name in _names(kind)])
    return tree


def _where(mask: Array, new: Any, old: Any) -> Any:
    if old is None:  # nothing to keep: what only a step brings, on the first step
        return new
    if type(new) is np.ndarray:  # the frequent case, without the general machinery
        return np.where(expand(mask, new.ndim - 1), new, old)
    if is_array(new):
        return namespace(new).where(expand(beside(mask, new), new.ndim - 1), new, old)
    if isinstance(new, tuple):
        return _tuple_like(new, [_where(mask, a, b) for a, b in zip(new, old, strict=True)])
    if dataclasses.is_dataclass(new):
        kind: Any = type(new)
        return kind(*[_where(mask, getattr(new, n), getattr(old, n)) for n in _names(kind)])
    return new


def _tuple_like(tree: Any, parts: list[Any]) -> Any:
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def beside(selection: Array, array: Array) -> Array:
    """Indices or a mask in the library and on the device of ``array``; the loop keeps them in NumPy."""
    xp = namespace(array)
    if namespace(selection) is xp:
        return selection
    return xp.asarray(selection, device=array.device)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
