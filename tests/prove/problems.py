"""Random problems for the long studies: every draw is named by a kind and a number, and nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import restpoint as rp
from prove import exact
from restpoint.reproduce.resisting import Sawtooth, Staircase, separable
from restpoint.smooth.power_sum import two_sided_factor

Rng = np.random.Generator

EXPONENTS = (1.1, 1.5, 2.0)
MOST_ITERATIONS = 2000  # runs that theory allows more are not looked at


@dataclass(frozen=True)
class Instance:
    """A problem, a method that a theorem covers, and how to run it."""

    kind: str
    problem: rp.Problem
    method: Any
    measure: str = "max"
    x0: tuple[np.ndarray, ...] | None = None
    starts: int | None = 3
    seed: int = 0
    eps: float = 1.0

    def solve(self, **more: Any) -> rp.Result:
        """Run it; the budget is what the theorem allows, and not one iteration more."""
        if "stop" not in more:
            allowed = min(float(np.max(self.bound().count)), MOST_ITERATIONS)
            more["stop"] = rp.Stop(max_iterations=int(allowed), measure=self.measure)
        if self.x0 is not None:
            return rp.solve(self.problem, self.method, eps=self.eps, x0=self.x0, **more)
        starts = {"starts": self.starts, "rng": self.seed}
        return rp.solve(self.problem, self.method, eps=self.eps, **starts, **more)

    def bound(self) -> rp.bounds.Bound:
        """The bound of every start, from a run that takes no step."""
        none = rp.Stop(max_iterations=0, measure=self.measure)
        return self.solve(stop=none).bound


def generator(kind: str, number: int) -> Rng:
    """The random numbers of one instance."""
    return np.random.default_rng([sum(kind.encode()) * 1009 + len(kind), number])


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


# --- sets and penalties --------------------------------------------------------------------------


def random_box(rng: Rng, n: int, scale: float = 1.0) -> rp.sets.Box:
    """Unequal widths; around the origin, beside it, or in the positive orthant."""
    width = scale * np.exp(rng.uniform(-2.0, 0.5, n))
    place = rng.integers(3)
    center = (0.0, rng.normal(size=n) * scale, 0.5 * width)[place]
    return rp.sets.Box(center - 0.5 * width, center + 0.5 * width)


def random_set(rng: Rng, n: int, scale: float = 1.0) -> rp.sets.Set:
    kind = rng.integers(4)
    if kind == 0:
        return random_box(rng, n, scale)
    if kind == 1 and n > 1:
        return rp.sets.Simplex(scale)
    if kind == 2:
        return rp.sets.L2Ball(scale, scale * rng.normal(size=n))
    return rp.sets.L2Ball(scale)


def random_block(rng: Rng, n: int, scale: float = 1.0, slope: float = 1.0) -> rp.Block:
    """A random set with an l1 penalty on every third of them, of a size comparable with ``slope``."""
    penalty = rp.penalties.L1(slope * log_uniform(rng, 0.05, 1.0)) if rng.random() < 0.33 else None
    return rp.Block(random_set(rng, n, scale), penalty)


def symmetric(rng: Rng, n: int) -> np.ndarray:
    """Indefinite with eigenvalues of widely differing sizes."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    spectrum = rng.normal(size=n) * 10.0 ** rng.uniform(-1.5, 0.0, n)
    product = (basis * spectrum) @ basis.T
    return 0.5 * (product + product.T)


# --- exact minima, so that the bounds are as small as they can be -----------------------------------


