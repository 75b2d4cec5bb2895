"""Every set and penalty of the catalogue against an independent conic solver, and what their doors refuse."""

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import DataError, RestpointError, ShapeError
from restpoint.kernels.row_solvers import denoised, nonincreasing
from restpoint.kernels.thresholds import shifted_to_total
from restpoint.oracles import find
from restpoint.penalties import AnalysisL1
from restpoint.testing import PENALTIES as PENALTY_CASES
from restpoint.testing import SETS as SET_CASES
from restpoint.testing.table import catalogue_page

N = 6
LABELS = np.array([2, 0, 0, 1, 2, 1])
SCALES = np.array([0.5, 1.0, 2.0, 1.5, 1.0, 0.7])
PROFILE = np.array([2.0, 1.5, 1.5, 1.0, 0.2, 0.0])
UPPER = np.array([0.5, 0.2, 1.0, 0.7, 0.3, 0.9])


def _groups(x, scales=(1.0, 1.0, 1.0)):
    return sum(scales[k] * cp.norm(x[np.flatnonzero(k == LABELS)], 2) for k in range(3))


def _owl(x):
    """sum_i (profile_i - profile_(i+1)) (sum of the i largest |x_j|)."""
    steps = PROFILE - np.append(PROFILE[1:], 0.0)
    return sum(float(s) * cp.sum_largest(cp.abs(x), k + 1) for k, s in enumerate(steps) if s > 0)


SETS = {
    "l1": (rp.sets.L1Ball(1.3, SCALES), lambda x: [cp.sum(cp.multiply(SCALES, cp.abs(x))) <= 1.3]),
    "3/2": (rp.sets.LpBall(1.5, 0.8), lambda x: [cp.norm(x, 1.5) <= 0.8]),
    "3": (rp.sets.LpBall(3.0, 0.8), lambda x: [cp.norm(x, 3) <= 0.8]),
    "k-sparse": (
        rp.sets.KSparsePolytope(2, 0.7),
        lambda x: [cp.norm(x, "inf") <= 0.7, cp.norm(x, 1) <= 1.4],
    ),
    "capped": (rp.sets.CappedSimplex(1.7, UPPER), lambda x: [x >= 0, x <= UPPER, cp.sum(x) == 1.7]),
    "owl": (rp.sets.OWLBall(PROFILE, 1.5), lambda x: [_owl(x) <= 1.5]),
    "groups": (
        rp.sets.GroupBall(LABELS, 1.2, np.array([1.0, 2.0, 0.5])),
        lambda x: [_groups(x, (1.0, 2.0, 0.5)) <= 1.2],
    ),
    "ball": (rp.sets.L2Ball(1.1), lambda x: [cp.norm(x, 2) <= 1.1]),
    "max": (rp.sets.LpBall(np.inf, 0.9), lambda x: [cp.norm(x, "inf") <= 0.9]),
    "simplex": (rp.sets.Simplex(1.5), lambda x: [x >= 0, cp.sum(x) == 1.5]),
}
PENALTIES = {
    "zero": (rp.penalties.Zero(), lambda x: 0.0),
    "l1": (rp.penalties.L1(0.7, scales=SCALES), lambda x: 0.7 * (SCALES @ cp.abs(x))),
    "l2": (rp.penalties.L2Norm(0.9), lambda x: 0.9 * cp.norm(x, 2)),
    "max": (rp.penalties.LInfinity(1.4), lambda x: 1.4 * cp.norm(x, "inf")),
    "elastic net": (
        rp.penalties.ElasticNet(0.5, 1.5),
        lambda x: 0.5 * cp.norm(x, 1) + 0.75 * cp.sum_squares(x),
    ),
    "groups": (
        rp.penalties.Group(LABELS, 0.6, np.array([1.0, 2.0, 0.5])),
        lambda x: 0.6 * _groups(x, (1.0, 2.0, 0.5)),
    ),
    "sparse groups": (
        rp.penalties.Group(LABELS, 0.6, sparsity=0.3),
        lambda x: 0.6 * _groups(x) + 0.3 * cp.norm(x, 1),
    ),
    "owl": (rp.penalties.OWL(PROFILE, 0.4), lambda x: 0.4 * _owl(x)),
    "variation": (
        rp.penalties.TotalVariation(0.5, 0.2),
        lambda x: 0.5 * cp.norm(cp.diff(x), 1) + 0.2 * cp.norm(x, 1),
    ),
    "entropy": (rp.penalties.Entropy(0.8), lambda x: -0.8 * cp.sum(cp.entr(x))),
}
# Every set, every penalty, and every general rule.
PAIRS = [
    *((name, "zero") for name in SETS),
    *((name, "l1") for name in SETS),
    *(("ball", name) for name in PENALTIES if name != "entropy"),
    *((name, "elastic net") for name in ("l1", "3/2", "owl", "capped", "simplex")),
    *(("owl", "owl"), ("groups", "groups"), ("max", "max"), ("simplex", "entropy")),
]


