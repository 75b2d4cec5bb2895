"""How the solve went that ended in a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from restpoint.certificates import Certificate
from restpoint.run import Result


@dataclass(frozen=True, eq=False, repr=False)
class Convergence:
    """Value and gap over the sweeps of one solve, and what is proved at its end.

    sweeps   0 at the start of the solve; long runs are thinned, evenly
    value    Phi after each of them; where components were refined together, F
    gap      what the run itself saw there; of a joint refinement the larger one of the vectors' and the weights', and
             NaN where none was asked for
    proved   the certified gap of the point that is returned
    eps      what gaps were compared with

    >>> Convergence(
    ...     np.arange(3), np.array([0.0, -2.0, -3.0]), np.array([4.0, 1.0, 0.0]), 1e-9, 1e-6
    ... )
    <3 values over 2 sweeps, from 0 to -3; gap 1e-09 (eps 1e-06)>
    """

    sweeps: np.ndarray
    value: np.ndarray
    gap: np.ndarray
    proved: float
    eps: float

    @classmethod
    def of(cls, one: Result, eps: float) -> Self:
        """Of a single run; a batch goes on after one of its starts has ended, its trace does not."""
        rows = one.trace.iteration <= int(one.iterations)
        sweeps, value, gap = one.trace.iteration, one.trace.value, one.trace.gap
        return cls(sweeps[rows], value[rows], gap[rows], float(one.certificate.max), eps)

    @classmethod
    def at(cls, certificate: Certificate, eps: float) -> Self:
        """Of a point that no sweep led to."""
        gap = float(certificate.max)
        return cls(
            np.zeros(1, int), np.array([float(certificate.value)]), np.array([gap]), gap, eps
        )

    def then(self, other: Convergence) -> Convergence:
        """The same problem, gone on with from where this ended."""
        later = other.sweeps > 0
        return Convergence(
            np.concatenate((self.sweeps, self.sweeps[-1] + other.sweeps[later])),
            np.concatenate((self.value, other.value[later])),
            np.concatenate((self.gap, other.gap[later])),
            other.proved,
            other.eps,
        )

    def plot(self, axes: Any = None) -> np.ndarray:
        """Draw it, as ``SparseTensorPCA.plot_convergence`` does: the two axes."""
        from restpoint.models.tensor_pca.drawing import draw_convergence

        return draw_convergence([self], axes)

    def __repr__(self) -> str:
        return (
            f"<{len(self.value)} values over {self.sweeps[-1]} sweeps, from {self.value[0]:.6g} to "
            f"{self.value[-1]:.6g}; gap {self.proved:.3g} (eps {self.eps:.3g})>"
        )
