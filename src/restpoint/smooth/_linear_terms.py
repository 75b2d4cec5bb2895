"""Finite sums of functions of one linear form each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, namespace, to_host
from restpoint.kernels.spectra import squared_spectral_norm
from restpoint.smooth import _checks
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth

if TYPE_CHECKING:
    from restpoint.sets import Set


class LinearTerms(Smooth):
    r"""f(x) = sum_i phi_i(a_i'x), a_i the rows of A, phi_i >= 0 convex with phi_i'' <= ``_curvature``.

    Joint constant, p = 2: curvature ||A||_2^2 (Hessian = A' diag(phi'') A). A gradient costs two products with A.
    """

    _curvature: float

    def __init__(self, A: Any) -> None:
        self.A = _checks.tensor("A", A, order=2)
        self.shapes = ((int(self.A.shape[1]),),)

    @abstractmethod
    def _terms_of(self, t: Array) -> tuple[Array, Array]:
        """f and the phi_i' at the linear forms t, of shape ``(*batch, N)``."""

    @abstractmethod
    def _slopes(self, t: Array, index: Array) -> Array:
        """The phi_i' of the summands in ``index``."""

    def value(self, xs: Blocks) -> Array:
        return self._terms_of(xs[0] @ self.A.T)[0]

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        value, slopes = self._terms_of(xs[0] @ self.A.T)
        return value, (slopes @ self.A,)

    def facts(self, sets: Sequence[Set]) -> Facts:
        del sets
        constant = self._curvature * self._squared_norm
        curvature = Curvature((constant,)) if math.isfinite(constant) else None
        return Facts(joint=curvature, blockwise=curvature, convex=True, lower_bound=0.0)

    @property
    def terms(self) -> int:
        return int(self.A.shape[0])

    def batch_gradient(self, xs: Blocks, index: Array) -> Blocks:
        xp, (x,) = namespace(xs[0]), xs
        chosen = xp.take(self.A, xp.reshape(index, (-1,)), axis=0)
        rows = xp.reshape(chosen, (*index.shape, x.shape[-1]))
        slopes = self._slopes((rows @ x[..., None])[..., 0], index)
        sums = (slopes[..., None, :] @ rows)[..., 0, :]
        return ((self.terms / index.shape[-1]) * sums,)

    @cached_property
    def _squared_norm(self) -> float:
        """An upper bound on ||A||_2^2."""
        return squared_spectral_norm(np.asarray(to_host(self.A), dtype=np.float64))
