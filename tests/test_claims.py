"""Claims that were once too strong, each with the data that refute the stronger form."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import restpoint as rp
from restpoint.kernels.spectra import largest_eigenvalue_between


def exact_dot(a, b):
    return sum(
        (Decimal(float(s)) * Decimal(float(t)) for s, t in zip(a, b, strict=True)), Decimal(0)
    )


def lowest_on_off_centre_ball(g, center, radius, weight):
    """min g'y + weight ||y||_1 over the ball, by bisection on its multiplier in the working precision."""
    g, center = [[Decimal(float(v)) for v in part] for part in (g, center)]
    radius, weight = Decimal(float(radius)), Decimal(float(weight))

    def minimiser(mu):
        moved = [c - s / mu for s, c in zip(g, center, strict=True)]
        return [max(m - weight / mu, Decimal(0)) + min(m + weight / mu, Decimal(0)) for m in moved]

    def distance(y):
        return sum((s - c) ** 2 for s, c in zip(y, center, strict=True)).sqrt()

    low, high = Decimal("1e-40"), Decimal("1e40")
    for _ in range(300):
        middle = (low * high).sqrt()
        low, high = (low, middle) if distance(minimiser(middle)) <= radius else (middle, high)
    y = minimiser(high)
    value = sum(s * t for s, t in zip(g, y, strict=True)) + weight * sum(map(abs, y))
    return value + high / 2 * (distance(y) ** 2 - radius**2)


def test_the_floor_of_a_ball_that_nearly_touches_zero_grows_with_the_l1_weight():
    """The dual bound cancels there: (g + s)'c and r ||g + s|| are of the size of the weight, h(y) is not."""
    rng = np.random.default_rng(0)
    with localcontext() as context:
        context.prec = 60
        for _ in range(40):
            n = int(rng.integers(1, 6))
            center, g = np.abs(rng.standard_normal(n)) + 0.1, rng.standard_normal(n)
            radius = float(np.linalg.norm(center) * (1.0 - 10.0 ** -rng.uniform(2, 12)))
            weight = 10.0 ** rng.uniform(4, 12)
            block = rp.Block(rp.sets.L2Ball(radius, center), rp.penalties.L1(weight))
            problem = rp.Problem(rp.smooth.Quadratic(np.zeros((n, n)), g), block)
            x = block.oracle.linear(g).point
            true = exact_dot(g, x) + Decimal(weight) * exact_dot(np.abs(x), np.ones(n))
            true -= lowest_on_off_centre_ball(g, center, radius, weight)
            assert true <= Decimal(float(rp.certify(problem, x).max))


@pytest.mark.parametrize("scale", [1e-140, 1e-150, 1e-158, 1e-165, 1e-200, 1e-300])
@pytest.mark.parametrize("center", [0.0, 1.0])
def test_norms_whose_squares_underflow_do_not_certify(scale, center):
    b = np.array([1.0, -2.0, 0.5]) * scale
    block = rp.Block(rp.sets.L2Ball(1.0, center))
    problem = rp.Problem(rp.smooth.Quadratic(np.zeros((3, 3)), b), block)
    x = np.full(3, center)
    with localcontext() as context:
        context.prec = 60
        true = exact_dot(b, b).sqrt()  # the centre is the radius times ||b|| away
        assert true <= Decimal(float(rp.certify(problem, x).max))


