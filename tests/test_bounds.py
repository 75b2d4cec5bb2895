"""The counts of the theorems: values, tightness, rounding, and what is refused."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from restpoint.bounds import (
    Bound,
    addition_6,
    addition_13,
    corollary_3_2,
    theorem_3_1,
    theorem_3_3,
    theorem_5_2,
    theorem_5_3,
)
from restpoint.errors import DataError, ShapeError
from restpoint.omega import omega

SINGLE = (theorem_3_1, theorem_3_3)
BLOCK = (theorem_5_2, theorem_5_3)
EXPONENTS = (1.05, 1.1, 1.2, 4 / 3, 1.5, 1.9, 2.0)


# --- one block -----------------------------------------------------------------------------------


@pytest.mark.parametrize("theorem", SINGLE)
def test_values_by_hand(theorem):
    # D = 4, eps = 1/8: omega = 1/512. The paper: 2 * 1 * 4 * 64 = 512.
    bound = theorem(eps=0.125, delta=1.0, constant=1.0, diameter=2.0)
    assert (bound.count, bound.paper_bound) == (512.0, 512.0)
    assert isinstance(bound.count, float)
    assert bound.counts == "iterations"
    assert bound.rate == "O(1/eps^2)"
    assert bound.missing == ()
    assert bound.constants["D"] == 4.0
    assert bound.constants["decrease"] == 1 / 512
    # eps above D = 4: each step lowers Phi by 5 - 2; the paper's condition fails.
    bound = theorem(eps=5.0, delta=7.0, constant=1.0, diameter=2.0)
    assert (bound.count, bound.paper_bound) == (3.0, None)
    # p = 3/2, q = 3, lambda = diam = 1, eps = 1/4: omega = (16/27) / 64 = 1/108.
    bound = theorem(eps=0.25, delta=1.001, constant=1.0, diameter=1.0, p=1.5)
    assert (bound.count, bound.paper_bound) == (109.0, 129.0)
    assert bound.rate == "O(1/eps^3)"
    # A concave f: lambda = 0.
    bound = theorem(eps=0.25, delta=1.0, constant=0.0, diameter=2.0)
    assert (bound.count, bound.paper_bound, bound.rate) == (4.0, None, "O(1/eps)")


def test_corollary():
    bound = corollary_3_2(eps=0.25, delta=1.0)
    assert (bound.count, bound.paper_bound, bound.rate) == (4.0, 4.0, "O(1/eps)")
    assert corollary_3_2(eps=0.25, delta=1.0 + 2e-16).count == 5.0
    assert "concave" in bound.assumptions[0]


@pytest.mark.parametrize("theorem", SINGLE)
def test_delta_zero_still_needs_one_look(theorem):
    bound = theorem(eps=0.125, delta=0.0, constant=1.0, diameter=2.0)
    assert (bound.count, bound.paper_bound) == (1.0, 1.0)
    assert theorem(eps=1e-200, delta=0.0, constant=1e9, diameter=2.0).count == 1.0
    assert corollary_3_2(eps=1.0, delta=0.0).count == 1.0
    assert addition_6(eps=1.0, delta=0.0, blocks=2).count == 1.0
    assert theorem(eps=1.0, delta=1e-3, constant=1.0, diameter=1.0).count == 1.0


@pytest.mark.parametrize("p", EXPONENTS)
def test_sharp_is_never_above_the_paper(p):
    rng = np.random.default_rng(0)
    shape = (4000,)
    D = 10.0 ** rng.uniform(-2, 2, shape)
    diameter = rng.uniform(0.1, 3.0, shape)
    eps = D * 10.0 ** rng.uniform(-3, 0.5, shape)
    delta = 10.0 ** rng.uniform(-3, 3, shape)
    bound = theorem_3_1(eps=eps, delta=delta, constant=D / diameter**p, diameter=diameter, p=p)
    valid = eps < D
    assert 0 < np.sum(valid) < len(D)
    near = np.abs(eps / D - 1) < 1e-12
    np.testing.assert_array_equal(np.isnan(bound.paper_bound)[~near], ~valid[~near])
    holds = ~np.isnan(bound.paper_bound)
    assert np.all(bound.count[holds] <= bound.paper_bound[holds])
    assert np.all(bound.count >= 1)


@pytest.mark.parametrize(
    ("p", "gain"), [(1.1, 71.8), (1.2, 4.29), (4 / 3, 1.69), (1.5, 1.19), (2.0, 1.0)]
)
def test_gain_over_the_paper(p, gain):
    """The table of E9, in the limit of large counts."""
    bound = theorem_3_1(eps=1e-2, delta=1e3, constant=1.0, diameter=1.0, p=p)
    assert bound.paper_bound / bound.count == pytest.approx(gain, rel=5e-3)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.9, 1.3])
def test_the_hardest_scalar_sequence_needs_every_look(p, share):
    """Phi falls by omega_D of a gap barely above eps at each step, down from delta to 0.

    As long as such a sequence has not run out of delta its gaps may all exceed eps, so a count that
    is not above the number of such steps would be false; one more is enough.
    """
    D, eps = 1.0, share
    with mpmath.workdps(40):
        exact = mpmath.mpf(float(omega(eps, D, p)))  # any decrease will do for the simulation
        for steps in (1, 2, 7, 50):
            for extra in (mpmath.mpf("1e-9"), mpmath.mpf("0.5")):
                delta = float(exact * (steps + extra))
                left, taken = mpmath.mpf(delta), 0
                while left > exact * (1 + mpmath.mpf("1e-12")):
                    left -= exact * (1 + mpmath.mpf("1e-12"))
                    taken += 1
                bound = theorem_3_1(eps=eps, delta=delta, constant=1.0, diameter=1.0, p=p)
                assert taken == steps
                assert bound.count == taken + 1


def omega_exact(eps, D, p):
    """omega_D in 60 digits, from floats."""
    with mpmath.workdps(60):
        a, D, p = mpmath.mpf(eps), mpmath.mpf(D), mpmath.mpf(p)
        q = p / (p - 1)
        return a / q * (2 * a / (p * D)) ** (q - 1) if a <= p * D / 2 else a - D / 2


@pytest.mark.parametrize("p", [1.01, *EXPONENTS])
def test_rounding_never_makes_it_too_small(p):
    """delta is put within one rounding of a multiple of the decrease, where a naive ceil goes wrong."""
    rng = np.random.default_rng(1)
    tight = 0
    for _ in range(200):
        constant, diameter = rng.uniform(0.1, 2.0, 2)
        with mpmath.workdps(60):
            D = mpmath.mpf(constant) * mpmath.mpf(diameter) ** mpmath.mpf(p)
            eps = float(D) * rng.uniform(0.3, 1.5)
            decrease = omega_exact(eps, D, p)
            delta = float(decrease * int(rng.integers(1, 10**6)))
            true = int(mpmath.ceil(mpmath.mpf(delta) / decrease))
        count = theorem_3_1(eps=eps, delta=delta, constant=constant, diameter=diameter, p=p).count
        assert max(1, true) <= count <= true + 1
        tight += count == true
    # At p = 2 the arithmetic is exact; elsewhere the doubtful integer is passed by.
    assert tight == 200 if p == 2.0 else tight > 0


def test_exact_where_rational():
    """eps = 0.1 as a float is above 1/10, so 100 looks are enough for 10 / 0.1, and 101 for more."""
    assert corollary_3_2(eps=0.1, delta=10.0).count == 100.0
    assert corollary_3_2(eps=0.1, delta=math.nextafter(10.0, 11.0)).count == 101.0
    rng = np.random.default_rng(2)
    for _ in range(300):
        eps, constant, diameter = (float(v) for v in np.round(rng.uniform(0.05, 2.0, 3), 2))
        delta = float(np.round(rng.uniform(0.0, 20.0), 1))
        D = Fraction(constant) * Fraction(diameter) ** 2
        gap = Fraction(eps)
        decrease = gap - D / 2 if gap > D else gap**2 / (2 * D)
        expected = max(1, math.ceil(Fraction(delta) / decrease))
        bound = theorem_3_1(eps=eps, delta=delta, constant=constant, diameter=diameter)
        assert bound.count == expected


@pytest.mark.parametrize("p", [1.3, 1.5, 2.0])
def test_powers_of_the_diameter_that_underflow_or_overflow_do_not_change_the_count(p):
    """lambda diam^p is an ordinary number, diam^p is not."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        diameter = 10.0 ** (rng.choice([-1, 1]) * rng.uniform(150.0, 230.0))
        with mpmath.workdps(60):
            power = mpmath.mpf(diameter) ** mpmath.mpf(p)
            constant = float(min(max(rng.uniform(1e-5, 1e5) / power, 1e-300), 1e300))
            D = constant * power
            eps = float(D * rng.uniform(0.3, 1.5))
            decrease = omega_exact(eps, D, p)
            delta = float(decrease * rng.uniform(1.0, 1e4))
            true = int(mpmath.ceil(mpmath.mpf(delta) / decrease))
        count = theorem_3_1(eps=eps, delta=delta, constant=constant, diameter=diameter, p=p).count
        assert max(1, true) <= count <= true + 1
    assert theorem_3_1(eps=1e-101, delta=2.5e-101, constant=1e300, diameter=1e-200).count == 50.0
    lost = theorem_3_1(eps=1e-283, delta=1.233e-281, constant=1e40, diameter=1.07e-160)
    assert lost.count == 282333.0


