"""Section 6.1 corrected: what the experiments with sparse tensor PCA rest on, by plain NumPy and exhaustion."""

import itertools

import numpy as np
import pytest

import restpoint as rp
from method_cases import contraction, soft, tensor, tensor_problem
from restpoint.errors import CapabilityError
from restpoint.reproduce.comparators import SphereBlockMinimisation, Watched

# --- E32: lambda --------------------------------------------------------------------------------------


def best_rank_one(A, starts=20):
    """Unit vectors with a large |A(u)| that are fixed under the higher-order power method."""
    rng, best = np.random.default_rng(0), None
    for _ in range(starts):
        us = [u / np.linalg.norm(u) for u in (rng.standard_normal(n) for n in A.shape)]
        for _ in range(300):
            for i in range(A.ndim):
                b = contraction(A, us, i)
                us[i] = b / np.linalg.norm(b)
        value = contraction(A, us, 0) @ us[0]
        if best is None or value > best[0]:
            best = value, us
    return best


@pytest.mark.parametrize("n", [5, 8])
def test_e32_one_explicit_pair_needs_three_sigma(n):
    """From (u1, u2, u3, -u4) towards zero, Assumption 1.1 forces lambda -> 3 sigma; 20 is too small at n = 8."""
    A = tensor(n, n, n, n, seed=n)
    sigma, us = best_rank_one(A)
    f = rp.smooth.Multilinear(A)
    x = (*us[:3], -us[3])
    value, gradient = f.value_and_gradient(x)
    for t in (1e-2, 1e-3):
        y = tuple((1.0 - t) * block for block in x)
        slope = sum(g @ (b - a) for g, a, b in zip(gradient, x, y, strict=True))
        moved = sum(np.sum((b - a) ** 2) for a, b in zip(x, y, strict=True))
        needed = 2.0 * (f.value(y) - value - slope) / moved
        assert needed == pytest.approx(3.0 * sigma, rel=t)
        if n == 8:
            assert needed > 20.0
    declared = f.facts([rp.sets.L2Ball()] * 4).joint.constants
    assert min(declared) >= 3.0 * sigma


def test_e32_lambda_needed_is_that_of_the_steps_taken():
    A, weight = tensor(4, 3, 4, seed=2), 0.2
    problem = tensor_problem(A, weight)
    x0 = tuple(x / np.linalg.norm(x) for x in (tensor(n, seed=n + 7) for n in A.shape))
    watched = Watched(rp.WithoutGuarantee(rp.paper.algorithm(6, 3.0)))
    stop = rp.Stop(max_iterations=12, patience=None)
    points = [
        tuple(np.array(x) for x in view.xs)
        for view in rp.iterate(problem, watched, x0=x0, eps=1e-30, stop=stop)
    ]
    needed, values = [0.0], []
    for x, y in itertools.pairwise(points):
        f = [-(contraction(A, z, 0) @ z[0]) for z in (x, y)]
        slope = sum(-contraction(A, x, i) @ (y[i] - x[i]) for i in range(3))
        needed.append(
            2.0
            * (f[1] - f[0] - slope)
            / sum(np.sum((b - a) ** 2) for a, b in zip(x, y, strict=True))
        )
        values.append(
            f[1]
            - f[0]
            + weight * sum(np.abs(b).sum() - np.abs(a).sum() for a, b in zip(x, y, strict=True))
        )
    assert max(needed) > 0.1
    assert watched.lambda_needed == pytest.approx(max(needed), rel=1e-9)
    assert watched.rises == sum(change > 1e-9 for change in values)


# --- E33: the models are not equivalent ---------------------------------------------------------------


@pytest.mark.parametrize(("rho", "original", "printed"), [(0.3, 4, 4), (1.0, 4, 2), (2.0, 4, 0)])
def test_e33_the_printed_form_of_sparse_pca_has_other_supports(rho, original, printed):
    """min ||A - l x o y||^2 + rho nnz on spheres against min -A(x, y) + rho nnz on balls, over all supports."""
    A = np.array([[3.0, 1.0], [1.0, 3.0]])
    supports = [s for k in (1, 2) for s in itertools.combinations(range(2), k)]
    first, second = [], [(0.0, 0)]  # on the balls zero is a point, with no nonzeros
    for rows, columns in itertools.product(supports, supports):
        sigma = np.linalg.norm(A[np.ix_(rows, columns)], 2)
        nonzeros = len(rows) + len(columns)
        first.append((np.sum(A**2) - sigma**2 + rho * nonzeros, nonzeros))
        second.append((-sigma + rho * nonzeros, nonzeros))
    assert min(first)[1] == original
    assert min(second)[1] == printed


# --- E34: the comparator on spheres -------------------------------------------------------------------


def sphere_value(g, y, weight):
    return g @ y + weight * np.sum(np.abs(y), axis=0)


def best_on_circle(g, weight, count=400_001):
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    return np.min(sphere_value(g, np.stack([np.cos(angle), np.sin(angle)]), weight))


def sphere_step(g, weight, x):
    """Where the comparator moves a block with gradient g, and the decrease that it promises."""
    method = SphereBlockMinimisation(order=rp.MaxImprovement())
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(weight))
    seen = rp.methods.state.see(block, x, g, block.penalty.value(x))
    return method.move(block, x, seen, 0.0, 2.0)