def _optimum(objective, constraints):
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9)
    return float(problem.value)


@pytest.mark.parametrize("names", dict.fromkeys(PAIRS), ids=" x ".join)
def test_a_conic_solver_does_no_better_and_no_worse(names):
    (region, describe), (penalty, h) = SETS[names[0]], PENALTIES[names[1]]
    rng = np.random.default_rng(31)
    g = 2.0 * rng.standard_normal(N)
    z = region.project(rng.standard_normal(N))
    oracle, x = find(region, penalty), cp.Variable(N)
    found = _optimum(g @ x + h(x), describe(x))
    answer = oracle.linear(g)
    assert abs(answer.value - found) <= 1e-7
    assert answer.lower <= found + 1e-7
    found = _optimum(g @ (x - z) + 1.25 * cp.sum_squares(x - z) + h(x), describe(x))
    answer = oracle.prox(g, z, 2.5)
    assert abs(answer.value - found) <= 1e-7
    assert answer.lower <= found + 1e-7


@pytest.mark.parametrize("name", [name for name in PENALTIES if name != "zero"])
def test_proximal_points_are_those_of_a_conic_solver(name):
    penalty, h = PENALTIES[name]
    v, x = np.random.default_rng(32).standard_normal(N) * 2.0, cp.Variable(N)
    found = _optimum(0.5 * cp.sum_squares(x - v) + 0.7 * h(x), [])
    y = penalty.prox(v, 0.7)
    value = 0.5 * np.sum((y - v) ** 2) + 0.7 * penalty.value(y)
    assert abs(value - found) <= 1e-7


def test_the_page_of_the_catalogue_is_up_to_date():
    page = Path(__file__).resolve().parent.parent / "docs" / "catalogue.md"
    assert page.read_text(encoding="utf-8") == catalogue_page(), "run `make catalogue`"


def test_the_page_names_every_piece():
    page = catalogue_page()
    for case in (*SET_CASES, *PENALTY_CASES):
        assert f"| `{case.kind.__name__}` |" in page


class TestThresholds:
    @pytest.mark.parametrize("spread", [1.0, 1e6, 1e12])
    def test_totals_beside_large_entries(self, spread):
        rng = np.random.default_rng(33)
        v = rng.standard_normal((20, 9)) * 10.0 ** rng.uniform(-3, np.log10(spread), (20, 9))
        weights, upper = 0.3 + rng.random((2, 20, 9))
        x = shifted_to_total(v, 0.2, weights, upper)
        np.testing.assert_allclose(np.sum(weights * x, axis=-1), 0.2, rtol=0, atol=1e-14)
        assert x.min() >= 0.0
        assert np.all(x <= upper)

    def test_the_multiplier_is_one_number(self):
        """(v - x) / a is tau where 0 < x < u, at least tau where x = u, at most tau where x = 0."""
        rng = np.random.default_rng(34)
        v, a, u = rng.standard_normal(50) * 2, 0.3 + rng.random(50), 0.1 + rng.random(50)
        x = shifted_to_total(v, 5.0, a, u)
        tau = (v - x) / a
        free = tau[(x > 0) & (x < u)]
        assert len(free) > 3
        assert np.ptp(free) <= 1e-14
        assert np.all(tau[x == u] >= free[0] - 1e-14)
        assert np.all(tau[x == 0] <= free[0] + 1e-14)


