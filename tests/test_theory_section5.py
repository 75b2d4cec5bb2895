"""What is wrong, incomplete or loose in Section 5 of the paper (several blocks), and what holds instead.

The mathematics alone: small loops in NumPy, with omega and the bounds as the only things imported.
Every block here is an interval or a box, so that the oracles are a line each.
"""

import math

import numpy as np
import pytest

from restpoint.bounds import addition_6, addition_13, theorem_5_2, theorem_5_3
from restpoint.omega import omega, step_length


def corners(g, x):
    """The linear oracle of the box [-1, 1]^n; ties (g = 0) are broken against x: they stay put."""
    return np.where(g == 0, x, -np.sign(g))


def gaps_of(gradient, x, lower=-1.0, upper=1.0):
    """Triangle_i L for blocks that are the intervals [lower_i, upper_i]."""
    g = gradient(x)
    return g * x - np.minimum(g * lower, g * upper)


# --- E24 -----------------------------------------------------------------------------------------


def test_e24_improvement_compares_with_the_current_point():
    """E24: the MBI formula mixes x^k and x^{k-1}; both terms belong to x^{k-1}.

    f = -(2 x1 + x2), blocks [-1, 1]: from x^{k-1} = (1, -1) block 2 improves by 2 and block 1 not at
    all. Read with a later point (here one that differs from x^{k-1} in h_1), the formula picks block 1.
    """
    h = (lambda t: 3.0 * max(0.0, -t), lambda t: 0.0)

    def f(x):
        return -(2 * x[0] + x[1])

    previous, later, answers = (1.0, -1.0), (-1.0, -1.0), (1.0, 1.0)

    def improvements(f_and_h_at):
        found = []
        for i in range(2):
            moved = tuple(answers[j] if j == i else previous[j] for j in range(2))
            before = f(f_and_h_at) + h[i](f_and_h_at[i])
            found.append(before - f(moved) - h[i](answers[i]))
        return found

    assert improvements(previous) == [0.0, 2.0]
    assert np.argmax(improvements(previous)) == 1
    assert np.argmax(improvements(later)) == 0


def test_e24_other_blocks_keep_their_newest_value():
    """E24: in Algorithm 5 "x_i^k = x_i^{k-1}" must be x_i^{k+1} = x_i^k.

    As printed, iteration k would undo in every other block what iteration k - 1 did there: on
    f = -(x1 + x2) from (-1, -1) the printed rule never gets both blocks to 1.
    """

    def run(printed):
        previous = current = np.asarray([-1.0, -1.0])
        for _ in range(20):
            g = np.asarray([-1.0, -1.0])
            gaps = gaps_of(lambda _, g=g: g, current)
            i = int(np.argmax(gaps))
            base = previous if printed else current
            after = base.copy()
            after[i] = corners(g, current)[i] if gaps[i] > 0 else current[i]
            previous, current = current, after
            if np.all(current == 1.0):
                break
        return current

    assert np.all(run(printed=False) == 1.0)
    assert not np.all(run(printed=True) == 1.0)


# --- E25 -----------------------------------------------------------------------------------------


