"""The oracles that iterate: against closed forms, each other, a conic solver and 50 digits; and their memory."""

import mpmath
import numpy as np
import pytest

import restpoint as rp
from restpoint.array import take, where
from restpoint.kernels import _box_loops, _shrinking_reference, null_space
from restpoint.kernels.analysis import Analysis
from restpoint.kernels.null_space import NullSpace
from restpoint.oracles import CenteredBallAnalysis, NullSpaceBallSeparable, find
from restpoint.penalties import L1, AnalysisL1
from restpoint.sets import L2Ball, NullSpaceBall


def orthonormal(rng, rows, columns):
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


def analysis(rng, n, kappa, m=None):
    """The subproblem of section 6.2: K = DN, the gradient at a random point, and a weight of relative size kappa."""
    m = 2 * n if m is None else m
    K = orthonormal(rng, m, m) @ orthonormal(rng, m, n)
    G = rng.standard_normal((m, m))
    B = K.T @ G @ G.T @ K
    weight = kappa * 2.0 * np.linalg.eigvalsh(B)[-1] / np.sqrt(m)
    x = rng.standard_normal(n)
    return K, 2.0 * B @ x / np.linalg.norm(x), weight


def features(rng, p, columns, share=0.5):
    """A subspace, a gradient, and weights under which about ``share`` of the entries are nonzero."""
    Q, b = orthonormal(rng, p, columns), rng.standard_normal(p)
    scales = 0.5 + rng.random(p)
    return Q, b, float(np.quantile(np.abs(b) / scales, 1.0 - share)), scales


def nullspace_oracle(Q, weight, scales, radius=1.0):
    return find(NullSpaceBall(Q, radius), L1(weight, scales=scales))


class TestTheoryE36:
    """min over the ball of -b'x + weight ||Kx||_1."""

    def test_the_closed_form_for_square_orthogonal_k(self):
        rng = np.random.default_rng(0)
        for n in (5, 40):
            DN, sigma, b = orthonormal(rng, n, n), 0.5 + rng.random(n), rng.standard_normal(n)
            answer = find(L2Ball(), AnalysisL1(sigma[:, None] * DN, 0.4)).linear(-b)
            z = L1(0.4, scales=sigma).prox(DN @ b, 1.0)
            np.testing.assert_allclose(answer.point, DN.T @ z / np.linalg.norm(z), atol=1e-14)
            np.testing.assert_allclose(answer.lower, -np.linalg.norm(z), atol=1e-14)

    def test_the_closed_form_is_wrong_where_k_is_tall(self):
        """m = 12, n = 6: never better, and mostly far from it."""
        rng, worse = np.random.default_rng(1), []
        for _ in range(40):
            K, b, weight = analysis(rng, 6, 0.35, m=12)
            answer = find(L2Ball(), AnalysisL1(K, weight)).linear(-b)
            if answer.value == 0.0:
                continue
            z = K.T @ L1(weight).prox(K @ b, 1.0)
            closed = z / np.linalg.norm(z)
            value = -b @ closed + weight * np.sum(np.abs(K @ closed))
            worse.append((value - answer.value) / -answer.lower)
        assert len(worse) > 30
        assert min(worse) > 1e-3
        assert max(worse) > 1.0

    def test_any_u_in_the_box_bounds_the_gap(self):
        rng = np.random.default_rng(2)
        K, b, weight = analysis(rng, 8, 0.3)
        least = find(L2Ball(), AnalysisL1(K, weight)).linear(-b).value
        for _ in range(50):
            u = weight * rng.uniform(-1.0, 1.0, len(K))
            assert -np.linalg.norm(b - K.T @ u) <= least

    def test_the_paper_has_no_ball_in_the_subproblem(self):
        """Without x'x <= 1 the printed subproblem is unbounded below, or its minimum is 0."""
        rng = np.random.default_rng(3)
        for kappa, bounded in ((0.2, False), (2.0, True)):
            K, b, weight = analysis(rng, 8, kappa)
            values = [
                float(find(L2Ball(r), AnalysisL1(K, weight)).linear(-b).value)
                for r in (1.0, 10.0, 100.0)
            ]
            if bounded:
                assert values == [0.0, 0.0, 0.0]
            else:
                np.testing.assert_allclose(values, values[0] * np.array([1, 10, 100]), rtol=1e-12)


