"""Every (set, penalty) pair of the catalogue answers its two subproblems correctly."""

import numpy as np
import pytest
from array_api_compat import array_namespace

from restpoint.errors import CapabilityError, ShapeError
from restpoint.oracles import RULES, BoxSeparable, CenteredBallSublinear, find
from restpoint.penalties import L1, AnalysisL1, Penalty, Zero
from restpoint.sets import Box, L2Ball, NonnegativeBall, NullSpaceBall, Polytope, Set, Simplex
from restpoint.testing import PENALTIES, SETS, Draw, check_oracle


def _answered(a, b):
    """Whether some rule answers for the pair."""
    draw = Draw(np.random.default_rng(0), a.shape)
    return a.shape == b.shape and any(rule.fits(a.make(draw), b.make(draw)) for rule in RULES)


ANSWERED = [(a, b) for a in SETS for b in PENALTIES if _answered(a, b)]
# Sets and penalties whose pairs have rules of their own, for every p.
OWN_RULES = (L2Ball, Box, NonnegativeBall, NullSpaceBall, Simplex, L1, Zero, AnalysisL1)
PAIRS = [
    (a, b) for a, b in ANSWERED if len(a.shape) == 1 and a.kind in OWN_RULES and b.kind in OWN_RULES
]
# Of all others, as many as it takes to see every set and every penalty with every rule.
SEEN = {}
for _pair in ANSWERED:
    if _pair not in PAIRS:
        _rule = type(
            find(*(case.make(Draw(np.random.default_rng(0), case.shape)) for case in _pair))
        )
        for _case in _pair:
            SEEN.setdefault((_rule, _case.name), _pair)
# A linear program for every gradient takes its time: tests/prove has them all.
OTHER_PAIRS = [pair for pair in dict.fromkeys(SEEN.values()) if pair[0].kind is not Polytope]
PAIRS_WITHOUT_LIMITS = [pair for pair in PAIRS if pair[1].name != "l1 of weight 0"]
POWERS = (2.0, 1.3, 3.0)


def _names(pair):
    return f"{pair[0].name} x {pair[1].name}"


def _oracle(pair, rng, batch=(), scale=1.0, n=4):
    shape = (n,) if len(pair[0].shape) == 1 else pair[0].shape
    draw = Draw(rng, shape, batch)
    return find(pair[0].make(draw), pair[1].make(Draw(rng, shape, batch, scale)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pair", PAIRS, ids=_names)
def test_closed_forms_obey_the_laws(pair, dtype):
    rng, like = np.random.default_rng(10), np.zeros((), dtype)
    check_oracle(_oracle(pair, rng), (4,), rng=rng, like=like, exact=True)


@pytest.mark.parametrize("pair", OTHER_PAIRS, ids=_names)
def test_general_rules_obey_the_laws(pair):
    rng, shape = np.random.default_rng(18), pair[0].shape
    check_oracle(_oracle(pair, rng, (3,)), shape, rng=rng)
    check_oracle(_oracle(pair, rng), shape, rng=rng, like=np.zeros((), np.float32))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[1].name == "l1"], ids=_names)
def test_closed_forms_on_every_library(pair, like):
    rng = np.random.default_rng(10)
    check_oracle(_oracle(pair, rng, n=3), (3,), rng=rng, like=like, exact=True)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("pair", PAIRS, ids=_names)
def test_every_power_obeys_the_laws(pair, batch):
    rng = np.random.default_rng(11)
    check_oracle(_oracle(pair, rng, batch), (4,), p=POWERS, rng=rng, exact=True)


@pytest.mark.parametrize("p", [1.3, 3.0])
@pytest.mark.parametrize("pair", PAIRS[::3], ids=_names)
def test_other_powers_on_every_library(pair, p, like):
    rng = np.random.default_rng(12)
    g, z = rng.standard_normal((2, 3, 4))
    oracle, library = _oracle(pair, rng).converted(like), array_namespace(like)
    if not oracle.can_prox(p):
        pytest.skip("this rule has p = 2 alone")
    z = oracle.set.project(library.asarray(z, dtype=like.dtype))
    answer = oracle.prox(library.asarray(g, dtype=like.dtype), z, 1.5, p)
    assert answer.point.dtype == like.dtype
    gap = np.asarray(answer.value - answer.lower)
    assert np.all(gap <= 200 * np.finfo(gap.dtype).eps)


@pytest.mark.parametrize("scale", [1e100, 1e-100])
@pytest.mark.parametrize("pair", PAIRS_WITHOUT_LIMITS, ids=_names)
def test_huge_and_tiny_gradients(pair, scale):
    rng = np.random.default_rng(13)
    oracle = _oracle(pair, rng, scale=scale)
    check_oracle(oracle, (4,), p=(2.0, 1.3), rng=rng, scale=scale, exact=True)


