"""Laws of every function: values, gradients, batches, libraries."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

from restpoint import smooth as functions
from restpoint.array import to_host
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.kernels import Reference
from restpoint.kernels.passes import Passes
from restpoint.sets import L2Ball
from restpoint.smooth import (
    Function,
    LeastSquares,
    Logistic,
    Multilinear,
    PowerSum,
    Quadratic,
    Smooth,
    Sum,
)
from smooth_cases import cases

CASES = cases()
every_case = pytest.mark.parametrize("name", CASES)


def frozen(arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


@every_case
def test_value_and_gradient_match_exact_arithmetic(name):
    case = CASES[name]
    smooth = case.smooth()
    for seed in range(3):
        xs = case.points(np.random.default_rng(seed))
        value, gradient = smooth.value_and_gradient(xs)
        np.testing.assert_allclose(float(value), float(case.exact_value(xs)), rtol=1e-12)
        for g, exact in zip(gradient, case.exact_gradient(xs), strict=True):
            scale = max(1.0, float(max(abs(exact))))
            np.testing.assert_allclose(g, exact.astype(float), rtol=1e-12, atol=1e-13 * scale)


@every_case
def test_all_ways_to_evaluate_agree(name):
    case = CASES[name]
    smooth, xs = case.smooth(), case.points(np.random.default_rng(1), 3)
    value, gradient = smooth.value_and_gradient(xs)
    np.testing.assert_allclose(smooth.value(xs), value, rtol=1e-12, atol=1e-13)
    for i, g in enumerate(gradient):
        np.testing.assert_allclose(smooth.gradient(xs)[i], g, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(smooth.partial(xs, i), g, rtol=1e-12, atol=1e-13)


@every_case
@pytest.mark.parametrize("batch", [(1,), (4,), (2, 3), (0,)])
def test_a_batch_equals_its_starts_one_by_one(name, batch):
    case = CASES[name]
    smooth, xs = case.smooth(), case.points(np.random.default_rng(2), *batch)
    value, gradient = smooth.value_and_gradient(xs)
    bounds = smooth.rounding(xs)
    assert value.shape == batch
    assert all(g.shape == x.shape for g, x in zip(gradient, xs, strict=True))
    for index in np.ndindex(*batch):
        one = tuple(x[index] for x in xs)
        one_value, one_gradient = smooth.value_and_gradient(one)
        np.testing.assert_allclose(value[index], one_value, rtol=1e-12, atol=1e-12)
        for g, one_g in zip(gradient, one_gradient, strict=True):
            np.testing.assert_allclose(g[index], one_g, rtol=1e-12, atol=1e-12)
        if bounds is not None:
            one_bound, one_bounds = smooth.rounding(one)
            np.testing.assert_allclose(bounds[0][index], one_bound, rtol=1e-9)
            for e, one_e in zip(bounds[1], one_bounds, strict=True):
                assert e.shape == (*batch, *one_e.shape)
                np.testing.assert_allclose(e[index], one_e, rtol=1e-9)


@every_case
def test_a_sweep_equals_partials(name):
    case = CASES[name]
    rng = np.random.default_rng(3)
    smooth, xs = case.smooth(), case.points(rng, 2)
    sweep = smooth.sweep(xs)
    for _ in range(12):
        for i in range(len(xs)):
            np.testing.assert_allclose(
                sweep.partial(i), smooth.partial(xs, i), rtol=1e-12, atol=1e-13
            )
        moved = int(rng.integers(len(xs)))
        xs = (*xs[:moved], case.points(rng, 2)[moved], *xs[moved + 1 :])
        sweep.update(moved, xs[moved])


@pytest.mark.parametrize(
    ("kernel", "counted", "reads"),
    [
        ("reference", Reference, ["onto_first", "onto_second"]),
        ("one-pass", Passes, ["onto_rows", "onto_columns"]),
    ],
)
def test_a_multilinear_sweep_reads_the_tensor_twice(monkeypatch, kernel, counted, reads):
    monkeypatch.setenv("RESTPOINT_KERNEL", kernel)
    smooth = CASES["quartic"].smooth()
    xs = CASES["quartic"].points(np.random.default_rng(4))
    seen = []
    for name in reads:
        original = getattr(counted, name)
        monkeypatch.setattr(
            counted, name, lambda *args, f=original, n=name: (seen.append(n), f(*args))[1]
        )
    sweep = smooth.sweep(xs)
    for i in range(4):
        sweep.update(i, sweep.partial(i))
    assert seen == reads


@every_case
def test_float32_in_float32_out(name):
    case = CASES[name]
    xs = case.points(np.random.default_rng(5), 2)
    single = tuple(x.astype(np.float32) for x in xs)
    smooth = case.smooth(lambda array: array.astype(np.float32))
    smooth = smooth.converted(single[0])  # the symmetric part of a quadratic is kept in float64
    value, gradient = smooth.value_and_gradient(single)
    assert value.dtype == np.float32
    assert all(g.dtype == np.float32 for g in gradient)
    assert smooth.rounding(single) is None  # nothing is proved outside float64
    double_value, double_gradient = case.smooth().value_and_gradient(xs)
    np.testing.assert_allclose(value, double_value, rtol=2e-5, atol=2e-5)
    for g, double in zip(gradient, double_gradient, strict=True):
        np.testing.assert_allclose(g, double, rtol=2e-5, atol=2e-5)
    for got, want in zip(
        case.smooth().converted(single[0]).gradient(single), gradient, strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)
        assert got.dtype == np.float32


@every_case
def test_array_api_strict(name):
    case = CASES[name]
    xs = case.points(np.random.default_rng(6), 2, 3)
    strict = tuple(array_api_strict.asarray(x) for x in xs)
    value, gradient = case.smooth().value_and_gradient(xs)
    for smooth in (case.smooth(array_api_strict.asarray), case.smooth().converted(strict[0])):
        got_value, got_gradient = smooth.value_and_gradient(strict)
        np.testing.assert_allclose(to_host(got_value), value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(to_host(smooth.value(strict)), value, rtol=1e-12, atol=1e-13)
        sweep = smooth.sweep(strict)
        for i, (got, want) in enumerate(zip(got_gradient, gradient, strict=True)):
            np.testing.assert_allclose(to_host(got), want, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(to_host(sweep.partial(i)), want, rtol=1e-12, atol=1e-13)
        assert smooth.facts(case.sets) == case.smooth().facts(case.sets)
        bounds = smooth.rounding(strict)
        assert (bounds is None) == (name == "user code")
        if bounds is not None:
            expected = case.smooth().rounding(xs)
            # Another kernel sums in another order, and so to another depth.
            dense = name in ("bilinear", "trilinear", "quartic") or "polyadic" in name
            same = 0.5 if dense else 1e-9
            np.testing.assert_allclose(to_host(bounds[0]), expected[0], rtol=same)
        one = tuple(x[0, 0, ...] for x in strict)
        np.testing.assert_allclose(float(smooth.value(one)), value[0, 0], rtol=1e-12, atol=1e-13)


@every_case
def test_inputs_are_not_touched(name):
    case = CASES[name]
    data = frozen([part.copy() for part in case.data])
    kept = [part.copy() for part in data]
    smooth = case.build(*data)
    xs = frozen(case.points(np.random.default_rng(7), 2))
    before = [x.copy() for x in xs]
    smooth.value_and_gradient(xs)
    smooth.rounding(xs)
    smooth.facts(case.sets)
    sweep = smooth.sweep(xs)
    sweep.update(0, sweep.partial(0))
    for now, then in zip([*xs, *data], [*before, *kept], strict=True):
        np.testing.assert_array_equal(now, then)


@every_case
def test_not_a_number_passes_through(name):
    case = CASES[name]
    xs = case.points(np.random.default_rng(8), 2)
    xs[0][0, 0] = np.nan
    value, gradient = case.smooth().value_and_gradient(xs)
    assert np.isnan(value[0])
    assert not np.isnan(value[1])
    assert any(np.isnan(g[0]).any() for g in gradient)
    assert not any(np.isnan(g[1]).any() for g in gradient)


@pytest.mark.parametrize("name", ["tall least squares", "wide least squares", "logistic"])
def test_sampled_gradients_are_unbiased(name):
    case = CASES[name]
    smooth, (x,) = case.smooth(), case.points(np.random.default_rng(9))
    count, (gradient,) = smooth.terms, smooth.gradient((x,))
    each = smooth.batch_gradient((np.broadcast_to(x, (count, x.size)),), np.arange(count)[:, None])[
        0
    ]
    np.testing.assert_allclose(each.mean(axis=0), gradient, rtol=1e-12, atol=1e-13)
    everything = smooth.batch_gradient((x,), np.arange(count))[0]
    np.testing.assert_allclose(everything, gradient, rtol=1e-12, atol=1e-13)
    pairs = np.array([[0, 0], [1, 2]])  # repeats count twice
    xs = (np.stack([x, -x]),)
    each = [smooth.batch_gradient((y,), row)[0] for y, row in zip(xs[0], pairs, strict=True)]
    np.testing.assert_allclose(smooth.batch_gradient(xs, pairs)[0], each, rtol=1e-12)
    strict = case.smooth(array_api_strict.asarray).batch_gradient(
        (array_api_strict.asarray(xs[0]),), array_api_strict.asarray(pairs)
    )
    np.testing.assert_allclose(to_host(strict[0]), each, rtol=1e-12)


def test_a_sum_samples_what_is_a_finite_sum_and_keeps_the_rest():
    squares = CASES["tall least squares"].smooth()
    powers, other = PowerSum(1.5, shape=4), CASES["logistic"].smooth()
    x = np.random.default_rng(10).standard_normal(4)
    smooth = Sum(squares, powers)
    assert smooth.terms == 9
    index = np.array([3, 5])
    np.testing.assert_allclose(
        smooth.batch_gradient((x,), index)[0],
        squares.batch_gradient((x,), index)[0] + powers.gradient((x,))[0],
    )
    assert Sum(squares, other).terms is None
    with pytest.raises(CapabilityError, match=r"\[7, 9\]"):
        Sum(squares, other).batch_gradient((x,), index)
    with pytest.raises(CapabilityError, match="not a finite sum"):
        powers.batch_gradient((x,), index)


def test_smoothing_samples_the_rough_part_only():
    rough = Function(
        lambda x: -float(np.sum(np.abs(x))),
        lambda x: -np.sign(x),
        shapes=3,
        concave=True,
        differentiable=False,
    )
    exact = Quadratic(np.diag([1.0, 2.0, 3.0]))
    rng = np.random.default_rng(11)
    x, noise = rng.standard_normal((2, 3)), rng.uniform(-0.5, 0.5, (5, 2, 3))
    mean = np.mean([rough.gradient((x + 0.8 * shift,))[0] for shift in noise], axis=0)
    np.testing.assert_allclose(rough.smoothed_gradient((x,), (noise,), 0.8)[0], mean)
    np.testing.assert_array_equal(
        exact.smoothed_gradient((x,), (noise,), 0.8)[0], exact.gradient((x,))[0]
    )
    both = Sum(exact, rough)
    assert not both.differentiable
    assert not both.facts([L2Ball()]).differentiable
    np.testing.assert_allclose(
        both.smoothed_gradient((x,), (noise,), 0.8)[0], mean + exact.gradient((x,))[0]
    )
    radius = np.array([0.1, 2.0])  # one per start
    each = [rough.smoothed_gradient((x[k],), (noise[:, k],), radius[k])[0] for k in range(2)]
    np.testing.assert_allclose(rough.smoothed_gradient((x,), (noise,), radius)[0], each)


def test_only_the_symmetric_part_counts_and_symmetric_data_are_not_copied():
    Q = np.array([[1.0, 4.0], [0.0, 2.0]])
    np.testing.assert_array_equal(Quadratic(Q).Q, [[1.0, 2.0], [2.0, 2.0]])
    assert Quadratic(Q.astype(np.float32)).Q.dtype == np.float64  # where the mean is not rounded
    symmetric = Q + Q.T
    assert Quadratic(symmetric).Q is symmetric
    assert Quadratic(symmetric).converted(symmetric).Q is symmetric


def test_logistic_is_stable_at_huge_margins():
    smooth = Logistic(np.array([[1.0], [1.0]]), np.array([1, -1]))
    value, (gradient,) = smooth.value_and_gradient((np.array([[1e6], [-1e6], [1e-9]]),))
    np.testing.assert_allclose(value, [1e6, 1e6, 2 * np.log(2.0)], rtol=1e-14)
    np.testing.assert_allclose(gradient[:, 0], [1.0, -1.0, 5e-10], rtol=1e-7)


def test_data_are_found_through_like(monkeypatch):
    monkeypatch.delenv("RESTPOINT_KERNEL", raising=False)
    single = np.zeros(1, dtype=np.float32)
    assert Quadratic(np.eye(2, dtype=np.float32)).like.dtype == np.float32
    assert PowerSum(1.5, shape=2).like is None
    assert PowerSum(1.5, shape=2).converted(single).like is None
    assert Sum(PowerSum(1.5, shape=2), Quadratic(np.eye(2))).like.dtype == np.float64
    assert CASES["user code"].smooth().like is None
    tensor = Multilinear(np.ones((2, 3, 2)))
    assert tensor.A.shape == (2, 3, 2)
    assert tensor.converted(single) is tensor  # contracted in the wider precision, never copied


def test_blocks_with_several_axes():
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    smooth = PowerSum(1.5, weights)
    x = np.random.default_rng(12).standard_normal((4, 2, 3))
    value, (gradient,) = smooth.value_and_gradient((x,))
    np.testing.assert_allclose(value, np.sum(weights * np.abs(x) ** 1.5, axis=(1, 2)))
    assert gradient.shape == x.shape
    assert smooth.rounding((x,))[0].shape == (4,)
    assert smooth.facts([L2Ball(event_ndim=2)]).convex


def test_every_public_function_is_tested():
    public = {
        kind
        for kind in vars(functions).values()
        if isinstance(kind, type) and issubclass(kind, Smooth) and kind is not Smooth
    }
    tested = {type(case.smooth()) for case in CASES.values()}
    # Held to the same laws in tests/test_kernels_sparse.py (NumPy's alone) and tests/test_kernels_moments.py.
    assert public == tested | {functions.SparseTensor, functions.MomentTensor}


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Quadratic([[1.0, np.nan], [0.0, 1.0]]), DataError, "Q contains NaN"),
        (lambda: Quadratic([[1.0, 2.0]]), ShapeError, r"Q has shape \(1, 2\); expected a square"),
        (lambda: Quadratic([1.0]), ShapeError, "Q has shape .* expected 2 axes"),
        (lambda: Quadratic(np.zeros((0, 0))), ShapeError, "Q .* empty"),
        (lambda: Quadratic(np.eye(2) * 1j), DataError, "Q has dtype complex128"),
        (lambda: Quadratic([[object()]]), DataError, "Q has dtype object"),
        (lambda: Quadratic(np.eye(2), [1.0]), ShapeError, r"b has shape \(1,\); expected \(2,\)"),
        (lambda: Quadratic(np.eye(2), [1.0, np.inf]), DataError, "b contains NaN or inf"),
        (lambda: LeastSquares(np.eye(2), np.ones((2, 1))), ShapeError, "b has shape .* 2 rows"),
        (lambda: LeastSquares(np.ones(3), np.ones(3)), ShapeError, "A has shape .* 2 axes"),
        (lambda: Logistic(np.eye(2), [0, 1]), DataError, "map 0 to -1"),
        (lambda: Logistic(np.eye(2), [2, 1]), DataError, "labels -1 and 1"),
        (lambda: Logistic(np.eye(2), [1, 1, 1]), ShapeError, "y has shape"),
        (lambda: PowerSum(1.5), ShapeError, r"give shape=\(n,\)"),
        (lambda: PowerSum(1.5, [1.0, np.nan]), DataError, "weights contains NaN"),
        (lambda: PowerSum(1.5, [1.0, 2.0], shape=3), ShapeError, r"expected a number or \(3,\)"),
        (lambda: PowerSum(1.5, []), DataError, "weights is empty"),
        (lambda: PowerSum(1.0, shape=2), DataError, "p must be > 1"),
        (lambda: PowerSum(2.5, shape=2), DataError, "theory E2"),
        (lambda: PowerSum(float("nan"), shape=2), DataError, "p contains NaN"),
        (lambda: PowerSum(1.5, shape=0), ShapeError, "positive integer"),
        (lambda: PowerSum(1.5, shape=()), ShapeError, "at least one axis"),
        (lambda: Multilinear(np.ones(3)), ShapeError, "A has shape .* at least 2 axes"),
        (lambda: Multilinear(np.eye(2), sign=2.0), DataError, "sign must be -1.0 or 1.0"),
        (Sum, DataError, "at least one part"),
        (lambda: Sum(Quadratic([[1.0]]), 3.0), DataError, "part 1 of Sum is 3.0"),
        (lambda: Sum(Quadratic([[1.0]]), PowerSum(2.0, shape=2)), ShapeError, "part 1 has blocks"),
    ],
)
def test_bad_arguments_are_refused_by_name(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_integers_become_floats():
    assert Quadratic([[2, 0], [0, 2]]).Q.dtype == np.float64
    assert Logistic(np.array([[1, 2]]), [1]).A.dtype == np.float64
    assert Multilinear(np.ones((2, 2), dtype=np.int32)).A.dtype == np.float64
