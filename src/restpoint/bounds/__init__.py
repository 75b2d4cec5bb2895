r"""How many iterations the theorems allow: the counts N of the paper and of its sharper forms.

Every function takes the data of one theorem, numbers or one entry per start (they broadcast), and
returns a ``Bound``: within ``count`` looks at an iterate, one of them has a gap of at most ``eps``.
What certifies is the point looked at, so N looks are N subproblems and N - 1 updates (theory E9).

All counts share one form, max{1, ceil(delta / omega_D(eps))}: each iterate with a gap above eps
lowers Phi by more than omega_D(eps), and Phi can fall by delta = Phi(x1) - min Phi in all. A
``delta`` that is too large (from any lower bound on Phi) makes the count larger, never wrong.
"""

from restpoint.bounds._bound import Bound
from restpoint.bounds._theorems import (
    addition_3,
    addition_6,
    addition_13,
    corollary_3_2,
    theorem_3_1,
    theorem_3_3,
    theorem_5_2,
    theorem_5_3,
)

__all__ = [
    "Bound",
    "addition_3",
    "addition_6",
    "addition_13",
    "corollary_3_2",
    "theorem_3_1",
    "theorem_3_3",
    "theorem_5_2",
    "theorem_5_3",
]
