"""What is done with several starts beyond solving them: mirror images, retirement, repeated halves."""

import numpy as np
import pytest

import restpoint as rp
import restpoint.kernels
from method_cases import tensor, tensor_problem, unit_starts
from restpoint.errors import CapabilityError, DataError

FULL = rp.ConditionalGradient(rp.GaussSeidel(), rp.FullStep())


# --- mirror images ------------------------------------------------------------------------------------


def test_of_a_start_and_its_mirror_image_the_better_one_is_taken():
    A = tensor(4, 3, 5, seed=1)
    problem = tensor_problem(A, 0.4)
    xs = unit_starts(problem.shapes, 30)
    form = np.einsum("ijk,bi,bj,bk->b", A, *xs)
    found = problem.mirrored(xs)
    assert (form < 0).any()
    assert (form > 0).any()
    np.testing.assert_array_equal(found[0], np.where(form < 0, -1.0, 1.0)[:, None] * xs[0])
    for a, b in zip(found[1:], xs[1:], strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.all(problem.value(found) <= problem.value(xs))


def test_a_mirror_image_outside_of_its_set_is_not_taken():
    A = tensor(3, 3, seed=1)
    blocks = [rp.Block(rp.sets.Box(-1.0, 2.0)), rp.Block(rp.sets.L2Ball())]
    problem = rp.Problem(rp.smooth.Multilinear(A), blocks)
    x = np.array([2.0, 2.0, -1.0])
    y = -A.T @ x / np.linalg.norm(A.T @ x)  # f > 0, and -x leaves the box
    np.testing.assert_array_equal(problem.mirrored((x, y))[0], x)


def test_functions_without_an_odd_block_keep_their_starts():
    problem = rp.Problem(rp.smooth.Quadratic(np.eye(3)), rp.Block(rp.sets.L2Ball()))
    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(problem.mirrored(x)[0], x)
    tied = rp.smooth.Multilinear(tensor(3, 3, seed=0) + np.eye(3), tied=(0, 0))
    assert tied.facts([rp.sets.L2Ball()]).odd_block is None
    cubic = rp.smooth.Multilinear(np.ones((2, 2, 2)), tied=(0, 0, 0))
    assert cubic.facts([rp.sets.L2Ball()]).odd_block == 0


def test_drawn_starts_are_mirrored_for_methods_that_move_all_blocks_together():
    problem = tensor_problem(tensor(4, 4, 4, 4, seed=3), 0.5)
    method = rp.ConditionalGradient(rp.Jacobi())
    views = list(rp.iterate(problem, method, starts=20, stop=rp.Stop(max_iterations=0)))
    assert np.all(problem.smooth.value(views[0].xs) <= 0.0)


# --- retirement ---------------------------------------------------------------------------------------


def test_duplicates_and_dominated_starts_are_given_up_and_the_best_is_not():
    problem = tensor_problem(tensor(6, 6, 6, seed=4), 0.5)
    plain = rp.solve(problem, FULL, starts=60)
    kept = rp.solve(problem, FULL, starts=60, stop=rp.Stop(retire=rp.Retire(every=4)))
    retired = kept.status == rp.Status.RETIRED
    assert 20 < retired.sum() < 60
    assert np.all(kept.certified | retired)
    assert kept.best().status is rp.Status.CERTIFIED
    assert float(kept.best().value) <= float(plain.best().value) + 1e-5
    assert kept.work["gradients"].sum() < 0.9 * plain.work["gradients"].sum()
    # What is said of a retired start is about its own point all the same.
    i = int(np.flatnonzero(retired)[0])
    again = rp.certify(problem, tuple(x[i] for x in kept.xs))
    assert float(again.max) == pytest.approx(float(kept.certificate.max[i]), abs=1e-12)


def test_mirror_images_of_one_point_are_duplicates():
    problem = tensor_problem(tensor(5, 4, 3, seed=0), 0.1)
    x, y, z = unit_starts(problem.shapes)
    x0 = (np.stack([x, -x, x]), np.stack([y, -y, -y]), np.stack([z, z, -z]))
    result = rp.solve(problem, FULL, x0=x0, stop=rp.Stop(retire=rp.Retire(every=1, prospect=None)))
    names = sorted(s.name for s in result.status)
    assert names == ["CERTIFIED", "RETIRED", "RETIRED"]


def test_problems_of_a_batch_do_not_retire_each_other():
    A = tensor(5, 4, 3, seed=0)
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(np.array([0.0, 0.9])))
    problem = rp.Problem(rp.smooth.Multilinear(A), [block] * 3)
    result = rp.solve(problem, starts=12, stop=rp.Stop(retire=rp.Retire(every=2)))
    assert result.certified.any(axis=-1).all()
    assert (result.status == rp.Status.RETIRED).any()


