"""Fully corrective conditional gradient: the proximal problem of p = 2 through a linear oracle alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Of the largest entry of a Gram matrix: atoms that are affinely dependent leave it singular.
RIDGE = 1e-13
# From the shares before a new atom it takes a few changes of the active set; a rest of them is left to the next step.
MINOR_CYCLES = 24
# Steps in a row that lower the objective by no more than its rounding, before a row is given up.
PATIENCE = 3
REFINEMENTS = 2
# Shares of atoms below this are 0.
NEGLIGIBLE = 1e-14
UNIT = 2.0**-52


class Linear(NamedTuple):
    """Answers to gradients: points, the penalty there, and lower bounds on the minima."""

    points: np.ndarray
    penalties: np.ndarray
    lower: np.ndarray


class Corrected(NamedTuple):
    """Points, upper bounds on the objective there, and lower bounds on its minimum."""

    points: np.ndarray
    values: np.ndarray
    lower: np.ndarray


def corrective(
    linear: Callable[[np.ndarray, np.ndarray], Linear],
    g: np.ndarray,
    z: np.ndarray,
    weight: np.ndarray,
    *,
    tolerance: float = 1e-14,
    steps: int = 300,
) -> Corrected:
    r"""Minimise F(y) = g'(y - z) + (weight/2) ||y - z||^2 + h(y) over S for every row of g, n entries each.

    ``linear(s, rows)`` minimises s'y + h(y) for the gradients of some of the rows. y is a mixture of its answers, and
    after every new one the mixture is optimal among all so far (an active-set method for the shares). Because F is
    convex, F >= F(y) - gap, gap = s'y + h - linear(s), s = g + weight (y - z), wherever it stops (theory A2): at a
    gap of ``tolerance`` times the terms of F, or after ``steps`` answers. Finite for polytopes.
    """
    count = len(g)
    everyone = np.arange(count)
    first = linear(g + weight[:, None] * 0.0, everyone)
    atoms, costs = first.points[:, None, :].copy(), first.penalties[:, None].copy()
    shares = np.ones((count, 1))
    points, values = first.points.copy(), np.full(count, np.inf)
    lower = np.full(count, -np.inf)
    idle = np.zeros(count, dtype=np.int64)
    running = np.all(np.isfinite(g) & np.isfinite(z), axis=-1) & np.isfinite(weight)
    points[~running], values[~running], lower[~running] = np.nan, np.nan, np.nan
    for _ in range(steps):
        rows = np.flatnonzero(running)
        if not rows.size:
            break
        d = atoms[rows] - z[rows, None, :]
        w = weight[rows]
        gram = w[:, None, None] * (d @ d.swapaxes(-1, -2))
        slopes = np.einsum("bkn,bn->bk", d, g[rows]) + costs[rows]
        shares[rows] = _best_shares(gram, slopes, shares[rows])
        mixture = shares[rows]
        y = np.einsum("bk,bkn->bn", mixture, atoms[rows])
        step = y - z[rows]
        penalty = np.sum(mixture * costs[rows], axis=-1)
        smooth = np.sum((g[rows] + 0.5 * w[:, None] * step) * step, axis=-1)
        gradient = g[rows] + w[:, None] * step
        found = linear(gradient, rows)
        gap = np.sum(gradient * y, axis=-1) + penalty - found.lower
        value = smooth + penalty
        terms = np.sum(np.abs(gradient * y), axis=-1) + np.abs(penalty) + np.abs(smooth)
        terms = terms + np.sum(np.abs(gradient * found.points), axis=-1)
        terms = terms + w * np.sum(np.abs(z[rows]) * (np.abs(y) + np.abs(z[rows])), axis=-1)
        moves = value < values[rows] - UNIT * terms
        idle[rows] = np.where(moves, 0, idle[rows] + 1)
        points[rows], values[rows] = y, value
        lower[rows] = np.maximum(lower[rows], value - np.maximum(gap, 0.0))
        going = (gap > tolerance * terms) & (idle[rows] < PATIENCE)
        running[rows[~going]] = False
        if np.any(going):
            atoms, costs, shares = _with_atoms(atoms, costs, shares, rows[going], found, going)
    return Corrected(points, values, np.minimum(lower, values))


def _with_atoms(
    atoms: np.ndarray,
    costs: np.ndarray,
    shares: np.ndarray,
    rows: np.ndarray,
    found: Linear,
    going: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The new answers in places that are free, because their share is 0; one more place for all if a row has none."""
    free = shares[rows] == 0.0
    if not np.all(np.any(free, axis=-1)):
        atoms = np.concatenate([atoms, atoms[:, :1]], axis=1)
        costs = np.concatenate([costs, costs[:, :1]], axis=1)
        shares = np.concatenate([shares, np.zeros((len(shares), 1))], axis=1)
        free = shares[rows] == 0.0
    place = np.argmax(free, axis=-1)
    atoms[rows, place] = found.points[going]
    costs[rows, place] = found.penalties[going]
    return atoms, costs, shares