@pytest.mark.parametrize("scale", [1e12, 1e-12])
@pytest.mark.parametrize("pair", PAIRS_WITHOUT_LIMITS, ids=_names)
def test_huge_and_tiny_gradients_in_single_precision(pair, scale):
    rng = np.random.default_rng(14)
    oracle, like = _oracle(pair, rng, scale=scale), np.zeros((), np.float32)
    check_oracle(oracle, (4,), rng=rng, like=like, scale=scale, exact=True)


@pytest.mark.parametrize(
    "case",
    [L2Ball(2.0, event_ndim=2), NonnegativeBall(2.0, event_ndim=2), Box(-1.0, 1.0, event_ndim=2)],
)
@pytest.mark.parametrize("penalty", [Zero(2), L1(0.4, event_ndim=2)])
def test_blocks_with_two_axes(case, penalty):
    check_oracle(find(case, penalty), (3, 2), p=POWERS, exact=True)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[1].name == "l1"], ids=_names)
def test_single_entries(pair):
    rng = np.random.default_rng(15)
    check_oracle(_oracle(pair, rng, n=1), (1,), p=(2.0, 1.3), rng=rng, exact=True)


def test_a_whole_path_of_weights_is_one_call():
    weights = np.linspace(0.0, 2.0, 5)[:, None]
    g = np.random.default_rng(16).standard_normal((5, 3, 6))
    path = find(L2Ball(), L1(weights)).linear(g)
    for k, weight in enumerate(weights[:, 0]):
        alone = find(L2Ball(), L1(weight)).linear(g[k])
        np.testing.assert_allclose(path.point[k], alone.point, rtol=0, atol=1e-14)


class TestExactZeros:
    def test_zeros_of_the_ball(self):
        g, z = np.array([0.2, -0.29, 3.0, 0.1]), np.zeros(4)
        oracle = find(L2Ball(), L1(0.3))
        for answer in (
            oracle.linear(g),
            oracle.prox(g, z, 1.0),
            oracle.prox(g, z, 1.0, 1.5),
            find(L2Ball(2.0, np.array([0.05, 0.0, 0.0, 0.0])), L1(0.3)).linear(g),
        ):
            np.testing.assert_array_equal(answer.point == 0.0, [True, True, False, True])

    def test_the_zero_vector_is_an_answer(self):
        answer = find(L2Ball(), L1(1.0)).linear(np.array([0.5, -1.0]))
        np.testing.assert_array_equal(answer.point, [0.0, 0.0])
        assert answer.value == 0.0

    def test_zeros_of_the_box(self):
        answer = find(Box(-1.0, 1.0), L1(1.0)).prox(np.array([0.5, 2.0]), np.zeros(2), 1.0, 1.5)
        np.testing.assert_array_equal(answer.point == 0.0, [True, False])


class TestFind:
    def test_closed_forms_come_first(self):
        assert isinstance(find(L2Ball(), L1(1.0)), CenteredBallSublinear)
        assert isinstance(find(Box(0.0, 1.0), Zero()), BoxSeparable)

    def test_refusal_lists_what_every_rule_misses(self):
        class Odd(Penalty):
            event_ndim = 1

            def value(self, x):
                return x[..., 0]

            def prox(self, v, step):
                return v

            def magnitude(self, x):
                return abs(x[..., 0])

        with pytest.raises(CapabilityError) as error:
            find(L2Ball(), Odd())
        message = str(error.value)
        assert "no rule answers for L2Ball x Odd" in message
        assert "the penalty is sublinear" in message
        assert "declared" in message
        assert all(rule.__name__ in message for rule in RULES)

    def test_different_numbers_of_axes_are_refused(self):
        with pytest.raises(ShapeError, match="event_ndim"):
            find(L2Ball(event_ndim=2), L1(1.0))

    def test_powers_that_do_not_exist_are_refused(self):
        for pair in ANSWERED:
            oracle = _oracle(pair, np.random.default_rng(0))
            assert not oracle.can_prox(1.0)
            with pytest.raises(CapabilityError, match="p = 1"):
                oracle.prox(np.zeros(pair[0].shape), np.zeros(pair[0].shape), 1.0, 1.0)

    def test_rules_fit_by_type_alone(self):
        assert CenteredBallSublinear.fits(L2Ball(), L1(0.1))
        assert not CenteredBallSublinear.fits(L2Ball(1.0, 0.5), L1(0.1))
        assert BoxSeparable.missing(Simplex(), Zero()) == ("the set is a Box",)
        assert issubclass(Simplex, Set)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("pair", PAIRS, ids=_names)
def test_nan_stays_with_its_start(pair, p):
    """One start whose gradient is NaN neither raises nor touches the others."""
    rng = np.random.default_rng(17)
    oracle = _oracle(pair, rng)
    g, z = rng.standard_normal((2, 3, 4))
    z = oracle.set.project(z)
    broken = g.copy()
    broken[1] = np.nan
    calls = [oracle.linear, lambda g: oracle.prox(g, z, 1.0, p)]
    for call in calls[: 1 + oracle.can_prox(p)]:
        whole, damaged = call(g), call(broken)
        np.testing.assert_array_equal(damaged.point[[0, 2]], whole.point[[0, 2]])
        assert np.isnan(damaged.value[1])
