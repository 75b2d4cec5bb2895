"""Calls into the user's functions: one start at a time if need be, with every answer checked."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import Array, asarray, is_array, namespace, real_number, to_host
from restpoint.errors import DataError, EvaluationError, RestpointError


@dataclass(frozen=True)
class UserFunction:
    """A function that the user wrote for one event array, or for a batch of them if ``batched``."""

    name: str
    function: Callable[..., Any]
    event_ndim: int = 1
    batched: bool = False

    def events(
        self, *arrays: Array, numbers: tuple[Any, ...] = (), options: tuple[Any, ...] = ()
    ) -> Array:
        """Answers with the shape and dtype of the first array."""
        return self._call(arrays, numbers, options, self._checked_event)

    def numbers(self, *arrays: Array) -> Array:
        """Answers with one number per start."""
        return self._call(arrays, (), (), self._checked_number)

    def event(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """A random event of this shape in NumPy float64: any container of finite real numbers will do."""
        answer = self._answer(rng, shape)
        try:
            drawn = asarray("the answer", answer)
        except RestpointError as error:
            raise EvaluationError(
                f"your function {self.name} returned no point: {error}"
            ) from error
        if tuple(drawn.shape) != tuple(shape):
            raise EvaluationError(
                f"your function {self.name} returned {_describe(drawn)}; expected shape {tuple(shape)}"
            )
        return np.asarray(to_host(drawn), dtype=np.float64)

    def number(self, option: float) -> float:
        """A number >= 0 that depends on a number alone; infinite where no finite one is known."""
        answer = self._answer(option)
        try:
            return nonnegative("the answer", answer, finite=False)
        except DataError as error:
            raise EvaluationError(
                f"your function {self.name} has no answer for {option}: {error}"
            ) from error

    def _call(
        self,
        arrays: tuple[Array, ...],
        numbers: tuple[Any, ...],
        options: tuple[Any, ...],
        checked: Callable[[Any, Array], Array],
    ) -> Array:
        first, xp = arrays[0], namespace(*arrays)
        batch = first.shape[: first.ndim - self.event_ndim]
        if self.batched or not batch:
            return checked(self._answer(*map(_read_only, arrays), *numbers, *options), first)
        event = first.shape[first.ndim - self.event_ndim :]
        count = math.prod(batch)
        rows = [xp.reshape(xp.broadcast_to(a, first.shape), (count, *event)) for a in arrays]
        scalars = [
            xp.reshape(xp.broadcast_to(n, batch), (count,)) if is_array(n) else n for n in numbers
        ]
        answers = []
        for start in range(count):
            inputs = [_read_only(row[start, ...]) for row in rows]
            weights = [n[start] if is_array(n) else n for n in scalars]
            answers.append(checked(self._answer(*inputs, *weights, *options), rows[0][start, ...]))
        if not answers:
            return checked(xp.zeros_like(first), first)
        stacked = xp.stack(answers)
        return xp.reshape(stacked, (*batch, *stacked.shape[1:]))

    def _answer(self, *inputs: Any) -> Any:
        try:
            return self.function(*inputs)
        except RestpointError:
            raise
        except Exception as error:
            raise EvaluationError(
                f"your function {self.name} raised {type(error).__name__}: {error}"
            ) from error

    def _checked_event(self, answer: Any, like: Array) -> Array:
        same_library = is_array(answer) and namespace(answer) is namespace(like)
        if same_library and (answer.shape, answer.dtype) == (like.shape, like.dtype):
            return answer
        raise EvaluationError(
            f"your function {self.name} returned {_describe(answer)}; expected "
            f"{_describe(like)}, as it was given"
        )

    def _checked_number(self, answer: Any, like: Array) -> Array:
        xp, batch = namespace(like), like.shape[: like.ndim - self.event_ndim]
        single = isinstance(
            answer, (numbers.Real, np.bool_)
        )  # Python's and NumPy's, True and False among them
        shape = tuple(getattr(answer, "shape", ()))
        if not single and not (is_array(answer) and shape == batch and _is_real(answer)):
            raise EvaluationError(
                f"your function {self.name} returned {_describe(answer)}; expected one real number "
                f"per start, that is shape {batch}"
            )
        if single:
            answer = xp.asarray(float(answer), dtype=like.dtype)
        return xp.broadcast_to(xp.astype(answer, like.dtype, copy=False), batch)


def nonnegative(name: str, value: Any, *, finite: bool = True) -> float:
    """A number >= 0, as diameters are."""
    expected = "a finite number >= 0 or a function of p"
    number = real_number(name, value, expected, finite=finite)
    if number < 0.0:
        raise DataError(f"{name} must be {expected}, got {number}")
    return number


def _read_only(array: Array) -> Array:
    """A view that cannot be written to, where the library has such views."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


def _is_real(array: Array) -> bool:
    return bool(namespace(array).isdtype(array.dtype, ("real floating", "integral")))


def _describe(value: Any) -> str:
    if is_array(value):
        library = type(value).__module__.split(".")[0]
        return f"a {library} array of shape {tuple(value.shape)} and dtype {value.dtype}"
    return f"a {type(value).__name__}"
