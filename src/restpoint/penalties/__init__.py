"""Convex penalties, one per file."""

from restpoint.penalties.base import Penalty, SeparableSublinear
from restpoint.penalties.l1 import L1
from restpoint.penalties.zero import Zero

__all__ = ["L1", "Penalty", "SeparableSublinear", "Zero"]
