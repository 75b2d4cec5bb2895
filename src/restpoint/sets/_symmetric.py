"""What sets of symmetric matrices that are known by their eigenvalues share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from restpoint.array import Array, norm, power_sum
from restpoint.errors import ShapeError
from restpoint.kernels.decompositions import eigen, with_eigenvalues
from restpoint.sets.base import Set


class SymmetricSet(Set):
    """S = {X = X' : the eigenvalues lie in C}; of a gradient only the symmetric part counts."""

    event_ndim = 2

    @abstractmethod
    def eigenvalues(self) -> Set:
        """C, closed under permutations."""

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if shape[0] != shape[1]:
            raise ShapeError(
                f"{type(self).__name__} holds square matrices, but the block has event shape {shape}"
            )
        self.eigenvalues().check_shape(shape[:1])

    def support(self, g: Array) -> Array:
        return self.eigenvalues().support(eigen(g)[0])

    def extreme(self, g: Array) -> Array:
        return with_eigenvalues(g, self.eigenvalues().extreme)

    def project(self, x: Array) -> Array:
        return with_eigenvalues(x, self.eigenvalues().project)

    def absolute_support(self, a: Array) -> Array:
        """||a||_F times the largest ||Y||_F."""
        return norm(a, 2) * self.norm_bound(tuple(a.shape[-2:]))

    def reach(self, z: Array, p: float) -> Array:
        return self.diameter(p, tuple(z.shape[-2:])) + 0.0 * power_sum(z, 2.0, 2)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Random eigenvectors, and eigenvalues from C."""
        values = self.eigenvalues().sample(rng, shape[:1])
        vectors = np.linalg.qr(rng.standard_normal(shape))[0]
        made = (vectors * values) @ vectors.T
        return np.asarray(0.5 * (made + made.T))


def entrywise(euclidean: Array, largest: Array, p: float, size: int) -> Array:
    """||D||_p of any n x n matrix with ||D||_F <= euclidean and no entry above ``largest``."""
    if p >= 2.0:
        return (euclidean**2 * largest ** (p - 2.0)) ** (1.0 / p)
    return euclidean * size ** (2.0 * (1.0 / p - 0.5))
