"""Reductions over the event axes, and the lift of a number per start onto them."""

from __future__ import annotations

from restpoint.array._namespace import Array, namespace


def expand(scalar: Array, event_ndim: int = 1) -> Array:
    """Give a number per start ``event_ndim`` trailing axes; plain Python numbers pass through."""
    if isinstance(scalar, (int, float)):
        return scalar
    for _ in range(event_ndim):
        scalar = scalar[..., None]
    return scalar


def flatten_event(x: Array, event_ndim: int = 1) -> Array:
    """The event axes as one: shape ``(*batch, n)``."""
    if event_ndim == 1:
        return x
    return namespace(x).reshape(x, (*x.shape[: x.ndim - event_ndim], -1))


def inner(x: Array, y: Array, event_ndim: int = 1) -> Array:
    """x'y per start."""
    if event_ndim != 1:
        x, y = flatten_event(x, event_ndim), flatten_event(y, event_ndim)
    return namespace(x, y).vecdot(x, y)


def norm(x: Array, event_ndim: int = 1) -> Array:
    """The Euclidean norm per start."""
    return namespace(x).sqrt(inner(x, x, event_ndim))


def event_sum(x: Array, event_ndim: int = 1) -> Array:
    """The sum over the event axes."""
    return namespace(x).sum(flatten_event(x, event_ndim), axis=-1)


def event_max(x: Array, event_ndim: int = 1) -> Array:
    """The maximum over the event axes."""
    return namespace(x).max(flatten_event(x, event_ndim), axis=-1)


def first_largest(x: Array) -> Array:
    """A mask of the last axis: True at the first of its largest entries."""
    xp = namespace(x)
    first = xp.argmax(x, axis=-1)
    return xp.arange(x.shape[-1], device=getattr(x, "device", None)) == first[..., None]


def power_sum(x: Array, p: float, event_ndim: int = 1) -> Array:
    """sum_j |x_j|^p per start: ||x||_p^p."""
    if p == 2.0:
        return inner(x, x, event_ndim)
    return event_sum(namespace(x).abs(x) ** p, event_ndim)


def scaled_norm(x: Array, p: float = 2.0, event_ndim: int = 1) -> Array:
    """||x||_p per start, in units of the largest entry: no power overflows or underflows. Slower than ``norm``."""
    xp = namespace(x)
    unit = event_max(xp.abs(x), event_ndim)
    unit = xp.where((unit > 0) & (unit < xp.inf), unit, xp.ones_like(unit))
    return unit * power_sum(x / expand(unit, event_ndim), p, event_ndim) ** (1.0 / p)


def signed_power(x: Array, exponent: float) -> Array:
    """sgn(x) |x|^exponent, entry by entry."""
    if exponent == 1.0:
        return x
    xp = namespace(x)
    return xp.sign(x) * xp.abs(x) ** exponent