@pytest.mark.parametrize("size", [0.0, 0.3, 0.49999, 0.5, 0.6, 3.0])
def test_e34_the_sphere_step_is_the_minimiser_also_where_z_is_zero(size):
    """|g|_inf <= rho is the case that the paper leaves out: -sgn(g_j) e_j at the largest |g_j|."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        g = rng.standard_normal(2)
        g *= size / np.abs(g).max()
        angle = rng.uniform(0.0, 2.0 * np.pi)
        x = np.array([np.cos(angle), np.sin(angle)])
        y, promised = sphere_step(g, 0.5, x)
        assert np.linalg.norm(y) == pytest.approx(1.0, rel=1e-15)
        if 0.0 < size <= 0.5:
            j = np.argmax(np.abs(g))
            assert np.array_equal(y, -np.sign(g[j]) * np.eye(2)[j])
        value = sphere_value(g, y, 0.5)
        assert value <= best_on_circle(g, 0.5) + 1e-14
        assert promised == pytest.approx(sphere_value(g, x, 0.5) - value, abs=1e-14)


def test_e34_the_sphere_step_is_the_minimiser_in_five_dimensions_and_per_start():
    rng = np.random.default_rng(4)
    g = rng.standard_normal((6, 5)) * np.array([0.0, 0.01, 0.2, 0.5, 1.0, 5.0])[:, None]
    x = rng.standard_normal((6, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y, _ = sphere_step(g, 0.85, x)
    others = rng.standard_normal((5, 20_000))
    others = np.concatenate(
        [others / np.linalg.norm(others, axis=0), np.eye(5), -np.eye(5)], axis=1
    )
    for k in range(6):
        assert (
            sphere_value(g[k], y[k], 0.85)
            <= np.min(sphere_value(g[k][:, None].T, others, 0.85)) + 1e-14
        )
        alone, _ = sphere_step(g[k : k + 1], 0.85, x[k : k + 1])
        assert np.array_equal(alone[0], y[k])


def test_the_ball_certificate_bounds_what_a_step_on_a_sphere_can_gain():
    """Equal where z != 0; where z = 0 larger by rho - |g|_inf: the ball holds the better point 0."""
    A = tensor(4, 4, 4, seed=6)
    xs = tuple(x / np.linalg.norm(x) for x in (tensor(4, seed=k) for k in (1, 2, 3)))
    seen = set()
    for weight in (0.1, 0.5, 5.0):
        certificate = rp.certify(tensor_problem(A, weight), xs)
        for i, x in enumerate(xs):
            g = -contraction(A, xs, i)
            y, _ = sphere_step(g, weight, x)
            gain = sphere_value(g, x, weight) - sphere_value(g, y, weight)
            excess = 0.0 if np.any(soft(g, weight)) else weight - np.abs(g).max()
            assert certificate.per_block[i] == pytest.approx(gain + excess, abs=1e-12)
            seen.add(excess > 0.0)
    assert seen == {True, False}


@pytest.mark.parametrize(
    "block",
    [
        rp.Block(rp.sets.L2Ball(2.0), rp.penalties.L1(0.3)),
        rp.Block(rp.sets.Box(-1.0, 1.0), rp.penalties.L1(0.3)),
        rp.Block(rp.sets.L2Ball()),
    ],
)
def test_the_sphere_step_refuses_other_blocks(block):
    problem = rp.Problem(rp.smooth.Multilinear(tensor(3, 3)), [block] * 2)
    with pytest.raises(CapabilityError, match=r"block 0 is .* use ConditionalGradient"):
        rp.solve(problem, rp.WithoutGuarantee(SphereBlockMinimisation()))


# --- E37: BCD -----------------------------------------------------------------------------------------


def plain_jacobi(A, xs, weight):
    """One iteration of the paper's BCD in plain NumPy."""
    shrunk = [soft(contraction(A, xs, i), weight) for i in range(A.ndim)]
    return tuple(z / np.linalg.norm(z) for z in shrunk)


def test_e37_a_negative_end_of_bcd_is_a_cycle_of_flipping_signs_and_is_not_certified():
    negative, flipped = 0, []
    for seed in range(12):
        A = tensor(8, 8, 8, 8, seed=seed)
        x0 = tuple(
            x / np.linalg.norm(x) for x in (tensor(8, seed=100 * seed + k) for k in range(4))
        )
        method = rp.WithoutGuarantee(SphereBlockMinimisation(order=rp.Jacobi()))
        stop = rp.Stop(max_iterations=600, patience=None)
        result = rp.solve(tensor_problem(A, 0.85), method, x0=x0, eps=1e-8, stop=stop)
        value = contraction(A, result.last, 0) @ result.last[0]
        if value > -1.0:
            continue
        negative += 1
        assert not result.certified
        assert rp.certify(tensor_problem(A, 0.85), result.last).max > 1.0
        for new, x in zip(plain_jacobi(A, result.last, 0.85), result.last, strict=True):
            flipped.append(np.max(np.abs(new + x)))
    assert np.sum(np.array(flipped) < 1e-6) >= 0.75 * len(
        flipped
    )  # slow ones are still on their way
    assert 1 <= negative <= 11  # about half; rounding decides which ones