def test_retirement_depends_on_iterations_alone():
    problem = tensor_problem(tensor(5, 5, 5, seed=9), 0.4)
    stop = rp.Stop(retire=rp.Retire())
    one, other = (rp.solve(problem, starts=25, stop=stop) for _ in range(2))
    assert [s.name for s in one.status] == [s.name for s in other.status]
    for a, b in zip(one.xs, other.xs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"every": 0}, "every"),
        ({"closeness": -1.0}, "closeness"),
        ({"prospect": float("nan")}, "prospect"),
    ],
)
def test_wrong_rules_are_refused(wrong, named):
    with pytest.raises(DataError, match=named):
        rp.Retire(**wrong)


def test_retire_needs_values_and_a_rule():
    with pytest.raises(DataError, match="Retire"):
        rp.Stop(retire=True)
    f = rp.smooth.LeastSquares(np.eye(3), np.ones(3))
    sampled = rp.ConditionalGradient(gradient=rp.MiniBatch(2))
    with pytest.raises(CapabilityError, match="value"):
        rp.solve(
            rp.Problem(f, rp.Block(rp.sets.L2Ball())),
            sampled,
            starts=3,
            stop=rp.Stop(retire=rp.Retire()),
        )


# --- repeated halves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_a_sweep_repeats_the_blocks_of_each_half_at_no_read_of_the_tensor(order):
    A = tensor(4, 5, 3, 6, seed=2).transpose(order)
    problem = tensor_problem(A, 0.2)
    sweep = problem.smooth.sweep(unit_starts(problem.shapes, 2))
    assert sorted(i for group in sweep.groups for i in group) == [0, 1, 2, 3]
    assert sorted(map(len, sweep.groups)) == [2, 2]
    for group in sweep.groups:
        for i in group:
            before = sweep.spent
            sweep.partial(i)
            sweep.update(i, -sweep.xs[i] + 0.1)
            assert sweep.spent - before in (0.0, 0.5)
        before = sweep.spent
        for i in group:
            sweep.partial(i)
        assert sweep.spent == before
    # And what it says is the gradient there.
    for i, g in enumerate(problem.smooth.gradient(sweep.xs)):
        np.testing.assert_allclose(sweep.partial(i), g, rtol=0, atol=1e-12)


def test_repeats_keep_the_bound_and_save_reads():
    work = []
    for repeats in (0, 2):
        method = rp.ConditionalGradient(rp.GaussSeidel(repeats=repeats), rp.FullStep())
        total = 0.0
        for seed in range(4):
            problem = tensor_problem(tensor(8, 8, 8, 8, seed=seed), 0.85)
            result = rp.solve(problem, method, starts=10)
            assert result.certified.all()
            assert np.all(result.used <= result.bound.count)
            total += float(np.median(result.work["gradients"]))
        work.append(total)
    assert work[1] < 0.9 * work[0]


def test_repeats_must_be_a_number():
    with pytest.raises(DataError, match="repeats"):
        rp.GaussSeidel(repeats=-1)


# --- momentum -----------------------------------------------------------------------------------------