@pytest.mark.parametrize("d", [2, 3, 7])
def test_a_convex_function_of_d_blocks_needs_more_than_theory_e27_on_its_sets(d):
    """psi(x_1 + ... + x_d), psi' = k + sqrt(t - k) on [k, k + 1]: moves of one block stay in [0, 1].

    Blockwise constants 2/p are true for p = 1.5 there; d^(p-1) times that is not a joint one, d times that is.
    """
    p, constant = 1.5, 2.0 / 1.5

    def slope(t):
        k = np.floor(t)
        return k + np.sqrt(t - k)

    def psi(t):
        k = np.floor(t)
        return k * (k - 1.0) / 2.0 + k / 1.5 + k * (t - k) + (t - k) ** 1.5 / 1.5

    grid = np.linspace(0.0, d, 40 * d + 1)
    for a in grid:
        for b in grid[np.abs(grid - a) <= 1.0]:
            room = psi(a) + slope(a) * (b - a) + 0.5 * constant * abs(b - a) ** p - psi(b)
            assert room >= -1e-12

    f = rp.smooth.Function(
        lambda *xs: psi(float(sum(x[0] for x in xs))),
        lambda *xs: (np.array([slope(float(sum(x[0] for x in xs)))]),) * d,
        shapes=[1] * d,
        constant=(constant,) * d,
        p=p,
        convex=True,
    )
    joint = f.facts([rp.sets.Box(0.0, 1.0)] * d).joint
    needed = 2.0 * (psi(d) - psi(0.0)) / d  # from 0, where the slope is 0, to (1, ..., 1)
    assert d ** (p - 1.0) * constant < needed <= joint.constants[0]
    assert joint.constants == (joint.constants[0],) * d


def test_a_true_constant_is_not_refuted_by_the_slack_of_the_eigenvalue_bound():
    v = np.random.default_rng(0).integers(-9, 10, size=60).astype(float)
    f = rp.smooth.Quadratic(-np.outer(v, v))  # concave, exactly
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    assert problem.facts().needed == 0.0
    method = rp.ConditionalGradient(smoothness=rp.Majorant(0.0))
    assert rp.solve(problem, method, x0=v / 100.0).bound.withdrawn is None


def test_a_matrix_too_large_for_an_eigenvalue_problem_refutes_nothing_that_is_true(monkeypatch):
    monkeypatch.setattr("restpoint.kernels.spectra.LARGEST_SIDE", 3)
    monkeypatch.setattr("restpoint.kernels.spectra.LARGEST_EXACT_SIDE", 3)
    ball = rp.Block(rp.sets.L2Ball())
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(9), np.ones(9)), ball)
    method = rp.ProximalGradient(smoothness=rp.Majorant(1.0))
    assert rp.solve(problem, method, x0=np.zeros(9)).bound.withdrawn is None
    wrong = rp.ProximalGradient(smoothness=rp.Majorant(0.9))
    assert rp.solve(problem, wrong, x0=np.zeros(9)).bound.withdrawn is not None
    facts = rp.Problem(rp.smooth.Quadratic(-np.eye(9), concave=True), ball).facts()
    assert facts.concave
    assert rp.Problem(rp.smooth.Quadratic(np.eye(9), convex=True), ball).facts().convex
    with pytest.raises(rp.errors.DataError):
        rp.Problem(rp.smooth.Quadratic(np.eye(9), concave=True), ball).facts()


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_the_largest_eigenvalue_lies_between_its_bounds(scale):
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    values = np.concatenate([[0.5], -rng.uniform(0.0, 3.0, 19)])
    Q = scale * (basis * values) @ basis.T
    low, high = largest_eigenvalue_between(0.5 * (Q + Q.T))
    assert low <= 0.5 * scale * (1.0 + 1e-14)
    assert 0.5 * scale * (1.0 - 1e-14) <= high
    assert high - low <= 1e-9 * scale


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({}, "proved"),
        ({"value": lambda x: float(np.abs(x).sum())}, "estimated"),
        ({"lower_bound": lambda g: -float(np.abs(g).sum())}, "estimated"),
    ],
)
def test_numbers_from_a_users_oracle_have_no_proved_rounding_error(more, kind):
    block = rp.Block.from_oracle(
        lambda g: -np.sign(g), diameter=lambda p: 2.0 * 2 ** (1 / p), **more
    )
    problem = rp.Problem(rp.smooth.Quadratic(np.zeros((2, 2)), np.array([1.0, -3.0])), block)
    assert rp.certify(problem, np.array([-1.0, 1.0])).floor_kind == kind


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-160, 1.0, 1e160])
@pytest.mark.parametrize(
    "region", [rp.sets.L2Ball(1.0), rp.sets.L2Ball(2.0, 1.0), rp.sets.Box(-1.0, 1.0)]
)
def test_lower_bounds_survive_squares_that_underflow(scale, region):
    b = np.array([3.0, 4.0]) * scale
    lowest = float(b @ region.extreme(np.array([3.0, 4.0])))
    assert rp.smooth.Quadratic(np.zeros((2, 2)), b).facts([region]).lower_bound <= lowest * (
        1 - 1e-15
    )
    lowest = -scale * float(np.sum(np.abs(region.extreme(np.ones(2))) ** 1.5))
    assert rp.smooth.PowerSum(1.5, np.full(2, -scale)).facts([region]).lower_bound <= lowest * (
        1 - 1e-15
    )


