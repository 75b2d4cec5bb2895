"""Sparse tensors against the dense tensor that they stand for."""

import pickle
import subprocess
import sys
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import scipy.sparse

import restpoint as rp
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.kernels import Reference, sparse, threads
from restpoint.kernels.sparse import Sparse
from restpoint.smooth import SparseTensor

SIZES = [(5, 4), (1, 2), (6, 5, 7), (2, 1, 9), (3, 2, 4, 2), (2, 3, 1, 2, 3)]


def made(sizes, nnz, seed=0, dtype=np.float64):
    """Coordinates with duplicates, values, and the dense tensor."""
    rng = np.random.default_rng(seed)
    coordinates = tuple(rng.integers(0, n, nnz) for n in sizes)
    values = rng.standard_normal(nnz).astype(dtype)
    dense = np.zeros(sizes)
    np.add.at(dense, coordinates, values)
    return coordinates, values, dense


def points(sizes, batch=(), seed=1, density=1.0):
    rng = np.random.default_rng(seed)
    return tuple(
        rng.standard_normal((*batch, n)) * (rng.random((*batch, n)) < density) for n in sizes
    )


def assert_equal(found, dense, xs, tolerance=1e-12):
    """Entry by entry, relative to the contraction of the magnitudes."""
    wanted = Reference(dense).all_partials(xs)
    scale = Reference(np.abs(dense)).all_partials(tuple(np.abs(x) for x in xs))
    for a, b, c in zip(found, wanted, scale, strict=True):
        assert a.shape == b.shape
        assert np.all(np.abs(a - b) <= tolerance * np.max(c, initial=0.0))


def all_ways(kernel, xs):
    """The partials in one pass, and one by one."""
    together = kernel.all_partials(xs)
    return together, tuple(kernel.partial(xs, i) for i in range(len(xs)))


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("nnz", [0, 1, 60])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_contractions_equal_those_of_the_dense_tensor(sizes, nnz, batch):
    coordinates, values, dense = made(sizes, nnz)
    kernel, xs = Sparse(values, coordinates, sizes), points(sizes, batch)
    assert kernel.values.size == np.count_nonzero(dense)
    for found in all_ways(kernel, xs):
        assert_equal(found, dense, xs)
    assert_equal(kernel.magnitudes(tuple(map(abs, xs))), abs(dense), tuple(map(abs, xs)))
    value, wanted = kernel.value(xs), Reference(dense).value(xs)
    np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-11 * (1 + np.max(abs(wanted))))


@pytest.mark.parametrize("own", [0, 1, 2])
def test_the_mode_of_the_slices_does_not_matter(own, monkeypatch):
    monkeypatch.setattr(sparse, "_own_mode", lambda sizes, nonzeros: own)
    coordinates, values, dense = made((6, 5, 7), 80)
    kernel, xs = Sparse(values, coordinates, (6, 5, 7)), points((6, 5, 7), (3,))
    assert kernel.own == own
    for found in all_ways(kernel, xs):
        assert_equal(found, dense, xs)


def test_slices_belong_to_a_large_mode_with_long_slices():
    assert sparse._own_mode((1000, 1000, 1000), 10**6) == 0
    assert sparse._own_mode((1000, 10**6, 1000), 4 * 10**6) == 1
    assert sparse._own_mode((10**6, 1000, 900), 10**6) == 2


@pytest.mark.parametrize("starts", [4, 8, 16, 17, 40])
def test_groups_of_starts_equal_single_starts(starts):
    coordinates, values, dense = made((6, 5, 7), 80)
    kernel, xs = Sparse(values, coordinates, (6, 5, 7)), points((6, 5, 7), (starts,))
    assert_equal(kernel.all_partials(xs), dense, xs)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_zeros_in_the_vectors_are_used_exactly(density, batch):
    coordinates, values, dense = made((30, 20, 25), 4000)
    kernel = Sparse(values, coordinates, (30, 20, 25))
    for seed in range(5):
        xs = points((30, 20, 25), batch, seed, density)
        for found in all_ways(kernel, xs):
            assert_equal(found, dense, xs)