def test_overflow_is_infinite():
    bound = theorem_3_1(eps=1e-10, delta=1.0, constant=1.0, diameter=1.0, p=1.01)
    assert (bound.count, bound.paper_bound) == (math.inf, math.inf)
    assert theorem_3_1(eps=1e-200, delta=1.0, constant=1.0, diameter=1.0).count == math.inf
    assert theorem_3_1(eps=1e10, delta=1.0, constant=1e200, diameter=1e100).count == math.inf
    assert theorem_3_1(eps=1.0, delta=1.0, constant=0.0, diameter=1e300).count == 1.0
    large = theorem_3_1(eps=1e-9, delta=3.0, constant=1.0, diameter=1.0).count
    with mpmath.workdps(60):
        assert large >= mpmath.mpf(3) / omega_exact(1e-9, 1.0, 2.0)
    assert large == pytest.approx(6e18, rel=1e-13)


@pytest.mark.parametrize("theorem", SINGLE)
def test_one_entry_per_start(theorem):
    eps = np.asarray([[0.125], [5.0]])
    delta = np.asarray([0.0, 1.0, 7.0])
    bound = theorem(eps=eps, delta=delta, constant=1.0, diameter=2.0)
    assert bound.count.shape == bound.paper_bound.shape == (2, 3)
    assert bound.count.dtype == np.float64
    np.testing.assert_array_equal(bound.count, [[1, 512, 3584], [1, 1, 3]])
    np.testing.assert_array_equal(bound.paper_bound, [[1, 512, 3584], [math.nan] * 3])
    for i, j in itertools.product(range(2), range(3)):
        one = theorem(eps=float(eps[i, 0]), delta=float(delta[j]), constant=1.0, diameter=2.0)
        assert one.count == bound.count[i, j]
    single = theorem(
        eps=np.float32(0.125), delta=delta, constant=np.ones(3, np.float32), diameter=2
    )
    np.testing.assert_array_equal(single.count, [1, 512, 3584])


