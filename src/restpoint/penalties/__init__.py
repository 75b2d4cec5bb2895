"""Convex penalties, one per file."""

from restpoint.penalties.analysis_l1 import AnalysisL1
from restpoint.penalties.base import Penalty, SeparableSublinear
from restpoint.penalties.l1 import L1
from restpoint.penalties.zero import Zero

__all__ = ["L1", "AnalysisL1", "Penalty", "SeparableSublinear", "Zero"]
