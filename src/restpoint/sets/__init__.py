"""Compact convex sets, one per file."""

from restpoint.sets.base import Set
from restpoint.sets.box import Box
from restpoint.sets.l2_ball import L2Ball
from restpoint.sets.nonnegative_ball import NonnegativeBall
from restpoint.sets.null_space_ball import NullSpaceBall
from restpoint.sets.simplex import Simplex

__all__ = ["Box", "L2Ball", "NonnegativeBall", "NullSpaceBall", "Set", "Simplex"]
