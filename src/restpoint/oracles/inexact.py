"""The generic prox, for pairs that have a linear oracle and nothing else."""

from __future__ import annotations

import numpy as np

from restpoint.array import Array, convert, is_array, namespace, to_host
from restpoint.kernels.corrective import Linear, corrective
from restpoint.oracles.base import Answer, Oracle


def corrective_prox(oracle: Oracle, g: Array, z: Array, weight: Array) -> Answer:
    r"""Minimise g'(y - z) + (weight/2) ||y - z||_2^2 + h(y) over S by ``oracle.linear`` alone, on the host, in float64.

    Fully corrective conditional gradient: the answer is a mixture y of extreme points, so it lies in S, and it is
    optimal among all their mixtures (with h replaced by the mixture of its values, which is no smaller). With the
    gradient s = g + weight (y - z), convexity gives F(w) >= F(y) - [s'y + h - min over S of (s'w + h(w))] for all w
    in S; the minimum is replaced by the lower bound of ``linear`` (theory A2). So the bound is sound wherever the
    iteration stops: at its rounding for polytopes, after 300 answers at the latest.
    """
    ndim = oracle.set.event_ndim
    batch, event = g.shape[: g.ndim - ndim], tuple(g.shape[g.ndim - ndim :])
    slopes, centers = (
        np.asarray(to_host(a), np.float64).reshape(-1, int(np.prod(event))) for a in (g, z)
    )
    weights = to_host(weight) if is_array(weight) else weight
    weights = np.broadcast_to(np.asarray(weights, np.float64), batch).reshape(-1)
    each = oracle.converted(np.zeros(()))
    each = each.flatten(batch) if each.batch_shape else each

    def linear(slopes: np.ndarray, which: np.ndarray) -> Linear:
        some = each.take(which) if each.batch_shape else each
        answer = some.linear(slopes.reshape(-1, *event))
        points = np.asarray(answer.point)
        penalties = np.broadcast_to(some.penalty.value(points), (len(slopes),))
        return Linear(points.reshape(slopes.shape), penalties, np.asarray(answer.lower))

    found = corrective(linear, slopes, centers, weights)
    point = convert(found.points.reshape((*batch, *event)), g)
    value = oracle.prox_value(g, z, weight, 2.0, point)
    lower = convert(found.lower.reshape(batch), g)
    return Answer(point, value, namespace(g).minimum(lower, value))
