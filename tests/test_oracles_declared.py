"""A researcher's own oracle: what it may say, what it may not, and how it is refuted."""

import numpy as np
import pytest

import restpoint as rp
from restpoint.array import namespace
from restpoint.errors import CapabilityError, DataError, EvaluationError
from restpoint.oracles import declared, find
from restpoint.oracles.base import Oracle
from restpoint.penalties import L1, Zero
from restpoint.sets import Box, L2Ball
from restpoint.testing import LawBroken, check_oracle, check_set


def _corner(g):
    """The cube [-1, 1]^n."""
    return np.where(g > 0, -1.0, 1.0).astype(g.dtype)


def _width(p):
    return 2.0 * 3 ** (1 / p)


def _cube(**changes):
    """The l1-penalised cube, declared in full and correctly."""
    exact = find(Box(-1.0, 1.0), L1(0.5))
    pieces = {
        "linear": lambda g: exact.linear(g).point,
        "prox": lambda g, z, weight, p: exact.prox(g, z, weight, p).point,
        "diameter": _width,
        "violation": lambda x: np.max(np.abs(x)) - 1.0 if np.max(np.abs(x)) > 1.0 else 0.0,
        "lower_bound": lambda g: float(exact.linear(g).lower),
        "value": lambda x: 0.5 * float(np.sum(np.abs(x))),
        "project": lambda x: np.clip(x, -1.0, 1.0),
    }
    return declared(**(pieces | changes))


class TestCorrectDeclarations:
    def test_all_declared(self):
        check_oracle(_cube(), (3,), p=(2.0, 1.5), exact=True)

    def test_only_the_necessary(self):
        oracle = declared(_corner, diameter=_width)
        check_oracle(oracle, (3,))
        check_set(oracle.set, (3,))
        assert isinstance(oracle.penalty, Zero)
        assert not oracle.can_prox(2.0)
        assert not oracle.set.declares_violation
        with pytest.raises(CapabilityError, match="ConditionalGradient"):
            oracle.prox(np.zeros(3), np.zeros(3), 1.0)
        with pytest.raises(CapabilityError, match="project="):
            oracle.set.project(np.zeros(3))

    def test_sound_bounds_of_inexact_answers(self):
        """A vertex that is not optimal passes as long as its bound is sound: the kind is "dual bound"."""
        oracle = _cube(linear=lambda g: 0.9 * _corner(g))
        assert oracle.kind == "dual bound"
        check_oracle(oracle, (3,))
        with pytest.raises(LawBroken):
            check_oracle(oracle, (3,), exact=True)

    def test_bounds_of_inexact_prox_answers(self):
        oracle = _cube(prox=lambda g, z, weight, p: 0.5 * z)
        check_oracle(oracle, (3,), p=(2.0, 1.5, 3.0))
        g, z = np.array([1.0, -2.0, 0.1]), np.array([0.5, 0.5, -1.0])
        answer, best = oracle.prox(g, z, 2.0), _cube().prox(g, z, 2.0)
        assert answer.lower <= best.value <= answer.value

    def test_kinds(self):
        assert declared(_corner, diameter=2.0).kind == "declared oracle"
        assert declared(_corner, diameter=2.0, lower_bound=lambda g: -1e9).kind == "dual bound"

    def test_batched_code_is_called_once(self):
        calls = []

        def corner(g):
            calls.append(g.shape)
            return _corner(g)

        oracle = declared(corner, diameter=_width, batched=True)
        g = np.random.default_rng(0).standard_normal((2, 4, 3))
        point = oracle.linear(g).point
        assert calls == [(2, 4, 3)]
        one_by_one = declared(_corner, diameter=_width).linear(g).point
        np.testing.assert_array_equal(point, one_by_one)

    def test_single_precision_and_other_libraries(self, like):
        xp = namespace(like)
        oracle = declared(lambda g: -xp.sign(g), diameter=_width)
        g = xp.asarray([[1.0, -2.0, 3.0], [-1.0, 1.0, 1.0]], dtype=like.dtype)
        answer = oracle.linear(g)
        assert answer.point.dtype == like.dtype
        np.testing.assert_allclose(np.asarray(answer.value), [-6.0, -3.0], rtol=0, atol=1e-15)

    def test_matrices(self):
        def rank_one(g):
            u, _, v = np.linalg.svd(g)
            return -np.outer(u[:, 0], v[0])

        oracle = declared(
            rank_one,
            diameter=lambda p: 2.0 * 6 ** max(0.0, 1 / p - 0.5),
            lower_bound=lambda g: -np.linalg.norm(g, 2) * (1 + 1e-14),
            violation=lambda x: max(0.0, np.linalg.norm(x, "nuc") - 1.0),
            event_ndim=2,
        )
        check_oracle(oracle, (3, 2), exact=True)

    def test_bounds_made_from_the_diameter_hold(self):
        oracle = _cube()
        x = np.random.default_rng(1).uniform(-1, 1, (50, 3))
        g = np.random.default_rng(2).standard_normal((50, 3))
        assert np.all(oracle.set.support(g) >= np.sum(np.abs(g), axis=-1))
        assert np.all(oracle.set.norm_bound((3,)) >= np.linalg.norm(x, axis=-1))
        with pytest.raises(CapabilityError, match="linear oracle"):
            oracle.set.extreme(g)

    def test_samples(self):
        rng = np.random.default_rng(3)
        own = declared(_corner, diameter=2.0, sample=lambda rng, shape: rng.uniform(-1, 1, shape))
        assert np.all(np.abs(own.set.sample(rng, (3,))) < 1.0)
        default = declared(_corner, diameter=2.0).set.sample(rng, (3,))
        np.testing.assert_array_equal(np.abs(default), np.ones(3))


