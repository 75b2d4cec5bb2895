"""Fits by several rank-one components: the definition, missing entries, kept products, facts."""

from __future__ import annotations

import math
import operator
import os
from fractions import Fraction

import numpy as np
import pytest

from restpoint.errors import DataError, ShapeError
from restpoint.kernels.passes import Passes
from restpoint.sets import Box, L2Ball, NonnegativeBall
from restpoint.smooth import CanonicalPolyadic, FactoredTensor, Multilinear, SparseTensor
from restpoint.testing import check_smooth

SIZES, WEIGHTS = (4, 3, 5), np.array([1.5, 0.3, 0.0])
LETTERS = "abcd"


def tensor(sizes=SIZES, seed=0):
    return np.random.default_rng(seed).standard_normal(sizes)


def holes(A, share=0.4, seed=1):
    return np.where(np.random.default_rng(seed).random(A.shape) < share, np.nan, A)


def points(smooth, seed=2, batch=()):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((*batch, *shape)) for shape in smooth.shapes)


def definition(A, weights, xs):
    """f and its gradients, entry by entry of A, where A is not NaN."""
    R, d = len(weights), A.ndim
    X = [np.stack(xs[i * R : (i + 1) * R]) for i in range(d)]
    modes = LETTERS[:d]
    model = np.einsum("r," + ",".join("r" + m for m in modes) + "->" + modes, weights, *X)
    residual = np.where(np.isnan(A), 0.0, A - model)
    gradients = []
    for i in range(d):
        others = [m for m in range(d) if m != i]
        rule = ",".join([modes, "r", *("r" + modes[m] for m in others)]) + "->r" + modes[i]
        gradients += list(-np.einsum(rule, residual, weights, *(X[m] for m in others)))
    return 0.5 * np.sum(residual**2), gradients


def agree(f, A, weights, rtol=1e-12):
    xs = points(f)
    value, gradient = f.value_and_gradient(xs)
    expected, gradients = definition(A, weights, xs)
    np.testing.assert_allclose(value, expected, rtol=rtol)
    scale = max(np.max(np.abs(g)) for g in gradients)
    for g, want in zip(gradient, gradients, strict=True):
        np.testing.assert_allclose(g, want, rtol=0, atol=rtol * scale)


@pytest.mark.parametrize("sizes", [(4, 3), SIZES, (3, 2, 4, 3)])
@pytest.mark.parametrize("missing", [False, True])
def test_the_definition(sizes, missing):
    A = holes(tensor(sizes)) if missing else tensor(sizes)
    agree(CanonicalPolyadic(A, WEIGHTS), A, WEIGHTS)


@pytest.mark.parametrize("missing", [False, True])
def test_any_storage(tmp_path, missing):
    A = tensor((6, 4, 5)).astype(np.float32).astype(np.float64)
    A = holes(A) if missing else A
    np.save(tmp_path / "A.npy", A)
    wide = np.zeros((6, 8, 5))
    wide[:, ::2] = A
    stored = {
        "transposed": np.ascontiguousarray(A.T).T,
        "gaps": wide[:, ::2],
        "backward": np.ascontiguousarray(A[::-1])[::-1],
        "float32": A.astype(np.float32),
        "file": str(tmp_path / "A.npy"),
        "list": A.tolist(),
    }
    for given in stored.values():
        agree(CanonicalPolyadic(given, WEIGHTS), A, WEIGHTS)


def test_masked_arrays_are_missing_entries():
    A = tensor()
    hidden = np.random.default_rng(5).random(SIZES) < 0.3
    wrong = np.where(hidden, np.inf, A)
    expected = np.where(hidden, np.nan, A)
    agree(CanonicalPolyadic(np.ma.array(wrong, mask=hidden), WEIGHTS), expected, WEIGHTS)
    nothing_hidden = np.ma.array(A, mask=np.zeros(SIZES, dtype=bool))
    agree(CanonicalPolyadic(nothing_hidden, WEIGHTS), A, WEIGHTS)
    whole = np.ma.array(np.arange(24).reshape(2, 3, 4), mask=False)
    whole[0, 0, 0] = np.ma.masked
    agree(CanonicalPolyadic(whole, WEIGHTS), whole.astype(float).filled(np.nan), WEIGHTS)


