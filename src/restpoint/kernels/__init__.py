"""Tensor contractions behind one protocol, and proved spectral bounds."""

from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.reference import Reference

__all__ = ["Kept", "Kernel", "Reference", "Vectors"]