def test_nan_stays_in_its_own_start():
    coordinates, values, dense = made((6, 5, 7), 80)
    kernel, xs = Sparse(values, coordinates, (6, 5, 7)), points((6, 5, 7), (4,))
    good = tuple(x[1:] for x in xs)
    xs[0][0, 2] = np.nan
    found = kernel.all_partials(xs)
    assert np.isnan(found[1][0]).any()
    assert_equal(tuple(partial[1:] for partial in found), dense, good)


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("asked", [np.float32, np.float64])
def test_sums_are_formed_in_the_wider_precision(stored, asked):
    coordinates, values, dense = made((6, 5, 7), 40, dtype=stored)
    dense = dense.astype(stored).astype(np.float64)
    kernel = Sparse(values, coordinates, (6, 5, 7))
    xs = tuple(x.astype(asked) for x in points((6, 5, 7), (2,)))
    double = asked == np.float64
    assert kernel.values.dtype == stored
    assert kernel.in_double(xs) == double
    found = kernel.all_partials(xs)
    assert all(partial.dtype == asked for partial in found)
    assert_equal(found, dense, tuple(x.astype(float) for x in xs), 1e-12 if double else 1e-6)


def test_whole_numbers_are_not_cut_off():
    kernel = Sparse(np.array([0.5]), (np.array([0]), np.array([1])), (2, 2))
    assert kernel.partial((np.array([1, 0]), np.array([0, 1])), 0).tolist() == [0.5, 0.0]


def test_vectors_that_do_not_fit_are_refused():
    coordinates, values, _ = made((6, 5, 7), 80)
    kernel, (x, y, z) = Sparse(values, coordinates, (6, 5, 7)), points((6, 5, 7))
    for xs in ((x, y[:1], z), (x, y), (x, y, z, z)):
        with pytest.raises(ShapeError, match=r"expected last axes \(6, 5, 7\)"):
            kernel.all_partials(xs)
    with pytest.raises(DataError, match="dtype complex128"):
        kernel.partial((x + 0j, y, z), 0)
    assert [part.shape for part in kernel.all_partials((x[None][:0], y, z))] == [
        (0, 6),
        (0, 5),
        (0, 7),
    ]


def test_threads_agree_and_repeat_bit_by_bit(monkeypatch):
    monkeypatch.setattr(threads, "BYTES_PER_THREAD", 1)
    coordinates, values, dense = made((30, 20, 25), 4000)
    kernel, xs = Sparse(values, coordinates, (30, 20, 25)), points((30, 20, 25))
    for count in (1, 2, 3, 50):
        with threads.use_threads(count):
            assert len(kernel._shares(kernel.rest)) == count + 1
            first, again = kernel.all_partials(xs), kernel.all_partials(xs)
            assert_equal(first, dense, xs)
            assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
            assert_equal(tuple(kernel.partial(xs, i) for i in range(3)), dense, xs)


def test_kept_vectors_follow_updates():
    coordinates, values, dense = made((3, 5, 4), 40)
    xs = list(points((3, 5, 4)))
    kept = Sparse(values, coordinates, (3, 5, 4)).keep(tuple(xs))
    rng = np.random.default_rng(2)
    for i in (1, 0, 2, 0):
        xs[i] = rng.standard_normal(len(xs[i]))
        kept.update(i, xs[i])
        assert_equal(tuple(kept.partial(m) for m in range(3)), dense, tuple(xs))


def test_indices_take_the_smallest_type_and_slices_spread_their_entries(monkeypatch):
    monkeypatch.setattr(sparse, "_own_mode", lambda sizes, nonzeros: 0)
    rng = np.random.default_rng(0)
    sizes = (1000, 256, 257)
    coordinates = tuple(rng.integers(0, n, 200_000) for n in sizes)
    kernel = Sparse(np.ones(200_000), coordinates, sizes)
    assert [index.dtype for index in kernel.indices] == [np.uint8, np.uint16]
    one = Sparse(np.ones(600), (np.zeros(600, int), *np.divmod(np.arange(600), 60)), (1, 10, 60))
    row = one.indices[0]
    assert np.bincount(row).tolist() == [60] * 10
    assert np.mean(row[1:] == row[:-1]) < 0.2