def _best_shares(gram: np.ndarray, slopes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """argmin of s'gram s / 2 + slopes's over s >= 0, sum s = 1, from feasible shares: active sets, all rows at once.

    Places that the shares leave out may come in: first the one that lowers the objective most, as long as some does.
    """
    shares = shares.copy()
    active = shares > 0.0
    largest = np.max(np.abs(np.diagonal(gram, axis1=-2, axis2=-1)), axis=-1, initial=0.0)
    ridge = RIDGE * np.where(largest > 0.0, largest, 1.0)
    rows = np.arange(len(shares))
    for _ in range(MINOR_CYCLES):
        if not rows.size:
            break
        target, level = _equality(gram[rows], slopes[rows], active[rows], ridge[rows])
        now = shares[rows]
        negative = target < -NEGLIGIBLE
        ratio = np.where(negative, now / np.where(negative, now - target, 1.0), 1.0)
        length = np.clip(np.min(ratio, axis=-1), 0.0, 1.0)
        moved = now + length[:, None] * (target - now)
        moved = np.where(active[rows] & (moved > NEGLIGIBLE), moved, 0.0)
        blocked = length < 1.0
        moved[blocked, np.argmin(ratio, axis=-1)[blocked]] = 0.0
        total = np.sum(moved, axis=-1, keepdims=True)
        moved = np.where(total > 0.0, moved / np.where(total > 0.0, total, 1.0), now)
        shares[rows] = moved
        active[rows] = moved > 0.0
        # At a full step: does another place lower the objective?
        gradient = np.einsum("bij,bj->bi", gram[rows], moved) + slopes[rows]
        gain = np.where(active[rows], np.inf, gradient - level[:, None])
        enters = np.argmin(gain, axis=-1)
        sizes = np.max(np.abs(gradient), axis=-1)
        better = ~blocked & (gain[np.arange(len(rows)), enters] < -1e-13 * sizes)
        active[rows[better], enters[better]] = True
        rows = rows[blocked | better]
    return shares


def _equality(
    gram: np.ndarray, slopes: np.ndarray, active: np.ndarray, ridge: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The shares on the active places that minimise among those of sum 1, of any sign; and the slope there."""
    count, size = slopes.shape
    both = active[:, :, None] & active[:, None, :]
    matrix = np.zeros((count, size + 1, size + 1))
    matrix[:, :size, :size] = np.where(both, gram, 0.0)
    diagonal = np.arange(size)
    matrix[:, diagonal, diagonal] += np.where(active, 0.0, 1.0)
    # In units of the Gram matrix, so that the last row is no smaller than the others.
    unit = np.maximum(np.max(np.abs(matrix), axis=(-1, -2)), ridge)
    matrix[:, :size, size] = matrix[:, size, :size] = np.where(active, unit[:, None], 0.0)
    right = np.concatenate([np.where(active, -slopes, 0.0), unit[:, None]], axis=-1)
    ridged = matrix.copy()
    ridged[:, diagonal, diagonal] += np.where(active, ridge[:, None], 0.0)
    solution = np.linalg.solve(ridged, right[..., None])
    for _ in range(REFINEMENTS):  # to remove what the ridge has changed
        solution = solution + np.linalg.solve(ridged, right[..., None] - matrix @ solution)
    solution = solution[..., 0]
    return np.where(active, solution[:, :size], 0.0), -unit * solution[:, size]
