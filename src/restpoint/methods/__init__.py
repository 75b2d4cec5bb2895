"""Methods: four independent choices (step, order, smoothness, gradient) and the wrappers around them."""

from restpoint.methods.base import BlockMethod, Key, Look, Method, State, Work
from restpoint.methods.continuation import Continuation
from restpoint.methods.gauss_seidel import GaussSeidel
from restpoint.methods.gradients import Exact, Gradient, MiniBatch, Smoothed
from restpoint.methods.momentum import Momentum
from restpoint.methods.orders import Jacobi, MaxImprovement, Order, RandomOrder
from restpoint.methods.smoothness import FullStep, Majorant, Smoothness
from restpoint.methods.steps import ConditionalGradient, ProximalGradient
from restpoint.methods.trials import ROUNDING, Armijo, Doubling, Trials, Universal, Weighted
from restpoint.methods.wrappers import WithoutGuarantee

__all__ = [
    "ROUNDING",
    "Armijo",
    "BlockMethod",
    "ConditionalGradient",
    "Continuation",
    "Doubling",
    "Exact",
    "FullStep",
    "GaussSeidel",
    "Gradient",
    "Jacobi",
    "Key",
    "Look",
    "Majorant",
    "MaxImprovement",
    "Method",
    "MiniBatch",
    "Momentum",
    "Order",
    "ProximalGradient",
    "RandomOrder",
    "Smoothed",
    "Smoothness",
    "State",
    "Trials",
    "Universal",
    "Weighted",
    "WithoutGuarantee",
    "Work",
]
