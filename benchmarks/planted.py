"""Planted rank-one tensors in noise, starts, and what peers do with them."""

from __future__ import annotations

import numpy as np

from restpoint.kernels import Dense

Vectors = tuple[np.ndarray, ...]


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def starts(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> Vectors:
    """Uniform on the spheres: one array (count, n) a mode."""
    return tuple(unit(rng.standard_normal((count, n))) for n in shape)


def sparse_vectors(
    rng: np.random.Generator, shape: tuple[int, ...], nonzeros: int, *, uneven: bool
) -> Vectors:
    """Unit vectors of random signs on random supports; moduli equal, or uniform in [0.5, 1.5] before normalisation."""
    found = []
    for n in shape:
        x = np.zeros(n)
        size = rng.uniform(0.5, 1.5, nonzeros) if uneven else np.ones(nonzeros)
        x[rng.choice(n, nonzeros, replace=False)] = rng.choice([-1.0, 1.0], nonzeros) * size
        found.append(unit(x))
    return tuple(found)


def outer(xs: Vectors) -> np.ndarray:
    found = xs[0]
    for x in xs[1:]:
        found = np.multiply.outer(found, x)
    return found


def top(x: np.ndarray, count: int) -> frozenset[int]:
    """The places of the ``count`` largest entries in modulus."""
    return frozenset(np.argpartition(np.abs(x), -count)[-count:].tolist())


def support(x: np.ndarray) -> frozenset[int]:
    return frozenset(np.flatnonzero(x).tolist())


class Planted:
    """strength * x_1 o ... o x_d + noise, for one draw of both; A is changed in place from one strength to another.

    Gram matrices of the unfoldings follow from those of the noise: with P = x_1 o ... o x_d and g_i the partials of the
    noise at the planted vectors, A_i A_i' = N_i N_i' + s (g_i x_i' + x_i g_i') + s^2 x_i x_i'.
    """

    def __init__(self, noise: np.ndarray, truth: Vectors) -> None:
        self.A, self.truth = noise, truth
        self.cut = np.ix_(*(np.flatnonzero(x) for x in truth))
        self.noise = noise[self.cut].copy()
        self.signal = outer(tuple(x[x != 0] for x in truth))
        self.partials = Dense(noise).all_partials(truth)
        self.grams = tuple(self._gram(mode) for mode in range(noise.ndim))
        self.strength = 0.0

    def _gram(self, mode: int) -> np.ndarray:
        n = self.A.shape[mode]
        M = self.A.reshape(int(np.prod(self.A.shape[:mode], dtype=int)), n, -1)
        if mode == 0:
            return M[0] @ M[0].T
        if mode == self.A.ndim - 1:
            return M[:, :, 0].T @ M[:, :, 0]
        found = np.zeros((n, n))
        for piece in M:
            found += piece @ piece.T
        return found

    def at(self, strength: float) -> np.ndarray:
        """A at this strength; the array of the last call."""
        self.A[self.cut] = self.noise + strength * self.signal
        self.strength = strength
        return self.A

    def singular_vectors(self) -> Vectors:
        """The leading left singular vector of every unfolding, at the strength of ``at``."""
        s, found = self.strength, []
        for N, g, x in zip(self.grams, self.partials, self.truth, strict=True):
            cross = np.multiply.outer(g, x)
            G = N + s * (cross + cross.T) + s**2 * np.multiply.outer(x, x)
            found.append(np.linalg.eigh(G)[1][:, -1])
        return tuple(found)
