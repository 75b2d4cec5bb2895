"""Several components refined together: what is reached, and what is proved about it."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models.tensor_pca import joint
from restpoint.models.tensor_pca._components import best_vector
from restpoint.models.tensor_pca._joint_task import task_of
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.joint import explained, observed_gram, refine
from restpoint.sets import L2Ball, NonnegativeBall

LETTERS = "abcd"


def composed(weights, factors):
    """sum_r w_r x_1r o ... o x_dr."""
    modes = LETTERS[: len(factors)]
    return np.einsum("r," + ",".join("r" + m for m in modes) + "->" + modes, weights, *factors)


def congruent(rng, sizes, rank, congruence):
    """Unit rows whose inner products are all ``congruence``, mode by mode."""
    root = np.linalg.cholesky(congruence + (1.0 - congruence) * np.eye(rank))
    return [root @ np.linalg.qr(rng.standard_normal((n, rank)))[0].T for n in sizes]


def sparse_units(rng, sizes, rank, share=0.3):
    rows = [rng.standard_normal((rank, n)) * (rng.random((rank, n)) < share) for n in sizes]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in rows]


def noisy(rng, A, level):
    noise = rng.standard_normal(A.shape)
    return A + level * np.linalg.norm(A) / np.linalg.norm(noise) * noise


def start(rng, sizes, rank):
    return np.ones(rank), [rng.standard_normal((rank, n)) for n in sizes]


def factor_match(true, found):
    """The smallest product of cosines over components, at the best matching."""
    cosines = np.prod([np.abs(x @ y.T) for x, y in zip(true, found, strict=True)], axis=0)
    ranks = range(len(cosines))
    return max(min(cosines[r, p[r]] for r in ranks) for p in permutations(ranks))


def objective(A, weights, factors, rho):
    residual = A - composed(weights, factors)
    penalty = sum(p * np.abs(X).sum(axis=1) for p, X in zip(rho, factors, strict=True))
    return 0.5 * np.nansum(residual**2) + weights @ penalty


def true_gaps(A, fit, rho, sets):
    """Block gaps, and the gap of the weights, from the residual tensor."""
    d, R = A.ndim, len(fit.weights)
    residual = np.where(np.isnan(A), 0.0, A - composed(fit.weights, fit.factors))
    gaps, slopes = [], np.zeros(R)
    modes = LETTERS[:d]
    for i in range(d):
        others = [m for m in range(d) if m != i]
        rule = ",".join([modes, *("r" + modes[m] for m in others)]) + "->r" + modes[i]
        g = -np.einsum(rule, residual, *(fit.factors[m] for m in others))
        for r in range(R):
            w, x = fit.weights[r], fit.factors[i][r]
            shrunk = np.maximum(np.abs(w * g[r]) - w * rho[i], 0.0)
            if isinstance(sets[i], NonnegativeBall):
                shrunk = np.maximum(-w * g[r] - w * rho[i], 0.0)
            gaps.append(w * g[r] @ x + w * rho[i] * np.abs(x).sum() + np.linalg.norm(shrunk))
        slopes += rho[i] * np.abs(fit.factors[i]).sum(axis=1)
    slopes += np.einsum("rj,rj->r", g, fit.factors[d - 1])
    return gaps, np.sum(np.maximum(slopes * fit.weights, slopes * (fit.weights - fit.limit)))


CASES = {
    "dense": (0.0, None, 0.0),
    "sparse": (0.05, None, 0.0),
    "by mode": ([0.1, 0.0, 0.03], None, 0.0),
    "nonnegative": ([0.02, 0.0, 0.05], [NonnegativeBall(), L2Ball(), NonnegativeBall()], 0.0),
    "missing": (0.0, None, 0.3),
    "sparse, missing": (0.05, None, 0.3),
    "nonnegative, missing": (0.0, [NonnegativeBall()] * 3, 0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_monotone_certified_and_sound(name):
    rho, sets, missing = CASES[name]
    rng = np.random.default_rng(0)
    sizes = (9, 8, 7)
    true = congruent(rng, sizes, 3, 0.4)
    true = [np.abs(X) for X in true] if sets else true
    A = noisy(rng, composed(np.array([3.0, 2.0, 1.5]), true), 0.2)
    A[rng.random(sizes) < missing] = np.nan
    weights, factors = start(rng, sizes, 3)
    fit = refine(A, weights, factors, rho=rho, sets=sets, eps=1e-9)
    rho, sets = np.broadcast_to(rho, (3,)), sets or [L2Ball()] * 3
    size = np.nansum(A**2)
    assert fit.certified
    assert fit.certificate.floor_kind == "proved"
    assert fit.eps == pytest.approx(0.5e-9 * size)
    assert np.max(np.diff(fit.trace)) <= 1e-14 * size
    np.testing.assert_allclose(fit.trace[-1], fit.value, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(fit.value, objective(A, fit.weights, fit.factors, rho), rtol=1e-12)
    gaps, of_weights = true_gaps(A, fit, rho, sets)
    assert np.all(fit.certificate.per_block >= np.array(gaps) - 1e-15 * size)
    assert np.all(fit.certificate.per_block <= np.array(gaps) + 1e-11 * size)
    assert of_weights - 1e-15 * size <= fit.weights_gap <= of_weights + 1e-11 * size
    for X, s in zip(fit.factors, sets, strict=True):
        lengths = np.linalg.norm(X, axis=1)
        np.testing.assert_allclose(lengths, np.where(fit.weights > 0, 1.0, 0.0), atol=1e-14)
        assert not isinstance(s, NonnegativeBall) or X.min() >= 0.0


def test_the_certificate_tells_of_a_bad_point():
    """Without a single sweep the weights are the best for these vectors, and the gaps are those of the start."""
    rng = np.random.default_rng(1)
    true = congruent(rng, (5, 4, 6), 2, 0.3)
    A = composed(np.array([3.0, 2.0]), true)
    factors = [X + 0.1 * rng.standard_normal(X.shape) for X in true]
    fit = refine(A, [1.0, 1.0], factors, rho=0.05, max_outer=0)
    assert fit.status is rp.Status.ITERATION_LIMIT
    assert fit.weights.min() > 0.0
    gaps, of_weights = true_gaps(A, fit, [0.05] * 3, [L2Ball()] * 3)
    np.testing.assert_allclose(fit.certificate.per_block, gaps, rtol=1e-12)
    assert of_weights <= fit.weights_gap <= fit.eps
    assert fit.certificate.max > 1e3 * fit.eps


@pytest.mark.parametrize("sizes", [(10, 12, 14), (8, 7, 6, 9)])
def test_congruent_components_are_found(sizes):
    rng = np.random.default_rng(2)
    true = congruent(rng, sizes, 3, 0.5)
    A = noisy(rng, composed(np.array([3.0, 2.0, 1.5]), true), 0.1)
    fit = refine(A, *start(rng, sizes, 3))
    assert fit.certified
    assert factor_match(true, fit.factors) >= 0.95
    assert fit.iterations <= 200
    # No fit has a smaller error than the noise explains: below the truth itself.
    assert fit.value <= 0.5 * np.sum((A - composed(np.array([3.0, 2.0, 1.5]), true)) ** 2)


def test_sparse_components_are_found_from_random_starts():
    """Shrinkage kills components at first, and duplicates arise: they look for another place."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sizes = (30, 25, 20)
        true = sparse_units(rng, sizes, 3)
        A = composed(np.array([10.0, 7.0, 5.0]), true) + 0.05 * rng.standard_normal(sizes)
        fit = refine(A, *start(rng, sizes, 3), rho=0.2)
        assert fit.certified
        assert factor_match(true, fit.factors) >= 0.98
        best = refine(A, [10.0, 7.0, 5.0], true, rho=0.2)
        np.testing.assert_allclose(fit.value, best.value, rtol=1e-8)