def test_a_tiny_positive_eigenvalue_beside_a_huge_negative_one_is_not_concave():
    f = rp.smooth.Quadratic(np.diag([1e-300, -1e30]))
    facts = f.facts([rp.sets.L2Ball(1.0)])
    assert not facts.concave
    assert facts.joint.constants[0] >= 1e-300


def test_a_sum_whose_constants_overflow_knows_nothing():
    part = rp.smooth.Function(
        lambda x: 0.0, lambda x: 0 * x, shapes=1, constant=1e308, lower_bound=-1e308
    )
    facts = rp.smooth.Sum(part, part).facts([rp.sets.L2Ball(1.0)])
    assert facts.joint is None
    assert facts.lower_bound is None


def test_rounding_of_the_starting_value_never_makes_a_count_too_small():
    """Phi(x1) - lower bound is lost in the rounding of 1e6 + x^2/2; the count allows for it."""
    offset = 1e6
    f = rp.smooth.Function(
        lambda x: offset + 0.5 * float(x @ x),
        lambda x: x,
        shapes=1,
        constant=1.0,
        lower_bound=offset,
    )
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))
    result = rp.solve(problem, rp.ConditionalGradient(), x0=np.array([1e-5]), eps=1e-6)
    assert result.status is rp.Status.CERTIFIED
    assert result.used > 1
    assert result.used <= result.bound.count


def test_a_small_set_far_away_is_measured_by_its_own_radius():
    """A point eight radii outside of a ball of radius 1e-4 around 1e9 is not feasible."""
    ball = rp.sets.L2Ball(1e-4, np.array([1e9]))
    problem = rp.Problem(rp.smooth.Quadratic(np.array([[0.0]]), np.array([1.0])), rp.Block(ball))
    outside = np.array([1e9 - 9e-4])
    certificate = rp.certify(problem, outside)
    assert certificate.relative_violation > 1.0
    assert not certificate.holds(1e-5)
    with pytest.raises(rp.errors.DataError, match="lies outside"):
        rp.solve(problem, x0=outside, eps=1e-5)
    inside = rp.solve(problem, starts=3, eps=1e-5)  # as near as floating-point numbers come
    assert inside.certified.all()


def test_target_reached_speaks_of_the_point_returned():
    """From near the saddle the gap grows while Phi falls: the point with the smallest gap misses the target."""
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -1.0])), rp.Block(rp.sets.L2Ball()))
    stop = rp.Stop(target_value=-0.1)
    result = rp.solve(problem, x0=np.array([0.0, 1e-3]), stop=stop)
    assert result.status is rp.Status.TARGET_REACHED
    assert result.value <= -0.1


def test_a_loose_declared_lower_bound_is_named_among_the_assumptions_of_the_bound():
    """A count presumes that the declared bound is attained, and says so."""
    f = rp.smooth.Quadratic(-np.eye(2))
    sign = {"linear": lambda g: -np.sign(g), "diameter": lambda p: 2.0 * 2 ** (1 / p)}
    exact = rp.Block.from_oracle(**sign)
    bounded = rp.Block.from_oracle(**sign, lower_bound=lambda g: -1.5 * np.abs(g).sum())
    said = [str(rp.explain(rp.Problem(f, block), eps=0.1).bound) for block in (exact, bounded)]
    assert "linear(g) is a minimiser" in said[0]
    assert "not only below it" not in said[0]
    assert "lower_bound(g) is the minimum, not only below it" in said[1]


