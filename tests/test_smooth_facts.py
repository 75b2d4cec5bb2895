"""Facts: true on random pairs, attained where theory says so, and proved in spite of rounding."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from restpoint.errors import DataError
from restpoint.kernels.spectra import (
    largest_eigenvalue,
    largest_eigenvalue_between,
    semidefinite_bound,
    squared_spectral_norm,
)
from restpoint.sets import Box, L2Ball, Simplex
from restpoint.smooth import (
    Curvature,
    Function,
    LeastSquares,
    Logistic,
    Multilinear,
    PowerSum,
    Quadratic,
    Sum,
)
from restpoint.smooth._bounds import in_orthant
from restpoint.smooth.power_sum import two_sided_factor
from smooth_cases import cases

CASES = cases()
every_case = pytest.mark.parametrize("name", CASES)


def inner_sum(blocks, others):
    return sum(
        (a * b).reshape(len(a), -1).sum(axis=-1) for a, b in zip(blocks, others, strict=True)
    )


def needed(smooth, xs, ys, p):
    """The smallest lambda with f(y) <= f(x) + grad f(x)'(y - x) + (lambda/2) ||y - x||_p^p, per pair."""
    moves = tuple(y - x for x, y in zip(xs, ys, strict=True))
    value, gradient = smooth.value_and_gradient(xs)
    excess = smooth.value(ys) - value - inner_sum(gradient, moves)
    return 2.0 * excess / sum((np.abs(m) ** p).sum(axis=-1) for m in moves)


def pairs(case, count=400):
    """Far pairs and near pairs: the latter see the Hessian."""
    rng = np.random.default_rng(0)
    xs, ys = case.points(rng, count), case.points(rng, count)
    pull = np.where(np.arange(count) % 2, 1.0, 0.03)[:, None]
    return xs, tuple(x + pull * (y - x) for x, y in zip(xs, ys, strict=True))


@every_case
def test_the_declared_inequalities_hold(name):
    case = CASES[name]
    smooth, (xs, ys) = case.smooth(), pairs(CASES[name])
    facts = smooth.facts(case.sets)
    value, gradient = smooth.value_and_gradient(xs)
    moves = tuple(y - x for x, y in zip(xs, ys, strict=True))
    joint = facts.joint
    allowed = sum(
        0.5 * c * (np.abs(m) ** joint.p).sum(axis=-1)
        for c, m in zip(joint.constants, moves, strict=True)
    )
    noise = 1e-12 * (1.0 + np.abs(value))
    assert np.all(smooth.value(ys) <= value + inner_sum(gradient, moves) + allowed + noise)
    for i, c in enumerate(facts.blockwise.constants):
        moved = (*xs[:i], ys[i], *xs[i + 1 :])
        allowed = 0.5 * c * (np.abs(moves[i]) ** facts.blockwise.p).sum(axis=-1)
        linear = value + (gradient[i] * moves[i]).sum(axis=-1)
        assert np.all(smooth.value(moved) <= linear + allowed + noise)


@every_case
def test_facts_agree_with_sampled_values(name):
    case = CASES[name]
    smooth, (xs, ys) = case.smooth(), pairs(CASES[name])
    facts = smooth.facts(case.sets)
    values = np.concatenate([smooth.value(xs), smooth.value(ys)])
    if facts.lower_bound is not None:
        assert facts.lower_bound <= values.min()
    middle = smooth.value(tuple(0.5 * (x + y) for x, y in zip(xs, ys, strict=True)))
    ends = 0.5 * (smooth.value(xs) + smooth.value(ys))
    if facts.convex:
        assert np.all(middle <= ends + 1e-12)
    if facts.concave:
        assert np.all(middle >= ends - 1e-12)
        assert set(facts.joint.constants) == {0.0}
        assert facts.block_concave


