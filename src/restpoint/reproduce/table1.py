r"""Table 1: sparse tensor PCA, -A(x_1, ..., x_4) + rho sum ||x_i||_1 on unit balls.

The recipe that fits what is printed: A of independent standard normal entries, n x n x n x n; every block of the start
a standard normal vector, normalised; rho = .85; lambda = 20, which Assumption 1.1 does not cover (theory E32); a run
ends when Phi changes by at most 1e-5, or after 2000 iterations; an entry counts as nonzero above 1e-6 in modulus. One
rule for all three methods: the iterates of BCD keep flipping signs, so no rule about them would do.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from restpoint import paper
from restpoint.array import require_memory
from restpoint.certificates import certify
from restpoint.errors import DataError
from restpoint.kernels.threads import use_threads
from restpoint.methods import GaussSeidel, Jacobi, MaxImprovement, Order, WithoutGuarantee
from restpoint.penalties import L1
from restpoint.problem import Block, Problem
from restpoint.reproduce import instances as jobs
from restpoint.reproduce.comparators import SphereBlockMinimisation, Watched
from restpoint.run import Stop, solve
from restpoint.run.solve import CTRL_C
from restpoint.sets import L2Ball
from restpoint.smooth import Multilinear

SIZES = (8, 12, 20, 30)
ORDER, RHO, LAMBDA, CHANGE, CAP, NONZERO = 4, 0.85, 20.0, 1e-5, 2000, 1e-6
# The columns in the order of the paper, then what it could have compared with.
ALGORITHM_6, ALGORITHM_5 = "Algorithm 6", "Algorithm 5"
SPHERES: dict[str, Order] = {
    "BCD": Jacobi(),
    "BCD Gauss-Seidel": GaussSeidel("cyclic"),
    "BCD MBI": MaxImprovement("decrease"),
}
METHODS = ("BCD", ALGORITHM_6, ALGORITHM_5, "BCD Gauss-Seidel", "BCD MBI")
PRINTED = METHODS[:3]
# A run whose |A(x)| is at most this much has nothing to say about sizes: Algorithms 5 and 6 ended at zero; on the
# spheres, where nothing ends at zero, BCD cycles among points of low value.
ZERO, LOW = 1e-3, 2.0
# No certificate is that small, rounding included, so it is the rules of the paper that end a run.
NO_EPS = math.ulp(0.0)


@dataclass(frozen=True)
class Row:
    """One run. Every figure but ``start`` and those of the way there is about ``point``."""

    n: int
    instance: int
    method: str
    point: str  # which point the figures speak of
    status: str  # how the run ended
    value: float  # A(x)
    phi: float
    nonzeros: int  # of all blocks
    gap: float  # certified afresh, largest block, for the problem on balls
    iterations: int
    capped: bool
    rises: int  # iterations in which Phi rose
    lambda_needed: float  # by the steps taken
    start: float  # A(x) at the start

    @property
    def on_spheres(self) -> bool:
        """Whether the method lives on the spheres."""
        return self.method in SPHERES

    @property
    def collapsed(self) -> bool:
        """Whether the run ended at zero, or on the spheres in a cycle of low value."""
        return abs(self.value) <= (LOW if self.on_spheres else ZERO)


def instance(n: int, number: int, seed: int = 0) -> tuple[Problem, tuple[np.ndarray, ...]]:
    """The problem and the start of one instance."""
    # Beside A: its absolute values, which bound the rounding in a certificate.
    require_memory(2 * 8 * n**ORDER, f"a tensor of n^{ORDER} entries with n = {n}")
    rng = np.random.default_rng([seed, n, number])
    tensor = rng.standard_normal((n,) * ORDER)
    start = rng.standard_normal((ORDER, n))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    return Problem(Multilinear(tensor), [Block(L2Ball(), L1(RHO))] * ORDER), tuple(start)


def method(name: str) -> Watched:
    """A column of the table; all run without guarantee."""
    if name not in METHODS:
        raise DataError(f"method must be one of {', '.join(METHODS)}, got {name!r}")
    if name in SPHERES:
        return Watched(WithoutGuarantee(SphereBlockMinimisation(order=SPHERES[name])))
    return Watched(WithoutGuarantee(paper.algorithm(int(name[-1]), LAMBDA)))


def rows(n: int, number: int, *, seed: int = 0, methods: Iterable[str] = METHODS) -> list[Row]:
    """All methods on one instance, from the same start, on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), use_threads(1):
        problem, start = instance(n, number, seed)
        return [_row(n, number, name, problem, start) for name in methods]


def _row(n: int, number: int, name: str, problem: Problem, start: tuple[np.ndarray, ...]) -> Row:
    runner = method(name)
    stop = Stop(max_iterations=CAP, value_change=CHANGE, patience=None)
    result = solve(problem, runner, eps=NO_EPS, x0=start, stop=stop)
    if CTRL_C in result.message:
        raise KeyboardInterrupt  # a run cut short is no row of the table
    xs = result.last
    certificate = certify(problem, xs)
    return Row(
        n=n,
        instance=number,
        method=name,
        point="last iterate",
        status=result.status.name,
        value=-float(problem.smooth.value(xs)),
        phi=float(certificate.value),
        nonzeros=int(sum(np.sum(np.abs(x) > NONZERO) for x in xs)),
        gap=float(certificate.max),
        iterations=int(result.iterations),
        capped=int(result.iterations) >= CAP,
        rises=runner.rises,
        lambda_needed=runner.lambda_needed,
        start=-float(problem.smooth.value(start)),
    )


def run(
    sizes: Sequence[int] = SIZES, instances: int = 100, *, seed: int = 0, workers: int = 1
) -> Generator[list[Row], None, None]:
    """The rows of every instance, size by size, as they are done; the same whatever the number of workers."""
    return jobs.run(rows, sizes, instances, seed=seed, workers=workers)
