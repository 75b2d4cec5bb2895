"""Frozen values whose parameters may differ from start to start.

A radius or a weight is a Python number, or an array with the batch shape; a centre or a bound is a number, an
array with the event shape, or ``(*batch, *event)``. Declaring which is which once (``parameter(event=...)``)
gives every set, penalty, oracle and problem its ``batch_shape``, ``take``, ``flatten`` and ``converted``.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any, Self

import numpy as np

from restpoint.array._batch import take
from restpoint.array._namespace import (
    Array,
    asarray,
    convert,
    is_array,
    namespace,
    own,
    to_host,
)
from restpoint.errors import ShapeError


def parameter(default: Any = dataclasses.MISSING, *, event: bool = False) -> Any:
    """A dataclass field that may carry the batch: one number per start, or one event per start."""
    return dataclasses.field(
        default=default, metadata={"parameter": "event" if event else "scalar"}
    )


def parameter_value(name: str, value: Any) -> Array:
    """What a user gives for a parameter: a Python float where one will do, else a finite floating array, copied.

    The user's own array may change afterwards; a set or a penalty never does.
    """
    array = asarray(name, value)
    if array.ndim == 0:
        return float(array)
    if 0 in array.shape:
        raise ShapeError(f"{name} has shape {tuple(array.shape)}: it is empty; give some numbers")
    return own(array)


class Parametric:
    """Base of frozen dataclasses with batch-shaped parameters; nested ones are handled with them.

    What is found out about the fields is kept: it is asked for at every door, and fields never change.
    """

    event_ndim: int = 1

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__eq__" not in cls.__dict__:
            # Before @dataclass, which would write an == that asks arrays for a truth value.
            cls.__eq__ = Parametric.__eq__  # type: ignore[method-assign]
            cls.__hash__ = Parametric.__hash__  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        """Of one type, with equal fields: arrays entry by entry."""
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _equal(mine, theirs) for mine, theirs in zip(_fields(self), _fields(other), strict=True)
        )

    def __hash__(self) -> int:
        return hash((type(self), *(None if is_array(v) else v for v in _fields(self))))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The event rank of every parameter field that holds an array."""
        ranks = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            kind = field.metadata.get("parameter")
            if kind and is_array(getattr(self, field.name)):
                ranks[field.name] = self.event_ndim if kind == "event" else 0
        return ranks

    @cached_property
    def _nested(self) -> dict[str, Any]:
        """The fields that are Parametric themselves, or tuples of such."""
        found = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Parametric) or (
                isinstance(value, tuple) and value and isinstance(value[0], Parametric)
            ):
                found[field.name] = value
        return found

    @cached_property
    def batch_shape(self) -> tuple[int, ...]:
        """The common batch shape of all parameters; () when nothing differs between starts."""
        shapes = []
        for name, rank in self._ranks.items():
            shape = getattr(self, name).shape
            shapes.append(shape[: max(0, len(shape) - rank)])
        for value in self._nested.values():
            parts = value if isinstance(value, tuple) else (value,)
            shapes.extend(part.batch_shape for part in parts)
        if not any(shapes):
            return ()
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError as error:
            raise ShapeError(
                f"{type(self).__name__}: parameters carry batch shapes {shapes} that do not broadcast"
            ) from error

    def take(self, index: Array) -> Self:
        """The same value for the starts in ``index`` only (of a value with one batch axis, or none)."""
        return self._rebuild(
            lambda value, rank: take(value, index) if value.ndim > rank else value,
            lambda part: part.take(index),
        )

    def at(self, i: int) -> Self:
        """The same value for start ``i`` alone, without a batch axis."""
        return self._rebuild(
            lambda value, rank: value[i, ...] if value.ndim > rank else value,
            lambda part: part.at(i),
        )

    def flatten(self, batch_shape: tuple[int, ...]) -> Self:
        """Parameters that carry a batch, spread over ``batch_shape`` and then over one axis."""
        count = math.prod(batch_shape)

        def spread(value: Array, rank: int) -> Array:
            if value.ndim <= rank:
                return value
            xp, event = namespace(value), value.shape[value.ndim - rank :]
            return xp.reshape(xp.broadcast_to(value, (*batch_shape, *event)), (count, *event))

        return self._rebuild(spread, lambda part: part.flatten(batch_shape))

    def converted(self, like: Array) -> Self:
        """Array parameters in the library, dtype and device of ``like``."""
        return self._rebuild(
            lambda value, _: convert(value, like), lambda part: part.converted(like)
        )

    def _rebuild(self, change: Any, recurse: Any) -> Self:
        changes = {n: change(getattr(self, n), rank) for n, rank in self._ranks.items()}
        for name, value in self._nested.items():
            changes[name] = (
                tuple(recurse(part) for part in value)
                if isinstance(value, tuple)
                else recurse(value)
            )
        changes = {n: v for n, v in changes.items() if v is not getattr(self, n)}
        return _replaced(self, changes) if changes else self


def _fields(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def _equal(one: Any, other: Any) -> bool:
    if is_array(one) or is_array(other):
        return is_array(one) and is_array(other) and np.array_equal(to_host(one), to_host(other))
    return one is other or bool(one == other)


def _replaced(value: Any, changes: dict[str, Any]) -> Any:
    """A copy with some fields changed; the values were validated when the original was built."""
    copy = object.__new__(type(value))
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    copy.__dict__.update(fields | changes)  # past the frozen door and without checking again
    return copy