class TestWrongDeclarationsAreRefuted:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"linear": lambda g: -_corner(g), "lower_bound": None}, "smaller value"),
            ({"linear": lambda g: 1.5 * _corner(g)}, "outside of the set"),
            ({"diameter": lambda p: 0.5 * _width(p)}, "diameter"),
            ({"diameter": 2.0}, "diameter"),
            (
                {"lower_bound": lambda g: 0.9 * find(Box(-1.0, 1.0), L1(0.5)).linear(g).lower},
                "below",
            ),
            ({"prox": lambda g, z, weight, p: z, "lower_bound": None}, "smaller value|three-point"),
            ({"value": lambda x: 0.0, "lower_bound": None}, "smaller value"),
        ],
        ids=["sign", "outside", "half", "one number", "bound", "prox", "penalty"],
    )
    def test_by_the_laws(self, changes, message):
        with pytest.raises(LawBroken, match=message):
            check_oracle(_cube(**changes), (3,), p=(2.0,))

    def test_blocks_are_unwrapped(self):
        class Block:
            set, penalty = L2Ball(), Zero()
            oracle = declared(lambda g: -g, diameter=2.0)

        with pytest.raises(LawBroken):
            check_oracle(Block(), (3,))

    def test_oracles_that_write_to_their_inputs(self):
        class Writing(type(find(Box(-1.0, 1.0), Zero()))):
            def linear(self, g):
                answer = super().linear(g)
                g *= 1.0
                return answer

        with pytest.raises(ValueError, match="read-only"):
            check_oracle(Writing(Box(-1.0, 1.0), Zero()), (3,))

    def test_things_that_are_no_oracle(self):
        with pytest.raises(CapabilityError, match="expected an Oracle"):
            check_oracle(lambda g: g, (3,))
        assert not issubclass(int, Oracle)


class TestUserErrors:
    G = np.array([[1.0, -2.0, 3.0], [1.0, 1.0, 1.0]])

    @pytest.mark.parametrize(
        ("linear", "message"),
        [
            (lambda g: g[:2], r"linear returned .* shape \(2,\)"),
            (lambda g: g.astype(np.float32), "linear returned .* dtype float32"),
            (list, "linear returned a list"),
            (lambda g: None, "linear returned a NoneType"),
        ],
        ids=["shape", "dtype", "list", "nothing"],
    )
    def test_wrong_answers_are_named(self, linear, message):
        with pytest.raises(EvaluationError, match=message):
            declared(linear, diameter=2.0).linear(self.G)

    def test_what_user_code_raises_is_kept(self):
        def broken(g):
            return 1 / 0

        with pytest.raises(EvaluationError, match="ZeroDivisionError") as error:
            declared(broken, diameter=2.0).linear(self.G)
        assert isinstance(error.value.__cause__, ZeroDivisionError)

    def test_our_own_errors_pass(self):
        def refusing(g):
            raise DataError("not today")

        with pytest.raises(DataError, match="not today"):
            declared(refusing, diameter=2.0).linear(self.G)

    def test_inputs_are_read_only(self):
        def writing(g):
            g[0] = 0.0
            return g

        with pytest.raises(EvaluationError, match="read-only"):
            declared(writing, diameter=2.0).linear(self.G)

    def test_numbers_must_be_numbers(self):
        oracle = declared(_corner, diameter=2.0, lower_bound=lambda g: "low")
        with pytest.raises(EvaluationError, match="lower_bound returned a str"):
            oracle.linear(self.G)

    @pytest.mark.parametrize("diameter", [-1.0, float("inf"), float("nan")])
    def test_diameters_are_checked_at_the_door(self, diameter):
        with pytest.raises(DataError, match="diameter"):
            declared(_corner, diameter=diameter)

    def test_nan_passes_through(self):
        point = declared(lambda g: g * np.nan, diameter=2.0).linear(self.G).point
        assert np.all(np.isnan(point))


def test_a_diameter_that_is_not_finite_for_this_p_leaves_the_bound_without_a_count():
    block = rp.Block.from_oracle(
        lambda g: -np.sign(g), diameter=lambda p: 2.0 * 2**0.5 if p == 2.0 else np.inf
    )
    problem = rp.Problem(rp.smooth.PowerSum(1.5, shape=2), block)
    result = rp.solve(problem, rp.ConditionalGradient(), x0=np.array([0.5, -0.3]), eps=1e-2)
    assert result.bound.count is None
    assert result.bound.missing == ("the diameter of S",)
