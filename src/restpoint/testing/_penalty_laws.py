"""What every penalty must obey."""

from __future__ import annotations

import numpy as np

from restpoint.array import Array
from restpoint.errors import CapabilityError
from restpoint.penalties import Penalty, SeparableSublinear
from restpoint.testing import _door
from restpoint.testing._pieces import leading_shapes, on_host
from restpoint.testing._report import (
    Inputs,
    LawBroken,
    at_most,
    equal,
    gradients,
    host,
    same_kind,
    unit,
)


def check_penalty(
    penalty: Penalty,
    shape: tuple[int, ...],
    *,
    rng: np.random.Generator | int | None = None,
    like: Array | None = None,
) -> None:
    """Raise ``LawBroken`` if the values contradict convexity, the declared facts, or the prox.

    >>> from restpoint.penalties import L1
    >>> check_penalty(L1(0.5), (3,))
    """
    _door.piece(penalty, Penalty, "a Penalty")
    shape = _door.shape_of(shape, penalty.event_ndim, type(penalty).__name__)
    penalty.check_shape(shape)
    rng, like = _door.stream(rng), _door.example(like)
    for batch in leading_shapes(penalty.batch_shape):
        for x in gradients(rng, batch, shape):
            y = rng.standard_normal(x.shape)
            a, b = map(np.abs, (x, y)) if penalty.nonnegative else (x, y)
            _check_values(penalty, a, b, like)
            _check_facts(penalty, a, b)
            for step in (1.0, 0.3, *((0.5 + rng.random(batch),) if batch else ())):
                _check_prox(penalty, x, step, like, rng)
    if len(penalty.batch_shape) <= 1:
        _check_take(penalty, shape, rng)


def _check_values(penalty: Penalty, x: np.ndarray, y: np.ndarray, like: Array) -> None:
    name, given, moved = type(penalty).__name__, Inputs(like), penalty.converted(like)
    ndim = getattr(penalty, "event_ndim", 1)
    value = moved.value(given.give(x))
    same_kind(value, like, x.shape[: x.ndim - ndim], f"{name}.value")
    size = host(moved.magnitude(given.give(x))) + host(moved.magnitude(given.give(y)))
    slack = 32 * x.size * unit(like) * size
    at_most(np.abs(host(value)), size, slack, f"{name}.magnitude is smaller than the value")
    at_most(
        penalty.least(tuple(x.shape[x.ndim - ndim :])),
        value,
        slack,
        f"{name}.least (lower_bound) is above a value",
    )
    between = moved.value(given.give(0.5 * (x + y)))
    mean = 0.5 * (host(value) + host(moved.value(given.give(y))))
    at_most(between, mean, slack, f"{name} is not convex")
    given.check_untouched(f"{name}.value")


def _check_facts(penalty: Penalty, x: np.ndarray, y: np.ndarray) -> None:
    name, moved = type(penalty).__name__, on_host(penalty)
    ndim = getattr(penalty, "event_ndim", 1)
    value = host(moved.value(x))
    slack = 1e-13 * x.size * (host(moved.magnitude(x)) + host(moved.magnitude(y)))
    if penalty.sublinear:
        equal(moved.value(3.0 * x), 3.0 * value, 3 * slack, f"{name} is not positively homogeneous")
        total = value + host(moved.value(y))
        at_most(moved.value(x + y), total, slack, f"{name} is not subadditive")
    if penalty.separable:
        flat = np.reshape(x, (*x.shape[: x.ndim - ndim], -1))
        at_zero, parts = host(moved.value(0.0 * x)), 0.0
        for j in range(flat.shape[-1]):
            alone = np.zeros_like(flat)
            alone[..., j] = flat[..., j]
            parts = parts + host(moved.value(np.reshape(alone, x.shape))) - at_zero
        equal(parts + at_zero, value, slack, f"{name} is not separable")
    if isinstance(penalty, SeparableSublinear):
        if not (penalty.sublinear and penalty.separable):
            raise LawBroken(f"{name} is SeparableSublinear but does not declare both facts")
        low, high = moved.slopes()
        terms = np.maximum(low * x, high * x)
        equal(np.sum(terms, axis=tuple(range(-ndim, 0))), value, slack, f"{name}.slopes")


def _check_prox(
    penalty: Penalty, v: np.ndarray, step: float | np.ndarray, like: Array, rng: np.random.Generator
) -> None:
    """Three points: step h(y) + ||y-v||^2/2 + ||x-y||^2/2 <= step h(x) + ||x-v||^2/2 for all x."""
    name, given, moved = type(penalty).__name__, Inputs(like), penalty.converted(like)
    exact, axes = on_host(penalty), tuple(range(-getattr(penalty, "event_ndim", 1), 0))
    try:
        y = moved.prox(
            given.give(v), step if isinstance(step, float) else given.give(np.asarray(step))
        )
    except CapabilityError:
        return
    same_kind(y, like, v.shape, f"{name}.prox")
    given.check_untouched(f"{name}.prox")
    point = host(y)
    others = (0.0 * v, v, rng.standard_normal(v.shape), point * (1 + 1e-3), point + 1e-4)
    for x in map(np.abs, others) if penalty.nonnegative else others:
        have = step * host(exact.value(point)) + 0.5 * np.sum((point - v) ** 2, axis=axes)
        near = 0.5 * np.sum((x - point) ** 2, axis=axes)
        other = step * host(exact.value(x)) + 0.5 * np.sum((x - v) ** 2, axis=axes)
        size = np.abs(have) + near + np.abs(other) + np.max(v**2, initial=0.0)
        slack = 64 * v.size * unit(like) * size
        at_most(have + near, other, slack, f"{name}.prox is not the minimiser")


def _check_take(penalty: Penalty, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    name, count, flat = type(penalty).__name__, (*penalty.batch_shape, 4)[0], on_host(penalty)
    index, x = np.asarray([count - 1, 0]), rng.standard_normal((count, *shape))
    x = np.abs(x) if penalty.nonnegative else x
    taken, whole = flat.take(index), host(flat.value(x))[index]
    equal(taken.value(x[index]), whole, 1e-13 * (1 + np.abs(whole)), f"{name}.take and value")
