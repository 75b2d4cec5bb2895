"""Convex penalties, one per file."""

from restpoint.penalties.analysis_l1 import AnalysisL1
from restpoint.penalties.base import Penalty, SeparableSublinear
from restpoint.penalties.elastic_net import ElasticNet
from restpoint.penalties.entropy import Entropy
from restpoint.penalties.group import Group
from restpoint.penalties.l1 import L1
from restpoint.penalties.l2_norm import L2Norm
from restpoint.penalties.l_infinity import LInfinity
from restpoint.penalties.nuclear import Nuclear
from restpoint.penalties.owl import OWL
from restpoint.penalties.total_variation import TotalVariation
from restpoint.penalties.zero import Zero

__all__ = [
    "L1",
    "OWL",
    "AnalysisL1",
    "ElasticNet",
    "Entropy",
    "Group",
    "L2Norm",
    "LInfinity",
    "Nuclear",
    "Penalty",
    "SeparableSublinear",
    "TotalVariation",
    "Zero",
]
