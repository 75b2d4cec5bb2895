"""Sets and penalties of matrices that are known by their singular values or eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from restpoint.array import Array, expand, inner, namespace
from restpoint.errors import CapabilityError
from restpoint.kernels.decompositions import eigen, singular
from restpoint.oracles.base import Answer, Condition, Oracle
from restpoint.penalties import Penalty
from restpoint.sets import Set


def _vectors(set: Set) -> Set | None:
    found = set.singular_values()
    return set.eigenvalues() if found is None else found


def _of_vectors(set: Set, penalty: Penalty) -> Oracle | None:
    """The oracle of the vectors of singular values (or eigenvalues), if there is one."""
    from restpoint.oracles import find

    values, phi = _vectors(set), penalty.of_singular_values()
    if values is None or phi is None:
        return None
    try:
        return find(values, phi)
    except CapabilityError:
        return None


@dataclass(frozen=True)
class Spectral(Oracle):
    r"""S = {X : sigma(X) in C} with h(X) = phi(sigma(X)): the rule that (C, phi) has.

    C and phi are closed under permutations and signs. With G = U diag(s) V', linear(G) is U diag(x) V' for the vector
    oracle's answer x to s; with weight Z - G = U diag(s) V', the prox for p = 2 is that of its answer to gradient -s,
    centre 0 and the same weight. Symmetric matrices: eigenvalues in place of singular values, and the symmetric part
    of G.

    Proof: <G, X> >= -s'sigma(X) for all X (von Neumann; Fan), with equality where X shares the singular vectors with
    -G; the squares are ||X||_F = ||sigma(X)||_2, and what is left is a problem in sigma(X) alone.

    >>> import numpy as np
    >>> from restpoint.penalties import Nuclear
    >>> from restpoint.sets import SpectralBall
    >>> answer = Spectral(SpectralBall(2.0), Nuclear(1.0)).linear(np.diag([3.0, 0.5]))
    >>> answer.point + 0.0, float(answer.lower)
    (array([[-2.,  0.],
           [ 0.,  0.]]), -4.0)
    """

    conditions = (
        Condition(
            "the set is one of singular values or eigenvalues",
            lambda set, penalty: _vectors(set) is not None,
        ),
        Condition(
            "the penalty is one of singular values",
            lambda set, penalty: penalty.of_singular_values() is not None,
        ),
        Condition(
            "a rule answers for their vectors",
            lambda set, penalty: _of_vectors(set, penalty) is not None,
        ),
    )

    @cached_property
    def vectors(self) -> Oracle:
        """The oracle of the singular values, or eigenvalues."""
        found = _of_vectors(self.set, self.penalty)
        if found is None:
            raise CapabilityError(f"{self.name}: no rule answers for the singular values")
        return found

    @property
    def kind(self) -> str:
        return self.vectors.kind

    def linear(self, g: Array) -> Answer:
        left, values, right = self._decomposed(g)
        found = self.vectors.linear(values)
        point = _made(left, found.point, right)
        value = inner(g, point, 2) + self.vectors.penalty.value(found.point)
        return Answer(point, value, namespace(g).minimum(found.lower, value))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if p != 2.0:
            return super().prox(g, z, weight, p)
        left, values, right = self._decomposed(expand(weight, 2) * z - g)
        found = self.vectors.prox(-values, 0.0 * values, weight, 2.0)
        point = _made(left, found.point, right)
        d = point - z
        value = inner(g + expand(0.5 * weight, 2) * d, d, 2)
        value = value + self.vectors.penalty.value(found.point)
        return Answer(point, value, value - (found.value - found.lower))

    def can_prox(self, p: float) -> bool:
        return p == 2.0 and self.vectors.can_prox(2.0)

    def _decomposed(self, x: Array) -> tuple[Array, Array, Array]:
        if self.set.singular_values() is not None:
            return singular(x)
        values, vectors = eigen(x)
        return vectors, values, namespace(x).matrix_transpose(vectors)


def _made(left: Array, values: Array, right: Array) -> Array:
    return (left * values[..., None, :]) @ right
