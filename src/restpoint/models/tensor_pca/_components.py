"""One mode of several components: the vectors a_r = w_r x_r that minimise the objective, the other modes fixed.

    1/2 sum_rs a_r'(Q_rs o a_s) - sum_r a_r'b_r + sum_r (rho ||a_r||_1 + tau_r ||a_r||_2),   a_r in a cone K

with tau_r = sum over the other modes of rho_j ||x_jr||_1: at ||x_r|| = 1, the weight w_r = ||a_r|| pays for them.
The problem is convex; K is the whole space or the nonnegative orthant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from restpoint.smooth.canonical_polyadic import ModeTerms

# Passes over the components of a mode, and the part of the first one's change at which they end: the products with A
# are at hand, so that congruent components may as well be settled.
PASSES, ENOUGH = 20, 0.05
# Steps of Newton's method, kept in a bracket; fewer than ten are the rule.
STEPS = 60
# Eigenvalues of the normal equations below this fraction of the largest count as 0.
SINGULAR = 1e-13
# A component of weight 0 looks for a place in the entries that are larger than this times the largest.
SOUGHT = 0.5


class Terms(NamedTuple):
    """What the vectors of one mode pay: rho for their own entries, tau_r for those of the other modes."""

    rho: float
    taus: np.ndarray
    nonnegative: bool


def mode_step(
    quadratic: ModeTerms, a: np.ndarray, X: np.ndarray, own: Terms, begin: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Better vectors a_r, and their directions; those of vectors that are 0 go on looking for a place.

    Unpenalised, all at once by the normal equations (alternating least squares), unless rounding spoils them. Else
    one component after the other, from ``begin`` on, each exactly: neither raises the objective.
    """
    free = own.rho == 0.0 and not own.nonnegative and not np.any(own.taus)
    if free:
        together = _least_squares(quadratic)
        if smooth_part(quadratic, together) <= smooth_part(quadratic, a):
            return together, _directions(together, X)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # far from the root, ``_per_length`` may overflow
        return _one_by_one(quadratic, a.copy(), X.copy(), own, begin)


def _one_by_one(
    quadratic: ModeTerms, a: np.ndarray, X: np.ndarray, own: Terms, begin: int
) -> tuple[np.ndarray, np.ndarray]:
    pairs, linear, first = quadratic.pairs, quadratic.linear, 0.0
    for _ in range(PASSES if len(a) > 1 else 1):
        moved = 0.0
        for r in (*range(begin, len(a)), *range(begin)):
            others = np.einsum("sj,sj->j", pairs[r], a) - pairs[r, r] * a[r]
            b = linear[r] - others
            shrunk = _shrunk(b, own.rho, own.nonnegative)
            new = best_vector(shrunk, pairs[r, r], float(own.taus[r]))
            moved = max(moved, float(np.abs(new - a[r]).max()))
            a[r] = new
            if not new.any():
                X[r] = _sought(b, X[r], own)
        first = max(first, moved)
        if moved <= ENOUGH * first:
            break
    return a, _directions(a, X)


def best_vector(u: np.ndarray, q: np.ndarray, tau: float) -> np.ndarray:
    """The minimiser of 1/2 a'Diag(q)a - b'a + rho ||a||_1 + tau ||a||_2 over the cone, from u = b shrunk by rho.

    It is 0 iff ||u|| <= tau. Otherwise a_j = u_j / (q_j + tau/v) with v = ||a||, the root of ||u/(q v + tau)|| = 1:
    the left side decreases in v. Equal curvatures give a = u (1 - tau/||u||) / q.

    Proof: optimal is 0 in q o a - b + rho s + tau t, s in the subdifferential of ||.||_1 at a (plus, on the orthant,
    the normal cone), t in that of ||.||_2. At a = 0, ||t|| <= 1, and the s that leaves least is that of u. Elsewhere
    t = a/||a||: (q_j + tau/v) a_j = b_j - rho s_j has the sign of a_j, so that b_j - rho s_j = u_j.

    >>> best_vector(np.array([3.0, 0.0, 4.0]), np.ones(3), 1.0)
    array([2.4, 0. , 3.2])
    """
    size = math.sqrt(u @ u)
    if size <= tau:
        return np.zeros_like(u)
    least, most = float(q.min()), float(q.max())
    if least <= 0.0:
        known = (q > 0.0) & (u != 0.0)  # what is nowhere observed has neither slope nor curvature
        if not known.any():
            return np.zeros_like(u)
        u, least, most = np.where(known, u, 0.0), float(q[known].min()), float(q[known].max())
        q = np.where(known, q, 1.0)
        size = math.sqrt(u @ u)
    if tau == 0.0 or least == most:
        return u * max(0.0, 1.0 - tau / size) / q
    low, high = max(0.0, size - tau) / most, max(0.0, size - tau) / least
    return u * _per_length(u, q, tau, (low, high))


