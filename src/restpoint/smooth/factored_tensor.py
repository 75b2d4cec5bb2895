"""Multilinear forms of tensors that are given by their factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from restpoint.array import namespace
from restpoint.errors import ShapeError, described
from restpoint.kernels.factored import Factored
from restpoint.smooth import _checks
from restpoint.smooth.base import Blocks
from restpoint.smooth.multilinear import MultilinearForm


class FactoredTensor(MultilinearForm):
    r"""f(x) = sign sum_r weights_r prod_m a_mr'x_m: a tensor in CP form, never formed.

    ``cp`` is a pair (weights, factors), such as tensorly's CPTensor, or a ktensor of pyttb: factors are matrices
    (n_m, R), weights have R entries or are None (all 1). A gradient costs O(R sum n_m). Facts: see ``MultilinearForm``.

    >>> import numpy as np
    >>> f = FactoredTensor((None, [np.array([[1.0], [2.0]]), np.array([[3.0], [0.0]])]), sign=1.0)
    >>> float(f.value((np.array([1.0, 1.0]), np.array([1.0, 5.0]))))
    9.0
    """

    def __init__(self, cp: Any, sign: float = -1.0, *, tied: Sequence[int] | None = None) -> None:
        if hasattr(cp, "factor_matrices"):  # a ktensor of pyttb
            cp = cp.weights, cp.factor_matrices
        try:
            weights, factors = cp
            factors = list(factors)
        except (TypeError, ValueError) as error:
            raise ShapeError(
                f"cp must be a pair (weights, factors) with one matrix for each mode, got {described(cp)}"
            ) from error
        matrices = [
            _checks.tensor(f"factors[{m}]", factor, order=2) for m, factor in enumerate(factors)
        ]
        if len(matrices) < 2:
            raise ShapeError(f"a multilinear form needs at least 2 factors, got {len(matrices)}")
        ranks = [int(matrix.shape[1]) for matrix in matrices]
        if len(set(ranks)) > 1:
            raise ShapeError(f"all factors must have the same number of columns, got {ranks}")
        xp, like = namespace(*matrices), matrices[0]
        weights = (
            xp.ones(ranks[0], dtype=like.dtype, device=like.device)
            if weights is None
            else _checks.vector(
                "weights", weights, ranks[0], like, because=f"the factors have {ranks[0]} columns"
            )
        )
        weights, *matrices = _checks.together(weights, *matrices)
        super().__init__(Factored(weights, tuple(matrices)), sign, tied)


def rank_one(xs: Blocks, weight: float = 1.0) -> tuple[Any, list[Any]]:
    """The rank-one tensor weight x_1 o ... o x_d as (weights, factors), which tensorly's CPTensor takes.

    >>> import numpy as np
    >>> weights, factors = rank_one((np.array([1.0, 0.0]), np.array([0.0, 1.0])), 2.0)
    >>> weights, factors[0].shape
    (array([2.]), (2, 1))
    """
    xp = namespace(*xs)
    for i, x in enumerate(xs):
        if x.ndim != 1:
            raise ShapeError(
                f"xs[{i}] has shape {tuple(x.shape)}; expected one vector, not a batch"
            )
    weights = xp.full((1,), weight, dtype=xs[0].dtype, device=xs[0].device)
    return weights, [x[:, None] for x in xs]