def box_minimum(Q: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """min of x'Qx/2 + b'x over a box: on every face, its ends or its stationary point; rounded down."""
    n, best = len(b), math.inf
    for face in itertools.product((0, 1, 2), repeat=n):
        free = np.array([side == 2 for side in face])
        x = np.where(np.array(face) == 0, lower, upper)
        if free.any():
            rest = b[free] + Q[np.ix_(free, ~free)] @ x[~free]
            try:
                x[free] = np.linalg.solve(Q[np.ix_(free, free)], -rest)
            except np.linalg.LinAlgError:
                continue
            x = np.clip(x, lower, upper)  # feasible, hence never too low; exact if it was inside
        best = min(best, float(0.5 * x @ Q @ x + b @ x))
    return best - 1e-11 * abs(best) - 1e-300


def power_minimum(
    p: float, a: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> float:
    """min of sum_j a_j |x_j|^p + b_j x_j over a box: ends, 0, and where the derivative vanishes."""
    with np.errstate(all="ignore"):
        inner = np.where(a > 0, -np.sign(b) * np.abs(b / (a * p)) ** (1.0 / (p - 1.0)), 0.0)
    candidates = np.clip(np.stack([lower, upper, 0 * a, np.nan_to_num(inner)]), lower, upper)
    values = a * np.abs(candidates) ** p + b * candidates
    best = float(np.sum(np.min(values, axis=0)))
    return best - 1e-11 * float(np.sum(np.max(np.abs(values), axis=0))) - 1e-300


def sawtooth(rng: Rng, p: float, teeth: int, stretch: float) -> tuple[Sawtooth, float]:
    """A saw, and the length of its interval: ``stretch`` times the teeth."""
    constant, width = log_uniform(rng, 0.1, 10.0), log_uniform(rng, 0.1, 10.0)
    saw = Sawtooth(0.5 * constant * p * width ** (p - 1.0), constant, p, teeth)
    return saw, stretch * teeth * saw.width


# --- methods ---------------------------------------------------------------------------------------


def one_block_method(rng: Rng, smoothness: Any = None) -> Any:
    step = (rp.ConditionalGradient, rp.ProximalGradient)[rng.integers(2)]
    return step(smoothness=rp.Majorant() if smoothness is None else smoothness)


def blockwise_order(rng: Rng) -> Any:
    orders = (
        rp.MaxImprovement("gap"),
        rp.MaxImprovement("decrease"),
        rp.GaussSeidel("largest-gap"),
    )
    return orders[rng.integers(3)]


def several_blocks_method(rng: Rng, blockwise: Any, joint: Any) -> Any:
    """Any step in any order that is covered, with the constants that the order needs."""
    step = (rp.ConditionalGradient, rp.ProximalGradient)[rng.integers(2)]
    if rng.random() < 0.4:
        return step(rp.Jacobi(), joint)
    return step(blockwise_order(rng), blockwise)


def measure(rng: Rng) -> str:
    return ("max", "sum")[rng.integers(2)]


# --- the kinds -----------------------------------------------------------------------------------------


def quadratic(rng: Rng) -> Instance:
    """x'Qx/2 + b'x, indefinite, on any set, with and without l1."""
    n, scale, size = int(rng.integers(1, 9)), log_uniform(rng, 1e-3, 1e3), log_uniform(rng, 0.1, 10)
    Q = size * symmetric(rng, n)
    b = size * scale * rng.normal(size=n) * rng.integers(2)
    f = rp.smooth.Quadratic(Q, b)
    block = random_block(rng, n, scale, slope=size * scale)
    return Instance("quadratic", rp.Problem(f, block), one_block_method(rng))


def tight_quadratic(rng: Rng) -> Instance:
    """The same on a box, with the exact minimum as the lower bound."""
    n = int(rng.integers(1, 5))
    Q, b, box = symmetric(rng, n), 0.3 * rng.normal(size=n), random_box(rng, n)
    largest = max(float(np.linalg.eigvalsh(Q)[-1]) * (1 + 1e-12), 1e-3)
    f = rp.smooth.Function(
        lambda x: float(0.5 * x @ Q @ x + b @ x),
        lambda x: Q @ x + b,
        shapes=n,
        constant=largest,
        lower_bound=box_minimum(Q, b, box.lower, box.upper),
    )
    return Instance("tight quadratic", rp.Problem(f, rp.Block(box)), one_block_method(rng))


def powers(rng: Rng) -> Instance:
    """Weighted sums of |x_j|^p with weights of both signs, alone or with a linear or quadratic part."""
    p, n = EXPONENTS[rng.integers(3)], int(rng.integers(1, 9))
    f: Any = rp.smooth.PowerSum(p, rng.normal(size=n))
    part = rng.integers(3)
    if part == 1:
        f = rp.smooth.Sum(f, rp.smooth.Quadratic(np.zeros((n, n)), rng.normal(size=n)))
    if part == 2:
        f = rp.smooth.Sum(f, rp.smooth.Quadratic(symmetric(rng, n), rng.normal(size=n)))
    block = random_block(rng, n, log_uniform(rng, 0.1, 10.0), slope=0.5)
    return Instance("powers", rp.Problem(f, block), one_block_method(rng))


def tight_powers(rng: Rng) -> Instance:
    """sum_j a_j |x_j|^p + b_j x_j on a box, with its exact minimum."""
    p, n = EXPONENTS[rng.integers(3)], int(rng.integers(1, 5))
    a, b, box = rng.normal(size=n), 0.5 * rng.normal(size=n) * rng.integers(2), random_box(rng, n)
    a[rng.integers(n)] = abs(a[0]) + 0.1
    two_sided = two_sided_factor(p) if np.any(box.lower < 0) else 1.0
    f = rp.smooth.Function(
        lambda x: float(np.sum(a * np.abs(x) ** p + b * x)),
        lambda x: a * p * np.sign(x) * np.abs(x) ** (p - 1.0) + b,
        shapes=n,
        constant=2.0 * two_sided * float(np.max(a)) * (1 + 1e-14),
        p=p,
        lower_bound=power_minimum(p, a, b, box.lower, box.upper),
    )
    return Instance("tight powers", rp.Problem(f, rp.Block(box)), one_block_method(rng))


def resisting_powers(rng: Rng) -> Instance:
    """A saw of up to a hundred teeth, for each exponent."""
    p, teeth = EXPONENTS[rng.integers(3)], round(log_uniform(rng, 2, 100))
    saw, length = sawtooth(rng, p, teeth, stretch=log_uniform(rng, 5, 500))
    eps = saw.gap(length) * (1 - 1e-6)
    facts = {"constant": saw.constant * (1 + 1e-13), "p": p, "lower_bound": saw.lowest}
    f = separable([saw.at], shapes=1, **facts)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(0.0, length)))
    return Instance("saw", problem, one_block_method(rng), x0=(np.zeros((1, 1)),), eps=eps)


