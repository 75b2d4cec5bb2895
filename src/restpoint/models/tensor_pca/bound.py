"""A bound that no point can beat."""

from __future__ import annotations

import math

import numpy as np

from restpoint.models.tensor_pca.data import Data
from restpoint.models.tensor_pca.options import Options


def global_bound(data: Data, options: Options, rho: np.ndarray) -> float:
    r"""max(0, sigma - sum_i rho_i) >= A(x) - sum_i rho_i ||x_i||_1 for unit vectors, sigma the norm of an unfolding.

    With t_i = ||x_i||_2 <= ||x_i||_1, the right side is at most sigma t_1 ... t_d - sum_i rho_i t_i, which is convex in
    each t_i alone: over [0, 1]^d it is largest at a corner, all ones or with a zero. i counts blocks: tied modes share
    one vector, and pay for it once. ``rho`` has one entry a mode. NaN where sets or penalties are others, or entries
    are missing.
    """
    if not options.plain or data.observed is not None:
        return float("nan")
    total = math.fsum(float(rho[modes[0]]) for modes in data.form.modes_of)
    least = math.nextafter(total, -math.inf)
    return max(0.0, math.nextafter(data.form.kernel.spectral_bound() - least, math.inf))