class TestAgreement:
    @pytest.mark.parametrize("kappa", [0.05, 0.2, 0.4])
    def test_analysis_with_a_conic_solver(self, kappa):
        cp = pytest.importorskip("cvxpy")
        K, b, weight = analysis(np.random.default_rng(4), 20, kappa)
        x = cp.Variable(20)
        problem = cp.Problem(cp.Minimize(-b @ x + weight * cp.norm1(K @ x)), [cp.norm(x) <= 1.5])
        problem.solve(solver=cp.CLARABEL)
        answer = find(L2Ball(1.5), AnalysisL1(K, weight)).linear(-b)
        assert answer.value == pytest.approx(problem.value, rel=1e-6)

    @pytest.mark.parametrize("share", [0.3, 0.7])
    def test_null_space_with_a_conic_solver(self, share):
        cp = pytest.importorskip("cvxpy")
        Q, b, weight, scales = features(np.random.default_rng(5), 60, 12, share)
        w = cp.Variable(60)
        cost = -b @ w + weight * cp.sum(cp.multiply(scales, cp.abs(w)))
        problem = cp.Problem(cp.Minimize(cost), [Q.T @ w == 0.0, cp.norm(w) <= 1.5])
        problem.solve(solver=cp.CLARABEL)
        answer = nullspace_oracle(Q, weight, scales, 1.5).linear(-b)
        assert answer.value == pytest.approx(problem.value, rel=1e-6)

    @pytest.mark.parametrize("p", [40, 150])
    def test_both_say_the_same_about_one_problem(self, p):
        """With N the null space written out, w = Nx and K = diag(scales) N."""
        rng = np.random.default_rng(6)
        Q, b, weight, scales = features(rng, p, p - 30, 0.6)
        N = np.linalg.svd(Q)[0][:, Q.shape[1] :]
        thin = nullspace_oracle(Q, 0.3 * weight, scales).linear(-b)
        wide = find(L2Ball(), AnalysisL1(scales[:, None] * N, 0.3 * weight)).linear(-b @ N)
        np.testing.assert_allclose(thin.value, wide.value, rtol=1e-12)
        np.testing.assert_allclose(thin.point, N @ wide.point, atol=1e-11)


class TestReferences:
    """Compiled solvers against array API code."""

    @pytest.mark.parametrize("kappa", [0.0, 0.004, 0.2, 0.4, 0.6, 0.8, 2.0])
    def test_analysis(self, kappa):
        rng = np.random.default_rng(7)
        for n, m in ((12, 24), (20, 15), (10, 60)):
            K = rng.standard_normal((m, n))
            v = rng.standard_normal((3, n))
            weight = kappa * 3.0 * np.linalg.norm(v) / np.sqrt(m * n)
            kernel = Analysis(K)
            assert kernel.compiled
            found = kernel.shrink(v, weight)
            slow = _shrinking_reference.box(K, v, np.full(3, weight))
            scale = np.linalg.norm(v)
            np.testing.assert_allclose(found.bound, slow.bound, atol=1e-11 * scale)
            np.testing.assert_allclose(found.point, slow.point, atol=1e-9 * scale)
            assert np.all(np.abs(found.hint) <= weight)
            proved = np.linalg.norm(v - found.hint @ K, axis=-1)
            np.testing.assert_allclose(found.bound, proved, rtol=1e-13, atol=1e-14 * scale)

    @pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
    def test_null_space(self, share):
        rng = np.random.default_rng(8)
        Q, b, weight, scales = features(rng, 700, 60, share)
        v = b * np.array([1.0, -2.0, 0.7])[:, None] + 0.1 * rng.standard_normal((3, 700))
        slopes = -weight * scales, 1.3 * weight * scales
        kernel = NullSpace(Q)
        assert kernel.rows.size >= null_space.LEAST_COMPILED
        found = kernel.shrink(v, slopes)
        slow = _shrinking_reference.null_space(Q, v, *slopes)
        np.testing.assert_allclose(found.point, slow.point, atol=1e-11)
        np.testing.assert_array_equal(found.point == 0.0, slow.point == 0.0)
        np.testing.assert_allclose(found.bound, slow.bound, rtol=1e-13, atol=1e-13)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_loops_read_every_layout_and_dtype(self, dtype, order):
        rng = np.random.default_rng(9)
        Q, b, weight, scales = features(rng, 700, 60)
        found = NullSpace(np.asarray(Q, dtype, order)).shrink(
            b.astype(dtype), (-weight * scales, weight * scales)
        )
        assert found.point.dtype == dtype
        exact = NullSpace(Q).shrink(b, (-weight * scales, weight * scales))
        np.testing.assert_allclose(found.point, exact.point, atol=30 * np.finfo(dtype).eps)