class TestRowSolvers:
    @pytest.mark.parametrize("n", [1, 2, 3, 40])
    def test_variation_is_the_analysis_penalty_of_differences(self, n):
        rng = np.random.default_rng(35)
        v, t = 3.0 * rng.standard_normal((5, n)), 3.0 * rng.random(5)
        found = denoised(v, t)
        if n == 1:
            np.testing.assert_array_equal(found, v)
            return
        slow = AnalysisL1(np.diff(np.eye(n), axis=0), 1.0).prox(v, t)
        np.testing.assert_allclose(found, slow, rtol=0, atol=1e-12)

    def test_pooling_is_the_minimax_of_means(self):
        """The nearest nonincreasing vector is min over a <= j of max over b >= j of the mean of z_a..z_b."""
        rng = np.random.default_rng(36)
        z = np.round(2.0 * rng.standard_normal((10, 12)))
        sums = np.concatenate([np.zeros((10, 1)), np.cumsum(z, axis=-1)], axis=-1)
        for row, total, found in zip(z, sums, nonincreasing(z), strict=True):
            n = len(row)
            for j in range(n):
                means = [
                    max((total[b + 1] - total[a]) / (b + 1 - a) for b in range(j, n))
                    for a in range(j + 1)
                ]
                assert abs(found[j] - min(means)) <= 1e-13

    def test_a_long_row_is_exact(self):
        """100,000 entries: the dual u of total variation lies in its box, and touches it where x jumps."""
        v = np.cumsum(np.random.default_rng(37).standard_normal(100_000)) * 0.1
        x = denoised(v, 4.0)
        u = np.cumsum(v - x)[:-1]
        assert np.max(np.abs(u)) <= 4.0 + 1e-9
        jumps = np.diff(x)
        assert np.count_nonzero(jumps) > 10
        np.testing.assert_allclose(u[jumps != 0], -4.0 * np.sign(jumps[jumps != 0]), atol=1e-9)


class TestZeros:
    def test_groups_vanish_as_a_whole(self):
        y = rp.penalties.Group([0, 0, 1, 1], 1.0).prox(np.array([0.3, -0.4, 3.0, 4.0]), 1.0)
        np.testing.assert_allclose(y, [0.0, 0.0, 2.4, 3.2], rtol=0, atol=1e-15)
        assert np.count_nonzero(y) == 2

    def test_projections_onto_the_l1_ball_are_sparse(self):
        y = rp.sets.L1Ball(1.0).project(np.array([3.0, -2.5, 0.5, 0.1]))
        np.testing.assert_allclose(y, [0.75, -0.25, 0.0, 0.0], rtol=0, atol=1e-15)
        assert np.count_nonzero(y) == 2