def test_e25_the_joint_gap_is_the_sum():
    """E25: DL(z) = sum_i Triangle_i L_z, by enumeration of the vertices of the product."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        g, z = rng.normal(size=4), rng.uniform(-1, 1, 4)
        vertices = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 4), axis=-1).reshape(-1, 4)
        joint = np.max((z - vertices) @ g)
        blocks = [np.max((z[i] - np.asarray([-1.0, 1.0])) * g[i]) for i in range(4)]
        assert joint == pytest.approx(sum(blocks), rel=1e-14)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_e25_blockwise_eps_is_joint_d_eps(d):
    """E25: blockwise eps only gives joint d eps, attained by f = sum x_i on [0, eps]^d at x = eps."""
    eps = 0.125
    gaps = gaps_of(np.ones_like, np.full(d, eps), lower=0.0, upper=eps)
    assert np.max(gaps) == eps
    assert np.sum(gaps) == d * eps


# --- E26, E27 ------------------------------------------------------------------------------------


def test_e26_exact_jacobi_cycles():
    """E26: f = -x1 x2 on [-1, 1]^2 from (1, -1) alternates with (-1, 1), Phi = 1 forever."""
    x, seen = np.asarray([1.0, -1.0]), []
    for _ in range(6):
        seen.append((tuple(x), -x[0] * x[1]))
        x = np.sign(x[::-1])  # each block alone: the minimiser of -x1 x2 in x1 is sign(x2)
    assert [point for point, _ in seen[:2]] == [(1.0, -1.0), (-1.0, 1.0)]
    assert seen[0] == seen[2] == seen[4]
    assert all(value == 1.0 for _, value in seen)


@pytest.mark.parametrize(
    ("constant", "cycles"), [(0.2, True), (0.5, True), (1.0, False), (2.0, False)]
)
def test_e26_jacobi_needs_the_joint_constant(constant, cycles):
    """E26: Algorithm 6, Jacobi, with lambda = .2, .5 (< joint constant 1) cycles too; from 1 on not."""
    x = np.asarray([1.0, -1.0])
    values = []
    for _ in range(200):
        values.append(-x[0] * x[1])
        g = -x[::-1]
        x = np.clip(x - g / constant, -1.0, 1.0)
    assert all(value == 1.0 for value in values) == cycles
    if not cycles:
        assert np.all(np.diff(values) <= 1e-15)
        assert values[-1] < 1.0


def test_e27_blockwise_constants_are_not_joint():
    """E27: x1 x2 is linear in each block (constants 0), yet its joint constant is 1."""
    rng = np.random.default_rng(1)
    needed = 0.0
    for _ in range(2000):
        x, d = rng.uniform(-1, 1, 2), rng.normal(size=2)
        remainder = (x + d).prod() - x.prod() - x[::-1] @ d  # = d1 d2
        needed = max(needed, 2 * remainder / (d @ d))
        for i in range(2):
            step = np.zeros(2)
            step[i] = d[i]
            assert abs((x + step).prod() - x.prod() - x[::-1] @ step) < 1e-14
    assert 0.99 < needed <= 1.0 + 1e-12
    d = np.asarray([0.3, 0.3])
    assert 2 * d.prod() / (d @ d) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
def test_e27_p_norms_add_over_blocks(p):
    """E27: ||y - x||_p^p = sum_i ||y_i - x_i||_p^p exactly, so that (1.1) may be used blockwise."""
    d = np.random.default_rng(2).normal(size=12)
    parts = sum(np.sum(np.abs(part) ** p) for part in np.split(d, [3, 4, 9]))
    assert np.linalg.norm(d, p) ** p == pytest.approx(parts, rel=1e-13)


# --- E28 -----------------------------------------------------------------------------------------


def interval_problem(rng):
    """f = x'Qx/2 + b'x over intervals [0, width_i], one of them a point, others of unequal width."""
    d = 4
    A = rng.normal(size=(d, d))
    Q, b = (A + A.T) / 2, rng.normal(size=d)
    width = np.asarray([0.0, 0.3, 1.0, 3.0])
    joint = float(np.max(np.abs(np.linalg.eigvalsh(Q)))) * np.ones(d)
    blockwise = np.maximum(np.diagonal(Q), 0.0)
    lower = -0.5 * width @ np.abs(Q) @ width - np.abs(b) @ width
    return Q, b, width, joint, blockwise, lower


@pytest.mark.parametrize("order", ["jacobi", "max-improvement"])
@pytest.mark.parametrize("algorithm", [5, 6])
def test_e28_per_block_count(order, algorithm):
    """E28: N = ceil(Delta/min_i omega_{D_i}(eps)) though a block is a point (the paper: vacuous).

    Jacobi with joint constants, maximum improvement with blockwise ones; the sum criterion too.
    """
    rng = np.random.default_rng(3)
    theorem = theorem_5_2 if algorithm == 5 else theorem_5_3
    for _ in range(25):
        Q, b, width, joint, blockwise, lower = interval_problem(rng)
        # The prox step of Algorithm 6 needs a positive weight: any larger constant is a constant.
        constants = joint if order == "jacobi" else np.maximum(blockwise, 0.05)
        x = rng.uniform(size=4) * width
        data = {
            "delta": 0.5 * x @ Q @ x + b @ x - lower,
            "constants": tuple(constants),
            "diameters": tuple(width),
            "order": order,
        }
        largest, summed = [], []
        for _ in range(400):
            g = Q @ x + b
            gaps = gaps_of(lambda _, g=g: g, x, 0.0, width)
            largest.append(np.max(gaps))
            summed.append(np.sum(gaps))
            if algorithm == 5:
                d = np.where(g > 0, 0.0, width) - x
                after = x + step_length(gaps, constants * d**2) * d
                score = gaps
            else:
                after = np.clip(x - g / constants, 0.0, width)
                score = g * (x - after) - constants / 2 * (after - x) ** 2
            i = int(np.argmax(score))
            x = after if order == "jacobi" else np.where(np.arange(4) == i, after, x)
        for eps in (0.3, 1.0, 10.0, 100.0):
            bound = theorem(eps=eps, **data)
            assert bound.paper_bound is None  # the smallest diameter is 0
            assert min(largest[: int(bound.count)]) <= eps
            assert min(summed[: int(theorem(eps=eps, measure="sum", **data).count)]) <= eps


def test_e28_unequal_diameters_gain():
    """E28: a small constant on the large block and a large one on the small: D_i instead of max x max."""
    bound = theorem_5_2(eps=0.25, delta=1.0, constants=(1.0, 100.0), diameters=(10.0, 1.0))
    assert (bound.count, bound.paper_bound) == (3200.0, 320000.0)


# --- E29 -----------------------------------------------------------------------------------------


def test_e29_largest_gap_is_not_the_largest_decrease():
    """E29: Triangle L = (1, .9), D = (1000, 1): guaranteed decreases 5e-4 versus .405."""
    gaps, D = np.asarray([1.0, 0.9]), np.asarray([1000.0, 1.0])
    decreases = omega(gaps, D)
    np.testing.assert_allclose(decreases, [5e-4, 0.405], rtol=1e-14)
    assert int(np.argmax(gaps)) == 0
    assert int(np.argmax(decreases)) == 1


def test_e29_the_same_worst_case_holds_for_the_better_rule():
    """E29: argmax of omega_{D_i}(gap_i) never guarantees less than the block of largest gap."""
    rng = np.random.default_rng(4)
    gaps, D = 10.0 ** rng.uniform(-3, 2, (2, 1000, 5))
    decreases = omega(gaps, D, 1.5)
    best = np.max(decreases, axis=1)
    by_gap = np.take_along_axis(decreases, np.argmax(gaps, axis=1)[:, None], axis=1)[:, 0]
    assert np.all(best >= by_gap)
    assert np.all(best >= np.min(omega(np.max(gaps, axis=1)[:, None], D, 1.5), axis=1))


# --- E30, A6, A13 --------------------------------------------------------------------------------


def pairs_value(x):
    """-(x1 x2 + x2 x3 + x3 x1)."""
    return -(x[0] * x[1] + x[1] * x[2] + x[2] * x[0])


def pairs_gradient(x):
    return -(np.sum(x) - x)


def adversarial_update(x, i):
    """The full step on block i; where the oracle is indifferent it moves to the other end."""
    g = pairs_gradient(x)[i]
    after = x.copy()
    after[i] = -x[i] if g == 0 else -math.copysign(1.0, g)
    return after


def test_e30_cyclic_full_steps_have_no_bound():
    """E30: f = -(xy+yz+zx) on [-1,1]^3 from (-1,1,-1), adversarial ties: each update has gap 0,
    Phi = 1 forever, and max_i Triangle_i L = 4 at the start of every sweep.
    """
    x = np.asarray([-1.0, 1.0, -1.0])
    for _ in range(10):
        for i in range(3):
            gaps = gaps_of(pairs_gradient, x)
            assert gaps[i] == 0.0
            assert np.max(gaps) == 4.0
            assert pairs_value(x) == 1.0
            x = adversarial_update(x, i)


def test_e30_maximum_improvement_solves_it_at_once():
    """E30, A6: the block of largest gap is solved in 1 step, well within ceil(Delta/eps)."""
    x = np.asarray([-1.0, 1.0, -1.0])
    x = adversarial_update(x, int(np.argmax(gaps_of(pairs_gradient, x))))
    assert pairs_value(x) == -3.0
    assert np.max(gaps_of(pairs_gradient, x)) == 0.0
    assert addition_6(eps=0.5, delta=1.0 - -3.0, blocks=3).count == 8.0


@pytest.mark.parametrize("rest", [(0, 1, 2), (2, 1, 0), (0,), ()])
def test_a13_largest_gap_first_repairs_the_cycle_in_one_sweep(rest):
    """A13: a sweep that begins with the largest gap, then any further blocks in any order."""
    x = np.asarray([-1.0, 1.0, -1.0])
    first = int(np.argmax(gaps_of(pairs_gradient, x)))
    x = adversarial_update(x, first)
    for i in rest:
        if gaps_of(pairs_gradient, x)[i] > 0:
            x = adversarial_update(x, i)
    assert np.max(gaps_of(pairs_gradient, x)) == 0.0
    assert pairs_value(x) == -3.0


def test_e30_two_multilinear_blocks_are_safe():
    """E30: d = 2, f multilinear: max_i Triangle_i L after a block update <= the next decrease."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        n = 4
        A = rng.normal(size=(n, n))
        x, y = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
        x = -np.sign(A @ y)
        for k in range(6):
            gaps = (
                x @ (A @ y) + np.sum(np.abs(A @ y)),
                y @ (A.T @ x) + np.sum(np.abs(A.T @ x)),
            )
            value = x @ A @ y
            if k % 2:
                x = -np.sign(A @ y)
            else:
                y = -np.sign(A.T @ x)
            assert max(gaps) <= value - x @ A @ y + 1e-12


