"""The two convex subproblems of a (set, penalty) pair: few general rules, each with its theorem.

A new rule costs one file and one line in ``RULES``.
"""

from __future__ import annotations

from restpoint.errors import CapabilityError, ShapeError
from restpoint.oracles.ball import BallSeparable, CenteredBallSublinear
from restpoint.oracles.base import Answer, Oracle
from restpoint.oracles.box import BoxSeparable
from restpoint.oracles.declared import DeclaredOracle, DeclaredPenalty, DeclaredSet, declared
from restpoint.oracles.nonnegative_ball import NonnegativeBallSeparable
from restpoint.oracles.norm_ball import NormBallSameNorm
from restpoint.oracles.projected import LinearPenalty, SolidSeparable
from restpoint.oracles.ridge import Ridge
from restpoint.oracles.shrunk_ball import CenteredBallAnalysis, NullSpaceBallSeparable
from restpoint.oracles.simplex import SimplexSeparable
from restpoint.oracles.simplex_entropy import SimplexEntropy
from restpoint.oracles.spectral import Spectral
from restpoint.penalties import Penalty
from restpoint.sets import Set

# Tried in this order: closed forms first.
RULES: tuple[type[Oracle], ...] = (
    CenteredBallSublinear,
    BallSeparable,
    BoxSeparable,
    SimplexSeparable,
    NonnegativeBallSeparable,
    CenteredBallAnalysis,
    NullSpaceBallSeparable,
    Spectral,
    LinearPenalty,
    SolidSeparable,
    NormBallSameNorm,
    SimplexEntropy,
    Ridge,
)

__all__ = [
    "RULES",
    "Answer",
    "BallSeparable",
    "BoxSeparable",
    "CenteredBallAnalysis",
    "CenteredBallSublinear",
    "DeclaredOracle",
    "DeclaredPenalty",
    "DeclaredSet",
    "LinearPenalty",
    "NonnegativeBallSeparable",
    "NormBallSameNorm",
    "NullSpaceBallSeparable",
    "Oracle",
    "Ridge",
    "SimplexEntropy",
    "SimplexSeparable",
    "SolidSeparable",
    "Spectral",
    "declared",
    "find",
]


def find(set: Set, penalty: Penalty) -> Oracle:
    """The first rule that answers for the pair; if there is none, what each of them misses.

    >>> from restpoint.penalties import L1
    >>> from restpoint.sets import L2Ball
    >>> type(find(L2Ball(), L1(0.1))).__name__
    'CenteredBallSublinear'
    """
    event_ndims = [getattr(part, "event_ndim", 1) for part in (set, penalty)]
    if event_ndims[0] != event_ndims[1]:
        raise ShapeError(
            f"{type(set).__name__} has event_ndim {event_ndims[0]}, but {type(penalty).__name__} has "
            f"{event_ndims[1]}; give both the number of axes that one block has"
        )
    for rule in RULES:
        if rule.fits(set, penalty):
            return rule(set, penalty)
    lines = [
        f"  {rule.__name__}: not met: {'; '.join(rule.missing(set, penalty))}" for rule in RULES
    ]
    raise CapabilityError(
        f"no rule answers for {type(set).__name__} x {type(penalty).__name__}:\n"
        + "\n".join(lines)
        + "\nChange the pair so that one of them fits, or bring your own oracle: see restpoint.oracles.declared"
    )