def test_few_observed_entries_are_kept_by_their_indices():
    A = holes(tensor((12, 9, 10)), share=0.98)
    f = CanonicalPolyadic(A, WEIGHTS)
    assert f.observed.data.name == "sparse"
    agree(f, A, WEIGHTS)


def test_forms_of_every_kind():
    rng = np.random.default_rng(3)
    A = tensor() * (rng.random(SIZES) < 0.3)
    places = np.nonzero(A)
    agree(CanonicalPolyadic(SparseTensor(places, A[places], SIZES), WEIGHTS), A, WEIGHTS)
    agree(CanonicalPolyadic(Multilinear(A), WEIGHTS), A, WEIGHTS)
    factors = [rng.standard_normal((n, 2)) for n in SIZES]
    made = np.einsum("r,ar,br,cr->abc", [2.0, -1.0], *factors)
    form = FactoredTensor((np.array([2.0, -1.0]), factors))
    agree(CanonicalPolyadic(form, WEIGHTS), made, WEIGHTS, rtol=1e-11)
    given = CanonicalPolyadic(Multilinear(A), WEIGHTS, squared_norm=float(np.sum(A**2)))
    agree(given, A, WEIGHTS)


@pytest.mark.parametrize(("sizes", "missing"), [(SIZES, True), ((3, 2, 4, 3), False)])
def test_the_laws(sizes, missing):
    A = holes(tensor(sizes)) if missing else tensor(sizes)
    kinds = (L2Ball(0.7), NonnegativeBall(1.5), Box(-0.5, 0.3))
    sets = [kinds[(i + r) % 3] for i in range(len(sizes)) for r in range(2)]
    check_smooth(CanonicalPolyadic(A, WEIGHTS[:2]), sets, rng=0, pairs=15)


def test_the_joint_constant_of_a_rank_one_tensor():
    """One component, d = 3, S = sigma = 1: 5 S + 2 sigma."""
    u = np.eye(3)[0]
    A = np.einsum("a,b,c->abc", u, u, u)
    facts = CanonicalPolyadic(A, [1.0]).facts([L2Ball()] * 3)
    np.testing.assert_allclose(facts.joint.constants, [7.0] * 3, rtol=1e-9)
    np.testing.assert_allclose(facts.blockwise.constants, [1.0] * 3, rtol=1e-9)
    assert facts.lower_bound == 0.0
    assert not facts.convex


def test_blockwise_constants_are_the_curvature_when_all_is_observed():
    """The Hessian of a block is w^2 prod ||x_j||^2 times the identity: radii 2, 3, 1/2."""
    radii = (2.0, 3.0, 0.5)
    facts = CanonicalPolyadic(tensor(), [0.5]).facts([L2Ball(r) for r in radii])
    expected = [0.25 * (3.0 / r) ** 2 for r in radii]
    np.testing.assert_allclose(facts.blockwise.constants, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_a_sweep_keeps_what_is_true_and_reads_twice(monkeypatch, missing):
    monkeypatch.setenv("RESTPOINT_KERNEL", "one-pass")
    A = holes(tensor((4, 3, 2, 5))) if missing else tensor((4, 3, 2, 5))
    f, reads = CanonicalPolyadic(A, WEIGHTS), []
    for name in ("onto_rows", "onto_columns"):
        original = getattr(Passes, name)
        monkeypatch.setattr(
            Passes, name, lambda *args, f=original, n=name: (reads.append(n), f(*args))[1]
        )
    xs = points(f)
    sweep = f.sweep(xs)
    groups = sweep.groups
    assert sorted(k for group in groups for k in group) == list(range(12))
    for group in groups:
        for k in (*group, *group):
            got, want = sweep.partial(k), definition(A, WEIGHTS, xs)[1][k]
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-11)
            xs = (*xs[:k], xs[k] - 0.1 * got, *xs[k + 1 :])
            sweep.update(k, xs[k])
    assert len(reads) == (4 if missing else 2)  # two tensors: the data and the mask
    value, gradient = sweep.value_and_gradient()
    expected, gradients = definition(A, WEIGHTS, xs)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for g, want in zip(gradient, gradients, strict=True):
        np.testing.assert_allclose(g, want, rtol=0, atol=1e-11)


