"""Penalties with a square: it joins the proximal term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from restpoint.array import Array, expand, inner, namespace
from restpoint.errors import CapabilityError
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.penalties import ElasticNet, Penalty
from restpoint.sets import Set


def _rest(set: Set, penalty: Penalty) -> Oracle | None:
    """The oracle of the pair without the square, if it has a prox for p = 2."""
    from restpoint.oracles import find

    if not isinstance(penalty, ElasticNet):
        return None
    try:
        found = find(set, penalty.rest)
    except CapabilityError:
        return None
    return found if found.can_prox(2.0) else None


@dataclass(frozen=True)
class Ridge(Oracle):
    r"""h(y) = h_0(y) + (c/2) ||y||^2 on any S whose pair with h_0 has a prox for p = 2: the square is a proximal term.

    linear(g) = prox_0(g, 0, c) = y, and the square is above its tangent at y, so that its minimum is at least that of
    the rest at g + c y less (c/2) ||y||^2, wherever the prox stopped (theory A2). Because (c/2) ||y||^2 = (c/2) ||y -
    z||^2 + c z'(y - z) + (c/2) ||z||^2, for p = 2 prox(g, z, weight) = prox_0(g + c z, z, weight + c), with the
    constant added to its values.

    >>> import numpy as np
    >>> from restpoint.sets import Box
    >>> Ridge(Box(-1.0, 1.0), ElasticNet(1.0, ridge=4.0)).linear(np.array([3.0, 0.5, -9.0])).point
    array([-0.5,  0. ,  1. ])
    """

    conditions = (
        Condition("the penalty has a square", lambda set, penalty: isinstance(penalty, ElasticNet)),
        Condition(
            "without the square, the pair has a prox for p = 2",
            lambda set, penalty: _rest(set, penalty) is not None,
        ),
    )

    penalty: ElasticNet

    @cached_property
    def rest(self) -> Oracle:
        """The oracle of the pair without the square."""
        found = _rest(self.set, self.penalty)
        if found is None:
            raise CapabilityError(f"{self.name}: without the square there is no prox for p = 2")
        return found

    @property
    def kind(self) -> str:
        return self.rest.kind

    def linear(self, g: Array) -> Answer:
        ndim, ridge = self.set.event_ndim, self.penalty.ridge
        answer = self.rest.prox(g, 0.0 * g, ridge, 2.0)
        point = answer.point
        bound = self.rest.linear(g + expand(ridge, ndim) * point).lower
        bound = bound - 0.5 * ridge * inner(point, point, ndim)
        value = self.linear_value(g, point)
        return Answer(point, value, namespace(g).minimum(bound, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            return super().prox(g, z, weight, p)
        ndim, ridge = self.set.event_ndim, self.penalty.ridge
        answer = self.rest.prox(g + expand(ridge, ndim) * z, z, weight + ridge, 2.0)
        constant = 0.5 * ridge * inner(z, z, ndim)
        return Answer(answer.point, answer.value + constant, answer.lower + constant)

    def can_prox(self, p: float) -> bool:
        return p == 2.0

    def magnitude(self, g: Array, point: Array) -> Array:
        """The bound adds that of the rest at another gradient, and a square."""
        size = namespace(g).abs
        steeper = size(g) + expand(self.penalty.ridge, self.set.event_ndim) * size(point)
        return self.rest.magnitude(steeper, point) + 2.0 * self.penalty.magnitude(point)
