"""A few dozen cases of the long studies in ``tests/prove``, and the tightest instances that these have found.

A saw and a staircase (see ``reproduce.resisting``) take exactly as many iterations as the theorems allow, so each of
these bounds is sharp: one iteration less would be a false claim.
"""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

import restpoint as rp
from prove import exact
from prove.problems import KINDS, claim, instance
from prove.test_bounds_hold import check
from prove.test_certificates_sound import EXCESS, check_point
from prove.test_monotone import not_concave, rises, too_small, unsound
from prove.test_runs_agree import same_bits, starts_of, stop_of
from prove.test_trials_hold import by_trial
from restpoint.reproduce.resisting import Sawtooth, Staircase, separable

STEPS = {"3.1": rp.ConditionalGradient, "3.3": rp.ProximalGradient}
FULL = rp.FullStep()


def allowed_and_used(problem, method, x0, eps, measure="max"):
    result = rp.solve(problem, method, x0=x0, eps=eps, stop=rp.Stop(measure=measure))
    assert result.status is rp.Status.CERTIFIED
    return result.bound.statement, int(result.bound.count), int(result.used)


# --- the tightest instances, by theorem --------------------------------------------------------------


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("theorem", STEPS)
def test_one_block_bounds_are_attained(theorem, p):
    """Theorems 3.1 and 3.3: thirty teeth, thirty-one points, on an interval 500 times as long as the teeth."""
    saw = Sawtooth(slope=0.5 * p, constant=1.0, p=p, teeth=30)  # teeth of width 1
    length = 500.0 * 30
    facts = {"constant": 1.0 + 1e-13, "p": p, "lower_bound": saw.lowest}
    problem = rp.Problem(separable([saw.at], shapes=1, **facts), rp.Block(rp.sets.Box(0.0, length)))
    eps = saw.gap(length) * (1 - 1e-6)
    statement, allowed, used = allowed_and_used(problem, STEPS[theorem](), np.zeros(1), eps)
    assert statement.startswith(f"Theorem {theorem}")
    assert (allowed, used) == (31, 31)


def test_corollary_3_2_is_attained():
    """Forty vertices, one after the other."""
    stairs = Staircase(40, 0.25)
    facts = {"concave": True, "differentiable": False, "lower_bound": stairs.lowest}
    f = separable([stairs.at], shapes=40, **facts)
    problem = rp.Problem(f, rp.Block(rp.sets.Simplex()))
    method = rp.ConditionalGradient(smoothness=FULL)
    found = allowed_and_used(problem, method, stairs.top, 0.25 * (1 - 1e-6))
    assert found == ("Corollary 3.2", 40, 40)


def saws(p, d):
    """d equal saws of twenty teeth of width 1, with joint and blockwise constants 1."""
    saw, length = Sawtooth(slope=0.5 * p, constant=1.0, p=p, teeth=20), 500.0 * 20
    f = separable([saw.at] * d, shapes=[(1,)] * d, lower_bound=d * saw.lowest)
    return rp.Problem(f, [rp.Block(rp.sets.Box(0.0, length))] * d), saw, length


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("theorem", ["5.2", "5.3"])
def test_jacobi_bounds_are_attained(theorem, p):
    """The sum of the gaps: all saws climb together. The largest gap: one saw climbs, the other is at rest."""
    step = STEPS["3.1" if theorem == "5.2" else "3.3"]
    method = step(rp.Jacobi(), rp.Majorant((1.0 + 1e-13,) * 2, p, joint=True))
    problem, saw, length = saws(p, 2)
    eps = 2 * saw.gap(length) * (1 - 1e-6)
    x0 = (np.zeros(1), np.zeros(1))
    statement, allowed, used = allowed_and_used(problem, method, x0, eps, "sum")
    assert statement.startswith(f"Theorem {theorem}, Jacobi")
    assert (allowed, used) == (21, 21)

    rest = Sawtooth(slope=0.5 * p, constant=1.0, p=p, teeth=1)
    f = separable([saw.at, rest.at], shapes=[(1,)] * 2, lower_bound=saw.lowest + rest.lowest)
    problem = rp.Problem(f, [rp.Block(rp.sets.Box(0.0, length)), rp.Block(rp.sets.Box(0.0, 2.0))])
    x0 = (np.zeros(1), np.full(1, 2.0))
    statement, allowed, used = allowed_and_used(problem, method, x0, 0.5 * eps)
    assert (allowed, used) == (21, 21)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("rule", ["gap", "decrease"])
@pytest.mark.parametrize("theorem", ["5.2", "5.3"])
def test_maximum_improvement_bounds_are_attained(theorem, rule, p):
    """The saws climb one tooth at a time, whichever is highest: 2 x 20 teeth, and 40 points with a gap above eps."""
    step = STEPS["3.1" if theorem == "5.2" else "3.3"]
    method = step(rp.MaxImprovement(rule), rp.Majorant((1.0 + 1e-13,) * 2, p))
    problem, saw, length = saws(p, 2)
    x0, eps = (np.zeros(1), np.zeros(1)), saw.gap(length) * (1 - 1e-6)
    statement, allowed, used = allowed_and_used(problem, method, x0, eps)
    assert statement.startswith(f"Theorem {theorem}, maximum improvement")
    assert (allowed, used) == (41, 41)


