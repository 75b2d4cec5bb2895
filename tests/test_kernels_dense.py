"""The dense kernel against the definition: any shape, any strides, any way of reading, any zeros."""

import mmap

import mpmath
import numpy as np
import pytest

import restpoint as rp
from restpoint.errors import DataError, ShapeError
from restpoint.kernels import Dense, Reference, choice, passes, set_threads, use_threads
from restpoint.kernels.layout import Layout
from restpoint.kernels.spectra import spectral_bound
from restpoint.kernels.threads import count

WAYS = ("one-pass", "support", "products")


def strided(rng, sizes, kind):
    """A random tensor of these sizes that lies in memory in one of many ways."""
    d = len(sizes)
    A = rng.standard_normal(sizes)
    if kind == "transposed":
        order = rng.permutation(d)
        A = np.ascontiguousarray(A.transpose(order)).transpose(np.argsort(order))
    elif kind == "backward":
        turn = tuple(slice(None, None, -1 if rng.random() < 0.6 else 1) for _ in sizes)
        A = np.ascontiguousarray(A[turn])[turn]
    elif kind == "gaps":
        wide = np.full([2 * n + 1 for n in sizes], np.nan)
        A, source = wide[tuple(slice(1, None, 2) for _ in sizes)], A
        A[...] = source
    elif kind == "inner block":
        wide = np.full([n + 2 for n in sizes], np.nan)
        A, source = wide[tuple(slice(1, -1) for _ in sizes)], A
        A[...] = source
    elif kind == "repeated":
        A = np.broadcast_to(A[..., :1], sizes)
    elif kind == "float32":
        A = A.astype(np.float32)
    elif kind == "read-only":
        A.flags.writeable = False
    return A


KINDS = (
    "plain", "transposed", "backward", "gaps", "inner block", "repeated", "float32", "read-only",
)  # fmt: skip


def vectors(rng, sizes, batch, density):
    return tuple(
        rng.standard_normal((*batch, n)) * (rng.random((*batch, n)) < density) for n in sizes
    )


def assert_same(found, wanted, scale):
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert np.max(np.abs(a - b), initial=0.0) <= 1e-13 * scale


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_equals_the_reference(monkeypatch, way, kind):
    monkeypatch.setenv(choice.VARIABLE, way)
    monkeypatch.setattr(
        passes, "RANGE", 11
    )  # several ranges of columns, and stretches longer than one
    monkeypatch.setattr(passes, "RANGE_OF_MANY", 7)
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(12):
        sizes = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 9, 13], rng.integers(2, 6)))
        A = strided(rng, sizes, kind)
        wanted, kernel = Reference(np.array(A, dtype=np.float64)), Dense(A)
        scale = float(np.sum(np.abs(A, dtype=np.float64)))
        for batch in ((), (1,), (3,), (2, 2)):
            xs = vectors(rng, sizes, batch, rng.choice([0.0, 0.3, 0.7, 1.0]))
            size = scale * max(np.max(np.abs(x)) for x in xs) ** len(xs) + scale
            assert_same(kernel.all_partials(xs), wanted.all_partials(xs), size)
            absolute = tuple(np.abs(x) for x in xs)
            assert_same(kernel.magnitudes(absolute), wanted.magnitudes(absolute), size)
            np.testing.assert_allclose(kernel.value(xs), wanted.value(xs), atol=1e-12 * size)
            mine, theirs = kernel.keep(xs), wanted.keep(xs)
            for _ in range(5):
                i, j = rng.integers(len(sizes), size=2)
                assert_same([mine.partial(i)], [theirs.partial(i)], 100.0 * size)
                (x,) = vectors(rng, (sizes[j],), batch, 0.6)
                mine.update(j, x)
                theirs.update(j, x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", ["float32", "float64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_answers_have_the_dtype_of_the_vectors_and_the_wider_precision(
    monkeypatch, way, stored, given
):
    monkeypatch.setenv(choice.VARIABLE, way)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, 9, 8)).astype(stored)
    xs = tuple(x.astype(given) for x in vectors(rng, A.shape, (2,), 1.0))
    kernel = Dense(A)
    assert kernel.converted(xs[0]) is kernel
    found = kernel.all_partials(xs)
    wanted = Reference(A.astype(float)).all_partials(tuple(x.astype(float) for x in xs))
    unit = 1e-6 if given == "float32" else 1e-14
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == given
        np.testing.assert_allclose(a, b, rtol=0, atol=unit * 100)
    assert kernel.in_double(xs) == (given == "float64")


