"""From scores to classes: linear rules, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Added to a covariance, in units of its mean variance: scores of few samples may be collinear.
RIDGE = 1e-8


@dataclass(frozen=True)
class Rule:
    r"""delta_c(z) = z'M m_c - m_c'M m_c / 2 + log pi_c for scores z: linear discriminant analysis.

    ``metric`` is M, ``means`` the m_c, one row a class.
    """

    means: np.ndarray
    metric: np.ndarray
    priors: np.ndarray

    @property
    def slopes(self) -> np.ndarray:
        """(K, m)."""
        return self.means @ self.metric

    @property
    def intercepts(self) -> np.ndarray:
        """(K,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.priors)
        return logs - 0.5 * np.einsum("km,km->k", self.slopes, self.means)


def nearest_centroid(centroids: np.ndarray, priors: np.ndarray) -> Rule:
    """The nearest class mean in the plain metric of the scores; the priors alone, where no score tells anything.

    Nothing is known about the spread of new samples, so otherwise priors have no scale to be weighed by.
    """
    telling = bool(np.any(centroids))
    even = np.full(len(priors), 1.0 / len(priors))
    return Rule(centroids, np.eye(centroids.shape[1]), even if telling else priors)


def out_of_fold(
    scores: np.ndarray, code: np.ndarray, shares: np.ndarray, priors: np.ndarray
) -> tuple[Rule, np.ndarray]:
    r"""The rule from scores of samples that the directions had not seen, and the covariance of these within classes.

    Class means are pulled towards their mean by the share of their scatter that noise alone would give, as James and
    Stein do: with T = sum_c n_c (m_c - m)'M (m_c - m), of expectation (K - 1) r if classes do not differ in r scores,
    by max(0, 1 - (K - 1) r / T). So a rule that knows nothing says little.
    """
    counts = np.bincount(code, minlength=len(shares)).astype(np.float64)
    indicator = np.zeros((len(shares), len(code)))
    indicator[code, np.arange(len(code))] = 1.0 / counts[code]
    means = indicator @ scores
    rest = scores - means[code]
    freedom = max(1, len(code) - len(shares))
    covariance = rest.T @ rest / freedom
    rank, size = int(np.linalg.matrix_rank(covariance)), len(covariance)
    mean = float(np.trace(covariance)) / max(size, 1)
    if mean <= 0.0:
        return Rule(np.zeros_like(means), np.eye(size), priors), covariance
    metric = np.linalg.pinv(covariance + RIDGE * mean * np.eye(size), hermitian=True)
    centre = shares @ means
    away = means - centre
    T = float(np.einsum("k,km,ml,kl->", counts, away, metric, away))
    kept = max(0.0, 1.0 - (len(shares) - 1) * rank / T) if T > 0.0 else 0.0
    return Rule(centre + kept * away, metric, priors), covariance


def aligned(own: np.ndarray, centroids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The orthogonal R that turns the scores of a fold: its class means ``centroids`` R come closest to ``wanted``.

    Returns ``own`` R. Directions of a fold come in another order, with other signs (Procrustes).
    """
    U, _, V = np.linalg.svd(centroids.T @ wanted)
    return np.asarray(own @ U @ V)
