"""Functions given by the user's own code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, convert, is_array, namespace, to_host, truth, unit_roundoff
from restpoint.errors import CapabilityError, DataError, EvaluationError, ShapeError
from restpoint.smooth import _checks
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class Function(Smooth):
    r"""f from user code: ``value(x_1, ..., x_d)`` and ``gradient(x_1, ..., x_d)``, written for one point.

    ``gradient`` returns one array, or a tuple with one array per block. The code sees read-only NumPy arrays and is
    called once per start; with ``batched=True`` it is called once for all, with leading axes, in the caller's own
    library. ``shapes`` is an integer or a tuple (one block), or a list of such (several blocks).

    Facts are what is declared. ``constant``: a number c is a joint and a blockwise constant in the p-norm,
    1 < p <= 2 (from ||grad f(x) - grad f(y)||_q <= M ||x - y||_p^(p-1) take c = 2M/p, theory E4); a tuple holds
    blockwise constants (theory E27). ``concave=True`` needs none (theory E2, E3), and it alone allows p > 2 and
    ``differentiable=False`` (``gradient`` then returns a supergradient, theory A10). Undeclared is unknown.

    ``terms=N`` with ``terms_gradient(x_1, ..., x_d, index)``, the sum of the gradients of the summands in
    ``index``, makes a finite sum that can be sampled. No rounding bound is proved for user code.

    >>> f = Function(lambda x: float(x @ x), lambda x: 2 * x, shapes=2, constant=2.0)
    >>> f.value((np.array([[3.0, 4.0], [1.0, 0.0]]),))
    array([25.,  1.])
    """

    def __init__(  # noqa: PLR0913 - the door of user code: all that can be declared
        self,
        value: Callable[..., Any],
        gradient: Callable[..., Any],
        *,
        shapes: Any,
        constant: float | tuple[float, ...] | None = None,
        p: float = 2.0,
        concave: bool = False,
        convex: bool = False,
        lower_bound: float | None = None,
        differentiable: bool = True,
        batched: bool = False,
        terms: int | None = None,
        terms_gradient: Callable[..., Any] | None = None,
    ) -> None:
        if (terms is None) != (terms_gradient is None):
            raise DataError("terms and terms_gradient come together: give both or neither")
        codes: dict[str, Any] = {"value": value, "gradient": gradient}
        if terms is not None:
            codes["terms_gradient"] = terms_gradient
        for name, code in codes.items():
            if not callable(code):
                raise DataError(f"{name} is {code!r}; expected a function of the blocks")
        concave, convex = truth("concave", concave), truth("convex", convex)
        self.shapes = _checks.event_shapes(shapes)
        self._value, self._gradient, self._terms_gradient = value, gradient, terms_gradient
        self._p = _checks.exponent(p, concave=concave)
        self._constant = _constants(constant, len(self.shapes))
        self._joint = constant is not None and not isinstance(constant, tuple | list)
        self._concave, self._convex = concave, convex
        self._batched = truth("batched", batched)
        self._lower_bound = (
            None
            if lower_bound is None
            else _checks.number("lower_bound", lower_bound, hint="None if it is unknown")
        )
        self.differentiable = truth("differentiable", differentiable)
        if not self.differentiable and not concave:
            raise DataError(
                "differentiable=False needs concave=True: only supergradients of concave functions keep the "
                "guarantees (theory A10); smooth other functions first"
            )
        if terms is not None and not _checks.is_size(terms):
            raise DataError(f"terms is {terms!r}; expected the number of summands, an integer >= 1")
        self._terms = None if terms is None else int(terms)

    def value(self, xs: Blocks) -> Array:
        if self._batched:
            return self._checked_value(_call(self._value, _protected(xs)), xs)
        points, batch = self._points(xs)
        values = np.empty(len(points[0]), dtype=points[0].dtype)
        for k, point in enumerate(zip(*points, strict=True)):
            values[k] = self._checked_number(_call(self._value, point), point[0])
        return _back(values.reshape(batch), xs[0])

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        return self.value(xs), self.gradient(xs)

    def gradient(self, xs: Blocks) -> Blocks:
        return self._evaluated(self._gradient, xs)

    def facts(self, sets: Sequence[Set]) -> Facts:
        del sets
        joint = blockwise = None
        if self._concave:
            joint = blockwise = Curvature((0.0,) * len(self.shapes), min(self._p, 2.0))
        elif self._constant is not None:
            blockwise = Curvature(self._constant, self._p)
            if self._joint or len(self.shapes) == 1:
                joint = blockwise
            elif self._convex:
                joint = Curvature(_joint_if_convex(self._constant), self._p)
        return Facts(
            joint=joint,
            blockwise=blockwise,
            concave=self._concave,
            block_concave=self._concave,
            convex=self._convex,
            lower_bound=self._lower_bound,
            differentiable=self.differentiable,
        )

    @property
    def terms(self) -> int | None:
        return self._terms

    def batch_gradient(self, xs: Blocks, index: Array) -> Blocks:
        if self._terms_gradient is None or self._terms is None:
            raise CapabilityError(
                "this Function is not a finite sum, so MiniBatch cannot sample it; "
                "give terms and terms_gradient, or use Exact()"
            )
        sums = self._evaluated(self._terms_gradient, xs, index)
        factor = self._terms / index.shape[-1]
        return tuple(factor * g for g in sums)

    def _evaluated(
        self, code: Callable[..., Any], xs: Blocks, index: Array | None = None
    ) -> Blocks:
        """The gradients that ``code`` returns, for all starts, checked."""
        if self._batched:
            arguments = _protected(xs if index is None else (*xs, index))
            return self._checked_gradient(code, _call(code, arguments), xs)
        points, batch = self._points(xs)
        if index is not None:
            chosen = np.broadcast_to(to_host(index), (*batch, index.shape[-1]))
            points = (*points, _read_only(chosen.reshape(-1, index.shape[-1])))
        answers = tuple(np.empty(x.shape, dtype=x.dtype) for x in points[: len(xs)])
        for k, point in enumerate(zip(*points, strict=True)):
            parts = self._checked_gradient(code, _call(code, point), point[: len(xs)])
            for answer, part in zip(answers, parts, strict=True):
                answer[k] = part
        return tuple(_back(a.reshape(x.shape), x) for a, x in zip(answers, xs, strict=True))

    def _points(self, xs: Blocks) -> tuple[tuple[np.ndarray, ...], tuple[int, ...]]:
        """Read-only NumPy blocks with one leading axis, and the batch shape that it stands for."""
        batch = tuple(xs[0].shape[: xs[0].ndim - len(self.shapes[0])])
        return tuple(
            _read_only(to_host(x).reshape(math.prod(batch), *shape))
            for x, shape in zip(xs, self.shapes, strict=True)
        ), batch

    def _checked_number(self, answer: Any, like: Array) -> Any:
        number = _as_real(self._value, "value", answer, like)
        if number.ndim != 0:
            raise EvaluationError(
                f"{_name(self._value)} returned a value of shape {number.shape}; expected one number"
            )
        return number

    def _checked_value(self, answer: Any, xs: Blocks) -> Array:
        batch = tuple(xs[0].shape[: xs[0].ndim - len(self.shapes[0])])
        number = answer if is_array(answer) else _as_real(self._value, "value", answer, xs[0])
        if tuple(number.shape) != batch:
            raise EvaluationError(
                f"{_name(self._value)} returned values of shape {tuple(number.shape)}; expected {batch}, one "
                "number per start (batched=True); drop batched=True if it is written for one point"
            )
        _check_real(self._value, "values", number, xs[0])
        return convert(number, xs[0])

    def _checked_gradient(self, code: Callable[..., Any], answer: Any, xs: Blocks) -> Blocks:
        # A list is a tuple of blocks where there are several, and the entries of the block where there is one.
        several = isinstance(answer, tuple) or (isinstance(answer, list) and len(xs) > 1)
        parts = tuple(answer) if several else (answer,)
        if len(parts) != len(xs):
            raise EvaluationError(
                f"{_name(code)} returned {len(parts)} gradient(s); expected a tuple of {len(xs)}, one per block"
            )
        checked = []
        for i, (part, x) in enumerate(zip(parts, xs, strict=True)):
            what = "gradient" if len(xs) == 1 else f"gradient of block {i}"
            array = part if is_array(part) else _as_real(code, what, part, x)
            _check_real(code, what, array, x)
            if tuple(array.shape) != tuple(x.shape):
                raise EvaluationError(
                    f"{_name(code)} returned a {what} of shape {tuple(array.shape)}; "
                    f"expected {tuple(x.shape)}, the shape of the block"
                )
            checked.append(convert(array, x))
        return tuple(checked)


def _joint_if_convex(constants: tuple[float, ...]) -> tuple[float, ...]:
    r"""d times the blockwise constants, which is a joint constant of a convex f on the very sets, for every p.

    (d^(p-1), theory E27, needs the blockwise inequality d times as far; on the sets it is false for p < 2.)

    Proof. Let v_i = y_i - x_i and b_i = (c_i/2) ||v_i||_p^p; z_A has blocks y_i for i in A, else x_i, so it lies
    in the sets, and s_i(A) = grad_i f(z_A)'v_i. The inequality from z_A to z_{A+i} and back gives
    s_i(A+i) - s_i(A) <= 2 b_i; convexity between z_{A+i} and z_{A+j} gives s_i(A+j) + s_j(A+i) <= s_i(A+i) + s_j(A+j).
    Hence (*): [s_i(A+j) - s_i(A)] + [s_j(A+i) - s_j(A)] <= 2 (b_i + b_j).
    Move the blocks one by one in a random order i_1, ..., i_d, with A_k = {i_1, ..., i_k}. Then
    f(y) - f(x) - sum_i s_i(A_0) <= sum_k [b_{i_k} + s_{i_k}(A_{k-1}) - s_{i_k}(A_0)], where the last difference is the
    sum over l < k of s_{i_k}(A_l) - s_{i_k}(A_{l-1}). Exchanging i_k and i_l leaves A_{l-1} as it is, so by (*) each of
    these is in the mean at most b_{i_k} + b_{i_l}, and all together at most (d - 1) sum_i b_i.
    """
    factor = float(len(constants))
    return tuple(math.nextafter(factor * c, math.inf) if c > 0 else c for c in constants)


def _constants(constant: Any, blocks: int) -> tuple[float, ...] | None:
    """One constant >= 0 per block."""
    if constant is None:
        return None
    given = tuple(constant) if isinstance(constant, tuple | list) else (constant,) * blocks
    if len(given) != blocks:
        raise ShapeError(
            f"constant has {len(given)} entries; expected one number, or a tuple of {blocks}, one per block"
        )
    numbers = tuple(_checks.number("constant", c, hint="one per block") for c in given)
    if min(numbers) < 0:
        raise DataError(
            f"constant must be >= 0, got {min(numbers)}; a function that needs none is concave: say concave=True"
        )
    return numbers


def _call(code: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return code(*arguments)
    except Exception as error:
        hint = (
            " (the arrays it is given are read-only: write to copies)"
            if isinstance(error, ValueError) and "read-only" in str(error)
            else ""
        )
        raise EvaluationError(
            f"{_name(code)} raised {type(error).__name__}: {error}{hint}"
        ) from error


def _name(code: Callable[..., Any]) -> str:
    return str(getattr(code, "__qualname__", None) or repr(code))


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _protected(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(_read_only(a) if isinstance(a, np.ndarray) else a for a in arrays)


def _as_real(code: Callable[..., Any], what: str, answer: Any, like: Array) -> np.ndarray:
    try:
        array = np.asarray(to_host(answer) if is_array(answer) else answer)
    except (TypeError, ValueError) as error:
        raise EvaluationError(
            f"{_name(code)} returned a {what} that is no array: {error}"
        ) from error
    _check_real(code, what, array, like)
    return array


def _check_real(code: Callable[..., Any], what: str, array: Array, like: Array) -> None:
    """Real numbers of all the digits that the blocks have: certificates count on them."""
    if isinstance(array, np.ndarray | np.generic):
        real, floating = array.dtype.kind in "biuf", array.dtype.kind == "f"
    else:
        xp = namespace(array)
        floating = xp.isdtype(array.dtype, "real floating")
        real = floating or xp.isdtype(array.dtype, ("bool", "integral"))
    if not real:
        raise EvaluationError(
            f"{_name(code)} returned a {what} of type {array.dtype}; expected real numbers"
        )
    if floating and unit_roundoff(array) > unit_roundoff(like):
        raise EvaluationError(
            f"{_name(code)} returned a {what} of type {array.dtype} for blocks of type {like.dtype}, whose last digits "
            "certificates count on; compute in the type that the code is given (certificates ask in float64)"
        )


def _back(array: np.ndarray, like: Array) -> Array:
    return array if isinstance(like, np.ndarray) and array.ndim else convert(array, like)