def test_a_bound_that_a_start_exceeds_is_withdrawn():
    """An oracle whose points are not minimisers keeps its certificates true, but no count of iterations."""
    slow = rp.Block.from_oracle(
        linear=lambda g: -0.01 * np.sign(g),
        diameter=lambda p: 2.0 * 2 ** (1 / p),
        lower_bound=lambda g: -np.abs(g).sum(),
    )
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2), np.ones(2)), slow)
    x0 = np.array([[0.01, 0.01], [0.2, 0.1]])
    result = rp.solve(problem, x0=x0, eps=0.5, stop=rp.Stop(max_iterations=50))
    assert not result.certified.any()
    assert result.bound.count is None
    assert "51 points where" in result.bound.withdrawn
    assert "something that the bound assumes" in str(result)
    assert "if something was declared" in str(result)
    few = rp.solve(problem, x0=x0, eps=0.5, stop=rp.Stop(max_iterations=3))
    assert np.all(few.used <= few.bound.count)


def test_a_bound_that_rounding_makes_impossible_is_not_reported_as_kept():
    """At the minimum one look should do; below the rounding floor no number of looks does, and nobody is to blame."""
    Q = np.diag([1.0, 2.0, 3.0])
    f = rp.smooth.Function(
        lambda x: 0.5 * float(x @ Q @ x), lambda x: Q @ x, shapes=3, constant=3.0, lower_bound=0.0
    )
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(1.0)))
    result = rp.solve(problem, x0=np.zeros(3), eps=1e-320)
    assert result.status is rp.Status.STALLED
    assert result.used > result.bound.count == 1.0
    assert result.bound.withdrawn is None
    assert f"{int(result.used)} used, at most 1 iterations if rounding were small" in str(result)


@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e-60, 1e60])
def test_tiny_units_take_no_more_iterations(scale):
    """The step length has no floor of its own: data in other units take the same steps."""
    f = rp.smooth.Quadratic(scale * np.diag([3.0, 1.0, 0.5]), scale * np.array([0.1, 2.0, -0.3]))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(1.0)))
    x0 = np.array([0.6, 0.0, 0.8])
    result = rp.solve(problem, rp.ConditionalGradient(), x0=x0, eps=rp.Relative(1e-3))
    reference = rp.Problem(
        rp.smooth.Quadratic(np.diag([3.0, 1.0, 0.5]), np.array([0.1, 2.0, -0.3])),
        rp.Block(rp.sets.L2Ball(1.0)),
    )
    wanted = rp.solve(reference, rp.ConditionalGradient(), x0=x0, eps=rp.Relative(1e-3))
    assert result.status is rp.Status.CERTIFIED
    assert abs(int(result.iterations) - int(wanted.iterations)) <= 1


def exact_top_eigenvalue_2x2(Q):
    """Of the symmetric part of a 2 x 2 matrix of floats, in exact arithmetic but for the last square root."""
    (a, b), (c, d) = [[Fraction(float(entry)) for entry in row] for row in Q]
    square = (a - d) ** 2 / 4 + ((b + c) / 2) ** 2
    with localcontext() as context:
        context.prec = 60
        root = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
        middle = (a + d) / 2
        return Decimal(middle.numerator) / Decimal(middle.denominator) + root


