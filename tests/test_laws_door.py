"""A law that is called wrongly says so; it neither passes nor claims that a law is broken."""

import dataclasses

import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.oracles import BallSeparable
from restpoint.testing import LawBroken, check_oracle, check_penalty, check_set, check_smooth

BALL, L1, F = rp.sets.L2Ball(), rp.penalties.L1(0.5), rp.smooth.Quadratic(np.diag([1.0, -2.0]))
BLOCK = rp.Block(BALL, L1)


@pytest.mark.parametrize(
    ("words", "error", "call"),
    [
        ("expected a Set, got NoneType", CapabilityError, lambda: check_set(None, (3,))),
        ("expected a Penalty, got int", CapabilityError, lambda: check_penalty(3, (3,))),
        (
            "expected an Oracle or a Block, got L2Ball",
            CapabilityError,
            lambda: check_oracle(BALL, 3),
        ),
        (
            "the class L2Ball itself; write",
            CapabilityError,
            lambda: check_set(rp.sets.L2Ball, (3,)),
        ),
        ("expected a Smooth", CapabilityError, lambda: check_smooth(BALL, F)),
        ("expected a Set for each block", CapabilityError, lambda: check_smooth(F, None)),
        ("got Block", CapabilityError, lambda: check_smooth(F, BLOCK)),
        ("1 blocks, but 2 sets", ShapeError, lambda: check_smooth(F, [BALL, BALL])),
        (
            "shape is (2,), but L2Ball is over 2 axes",
            ShapeError,
            lambda: check_smooth(F, rp.sets.L2Ball(event_ndim=2)),
        ),
        (
            "center has shape (3,)",
            ShapeError,
            lambda: check_smooth(F, rp.sets.L2Ball(1.0, np.ones(3))),
        ),
        (
            "pairs must be a whole number >= 1, got 0",
            DataError,
            lambda: check_smooth(F, BALL, pairs=0),
        ),
        ("rng must be", DataError, lambda: check_smooth(F, BALL, rng="x")),
        ("scale must be a finite number > 0", DataError, lambda: check_oracle(BLOCK, 3, scale=0)),
        ("exact must be True or False", DataError, lambda: check_oracle(BLOCK, 3, exact="yes")),
        (
            "center has shape (3,)",
            ShapeError,
            lambda: check_oracle(rp.Block(rp.sets.L2Ball(1.0, np.ones(3))), (4,)),
        ),
    ],
)
def test_what_cannot_be_checked(words, error, call):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("check", [check_set, check_penalty, check_oracle])
def test_shapes_streams_and_kinds(check):
    piece = {check_set: BALL, check_penalty: L1, check_oracle: BLOCK}[check]
    for shape in (None, (0,), (-1,), "3", 2.5, ()):
        with pytest.raises(ShapeError, match="shape is"):
            check(piece, shape)
    with pytest.raises(ShapeError, match=r"shape is \(2, 2\), but .* is over 1 axes"):
        check(piece, (2, 2))
    for rng in ("x", -1, 2.5):
        with pytest.raises(DataError, match="rng must be a whole number >= 0 or a numpy Generator"):
            check(piece, 3, rng=rng)
    for like in (3.0, "float32", np.float32, np.zeros(2, dtype=int)):
        with pytest.raises(DataError, match="like must be a floating array"):
            check(piece, 3, like=like)
    check(piece, 3, rng=0)
    check(piece, np.int64(3), rng=np.random.default_rng(1))


@pytest.mark.parametrize("p", [(), 1.0, (1.0,), (2.0, 0.5), "2", None, ("2",), np.nan])
def test_powers_that_check_nothing_are_refused(p):
    with pytest.raises(DataError, match="p must be a number > 1, or several such"):
        check_oracle(BLOCK, 3, p=p)


def test_one_power_will_do():
    check_oracle(BLOCK, 3, p=1.5)


def test_batches_are_compared_with_their_starts_in_the_dtype_that_is_asked_for():
    """An oracle that answers otherwise for a batch, in float32 only."""

    @dataclasses.dataclass(frozen=True)
    class Careless(BallSeparable):
        def linear(self, g):
            answer = super().linear(g)
            if g.dtype == np.float32 and g.ndim == 2 and g.shape[0] == 3:
                point = answer.point * np.float32(0.99)
                value = self.linear_value(g, point)
                return answer._replace(point=point, value=value)
            return answer

        @property
        def kind(self):
            return "dual bound"

    careless = Careless(BALL, rp.penalties.Zero())
    check_oracle(careless, 3)
    with pytest.raises(LawBroken, match=r"a batch differs from its starts|take changes the answer"):
        check_oracle(careless, 3, like=np.zeros((), dtype=np.float32))


def test_code_that_raises_breaks_the_laws_of_an_oracle():
    block = rp.Block.from_oracle(lambda g: 1 / 0, diameter=2.0)
    with pytest.raises(LawBroken, match="your function linear raised ZeroDivisionError"):
        check_oracle(block, 3)