def test_expected_facts():
    kinds = {name: case.smooth().facts(case.sets) for name, case in CASES.items()}
    assert [name for name, facts in kinds.items() if facts.concave] == [
        "concave",
        "concave of low rank",
        "concave powers",
    ]
    assert [name for name, facts in kinds.items() if facts.convex] == [
        "convex",
        "tall least squares",
        "wide least squares",
        "logistic",
        "powers",
        "powers on the simplex",
    ]
    assert kinds["quartic"].block_concave
    assert [name for name, facts in kinds.items() if facts.lower_bound is None] == ["user code"]


# --- the largest eigenvalue ------------------------------------------------------------------------


def exact_largest_eigenvalue(Q):
    return mpmath.eigsy(mpmath.matrix(Q.tolist()), eigvals_only=True)[Q.shape[0] - 1]


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_largest_eigenvalue_is_bounded_from_above_and_closely(scale, rank, sign):
    rng = np.random.default_rng(rank)
    for _ in range(3):
        factor = rng.standard_normal((6, rank))
        Q = sign * scale * (factor @ factor.T)
        Q = 0.5 * (Q + Q.T)
        exact, bound = exact_largest_eigenvalue(Q), largest_eigenvalue(Q)
        assert exact <= bound
        assert bound <= float(exact) + 1e-13 * np.linalg.norm(Q / scale) * scale


