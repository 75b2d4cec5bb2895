"""User code: what it sees, what it may return, and what is said when it is wrong."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

import restpoint as rp
from restpoint.array import to_host
from restpoint.errors import CapabilityError, DataError, EvaluationError, ShapeError
from restpoint.sets import L2Ball
from restpoint.smooth import Curvature, Function


def bowl(x):
    return float(x @ x)


def bowl_gradient(x):
    return 2 * x


def two(x, y):
    return float(x @ x + y[0] * x[0])


def two_gradient(x, y):
    return 2 * x + np.array([y[0], 0.0]), np.array([x[0], 0.0, 0.0])


def test_one_point_code_serves_all_starts():
    f = Function(two, two_gradient, shapes=[2, 3])
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5, 2)), rng.standard_normal((4, 5, 3))
    value, (gx, gy) = f.value_and_gradient((x, y))
    np.testing.assert_allclose(value, (x**2).sum(-1) + y[..., 0] * x[..., 0])
    np.testing.assert_allclose(gx[..., 0], 2 * x[..., 0] + y[..., 0])
    np.testing.assert_allclose(gy[..., 0], x[..., 0])
    one = f.value((x[0, 0], y[0, 0]))
    assert one.shape == ()
    assert f.partial((x, y), 1).shape == (4, 5, 3)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (5, ((5,),)),
        (np.int64(5), ((5,),)),
        ((5,), ((5,),)),
        ((5, 3), ((5, 3),)),
        ([5], ((5,),)),
        ([5, 3], ((5,), (3,))),
        ([(5,), (3, 2)], ((5,), (3, 2))),
        (((5,), (3, 2)), ((5,), (3, 2))),
    ],
)
def test_shapes(shapes, expected):
    assert Function(bowl, bowl_gradient, shapes=shapes).shapes == expected


@pytest.mark.parametrize("shapes", [0, -1, 2.5, "5", [], (), [()], [(2,), 0], True, None])
def test_bad_shapes(shapes):
    with pytest.raises(ShapeError, match="shapes"):
        Function(bowl, bowl_gradient, shapes=shapes)


@pytest.mark.parametrize("batched", [False, True])
def test_points_are_read_only(batched):
    def greedy(x):
        x *= 2
        return x

    x = np.ones((3, 2))
    f = Function(greedy, greedy, shapes=2, batched=batched)
    for call in (f.value, f.gradient):
        with pytest.raises(
            EvaluationError, match=r"greedy raised ValueError.*write to copies"
        ) as caught:
            call((x,))
        assert isinstance(caught.value.__cause__, ValueError)
    np.testing.assert_array_equal(x, 1.0)
    assert x.flags.writeable


def test_an_answer_that_is_the_point_itself_is_copied():
    f = Function(bowl, lambda x: x, shapes=2)
    x = np.ones(2)
    (gradient,) = f.gradient((x,))
    assert not np.shares_memory(gradient, x)


def test_what_user_code_raises_is_reported():
    def broken(x):
        raise KeyError("lost")

    with pytest.raises(EvaluationError, match="broken raised KeyError: 'lost'") as caught:
        Function(broken, bowl_gradient, shapes=2).value((np.ones(2),))
    assert isinstance(caught.value.__cause__, KeyError)

    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Function(interrupted, bowl_gradient, shapes=2).value((np.ones(2),))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones(2), r"value of shape \(2,\); expected one number"),
        (np.ones(1), r"value of shape \(1,\); expected one number"),
        (1j, "value of type complex128; expected real"),
        (None, "value of type object"),
        ("1", "value of type <U1"),
        ([[1.0], [1.0, 2.0]], "value that is no array"),
    ],
)
def test_values_must_be_numbers(answer, message):
    def chosen(x):
        return answer

    with pytest.raises(EvaluationError, match="chosen returned a " + message):
        Function(chosen, bowl_gradient, shapes=2).value((np.ones(2),))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones(3), r"gradient of shape \(3,\); expected \(2,\)"),
        (1.0, r"gradient of shape \(\); expected \(2,\)"),
        ((np.ones(2), np.ones(2)), r"2 gradient\(s\); expected a tuple of 1"),
        (1j * np.ones(2), "gradient of type complex128"),
        (None, "gradient of type object"),
    ],
)
def test_gradients_must_have_the_shape_of_their_block(answer, message):
    def chosen(x):
        return answer

    with pytest.raises(EvaluationError, match="chosen returned .*" + message):
        Function(bowl, chosen, shapes=2).gradient((np.ones((4, 2)),))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.ones(2), r"1 gradient\(s\); expected a tuple of 2, one per block"),
        ((np.ones(2), np.ones(2)), r"gradient of block 1 of shape \(2,\); expected \(3,\)"),
    ],
)
def test_every_block_needs_its_gradient(answer, message):
    with pytest.raises(EvaluationError, match=message):
        Function(two, lambda x, y: answer, shapes=[2, 3]).gradient((np.ones(2), np.ones(3)))


@pytest.mark.parametrize("answer", [[1, 2], (np.array([1, 2]),), np.array([1, 2], np.longdouble)])
def test_lists_integers_and_tuples_are_welcome(answer):
    (gradient,) = Function(bowl, lambda x: answer, shapes=2).gradient((np.ones(2),))
    np.testing.assert_array_equal(gradient, [1.0, 2.0])
    assert gradient.dtype == np.float64


@pytest.mark.parametrize("batched", [False, True])
def test_answers_with_fewer_digits_than_the_blocks_are_refused(batched):
    """In float32 this gradient is 0, and a certificate of 0 would hide the true gap, 3e-8."""
    x = (np.array([[1.0 + 1e-8, 1.0]]),)
    single = tuple(block.astype(np.float32) for block in x)
    f = Function(
        lambda x: 0.5 * np.sum((x - 1.0) ** 2, axis=-1),
        lambda x: x.astype(np.float32) - np.float32(1.0),
        shapes=2,
        batched=batched,
    )
    with pytest.raises(
        EvaluationError, match="gradient of type float32 for blocks of type float64"
    ):
        rp.certify(rp.Problem(f, rp.Block(rp.sets.Box(-2.0, 2.0))), x)
    np.testing.assert_array_equal(f.gradient(single)[0], [[0.0, 0.0]])
    rough = Function(lambda x: np.float32(1.0), bowl_gradient, shapes=2)
    with pytest.raises(EvaluationError, match="value of type float32"):
        rough.value(x)
    assert rough.value(single) == 1.0


def test_not_a_number_passes_through():
    f = Function(lambda x: np.nan, lambda x: np.full(2, np.inf), shapes=2)
    value, (gradient,) = f.value_and_gradient((np.ones((3, 2)),))
    assert np.isnan(value).all()
    assert np.isinf(gradient).all()


def test_batched_code_is_called_once():
    calls = []

    def value(x):
        calls.append(x.shape)
        return np.sum(x * x, axis=-1)

    f = Function(value, lambda x: 2 * x, shapes=3, batched=True)
    x = np.random.default_rng(1).standard_normal((4, 5, 3))
    np.testing.assert_allclose(f.value((x,)), np.sum(x**2, axis=-1))
    assert calls == [(4, 5, 3)]
    np.testing.assert_allclose(f.gradient((x,))[0], 2 * x)
    assert float(f.value((x[0, 0],))) == pytest.approx(float(np.sum(x[0, 0] ** 2)))
    with pytest.raises(EvaluationError, match=r"shape \(\); expected \(4,\).*drop batched=True"):
        Function(lambda x: 1.0, bowl_gradient, shapes=3, batched=True).value((x[:, 0],))


def test_batched_code_gets_arrays_of_the_caller():
    x = array_api_strict.asarray([[3.0, 4.0]])
    f = Function(
        lambda x: array_api_strict.sum(x * x, axis=-1), lambda x: 2.0 * x, shapes=2, batched=True
    )
    value, (gradient,) = f.value_and_gradient((x,))
    assert type(value) is type(gradient) is type(x)
    assert to_host(value).tolist() == [25.0]
    with pytest.raises(EvaluationError, match=r"gradient of type .*complex128"):
        Function(bowl, lambda x: x * 1j, shapes=2, batched=True).gradient((x,))


def test_one_point_code_gets_numpy_arrays_whatever_the_caller_has():
    kinds = []

    def value(x):
        kinds.append(type(x))
        return bowl(x)

    x = array_api_strict.asarray([[3.0, 4.0]], dtype=array_api_strict.float32)
    value, (gradient,) = Function(value, bowl_gradient, shapes=2).value_and_gradient((x,))
    assert kinds == [np.ndarray]
    assert value.dtype == gradient.dtype == array_api_strict.float32


def test_declared_facts():
    def facts(shapes=2, **declared):
        return Function(bowl, bowl_gradient, shapes=shapes, **declared).facts([L2Ball()])

    unknown = facts()
    assert unknown.joint is unknown.blockwise is unknown.lower_bound is None
    assert facts(constant=2.0).joint == facts(constant=2.0).blockwise == Curvature((2.0,))
    assert facts(constant=(2.0,)).joint == Curvature((2.0,))
    assert facts(constant=2, p=1.5).joint == Curvature((2.0,), 1.5)
    assert facts(lower_bound=-3).lower_bound == -3.0
    blocks = facts([2, 3], constant=(1.0, 4.0))
    assert blocks.blockwise == Curvature((1.0, 4.0))
    assert blocks.joint is None  # theory E27: blockwise constants imply no joint one
    both = facts([2, 3], constant=(1.0, 4.0), convex=True).joint
    np.testing.assert_allclose(both.constants, (2.0, 8.0), rtol=1e-13)
    assert facts([2, 3], constant=1.0).joint == Curvature((1.0, 1.0))
    concave = facts(concave=True, p=3.0, constant=7.0)
    assert concave.joint == concave.blockwise == Curvature((0.0,))
    assert concave.concave
    assert concave.block_concave
    assert not facts(concave=True, differentiable=False).differentiable


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"p": 3.0}, DataError, "theory E2"),
        ({"p": 1.0}, DataError, "p must be > 1"),
        ({"constant": -1.0}, DataError, "constant must be >= 0, got -1.0"),
        ({"constant": np.nan}, DataError, "constant contains NaN"),
        ({"constant": (1.0, 2.0)}, ShapeError, "constant has 2 entries"),
        ({"constant": np.ones(2)}, ShapeError, "expected one number"),
        ({"lower_bound": -np.inf}, DataError, "lower_bound contains NaN or infinite"),
        ({"differentiable": False}, DataError, "needs concave=True"),
        ({"terms": 3}, DataError, "come together"),
        ({"terms_gradient": bowl_gradient}, DataError, "come together"),
        ({"terms": 0, "terms_gradient": bowl_gradient}, DataError, "terms is 0"),
    ],
)
def test_senseless_declarations_are_refused(declared, error, message):
    with pytest.raises(error, match=message):
        Function(bowl, bowl_gradient, shapes=2, **declared)


def test_code_must_be_callable():
    with pytest.raises(DataError, match=r"gradient is 3\.0; expected a function"):
        Function(bowl, 3.0, shapes=2)


@pytest.mark.parametrize("batched", [False, True])
def test_finite_sums_can_be_sampled(batched):
    """f(x) = sum_i ||x - c_i||^2 / 2."""
    centres = np.random.default_rng(2).standard_normal((6, 3))

    def some(x, index):
        return index.shape[-1] * x - centres[index].sum(axis=-2)

    f = Function(
        lambda x: 0.5 * np.sum((x[..., None, :] - centres) ** 2, axis=(-2, -1)),
        lambda x: 6 * x - centres.sum(axis=0),
        shapes=3,
        terms=6,
        terms_gradient=some,
        batched=batched,
    )
    assert f.terms == 6
    x = np.random.default_rng(3).standard_normal(3)
    (each,) = f.batch_gradient((np.broadcast_to(x, (6, 3)),), np.arange(6)[:, None])
    np.testing.assert_allclose(each.mean(axis=0), f.gradient((x,))[0], rtol=1e-12)
    (pair,) = f.batch_gradient((x,), np.array([1, 4]))
    np.testing.assert_allclose(pair, 3.0 * (2 * x - centres[1] - centres[4]))
    with pytest.raises(CapabilityError, match="give terms and terms_gradient"):
        Function(bowl, bowl_gradient, shapes=3).batch_gradient((x,), np.array([1]))
