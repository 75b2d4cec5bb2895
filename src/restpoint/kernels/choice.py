"""Which way to read a dense tensor: a pure function of sizes, dtype, starts and the zeros of the vectors.

Costs are in units of one read of the tensor at the speed of memory, on one core: in float64 as measured by
``benchmarks/bench_dense.py``, in float32 and with conversion from 1 to 48 starts of order 4, n = 60. Machines differ
in how fast they multiply beside how fast they read: on two of them one pass and products were equally fast at 16 and at
64 starts. The table changes over between.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from restpoint.errors import DataError

Way = Literal["one-pass", "support", "products"]
WAYS: tuple[Way, ...] = ("one-pass", "support", "products")

# A variable of the environment that names one way for everything; "reference" is heeded where kernels are made.
VARIABLE = "RESTPOINT_KERNEL"

# Tensors up to this many entries lie in cache, and two matrix products beat the start of a compiled loop.
SMALL = 20_000


class Costs(NamedTuple):
    """One pass, and two matrix products, for B starts: what there is to pay in any case, and per start."""

    one_pass: float
    one_pass_per_start: float
    products: float
    products_per_start: float

    def __str__(self) -> str:
        return (
            f"one pass {self.one_pass} + {self.one_pass_per_start} a start, "
            f"products {self.products} + {self.products_per_start} a start"
        )


# Entries stored in another precision than that of the vectors are converted for a product, before it begins.
TABLE = {
    "float64": Costs(0.8, 0.29, 4.5, 0.14),
    "float32": Costs(0.9, 0.30, 2.5, 0.125),
    "converted": Costs(0.7, 0.33, 9.5, 0.33),
}
# The listed rows for both groups, and for one group over ranges of columns, per read of just these.
SUPPORT_BOTH, SUPPORT_ROWS = 1.3, 1.3


@dataclass(frozen=True)
class Support:
    """For each mode, in the order of memory, the share of its vector's entries that are not 0, per start."""

    shares: tuple[np.ndarray, ...]
    first: int

    @classmethod
    def of(cls, vectors: tuple[np.ndarray, ...], first: int) -> Support:
        """That of vectors of shape (starts, size)."""
        return cls(tuple(np.count_nonzero(x, axis=-1) / x.shape[-1] for x in vectors), first)

    @property
    def full(self) -> np.ndarray:
        """The share of rows whose factors are all different from 0."""
        return np.asarray(math.prod(self.shares[: self.first]))

    @property
    def half(self) -> np.ndarray:
        """The share of rows with exactly one factor 0: needed for the gradient of that mode only."""
        own = self.shares[: self.first]
        of_modes = [(1.0 - own[m]) * math.prod(own[:m] + own[m + 1 :]) for m in range(len(own))]
        return np.sum(of_modes, axis=0)

    @property
    def columns(self) -> np.ndarray:
        """The share of columns that lie in a stretch of the last mode with all other factors different from 0."""
        return np.asarray(math.prod(self.shares[self.first : -1]))

    @property
    def read(self) -> float:
        """The share of the tensor that a start's partials need, as far as whole stretches can be skipped: the mean."""
        return float(np.mean(self.full + self.half * self.columns))

    @property
    def cost(self) -> float:
        """The cost of all partials of all starts, each by itself, in reads."""
        return float(np.sum(SUPPORT_BOTH * self.full + SUPPORT_ROWS * self.half * self.columns))


def support_cost(vectors: tuple[np.ndarray, ...], first: int) -> float:
    """``Support.cost`` of vectors of shape (starts, size); quick where none holds a zero."""
    if all(np.count_nonzero(x) == x.size for x in vectors):
        return SUPPORT_BOTH * len(vectors[0])
    return Support.of(vectors, first).cost


def choose(
    entries: int, starts: int, support: float, stored: str = "float64", working: str = "float64"
) -> Way:
    """The cheapest way for ``starts`` starts that would cost ``support`` reads together, each on its own support.

    ``stored`` is the dtype of the tensor, ``working`` that of the vectors.

    >>> (
    ...     choose(60**4, 1, 1.3),
    ...     choose(60**4, 1, 0.1),
    ...     choose(60**4, 200, 260.0),
    ...     choose(60**4, 200, 260.0, "float32"),
    ...     choose(8**4, 1, 0.1),
    ... )
    ('one-pass', 'support', 'products', 'one-pass', 'products')
    """
    forced = named()
    if forced in WAYS and starts:
        return forced
    if entries <= SMALL or starts == 0:
        return "products"
    table = TABLE[stored if stored == working else "converted"]
    of_way: dict[Way, float] = {
        "one-pass": table.one_pass + table.one_pass_per_start * starts,
        "support": support,
        "products": table.products + table.products_per_start * starts,
    }
    return min(of_way, key=lambda way: of_way[way])


def named() -> str | None:
    """The way that the environment asks for, if any."""
    word = os.environ.get(VARIABLE) or None
    if word is not None and word not in (*WAYS, "reference"):
        raise DataError(
            f"the environment variable {VARIABLE} must be one of {', '.join((*WAYS, 'reference'))}, got {word!r}"
        )
    return word
