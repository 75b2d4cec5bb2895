"""Sparse tensor PCA."""

from restpoint.models.tensor_pca.component import TensorPath
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.models.tensor_pca.cv import SparseTensorPCACV
from restpoint.models.tensor_pca.estimator import SparseTensorPCA
from restpoint.models.tensor_pca.joint import JointFit, refine
from restpoint.models.tensor_pca.starts import Solution, Starts

__all__ = [
    "Convergence",
    "JointFit",
    "Solution",
    "SparseTensorPCA",
    "SparseTensorPCACV",
    "Starts",
    "TensorPath",
    "refine",
]