@pytest.mark.parametrize("shape", [(300, 40, 50), (40, 40, 20, 20)])
def test_threads_agree_and_repeat_bit_by_bit(monkeypatch, shape):
    monkeypatch.setattr("restpoint.kernels.threads.BYTES_PER_THREAD", 1000)
    monkeypatch.setenv(choice.VARIABLE, "one-pass")
    rng = np.random.default_rng(1)
    kernel, xs = Dense(rng.standard_normal(shape)), vectors(rng, shape, (), 1.0)
    answers = {}
    for n in (1, 2, 3):
        with use_threads(n):
            first, again = kernel.all_partials(xs), kernel.all_partials(xs)
            assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
            answers[n] = first
    for n in (2, 3):
        for a, b in zip(answers[1], answers[n], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("way", [*WAYS, "reference"])
def test_the_rounding_bound_is_sound_in_fifty_digits(monkeypatch, way):
    monkeypatch.setenv(choice.VARIABLE, way)
    rng = np.random.default_rng(2)
    shape = (3, 4, 3, 2)
    A = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    smooth = rp.smooth.Multilinear(A, sign=1.0)
    xs = tuple(rng.standard_normal(n) * (rng.random(n) < 0.8) for n in shape)
    _, gradient = smooth.value_and_gradient(xs)
    _, errors = smooth.rounding(xs)
    with mpmath.workdps(50):
        for i in range(4):
            for j in range(shape[i]):
                exact = mpmath.fsum(
                    mpmath.mpf(float(A[place]))
                    * mpmath.fprod(
                        mpmath.mpf(float(xs[m][k])) for m, k in enumerate(place) if m != i
                    )
                    for place in np.ndindex(shape)
                    if place[i] == j
                )
                assert abs(exact - mpmath.mpf(float(gradient[i][j]))) <= errors[i][j]


def test_a_product_that_underflows_hides_no_row(monkeypatch):
    monkeypatch.setenv(choice.VARIABLE, "support")
    A = np.ones((2, 2, 2))
    xs = (np.array([1e-200, 0.0]), np.array([1e-200, 1.0]), np.array([1.0, 0.0]))
    found = Dense(A.transpose(2, 0, 1).copy().transpose(1, 2, 0)).all_partials(xs)
    np.testing.assert_allclose(found[0], [1.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(found[1], [1e-200, 1e-200], rtol=1e-15)


def test_nan_stays_nan(monkeypatch):
    for way in WAYS:
        monkeypatch.setenv(choice.VARIABLE, way)
        xs = (np.array([np.nan, 1.0]), np.ones(3), np.ones(2))
        found = Dense(np.ones((2, 3, 2))).all_partials(xs)
        assert np.isnan(found[1]).all()


def test_contiguous_arrays_in_any_order_are_not_copied():
    A = np.arange(120.0).reshape(4, 5, 6)
    for view in (A, A.transpose(2, 0, 1), A[::-1, :, ::-1], A.T[:, ::-1]):
        (panel,) = Layout(view).panels()
        assert np.shares_memory(panel.matrix, A)
    gaps = np.zeros((40, 50, 60))[:, ::2]
    assert sum(panel.end - panel.begin for panel in Layout(gaps).panels()) == Layout(gaps).rows


def test_gaps_are_read_in_bounded_pieces(monkeypatch):
    monkeypatch.setattr("restpoint.kernels.layout.PIECE", 4000)
    A = np.random.default_rng(3).standard_normal((30, 20, 9))[:, ::2, :]
    panels = list(Layout(A).panels())
    assert len(panels) == 6
    assert max(panel.matrix.nbytes for panel in panels) <= 4000
    xs = vectors(np.random.default_rng(4), A.shape, (), 1.0)
    assert_same(Dense(A).all_partials(xs), Reference(A.copy()).all_partials(xs), 1e3)


def test_the_choice_follows_size_starts_and_zeros(monkeypatch):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    kernel = Dense(np.zeros((30, 30, 30, 30)))
    assert kernel.describe((np.ones(30),) * 4).startswith("one-pass")
    assert kernel.describe((np.ones((500, 30)),) * 4).startswith("products")
    sparse = np.zeros(30)
    sparse[:3] = 1.0
    assert kernel.describe((sparse,) * 4).startswith("support")
    assert "of A a start" in kernel.describe((sparse,) * 4)
    assert Dense(np.zeros((3, 3))).describe((np.ones(3),) * 2).startswith("products")
    monkeypatch.setenv(choice.VARIABLE, "fast")
    with pytest.raises(DataError, match="RESTPOINT_KERNEL must be one of"):
        kernel.describe((np.ones(30),) * 4)


def test_zeros_are_skipped_in_a_sweep(monkeypatch):
    monkeypatch.setenv(choice.VARIABLE, "support")
    A = np.random.default_rng(5).standard_normal((8, 8, 8, 8))
    xs = [np.zeros(8) for _ in range(4)]
    for x in xs:
        x[[1, 4]] = 1.0
    rows = []
    original = passes.Passes.onto_rows
    monkeypatch.setattr(
        passes.Passes,
        "onto_rows",
        lambda self, v, r, ranges: (rows.append(len(r)), original(self, v, r, ranges))[1],
    )
    kept = Dense(A).keep(tuple(xs))
    kept.partial(0)
    kept.partial(1)
    assert rows == [16, 12]  # (any, support), then (support, any) less what is known


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 2), (2, 3, 4, 2), (2, 2, 3, 2, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_the_spectral_bound_is_that_of_the_best_unfolding(shape, scale):
    A = np.random.default_rng(7).standard_normal(shape) * scale
    A1, d = A / scale, len(shape)
    unfoldings = [np.moveaxis(A1, k, 0).reshape(shape[k], -1) for k in range(d)]
    unfoldings += [A1.reshape(int(np.prod(shape[:k])), -1) for k in range(2, d - 1)]
    norms = [np.linalg.norm(A1), *(np.linalg.norm(M, 2) for M in unfoldings)]
    bound = spectral_bound(A) / scale
    assert min(norms) <= bound * (1 + 1e-14)
    assert bound <= min(norms) * (1 + 1e-9)


def test_files_are_mapped_and_bad_ones_are_refused(monkeypatch, tmp_path):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    A = np.random.default_rng(8).standard_normal((6, 5, 4))
    path = tmp_path / "tensor.npy"
    np.save(path, A)
    xs = vectors(np.random.default_rng(9), A.shape, (), 1.0)
    for source in (path, str(path), np.load(path, mmap_mode="r")):
        smooth = rp.smooth.Multilinear(source)
        assert isinstance(smooth.A.base, (np.memmap, mmap.mmap))  # neither read nor copied
        np.testing.assert_allclose(smooth.value(xs), rp.smooth.Multilinear(A).value(xs), rtol=1e-14)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(DataError, match="truncated"):
        rp.smooth.Multilinear(path)
    path.write_bytes(b"not an array")
    with pytest.raises(DataError, match=r"\.npy file"):
        rp.smooth.Multilinear(path)
    with pytest.raises(DataError, match="does not exist"):
        rp.smooth.Multilinear(tmp_path / "absent.npy")
    np.save(path, np.array([[object()]]), allow_pickle=True)
    with pytest.raises(DataError, match="hold objects"):
        rp.smooth.Multilinear(path)


@pytest.mark.parametrize(
    ("A", "more", "error", "message"),
    [
        (np.ones(3), {}, ShapeError, r"A has shape \(3,\); expected at least 2 axes"),
        (np.ones((2, 0, 3)), {}, ShapeError, "empty"),
        (np.ones((2, 2), dtype=complex), {}, DataError, "dtype complex128"),
        (np.array([[None, 1]]), {}, DataError, "dtype object"),
        (np.array([[np.nan, 1.0]]), {}, DataError, "NaN"),
        (np.ones((2, 2)), {"sign": 2.0}, DataError, "sign must be -1.0 or 1.0"),
        (np.ones((2, 2)), {"sign": np.ones(2)}, DataError, "sign must be -1.0 or 1.0"),
        (np.ones((2, 2)), {"tied": 3}, DataError, "tied must be a list"),
        (np.ones((2, 3)), {"tied": (0, 0)}, ShapeError, "one size"),
    ],
)
def test_bad_tensors_are_refused(A, more, error, message):
    with pytest.raises(error, match=message):
        rp.smooth.Multilinear(A, **more)


def test_integers_are_converted():
    A = np.arange(8).reshape(2, 2, 2)
    assert rp.smooth.Multilinear(A).A.dtype == np.float64
    assert float(rp.smooth.Multilinear(A, 1.0).value((np.ones(2),) * 3)) == 28.0


def test_vectors_of_the_wrong_length_are_refused():
    problem = rp.Problem(rp.smooth.Multilinear(np.ones((2, 3))), [rp.Block(rp.sets.L2Ball())] * 2)
    with pytest.raises(ShapeError, match=r"xs\[1\] has shape \(2,\); expected \(3,\)"):
        problem.value((np.ones(2), np.ones(2)))


def test_threads_are_a_whole_number(monkeypatch):
    for wrong in (0, -1, 1.5, "x", True):
        with pytest.raises(DataError, match="whole number of threads"):
            set_threads(wrong)
    monkeypatch.setenv("RESTPOINT_THREADS", "many")
    with pytest.raises(DataError, match="RESTPOINT_THREADS must be a whole number"):
        count()
