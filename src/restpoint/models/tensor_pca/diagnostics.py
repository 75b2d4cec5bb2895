"""Is the number of components right? What is said about a fit beside its error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# A Tucker core with more entries than this is not fitted.
LARGEST_CORE = 2048


def core_consistency(A: np.ndarray, weights: np.ndarray, rows: Sequence[np.ndarray]) -> float:
    r"""How far the components are from interacting, in percent (Bro and Kiers, J. Chemometrics 17, 2003).

    The Tucker core that fits best to the factors of the components, over the observed entries of A,

        G = argmin sum over observed of (A - sum_{r_1 ... r_d} G[r_1, ..., r_d] a_{1 r_1} o ... o a_{d r_d})^2,

    against that of the model, T = 1 where r_1 = ... = r_d and 0 elsewhere:

        100 (1 - sum (G - T)^2 / R),

    with a_ir = w_r^{1/d} x_ir, so that the vectors of a component are equally long in all modes. 100: the core is
    superdiagonal, as the model says; about 50: unstable; near or below 0: the components share what should be one, or
    model noise, far below if they nearly cancel. Components of weight 0 are left out; NaN where the core would have
    more than 2048 entries, or the factors do not determine it (as where two components have the same vector in a mode).

    >>> rows = [np.eye(3)[:2]] * 3
    >>> A = np.einsum("r,ra,rb,rc->abc", [5.0, 2.0], *rows)
    >>> round(core_consistency(A, np.array([5.0, 2.0]), rows), 6)
    100.0
    """
    alive = np.flatnonzero(np.asarray(weights) > 0)
    d, rank = len(rows), len(alive)
    if rank == 0 or rank**d > LARGEST_CORE:
        return float("nan")
    triangles, bases = [], []
    for x in rows:
        basis, triangle = np.linalg.qr(x[alive].T)
        if triangle.shape != (rank, rank) or np.linalg.cond(triangle) > 1e10:
            return float("nan")
        bases.append(basis)
        triangles.append(triangle)
    core = _best_core(A, bases)
    if core is None:
        return float("nan")
    # From the orthonormal bases back to the components, and to vectors of length w_r^{1/d}.
    core = _contracted(core, [np.linalg.inv(triangle).T for triangle in triangles])
    for m in range(d):
        own = np.asarray(weights)[alive] ** (1.0 / d)
        core = core / own.reshape([-1 if k == m else 1 for k in range(d)])
    core[(np.arange(rank),) * d] -= 1.0
    return float(100.0 * (1.0 - np.sum(core**2) / rank))


def _best_core(A: np.ndarray, bases: Sequence[np.ndarray]) -> np.ndarray | None:
    """The Tucker core that fits best, over the observed entries, to orthonormal bases (n, R); None if many do."""
    d, rank, seen = len(bases), bases[0].shape[1], ~np.isnan(A)
    right = _contracted(np.where(seen, A, 0.0), bases)
    if seen.all():
        return right
    pairs = [np.einsum("jr,js->jrs", Q, Q).reshape(len(Q), -1) for Q in bases]
    table = _contracted(seen.astype(np.float64), pairs).reshape((rank, rank) * d)
    order = [*range(0, 2 * d, 2), *range(1, 2 * d, 2)]
    normal = table.transpose(order).reshape(rank**d, rank**d)
    if np.linalg.cond(normal) > 1e12:
        return None
    return np.asarray(np.linalg.solve(normal, right.ravel())).reshape((rank,) * d)


def factor_match(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    r"""The mean over components, best matched, of prod_i |cos(x_ir, y_ir)|: 1 for the same components, in any order.

    Of R components against S, min(R, S) pairs are formed (the assignment of largest sum) and the mean is over
    max(R, S): a component without a partner, or with a vector 0, counts 0.

    >>> x = [np.eye(4)[:2], np.eye(4)[2:]]
    >>> factor_match(x, [-rows[::-1] for rows in x])
    1.0
    """
    from scipy.optimize import linear_sum_assignment

    cosines = np.prod(
        [np.abs(_units(x) @ _units(y).T) for x, y in zip(first, second, strict=True)], axis=0
    )
    matched = linear_sum_assignment(cosines, maximize=True)
    return float(np.sum(cosines[matched]) / max(cosines.shape))


def _units(rows: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(sizes > 0, sizes, 1.0)


def _contracted(A: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """A with mode i multiplied by matrices[i], of shape (n_i, k_i)."""
    for matrix in matrices:  # the first axis is used up, the new one goes to the end
        A = np.tensordot(A, matrix, axes=(0, 0))
    return A
