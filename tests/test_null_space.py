"""The null-space ball, the analysis penalty and weights for each entry: the door, and what no law can see."""

import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.oracles import find
from restpoint.penalties import L1, AnalysisL1, Zero
from restpoint.sets import Box, L2Ball, NonnegativeBall, NullSpaceBall, Simplex


def columns(p, k, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, k)))[0]


class TestNullSpaceBall:
    def test_projection_and_distance(self):
        rng = np.random.default_rng(1)
        Q = columns(30, 7)
        ball = NullSpaceBall(Q, 2.0)
        N = np.linalg.svd(Q)[0][:, 7:]
        for x in rng.standard_normal((20, 30)):
            inward = N @ (N.T @ x)
            near = inward * min(1.0, 2.0 / np.linalg.norm(inward))
            np.testing.assert_allclose(ball.project(x), near, atol=1e-14)
            np.testing.assert_allclose(ball.violation(x), np.linalg.norm(x - near), rtol=1e-13)
            np.testing.assert_allclose(ball.support(x), 2.0 * np.linalg.norm(inward), rtol=1e-13)

    def test_directions_that_the_null_space_has_no_part_in(self):
        """What rounding leaves of them is not blown up to a point outside of the null space."""
        Q = columns(30, 7)
        g = Q @ np.arange(1.0, 8.0)
        ball = NullSpaceBall(Q)
        assert np.linalg.norm(Q.T @ ball.extreme(g)) <= 1e-14
        assert np.linalg.norm(ball.project(1e8 * g)) <= 1e-6
        assert ball.support(g) <= 1e-14

    def test_no_columns_leave_the_ball(self):
        g = np.array([3.0, 4.0])
        ball = NullSpaceBall(np.empty((2, 0)), 5.0)
        np.testing.assert_allclose(ball.extreme(g), [-3.0, -4.0])
        answer = find(ball, L1(1.0)).linear(g)
        np.testing.assert_allclose(answer.point, find(L2Ball(5.0), L1(1.0)).linear(g).point)

    @pytest.mark.parametrize(
        ("Q", "error", "message"),
        [
            (np.ones((4, 1)), DataError, r"not orthonormal: .* NullSpaceBall.of"),
            (np.eye(4)[:, 0], ShapeError, r"shape \(4,\); expected \(features, columns\)"),
            (np.eye(4), ShapeError, "only 0 satisfies"),
            (np.array([[np.nan], [1.0]]), DataError, "NaN"),
        ],
    )
    def test_the_door(self, Q, error, message):
        with pytest.raises(error, match=message):
            NullSpaceBall(Q)

    def test_other_parameters(self):
        with pytest.raises(DataError, match="radius must be > 0"):
            NullSpaceBall(columns(4, 1), 0.0)
        f = rp.smooth.ConcaveQuadratic(np.ones((5, 1)))
        with pytest.raises(ShapeError, match="Q has 4 rows, but the block has event shape"):
            rp.Problem(f, rp.Block(NullSpaceBall(columns(4, 1))))

    def test_equal_by_their_entries(self):
        Q = columns(6, 2)
        assert NullSpaceBall(Q) == NullSpaceBall(Q.copy())
        assert NullSpaceBall(Q) != NullSpaceBall(Q, 2.0)
        assert AnalysisL1(Q, 1.0) == AnalysisL1(Q.copy(), 1.0)
        assert AnalysisL1(Q, 1.0) != AnalysisL1(2.0 * Q, 1.0)

    def test_data_are_not_copied_and_their_products_are_kept(self):
        Q, K = columns(6, 2), np.ones((3, 6))
        ball, penalty = NullSpaceBall(Q, np.array([1.0, 2.0])), AnalysisL1(K, np.array([1.0, 2.0]))
        assert ball.Q is Q
        assert penalty.K is K
        kernels = ball.kernel, penalty.kernel
        assert ball.take(np.array([1])).kernel is kernels[0]
        assert penalty.take(np.array([1])).kernel is kernels[1]
        assert penalty.scaled(0.5).kernel is kernels[1]
        single = np.zeros(1, np.float32)
        assert ball.converted(single).Q.dtype == np.float32
        assert penalty.converted(single).kernel.K.dtype == np.float32