DOORS = {
    "power below 1": (lambda: rp.sets.LpBall(0.5), DataError, "power"),
    "power NaN": (lambda: rp.sets.LpBall(np.nan), DataError, "power"),
    "scale 0": (lambda: rp.sets.L1Ball(1.0, np.array([1.0, 0.0])), DataError, "scales"),
    "k = 0": (lambda: rp.sets.KSparsePolytope(0), DataError, "k must be"),
    "empty": (lambda: rp.sets.CappedSimplex(3.0).check_shape((2,)), DataError, "empty"),
    "cap 0": (lambda: rp.sets.CappedSimplex(1.0, [1.0, 0.0]), DataError, "upper"),
    "rising": (lambda: rp.penalties.OWL([1.0, 2.0]), DataError, "nonincreasing"),
    "negative": (lambda: rp.sets.OWLBall([1.0, -1.0]), DataError, "nonincreasing"),
    "all zero": (lambda: rp.penalties.OWL([0.0, 0.0]), DataError, "profile is 0"),
    "no profile": (lambda: rp.penalties.OWL(1.0), ShapeError, "profile"),
    "profile": (lambda: rp.penalties.OWL([2.0, 1.0]).check_shape((3,)), ShapeError, "profile"),
    "ball's profile": (
        lambda: rp.sets.OWLBall([2.0, 1.0]).check_shape((3,)),
        ShapeError,
        "profile",
    ),
    "a gap": (lambda: rp.penalties.Group([0, 2], 1.0), DataError, "every number"),
    "from 1": (lambda: rp.penalties.Group([1, 2], 1.0), DataError, "whole numbers"),
    "fractions": (lambda: rp.sets.GroupBall([0.0, 1.0]), DataError, "whole numbers"),
    "labels": (lambda: rp.penalties.Group([0, 1], 1.0).check_shape((3,)), ShapeError, "groups"),
    "ball's labels": (lambda: rp.sets.GroupBall([0, 1]).check_shape((3,)), ShapeError, "groups"),
    "label axes": (lambda: rp.penalties.Group([[0, 1]], 1.0), ShapeError, "axes"),
    "group scales": (lambda: rp.penalties.Group([0, 1], 1.0, np.ones(3)), ShapeError, "scales"),
    "ball scales": (lambda: rp.sets.GroupBall([0, 1], 1.0, np.ones(3)), ShapeError, "scales"),
    "ridge": (lambda: rp.penalties.ElasticNet(1.0, -1.0), DataError, "ridge"),
    "sparsity": (lambda: rp.penalties.TotalVariation(1.0, -1.0), DataError, "sparsity"),
    "weight": (lambda: rp.penalties.Entropy(-1.0), DataError, "weight"),
    "flat": (lambda: rp.sets.Ellipsoid(np.diag([1.0, 0.0])), DataError, "singular"),
    "oblong": (lambda: rp.sets.Ellipsoid(np.ones((2, 3))), ShapeError, "square"),
    "oblong plan": (lambda: rp.sets.Birkhoff().check_shape((2, 3)), ShapeError, "square"),
    "oblong state": (lambda: rp.sets.Spectraplex().check_shape((2, 3)), ShapeError, "square"),
    "rank": (lambda: rp.sets.Fantope(0), DataError, "rank"),
    "high rank": (lambda: rp.sets.Fantope(3).check_shape((2, 2)), DataError, "empty"),
    "no points": (lambda: rp.sets.ConvexHull(np.ones(3)), ShapeError, "vertices"),
    "sides": (
        lambda: rp.sets.Polytope(np.eye(2), np.ones(3), lower=0.0, upper=1.0),
        ShapeError,
        "most",
    ),
    "crossed": (
        lambda: rp.sets.Polytope(np.eye(2), 1.0, lower=2.0, upper=1.0),
        DataError,
        "empty",
    ),
    "complex": (lambda: rp.penalties.Nuclear(1j), DataError, "weight"),
}


@pytest.mark.parametrize("name", DOORS)
def test_what_makes_no_sense_is_refused_by_name(name):
    build, kind, words = DOORS[name]
    with pytest.raises(RestpointError, match=words) as error:
        build()
    assert isinstance(error.value, kind)


ROWS = np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 0.0], [-0.5, 1.0, 0.2], [0.3, -1.0, -0.4]])
FACTOR = np.array([[2.0, 0.3, 0.0], [0.0, 1.0, -0.2], [0.1, 0.0, 0.5]])
CENTER = np.array([0.5, -1.0, 0.2])
POLYTOPE = rp.sets.Polytope(ROWS, 0.6, [-0.2, -np.inf, -0.3, -np.inf], lower=-1.0, upper=0.8)
LARGE = {
    "ellipsoid": (
        rp.sets.Ellipsoid(FACTOR, 0.9, CENTER),
        lambda x: [cp.norm(np.linalg.inv(FACTOR) @ (x - CENTER), 2) <= 0.9],
        (3,),
    ),
    "polytope": (
        POLYTOPE,
        lambda x: [ROWS @ x <= 0.6, ROWS[[0, 2]] @ x >= [-0.2, -0.3], x >= -1.0, x <= 0.8],
        (3,),
    ),
    "birkhoff": (
        rp.sets.Birkhoff(),
        lambda x: [x >= 0, cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) == 1],
        (4, 4),
    ),
    "nuclear": (rp.sets.NuclearBall(1.2), lambda x: [cp.normNuc(x) <= 1.2], (4, 3)),
    "spectral": (rp.sets.SpectralBall(0.7), lambda x: [cp.sigma_max(x) <= 0.7], (4, 3)),
    "frobenius": (rp.sets.L2Ball(0.9, event_ndim=2), lambda x: [cp.norm(x, "fro") <= 0.9], (3, 2)),
    "spectraplex": (
        rp.sets.Spectraplex(1.5),
        lambda x: [x == x.T, x >> 0, cp.trace(x) == 1.5],
        (3, 3),
    ),
    "fantope": (
        rp.sets.Fantope(2),
        lambda x: [x == x.T, x >> 0, np.eye(4) - x >> 0, cp.trace(x) == 2],
        (4, 4),
    ),
}
LARGE_PENALTIES = {
    "zero": (rp.penalties.Zero, lambda x: 0.0),
    "nuclear": (lambda ndim: rp.penalties.Nuclear(0.4), lambda x: 0.4 * cp.normNuc(x)),
    "frobenius": (lambda ndim: rp.penalties.L2Norm(0.4, 2), lambda x: 0.4 * cp.norm(x, "fro")),
}
LARGE_PAIRS = [
    *((name, "zero") for name in LARGE),
    *((name, "nuclear") for name in ("nuclear", "spectral", "frobenius")),
    ("frobenius", "frobenius"),
]