class TestAnswers:
    @pytest.mark.parametrize("p", [50, 1500])
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
    def test_zeros_are_exact_and_the_null_space_is_not_left(self, p, share):
        rng = np.random.default_rng(10)
        Q, b, weight, scales = features(rng, p, p // 20, share)
        answer = nullspace_oracle(Q, weight, scales, 3.0).linear(-b)
        w = answer.point
        assert 0.02 * p < np.count_nonzero(w) < 0.99 * p
        assert np.linalg.norm(Q.T @ w) <= 1e-14
        assert np.linalg.norm(w) == pytest.approx(3.0, rel=1e-14)
        assert answer.value - answer.lower <= 1e-14 * np.linalg.norm(b) * 3.0

    @pytest.mark.parametrize("n", [50, 120])
    @pytest.mark.parametrize("kappa", [0.004, 0.05, 0.2, 0.4, 0.8])
    def test_newton_steps_are_few(self, n, kappa):
        """Gap <= 1e-8 ||b|| within 15 linear systems from a cold start, and 1e-13 at the end."""
        for seed in range(3):
            K, b, weight = analysis(np.random.default_rng(seed), n, kappa)
            matrices = Analysis(K).prepared
            for slack, most in ((1e-8 * np.linalg.norm(b), 15), (0.0, 25)):
                u = np.clip(K @ b, -weight, weight)
                z = np.empty(n)
                size, solved = _box_loops.shrink()(*matrices, False, b, weight, slack, u, z)
                assert solved <= most
                gap = (weight * np.sum(np.abs(K @ z)) - u @ K @ z) / size if size > 0 else 0.0
                assert min(gap, size) <= max(slack, 1e-13 * np.linalg.norm(b))

    def test_steps_within_a_null_space_are_few(self, monkeypatch):
        counted = []
        solve = null_space.solve_ridged
        monkeypatch.setattr(
            null_space, "solve_ridged", lambda *given: counted.append(1) or solve(*given)
        )
        for share in (0.1, 0.4, 0.8):
            Q, b, weight, scales = features(np.random.default_rng(11), 1000, 57, share)
            counted.clear()
            nullspace_oracle(Q, weight, scales).linear(-b)
            assert len(counted) <= 12

    @pytest.mark.parametrize("slack", [1e-2, 1e-5, 1e-9])
    def test_slack_is_used_and_kept(self, slack):
        rng = np.random.default_rng(12)
        K, b, weight = analysis(rng, 40, 0.4)
        oracle = find(L2Ball(2.0), AnalysisL1(K, weight))
        Q, d, gamma, scales = features(rng, 800, 60)
        for one, g in ((oracle, b), (nullspace_oracle(Q, gamma, scales, 2.0), d)):
            size = np.linalg.norm(g)
            answer, exact = one.linear_near(-g, slack=slack * size), one.linear(-g)
            assert answer.value - answer.lower <= 1.01 * slack * size
            assert answer.lower <= exact.value <= answer.value + 1e-14 * size
            assert one.set.violation(answer.point) <= 1e-14

    @pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
    def test_weights_that_leave_only_zero(self, scale):
        rng = np.random.default_rng(13)
        K, b, _ = analysis(rng, 20, 0.1)
        Q, d, _, scales = features(rng, 700, 60)
        for oracle, g in (
            (find(L2Ball(), AnalysisL1(K, scale * 1e3 * np.linalg.norm(b))), b),
            (nullspace_oracle(Q, scale * 100.0, scales), d),
        ):
            answer = oracle.linear(-scale * g)
            assert answer.value == 0.0
            assert not np.any(answer.point)
            assert 0.0 <= -answer.lower <= 1e-13 * scale * np.linalg.norm(g)

    def test_a_gradient_in_the_range_of_q_leaves_only_zero(self):
        rng = np.random.default_rng(14)
        for p, columns in ((30, 6), (900, 50)):
            Q = orthonormal(rng, p, columns)
            answer = nullspace_oracle(Q, 1e-3, np.ones(p)).linear(-Q @ rng.standard_normal(columns))
            assert -answer.lower <= 1e-13
            assert np.linalg.norm(Q.T @ answer.point) <= 1e-13


class TestMemory:
    """Answers begun at a hint, or at a point."""

    @staticmethod
    def oracles():
        rng = np.random.default_rng(15)
        K, b, weight = analysis(rng, 40, 0.3)
        yield find(L2Ball(), AnalysisL1(K, weight)), b
        Q, d, gamma, scales = features(rng, 900, 60)
        yield nullspace_oracle(Q, gamma, scales), d
        K, b, weight = analysis(rng, 5, 0.3)
        yield find(L2Ball(), AnalysisL1(K, weight)), b
        Q, d, gamma, scales = features(rng, 30, 6)
        yield nullspace_oracle(Q, gamma, scales), d

    def test_where_an_answer_began_does_not_show(self):
        rng = np.random.default_rng(16)
        for oracle, b in self.oracles():
            g, last, size = -b, oracle.linear(-b), np.linalg.norm(b)
            for step in (0.3, 1e-2, 1e-4, 1e-8, 0.0, 3.0):
                g = g + step * size * rng.standard_normal(len(b)) / np.sqrt(len(b))
                cold = oracle.linear(g)
                for near, hint in ((last.point, last.hint), (last.point, None), (cold.point, None)):
                    warm = oracle.linear_near(g, near, hint)
                    np.testing.assert_allclose(warm.value, cold.value, rtol=1e-12)
                    np.testing.assert_allclose(warm.point, cold.point, atol=1e-9)
                    assert warm.value - warm.lower <= 1e-12 * size
                last = oracle.linear_near(g, last.point, last.hint)

    def test_a_hint_is_not_written_to(self):
        for oracle, b in self.oracles():
            last = oracle.linear(-b)
            parts = last.hint if isinstance(last.hint, tuple) else (last.hint,)
            before = [np.array(part) for part in parts]
            oracle.linear_near(1.7 * b[::-1], last.point, last.hint)
            for part, old in zip(parts, before, strict=True):
                np.testing.assert_array_equal(part, old)

    def test_hints_are_gathered_and_frozen_with_their_starts(self):
        rng = np.random.default_rng(17)
        for oracle, b in self.oracles():
            g = -b * (1.0 + 0.2 * rng.standard_normal((4, len(b))))
            first = oracle.linear(g)
            moved = g + 0.01 * rng.standard_normal(g.shape)
            whole = oracle.linear_near(moved, first.point, first.hint)
            index = np.array([3, 1])
            some = take(first, index)
            part = oracle.linear_near(moved[index], some.point, some.hint)
            np.testing.assert_allclose(part.point, whole.point[index], rtol=0, atol=1e-13)
            for i in range(4):
                alone = take(first, np.array([i]))
                single = oracle.linear_near(moved[i : i + 1], alone.point, alone.hint)
                np.testing.assert_allclose(single.point[0], whole.point[i], rtol=0, atol=1e-13)
            mixed = where(np.array([True, False, True, False]), whole, first)
            again = oracle.linear_near(moved, mixed.point, mixed.hint)
            np.testing.assert_allclose(again.point, whole.point, rtol=0, atol=1e-11)

    def test_a_path_of_weights_and_radii_is_one_call(self):
        rng = np.random.default_rng(18)
        Q, b, gamma, scales = features(rng, 700, 60)
        K, d, weight = analysis(rng, 30, 0.3)
        shares, radii = np.array([0.2, 0.7, 1.1]), np.array([1.0, 2.0, 0.5])
        for make, g in (
            (lambda s, r: nullspace_oracle(Q, s * gamma, scales, r), b),
            (lambda s, r: find(L2Ball(r), AnalysisL1(K, s * weight)), d),
        ):
            path = make(shares, radii).linear(np.broadcast_to(-g, (3, len(g))))
            for i in range(3):
                alone = make(shares[i], radii[i]).linear(-g)
                np.testing.assert_allclose(path.point[i], alone.point, atol=1e-13)
                np.testing.assert_allclose(path.lower[i], alone.lower, rtol=1e-13)

    def test_rows_that_are_not_read_are_zero(self):
        """A long chain of small steps, in which most rows are skipped most of the time."""
        rng = np.random.default_rng(19)
        Q, b, gamma, scales = features(rng, 1500, 40, 0.1)
        oracle, last = nullspace_oracle(Q, gamma, scales), None
        for _ in range(60):
            b = b + 0.02 * rng.standard_normal(len(b))
            near, hint = (None, None) if last is None else (last.point, last.hint)
            last = oracle.linear_near(-b, near, hint)
            t = b - Q @ last.hint.nu
            s = t - np.clip(t, -gamma * scales, gamma * scales)
            np.testing.assert_allclose(-last.lower, np.linalg.norm(s), rtol=1e-13)
        assert np.mean(last.hint.when < last.hint.far) > 0.5


class TestProblems:
    def problem(self, kind):
        rng = np.random.default_rng(20)
        if kind == "analysis":
            K, _, weight = analysis(rng, 20, 0.15)
            G = rng.standard_normal((20, 20))
            weight = weight * np.linalg.norm(G, 2) ** 2 / 80.0
            return rp.Problem(
                rp.smooth.ConcaveQuadratic(G), rp.Block(L2Ball(), AnalysisL1(K, weight))
            )
        Q, _, _, scales = features(rng, 600, 56)
        F = rng.standard_normal((600, 3))
        return rp.Problem(
            rp.smooth.ConcaveQuadratic(F),
            rp.Block(NullSpaceBall(Q), L1(8.0, scales=scales)),
        )

    @pytest.mark.parametrize("kind", ["analysis", "null space"])
    @pytest.mark.parametrize(
        "method",
        [
            rp.ConditionalGradient(rp.Jacobi(), rp.FullStep()),
            rp.ConditionalGradient(rp.Jacobi(), rp.Armijo()),
            rp.ProximalGradient(smoothness=rp.Majorant(5.0)),
            rp.Continuation(rp.ConditionalGradient(rp.Jacobi(), rp.FullStep())),
        ],
        ids=["full step", "armijo", "proximal", "continuation"],
    )
    def test_methods_certify_and_remember_nothing_but_time(self, kind, method, monkeypatch):
        problem = self.problem(kind)
        warm = rp.solve(problem, method, starts=4, eps=1e-7)
        assert warm.certified.all()
        assert warm.certificate.kind == "dual bound"
        assert warm.certificate.floor_kind == "proved"
        assert problem.violation(warm.xs).max() <= 1e-13
        rule = type(problem.blocks[0].oracle)
        cold_start = rule.linear_near
        monkeypatch.setattr(
            rule,
            "linear_near",
            lambda self, g, near=None, hint=None, slack=0.0: cold_start(self, g),
        )
        cold = rp.solve(problem, method, starts=4, eps=1e-7)
        np.testing.assert_allclose(warm.value, cold.value, rtol=1e-9)

    @pytest.mark.parametrize("kind", ["analysis", "null space"])
    def test_one_start_is_the_same_alone_and_among_others(self, kind):
        problem = self.problem(kind)
        together = rp.solve(problem, starts=3, rng=5, eps=1e-9)
        x0 = np.asarray(rp.solve(problem, starts=3, rng=5, stop=rp.Stop(max_iterations=0)).last[0])
        for i in range(3):
            alone = rp.solve(problem, x0=x0[i], eps=1e-9)
            np.testing.assert_allclose(alone.value, together.value[i], rtol=1e-12)

    def test_a_start_in_single_precision(self):
        problem = self.problem("null space")
        x0 = problem.blocks[0].set.sample(np.random.default_rng(0), (600,)).astype(np.float32)
        result = rp.solve(problem, x0=x0, eps=rp.Relative(1e-4))
        assert result.xs[0].dtype == np.float32
        assert result.certified

    def test_nan_stays_with_its_start_in_compiled_code(self):
        for oracle, b in TestMemory.oracles():
            g = -b * np.array([1.0, np.nan, 1.0])[:, None]
            answer, alone = oracle.linear(g), oracle.linear(-b)
            np.testing.assert_allclose(answer.point[[0, 2]], [alone.point] * 2, rtol=1e-12)
            assert np.isnan(answer.value[1])


def exactly(oracle, b, y):
    """-b'y + h(y) in 50 digits, y put into the set: within its support for the null space, then onto the ball."""
    mpf, matrix = mpmath.mpf, mpmath.matrix
    y = matrix([mpf(float(v)) for v in y])
    if isinstance(oracle, NullSpaceBallSeparable):
        S = [i for i in range(len(y)) if y[i] != 0]
        rows = matrix(oracle.set.Q[S].tolist())
        if S and len(S) > rows.cols:
            inside = matrix([y[i] for i in S])
            inside -= rows * mpmath.lu_solve(rows.T * rows, rows.T * inside)
            for i, value in zip(S, inside, strict=True):
                y[i] = value
        else:
            y *= 0
    size, radius = mpmath.norm(y), mpf(float(oracle.set.radius)) * (1 - mpf(10) ** -45)
    y = y * (radius / size) if size > radius else y
    linear = -mpmath.fsum(mpf(float(v)) * w for v, w in zip(b, y, strict=True))
    if isinstance(oracle, CenteredBallAnalysis):
        coefficients = matrix(oracle.penalty.K.tolist()) * y
        return linear + mpf(float(oracle.penalty.weight)) * mpmath.norm(coefficients, 1)
    weights = oracle.penalty.slopes()[1] + np.zeros(len(b))
    return linear + mpmath.fsum(mpf(float(c)) * abs(w) for c, w in zip(weights, y, strict=True))


@pytest.mark.parametrize("rule", ["analysis", "null space"])
def test_no_point_is_below_the_bound_in_fifty_digits(rule):
    rng = np.random.default_rng(21)
    with mpmath.workdps(50):
        for _ in range(12):
            size = 10.0 ** rng.uniform(-3, 3)
            if rule == "analysis":
                K, b, weight = analysis(rng, 6, float(rng.choice([0.01, 0.2, 0.5, 0.7])), m=9)
                oracle = find(L2Ball(size), AnalysisL1(K, weight))
            else:
                Q, b, weight, scales = features(rng, 14, 4, float(rng.choice([0.4, 0.8])))
                oracle = nullspace_oracle(Q, weight, scales, size)
            answer = oracle.linear(-b)
            # What certificates add for the rounding of the bound (theory A12).
            floor = 1.001 * (8 + len(b)) * 2.0**-53 * oracle.magnitude(-b, answer.point)
            points = [answer.point]
            points += [oracle.set.sample(rng, b.shape) for _ in range(3)]
            points += [answer.point * (1 + 1e-6 * rng.standard_normal(b.shape)) for _ in range(3)]
            for y in points:
                value = exactly(oracle, b, y)
                assert float(mpmath.mpf(float(answer.lower)) - value) <= floor
            # ... and the point of the answer is as good as it says.
            best = exactly(oracle, b, answer.point)
            assert abs(float(best - mpmath.mpf(float(answer.value)))) <= 4 * floor
            assert float(best - mpmath.mpf(float(answer.lower))) <= 4 * floor