class TestOrthonormalBasis:
    @pytest.mark.parametrize("smallest", [1.0, 1e-4, 1e-7, 1e-9])
    def test_small_singular_values_are_kept(self, smallest):
        rng = np.random.default_rng(2)
        U, V = columns(200, 12, 3), columns(12, 12, 4)
        sizes = np.geomspace(1.0, smallest, 12)
        A = (U * sizes) @ V.T
        Q = NullSpaceBall.of(A).Q
        assert Q.shape == (200, 12)
        np.testing.assert_allclose(Q.T @ Q, np.eye(12), atol=1e-14)
        # Each direction as exactly as rounding of A leaves it.
        lost = np.linalg.norm(U - Q @ (Q.T @ U), axis=0)
        assert np.all(lost <= 1e-13 / sizes)
        del rng

    def test_dependent_columns_are_left_out(self):
        rng = np.random.default_rng(5)
        A = rng.standard_normal((300, 9)) @ rng.standard_normal((9, 20))
        ball = NullSpaceBall.of(A, 3.0)
        assert ball.Q.shape == (300, 9)
        assert ball.radius == 3.0
        assert np.linalg.norm(A - ball.Q @ (ball.Q.T @ A)) <= 1e-12

    def test_centred_groups(self):
        """Rows of samples less the means of their classes: one dimension is lost for each class."""
        rng = np.random.default_rng(6)
        X, y = rng.standard_normal((24, 400)), np.arange(24) % 4
        within = X - np.stack([X[y == c].mean(axis=0) for c in y])
        assert NullSpaceBall.of(within.T).Q.shape == (400, 20)

    def test_nothing_is_no_restriction(self):
        assert NullSpaceBall.of(np.zeros((5, 3))).Q.shape == (5, 0)

    def test_single_precision(self):
        Q = NullSpaceBall.of(np.random.default_rng(7).standard_normal((50, 4)).astype("f4")).Q
        assert Q.dtype == np.float32

    @pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0, "small"])
    def test_tolerance(self, tolerance):
        with pytest.raises(DataError, match="tolerance"):
            NullSpaceBall.of(np.ones((3, 1)), tolerance=tolerance)

    def test_other_shapes(self):
        with pytest.raises(ShapeError, match=r"\(features, columns\)"):
            NullSpaceBall.of(np.ones(3))


class TestWeights:
    def test_each_entry_has_its_own(self):
        scales = np.array([0.0, 1.0, 2.0])
        h = L1(0.5, scales=scales)
        x = np.array([3.0, -2.0, 1.0])
        assert h.value(x) == pytest.approx(2.0)
        np.testing.assert_allclose(h.prox(x, 1.0), [3.0, -1.5, 0.0])
        assert h.scaled(2.0) == L1(1.0, scales=scales)
        low, high = h.slopes()
        np.testing.assert_array_equal(high, 0.5 * scales)
        np.testing.assert_array_equal(low, -0.5 * scales)

    def test_a_path_with_them(self):
        h = L1(np.array([0.5, 2.0]), scales=np.array([0.0, 1.0, 2.0]))
        assert h.batch_shape == (2,)
        x = np.array([[3.0, -2.0, 1.0]] * 2)
        np.testing.assert_allclose(h.value(x), [2.0, 8.0])
        np.testing.assert_allclose(h.prox(x, 1.0)[1], [3.0, 0.0, 0.0])
        assert h.take(np.array([1])).value(x[:1]) == pytest.approx(8.0)

    @pytest.mark.parametrize(
        "case", [L2Ball(2.0), L2Ball(2.0, 0.3), Box(-1.0, 2.0), Simplex(), NonnegativeBall()]
    )
    def test_every_rule_takes_them(self, case):
        h = L1(0.7, scales=np.array([0.0, 1.0, 0.5, 3.0]))
        rp.testing.check_oracle(find(case, h), (4,), p=(2.0, 1.5), exact=True)

    def test_the_door(self):
        with pytest.raises(DataError, match="scales must be >= 0, got -1"):
            L1(1.0, scales=np.array([1.0, -1.0]))
        with pytest.raises(ShapeError, match="scales has shape"):
            L1(1.0, event_ndim=2, scales=np.ones(3))


