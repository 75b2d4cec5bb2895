"""The ball with a separable sublinear penalty, for any power p: the multiplier of the ball."""

from __future__ import annotations

from typing import NamedTuple

from restpoint.array import Array, expand, inner, namespace, norm
from restpoint.errors import CapabilityError
from restpoint.kernels.scalar_equations import FLAT, SMOOTH, monotone_root, power_root
from restpoint.oracles.base import Answer, Oracle
from restpoint.oracles.multiplier import Slopes, curvature_scale, dual_bound, power_gradient
from restpoint.penalties import SeparableSublinear
from restpoint.sets import L2Ball


class _Pair(NamedTuple):
    """The data of one prox problem; numbers per start already carry the event axes."""

    g: Array
    z: Array
    k: Array  # weight p / 2
    p: float
    low: Array
    high: Array
    center: Array


class _Minimiser(NamedTuple):
    """Where the objective plus (mu/2) ||y - c||^2 is smallest."""

    point: Array
    step: Array  # point - z before it was rounded by the addition of z
    slopes: Array  # the subgradient of h there that the optimality condition names


def ball_prox(oracle: Oracle, g: Array, z: Array, weight: Array, p: float) -> Answer:
    """Minimise g'(y - z) + (weight/2) ||y - z||_p^p + h(y) over ||y - c||_2 <= r; weight >= 0."""
    ball, penalty = oracle.set, oracle.penalty
    if not (isinstance(ball, L2Ball) and isinstance(penalty, SeparableSublinear)):
        raise CapabilityError(f"{oracle.name} has no prox for p = {p}")
    xp, ndim, radius, center = namespace(g), ball.event_ndim, ball.radius, ball.center
    low, high = penalty.slopes()
    pair = _Pair(g, z, curvature_scale(weight, p, ndim), p, low, high, center)
    largest = _largest_multiplier(pair, radius, ndim)

    def probe(mu: Array) -> tuple[Array, Array]:
        """Newton's method for 1 / ||y(mu) - c||, which is nearly linear in mu."""
        lifted = expand(mu, ndim)
        there = _minimiser(pair, lifted)
        offset = there.point - center
        square = inner(offset, offset, ndim)
        share = xp.where(there.point == 0, 0.0 * g, _share(pair, lifted, there.step))
        decline = inner(offset * share, offset, ndim)  # -d log||y - c|| / d log mu, times square
        distance = xp.sqrt(square)
        usable = decline > 0
        ratio = (distance / radius - 1.0) * square / xp.where(usable, decline, 1.0)
        return distance <= radius, mu * (1.0 + xp.where(usable, ratio, -2.0))

    # Below this fraction the multiplier changes the optimal value by less than its rounding.
    smallest = largest * (float(xp.finfo(g.dtype).eps) / 64)
    effort = SMOOTH if p == 2.0 else FLAT
    mu = monotone_root(probe, smallest, largest, lambda a, b: xp.sqrt(a) * xp.sqrt(b), effort).root
    there = _minimiser(pair, expand(mu, ndim))
    point = _pulled_in(there.point, center, radius, ndim)
    value = oracle.prox_value(g, z, weight, p, point)
    lower = dual_bound(ball, z, Slopes(g, there.slopes, there.step), weight, p)
    return Answer(point, value, xp.minimum(lower, value))


def _largest_multiplier(pair: _Pair, radius: Array, ndim: int) -> Array:
    """||s|| / r with s a subgradient of the objective at the centre: by monotonicity ||y(mu) - c|| <= r there."""
    xp, c = namespace(pair.g), pair.center + 0 * pair.g
    smooth = pair.g + power_gradient(pair.k, c - pair.z, pair.p)
    free = xp.minimum(xp.maximum(-smooth, pair.low), pair.high)
    slopes = xp.where(c > 0, pair.high + 0 * c, xp.where(c < 0, pair.low + 0 * c, free))
    size = norm(smooth + slopes, ndim) / radius
    return xp.where(size > 0, size, 1.0)  # 0: the centre is optimal, for every multiplier


def _pulled_in(point: Array, center: Array, radius: Array, ndim: int) -> Array:
    """What the multiplier's last digits left outside, put back by the coordinates that are not 0."""
    xp, offset = namespace(point), point - center
    movable = xp.where(point == 0, 0.0 * point, offset)
    square = inner(movable, movable, ndim)
    excess = inner(offset, offset, ndim) - radius * radius
    outside = (excess > 0) & (square > excess)
    shrink = xp.sqrt(1.0 - xp.where(outside, excess / xp.where(outside, square, 1.0), 0.0 * excess))
    return xp.where(
        expand(outside, ndim) & (point != 0), center + offset * expand(shrink, ndim), point
    )


def _minimiser(pair: _Pair, mu: Array) -> _Minimiser:
    """Coordinate by coordinate: 0 where h can balance the rest, else the root on the side that its sign names."""
    xp = namespace(pair.g)
    zero = 0.0 * pair.g
    at_zero = pair.g + power_gradient(pair.k, -pair.z, pair.p) - mu * pair.center
    positive, negative = at_zero + pair.high < 0, at_zero + pair.low > 0
    balanced = xp.minimum(xp.maximum(-at_zero, pair.low), pair.high)
    slopes = xp.where(
        positive, pair.high + zero, xp.where(negative, pair.low + zero, balanced + zero)
    )
    pull = mu * (pair.center - pair.z) - pair.g - slopes
    step = xp.sign(pull) * power_root(xp.abs(pull), pair.k, mu, pair.p - 1.0)
    moved = pair.z + step
    point = xp.where(positive, xp.maximum(moved, 0.0), xp.minimum(moved, 0.0))
    still = ~(positive | negative)
    return _Minimiser(xp.where(still, zero, point), xp.where(still, zero - pair.z, step), slopes)


def _share(pair: _Pair, mu: Array, step: Array) -> Array:
    """mu / (mu + derivative of k phi_{p-1} at the step): how much of a coordinate answers to mu."""
    exponent = pair.p - 1.0
    if exponent == 1.0:
        return mu / (pair.k + mu)
    xp = namespace(step)
    straight = mu * xp.abs(step)
    total = straight + exponent * pair.k * xp.abs(step) ** exponent
    return straight / xp.where(total > 0, total, 1.0)
