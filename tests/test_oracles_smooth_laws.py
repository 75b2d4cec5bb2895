"""``check_smooth`` accepts what is true and refutes what is not."""

import dataclasses

import numpy as np
import pytest

from restpoint.errors import CapabilityError, ShapeError
from restpoint.sets import Box, L2Ball, Simplex
from restpoint.smooth import Curvature, Facts, Smooth
from restpoint.testing import LawBroken, check_smooth

MATRIX = np.diag([3.0, -4.0, 1.0, 0.5])


class _Form(Smooth):
    """x'Qx/2 with facts and mistakes on demand."""

    shapes = ((4,),)

    def __init__(self, matrix=MATRIX, facts=None, **mistakes):
        self.matrix, self.declared, self.mistakes = matrix, facts or Facts(), mistakes

    def value(self, xs):
        (x,) = xs
        return 0.5 * np.vecdot(x, x @ self.matrix)

    def value_and_gradient(self, xs):
        (x,) = xs
        gradient = (x @ self.matrix) * self.mistakes.get("factor", 1.0)
        if self.mistakes.get("batch") and x.ndim > 1:
            gradient = gradient[::-1]
        if self.mistakes.get("writes"):
            x[...] = 0.0
        return self.value(xs), (gradient,)

    def partial(self, xs, i):
        return self.value_and_gradient(xs)[1][i] + self.mistakes.get("partial", 0.0)

    def facts(self, sets):
        return self.declared

    def rounding(self, xs):
        if "rounding" in self.mistakes:
            return np.asarray(-1.0), (np.zeros(4),)
        return None


class _Product(Smooth):
    """x'y: bilinear, joint constant 1, blockwise constants 0."""

    shapes = ((3,), (3,))

    def __init__(self, facts):
        self.declared = facts

    def value(self, xs):
        return np.vecdot(*xs)

    def value_and_gradient(self, xs):
        return self.value(xs), (xs[1] + 0.0, xs[0] + 0.0)

    def facts(self, sets):
        return self.declared


SETS = [L2Ball(1.5), Box(-1.0, 2.0), Box(-np.ones(4), np.array([1.0, 2.0, 0.5, 1.0]))]


@pytest.mark.parametrize("region", SETS, ids=["ball", "cube", "box"])
def test_true_declarations_pass(region):
    facts = Facts(joint=Curvature((3.0,)), blockwise=Curvature((3.0,)), lower_bound=-50.0)
    check_smooth(_Form(facts=facts), region)
    check_smooth(_Form(-np.eye(4), Facts(concave=True, block_concave=True)), region)
    check_smooth(_Form(np.eye(4), Facts(convex=True, lower_bound=0.0)), region)


@pytest.mark.parametrize("region", SETS, ids=["ball", "cube", "box"])
@pytest.mark.parametrize(
    "facts",
    [
        Facts(joint=Curvature((2.9,))),
        Facts(blockwise=Curvature((2.9,))),
        Facts(concave=True),
        Facts(block_concave=True),
        Facts(convex=True),
        Facts(lower_bound=-0.5),
    ],
    ids=["joint", "blockwise", "concave", "block-concave", "convex", "lower bound"],
)
def test_wrong_facts_are_refuted(region, facts):
    with pytest.raises(LawBroken):
        check_smooth(_Form(facts=facts), region)


def test_a_rare_direction_of_curvature_is_found():
    """Random pairs hardly see one large eigenvalue of forty, beside a more negative one."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    values = np.concatenate([[5.0, -6.0], rng.uniform(-1, 1, 38)])
    form = _Form((basis * values) @ basis.T, Facts(joint=Curvature((4.8,))))
    form.shapes = ((40,),)
    with pytest.raises(LawBroken, match="too small"):
        check_smooth(form, L2Ball())
    form.declared = Facts(joint=Curvature((5.0 + 1e-12,)))
    check_smooth(form, L2Ball())


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"factor": 1.001}, "finite differences"),
        ({"partial": 1e-3}, "partial differs"),
        ({"batch": True}, "batch differs"),
        ({"writes": True}, "read-only"),
        ({"rounding": True}, "rounding"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_code_is_refuted(mistake, message):
    with pytest.raises((LawBroken, ValueError), match=message):
        check_smooth(_Form(**mistake), L2Ball())


def test_blockwise_constants_are_no_joint_ones():
    """Theory E27: x'y has blockwise constants 0, but its joint constant is 1."""
    balls = (L2Ball(), L2Ball())
    true = Facts(joint=Curvature((1.0, 1.0)), blockwise=Curvature((0.0, 0.0)), block_concave=True)
    check_smooth(_Product(true), balls)
    check_smooth(_Product(dataclasses.replace(true, lower_bound=-1.0)), balls)
    for wrong in (Facts(joint=Curvature((0.9, 0.9))), Facts(concave=True), Facts(convex=True)):
        with pytest.raises(LawBroken):
            check_smooth(_Product(wrong), balls)


class _Power(Smooth):
    """sum |x_j|^p, whose constant is 2 on the orthant and larger on the line (theory E5)."""

    shapes = ((3,),)

    def __init__(self, p, constant):
        self.p, self.constant = p, constant

    def value(self, xs):
        return np.sum(np.abs(xs[0]) ** self.p, axis=-1)

    def value_and_gradient(self, xs):
        (x,) = xs
        return self.value(xs), (self.p * np.sign(x) * np.abs(x) ** (self.p - 1.0),)

    def facts(self, sets):
        return Facts(joint=Curvature((self.constant,), self.p), convex=True, lower_bound=0.0)


def test_hoelder_constants():
    check_smooth(_Power(1.5, 2.0), Box(0.0, 1.0))
    check_smooth(_Power(1.5, 2 * 1.3066), Box(-1.0, 1.0))
    with pytest.raises(LawBroken, match="too small"):
        check_smooth(_Power(1.5, 2.0), Box(-1.0, 1.0))


def test_doors():
    with pytest.raises(CapabilityError, match="expected a Smooth"):
        check_smooth(len, L2Ball())
    with pytest.raises(ShapeError, match="1 blocks, but 2 sets"):
        check_smooth(_Form(), (L2Ball(), Simplex()))