@pytest.mark.parametrize("last", [2**4, 2**13, 2**20])
def test_indices_are_sorted_however_many_there_are(last):
    sizes = (2**30, 2**20, last)  # numbered with their position, numbered, compared one by one
    coordinates = tuple(np.array([n - 1, 0, n - 1, 5]) for n in sizes)
    order, first = sparse._sorted(coordinates, sizes)
    assert order[:2].tolist() == [1, 3]
    assert sorted(order[2:]) == [0, 2]
    assert first.tolist() == [True, True, True, False]


def test_unfoldings_with_columns_beyond_counting_bound_nothing():
    huge = (2**31, 2**32, 2**32)
    coordinates = tuple(np.array([0, n - 1]) for n in huge)
    assert sparse_bound(np.array([3.0, 4.0]), coordinates, huge) == np.inf
    assert sparse_bound(np.array([3.0, 4.0]), coordinates, (2**31, 2**31, 2**31)) >= 4.0


def sparse_bound(values, coordinates, sizes):
    from restpoint.kernels.sparse_spectra import _unfolding_bound

    return _unfolding_bound(values, coordinates, sizes, 0, float(np.linalg.norm(values)))


def test_memory_maps_need_no_loop_of_their_own(tmp_path):
    from restpoint.kernels import _sparse_loops

    coordinates, values, dense = made((6, 5, 7), 80)
    kernel, xs = Sparse(values, coordinates, (6, 5, 7)), points((6, 5, 7))
    wanted, compiled = kernel.all_partials(xs), _sparse_loops.loop.cache_info().currsize
    kernel, mapped = pickle.loads(pickle.dumps(kernel)), []
    for i, array in enumerate((kernel.values, *xs)):
        np.save(tmp_path / f"{i}.npy", array)
        mapped.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    kernel.values = mapped[0]
    found = kernel.all_partials(tuple(mapped[1:]))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert _sparse_loops.loop.cache_info().currsize == compiled
    assert_equal(found, dense, xs)


def test_numba_is_not_imported_with_the_library():
    code = "import restpoint, sys; sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("sizes", [(5, 4), (6, 5, 7), (3, 2, 4, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_the_spectral_bound_holds(sizes, scale):
    for seed in range(5):
        coordinates, values, dense = made(sizes, 12, seed)
        bound = Sparse(values * scale, coordinates, sizes).spectral_bound() / scale
        assert bound <= np.linalg.norm(dense) * (1 + 1e-12)
        xs = [x / np.linalg.norm(x) for x in points(sizes, seed=seed)]
        for _ in range(60):  # power steps climb to a large value
            for i in range(len(sizes)):
                gradient = Reference(dense).partial(tuple(xs), i)
                assert np.linalg.norm(gradient) <= bound
                xs[i] = gradient / max(np.linalg.norm(gradient), 1e-300)


def test_the_spectral_bound_is_that_of_a_matrix_and_exact_for_one_entry():
    coordinates, values, dense = made((9, 8), 40)
    bound, norm = Sparse(values, coordinates, (9, 8)).spectral_bound(), np.linalg.norm(dense, 2)
    assert norm <= bound * (1 + 1e-14)
    assert bound <= norm * (1 + 1e-10)
    one = Sparse(np.array([-3.0]), (np.array([1]),) * 3, (2, 2, 2))
    assert 3.0 <= one.spectral_bound() <= 3.0 * (1 + 1e-13)
    assert Sparse(np.zeros(2), (np.zeros(2, int),) * 2, (2, 2)).spectral_bound() == 0.0