def test_a_start_without_a_value_has_no_count():
    bound = corollary_3_2(eps=0.5, delta=np.asarray([1.0, math.nan, math.inf]))
    np.testing.assert_array_equal(bound.count, [2.0, math.nan, math.inf])
    assert bound.missing == ()


def test_what_is_missing_is_named():
    bound = theorem_3_1(eps=0.1, delta=None, constant=None, diameter=None)
    assert bound.count is None
    assert bound.paper_bound is None
    assert bound.missing == ("a lower bound on Phi", "the constant lambda", "the diameter of S")
    assert "no count without a lower bound on Phi, the constant lambda" in str(bound)
    for delta in (math.inf, np.full(3, math.inf)):
        bound = corollary_3_2(eps=0.1, delta=delta)
        assert (bound.count, bound.missing) == (None, ("a lower bound on Phi",))
    bound = theorem_5_2(eps=0.1, delta=1.0, constants=(1.0, None), diameters=(1.0, 2.0))
    assert (bound.count, bound.missing) == (None, ("the constant lambda",))
    bound = theorem_5_3(eps=0.1, delta=1.0, constants=None, diameters=(1.0, 2.0), measure="sum")
    assert (bound.count, bound.missing) == (None, ("the constant lambda",))
    bound = addition_13(eps=0.1, delta=1.0, blocks=2, constants=(1.0, 2.0), diameters=(None, 1.0))
    assert (bound.count, bound.missing) == (None, ("the diameter of S",))


