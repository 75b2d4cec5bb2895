"""Tensors with known components."""

import numpy as np


def planted(shape, nonzeros, strength, seed):
    """strength x_1 o ... o x_d + N(0, 1), x_i with entries +-1/sqrt(nonzeros)."""
    rng = np.random.default_rng(seed)
    xs, signal = [], np.array(strength)
    for n in shape:
        x = np.zeros(n)
        x[rng.choice(n, nonzeros, replace=False)] = rng.choice([-1, 1], nonzeros)
        xs.append(x / np.sqrt(nonzeros))
        signal = np.multiply.outer(signal, xs[-1])
    return signal + rng.standard_normal(shape), xs


def planted_rank(n, rank, strength, seed, nonzeros=5):
    """Three modes, ``rank`` components of falling weights."""
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(3):
        F = np.zeros((rank, n))
        for r in range(rank):
            F[r, rng.choice(n, nonzeros, replace=False)] = rng.choice([-1, 1], nonzeros)
        factors.append(F / np.sqrt(nonzeros))
    weights = strength * (1.0 - 0.15 * np.arange(rank))
    A = np.einsum("r,ra,rb,rc->abc", weights, *factors)
    return A + rng.standard_normal(A.shape), factors, weights


def same_supports(model, xs):
    return all(np.array_equal(s[0], x != 0) for s, x in zip(model.support_, xs, strict=True))