@pytest.mark.parametrize("rho", [0.0, 0.002])
def test_structured_drop_out(rho):
    """Half of the subjects lose the last four fifths of their time: 40 % of the entries."""
    rng = np.random.default_rng(3)
    sizes, weights = (40, 15, 20), np.array([3.0, 2.0])
    true = congruent(rng, sizes, 2, 0.3)
    A = noisy(rng, composed(weights, true), 0.05)
    A[:20, :, 4:] = np.nan
    assert np.mean(np.isnan(A)) == 0.4
    fit = refine(A, *start(rng, sizes, 2), rho=rho)
    assert fit.certified
    order = np.argsort(-fit.weights)
    for X, Y in zip(true, fit.factors, strict=True):
        for x, y in zip(X, Y[order], strict=True):
            assert np.linalg.norm(x - np.sign(x @ y) * y) <= 0.05
    if rho == 0.0:
        np.testing.assert_allclose(fit.weights[order], weights, rtol=0.02)
        assert explained(A, fit.weights, fit.factors) >= 0.99


def test_one_component_is_the_rank_one_problem():
    rng = np.random.default_rng(4)
    sizes = (12, 10, 8)
    true = sparse_units(rng, sizes, 1, 0.4)
    A = composed(np.array([5.0]), true) + 0.1 * rng.standard_normal(sizes)
    block = rp.Block(L2Ball(), rp.penalties.L1(0.3))
    problem = rp.Problem(rp.smooth.Multilinear(A), [block] * 3)
    alone = rp.solve(problem, x0=tuple(X[0] for X in true), eps=1e-13)
    fit = refine(A, [1.0], true, rho=0.3, eps=1e-13)
    assert fit.certified
    for x, X in zip(alone.xs, fit.factors, strict=True):
        np.testing.assert_allclose(X[0], x, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(X[0] != 0.0, x != 0.0)
    t = -float(alone.value)
    np.testing.assert_allclose(fit.weights, [t], rtol=1e-9)
    np.testing.assert_allclose(fit.value, 0.5 * np.sum(A**2) - 0.5 * t**2, rtol=1e-12)


def test_the_solver_agrees_about_the_frozen_problem():
    """It certifies the point as it stands, and from elsewhere it finds nothing much better with these weights."""
    rng = np.random.default_rng(16)
    sizes, kinds = (7, 6, 5), [NonnegativeBall(), L2Ball(), NonnegativeBall()]
    true = [np.abs(X) for X in congruent(rng, sizes, 2, 0.2)]
    A = noisy(rng, composed(np.array([2.0, 1.0]), true), 0.3)
    A[rng.random(sizes) < 0.2] = np.nan
    fit = refine(A, *start(rng, sizes, 2), rho=0.02, sets=kinds, eps=1e-9)
    smooth = rp.smooth.CanonicalPolyadic(A, fit.weights)
    chosen = [rp.Block(s, rp.penalties.L1(0.02 * w)) for s in kinds for w in fit.weights]
    problem = rp.Problem(smooth, chosen)
    stay = rp.solve(problem, x0=fit.xs, eps=fit.eps)
    assert stay.status is rp.Status.CERTIFIED
    assert stay.iterations == 0
    method = rp.ProximalGradient(rp.GaussSeidel())
    others = rp.solve(problem, method, starts=10, eps=1e-6)
    assert others.certified.all()
    assert fit.value <= np.min(others.value) + 1e-5


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_other_units_give_the_same_components(scale):
    rng = np.random.default_rng(5)
    sizes = (10, 9, 8)
    A = composed(np.array([4.0, 2.0]), sparse_units(rng, sizes, 2))
    A += 0.02 * rng.standard_normal(sizes)
    weights, factors = start(rng, sizes, 2)
    one = refine(A, weights, factors, rho=0.1)
    other = refine(scale * A, weights, factors, rho=0.1 * scale)
    assert one.certified
    assert other.certified
    np.testing.assert_allclose(other.weights, scale * one.weights, rtol=1e-7)
    for X, Y in zip(one.factors, other.factors, strict=True):
        np.testing.assert_array_equal(X != 0.0, Y != 0.0)
        np.testing.assert_allclose(X, Y, rtol=0, atol=1e-7)


class TestTolerances:
    def test_it_goes_on_to_the_aim_if_that_costs_little(self):
        rng = np.random.default_rng(8)
        sizes = (9, 8, 7)
        A = noisy(rng, composed(np.array([3.0, 2.0]), congruent(rng, sizes, 2, 0.4)), 0.2)
        weights, factors = start(rng, sizes, 2)
        short, long = (refine(A, weights, factors, eps=1e-5, aim=aim) for aim in (1e-5, 1e-9))
        assert short.certified
        assert long.certified
        assert long.eps == short.eps
        assert long.certificate.max <= 1e-3 * short.eps
        assert short.iterations < long.iterations <= 1.5 * short.iterations + 10

    def test_what_cannot_reach_the_aim_is_certified_all_the_same(self):
        e, f = np.eye(3)[:2]
        A = sum(
            np.einsum("a,b,c->abc", *v) for v in ((e, e, f), (e, f, e), (f, e, e))
        )  # no best fit
        rng = np.random.default_rng(0)
        weights, factors = start(rng, A.shape, 2)
        slow = refine(A, weights, factors, eps=1e-2, aim=1e-12)
        assert slow.certified
        assert slow.iterations < 500


@pytest.mark.parametrize("name", CASES)
def test_after_a_refused_certificate_f_falls_as_the_theorem_says(name):
    rho, sets, missing = CASES[name]
    rng = np.random.default_rng(2)
    sizes = (6, 5, 7)
    A = noisy(rng, np.abs(composed(np.array([3.0, 2.0]), congruent(rng, sizes, 2, 0.4))), 0.3)
    A[rng.random(sizes) < missing] = np.nan
    task = task_of(rp.smooth.CanonicalPolyadic(A, [1.0]), rho, sets, 1e-9, 50)
    for _ in range(20):
        run = joint._Run(task, *joint.start(task.sets, sizes, *start(rng, sizes, 2)))
        for _ in range(4):
            proof = task.proof(run.best)
            run._refused(proof, run.best)
            gap, lead = float(proof.certificate.max), run.lead
            blocks = proof.certificate.per_block
            assert blocks[lead[0] * 2 + lead[1]] == gap
            D = 4.0 * np.max(run.best.weights) ** 2
            least = gap**2 / (2 * D) if gap <= D else gap - D / 2
            new = run._swept(run.best, lead)
            assert run.best.value - new.value >= least - 1e-12
            run._keep(new)


def test_the_bound_names_theorem_and_constants():
    rng = np.random.default_rng(1)
    sizes = (6, 5, 4)
    fit = refine(
        noisy(rng, composed(np.array([3.0]), congruent(rng, sizes, 1, 0.0)), 0.2),
        *start(rng, sizes, 1),
    )
    assert "theory A13" in fit.bound.statement
    assert "theory A6 does not apply" in str(fit.bound)
    assert fit.bound.constants["D"] == pytest.approx(4.0 * fit.heaviest**2)
    assert fit.bound.constants["delta"] == fit.trace[0]
    assert fit.refusals <= fit.bound.count


class TestZeros:
    def test_a_penalty_above_all_leaves_zero(self):
        rng = np.random.default_rng(6)
        A = rng.standard_normal((5, 4, 3))
        fit = refine(A, *start(rng, A.shape, 2), rho=100.0)
        assert fit.certified
        np.testing.assert_array_equal(fit.weights, 0.0)
        assert all(not np.any(X) for X in fit.factors)
        np.testing.assert_allclose(fit.value, 0.5 * np.sum(A**2), rtol=1e-14)

    def test_the_zero_tensor(self):
        fit = refine(np.zeros((3, 4)), [1.0], [np.ones((1, 3)), np.ones((1, 4))], rho=0.1)
        assert fit.certified
        np.testing.assert_array_equal(fit.weights, 0.0)
        assert explained(np.zeros((3, 4)), fit.weights, fit.factors) == 0.0

    def test_weights_and_rows_of_zeros_may_start(self):
        rng = np.random.default_rng(7)
        true = congruent(rng, (6, 5, 4), 2, 0.1)
        A = composed(np.array([2.0, 1.0]), true)
        fit = refine(A, [0.0, 1.0], [np.zeros((2, 6)), *(X.copy() for X in true[1:])])
        assert fit.certified
        assert factor_match(true, fit.factors) >= 0.999

    def test_more_components_than_there_are(self):
        """The third has nothing to fit but noise, which costs more than it explains."""
        rng = np.random.default_rng(8)
        true = sparse_units(rng, (12, 10, 8), 2)
        A = composed(np.array([4.0, 3.0]), true) + 1e-3 * rng.standard_normal((12, 10, 8))
        fit = refine(A, *start(rng, A.shape, 3), rho=0.1)
        assert fit.certified
        assert np.count_nonzero(fit.weights > 1e-6) >= 2
        alive = [X[np.argsort(-fit.weights)[:2]] for X in fit.factors]
        assert factor_match(true, alive) >= 0.95

    def test_a_slice_with_nothing_observed(self):
        rng = np.random.default_rng(9)
        A = composed(np.array([2.0]), congruent(rng, (6, 5, 4), 1, 0.0))
        A[2] = np.nan
        fit = refine(A, *start(rng, A.shape, 1), rho=0.01)
        assert fit.certified
        assert fit.factors[0][0, 2] == 0.0


class TestLimits:
    def test_time(self):
        rng = np.random.default_rng(10)
        A = rng.standard_normal((8, 8, 8))
        fit = refine(A, *start(rng, A.shape, 3), max_seconds=0.0)
        assert fit.status is rp.Status.TIME_LIMIT
        assert np.isfinite(fit.certificate.max)

    def test_ctrl_c_returns_the_best_point_so_far(self, monkeypatch):
        rng = np.random.default_rng(11)
        A = rng.standard_normal((8, 8, 8))
        calls, step = [], joint.mode_step

        def interrupted(*args):
            calls.append(None)
            if len(calls) == 17:  # in the middle of the sixth sweep
                raise KeyboardInterrupt
            return step(*args)

        monkeypatch.setattr(joint, "mode_step", interrupted)
        fit = refine(A, *start(rng, A.shape, 3))
        assert fit.status is rp.Status.INTERRUPTED
        assert fit.iterations >= 2
        np.testing.assert_allclose(fit.value, fit.trace[-1], rtol=1e-12)
        np.testing.assert_allclose(fit.value, objective(A, fit.weights, fit.factors, [0.0] * 3))


def test_any_kind_of_tensor():
    rng = np.random.default_rng(12)
    A = composed(np.array([4.0, 2.0]), sparse_units(rng, (9, 8, 7), 2))
    weights, factors = start(rng, A.shape, 2)
    places = np.nonzero(A)
    sparse = rp.smooth.SparseTensor(places, A[places], A.shape)
    one = refine(A, weights, factors, rho=0.1, eps=1e-10)
    for given in (sparse, rp.smooth.Multilinear(A), rp.smooth.CanonicalPolyadic(A, [1.0])):
        other = refine(given, weights, factors, rho=0.1, eps=1e-10)
        assert other.certified
        np.testing.assert_allclose(other.value, one.value, rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_data_in_float32_are_certified_in_float64(missing):
    rng = np.random.default_rng(17)
    A = composed(np.array([4.0, 2.0]), sparse_units(rng, (9, 8, 7), 2)).astype(np.float32)
    A[rng.random(A.shape) < missing] = np.nan
    weights, factors = start(rng, A.shape, 2)
    fit = refine(A, weights, factors, rho=0.1, eps=1e-10)
    same = refine(A.astype(float), weights, factors, rho=0.1, eps=1e-10)
    assert fit.certified
    assert fit.certificate.floor_kind == "proved"
    np.testing.assert_allclose(fit.value, same.value, rtol=1e-12)
    assert explained(A, fit.weights, fit.factors) == pytest.approx(
        explained(A.astype(float), fit.weights, fit.factors), rel=1e-12
    )


def test_tensors_of_other_libraries():
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(18)
    A = rng.standard_normal((5, 4, 3))
    weights, factors = start(rng, A.shape, 2)
    one, other = (refine(B, weights, factors, eps=1e-6) for B in (A, xp.asarray(A)))
    assert other.certified
    np.testing.assert_allclose(other.value, one.value, rtol=1e-9)


class TestPieces:
    @pytest.mark.parametrize("even", [True, False])
    def test_best_vector_is_optimal(self, even):
        rng = np.random.default_rng(13)
        for _ in range(30):
            b, tau, rho = 3.0 * rng.standard_normal(6), 2.0 * rng.random(), 0.5
            q = np.full(6, 1.5) if even else 10.0 ** rng.uniform(-3, 1, 6)
            u = b - np.clip(b, -rho, rho)
            a = best_vector(u, q, tau)
            if not np.any(a):
                assert np.linalg.norm(u) <= tau
                continue
            slope = b - q * a - tau * a / np.linalg.norm(a)
            assert np.all(np.abs(slope) <= rho * (1 + 1e-12))
            on = a != 0.0
            np.testing.assert_allclose(slope[on], rho * np.sign(a[on]), rtol=0, atol=1e-12)

    def test_best_weights_solve_the_quadratic_program(self):
        rng = np.random.default_rng(14)
        for _ in range(20):
            half = rng.standard_normal((4, 4))
            gram, pay = Gram(half @ half.T, rng.standard_normal(4)), rng.random(4)
            w = best_weights(gram, pay, rng.random(4))
            slopes = gram.pairs @ w - gram.data + pay
            assert w.min() >= 0.0
            assert slopes.min() >= -1e-9
            assert np.max(np.abs(w * slopes)) <= 1e-9

    def test_gram_and_explained_use_observed_entries_only(self):
        rng = np.random.default_rng(15)
        A = rng.standard_normal((5, 4, 3))
        known = rng.random(A.shape) < 0.6
        factors = [rng.standard_normal((2, n)) for n in A.shape]
        parts = [composed(np.eye(2)[r], factors)[known] for r in range(2)]
        gram = observed_gram(np.where(known, A, np.nan), factors)
        np.testing.assert_allclose(gram.pairs, [[x @ y for y in parts] for x in parts], rtol=1e-12)
        np.testing.assert_allclose(gram.data, [x @ A[known] for x in parts], rtol=1e-11)
        rest = A[known] - 0.3 * parts[0] - 0.1 * parts[1]
        share = explained(np.where(known, A, np.nan), [0.3, 0.1], factors)
        assert share == pytest.approx(1.0 - np.sum(rest**2) / np.sum(A[known] ** 2), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rho": -1.0}, DataError, "rho must be >= 0"),
        ({"rho": [0.1, 0.2]}, ShapeError, "rho has shape"),
        ({"sets": [L2Ball(2.0)] * 3}, CapabilityError, "radius 1"),
        ({"sets": [L2Ball()]}, ShapeError, "one for each mode"),
        ({"eps": 0.0}, DataError, "eps must be"),
        ({"max_outer": -1}, DataError, "max_outer"),
        ({"weights": [1.0]}, ShapeError, "weights has shape"),
        ({"factors": [np.ones((2, 3))]}, ShapeError, "one for each mode"),
        ({"factors": [np.ones((2, 3)), np.ones((2, 4)), np.ones((3, 5))]}, ShapeError, "factors"),
    ],
)
def test_bad_input_is_named(change, error, message):
    arguments = {
        "weights": [1.0, 1.0],
        "factors": [np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 5))],
        **change,
    }
    with pytest.raises(error, match=message):
        refine(np.ones((3, 4, 5)), **arguments)
