"""Differentiable functions and what is known about them, one per file."""

from restpoint.smooth.base import Curvature, Facts, Smooth, Sweep
from restpoint.smooth.canonical_polyadic import CanonicalPolyadic
from restpoint.smooth.concave_quadratic import ConcaveQuadratic
from restpoint.smooth.factored_tensor import FactoredTensor, rank_one
from restpoint.smooth.function import Function
from restpoint.smooth.inexact import Inexact
from restpoint.smooth.least_squares import LeastSquares
from restpoint.smooth.logistic import Logistic
from restpoint.smooth.moment_tensor import MomentTensor
from restpoint.smooth.multilinear import Multilinear
from restpoint.smooth.power_sum import PowerSum
from restpoint.smooth.quadratic import Quadratic
from restpoint.smooth.sparse_tensor import SparseTensor
from restpoint.smooth.sum import Sum

__all__ = [
    "CanonicalPolyadic",
    "ConcaveQuadratic",
    "Curvature",
    "FactoredTensor",
    "Facts",
    "Function",
    "Inexact",
    "LeastSquares",
    "Logistic",
    "MomentTensor",
    "Multilinear",
    "PowerSum",
    "Quadratic",
    "Smooth",
    "SparseTensor",
    "Sum",
    "Sweep",
    "rank_one",
]