def concave(rng: Rng) -> Instance:
    """-||Ax||^2/2 + b'x by full steps, or by constants of which none is needed."""
    n, scale = int(rng.integers(1, 9)), log_uniform(rng, 1e-3, 1e3)
    A = rng.normal(size=(int(rng.integers(1, n + 1)), n))
    f = rp.smooth.Quadratic(-A.T @ A, scale * rng.normal(size=n), concave=True)
    smoothness = rp.FullStep() if rng.random() < 0.7 else rp.Majorant(0.0)
    method = rp.ConditionalGradient(smoothness=smoothness)
    return Instance("concave", rp.Problem(f, random_block(rng, n, scale, slope=scale)), method)


def resisting_concave(rng: Rng) -> Instance:
    """A staircase of up to forty stairs."""
    stairs = Staircase(round(log_uniform(rng, 2, 40)), float(2.0 ** rng.integers(-6, 6)))
    facts = {"concave": True, "differentiable": False, "lower_bound": stairs.lowest}
    f = separable([stairs.at], shapes=stairs.stairs, **facts)
    method = rp.ConditionalGradient(smoothness=rp.FullStep())
    eps = stairs.height * (1 - 10.0 ** rng.uniform(-6, -1))
    problem = rp.Problem(f, rp.Block(rp.sets.Simplex()))
    return Instance("staircase", problem, method, x0=(stairs.top[None],), eps=eps)