def trilinear(rng, n):
    T = rng.normal(size=(n, n, n))

    def gradients(blocks):
        u, v, w = blocks
        return (
            np.einsum("ijk,j,k->i", T, v, w),
            np.einsum("ijk,i,k->j", T, u, w),
            np.einsum("ijk,i,j->k", T, u, v),
        )

    return T, gradients


@pytest.mark.parametrize("sweeps", [False, True])
def test_a6_a13_counts_on_trilinear_forms(sweeps):
    """A6, A13: max_i Triangle_i L <= eps within max{1, ceil(Delta/eps)} block updates resp. sweeps."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        n, eps, rho = 4, 1e-6, 0.2
        T, gradients = trilinear(rng, n)
        blocks = [rng.uniform(-1, 1, n) for _ in range(3)]

        def answer(g, rho=rho):
            return np.where(np.abs(g) > rho, -np.sign(g), 0.0)

        def gap(g, x, rho=rho):
            y = answer(g)
            return g @ (x - y) + rho * (np.sum(np.abs(x)) - np.sum(np.abs(y)))

        value = gradients(blocks)[0] @ blocks[0] + rho * sum(np.sum(np.abs(x)) for x in blocks)
        delta = value + np.sum(np.abs(T))
        bound = addition_13 if sweeps else addition_6
        allowed, used = bound(eps=eps, delta=delta, blocks=3).count, 1
        while True:
            gaps = [gap(g, x) for g, x in zip(gradients(blocks), blocks, strict=True)]
            if max(gaps) <= eps:
                break
            first = int(np.argmax(gaps))
            others = [i for i in range(3) if i != first] if sweeps else []
            for i in (first, *others):
                blocks[i] = answer(gradients(blocks)[i])
            after = gradients(blocks)[0] @ blocks[0] + rho * sum(np.sum(np.abs(x)) for x in blocks)
            assert value - after >= max(gaps) - 1e-12
            value, used = after, used + 1
        assert used <= allowed


def test_a13_with_blockwise_constants():
    """A13: with blockwise majorants, ceil(Delta/min_i omega_{D_i}(eps)) sweeps, no cross constant."""
    rng = np.random.default_rng(7)
    for _ in range(25):
        Q, b, width, _, blockwise, lower = interval_problem(rng)
        x = rng.uniform(size=4) * width
        data = {
            "delta": 0.5 * x @ Q @ x + b @ x - lower,
            "constants": tuple(blockwise),
            "diameters": tuple(width),
        }
        largest = []
        for _ in range(200):
            gaps = gaps_of(lambda x, Q=Q, b=b: Q @ x + b, x, 0.0, width)
            largest.append(np.max(gaps))
            first = int(np.argmax(gaps))
            for i in (first, *(j for j in range(4) if j != first)):
                g = Q[i] @ x + b[i]
                d = (0.0 if g > 0 else width[i]) - x[i]
                x[i] += step_length(float(max(0.0, -g * d)), float(blockwise[i] * d**2)) * d
        for eps in (0.3, 1.0, 10.0, 100.0):
            assert min(largest[: int(addition_13(eps=eps, blocks=4, **data).count)]) <= eps