def test_a_sweep_goes_on_from_what_another_carried():
    f = CanonicalPolyadic(holes(tensor((4, 3, 2, 5))), WEIGHTS)
    xs = points(f, batch=(2,))
    first = f.sweep(xs)
    first.value_and_gradient()
    second = f.sweep(xs, first.carried)
    for k, g in enumerate(f.gradient(xs)):
        np.testing.assert_allclose(second.partial(k), g, rtol=0, atol=1e-12)
    # The reference carries nothing.
    assert second.spent == float(os.environ.get("RESTPOINT_KERNEL") == "reference")


def test_reweighting_shares_the_data():
    A = holes(tensor())
    f = CanonicalPolyadic(A, WEIGHTS)
    other = f.reweighted([0.0, 2.0])
    assert other.observed is f.observed
    agree(other, A, np.array([0.0, 2.0]))
    agree(f, A, WEIGHTS)


@pytest.mark.parametrize(
    ("A", "weights", "message"),
    [
        (np.full((2, 2), np.nan), [1.0], "no observed entry"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), [1.0], "NaN or infinite"),
        (np.array([[1.0, np.inf], [np.nan, 1.0]]), [1.0], "NaN or infinite"),
        (np.eye(2), [-1.0], "weights must be >= 0"),
        (np.eye(2), [np.nan], "weights"),
        (np.eye(2), 1.0, "weights has shape"),
        (np.eye(2), [], "weights has shape"),
        (np.ones(3), [1.0], "at least 2 axes"),
        (np.array([1.0, np.nan]), [1.0], "at least 2 axes"),
        (np.array([["a", "b"]]), [1.0], "dtype"),
    ],
)
def test_bad_input_is_named(A, weights, message):
    with pytest.raises((DataError, ShapeError), match=message):
        CanonicalPolyadic(A, weights)


def test_a_norm_that_cannot_be_known_is_asked_for():
    from restpoint.smooth import MomentTensor

    form = MomentTensor(np.random.default_rng(0).standard_normal((20, 3)), order=3)
    with pytest.raises(DataError, match="squared_norm is missing"):
        CanonicalPolyadic(form, [1.0])
    with pytest.raises(DataError, match="squared_norm must be"):
        CanonicalPolyadic(Multilinear(np.eye(2)), [1.0], squared_norm=-1.0)
    with pytest.raises(DataError, match="give it only with"):
        CanonicalPolyadic(np.eye(2), [1.0], squared_norm=1.0)


@pytest.mark.parametrize("missing", [False, True])
def test_slopes_in_the_weights_and_their_rounding(missing):
    """Against exact rational arithmetic, on data of many scales."""
    rng = np.random.default_rng(7)
    for spread in (0.0, 3.0):
        A = tensor((3, 2, 4)) * 10.0 ** rng.uniform(-spread, spread, (3, 2, 4))
        A = holes(A) if missing else A
        f = CanonicalPolyadic(A, WEIGHTS)
        xs = tuple(x * 10.0 ** rng.uniform(-spread, spread, x.shape) for x in points(f))
        slopes, error = f.weight_gradient(xs)
        exact = [Fraction(0)] * 3
        for place in zip(*np.nonzero(~np.isnan(A)), strict=True):
            parts = [
                math.prod(Fraction(xs[3 * i + r][j]) for i, j in enumerate(place)) for r in range(3)
            ]
            residual = sum(map(operator.mul, map(Fraction, WEIGHTS), parts)) - Fraction(A[place])
            exact = [slope + residual * part for slope, part in zip(exact, parts, strict=True)]
        for slope, bound, true in zip(slopes, error, exact, strict=True):
            assert abs(Fraction(slope) - true) <= Fraction(bound)
            if not spread:
                assert bound <= 1e-12 * np.max(np.abs(slopes))
