"""restpoint finds points of rest of structured nonconvex problems, and proves that they are.

minimise  f(x_1, ..., x_d) + h_1(x_1) + ... + h_d(x_d)   subject to  x_i in S_i
"""

from typing import TYPE_CHECKING, Any

from restpoint import bounds, certificates, errors, methods, oracles, paper, penalties, sets, smooth
from restpoint.certificates import Certificate, Measures, certify, measures
from restpoint.errors import RestpointError
from restpoint.info import info
from restpoint.methods import (
    Armijo,
    ConditionalGradient,
    Continuation,
    Doubling,
    Exact,
    FullStep,
    GaussSeidel,
    Jacobi,
    Majorant,
    MaxImprovement,
    MiniBatch,
    Momentum,
    ProximalGradient,
    RandomOrder,
    Smoothed,
    Universal,
    WithoutGuarantee,
)
from restpoint.omega import omega, omega_inverse
from restpoint.problem import Block, Problem
from restpoint.run import (
    Checkpoint,
    Explanation,
    Progress,
    Relative,
    Result,
    Retire,
    Status,
    Stop,
    View,
    explain,
    iterate,
    load,
    resume,
    solve,
)

if TYPE_CHECKING:
    from restpoint import testing

__all__ = [
    "Armijo",
    "Block",
    "Certificate",
    "Checkpoint",
    "ConditionalGradient",
    "Continuation",
    "Doubling",
    "Exact",
    "Explanation",
    "FullStep",
    "GaussSeidel",
    "Jacobi",
    "Majorant",
    "MaxImprovement",
    "Measures",
    "MiniBatch",
    "Momentum",
    "Problem",
    "Progress",
    "ProximalGradient",
    "RandomOrder",
    "Relative",
    "RestpointError",
    "Result",
    "Retire",
    "Smoothed",
    "Status",
    "Stop",
    "Universal",
    "View",
    "WithoutGuarantee",
    "bounds",
    "certificates",
    "certify",
    "errors",
    "explain",
    "info",
    "iterate",
    "load",
    "measures",
    "methods",
    "omega",
    "omega_inverse",
    "oracles",
    "paper",
    "penalties",
    "resume",
    "sets",
    "smooth",
    "solve",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name == "testing":  # users' test suites want it, solving does not
        import importlib

        return importlib.import_module("restpoint.testing")
    if name == "__version__":
        from importlib.metadata import version

        return version("restpoint")
    raise AttributeError(f"module 'restpoint' has no attribute {name!r}")
