"""Contractions of tensors behind one protocol; ``reference`` is the definition."""

from restpoint.kernels.base import Kept, Kernel, Vectors
from restpoint.kernels.dense import Dense, dense
from restpoint.kernels.reference import Reference
from restpoint.kernels.threads import set_threads, use_threads

__all__ = ["Dense", "Kept", "Kernel", "Reference", "Vectors", "dense", "set_threads", "use_threads"]
