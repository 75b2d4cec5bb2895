"""Every public set and penalty obeys the laws, on every library, dtype and batch."""

import numpy as np
import pytest

from restpoint import penalties, sets
from restpoint.errors import DataError, ShapeError
from restpoint.penalties import L1, Penalty, SeparableSublinear
from restpoint.sets import Box, L2Ball, NonnegativeBall, Set, Simplex
from restpoint.testing import PENALTIES, SETS, Draw, LawBroken, check_penalty, check_set

BATCHES = [(), (3,)]


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
def test_sets_obey_the_laws(case, batch, like):
    rng = np.random.default_rng(1)
    check_set(case.make(Draw(rng, case.shape, batch)), case.shape, rng=rng, like=like)


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("case", PENALTIES, ids=lambda case: case.name)
def test_penalties_obey_the_laws(case, batch, like):
    rng = np.random.default_rng(2)
    check_penalty(case.make(Draw(rng, case.shape, batch)), case.shape, rng=rng, like=like)


def test_the_catalogue_holds_every_public_set():
    public = {getattr(sets, name) for name in sets.__all__} - {Set}
    assert public == {case.kind for case in SETS}


def test_the_catalogue_holds_every_public_penalty():
    public = {getattr(penalties, name) for name in penalties.__all__}
    assert public - {Penalty, SeparableSublinear} == {case.kind for case in PENALTIES}


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e9])
def test_simplex_projection_keeps_the_total_beside_large_entries(shift):
    point = Simplex(1.0).project(np.array([0.25, 0.5, -2.0]) + shift)
    np.testing.assert_allclose(point, [0.375, 0.625, 0.0], rtol=0, atol=1e-12)


def test_simplex_projection_of_far_points_is_feasible():
    rng = np.random.default_rng(3)
    point = Simplex(2.0).project(1e20 * rng.standard_normal((50, 6)))
    assert np.max(np.abs(point.sum(axis=-1) - 2.0)) <= 1e-14
    assert point.min() >= 0.0


class _WrongBall(L2Ball):
    """A ball whose diameter is half of the truth."""

    def diameter(self, p, shape):
        return 0.5 * super().diameter(p, shape)


class _WrongSupport(L2Ball):
    """A ball whose support function is too small."""

    def support(self, g):
        return 0.9 * super().support(g)


class _WrongProjection(Box):
    """A box that projects to a point of the box, but not the nearest."""

    def project(self, x):
        return 0.5 * super().project(x) + 0.25 * (self.lower + self.upper)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_WrongBall(1.0), "diameter"),
        (_WrongSupport(1.0), "support"),
        (_WrongProjection(-1.0, 1.0), "a sample is outside"),
    ],
)
def test_wrong_sets_are_refuted(wrong, message):
    with pytest.raises(LawBroken, match=message):
        check_set(wrong, (4,))


class _WrongProx(L1):
    """Soft thresholding at half of the threshold."""

    def prox(self, v, step):
        return super().prox(v, 0.5 * step)


class _NotSublinear(L1):
    """The square of the l1 norm, which is not sublinear."""

    def value(self, x):
        return super().value(x) ** 2


@pytest.mark.parametrize(
    ("wrong", "message"), [(_WrongProx(1.0), "prox"), (_NotSublinear(1.0), "homogeneous")]
)
def test_wrong_penalties_are_refuted(wrong, message):
    with pytest.raises(LawBroken, match=message):
        check_penalty(wrong, (4,))


@pytest.mark.parametrize("bad", [-1.0, 0.0, float("nan"), float("inf")])
def test_sizes_are_checked_at_the_door(bad):
    for build in (L2Ball, Simplex):
        with pytest.raises(DataError):
            build(bad)


def test_other_parameters_are_checked_at_the_door():
    with pytest.raises(DataError, match="weight must be >= 0"):
        L1(-1.0)
    with pytest.raises(DataError, match="empty"):
        Box(1.0, 0.0)
    with pytest.raises(ShapeError, match="center"):
        L2Ball(1.0, np.zeros(3)).check_shape((4,))


def test_projections_onto_the_nonnegative_ball_compose():
    """Onto the orthant, then onto the ball: against a fine grid of the quarter disc."""
    t = np.linspace(0.0, np.pi / 2, 2001)
    grid = np.concatenate([s * np.stack([np.cos(t), np.sin(t)], axis=-1) for s in (0.0, 0.5, 1.0)])
    for x in np.random.default_rng(4).standard_normal((50, 2)) * 3.0:
        near = NonnegativeBall().project(x)
        assert np.linalg.norm(x - near) <= np.min(np.linalg.norm(x - grid, axis=-1)) + 1e-15


def test_a_single_nonnegative_entry_is_an_interval():
    assert NonnegativeBall(2.0).diameter(2.0, (1,)) == 2.0
    assert NonnegativeBall(2.0).diameter(2.0, (3,)) == pytest.approx(2.0 * np.sqrt(2.0))