@pytest.mark.parametrize(("dtype", "step"), [(np.float32, 2.0**-23), (np.float64, 2.0**-52)])
def test_the_symmetric_part_of_a_matrix_is_not_rounded_into_a_concave_one(dtype, step):
    Q = np.array([[-1, 1 + step], [1, -1]], dtype=dtype)  # its mean with Q' is 1 + step/2
    problem = rp.Problem(rp.smooth.Quadratic(Q), rp.Block(rp.sets.Box(-1.0, 1.0)))
    facts, top = problem.facts(), exact_top_eigenvalue_2x2(Q)
    assert top > 0
    assert not facts.concave
    assert top <= Decimal(facts.joint.constants[0]) <= 4 * top
    assert Decimal(facts.needed) <= top
    below = rp.smooth.Quadratic(-Q).facts(problem.sets)
    assert not below.convex
    x = np.array([0.25, 0.25])
    slope = Fraction(step) / 8  # of each entry of the gradient
    gap = sum(slope * (Fraction(float(t)) + 1) for t in x)
    assert gap <= Fraction(float(rp.certify(problem, x).max))
    lowest = Fraction(below.lower_bound)
    assert lowest <= -Fraction(step) / 2  # -x'Qx/2 at (1, 1)


def test_a_matrix_whose_symmetric_part_is_exact_keeps_the_signs_of_its_eigenvalues():
    facts = rp.smooth.Quadratic([[-1.0, 3.0], [-1.0, -1.0]]).facts([rp.sets.L2Ball()])
    assert facts.concave
    assert facts.joint.constants == (0.0,)
    turned = rp.smooth.Quadratic([[0.0, 0.1], [-0.1, 0.0]]).facts([rp.sets.L2Ball()])
    assert turned.concave
    assert turned.convex
    halved = rp.smooth.Quadratic([[0.0, 5e-324], [0.0, 0.0]]).facts([rp.sets.L2Ball()])
    assert not halved.concave


def single_and_double():
    """Float32 data beside float64 data that float32 cannot hold."""
    A, b = np.array([[1.0, 0.0], [0.5, 1.0]], dtype=np.float32), np.array([0.1, -0.3])
    factors = [A, np.array([[0.1], [0.7]]) * np.ones((1, 2)), A]
    return {
        "least squares": (rp.smooth.LeastSquares, (A, b)),
        "the other way": (rp.smooth.LeastSquares, (A / 3.0 + b, b.astype(np.float32))),
        "quadratic": (rp.smooth.Quadratic, (A @ A.T, b)),
        "weights": (lambda *cp: rp.smooth.FactoredTensor((cp[0], cp[1:])), (b, A, A, A)),
        "factors": (lambda *cp: rp.smooth.FactoredTensor((None, cp)), tuple(factors)),
        "sum": (
            lambda A, b: rp.smooth.Sum(rp.smooth.Quadratic(A @ A.T), rp.smooth.LeastSquares(A, b)),
            (A, b),
        ),
    }


@pytest.mark.parametrize("name", single_and_double())
def test_float64_data_are_not_rounded_to_the_dtype_of_float32_data(name):
    build, data = single_and_double()[name]
    mixed, double = build(*data), build(*(part.astype(np.float64) for part in data))
    xs = tuple(np.full(shape, 0.3) for shape in double.shapes)
    assert mixed.like.dtype == np.float64
    assert mixed.value(xs) == double.value(xs)
    for got, want in zip(mixed.gradient(xs), double.gradient(xs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_certificate_speaks_of_the_float64_target_of_a_float32_matrix():
    f = rp.smooth.LeastSquares(np.array([[1.0]], np.float32), np.array([0.1]))
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))
    x = np.array([0.1], dtype=np.float32)
    slope = Fraction(float(x[0])) - Fraction(0.1)  # > 0: the farthest point is -1
    gap = slope * (Fraction(float(x[0])) + 1)
    assert gap > Fraction(1e-9)
    assert gap <= Fraction(float(rp.certify(problem, x).max))


def test_labels_do_not_widen_a_matrix():
    A = np.eye(2, dtype=np.float32)
    assert rp.smooth.Logistic(A, np.array([1.0, -1.0])).A.dtype == np.float32
    with pytest.raises(rp.errors.DataError, match="labels -1 and 1"):
        rp.smooth.Logistic(A, np.array([1.0, -1.0 - 1e-12]))


