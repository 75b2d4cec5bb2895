"""Compact convex sets, one per file."""

from restpoint.sets.base import Set
from restpoint.sets.birkhoff import Birkhoff
from restpoint.sets.box import Box
from restpoint.sets.capped_simplex import CappedSimplex
from restpoint.sets.convex_hull import ConvexHull
from restpoint.sets.ellipsoid import Ellipsoid
from restpoint.sets.fantope import Fantope
from restpoint.sets.group_ball import GroupBall
from restpoint.sets.k_sparse_polytope import KSparsePolytope
from restpoint.sets.l1_ball import L1Ball
from restpoint.sets.l2_ball import L2Ball
from restpoint.sets.lp_ball import LpBall
from restpoint.sets.nonnegative_ball import NonnegativeBall
from restpoint.sets.nuclear_ball import NuclearBall
from restpoint.sets.null_space_ball import NullSpaceBall
from restpoint.sets.owl_ball import OWLBall
from restpoint.sets.polytope import Polytope
from restpoint.sets.simplex import Simplex
from restpoint.sets.spectral_ball import SpectralBall
from restpoint.sets.spectraplex import Spectraplex

__all__ = [
    "Birkhoff",
    "Box",
    "CappedSimplex",
    "ConvexHull",
    "Ellipsoid",
    "Fantope",
    "GroupBall",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LpBall",
    "NonnegativeBall",
    "NuclearBall",
    "NullSpaceBall",
    "OWLBall",
    "Polytope",
    "Set",
    "Simplex",
    "SpectralBall",
    "Spectraplex",
]
