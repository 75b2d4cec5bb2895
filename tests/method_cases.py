"""Small problems that the tests of methods, loop and results share, each beside plain NumPy formulas."""

from __future__ import annotations

import itertools
import string

import numpy as np

import restpoint as rp

Q = np.array([[1.0, 0.5, 0.0], [0.5, -2.0, 0.3], [0.0, 0.3, 0.7]])
B = np.array([0.3, -0.2, 0.1])


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def quadratic_problem(weight=0.1, radius=1.0, scale=1.0):
    """x'Qx/2 + B'x + weight ||x||_1 on the ball, indefinite Q."""
    block = rp.Block(rp.sets.L2Ball(radius), rp.penalties.L1(scale * weight))
    return rp.Problem(rp.smooth.Quadratic(scale * Q, scale * B), block)


def tensor(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def tensor_problem(A, weight=0.3):
    """-A(x_1, ..., x_d) + weight sum_i ||x_i||_1 on unit balls: the paper's sparse PCA."""
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weight))
    return rp.Problem(rp.smooth.Multilinear(A), [block] * A.ndim)


def unit_starts(shapes, *batch, seed=1):
    """Random points on the unit spheres."""
    rng, blocks = np.random.default_rng(seed), []
    for shape in shapes:
        x = rng.standard_normal((*batch, *shape))
        blocks.append(x / np.linalg.norm(x, axis=-1, keepdims=True))
    return tuple(blocks)


def contraction(A, xs, i):
    """b = A(x_1, ., x_d) with mode i left open: minus the partial gradient of -A(x)."""
    letters = string.ascii_lowercase[: A.ndim]
    others = [k for k in range(A.ndim) if k != i]
    spec = ",".join([letters, *(letters[k] for k in others)]) + "->" + letters[i]
    return np.einsum(spec, A, *(xs[k] for k in others))


def tensor_value(A, xs, weight):
    return -(contraction(A, xs, 0) @ xs[0]) + weight * sum(np.sum(np.abs(x)) for x in xs)


def ball_gap(g, x, weight, radius=1.0):
    """max over ||y|| <= radius of g'(x - y) + weight (||x||_1 - ||y||_1)."""
    return g @ x + weight * np.sum(np.abs(x)) + radius * np.linalg.norm(soft(g, weight))


def tensor_gaps(A, xs, weight):
    return np.array([ball_gap(-contraction(A, xs, i), x, weight) for i, x in enumerate(xs)])


def cosine(size, **more):
    """sum_j cos(2 x_j), a user's function with two-sided curvature 4."""
    return rp.smooth.Function(
        lambda x: float(np.sum(np.cos(2 * x))),
        lambda x: -2 * np.sin(2 * x),
        shapes=size,
        constant=4.0,
        **more,
    )


ORDERS = (
    rp.Jacobi(),
    rp.GaussSeidel(),
    rp.GaussSeidel("cyclic"),
    rp.MaxImprovement("gap"),
    rp.MaxImprovement("decrease"),
    rp.RandomOrder(),
)
STEPS = (rp.ConditionalGradient, rp.ProximalGradient)
# Every order with every step, with a constant that is joint for the tensor of `block_cases`.
METHODS = [step(order, rp.Majorant(9.0)) for step, order in itertools.product(STEPS, ORDERS)]
FULL_STEPS = [
    rp.ConditionalGradient(order, rp.FullStep())
    for order in (rp.GaussSeidel(), rp.MaxImprovement("gap"), rp.MaxImprovement(), rp.RandomOrder())
]


def name_of(method):
    """A short id for a test."""
    order = str(method.order).replace("first=", "").replace("rule=", "").replace("()", "")
    return f"{type(method).__name__}-{order}-{type(method.smoothness).__name__}"