def coupled_quadratic(rng: Rng) -> Instance:
    """A quadratic of two or three blocks with boxes of unequal sizes, exact constants, exact minimum."""
    sizes = [[1, 1], [2, 1], [1, 1, 1], [2, 2], [1, 2, 1], [2, 1, 2]][rng.integers(6)]
    cuts, n = np.cumsum(sizes)[:-1], sum(sizes)
    Q, b = symmetric(rng, n), 0.3 * rng.normal(size=n) * rng.integers(2)
    boxes = [random_box(rng, m, log_uniform(rng, 0.1, 3.0)) for m in sizes]
    lower = np.concatenate([box.lower for box in boxes])
    upper = np.concatenate([box.upper for box in boxes])
    f = rp.smooth.Function(
        lambda *xs: float(
            0.5 * np.concatenate(xs) @ Q @ np.concatenate(xs) + b @ np.concatenate(xs)
        ),
        lambda *xs: tuple(np.split(Q @ np.concatenate(xs) + b, cuts)),
        shapes=[(m,) for m in sizes],
        lower_bound=box_minimum(Q, b, lower, upper),
    )
    blockwise, joint = block_constants(Q, cuts, [np.linalg.norm(s.upper - s.lower) for s in boxes])
    method = several_blocks_method(rng, rp.Majorant(blockwise), rp.Majorant(joint, joint=True))
    problem = rp.Problem(f, [rp.Block(box) for box in boxes])
    return Instance("coupled quadratic", problem, method, measure(rng))


