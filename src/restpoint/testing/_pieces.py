"""What the laws of sets, penalties and oracles share: starts, samples and competitors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from restpoint.errors import CapabilityError
from restpoint.sets import Set
from restpoint.testing._report import host


def leading_shapes(batch_shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """0, 1 and 2 leading axes; at least those of the parameters."""
    if batch_shape:
        return (batch_shape, (2, *batch_shape)) if len(batch_shape) == 1 else (batch_shape,)
    return ((), (3,), (2, 2))


def events(piece: Any, batch: tuple[int, ...], draw: Callable[[Any], np.ndarray]) -> np.ndarray:
    """One draw for every start, each from the piece as that start sees it."""
    count = math.prod(batch)
    flat = piece.flatten(batch)
    one_by_one = [np.asarray(draw(flat.at(i) if batch else piece)) for i in range(count)]
    return np.reshape(np.stack(one_by_one), (*batch, *one_by_one[0].shape))


def samples(
    set: Set, rng: np.random.Generator, batch: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """A random point of S for every start (NumPy float64)."""
    return events(set, batch, lambda piece: piece.sample(rng, shape))


def pool(
    set: Set,
    rng: np.random.Generator,
    batch: tuple[int, ...],
    shape: tuple[int, ...],
    known: np.ndarray,
) -> np.ndarray:
    """Points of S to compare answers with, stacked: what is known, samples, vertices, and mixtures."""
    points = [known, np.stack([samples(set, rng, batch, shape) for _ in range(6)])]
    with contextlib.suppress(
        CapabilityError
    ):  # of a declared pair, the answers in ``known`` must do
        points.append(host(set.extreme(rng.standard_normal((6, *batch, *shape)))))
    points = [np.concatenate(points)]
    count = points[0].shape[0]
    first, second = rng.integers(0, count, (2, 8))
    return np.concatenate([*points, 0.5 * (points[0][first] + points[0][second])])


def neighbours(set: Set, rng: np.random.Generator, point: np.ndarray) -> np.ndarray:
    """Points of S near a point: perturbed at three sizes and projected back (none without a projection)."""
    sizes = np.array([1e-1, 1e-3, 1e-6])[(..., *([None] * point.ndim))]
    spread = np.abs(point) + 1e-3 * np.max(np.abs(point))
    moved = point + sizes * rng.standard_normal((3, *point.shape)) * spread
    try:
        return host(set.project(moved))
    except CapabilityError:
        return np.empty((0, *point.shape))


def on_host(piece: Any) -> Any:
    """The same piece with float64 NumPy parameters, whatever library it was converted to."""
    return piece.converted(np.zeros(()))


def p_norm(x: np.ndarray, p: float, event_ndim: int) -> np.ndarray:
    """||x||_p per start."""
    axes = tuple(range(-event_ndim, 0))
    return np.asarray(np.sum(np.abs(x) ** p, axis=axes) ** (1.0 / p))