class TestAnalysis:
    def test_the_fused_penalty_makes_steps(self):
        """min ||y - v||^2 / 2 + t sum |y_{i+1} - y_i|: two levels, and the mean where t is large."""
        K = np.eye(30)[1:] - np.eye(30)[:-1]
        v = np.repeat([0.0, 3.0], 15)
        np.testing.assert_allclose(AnalysisL1(K, 1.5).prox(v, 1.0), np.repeat([0.1, 2.9], 15))
        np.testing.assert_allclose(AnalysisL1(K, 100.0).prox(v, 1.0), np.full(30, 1.5), atol=1e-13)

    def test_a_matrix_of_zeros_is_no_penalty(self):
        v = np.arange(20.0)
        h = AnalysisL1(np.zeros((20, 20)), 1.0)
        np.testing.assert_array_equal(h.prox(v, 1.0), v)
        assert h.value(v) == 0.0

    @pytest.mark.parametrize(
        ("K", "weight", "error", "message"),
        [
            (np.ones(3), 1.0, ShapeError, "expected a matrix"),
            (np.ones((0, 3)), 1.0, ShapeError, "expected a matrix"),
            (np.ones((2, 3)), -1.0, DataError, "weight must be >= 0"),
            (np.full((2, 3), np.inf), 1.0, DataError, "infinite"),
        ],
    )
    def test_the_door(self, K, weight, error, message):
        with pytest.raises(error, match=message):
            AnalysisL1(K, weight)

    def test_a_ball_off_the_centre_has_no_rule(self):
        with pytest.raises(
            CapabilityError, match=r"CenteredBallAnalysis: not met: its center is 0"
        ):
            find(L2Ball(1.0, 0.5), AnalysisL1(np.ones((2, 3)), 1.0))

    def test_the_exact_rule_does_not_take_it(self):
        """Its bound would be the value at a point that an iteration found."""
        missing = rp.oracles.CenteredBallSublinear.missing(
            L2Ball(), AnalysisL1(np.ones((2, 3)), 1.0)
        )
        assert missing == ("its prox is a closed form",)


def test_rows_of_zeros_leave_a_vertex():
    """Fewer rows in the support than Q has columns, and yet the answer is not 0: that row of Q is 0."""
    Q = np.zeros((30, 6))
    Q[:-1] = np.linalg.qr(np.random.default_rng(0).standard_normal((29, 6)))[0]
    g = np.random.default_rng(1).standard_normal(30)
    g[-1] = -5.0
    block = rp.Block(rp.sets.NullSpaceBall(Q), rp.penalties.L1(4.0))
    answer = block.oracle.linear(g)
    np.testing.assert_allclose(answer.point, np.eye(30)[-1], atol=1e-15)
    assert float(answer.value) == pytest.approx(-1.0)
    assert float(answer.lower) == pytest.approx(-1.0)


def test_a_null_space_without_penalty_is_a_projection():
    Q = columns(40, 9)
    g = np.random.default_rng(8).standard_normal(40)
    ball = NullSpaceBall(Q, 2.0)
    answer = find(ball, Zero()).linear(g)
    np.testing.assert_allclose(answer.point, ball.extreme(g), atol=1e-14)
    np.testing.assert_allclose(answer.lower, -ball.support(-g), rtol=1e-14)