def block_constants(
    Q: np.ndarray, cuts: np.ndarray, diameters: list[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Blockwise and joint constants of x'Qx/2.

    |d_i'Q_ij d_j| <= ||Q_ij|| (w |d_i|^2 + |d_j|^2 / w) / 2 with w = diam_j / diam_i, which is best where the D_i are
    to be alike.
    """
    rows = [np.split(row, cuts, axis=1) for row in np.split(Q, cuts)]
    own = [max(float(np.linalg.eigvalsh(rows[i][i])[-1]), 0.0) for i in range(len(rows))]
    joint = [
        own[i]
        + sum(
            float(np.linalg.norm(rows[i][j], 2)) * diameters[j] / diameters[i]
            for j in range(len(rows))
            if j != i
        )
        for i in range(len(rows))
    ]
    return tuple(c * (1 + 1e-12) for c in own), tuple(c * (1 + 1e-12) for c in joint)


def multilinear(rng: Rng) -> Instance:
    """Tensors of order two to four on balls, boxes and simplices of unequal sizes."""
    order = int(rng.integers(2, 5))
    shape = tuple(int(n) for n in rng.integers(1, 5, order))
    f = rp.smooth.Multilinear(rng.normal(size=shape), (-1.0, 1.0)[rng.integers(2)])
    blocks = [random_block(rng, n, log_uniform(rng, 0.1, 10.0), slope=0.3) for n in shape]
    full, joint = rp.FullStep(), rp.Majorant()
    if rng.random() < 0.6:
        method = rp.ConditionalGradient(blockwise_order(rng), full)
    else:
        method = several_blocks_method(rng, rp.Majorant(), joint)
    return Instance("multilinear", rp.Problem(f, blocks), method, measure(rng))


def several_saws(rng: Rng) -> Instance:
    """One saw per block: alike, or unequal, or all but the first at rest from the start."""
    d, p, how = int(rng.integers(2, 4)), EXPONENTS[rng.integers(3)], int(rng.integers(3))
    alike, alone = how == 0, how == 1
    first = sawtooth(rng, p, round(log_uniform(rng, 2, 40)), stretch=log_uniform(rng, 2, 200))
    saws, x0 = [first], [0.0]
    for _ in range(d - 1):
        teeth, stretch = round(log_uniform(rng, 2, 40)), log_uniform(rng, 2, 200)
        other = first if alike else sawtooth(rng, p, 1 if alone else teeth, 2 if alone else stretch)
        saws.append(other)
        x0.append(other[1] if alone else 0.0)
    constants = tuple(saw.constant * (1 + 1e-13) for saw, _ in saws)
    f = separable(
        [saw.at for saw, _ in saws],
        shapes=[(1,)] * d,
        lower_bound=math.fsum(saw.lowest for saw, _ in saws),
    )
    majorants = rp.Majorant(constants, p), rp.Majorant(constants, p, joint=True)
    gaps = [saw.gap(length) for saw, length in (saws[:1] if alone else saws)]
    which = measure(rng)
    return Instance(
        "saws",
        rp.Problem(f, [rp.Block(rp.sets.Box(0.0, length)) for _, length in saws]),
        several_blocks_method(rng, *majorants),
        which,
        x0=tuple(np.full((1, 1), x) for x in x0),
        eps=(min(gaps) if which == "max" else sum(gaps)) * (1 - 1e-6),
    )


def several_staircases(rng: Rng) -> Instance:
    """One staircase per block, of the same height or not; the last ones may be short."""
    d, equal, short = int(rng.integers(2, 4)), rng.random() < 0.5, rng.random() < 0.5
    height, which = float(2.0 ** rng.integers(-3, 4)), measure(rng)
    stairs = [
        Staircase(
            2 if short and i > 0 else round(log_uniform(rng, 2, 20)),
            height if equal else height * int(rng.integers(1, 4)),
        )
        for i in range(d)
    ]
    f = separable(
        [s.at for s in stairs],
        shapes=[(s.stairs,) for s in stairs],
        concave=True,
        differentiable=False,
        lower_bound=sum(s.lowest for s in stairs),
    )
    order = rp.Jacobi() if rng.random() < 0.2 else blockwise_order(rng)
    return Instance(
        "staircases",
        rp.Problem(f, [rp.Block(rp.sets.Simplex())] * d),
        rp.ConditionalGradient(order, rp.FullStep()),
        which,
        x0=tuple(s.top[None] for s in stairs),
        eps=(d if which == "sum" else 1) * height * (1 - 10.0 ** rng.uniform(-6, -1)),
    )


KINDS: dict[str, Callable[[Rng], Instance]] = {
    "quadratic": quadratic,
    "tight quadratic": tight_quadratic,
    "powers": powers,
    "tight powers": tight_powers,
    "saw": resisting_powers,
    "concave": concave,
    "staircase": resisting_concave,
    "coupled quadratic": coupled_quadratic,
    "multilinear": multilinear,
    "saws": several_saws,
    "staircases": several_staircases,
}

RESISTING = ("saw", "staircase", "saws", "staircases")  # their eps belongs to their shape


def instance(kind: str, number: int) -> Instance:
    """The instance of that number, with an eps at which its bound is small enough to be broken."""
    rng = generator(kind, number)
    drawn = replace(KINDS[kind](rng), seed=int(rng.integers(2**31)))
    return drawn if kind in RESISTING else replace(drawn, eps=telling_eps(rng, drawn))


def telling_eps(rng: Rng, drawn: Instance) -> float:
    """Half the time, the eps that makes the bound a chosen N <= 300; else several decades around D and Delta."""
    known = drawn.bound().constants
    delta = float(np.max(known["delta"])) or 1.0
    curvature = float(np.max(known.get("D", 0.0)))
    p = float(known.get("p", 2.0))
    joined = isinstance(drawn.method.order, rp.Jacobi)
    factor = 1 if drawn.measure == "max" or joined else len(drawn.problem.blocks)
    target = log_uniform(rng, 1.0, 300.0)
    smallest = factor * float(rp.omega_inverse(delta / MOST_ITERATIONS, curvature, p))
    eps = factor * float(rp.omega_inverse(delta / target, curvature, p))
    if rng.random() < 0.5:
        eps = max(curvature, delta) * 10.0 ** rng.uniform(-3.0, 1.0)
    return max(eps, smallest)


# --- points to certify -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A problem, several points (one leading axis), and the gradient in 50 digits."""

    problem: rp.Problem
    xs: tuple[np.ndarray, ...]
    words: tuple[str, ...]  # what sort of point each one is
    gradient: exact.Gradient


POINTS = ("random", "few steps", "many steps", "boundary", "center", "ties", "outside", "zero")


def scaled_set(rng: Rng, n: int, scale: float, batch: int | None) -> rp.sets.Set:
    """Any set of the given size; with ``batch`` its parameters differ from start to start."""
    lead = () if batch is None else (batch,)
    sizes = scale * np.exp(rng.uniform(-1.0, 1.0, lead))
    kind = rng.integers(5)
    if kind == 0:
        center = scale * rng.normal(size=(*lead, n)) * rng.integers(2)
        width = scale * np.exp(rng.uniform(-2.0, 1.0, (*lead, n)))
        return rp.sets.Box(center - width, center + width)
    if kind == 1:
        return rp.sets.Simplex(sizes)
    if kind == 2:
        return rp.sets.L2Ball(sizes, scale * rng.normal(size=(*lead, n)))
    if kind == 3:
        return rp.sets.L2Ball(sizes, 1e3 * scale * rng.normal(size=(*lead, n)))
    return rp.sets.L2Ball(sizes)


def scaled_block(rng: Rng, n: int, scale: float, slope: float, batch: int | None) -> rp.Block:
    weights = slope * np.exp(rng.uniform(-4.0, 0.5, () if batch is None else (batch,)))
    penalty = rp.penalties.L1(weights) if rng.random() < 0.6 else None
    return rp.Block(scaled_set(rng, n, scale, batch), penalty)


def smooth_and_gradient(
    rng: Rng, data: float, scale: float
) -> tuple[rp.smooth.Smooth, exact.Gradient]:
    """A function whose data have the size ``data``, for blocks of the size ``scale``."""
    n, kind = int(rng.integers(1, 13)), rng.integers(7)
    b = data * scale * rng.normal(size=n)
    if kind == 0:
        Q = data * symmetric(rng, n)
        return rp.smooth.Quadratic(Q, b), exact.quadratic(Q, b)
    if kind == 1:
        A = data**0.5 * rng.normal(size=(int(rng.integers(1, 10)), n))
        target = data**0.5 * scale * rng.normal(size=len(A))
        return rp.smooth.LeastSquares(A, target), exact.least_squares(A, target)
    if kind == 2:
        A, y = rng.normal(size=(int(rng.integers(1, 10)), n)) / scale, rng.choice([-1.0, 1.0], 9)
        return rp.smooth.Logistic(A, y[: len(A)]), exact.logistic(A, y[: len(A)])
    if kind == 3:
        p, a = EXPONENTS[rng.integers(3)], data * rng.normal(size=n)
        linear = rp.smooth.Quadratic(np.zeros((n, n)), b)
        return rp.smooth.Sum(rp.smooth.PowerSum(p, a), linear), exact.powers(p, a, b)
    if kind == 4:
        sizes = [int(m) for m in rng.integers(1, 5, int(rng.integers(2, 4)))]
        Q, cuts = data * symmetric(rng, sum(sizes)), np.cumsum(sizes)[:-1]
        b = data * scale * rng.normal(size=sum(sizes))
        f = rp.smooth.Function(
            lambda *xs: float(np.concatenate(xs) @ (0.5 * Q @ np.concatenate(xs) + b)),
            lambda *xs: tuple(np.split(Q @ np.concatenate(xs) + b, cuts)),
            shapes=[(m,) for m in sizes],
            constant=float(np.linalg.norm(Q)),
        )
        return f, exact.split_quadratic(Q, b, cuts)
    shape = tuple(int(m) for m in rng.integers(1, 5, int(rng.integers(2, 4))))
    A, sign = data * rng.normal(size=shape), (-1.0, 1.0)[rng.integers(2)]
    return rp.smooth.Multilinear(A, sign), exact.multilinear(A, sign)


def claim(number: int) -> Claim:
    """Data and sets of sizes from 1e-9 to 1e9 and every sort of point; every fourth with a batch of parameters."""
    rng = generator("claim", number)
    if number % 5 == 0:
        return planted(rng)
    data, scale = (10.0 ** rng.uniform(-9, 9), 10.0 ** rng.uniform(-9, 9))
    if number % 2:
        data, scale = (log_uniform(rng, 0.1, 10.0) for _ in range(2))
    f, gradient = smooth_and_gradient(rng, data, scale)
    slope = data * scale ** max(1, len(f.shapes) - 1)
    batch = len(POINTS) if rng.random() < 0.25 else None
    blocks = [scaled_block(rng, shape[0], scale, slope, batch) for shape in f.shapes]
    problem = rp.Problem(f, blocks)
    return Claim(problem, points(rng, problem, scale), POINTS, gradient)


def points(rng: Rng, problem: rp.Problem, scale: float) -> tuple[np.ndarray, ...]:
    """One point of every sort, in the order of ``POINTS``."""
    count = len(POINTS)
    draws = [rng.normal(size=(count, *shape)) for shape in problem.shapes]
    inside = problem.project(tuple(0.5 * scale * draw for draw in draws))
    far = problem.project(tuple(1e4 * scale * draw for draw in draws))
    short, long = (
        rp.solve(problem, x0=inside, eps=1e-300, stop=rp.Stop(max_iterations=k)).last
        for k in (3, 60)
    )
    center = problem.project(tuple(np.zeros_like(draw) for draw in draws))
    ties = problem.project(tuple(np.full_like(draw, 0.1 * scale) for draw in draws))
    chosen = []
    for i, draw in enumerate(draws):
        away = scale * 10.0 ** rng.uniform(-6.0, -1.0)
        outside = far[i] + away * draw
        zero = np.where(rng.random(draw.shape) < 0.5, 0.0, inside[i])
        sorts = (inside[i], short[i], long[i], far[i], center[i], ties[i], outside, zero)
        chosen.append(np.stack([sort[k] for k, sort in enumerate(sorts)]))
    return tuple(chosen)


def planted(rng: Rng) -> Claim:
    """A point that is stationary exactly, without rounding: its gap is 0, whatever the curvature."""
    n, unit = int(rng.integers(1, 13)), float(2.0 ** rng.integers(-20, 21))
    Q = rng.integers(-8, 9, (n, n)).astype(float)
    Q += Q.T
    x = unit * rng.integers(-16, 17, n) / 16.0
    rho = float(rng.integers(0, 3)) * unit
    b = -(Q @ x) - rho * np.where(x == 0, rng.integers(-4, 5, n) / 4.0, np.sign(x))
    penalty = rp.penalties.L1(rho) if rho else None
    reach = unit * (n + 1.0)
    own = (rp.sets.L2Ball(reach), rp.sets.Box(-reach, reach), rp.sets.L2Ball(2 * reach, x + unit))
    problem = rp.Problem(rp.smooth.Quadratic(Q, b), rp.Block(own[rng.integers(3)], penalty))
    xs = np.broadcast_to(x, (len(POINTS), n)).copy()
    xs[1:] += unit * 10.0 ** rng.uniform(-16.0, -8.0, (len(POINTS) - 1, 1)) * rng.normal(size=n)
    words = ("stationary", *["nearly stationary"] * (len(POINTS) - 1))
    return Claim(problem, (xs,), words, exact.quadratic(Q, b))