def test_concave_with_large_p():
    bound = theorem_3_1(eps=0.1, delta=1.0, constant=1.0, diameter=1.0, p=3.0, concave=True)
    assert bound.count == math.ceil(1.0 / omega(0.1, 1.0, 3.0))
    assert bound.count <= bound.paper_bound
    assert theorem_3_1(eps=0.25, delta=1.0, constant=0.0, diameter=1.0, p=3.0).count == 4.0


# --- several blocks ------------------------------------------------------------------------------


@pytest.mark.parametrize("theorem", BLOCK)
def test_blocks_by_hand(theorem):
    # D = (4, 4): omega(1/4) = 1/128. The paper: diam 2, lambda 4, D = 16.
    data = {"eps": 0.25, "delta": 1.0, "constants": (1.0, 4.0), "diameters": (2.0, 1.0)}
    bound = theorem(**data)
    assert (bound.count, bound.paper_bound, bound.counts) == (128.0, 512.0, "iterations")
    bound = theorem(**data, order="max-improvement")
    assert (bound.count, bound.paper_bound, bound.counts) == (128.0, 512.0, "block updates")
    # The sum of the gaps: D = 8, omega(1/4) = 1/256; or 1/8 for the best block, omega = 1/512.
    assert theorem(**data, measure="sum").count == 256.0
    assert theorem(**data, measure="sum").paper_bound is None
    assert theorem(**data, order="max-improvement", measure="sum").count == 512.0
    # One block is the problem with one block.
    one = theorem(eps=0.125, delta=1.0, constants=(1.0,), diameters=(2.0,), measure="sum")
    assert one.count == 512.0


@pytest.mark.parametrize("theorem", BLOCK)
def test_a_singleton_block_does_not_void_the_bound(theorem):
    """The paper asks eps < lambda diam(smallest block)^p, which is 0 here (E28)."""
    bound = theorem(eps=0.25, delta=1.0, constants=(1.0, 1.0), diameters=(2.0, 0.0))
    assert (bound.count, bound.paper_bound) == (128.0, None)


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("order", ["jacobi", "max-improvement"])
def test_blocks_never_above_the_paper(p, order):
    rng = np.random.default_rng(3)
    constants = tuple(rng.uniform(0.1, 5.0, (3, 500)))
    diameters = tuple(rng.uniform(0.1, 3.0, (3, 500)))
    eps, delta = 10.0 ** rng.uniform(-2, 1, 500), 10.0 ** rng.uniform(-2, 2, 500)
    bound = theorem_5_2(
        eps=eps, delta=delta, constants=constants, diameters=diameters, p=p, order=order
    )
    holds = ~np.isnan(bound.paper_bound)
    assert 0 < np.sum(holds) < 500
    assert np.all(bound.count[holds] <= bound.paper_bound[holds])
    curvature = np.asarray(constants) * np.asarray(diameters) ** p
    expected = np.maximum(1.0, np.ceil(delta / np.min(omega(eps, curvature, p), axis=0)))
    np.testing.assert_allclose(bound.count, expected, rtol=1e-12, atol=1)
    small = expected < 1e9  # beyond, the rounding error of the quotient exceeds what is cut off
    np.testing.assert_array_equal(bound.count[small], expected[small])
    summed = theorem_5_2(
        eps=eps,
        delta=delta,
        constants=constants,
        diameters=diameters,
        p=p,
        order=order,
        measure="sum",
    ).count
    joint = (
        omega(eps, np.sum(curvature, axis=0), p)
        if order == "jacobi"
        else omega(eps / 3, np.max(curvature, axis=0), p)
    )
    np.testing.assert_allclose(summed, np.maximum(1.0, np.ceil(delta / joint)), rtol=1e-12, atol=1)
    assert np.all(summed >= bound.count)