def test_the_sign_is_exact_where_rows_decide_it():
    path = np.diag([1.0, 2.0, 2.0, 1.0]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
    assert largest_eigenvalue(-path) == 0.0  # a graph Laplacian: singular
    assert largest_eigenvalue(np.diag([-2.0, 0.0])) == 0.0
    assert largest_eigenvalue(np.diag([-2.0, -1.0])) == -1.0
    assert largest_eigenvalue(np.zeros((3, 3))) == 0.0
    facts = Quadratic(-path).facts([L2Ball()])
    assert facts.concave
    assert facts.joint == Curvature((0.0,))


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5, 5), (1, 6), (6, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
def test_the_spectral_norm_is_bounded_from_above_and_closely(shape, scale):
    A = np.random.default_rng(1).standard_normal(shape) * scale
    gram = mpmath.matrix(A.tolist()) * mpmath.matrix(A.tolist()).T
    exact = mpmath.eigsy(gram, eigvals_only=True)[shape[0] - 1]
    bound = squared_spectral_norm(A)
    assert exact <= bound <= float(exact) * (1.0 + 1e-12)
    frobenius = squared_spectral_norm(A, largest_side=0)
    assert exact <= frobenius
    np.testing.assert_allclose(frobenius, np.sum((A / scale) ** 2) * scale**2, rtol=1e-12)


def test_larger_matrices_are_bounded_closely_too():
    Q = np.random.default_rng(2).standard_normal((120, 120))
    Q = Q + Q.T
    largest = np.linalg.eigvalsh(Q)[-1]
    assert largest < largest_eigenvalue(Q) < largest * (1.0 + 1e-11)


# --- quadratics, least squares, logistic loss ------------------------------------------------------


def test_the_quadratic_constant_is_attained_at_the_top_eigenvector():
    smooth = CASES["quadratic"].smooth()
    (constant,) = smooth.facts([L2Ball()]).joint.constants
    top = np.linalg.eigh(smooth.Q)[1][:, -1:].T
    np.testing.assert_allclose(needed(smooth, (0 * top,), (top,), 2.0), constant, rtol=1e-12)


def test_the_least_squares_constant_is_attained():
    for name in ("tall least squares", "wide least squares"):
        smooth = CASES[name].smooth()
        (constant,) = smooth.facts([L2Ball()]).joint.constants
        top = np.linalg.svd(smooth.A)[2][:1]
        np.testing.assert_allclose(needed(smooth, (0 * top,), (top,), 2.0), constant, rtol=1e-11)


def test_the_logistic_constant_is_attained_at_the_origin():
    A = np.array([[3.0, 4.0]])
    (constant,) = Logistic(A, [1.0]).facts([L2Ball()]).joint.constants
    np.testing.assert_allclose(constant, 25.0 / 4.0, rtol=1e-12)
    step = 1e-3 * A / 5.0
    assert needed(Logistic(A, [1.0]), (-0.5 * step,), (0.5 * step,), 2.0) >= constant * (1 - 1e-5)


def test_the_quadratic_lower_bound_is_the_minimum_where_it_can_be():
    ball = L2Ball(2.0)
    b = np.array([3.0, 4.0])
    for curvature in (-1.0, 0.0, 1.0, 4.0):
        radius = min(2.0, 5.0 / curvature) if curvature > 0 else 2.0
        bound = Quadratic(curvature * np.eye(2), b).facts([ball]).lower_bound
        exact = 0.5 * curvature * radius**2 - 5.0 * radius
        assert bound <= exact
        np.testing.assert_allclose(bound, exact, rtol=1e-12)
    corner = Quadratic(np.zeros((2, 2)), b).facts([Simplex()]).lower_bound
    np.testing.assert_allclose(corner, 3.0, rtol=1e-12)


def test_facts_hold_for_all_radii_of_a_batch():
    few, many = L2Ball(np.array([1.0, 3.0])), L2Ball(3.0)
    for name in ("quadratic", "powers of both signs"):
        smooth = CASES[name].smooth()
        assert smooth.facts([few]).lower_bound == smooth.facts([many]).lower_bound
    form = CASES["bilinear"].smooth()
    assert form.facts([few, few]).joint == form.facts([many, many]).joint


def test_semidefinite_matrices_may_be_declared():
    factor = np.random.default_rng(3).standard_normal((8, 3))
    concave = Quadratic(-factor @ factor.T, concave=True).facts([L2Ball()])
    assert concave.concave
    assert concave.joint.constants == (0.0,)
    assert Quadratic(factor @ factor.T, convex=True).facts([L2Ball()]).convex
    with pytest.raises(DataError, match="declared concave, but its eigenvalues reach"):
        Quadratic(np.eye(2), concave=True).facts([L2Ball()])
    with pytest.raises(DataError, match="drop convex=True"):
        Quadratic(-np.eye(2), convex=True).facts([L2Ball()])


def test_what_overflows_is_unknown():
    huge = Quadratic(np.eye(2) * 1e308).facts([L2Ball(1e200)])
    assert huge.lower_bound == 0.0
    assert Quadratic(-np.eye(2) * 1e308).facts([L2Ball(1e200)]).lower_bound is None
    assert LeastSquares(np.eye(2) * 1e200, np.zeros(2)).facts([L2Ball()]).joint is None
    assert PowerSum(1.5, -1.0, shape=2).facts([L2Ball(1e300)]).lower_bound is None
    form = Multilinear(np.ones((2, 2, 2))).facts([L2Ball(1e200)] * 3)
    assert form.lower_bound is None
    np.testing.assert_allclose(form.joint.constants, 2.0 * np.sqrt(8.0) * 1e200, rtol=1e-12)
    assert Multilinear(np.full((2, 2, 2), 1e200)).facts([L2Ball(1e200)] * 3).joint is None


# --- E2 to E5 --------------------------------------------------------------------------------------


def test_exponents_above_two_hold_for_concave_functions_only():
    """E2: f = x^2 violates the inequality with p = 3 for every lambda, -x^2 satisfies it with 0."""
    convex, concave = Quadratic([[2.0]]), Quadratic([[-2.0]])
    for constant in (1.0, 1e3, 1e6):
        x, y = np.zeros((1, 1)), np.full((1, 1), 0.5 / constant)
        assert needed(convex, (x,), (y,), 3.0)[0] > constant
        assert needed(concave, (x,), (y,), 3.0)[0] <= 0.0


def test_a_hoelder_constant_gives_the_curvature():
    """E4: ||grad f(x) - grad f(y)||_q <= M ||x - y||_p^(p-1) gives lambda = 2M/p; M = p for x^p, x >= 0."""
    rng = np.random.default_rng(4)
    for p in (1.1, 1.5, 2.0):
        smooth, q = PowerSum(p, shape=3), p / (p - 1.0)
        x, y = rng.random((2, 500, 3))
        difference = smooth.gradient((x,))[0] - smooth.gradient((y,))[0]
        left = (np.abs(difference) ** q).sum(axis=-1) ** (1.0 / q)
        right = (np.abs(x - y) ** p).sum(axis=-1) ** ((p - 1.0) / p)
        assert np.all(left <= p * right * (1.0 + 1e-12))
        (constant,) = smooth.facts([Box(0.0, 1.0)]).joint.constants
        np.testing.assert_allclose(constant, 2.0 * p / p, rtol=1e-15)


@pytest.mark.parametrize("p", [1.05, 1.25, 1.5, 1.9])
def test_two_is_optimal_on_the_orthant_and_fails_off_it(p):
    """E5: u = 0 forces lambda >= 2; from -1 to t the constant 2 K_p is needed, and K_p > 1."""
    smooth = PowerSum(p, shape=1)
    one = np.ones((1, 1))
    (inside,) = smooth.facts([Simplex()]).joint.constants
    np.testing.assert_allclose(needed(smooth, (0 * one,), (one,), p), inside, rtol=1e-15)
    (everywhere,) = smooth.facts([L2Ball(2.0)]).joint.constants
    t = np.geomspace(1e-3, 1e3, 200001)[:, None]
    worst = needed(smooth, (-np.ones_like(t),), (t,), p).max()
    assert inside < worst <= everywhere
    np.testing.assert_allclose(worst, everywhere, rtol=1e-6)


def test_the_two_sided_factor_is_the_tabulated_one():
    table = {1.1: 1.724, 1.25: 1.524, 1.5: 1.3066, 1.75: 1.141, 2.0: 1.0}
    for p, factor in table.items():
        assert abs(two_sided_factor(p) - factor) < 6e-4
    for p in (1.0 + 1e-9, 1.001, 1.3, 1.99, 1.999999):
        exact_p = mpmath.mpf(p)
        root = mpmath.findroot(
            lambda t, e=exact_p: t ** (e - 1) - (e - 1) * t + 2 - e,
            (mpmath.mpf(1), 4 / (exact_p - 1)),
            solver="anderson",
            tol=1e-40,
        )
        exact = (root**exact_p - 1 + exact_p * (root + 1)) / (root + 1) ** exact_p
        assert exact <= two_sided_factor(p) <= min(float(exact) * (1 + 1e-12), 2 ** (2 - p) + 1e-12)


def test_weights_of_powers():
    """E5, last line: concave summands are free."""
    mixed = PowerSum(1.5, [3.0, -7.0])
    assert mixed.facts([Simplex()]).joint.constants[0] == np.nextafter(6.0, 7.0)
    np.testing.assert_allclose(
        mixed.facts([L2Ball()]).joint.constants[0], 6.0 * two_sided_factor(1.5), rtol=1e-15
    )
    concave = PowerSum(1.5, [-3.0, -7.0]).facts([Simplex()])
    assert concave.concave
    np.testing.assert_allclose(concave.lower_bound, -7.0, rtol=1e-12)
    squares = PowerSum(2.0, [-1.0, -4.0]).facts([L2Ball(3.0)])
    np.testing.assert_allclose(squares.lower_bound, -36.0, rtol=1e-12)


def test_the_orthant_is_recognised():
    assert in_orthant(Simplex(), (300,))
    assert in_orthant(Simplex(np.array([1.0, 2.0])), (3,))
    assert in_orthant(Box(0.0, 1.0), (2, 3)) is in_orthant(Box(0.0, 1.0), (6,)) is True
    assert in_orthant(L2Ball(1.0, center=np.array([2.0, 1.0])), (2,))
    assert not in_orthant(L2Ball(1.0), (2,))
    assert not in_orthant(Box(np.array([0.0, -1e-300]), 1.0), (2,))
    assert not in_orthant(Box(np.array([[0.0, 0.0], [0.0, -1.0]]), 1.0), (2,))
    assert not in_orthant(Simplex(), (10**6,))  # unknown: not asked


# --- E31 -------------------------------------------------------------------------------------------


def best_rank_one(A, rng):
    """tau and its unit vectors, by alternating maximisation from many starts."""
    best = (0.0, ())
    for _ in range(60):
        us = [rng.standard_normal(n) for n in A.shape]
        us = [u / np.linalg.norm(u) for u in us]
        for _ in range(300):
            for i in range(3):
                g = -Multilinear(A).partial(tuple(us), i)
                us[i] = g / np.linalg.norm(g)
        best = max(best, (float(np.einsum("abc,a,b,c", A, *us)), tuple(us)), key=lambda r: r[0])
    return best


def test_the_multilinear_constant_is_attained_and_the_printed_one_is_loose():
    """E31: lambda = tau (d - 1) is attained at (u_1, u_2, -u_3); printed: tau d (d - 1)."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((3, 3, 3))
    smooth, (tau, (u, v, w)) = Multilinear(A), best_rank_one(A, rng)
    point, near = (u[None], v[None], -w[None]), (0.99 * u[None], 0.99 * v[None], -0.99 * w[None])
    attained = needed(smooth, near, point, 2.0)[0]
    assert 0.99 * 2.0 * tau <= attained <= 2.0 * tau
    assert 3.0 * 2.0 * tau > 2.9 * attained  # the printed constant
    (constant,) = set(smooth.facts([L2Ball()] * 3).joint.constants)
    sigma = min(np.linalg.norm(np.moveaxis(A, k, 0).reshape(3, -1), 2) for k in range(3))
    assert attained <= constant
    np.testing.assert_allclose(constant, 2.0 * sigma, rtol=1e-12)
    rank_one = Multilinear(np.einsum("a,b,c->abc", u, v, w))
    (constant,) = set(rank_one.facts([L2Ball()] * 3).joint.constants)
    assert needed(rank_one, near, point, 2.0)[0] >= 0.99 * constant


def test_the_multilinear_constants_follow_the_radii():
    A = np.random.default_rng(6).standard_normal((4, 4, 4, 4))
    smooth, radii = Multilinear(A), (0.5, 1.0, 2.0, 4.0)
    facts = smooth.facts([L2Ball(radius) for radius in radii])
    size = 4.0 * smooth.kernel.spectral_bound()
    np.testing.assert_allclose(facts.joint.constants, [3 * size / r**2 for r in radii], rtol=1e-13)
    np.testing.assert_allclose(facts.lower_bound, -size, rtol=1e-13)
    fixed = smooth.facts([Box(0.0, 0.0), L2Ball(), L2Ball(), L2Ball()])
    assert fixed.joint.constants == (0.0,) * 4
    # Products of radii underflow on the way to constants that do not.
    (first, *_, last) = smooth.facts(
        [L2Ball(r) for r in (1e-180, 1e-180, 1.0, 1e180)]
    ).joint.constants
    np.testing.assert_allclose(first * 1e-180, 0.75 * size, rtol=1e-13)
    assert last > 0.0


def test_the_spectral_bound_uses_the_best_unfolding():
    """For order 4 the square unfolding has norm about 2n, a single mode about n^(3/2)."""
    A = np.random.default_rng(7).standard_normal((8, 8, 8, 8))
    bound = Multilinear(A).kernel.spectral_bound()
    np.testing.assert_allclose(bound, np.linalg.norm(A.reshape(64, 64), 2), rtol=1e-12)
    assert bound < min(np.linalg.norm(np.moveaxis(A, k, 0).reshape(8, -1), 2) for k in range(4))
    assert Multilinear(np.zeros((2, 3))).kernel.spectral_bound() == 0.0


# --- sums ------------------------------------------------------------------------------------------


def test_constants_of_sums():
    bowl, powers = Quadratic(3.0 * np.eye(2)), PowerSum(1.5, shape=2)
    hill = Quadratic(-2.0 * np.eye(2))
    unknown = Function(lambda x: 0.0, lambda x: 0 * x, shapes=2)
    box = [Box(0.0, 1.0)]
    np.testing.assert_allclose(Sum(bowl, bowl).facts(box).joint.constants, 6.0, rtol=1e-13)
    np.testing.assert_allclose(Sum(bowl, hill).facts(box).joint.constants, 3.0, rtol=1e-13)
    assert Sum(hill, hill).facts(box).concave
    assert Sum(bowl, powers).facts(box).convex
    assert Sum(bowl, unknown).facts(box).joint is None
    assert Sum(bowl, unknown).facts(box).lower_bound is None
    assert Sum(hill, powers).facts(box).joint.p == 1.5
    mixed = Sum(bowl, powers).facts(box).joint
    # ||d||_2^2 <= diam_p^(2-p) ||d||_p^p, diam_1.5 = 2^(2/3)
    np.testing.assert_allclose(mixed.constants, 2.0 + 3.0 * 2.0 ** (1.0 / 3.0), rtol=1e-13)
    assert mixed.p == 1.5
    np.testing.assert_allclose(
        Sum(hill, powers).facts(box).lower_bound, hill.facts(box).lower_bound
    )


def test_block_facts_of_sums():
    form = Multilinear(np.eye(2))
    user = Function(
        lambda x, y: float(x @ x), lambda x, y: (2 * x, 0 * y), shapes=[2, 2], constant=(2.0, 0.0)
    )
    facts = Sum(form, user).facts([L2Ball(), L2Ball()])
    np.testing.assert_allclose(facts.blockwise.constants, (2.0, 0.0))
    assert facts.joint is None
    assert not facts.block_concave
    assert Sum(form, form).facts([L2Ball(), L2Ball()]).block_concave


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e100])
@pytest.mark.parametrize(("size", "rank"), [(1, 1), (7, 3), (40, 40), (60, 2)])
def test_a_form_declared_concave_is_bounded_without_eigenvalues(size, rank, scale):
    factor = np.random.default_rng(size).standard_normal((size, rank))
    Q = -scale * (factor @ factor.T)
    Q = 0.5 * Q + 0.5 * Q.T
    largest = float(np.linalg.eigvalsh(-Q / scale)[-1]) * scale
    bound = semidefinite_bound(-Q, 1e-10 * size)
    assert largest <= bound <= 1.5 * largest
    facts = Quadratic(Q, concave=True).facts([L2Ball()])
    assert facts.concave
    assert -0.75 * largest <= facts.lower_bound <= -0.5 * largest
    assert semidefinite_bound(Q, 1e-10 * size) is None  # of the other sign
    if size > 1:  # of neither sign
        mixed = -Q
        mixed[0, -1] = mixed[-1, 0] = 1e3 * largest
        assert semidefinite_bound(mixed, 1e-10 * size) is None


def test_exact_row_sums_still_decide_the_sign():
    # Diagonally dominant with zero row sums: lambda_max is exactly 0, which no factorisation can tell.
    Q = np.array([[-2.0, 1.0, 1.0], [1.0, -2.0, 1.0], [1.0, 1.0, -2.0]])
    assert largest_eigenvalue_between(Q)[1] == 0.0
    random = np.random.default_rng(0).standard_normal((30, 30))
    low, high = largest_eigenvalue_between(random + random.T)
    exact = float(np.linalg.eigvalsh(random + random.T)[-1])
    assert low <= exact <= high
    assert high == pytest.approx(exact, rel=1e-10)
