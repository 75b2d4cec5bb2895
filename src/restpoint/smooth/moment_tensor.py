"""Multilinear forms of moment and cumulant tensors of samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from restpoint.array import Array, gamma, inner, namespace, truth
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.kernels import covariance
from restpoint.kernels.moments import Moments, distinct, products
from restpoint.smooth import _checks
from restpoint.smooth._rounding import SLACK, underflow
from restpoint.smooth.base import Blocks
from restpoint.smooth.multilinear import MultilinearForm


class MomentTensor(MultilinearForm):
    r"""f(x) = sign M(x_1, ..., x_d), the d-th moment tensor of samples or their cumulant, d = 3 or 4, never formed.

    M(x_1, ..., x_d) = (1/N) sum_r prod_m a_r'x_m for the rows a_r of X (N samples, n features), less their mean unless
    ``centered=False``. ``cumulant=True`` subtracts from the fourth moment what a Gaussian has, C(x_1, x_2) C(x_3, x_4)
    and the two other pairings, C the covariance; third cumulants are central moments. ``tied=(0,) * order``, one vector
    in all modes, is the natural use: the directions of largest skewness or kurtosis.

    ``whiten=True`` takes a_r = W'(x_r - mean) with W'CW = I, W = E diag(eigenvalues)^(-1/2) of the covariance (of the
    leading r eigenvalues for ``whiten=r``); points then live in r dimensions, and W x is the direction in the data. A
    covariance of smaller rank is refused. Nothing is divided by N - 1. ``mean`` and ``whitening`` are floating-point
    numbers that define the tensor. Facts: see ``MultilinearForm``; the spectral norm is bounded by eigenvalues.

    A gradient costs one read of X (NumPy arrays with their rows one after the other), no copy, and few temporaries. As
    a sum of N terms it can be sampled (``MiniBatch``): rows for the moment, while pairings are taken in full.
    X is dense: a sparse matrix would have to be centred in products of their own. A name of a .npy file is mapped into
    memory.

    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> f = MomentTensor(X, 4, sign=1.0, tied=(0, 0, 0, 0))
    >>> value, (gradient,) = f.value_and_gradient((np.array([1.0, 1.0]),))
    >>> float(value), gradient  # (1/4)(1 + 1 + 16 + 16), and four times the partial
    (8.5, array([ 2., 32.]))
    >>> float(
    ...     MomentTensor(X, 4, cumulant=True, sign=1.0).value((np.array([1.0, 0.0]),) * 4)
    ... )  # 1/2 - 3/4
    -0.25
    """

    kernel: Moments

    def __init__(
        self,
        X: Any,
        order: int,
        *,
        cumulant: bool = False,
        centered: bool = True,
        whiten: bool | int = False,
        sign: float = -1.0,
        tied: Sequence[int] | None = None,
    ) -> None:
        data = _samples(_checks.memory_mapped("X", X) if isinstance(X, (str, Path)) else X)
        if (
            not isinstance(order, (int, np.integer))
            or isinstance(order, bool)
            or order not in (3, 4)
        ):
            raise DataError(
                f"order must be 3 or 4, got {order!r}; for order 2 use Quadratic with the covariance"
            )
        cumulant, centered = truth("cumulant", cumulant), truth("centered", centered)
        if cumulant and not centered:
            raise DataError("cumulant=True needs centered=True: cumulants do not feel the mean")
        if whiten is not False and not centered:
            raise DataError("whiten needs centered=True: the covariance is taken about the mean")
        mean = covariance.mean(data) if centered else None
        W = None if whiten is False else _whitening(covariance.covariance(data, mean), whiten)
        kernel = Moments(data, int(order), cumulant=cumulant, mean=mean, whitening=W)
        if not np.isfinite(kernel.largest()):
            raise DataError(
                f"X has entries so large that products of {order} overflow; divide X by its largest entry"
            )
        super().__init__(kernel, sign, tied)

    @property
    def mean(self) -> np.ndarray | None:
        """The mean that is subtracted; None if nothing is."""
        return self.kernel.mean

    @property
    def whitening(self) -> np.ndarray | None:
        """W, of shape (n, components); None without whitening."""
        return self.kernel.whitening

    @property
    def terms(self) -> int:
        return self.kernel.samples

    def batch_gradient(self, xs: Blocks, index: Array) -> Blocks:
        """The mean over the rows in ``index``, less the pairings in full: products of sampled means would be biased."""
        kernel, vectors = self.kernel, self._vectors(xs)
        xp, batch = namespace(*xs), xs[0].shape[:-1]
        places, firsts = distinct(vectors)
        ys = [
            xp.reshape(kernel.into_features(vectors[m]), (*batch, kernel.features)) for m in firsts
        ]
        chosen = xp.take(kernel.X, xp.reshape(index, (-1,)), axis=0)
        if kernel._mean is not None:
            chosen = chosen - kernel._mean
        rows = xp.reshape(chosen, (*index.shape, kernel.features))
        c = [(rows @ y[..., None])[..., 0] for y in ys]
        counts = [places.count(u) for u in range(len(firsts))]
        covered = [kernel.covariance_times(vectors[m]) for m in firsts] if kernel.pairs else []
        partials = []
        for u, first in enumerate(firsts):
            weights = products(c, counts, but=u) / index.shape[-1]
            sums = kernel.from_features((weights[..., None, :] @ rows)[..., 0, :])
            if kernel.pairs:
                sums = sums - kernel.pairings(vectors, tuple(covered[k] for k in places), first)
            partials.append(sums)
        return self._collected(self._signed(tuple(partials[u] for u in places)))

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """The errors that the kernel follows step by step, plus the sums over tied modes and the product with x_1."""
        if not self.kernel.in_double(xs):
            return None
        vectors, x = self._vectors(xs), namespace(*xs).abs(xs[0])
        errors, sizes = self.kernel.errors(vectors)
        entries = tuple(
            SLACK * (error + gamma(len(self.modes_of[self.block_of[m]])) * size)
            for m, (error, size) in enumerate(zip(errors, sizes, strict=True))
        )
        value = inner(x, errors[0] + gamma(self.kernel.sizes[0]) * sizes[0])
        return SLACK * value + underflow(x, 4 * x.shape[-1]), self._collected(entries)


def _samples(X: Any) -> Array:
    """Two axes, at least two samples."""
    if type(X).__module__.startswith("scipy.sparse"):
        raise CapabilityError("X is sparse, which MomentTensor cannot use; convert it: X.toarray()")
    data = _checks.tensor("X", X, order=2)
    if data.shape[0] < 2:
        raise ShapeError(
            f"X has shape {tuple(data.shape)}: one sample has no moments; expected (samples, features)"
        )
    return data


def _whitening(C: np.ndarray, whiten: bool | int) -> np.ndarray:
    features = C.shape[0]
    if whiten is not True and not (_checks.is_size(whiten) and whiten <= features):
        raise DataError(
            f"whiten must be True, False or a number of components from 1 to {features}, got {whiten!r}"
        )
    return covariance.whitening(C, None if whiten is True else int(whiten))