def test_additions():
    assert addition_6(eps=0.25, delta=1.0, blocks=3).count == 4.0
    bound = addition_6(eps=0.25, delta=1.0, blocks=3, measure="sum")
    assert (bound.count, bound.counts, bound.paper_bound) == (12.0, "block updates", None)
    # 0.3 / 3 is not a float, and 3 * 1.0 / 0.3 is decided exactly: 0.3 is below 3/10.
    assert addition_6(eps=0.3, delta=1.0, blocks=3, measure="sum").count == 11.0
    bound = addition_13(eps=0.25, delta=1.0, blocks=3)
    assert (bound.count, bound.counts, bound.rate) == (4.0, "sweeps", "O(1/eps)")
    assert addition_13(eps=0.25, delta=1.0, blocks=3, measure="sum").count == 12.0
    data = {"eps": 0.25, "delta": 1.0, "blocks": 2, "constants": (1, 4), "diameters": (2, 1)}
    assert addition_13(**data).count == 128.0
    assert addition_13(**data, measure="sum").count == 512.0
    assert addition_13(**data | {"constants": (1, 0)}).count == 128.0


# --- the door, and what is printed ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 0.0}, "eps is 0; expected > 0"),
        ({"eps": -1.0}, "eps is -1; expected > 0"),
        ({"eps": math.nan}, "eps is nan; expected finite numbers"),
        ({"eps": np.asarray([0.1, 0.0])}, r"eps is 0 to 0.1 \(2 starts\); expected > 0"),
        ({"eps": "small"}, "eps is 'small'; expected a number, or an array of numbers"),
        ({"eps": None}, "eps is None; expected a number"),
        ({"eps": [1.0, None]}, "expected a number"),
        ({"eps": 1j}, "eps is 1j; expected a number"),
        ({"delta": math.nan}, "delta is nan; pass delta=None"),
        ({"delta": np.full(2, np.nan)}, r"delta is nan \(2 starts\); pass delta=None"),
        ({"delta": -1.0}, r"delta is -1: Phi\(x1\) lies below its lower bound"),
        (
            {"delta": -9e-9, "eps": 1e-12},
            r"delta is -9e-09: .* add to delta what rounding explains",
        ),
        ({"delta": np.array([1.0, -5e-324])}, r"delta is -4.94066e-324 to 1 \(2 starts\)"),
        ({"constant": -1.0}, "constant is -1; expected >= 0"),
        ({"constant": math.inf}, "constant is inf; expected finite numbers; pass None"),
        ({"diameter": -2.0}, "diameter is -2; expected >= 0"),
        ({"diameter": math.nan}, "diameter is nan"),
        ({"p": 1.0}, r"p must be a number in \(1, 2\], got 1.0"),
        ({"p": math.nan}, r"p must be a number in \(1, 2\], got nan"),
        ({"p": "x"}, r"p must be a number in \(1, 2\], got 'x'"),
        ({"p": None}, "got None"),
        ({"p": [2]}, r"got \[2\]"),
        ({"concave": "no"}, "concave must be True or False, got 'no'"),
        ({"p": 2.5}, "p is 2.5; for p > 2 the inequality holds for concave f alone"),
    ],
)
@pytest.mark.parametrize("theorem", SINGLE)
def test_refused(theorem, arguments, message):
    data = {"eps": 0.1, "delta": 1.0, "constant": 1.0, "diameter": 1.0}
    with pytest.raises(DataError, match=message):
        theorem(**data | arguments)