@pytest.mark.parametrize("count", [1, 3])
def test_the_rounding_bound_is_sound_in_fifty_digits(count, monkeypatch):
    monkeypatch.setattr(threads, "BYTES_PER_THREAD", 1)
    sizes = (4, 3, 5)
    for seed in range(10):
        coordinates, values, dense = made(sizes, 35, seed)
        values = values * 10.0 ** np.random.default_rng(seed).integers(-8, 8, 35)
        smooth = SparseTensor(coordinates, values, sizes)
        stored = SparseTensor(coordinates, values, sizes, sign=1.0)
        xs = points(sizes, seed=seed)
        with threads.use_threads(count):
            value, gradient = smooth.value_and_gradient(xs)
            value_error, errors = smooth.rounding(xs)
        unit = np.eye
        dense = [
            [[float(stored.value((a, b, c))) for c in unit(5)] for b in unit(3)] for a in unit(4)
        ]
        with mpmath.workdps(50):
            exact = [[mpmath.mpf(0)] * n for n in sizes]
            x, y, z = ([mpmath.mpf(float(v)) for v in x] for x in xs)
            for i in range(4):
                for j in range(3):
                    for k in range(5):
                        a = mpmath.mpf(dense[i][j][k])
                        exact[0][i] -= a * y[j] * z[k]
                        exact[1][j] -= a * x[i] * z[k]
                        exact[2][k] -= a * x[i] * y[j]
            for m in range(3):
                for wanted, got, error in zip(exact[m], gradient[m], errors[m], strict=True):
                    assert abs(wanted - mpmath.mpf(float(got))) <= error
            whole = mpmath.fsum(a * b for a, b in zip(x, exact[0], strict=True))
            assert abs(whole - mpmath.mpf(float(value))) <= value_error


def test_the_form_solves_as_the_dense_tensor_does():
    coordinates, values, dense = made((6, 5, 4), 50, seed=3)
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    runs = [
        rp.solve(rp.Problem(f, [block] * 3), starts=6, eps=1e-10)
        for f in (SparseTensor(coordinates, values, (6, 5, 4)), rp.smooth.Multilinear(dense))
    ]
    assert runs[0].certified.all()
    assert runs[1].certified.all()
    assert (
        runs[0].engine
        == f"sparse: {np.count_nonzero(dense)} nonzeros in slices of mode 2, 1 thread"
    )
    np.testing.assert_allclose(runs[0].value, runs[1].value, atol=1e-6)


def test_laws():
    coordinates, values, _ = made((4, 3, 5), 30)
    rp.testing.check_smooth(SparseTensor(coordinates, values, (4, 3, 5)), [rp.sets.L2Ball()] * 3)
    tied = SparseTensor(made((4, 4, 4), 30)[0], values, (4, 4, 4), tied=(0, 0, 0))
    rp.testing.check_smooth(tied, [rp.sets.L2Ball()])


def inputs():
    coordinates, values, dense = made((4, 3, 5), 30)
    coords = np.array(coordinates)
    yield "rows", (coords, values, (4, 3, 5)), dense
    yield "columns", (coords.T, values, (4, 3, 5)), dense
    yield "tuple", (coordinates, values, (4, 3, 5)), dense
    yield "whole numbers", (coords, np.ones(30, int), [4, 3, 5]), dense_of(coordinates)
    yield (
        "COO",
        (SimpleNamespace(coords=coords, data=values, shape=(4, 3, 5), fill_value=0.0),),
        dense,
    )
    vals = values[:, None]
    yield "sptensor", (SimpleNamespace(subs=coords.T, vals=vals, shape=(4, 3, 5)),), dense
    yield "n-D coo_array", (scipy.sparse.coo_array((values, coordinates), shape=(4, 3, 5)),), dense
    matrix = scipy.sparse.coo_array((values, coordinates[:2]), shape=(4, 3))
    for kind in ("coo", "csr", "csc", "dok", "lil", "bsr"):
        yield kind, (matrix.asformat(kind),), matrix.toarray()
    yield "coo_matrix", (scipy.sparse.coo_matrix(matrix),), matrix.toarray()


def dense_of(coordinates):
    dense = np.zeros((4, 3, 5))
    np.add.at(dense, coordinates, 1.0)
    return dense


@pytest.mark.parametrize(("arguments", "dense"), [pytest.param(a, d, id=n) for n, a, d in inputs()])
def test_accepted_input(arguments, dense):
    smooth, xs = SparseTensor(*arguments, sign=1.0), points(dense.shape)
    assert_equal(smooth.gradient(xs), dense, xs)
    assert smooth.nnz == np.count_nonzero(dense)
    assert smooth.density == smooth.nnz / dense.size