@pytest.mark.parametrize("names", LARGE_PAIRS, ids=" x ".join)
def test_no_conic_solver_does_better_on_matrices_and_polytopes(names):
    region, describe, shape = LARGE[names[0]]
    make, h = LARGE_PENALTIES[names[1]]
    rng = np.random.default_rng(38)
    g = rng.standard_normal(shape)
    z = region.sample(rng, shape)
    oracle, x = find(region, make(len(shape))), cp.Variable(shape)
    found = _optimum(cp.sum(cp.multiply(g, x)) + h(x), describe(x))
    answer = oracle.linear(g)
    assert abs(answer.value - found) <= 1e-7
    assert answer.lower <= found + 1e-7
    assert answer.value - answer.lower <= 1e-9
    square = 1.25 * cp.sum_squares(x - z)
    found = _optimum(cp.sum(cp.multiply(g, x - z)) + square + h(x), describe(x))
    answer = oracle.prox(g, z, 2.5)
    assert abs(answer.value - found) <= 1e-7
    assert answer.lower <= found + 1e-7
    assert answer.value - answer.lower <= 1e-9


class TestBoundsOfPolytopes:
    def test_whatever_the_multipliers_are(self, monkeypatch):
        """Theory A2: multipliers that HiGHS did not find make the bound weaker, never false."""
        rng, tight = np.random.default_rng(39), 0
        solve = type(POLYTOPE)._solve
        for _ in range(20):
            g = rng.standard_normal(3)
            point, mu = solve(POLYTOPE, g)
            wrong = mu + 0.3 * rng.standard_normal(4) * (rng.random() < 0.8)
            monkeypatch.setattr(type(POLYTOPE), "_solve", lambda self, g, a=(point, wrong): a)
            lower = POLYTOPE.minimisers(g[None])[1][0]
            assert lower <= g @ point + 1e-12
            tight += g @ point - lower <= 1e-9
        assert tight >= 1

    def test_empty_and_unbounded_ones_are_refused(self):
        with pytest.raises(DataError, match="empty"):
            rp.sets.Polytope([[1.0, 1.0]], -3.0, lower=-1.0, upper=1.0)
        with pytest.raises(DataError, match="finite"):
            rp.sets.Polytope([[1.0, 1.0]], 1.0, lower=-np.inf, upper=1.0)


def test_a_hull_projects_to_its_faces_as_a_conic_solver_does():
    rng = np.random.default_rng(40)
    vertices = rng.standard_normal((9, 5))
    x, shares = rng.standard_normal((6, 5)), cp.Variable(9, nonneg=True)
    for point, near in zip(x, rp.sets.ConvexHull(vertices).project(x), strict=True):
        found = _optimum(cp.sum_squares(shares @ vertices - point), [cp.sum(shares) == 1])
        assert abs(np.sum((near - point) ** 2) - found) <= 1e-7


def test_assignments_are_solved_by_frank_wolfe_with_a_certificate():
    """A small quadratic assignment over the Birkhoff polytope ends stationary, and says so."""
    rng = np.random.default_rng(41)
    target = rng.random((5, 5))
    f = rp.smooth.Function(
        lambda x: 0.5 * np.sum((x - target) ** 2),
        lambda x: x - target,
        shapes=[(5, 5)],
        constant=1.0,
    )
    result = rp.solve(rp.Problem(f, rp.Block(rp.sets.Birkhoff())), eps=1e-6, starts=2, rng=0)
    assert np.all(result.certificate.max <= 1e-6)
    np.testing.assert_allclose(np.sum(result.xs[0], axis=-1), 1.0, atol=1e-12)