def staircases(first, second):
    """Two staircases of height 1/2, concave in both blocks together."""
    stairs = [Staircase(first, 0.5), Staircase(second, 0.5)]
    facts = {"concave": True, "differentiable": False, "lower_bound": sum(s.lowest for s in stairs)}
    f = separable([s.at for s in stairs], shapes=[(first,), (second,)], **facts)
    problem = rp.Problem(f, [rp.Block(rp.sets.Simplex())] * 2)
    return problem, tuple(s.top for s in stairs)


@pytest.mark.parametrize(
    ("measure", "sizes", "expected"),
    [
        ("max", (12, 9), (20, 20)),  # 11 + 8 stairs
        (
            "sum",
            (20, 2),
            (21, 20),
        ),  # at rest once the first is down: the second alone has half of eps
    ],
)
def test_addition_6_is_attained(measure, sizes, expected):
    """Full steps on the block of largest gap."""
    problem, x0 = staircases(*sizes)
    eps = (0.5 if measure == "max" else 1.0) * (1 - 1e-6)
    method = rp.ConditionalGradient(rp.MaxImprovement("gap"), FULL)
    statement, *found = allowed_and_used(problem, method, x0, eps, measure)
    assert "A6" in statement
    assert tuple(found) == expected


def test_addition_13_within_a_factor_of_two():
    """A sweep opens with the largest gap and then moves every block again: two stairs or teeth of the same block."""
    problem, x0 = staircases(20, 2)
    method = rp.ConditionalGradient(rp.GaussSeidel("largest-gap"), FULL)
    statement, allowed, used = allowed_and_used(problem, method, x0, 0.5 * (1 - 1e-6))
    assert "A13" in statement
    assert (allowed, used) == (21, 11)

    for step in STEPS.values():
        method = step(rp.GaussSeidel("largest-gap"), rp.Majorant((1.0 + 1e-13,) * 2))
        problem, saw, length = saws(2.0, 2)
        eps = saw.gap(length) * (1 - 1e-6)
        statement, allowed, used = allowed_and_used(problem, method, (np.zeros(1),) * 2, eps)
        assert "A13" in statement
        assert allowed == 41
        assert 14 <= used <= 21


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("step", STEPS.values())
def test_addition_7_is_attained_where_blocks_do_not_interact(step, p):
    """Cyclic sweeps over a saw that climbs and one at rest: H = 0, and C^q / eps^q is 1 / omega_D(eps)."""
    _, saw, length = saws(p, 2)
    rest = Sawtooth(slope=0.5 * p, constant=1.0, p=p, teeth=1)
    lowest, constants = saw.lowest + rest.lowest, (1.0 + 1e-13,) * 2
    f = separable([saw.at, rest.at], shapes=[(1,)] * 2, lower_bound=lowest)
    problem = rp.Problem(f, [rp.Block(rp.sets.Box(0.0, length)), rp.Block(rp.sets.Box(0.0, 2.0))])
    x0, eps = (np.zeros(1), np.full(1, 2.0)), saw.gap(length) * (1 - 1e-6)
    bound = rp.bounds.addition_7(
        eps=eps,
        delta=float(problem.value(x0)) - lowest,
        constants=constants,
        diameters=(length, 2.0),
        cross=0.0,
        p=p,
    )
    method = step(rp.GaussSeidel("cyclic"), rp.Majorant(constants, p))
    result = rp.solve(problem, method, x0=x0, eps=eps)
    assert result.status is rp.Status.CERTIFIED
    assert (int(bound.count), int(result.used)) == (21, 21)


@pytest.mark.parametrize("p", [1.5, 2.0])
@pytest.mark.parametrize("theorem", STEPS)
def test_addition_5_is_attained(theorem, p):
    """Gradients with a declared error that is far below the gaps: as without it."""
    saw = Sawtooth(slope=0.5 * p, constant=1.0, p=p, teeth=30)
    length = 500.0 * 30
    facts = {"constant": 1.0 + 1e-13, "p": p, "lower_bound": saw.lowest}
    error = 1e-9 if theorem == "3.1" else 1e-6
    f = rp.smooth.Inexact(separable([saw.at], shapes=1, **facts), error)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(0.0, length)))
    eps = saw.gap(length) * (1 - 1e-6)
    statement, allowed, used = allowed_and_used(problem, STEPS[theorem](), np.zeros(1), eps)
    assert "A5" in statement
    assert (allowed, used) == (31, 31)