def test_input_is_left_alone_and_not_kept():
    coordinates, values, _ = made((4, 3, 5), 30)
    kept = [c.copy() for c in coordinates], values.copy()
    smooth = SparseTensor(coordinates, values, (4, 3, 5))
    assert np.array_equal(kept[0], coordinates)
    assert np.array_equal(kept[1], values)
    before = smooth.gradient(points((4, 3, 5)))
    values[:] = 0.0
    coordinates[0][:] = 0
    after = smooth.gradient(points((4, 3, 5)))
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


IJ = ([0, 1], [0, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((IJ, [1.0, 2.0]), ShapeError, "shape is missing"),
        ((IJ, None, (2, 3)), ShapeError, "values is missing"),
        ((np.eye(3),), DataError, "dense tensor goes to Multilinear"),
        ((SimpleNamespace,), DataError, "the class SimpleNamespace itself"),
        ((IJ, [1.0, 2.0], 3), ShapeError, "at least 2 modes"),
        ((IJ, [1.0, 2.0], (2, 0)), ShapeError, "positive integers"),
        ((IJ, [1.0, 2.0], (2, 3.0)), ShapeError, "positive integers"),
        ((IJ, [1.0, 2.0], (2, 2)), DataError, r"tensor has index 2 in mode 1 \(entry 1\)"),
        ((([0, -1], [0, 2]), [1.0, 2.0], (2, 3)), DataError, "index -1 in mode 0"),
        ((([0.0, 1.5], [0, 2]), [1.0, 2.0], (2, 3)), DataError, r"tensor\[0\] has dtype float64"),
        ((([False, True], [0, 2]), [1.0, 2.0], (2, 3)), DataError, "has dtype bool"),
        ((([0, 1],), [1.0, 2.0], (2, 3)), ShapeError, "1 vectors of indices; expected 2"),
        ((IJ, [1.0, 2.0, 3.0], (2, 3)), ShapeError, r"expected \(3,\)"),
        ((np.array([[0, 1], [0, 2]]), [1.0, 2.0], (2, 3)), ShapeError, "a row or a column"),
        ((np.zeros((3, 4), int), [1.0, 2.0], (2, 3)), ShapeError, r"expected \(2, 2\)"),
        (([[0, 1], [0]], [1.0, 2.0], (2, 3)), DataError, "cannot be read"),
        ((IJ, [1.0, np.nan], (2, 3)), DataError, "values contains NaN"),
        ((IJ, [1.0, np.inf], (2, 3)), DataError, "values contains NaN or infinite"),
        ((IJ, [1.0, 2.0j], (2, 3)), DataError, "values has dtype complex128"),
        ((IJ, np.array([1.0, None]), (2, 3)), DataError, "values has dtype object"),
        ((IJ, [[1.0, 2.0]], (2, 3)), ShapeError, r"values has shape \(1, 2\)"),
        ((([0, 0], [1, 1]), [1.7e308] * 2, (2, 3)), DataError, "add up to more than float64"),
    ],
)  # fmt: skip
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        SparseTensor(*arguments)


def test_what_is_not_stored_must_be_zero():
    array = SimpleNamespace(coords=np.array(IJ), data=np.ones(2), shape=(2, 3), fill_value=1.0)
    with pytest.raises(DataError, match=r"fill_value 1\.0; expected 0"):
        SparseTensor(array)
    array.fill_value, array.data = 0.0, np.array([1.0, np.nan])
    with pytest.raises(DataError, match=r"tensor\.data contains NaN"):
        SparseTensor(array)


def test_tied_modes_and_signs_are_checked():
    with pytest.raises(ShapeError, match="one size"):
        SparseTensor(IJ, [1.0, 2.0], (2, 3), tied=(0, 0))
    with pytest.raises(DataError, match="sign must be"):
        SparseTensor(IJ, [1.0, 2.0], (2, 3), sign=2.0)


def test_other_array_libraries_are_refused_with_the_way_out():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(CapabilityError, match="held in NumPy: convert it first"):
        SparseTensor(IJ, strict.asarray([1.0, 2.0]), (2, 3))
    smooth = SparseTensor(IJ, [1.0, 2.0], (2, 3))
    with pytest.raises(CapabilityError, match="give x0 as NumPy arrays"):
        smooth.converted(strict.asarray([1.0]))
    assert smooth.converted(np.zeros(1, np.float32)) is smooth
