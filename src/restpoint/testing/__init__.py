"""Laws and catalogue: how this library tests its pieces, and how you test yours.

``check_oracle(block, shape)`` and ``check_smooth(smooth, sets)`` try to refute what a piece declares about
itself and raise ``LawBroken`` with the place where they succeed.
"""

from restpoint.testing.catalogue import PENALTIES, SETS, Draw, PenaltyCase, SetCase
from restpoint.testing.laws import (
    LawBroken,
    check_oracle,
    check_penalty,
    check_set,
    check_smooth,
)

__all__ = [
    "PENALTIES",
    "SETS",
    "Draw",
    "LawBroken",
    "PenaltyCase",
    "SetCase",
    "check_oracle",
    "check_penalty",
    "check_set",
    "check_smooth",
]
