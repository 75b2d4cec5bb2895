"""By what a problem is known again: the parameters and data of its pieces, arrays by their digests."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

import numpy as np

from restpoint.array import Array, Parametric, is_array, to_host
from restpoint.kernels import Kernel, choice, threads
from restpoint.problem import Problem
from restpoint.run.archive import installed
from restpoint.run.tree import field_names
from restpoint.smooth import Smooth

# Arrays are read so many bytes at a time: they may be larger than memory.
PIECE = 1 << 24
# Between dtype and shape of an array and its digest.
MARK = " #"
# How many differences a message names.
NAMED = 3


class Identity:
    """What a problem consists of: a word for every parameter, by its place, and the strides of unusual arrays.

    Functions are known by their names alone: whether they compute the same is for ``resume`` to find out.

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), rp.Block(rp.sets.L2Ball(2.0)))
    >>> Identity(problem).parts["blocks[0].set.radius"]
    '2.0'
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._parts: dict[str, str] = {}
        self._strides: dict[str, str] = {}
        self._digests: dict[int, str] = {}
        self._around: set[int] = (
            set()
        )  # pieces of what is being visited: a block's oracle holds its set again

    @property
    def parts(self) -> dict[str, str]:
        """The words, by place; data are read when this is first asked for."""
        if not self._parts:
            for name in ("smooth", "blocks"):
                self._visit(getattr(self._problem, name), name)
        return self._parts

    def _visit(self, value: Any, place: str) -> None:
        if is_array(value):
            self._parts[place] = self._array(value, place)
        elif isinstance(value, (tuple, list)):
            self._parts[place] = f"{type(value).__name__} of {len(value)}"
            names = field_names(value) or [f"[{i}]" for i in range(len(value))]
            for name, part in zip(names, value, strict=True):
                self._visit(part, f"{place}{name if name[0] == '[' else '.' + name}")
        elif isinstance(value, dict):
            self._parts[place] = f"dict of {len(value)}"
            for key, part in value.items():
                self._visit(part, f"{place}[{key!r}]")
        elif isinstance(value, partial):
            self._visit((value.func, value.args, value.keywords), place)
        elif value is None or isinstance(
            value, (bool, int, float, complex, str, bytes, np.generic, Enum, PurePath)
        ):
            self._parts[place] = repr(value)
        else:
            self._visit_object(value, place)

    def _visit_object(self, value: Any, place: str) -> None:
        """Pieces by what they hold; functions and other people's objects by their names."""
        named = value if isinstance(value, type) or callable(value) else type(value)
        self._parts[place] = getattr(named, "__qualname__", type(value).__qualname__)
        if isinstance(value, (Smooth, Kernel)):
            names = [name for name in vars(value) if name not in _computed(type(value))]
        else:
            names = list(field_names(value) or ()) if is_dataclass(value) else []
        held = {name: getattr(value, name) for name in names}
        pieces = {id(part) for part in held.values() if isinstance(part, Parametric)} - self._around
        for name, part in held.items():
            if not isinstance(part, Parametric) or id(part) in pieces:
                self._around |= pieces
                self._visit(part, f"{place}.{name}")
        self._around -= pieces

    def _array(self, array: Array, place: str) -> str:
        host = to_host(array)
        if host.dtype.hasobject:
            return f"objects {host.shape}"
        if id(array) not in self._digests:
            self._digests[id(array)] = digest(host)
        if host.size and not host.flags.c_contiguous:
            self._strides[place] = str(host.strides)
        return f"{host.dtype} {host.shape}{MARK}{self._digests[id(array)]}"

    def circumstances(self) -> dict[str, str]:
        """What else the bits of a run depend on, as far as it can be told."""
        strides = self._strides if self.parts else {}
        return {
            "restpoint": installed(),
            "NumPy": np.__version__,
            "machine": platform.machine(),
            "threads": str(threads.count()),
            choice.VARIABLE: choice.named() or "",
            "strides": "; ".join(f"{place} {steps}" for place, steps in strides.items()),
        }


def differences(now: dict[str, str], then: dict[str, str]) -> list[str]:
    """Where two identities differ, in words; what one of them lacks shows in what holds it."""
    found = []
    for place, old in then.items():
        new = now.get(place, old)
        if new == old:
            continue
        (kind, *_), (old_kind, *_) = new.split(MARK), old.split(MARK)
        found.append(
            f"{place} has other entries"
            if kind == old_kind
            else f"{place} is {kind}, but was {old_kind}"
        )
    return found


def listed(words: list[str]) -> str:
    """The first few, and how many more there are."""
    more = len(words) - NAMED
    return "; ".join(words[:NAMED]) + (f"; and {more} more" if more > 0 else "")


def digest(array: np.ndarray) -> str:
    """Of the entries in the order of indices, whatever their order in memory."""
    found = hashlib.blake2b(digest_size=16)
    for piece in _pieces(array):
        found.update(piece)
    return found.hexdigest()


def _pieces(array: np.ndarray) -> Iterator[Any]:
    """The bytes of an array, some at a time."""
    if array.nbytes <= PIECE or array.ndim == 0:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return
    rows = max(1, PIECE * len(array) // array.nbytes)
    for begin in range(0, len(array), rows):
        part = array[begin : begin + rows]
        yield from _pieces(part) if rows > 1 else _pieces(part[0])


def _computed(kind: type) -> set[str]:
    """The attributes of a class that follow from others, and may not be there yet."""
    found: set[str] = set()
    for ancestor in kind.__mro__:
        found.update(vars(ancestor).get("_computed", ()))
        found.update(n for n, v in vars(ancestor).items() if isinstance(v, cached_property))
    return found