def test_momentum_saves_sweeps_never_raises_phi_and_keeps_the_bound():
    work = []
    for momentum in (0.0, 0.75):
        method = rp.ConditionalGradient(rp.GaussSeidel(repeats=2, momentum=momentum), rp.FullStep())
        total = 0.0
        for seed in range(3):
            problem = tensor_problem(tensor(10, 10, 10, 10, seed=seed), 0.85)
            result = rp.solve(problem, method, starts=10)
            assert result.certified.all()
            assert np.all(result.used <= result.bound.count)
            assert np.nanmax(np.diff(result.trace.value, axis=0)) <= 1e-13
            total += float(np.mean(result.work["gradients"]))
        work.append(total)
    assert work[1] < 0.75 * work[0]


def test_every_sweep_with_momentum_lowers_phi_by_the_largest_gap():
    problem = tensor_problem(tensor(5, 4, 6, seed=3), 0.1)
    method = rp.ConditionalGradient(rp.GaussSeidel(repeats=1, momentum=3.0), rp.FullStep())
    result = rp.solve(problem, method, starts=20, stop=rp.Stop(patience=None))
    drops = result.trace.value[:-1] - result.trace.value[1:]
    moving = np.arange(len(drops))[:, None] < result.iterations
    assert np.all((drops >= result.trace.gap[:-1] - 1e-13)[moving])


def test_a_start_with_momentum_goes_its_own_way():
    problem = tensor_problem(tensor(5, 4, 6, 3, seed=7), 0.2)
    method = rp.ConditionalGradient(rp.GaussSeidel(repeats=1, momentum=1.0), rp.FullStep())
    x0 = unit_starts(problem.shapes, 5)
    together = rp.solve(problem, method, x0=x0)
    for i in range(5):
        alone = rp.solve(problem, method, x0=tuple(x[i] for x in x0))
        assert alone.iterations == together.iterations[i]
        for a, b in zip(alone.xs, together.xs, strict=True):
            np.testing.assert_allclose(a, b[i], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "reference", "sum", "tied", "function"])
def test_momentum_on_other_forms_certifies_the_same_kind_of_point(kind):
    A = tensor(5, 5, 5, seed=11)
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.3))
    blocks = [block] * 3
    if kind == "sparse":
        f = rp.smooth.SparseTensor(np.argwhere(A != 0), A[A != 0], A.shape)
    elif kind == "sum":
        weights, factors = rp.smooth.rank_one(unit_starts([(5,)] * 3), 2.0)
        f = rp.smooth.Sum(
            rp.smooth.Multilinear(A), rp.smooth.FactoredTensor((weights, factors), 1.0)
        )
    elif kind == "tied":
        f, blocks = rp.smooth.Multilinear(A, tied=(0, 1, 1)), blocks[:2]
    elif kind == "function":
        f = rp.smooth.Function(
            lambda x, y: float(-x @ A[0] @ y),
            lambda x, y: (-A[0] @ y, -A[0].T @ x),
            shapes=[5, 5],
            constant=9.0,
        )
        blocks = blocks[:2]
    else:
        f = rp.smooth.Multilinear(A)
        f.kernel = rp.kernels.Reference(A)
    order = rp.GaussSeidel(repeats=2, momentum=0.75)
    full = kind in ("sparse", "sum", "reference")
    method = (
        rp.ConditionalGradient(order, rp.FullStep())
        if full
        else rp.ProximalGradient(order, rp.Majorant(9.0))
    )
    result = rp.solve(rp.Problem(f, blocks), method, starts=4)
    assert result.certified.all()
    assert np.nanmax(np.diff(result.trace.value, axis=0)) <= 1e-13


@pytest.mark.parametrize("momentum", [-0.1, float("nan"), "fast"])
def test_momentum_must_be_a_number(momentum):
    with pytest.raises(DataError, match="momentum"):
        rp.GaussSeidel(momentum=momentum)
    with pytest.raises(DataError, match="largest-gap"):
        rp.GaussSeidel("cyclic", momentum=0.5)
