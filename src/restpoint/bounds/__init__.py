r"""What the theorems promise: the counts of the paper and of its sharper forms, one function each.

Every function takes the data of one theorem, numbers or one entry per start (they broadcast), and
returns a ``Bound``: within ``count`` looks at an iterate, one of them has a gap of at most ``eps``.
What certifies is the point looked at, so N looks are N subproblems and N - 1 updates (theory E9).

Most counts share one form, max{1, ceil(delta / omega_D(eps))}: each iterate with a gap above eps
lowers Phi by more than omega_D(eps), and Phi can fall by delta = Phi(x1) - min Phi in all. A
``delta`` that is too large (from any lower bound on Phi) makes the count larger, never wrong.

| function | of |
|---|---|
| ``lemma_2_2`` | the gap that a proximal step leaves |
| ``theorem_3_1``, ``corollary_3_2``, ``theorem_3_3`` | Algorithms 1 and 2 |
| ``theorem_5_2``, ``theorem_5_3``, ``addition_6``, ``addition_7``, ``addition_13`` | several blocks |
| ``addition_3``, ``addition_3_known_p``, ``addition_4`` | steps found by trial |
| ``addition_5`` | gradients with a declared error |
| ``theorem_4_3``, ``corollary_4_4``, ``addition_8`` | sampled gradients |
| ``theorem_4_6``, ``addition_11`` | smoothing of a concave part |
"""

from restpoint.bounds._bound import Bound
from restpoint.bounds._cyclic import addition_7
from restpoint.bounds._inexact import addition_5
from restpoint.bounds._sampling import addition_8, corollary_4_4, theorem_4_3
from restpoint.bounds._smoothing import addition_11, theorem_4_6
from restpoint.bounds._theorems import (
    addition_6,
    addition_13,
    corollary_3_2,
    lemma_2_2,
    theorem_3_1,
    theorem_3_3,
    theorem_5_2,
    theorem_5_3,
)
from restpoint.bounds._trials import addition_3, addition_3_known_p, addition_4

__all__ = [
    "Bound",
    "addition_3",
    "addition_3_known_p",
    "addition_4",
    "addition_5",
    "addition_6",
    "addition_7",
    "addition_8",
    "addition_11",
    "addition_13",
    "corollary_3_2",
    "corollary_4_4",
    "lemma_2_2",
    "theorem_3_1",
    "theorem_3_3",
    "theorem_4_3",
    "theorem_4_6",
    "theorem_5_2",
    "theorem_5_3",
]