@pytest.mark.parametrize(
    ("rule", "theorem", "number", "found"),
    [
        ("Armijo", "A3", 44, (20, 10)),
        ("Doubling, conditional", "A3", 44, (20, 11)),
        ("Doubling, proximal", "A3", 44, (20, 11)),
        ("Universal", "A4", 44, (28, 10)),
        ("Universal from afar", "A4", 5, (41, 23)),
    ],
)
def test_additions_3_and_4_within_a_factor_of_three(rule, theorem, number, found):
    """Short saws. Half of the trials that are allowed are refused ones, and of these a run has few."""
    drawn = by_trial(instance("saw", number), rule)
    result = drawn.solve()
    allowed, used = check(drawn, result, rule)
    assert theorem in result.bound.statement
    assert (int(allowed[0]), int(used[0])) == found


# --- what the long studies have found ------------------------------------------------------------------


@pytest.mark.parametrize("slip", [-1e-16, 0.0, 1e-16, 1e-12, 1e-9])
def test_eps_equal_to_a_gap(slip):
    """eps is the gap of a point up to rounding, so that the certificate cannot say yes there: the bound still holds."""
    problem, x0 = staircases(12, 9)
    method = rp.ConditionalGradient(rp.MaxImprovement("gap"), FULL)
    _, allowed, used = allowed_and_used(problem, method, x0, 0.5 * (1 + slip))
    assert used <= allowed


def test_a_refused_proposal_is_repeated_soon():
    """After a certificate that rounding alone refused, the next smaller gap is proposed, not half of it."""
    saw, length = Sawtooth(slope=1.0, constant=1.0, p=2.0, teeth=30), 3000.0
    facts = {"constant": 1.0 + 1e-13, "lower_bound": saw.lowest}
    problem = rp.Problem(separable([saw.at], shapes=1, **facts), rp.Block(rp.sets.Box(0.0, length)))
    gap = float(np.asarray(rp.solve(problem, x0=np.zeros(1), eps=1e-3).trace.gap)[7])
    result = rp.solve(problem, x0=np.zeros(1), eps=gap)
    assert (result.status, int(result.iterations)) == (rp.Status.CERTIFIED, 8)


def test_a_slack_dual_bound_does_not_withdraw_anything():
    """At rest in 0, the dual bound of an off-centre ball leaves a gap of rounding: no step was promised by it."""
    drawn = replace(instance("quadratic", 352), starts=1, eps=1e-14)
    result = drawn.solve(stop=rp.Stop(max_iterations=50))
    assert result.bound.withdrawn is None


def test_float32_points_are_certified_for_the_data_as_stated():
    """Data in float64 and starts in float32: nothing of the data is rounded away in what is certified."""
    rng = np.random.default_rng(0)
    problem = rp.Problem(
        rp.smooth.Quadratic(rng.normal(size=(6, 6)), rng.normal(size=6)),
        rp.Block(rp.sets.L2Ball(1 / 3), rp.penalties.L1(0.1)),
    )
    x0 = (0.1 * rng.normal(size=(4, 6))).astype(np.float32)
    result = rp.solve(problem, x0=x0, eps=1e-4)
    assert result.x.dtype == np.float32
    assert result.certified.all()
    again = rp.certify(problem, result.x)
    np.testing.assert_array_equal(result.certificate.per_block, again.per_block)


def test_a_declaration_survives_float32():
    """Q = -AA' rounded to float32 is no longer semidefinite to 1e-10; it was declared concave, and it is."""
    A = np.random.default_rng(1).normal(size=(6, 2))
    f = rp.smooth.Quadratic(-A @ A.T, concave=True)
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    result = rp.solve(problem, x0=np.full(6, 0.3, dtype=np.float32), eps=1e-3)
    assert result.status is rp.Status.CERTIFIED


# --- small siblings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold(kind):
    for number in range(1000, 1006):
        drawn = instance(kind, number)
        result = drawn.solve()
        check(drawn, result, f"{kind} {number}")
        assert rises(result) <= 1e-13
        assert unsound(result) <= 1e-14


def test_certificates_are_sound():
    with mpmath.workdps(exact.DIGITS):
        for number in range(2000, 2030):
            made = claim(number)
            certificate = rp.certify(made.problem, made.xs)
            for k in range(len(made.words)):
                assert check_point(made, k, certificate)["excess"] <= EXCESS


@pytest.mark.parametrize("declared", [too_small, not_concave], ids=lambda f: f.__name__)
def test_false_declarations_are_found_out(declared):
    results = [declared(number)[0].solve(stop=rp.Stop(max_iterations=500)) for number in range(12)]
    assert sum(result.bound.withdrawn is not None for result in results) >= 3
    assert all(unsound(result) <= 1e-14 for result in results)


@pytest.mark.parametrize("kind", KINDS)
def test_reruns_batches_and_rest(kind):
    drawn = instance(kind, 1000)
    result = drawn.solve(stop=stop_of(drawn))
    assert same_bits(result, drawn.solve(stop=stop_of(drawn)))
    one = replace(drawn, x0=tuple(x[0] for x in starts_of(drawn))).solve(stop=stop_of(drawn))
    assert one.iterations == result.iterations[0]
    if result.certified.all():
        again = replace(drawn, x0=result.xs).solve(stop=stop_of(drawn))
        assert np.all(again.iterations == 0)
        assert same_bits(result, again)
