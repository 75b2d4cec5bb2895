"""The weights of given components: a convex quadratic program over w >= 0, and what is proved about its solution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from restpoint.array import gamma
from restpoint.smooth import CanonicalPolyadic
from restpoint.smooth.base import Blocks

# Eigenvalues of the Gram matrix below this fraction of the largest count as 0.
SINGULAR = 1e-13


class Gram(NamedTuple):
    """On the observed entries: ``pairs`` the inner products of the components, ``data`` those with the tensor."""

    pairs: np.ndarray
    data: np.ndarray


def best_weights(gram: Gram, penalties: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The minimiser of 1/2 w'Gw - (c - penalties)'w over w >= 0; ``w`` itself where it is not beaten.

    With G = V Diag(e) V', the least squares problem || Diag(e)^(1/2) V'w - Diag(e)^(-1/2) V'(c - penalties) ||.
    """
    from scipy.optimize import nnls

    c = gram.data - penalties
    values, vectors = np.linalg.eigh(0.5 * (gram.pairs + gram.pairs.T))
    kept = values > SINGULAR * max(float(values[-1]), 0.0)
    if not np.any(kept):
        return w
    roots, basis = np.sqrt(values[kept]), vectors[:, kept]
    try:
        found = nnls(roots[:, None] * basis.T, (basis.T @ c) / roots)[0]
    except RuntimeError:  # its iterations ran out
        return w

    def objective(v: np.ndarray) -> float:
        return float(0.5 * v @ gram.pairs @ v - c @ v)

    return np.asarray(found) if objective(found) < objective(w) else w


def weights_gap(
    smooth: CanonicalPolyadic, xs: Blocks, penalties: np.ndarray, limit: float
) -> tuple[float, float]:
    """An upper bound on max over 0 <= v <= limit of dF/dw'(w - v), and how much of it allows for rounding.

    F is convex in w, so that no other weights in that range lower it by more. With g = dF/dw, the maximum is
    sum_r max(g_r w_r, g_r (w_r - limit)). NaN where the tensor's kernel proves no rounding bound.
    """
    w, (slopes, error) = smooth.weights, smooth.weight_gradient(xs)
    if error is None:
        return float("nan"), float("nan")
    g = slopes + penalties
    # The sums of absolute values behind the penalties, their addition, and the products below.
    error = error + gamma(sum(smooth.sizes) + 8) * (penalties + np.abs(g))
    floor = float(np.sum(error * np.maximum(w, limit - w)))
    gap = float(np.sum(np.maximum(g * w, g * (w - limit)))) + floor
    return gap * (1.0 + gamma(len(w) + 8)), floor