@pytest.mark.parametrize("scale", [1e-170, 1e-30, 1.0, 1e170])
@pytest.mark.parametrize("p", [1.2, 2.0])
def test_the_size_of_a_box_survives_powers_that_underflow_or_overflow(scale, p):
    box = rp.sets.Box(np.array([-3.0, 0.0, 0.0]) * scale, np.array([0.0, 0.0, 4.0]) * scale)
    with localcontext() as context:
        context.prec = 40
        sides = [Decimal(float(side)) for side in (3.0 * scale, 4.0 * scale)]
        diameter = sum(side ** Decimal(p) for side in sides) ** (1 / Decimal(p))
    assert float(box.diameter(p, (3,))) == pytest.approx(float(diameter), rel=1e-14)
    assert float(box.norm_bound((3,))) == pytest.approx(5.0 * scale, rel=1e-14)
    f = rp.smooth.PowerSum(1.5, np.full(3, -1e30))
    lowest = -1e30 * (float((3.0 * scale) ** 1.5) + float((4.0 * scale) ** 1.5))
    assert f.facts([box]).lower_bound <= lowest * (1.0 - 1e-14)
    form = rp.smooth.Multilinear(np.ones((3, 3, 3)))
    joint = form.facts([box, rp.sets.L2Ball(), rp.sets.L2Ball()]).joint
    assert joint.constants[1] >= 2.0 * 5.0 * scale  # |A(x_1, ., .)| at x_1 of norm 5, at the least


def test_a_distance_from_a_set_survives_squares_that_underflow():
    box = rp.sets.Box(0.0, 1.0)
    assert box.violation(np.array([-3e-200, -4e-200])) == pytest.approx(5e-200, rel=1e-15)
    assert not box.inside(np.array([-5e-324, 0.5]))


@pytest.mark.parametrize(
    "s",
    [
        rp.sets.Box(0.0, 1e-165),
        rp.sets.Box(-np.full(2, 1e-170), np.full(2, 1e-170)),
        rp.sets.L2Ball(np.array([1.0, 1e-150])),
        rp.sets.Simplex(1e150),
        rp.sets.Box(-1e300, 1e300),
    ],
)
def test_sets_whose_powers_are_lost_are_refused_with_advice(s):
    with pytest.raises(rp.errors.DataError, match=r"rescale the variables .* 1e-140 and 1e\+140"):
        rp.Problem(rp.smooth.LeastSquares(1e150 * np.eye(2), np.full(2, 3e-21)), rp.Block(s))


def test_a_single_point_has_no_scale():
    block = rp.Block(rp.sets.Box(np.full(2, 1e-170), np.full(2, 1e-170)))
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), block)
    assert rp.solve(problem).status is rp.Status.CERTIFIED


def test_float32_has_a_smaller_range_of_scales():
    problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.Box(-1e-25, 1e-25)))
    assert rp.solve(problem, x0=np.zeros(2)).status is rp.Status.CERTIFIED
    with pytest.raises(rp.errors.DataError, match=r"float32 cannot hold.* or give float64"):
        rp.solve(problem, x0=np.zeros(2, dtype=np.float32))


def test_a_centre_of_one_entry_stands_for_all():
    narrow, wide = (rp.sets.L2Ball(1.0, np.full(n, 0.5)) for n in (1, 3))
    assert narrow.norm_bound((3,)) == wide.norm_bound((3,)) >= 1.0 + 0.5 * 3.0**0.5 - 1e-15
    f = rp.smooth.Quadratic(-np.eye(3))
    x = np.full(3, 0.5 + 3.0**-0.5)
    first, second = (rp.Problem(f, rp.Block(s)) for s in (narrow, wide))
    assert first.facts().lower_bound <= f.value((x,))
    assert rp.certify(first, x).max == rp.certify(second, x).max
    rows = rp.sets.L2Ball(1.0, np.array([[0.5], [0.0]]))  # one number per start
    assert rows.norm_bound((3,)) == pytest.approx([1.0 + 0.75**0.5, 1.0])
    answers = rp.certify(rp.Problem(f, rp.Block(rows)), np.zeros((2, 3)))
    assert answers.max.shape == (2,)
