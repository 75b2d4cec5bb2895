"""The measures at the door: batches, libraries, step sizes, and what is refused. Their inequalities: theory E6."""

import numpy as np
import pytest

import restpoint as rp
from method_cases import quadratic_problem, tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError

FIELDS = tuple(rp.Measures.__dataclass_fields__)


def test_a_batch_is_its_points_one_by_one():
    problem = tensor_problem(tensor(3, 4, 2, seed=1), 0.2)
    xs = unit_starts(problem.shapes, 2, 3)
    gamma = np.array([0.1, 1.0, 10.0])
    together = rp.measures(problem, xs, gamma)
    for i, j in np.ndindex(2, 3):
        alone = rp.measures(problem, tuple(x[i, j] for x in xs), float(gamma[j]))
        for name in FIELDS:
            found = getattr(together, name)
            assert found.shape == (2, 3)
            np.testing.assert_allclose(found[i, j], getattr(alone, name), rtol=1e-9, atol=1e-12)
            assert getattr(alone, name).shape == ()


def test_parameters_of_a_batch():
    radii, weights = np.array([0.5, 2.0, 5.0]), np.array([0.0, 0.1, 1.0])
    f = rp.smooth.Quadratic(np.diag([1.0, -2.0]), [0.3, 0.1])
    batch = rp.Problem(f, rp.Block(rp.sets.L2Ball(radii), rp.penalties.L1(weights)))
    x = np.array([[0.3, 0.1], [1.0, -1.0], [3.0, 2.0]])
    together = rp.measures(batch, x)
    for k in range(3):
        one = rp.Problem(
            f, rp.Block(rp.sets.L2Ball(float(radii[k])), rp.penalties.L1(float(weights[k])))
        )
        alone = rp.measures(one, x[k])
        for name in FIELDS:
            np.testing.assert_allclose(
                getattr(together, name)[k], getattr(alone, name), rtol=1e-9, atol=1e-12
            )
    starts = rp.measures(batch, np.stack([x, 0.5 * x], axis=1))
    assert starts.gap.shape == (3, 2)
    np.testing.assert_allclose(starts.gap[:, 0], together.gap, rtol=1e-12)


def test_arrays_of_any_library(like, xp):
    x = np.array([[0.6, 0.0, 0.1], [0.2, -0.4, 0.3]])
    problem = quadratic_problem(0.1)
    found = rp.measures(problem, xp.asarray(x.tolist(), dtype=like.dtype), gamma=0.5)
    given = x.astype(np.float32).astype(np.float64) if "32" in str(like.dtype) else x
    wanted = rp.measures(problem, given, gamma=0.5)
    for name in FIELDS:
        column = getattr(found, name)
        assert isinstance(column, np.ndarray)
        assert column.dtype == np.float64
        np.testing.assert_allclose(column, getattr(wanted, name), rtol=1e-9, atol=1e-12)


def test_at_a_stationary_point_everything_vanishes():
    problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, 3.0])), rp.Block(rp.sets.L2Ball()))
    found = rp.measures(problem, np.zeros(2))
    for name in ("gap", "chi", "chi_lower", "residual", "improvement", "by_step", "slope"):
        assert getattr(found, name) == 0.0
    assert found.psi == 0.0
    assert all(one.smaller <= one.larger for one in found.inequalities)


def test_the_residual_is_that_of_projected_gradients():
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(4, 4))
    f, x = rp.smooth.Quadratic(Q + Q.T), rng.uniform(-1, 1, 4)
    problem = rp.Problem(f, rp.Block(rp.sets.Box(-1.0, 1.0)))
    for gamma in (0.01, 0.3, 5.0):
        g = (Q + Q.T) @ x
        after = np.clip(x - gamma * g, -1.0, 1.0)
        found = rp.measures(problem, x, gamma)
        assert found.residual == pytest.approx(np.linalg.norm(x - after) / gamma, rel=1e-12)
        move = after - x
        assert found.improvement == pytest.approx(-g @ move - move @ move / (2 * gamma), rel=1e-12)
        assert found.slope == pytest.approx(np.linalg.norm(g), rel=1e-12)


def test_the_slope_of_an_l1_penalty_is_the_smallest_subgradient():
    f = rp.smooth.Quadratic(np.zeros((3, 3)), np.array([0.5, -2.0, 0.3]))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball(), rp.penalties.L1(1.0)))
    found = rp.measures(problem, np.array([0.0, 0.0, 0.5]))
    assert found.slope == pytest.approx(np.hypot(1.0, 1.3), rel=1e-12)


def test_it_says_what_it_found():
    text = str(rp.measures(quadratic_problem(0.1), np.array([0.5, 0.1, 0.0])))
    assert text.splitlines()[0].startswith("Triangle L = -psi")
    assert len(text.splitlines()) == 7


@pytest.mark.parametrize(
    ("gamma", "words"),
    [
        (0.0, "gamma must be a finite number > 0, or one per start, got 0.0"),
        (-1.0, "gamma must be"),
        (np.nan, "gamma must be"),
        ("one", "gamma must be"),
        (np.array([1.0, -1.0]), "gamma must be"),
        (np.ones(3), r"got an array of shape \(3,\) and type float64 for starts \(2,\)"),
        (np.array(["a", "b"]), "gamma must be"),
    ],
)
def test_what_is_no_step_is_refused(gamma, words):
    with pytest.raises(DataError, match=words):
        rp.measures(quadratic_problem(0.1), np.zeros((2, 3)), gamma)


def test_what_it_needs_is_named():
    block = rp.Block.from_oracle(lambda g: -g / np.linalg.norm(g), diameter=2.0)
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), block)
    with pytest.raises(CapabilityError, match=r"block 0 .* has no prox for p = 2, which chi"):
        rp.measures(problem, np.array([0.5, 0.1]))
    with pytest.raises(DataError, match=r"problem must be a restpoint\.Problem, got ndarray"):
        rp.measures(np.zeros(3), np.zeros(3))
