"""What every set must obey."""

from __future__ import annotations

import numpy as np

from restpoint.array import Array
from restpoint.errors import CapabilityError
from restpoint.sets import Set
from restpoint.testing import _door
from restpoint.testing._pieces import leading_shapes, on_host, p_norm, samples
from restpoint.testing._report import Inputs, at_most, equal, gradients, host, same_kind, unit

_POWERS = (1.2, 2.0, 3.0)


def check_set(
    set: Set,
    shape: tuple[int, ...],
    *,
    rng: np.random.Generator | int | None = None,
    like: Array | None = None,
) -> None:
    """Raise ``LawBroken`` if the set contradicts its own samples.

    Samples are feasible; ``support``, ``diameter``, ``reach`` and the other bounds hold for them; ``extreme``
    attains the support; ``project`` is the projection; batches equal their starts one by one.

    >>> from restpoint.sets import L2Ball
    >>> check_set(L2Ball(2.0), (4,))
    """
    _door.piece(set, Set, "a Set")
    shape = _door.shape_of(shape, set.event_ndim, type(set).__name__)
    rng, like = _door.stream(rng), _door.example(like)
    set.check_shape(shape)
    for batch in leading_shapes(set.batch_shape):
        points = [samples(set, rng, batch, shape) for _ in range(5)]
        _check_bounds(set, shape, points, like, rng)
        for g in gradients(rng, batch, shape):
            _check_linear(set, g, points, like)
            _check_projection(set, g, points, like)
    if len(set.batch_shape) <= 1:
        _check_take(set, shape, rng)


def _check_bounds(
    set: Set,
    shape: tuple[int, ...],
    points: list[np.ndarray],
    like: Array,
    rng: np.random.Generator,
) -> None:
    """Diameter, reach, norm bound and absolute support, against pairs of samples."""
    name, ndim, given = type(set).__name__, set.event_ndim, Inputs(like)
    moved = set.converted(like)
    slack = 32 * np.prod(shape) * unit(like)
    size = host(moved.norm_bound(shape))
    for x in points:
        at_most(moved.violation(given.give(x)), 0.0, slack * size, f"{name}: a sample is outside")
        at_most(p_norm(x, 2.0, ndim), size, slack * size, f"{name}.norm_bound is too small")
        weights = rng.random(x.shape)
        flat = np.sum(weights * np.abs(x), axis=tuple(range(-ndim, 0)))
        bound = host(moved.absolute_support(given.give(weights)))
        at_most(flat, bound, slack * bound, f"{name}.absolute_support is too small")
    for p in _POWERS:
        diameter, first = host(moved.diameter(p, shape)), given.give(points[0])
        reach = host(moved.reach(first, p))
        for x in points[1:]:
            apart = p_norm(x - points[0], p, ndim)
            tolerance = slack * (diameter + size)
            at_most(apart, diameter, tolerance, f"{name}.diameter({p}) is too small")
            at_most(apart, reach, tolerance, f"{name}.reach for p = {p} is too small")
    given.check_untouched(f"{name}: bounds")


def _check_linear(set: Set, g: np.ndarray, points: list[np.ndarray], like: Array) -> None:
    """The extreme point attains the support, and no sample exceeds it."""
    name, ndim, given = type(set).__name__, set.event_ndim, Inputs(like)
    axes, batch, shape = tuple(range(-ndim, 0)), g.shape[:-ndim], g.shape[-ndim:]
    moved, array = set.converted(like), given.give(g)
    slack = 32 * np.prod(shape) * unit(like)
    size = p_norm(g, 2.0, ndim) * host(moved.norm_bound(shape))
    support = moved.support(array)
    same_kind(support, like, batch, f"{name}.support")
    for x in points:
        at_most(np.sum(g * x, axis=axes), support, slack * size, f"{name}.support is too small")
    try:
        extreme = moved.extreme(array)
    except CapabilityError:
        return
    same_kind(extreme, like, g.shape, f"{name}.extreme")
    at_most(moved.violation(extreme), 0.0, slack * host(moved.norm_bound(shape)), f"{name}.extreme")
    attained = np.sum(host(array) * host(extreme), axis=axes)
    opposite = host(moved.support(given.give(-g)))
    equal(attained, -opposite, slack * size, f"{name}.extreme does not attain the support")
    given.check_untouched(f"{name}: linear oracle")


def _check_projection(set: Set, x: np.ndarray, points: list[np.ndarray], like: Array) -> None:
    """P(x) lies in S, is fixed by P, and (x - Px)'(y - Px) <= 0 for y in S."""
    name, ndim, given = type(set).__name__, set.event_ndim, Inputs(like)
    moved, shape = set.converted(like), x.shape[-ndim:]
    try:
        near = moved.project(given.give(x))
    except CapabilityError:
        return
    same_kind(near, like, x.shape, f"{name}.project")
    slack = 32.0 * float(np.prod(shape)) * unit(like)
    if not set.projects:  # an iteration: near the projection
        slack = max(slack, 1e-7)
    size = host(moved.norm_bound(shape)) + p_norm(x, 2.0, ndim)
    at_most(moved.violation(near), 0.0, slack * size, f"{name}.project leaves the set")
    axes, foot = tuple(range(-ndim, 0)), host(near)
    equal(
        p_norm(host(moved.project(near)) - foot, 2.0, ndim),
        0.0,
        slack * size,
        f"{name}.project moves a projected point",
    )
    for y in points:
        angle = np.sum((x - foot) * (y - foot), axis=axes)
        at_most(angle, 0.0, slack * size**2, f"{name}.project is not the nearest point")
    distance = p_norm(x - foot, 2.0, ndim)
    if not set.projects:  # such sets tell a lower bound of the distance
        at_most(moved.violation(given.give(x)), distance, slack * size, f"{name}.violation")
        return
    equal(moved.violation(given.give(x)), distance, slack * size, f"{name}.violation")
    given.check_untouched(f"{name}.project")


def _check_take(set: Set, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """``take`` commutes with every operation."""
    name, count = type(set).__name__, (*set.batch_shape, 4)[0]
    index = np.asarray([count - 1, 0])
    flat = on_host(set)
    g = rng.standard_normal((count, *shape))
    taken = flat.take(index)
    for operation in ("support", "absolute_support", "violation"):
        argument = np.abs(g)
        whole = host(getattr(flat, operation)(argument))[index]
        part = getattr(taken, operation)(argument[index])
        equal(whole, part, 1e-12 * (1.0 + np.abs(whole)), f"{name}.take and {operation}")