def _per_length(
    u: np.ndarray, q: np.ndarray, tau: float, bracket: tuple[float, float]
) -> np.ndarray:
    """v / (q v + tau) at the root v in the bracket of ||u / (q v + tau)|| = 1."""
    (low, high), v = bracket, bracket[0]
    for _ in range(STEPS):
        bent = q * v + tau
        scaled = u / bent
        squares = scaled * scaled
        length = math.sqrt(squares.sum())
        low, high = (v, high) if length > 1.0 else (low, v)
        slope = float(squares @ (q / bent)) / length
        proposal = v + (length - 1.0) * length / slope  # Newton for 1/length = 1
        moved = proposal if low <= proposal <= high else math.sqrt(low) * math.sqrt(high)
        if abs(moved - v) <= 4e-16 * v:
            break
        v = moved
    return v / (q * v + tau)


def smooth_part(quadratic: ModeTerms, a: np.ndarray) -> float:
    """1/2 sum_rs a_r'(Q_rs o a_s) - sum_r a_r'b_r."""
    half = 0.5 * np.einsum("rsj,sj->rj", quadratic.pairs, a) - quadratic.linear
    return float(np.sum(a * half))


def _shrunk(b: np.ndarray, rho: float, nonnegative: bool) -> np.ndarray:
    """b with every entry moved by rho towards 0, negative ones to 0 on the orthant."""
    if nonnegative:
        return np.maximum(b - rho, 0.0)
    return b - np.minimum(np.maximum(b, -rho), rho)


def _sought(b: np.ndarray, x: np.ndarray, own: Terms) -> np.ndarray:
    """Where a component of weight 0 looks next: a power step on what the others leave, kept sparse; F stays."""
    largest = float(np.max(b if own.nonnegative else np.abs(b)))
    if not largest > 0.0:
        return x
    shrunk = _shrunk(b, min(own.rho, SOUGHT * largest), own.nonnegative)
    shrunk = shrunk / largest
    return shrunk / np.linalg.norm(shrunk)


def _least_squares(quadratic: ModeTerms) -> np.ndarray:
    """The solutions of sum_s Q_rs[j] a_s[j] = b_r[j] of least norm, for every index j."""
    matrices = np.moveaxis(quadratic.pairs, -1, 0)
    if np.all(matrices == matrices[:1]):  # nothing is missing: one matrix for all j
        matrices = matrices[:1]
    inverses = _inverses(matrices)
    if len(inverses) == 1:
        return inverses[0] @ quadratic.linear
    return np.einsum("jrs,sj->rj", inverses, quadratic.linear)


def _inverses(matrices: np.ndarray) -> np.ndarray:
    """Pseudoinverses of symmetric matrices, shape (k, R, R)."""
    values, vectors = np.linalg.eigh(matrices)
    sizes = np.abs(values)
    kept = sizes > SINGULAR * sizes.max(axis=-1, keepdims=True)
    roots = np.where(kept, 1.0, 0.0) / np.where(kept, values, 1.0)
    return (vectors * roots[:, None, :]) @ vectors.swapaxes(-1, -2)


def _directions(a: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The rows of a at length 1, those of X where a is 0."""
    sizes = np.linalg.norm(a, axis=1, keepdims=True)
    units = a / np.where(sizes > 0.0, sizes, 1.0)
    again = np.linalg.norm(units, axis=1, keepdims=True)  # of tiny rows the first norm is inexact
    return np.where(sizes > 0.0, units / np.where(again > 0.0, again, 1.0), X)