def test_shapes_refused():
    with pytest.raises(ShapeError, match="do not broadcast"):
        theorem_3_1(eps=np.ones(2), delta=np.ones(3), constant=1.0, diameter=1.0)
    with pytest.raises(ShapeError, match="constants has 2 entries and diameters 1"):
        theorem_5_2(eps=0.1, delta=1.0, constants=(1.0, 1.0), diameters=(1.0,))
    with pytest.raises(ShapeError, match="are empty"):
        theorem_5_2(eps=0.1, delta=1.0, constants=(), diameters=())
    with pytest.raises(ShapeError, match="expected one per block, 3"):
        addition_13(eps=0.1, delta=1.0, blocks=3, constants=(1, 1), diameters=(1, 1))


def test_choices_refused():
    with pytest.raises(DataError, match="order is 'cyclic'; expected 'jacobi'"):
        theorem_5_2(eps=0.1, delta=1.0, constants=(1.0,), diameters=(1.0,), order="cyclic")
    with pytest.raises(DataError, match="measure is 'mean'; expected 'max' or 'sum'"):
        theorem_5_3(eps=0.1, delta=1.0, constants=(1.0,), diameters=(1.0,), measure="mean")
    for blocks in (0, 1.5, True):
        with pytest.raises(DataError, match="blocks must be a whole number >= 1"):
            addition_6(eps=0.1, delta=1.0, blocks=blocks)
    with pytest.raises(DataError, match="give both, or neither"):
        addition_13(eps=0.1, delta=1.0, blocks=2, diameters=(1.0, 1.0))


def test_withdrawn_and_none():
    bound = theorem_3_1(eps=0.125, delta=1.0, constant=1.0, diameter=2.0)
    gone = bound.withdraw("the trajectory disproves lambda = 1")
    assert gone.count is None
    assert gone.withdrawn == "the trajectory disproves lambda = 1"
    assert gone.constants == bound.constants
    assert bound.count == 512.0
    assert "withdrawn: the trajectory disproves lambda = 1" in str(gone)
    none = Bound.none("the order has no theorem")
    assert none.count is None
    assert str(none) == "no bound: the order has no theorem"


def test_printed():
    text = str(theorem_3_1(eps=0.125, delta=1.0, constant=1.0, diameter=2.0))
    assert text.startswith(
        "Theorem 3.1, sharp form (theory E9): at most 512 iterations, O(1/eps^2)"
    )
    assert "the paper's own figure: 512" in text
    assert "lambda = 1, diameter = 2, p = 2, D = 4" in text
    text = str(corollary_3_2(eps=0.25, delta=np.asarray([1.0, 2.0, math.nan])))
    assert "at most 4 to 8 (3 starts) iterations" in text
    text = str(theorem_5_2(eps=0.25, delta=1.0, constants=(1, 4), diameters=(2, 1)))
    assert "lambda_1 = 1, lambda_2 = 4, diameter_1 = 2, diameter_2 = 1" in text
    assert "all blocks move together" in text
    assert "sweeps" in str(addition_13(eps=0.25, delta=1.0, blocks=3))


@pytest.mark.parametrize("theorem", [theorem_5_2, theorem_5_3, addition_13])
def test_entries_for_the_blocks(theorem):
    data = {"eps": 0.25, "delta": 1.0, "constants": (1.0, 4.0), "diameters": (2.0, 1.0)}
    data |= {"blocks": 2} if theorem is addition_13 else {}
    arrays = {name: np.asarray(data[name]) for name in ("constants", "diameters")}
    assert theorem(**data | arrays).count == theorem(**data).count
    for wrong in (3.0, "x", np.ones((2, 2))):
        with pytest.raises(ShapeError, match="expected one entry per block, as in constants="):
            theorem(**data | {"constants": wrong})
