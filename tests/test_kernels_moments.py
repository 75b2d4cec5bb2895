"""Moment and cumulant tensors against the dense tensor that nobody should form."""

import mpmath
import numpy as np
import pytest
from sklearn.datasets import load_wine

import restpoint as rp
from restpoint.array import convert, gamma, to_host
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.kernels import Reference, _moment_reads, moments, use_threads

PAIRINGS = ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl")
KINDS = {
    "third": (3, {}),
    "third, not centred": (3, {"centered": False}),
    "third, whitened": (3, {"whiten": True}),
    "third cumulant": (3, {"cumulant": True}),
    "fourth": (4, {}),
    "fourth, not centred": (4, {"centered": False}),
    "fourth cumulant": (4, {"cumulant": True}),
    "fourth cumulant, whitened": (4, {"cumulant": True, "whiten": True}),
    "fourth cumulant, three components": (4, {"cumulant": True, "whiten": 3}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def samples(N=40, n=5, seed=0):
    """Skewed, correlated, away from 0."""
    rng = np.random.default_rng(seed)
    return rng.standard_gamma(0.7, (N, n)) @ rng.standard_normal((n, n)) + 2.0


def made(kind, X=None, **more):
    order, options = KINDS[kind]
    return rp.smooth.MomentTensor(samples() if X is None else X, order, **options, **more)


def formed(f):
    """The tensor, entry by entry, from the mean and W that f declares."""
    A = np.asarray(f.kernel.X, dtype=np.float64)
    A = A if f.mean is None else A - f.mean
    A = A if f.whitening is None else A @ f.whitening
    if f.kernel.order == 3:
        return np.einsum("ri,rj,rk->ijk", A, A, A, optimize=True) / len(A)
    tensor = np.einsum("ri,rj,rk,rl->ijkl", A, A, A, A, optimize=True) / len(A)
    if f.kernel.cumulant:
        C = A.T @ A / len(A)
        tensor -= sum(np.einsum(rule, C, C) for rule in PAIRINGS)
    return tensor


def points(f, batch=(), seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((*batch, n)) for n in f.kernel.sizes)


def equal(found, wanted, bound=1e-12):
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        assert np.max(np.abs(a - b)) <= bound * np.max(np.abs(b))


@pytest.fixture(params=["products", "compiled"])
def road(request, monkeypatch):
    """Small data go through matrix products; the compiled loops are forced upon them."""
    monkeypatch.setattr(moments, "LEAST_COMPILED", 0 if request.param == "compiled" else 2**60)
    return request.param


@every_kind
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_contractions_equal_those_of_the_dense_tensor(kind, batch, road):
    f = made(kind)
    xs, dense = points(f, batch), Reference(formed(f))
    equal(f.kernel.all_partials(xs), dense.all_partials(xs))
    equal([f.kernel.partial(xs, i) for i in range(len(xs))], dense.all_partials(xs))
    error = np.abs(f.kernel.value(xs) - dense.value(xs))
    moduli = tuple(map(np.abs, xs))
    assert np.all(error <= 1e-12 * np.vecdot(moduli[0], dense.magnitudes(moduli)[0]))
    tied = (xs[0],) * len(xs)
    equal(f.kernel.all_partials(tied), dense.all_partials(tied))
    half = (xs[0], xs[1], xs[0], xs[1])[: len(xs)]
    equal(f.kernel.all_partials(half), dense.all_partials(half))


@pytest.mark.parametrize(("N", "n"), [(2, 7), (3, 1), (9, 16), (17, 13), (1001, 3), (4099, 40)])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_shape_and_thread_count_gives_the_same_tensor(N, n, number, road):
    X = samples(N, n, seed=N)
    f = rp.smooth.MomentTensor(X, 4, cumulant=True)
    xs = points(f, (2,))
    A = X - f.mean
    c = [x @ A.T for x in xs]
    wanted = []
    for j, k, m in ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)):
        p = c[j] * c[k] * c[m]
        for one, two, three in ((j, k, m), (k, j, m), (m, j, k)):
            p = p - c[one] * np.mean(c[two] * c[three], axis=-1, keepdims=True)
        wanted.append(p @ A / N)
    with use_threads(number):
        found = f.kernel.all_partials(xs)
        again = f.kernel.all_partials(xs)
    size = max(np.max(np.abs(w)) for w in wanted)
    for a, b, w in zip(found, again, wanted, strict=True):
        np.testing.assert_allclose(a, w, rtol=0, atol=2e-13 * size * max(1, N / 100))
        assert np.array_equal(a, b)


def test_the_fourth_cumulant_of_the_wines():
    X = load_wine().data
    Z = (X - X.mean(0)) / X.std(0)
    C = np.cov(Z.T, bias=True)
    K4 = np.einsum("ni,nj,nk,nl->ijkl", Z, Z, Z, Z, optimize=True) / len(Z)
    K4 -= sum(np.einsum(rule, C, C) for rule in PAIRINGS)
    f = rp.smooth.MomentTensor(Z, 4, cumulant=True)
    xs = points(f, (4,))
    equal(f.kernel.all_partials(xs), Reference(K4).all_partials(xs))
    # The spectral bounds agree in order of magnitude, and both hold for the unfolding's lower bound.
    assert f.kernel.spectral_bound() <= 6 * Reference(K4).spectral_bound()


@every_kind
def test_kept_products_follow_updates(kind):
    f = made(kind)
    dense, rng = Reference(formed(f)), np.random.default_rng(2)
    xs = list(points(f, (2,)))
    kept = f.kernel.keep(tuple(xs))
    for i in (1, 0, 2, 2, 0):
        xs[i] = rng.standard_normal(xs[i].shape)
        kept.update(i, xs[i])
        wanted = [dense.partial(tuple(xs), m) for m in range(len(xs))]
        equal([kept.partial(m) for m in range(len(xs))], wanted)
    x = rng.standard_normal(xs[0].shape)
    for i in range(len(xs)):  # one vector in all modes
        kept.update(i, x)
    equal([kept.partial(0)], [dense.partial((x,) * len(xs), 0)])


def test_nothing_is_kept_that_would_outgrow_the_data(monkeypatch):
    monkeypatch.setattr(moments, "NUMBERS_KEPT", 100)
    f = made("fourth cumulant")
    few, many = points(f), points(f, (30,))
    assert hasattr(f.kernel.keep(few), "_c")
    assert not hasattr(f.kernel.keep(many), "_c")
    equal([f.kernel.keep(many).partial(1)], [f.kernel.all_partials(many)[1]])


@every_kind
@pytest.mark.parametrize("shape", [(40, 5), (8, 12), (1600, 3)])
def test_the_spectral_bound_holds_and_is_not_absurd(kind, shape):
    if "whiten" in KINDS[kind][1] and shape[0] < shape[1]:
        return
    f = made(kind, samples(*shape))
    bound, dense = f.kernel.spectral_bound(), Reference(formed(f))
    assert np.max(np.abs(formed(f))) <= min(bound, f.kernel.largest())
    rng, best = np.random.default_rng(3), 0.0
    for _ in range(20):
        xs = points(f, (), seed=int(rng.integers(1000)))
        for _ in range(10):  # higher-order power iterations
            for i in range(len(xs)):
                g = dense.partial(xs, i)
                xs = (*xs[:i], g / np.linalg.norm(g), *xs[i + 1 :])
        best = max(best, abs(float(dense.value(xs))))
    assert best <= bound
    assert bound <= best * (60.0 if "cumulant" in kind else 6.0)


def exact_partials(f, xs):
    """All partials in 50 digits, with the floating-point mean and W taken as they are."""
    number = np.vectorize(lambda v: mpmath.mpf(float(v)), otypes=[object])
    A = number(f.kernel.X)
    A = A if f.mean is None else A - number(f.mean)
    A = A if f.whitening is None else A @ number(f.whitening)
    c, N = [A @ number(x) for x in xs], len(A)
    found = []
    for i in range(len(xs)):
        others = [m for m in range(len(xs)) if m != i]
        p = np.prod([c[m] for m in others], axis=0)
        if f.kernel.pairs:
            for one in others:
                two, three = (m for m in others if m != one)
                p = p - c[one] * (np.sum(c[two] * c[three]) / N)
        found.append(A.T @ p / N)
    return found


@every_kind
@pytest.mark.parametrize("spread", [0, 3])
def test_rounding_bounds_are_sound_in_fifty_digits(kind, spread, road):
    with mpmath.workdps(50):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = samples(12, 4, seed) * 10.0 ** rng.integers(-spread, spread + 1, 4)
            f = made(kind, X)
            xs = tuple(x * 10.0 ** rng.integers(-spread, spread + 1) for x in points(f))
            value, gradient = f.value_and_gradient(xs)
            error, entries = f.rounding(xs)
            exact = exact_partials(f, xs)
            whole = -mpmath.fsum(
                mpmath.mpf(float(a)) * b for a, b in zip(xs[0], exact[0], strict=True)
            )
            assert abs(whole - mpmath.mpf(float(value))) <= error
            moduli = f.kernel.magnitudes(tuple(map(np.abs, xs)))
            sweep = f.sweep(xs)
            for i, wanted in enumerate(exact):
                coarse = 2.0**-53 * f.kernel.depth(i) * moduli[i]
                for found in (gradient[i], sweep.partial(i)):
                    wrong = [
                        float(abs(a + mpmath.mpf(float(b))))
                        for a, b in zip(wanted, found, strict=True)
                    ]
                    assert np.all(wrong <= entries[i])
                    assert np.all(wrong <= coarse)
                assert np.all(np.abs([float(v) for v in wanted]) <= moduli[i] * (1 + 1e-9))
                assert np.max(entries[i]) <= 1e-9 * np.max(moduli[i])


@pytest.mark.parametrize("seed", range(4))
def test_whitening_loses_the_condition_of_the_data_but_once(seed, road):
    """Through the covariance of the features, pairings lost its square: up to 800 times what is allowed here."""
    rng = np.random.default_rng(seed)
    U, _, V = np.linalg.svd(rng.standard_gamma(0.7, (24, 5)) - 0.7, full_matrices=False)
    X = (U * np.geomspace(1, 1e-4, 5)) @ V + 2.0
    f = made("fourth cumulant, whitened", X)
    xs = points(f)
    bound = 8 * np.finfo(np.float64).eps * np.linalg.cond(X - f.mean)
    with mpmath.workdps(50):
        exact, tied = ([g.astype(float) for g in exact_partials(f, x)] for x in (xs, xs[:1] * 4))
    equal(f.kernel.all_partials(xs), exact, bound)
    equal([f.kernel.partial(xs, i) for i in range(4)], exact, bound)
    equal([-g for g in f.batch_gradient(xs, np.arange(24))], exact, bound)
    equal(f.kernel.all_partials(xs[:1] * 4), tied, bound)


@pytest.mark.parametrize("kind", ["fourth cumulant", "fourth cumulant, three components"])
def test_the_covariance_errs_as_is_proved(kind):
    for seed in range(3):
        scales = 10.0 ** np.random.default_rng(seed).integers(-3, 4, 4)
        f = made(kind, samples(12, 4, seed) * scales)
        W = np.eye(4) if f.whitening is None else f.whitening
        with mpmath.workdps(50):
            D = np.vectorize(mpmath.mpf, otypes=[object])(f.kernel.X) - f.mean
            A, moduli = D @ W, np.abs(D) @ np.abs(W)
            wrong = np.abs(A.T @ A / 12 - f.kernel.covariance()).astype(float)
            s = np.sqrt(np.sum(moduli**2, axis=0).astype(float) / 12)
        depth = 12 + 6 + (0 if f.whitening is None else 2 * 4)
        assert np.all(wrong <= gamma(depth) * np.outer(s, s))
        assert np.all(f.kernel.deviations() >= s * (1 - 1e-15))


def test_tied_gradients_agree_with_finite_differences():
    """A quartic along a line is found exactly by central differences of fourth order."""
    for kind in ("third, whitened", "fourth cumulant"):
        order, _ = KINDS[kind]
        f = made(kind, tied=(0,) * order, sign=1.0)
        rng = np.random.default_rng(5)
        x, d = rng.standard_normal((2, f.shapes[0][0]))

        def along(t, f=f, x=x, d=d):
            return float(f.value((x + t * d,)))

        slope = (8 * (along(1) - along(-1)) - along(2) + along(-2)) / 12
        (gradient,) = f.gradient((x,))
        np.testing.assert_allclose(gradient @ d, slope, rtol=1e-12)
        (partial,) = (f.partial((x,), 0),)
        np.testing.assert_allclose(partial, gradient, rtol=1e-13)


@every_kind
def test_laws(kind):
    order, _ = KINDS[kind]
    ball = rp.sets.L2Ball()
    rp.testing.check_smooth(made(kind), [ball] * order, pairs=8)
    rp.testing.check_smooth(made(kind, tied=(0,) * order), ball, pairs=8)


@every_kind
@pytest.mark.parametrize("tied", [False, True])
def test_sampled_gradients_are_unbiased(kind, tied):
    """Their average over all single rows, each as likely as any other, is the gradient."""
    order, _ = KINDS[kind]
    f = made(kind, tied=(0,) * order if tied else None)
    xs = points(f, (2,))[: len(f.shapes)]
    gradient = f.gradient(xs)
    single = [f.batch_gradient(xs, np.full((2, 1), r)) for r in range(f.terms)]
    for i, g in enumerate(gradient):
        mean = np.mean([one[i] for one in single], axis=0)
        np.testing.assert_allclose(mean, g, rtol=0, atol=1e-12 * np.max(np.abs(g)))
    both = f.batch_gradient(xs, np.array([[3, 3, 7], [1, 2, 1]]))
    for i in range(len(xs)):
        by_hand = [
            np.mean([single[r][i][k] for r in rows], axis=0)
            for k, rows in enumerate(([3, 3, 7], [1, 2, 1]))
        ]
        np.testing.assert_allclose(both[i], by_hand, rtol=1e-11, atol=1e-11)


def planted(seed=0, N=4000, n=6):
    """Gaussian noise, and a two-point variable (kurtosis 1, cumulant -2) along a known direction."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(n)
    direction /= np.linalg.norm(direction)
    noise = rng.standard_normal((N, n))
    noise -= np.outer(noise @ direction, direction)
    return noise + np.outer(np.sign(rng.standard_normal(N)), direction) + 5.0, direction


def test_a_planted_direction_is_found_and_certified():
    X, direction = planted()
    f = rp.smooth.MomentTensor(X, 4, cumulant=True, sign=1.0, tied=(0, 0, 0, 0))
    result = rp.solve(rp.Problem(f, rp.Block(rp.sets.L2Ball())), starts=4, eps=1e-5)
    assert result.certified.all()
    best = int(np.argmin(result.value))
    x = np.asarray(result.x)[best]
    assert abs(x @ direction) > 0.98
    assert result.value[best] == pytest.approx(-2.0, abs=0.1)


def test_untied_forms_solve_as_the_dense_tensor_does():
    f = made("fourth cumulant, whitened")
    block = rp.Block(rp.sets.L2Ball(), rp.penalties.L1(0.1))
    runs = [
        rp.solve(rp.Problem(g, [block] * 4), starts=4)
        for g in (f, rp.smooth.Multilinear(formed(f)))
    ]
    assert runs[0].certified.all()
    np.testing.assert_allclose(runs[0].value, runs[1].value, atol=1e-6)


def test_mini_batches_run_and_are_certified_by_the_whole_sample():
    f = rp.smooth.MomentTensor(planted()[0], 4, cumulant=True, sign=1.0, tied=(0, 0, 0, 0))
    problem = rp.Problem(f, rp.Block(rp.sets.L2Ball()))
    method = rp.WithoutGuarantee(rp.ProximalGradient(gradient=rp.MiniBatch(200)))
    result = rp.solve(problem, method, starts=2, stop=rp.Stop(max_iterations=40))
    gaps = rp.certify(problem, result.x).max
    assert np.all(np.isfinite(gaps))
    assert np.all(result.value < 0)


def test_other_array_libraries(xp):
    for kind in ("third, whitened", "fourth cumulant", "fourth, not centred"):
        order, options = KINDS[kind]
        host, X = made(kind), xp.asarray(samples())
        f = rp.smooth.MomentTensor(X, order, **options)
        for batch in ((), (2, 3)):
            xs = points(host, batch)
            given = tuple(convert(x, X) for x in xs)
            value, gradient = f.value_and_gradient(given)
            wanted, wanted_gradient = host.value_and_gradient(xs)
            np.testing.assert_allclose(to_host(value), wanted, rtol=1e-11)
            equal([to_host(g) for g in gradient], wanted_gradient)
            for a, b in zip(f.rounding(given)[1], host.rounding(xs)[1], strict=True):
                np.testing.assert_allclose(to_host(a), b, rtol=1e-6)
            index = np.zeros((*batch, 2), dtype=int) + np.array([1, 4])
            sampled = f.batch_gradient(given, xp.asarray(index))
            equal([to_host(g) for g in sampled], host.batch_gradient(xs, index))


def test_float32_samples_keep_their_precision_and_double_is_the_same_tensor(road):
    X = samples(300, 5).astype(np.float32)
    f = rp.smooth.MomentTensor(X, 4, cumulant=True)
    xs = tuple(x.astype(np.float32) for x in points(f, (3,)))
    gradient = f.gradient(xs)
    assert all(g.dtype == np.float32 for g in gradient)
    assert f.rounding(xs) is None
    double = f.converted(np.zeros(()))
    assert np.array_equal(double.kernel.mean, f.mean)
    wide = tuple(x.astype(np.float64) for x in xs)
    wanted = double.gradient(wide)
    size = double.kernel.magnitudes(tuple(map(np.abs, wide)))
    for a, b, m in zip(gradient, wanted, size, strict=True):
        assert np.max(np.abs(a - b)) <= 1e-5 * np.max(m)
    assert double.rounding(wide) is not None


def test_whitening_whitens_and_is_as_declared():
    X = samples(200, 4)
    f = rp.smooth.MomentTensor(X, 4, whiten=True)
    A = (X - f.mean) @ f.whitening
    np.testing.assert_allclose(A.T @ A / 200, np.eye(4), atol=1e-12)
    two = rp.smooth.MomentTensor(X, 4, whiten=2)
    np.testing.assert_array_equal(two.whitening, f.whitening[:, :2])
    assert two.shapes == ((2,),) * 4


def test_the_data_are_neither_changed_nor_copied():
    X = samples()
    X.flags.writeable = False
    f = rp.smooth.MomentTensor(X, 4, cumulant=True, whiten=True)
    f.gradient(points(f))
    assert f.kernel.X is X or np.shares_memory(f.kernel.X, X)


X = samples()
CONSTANT = np.c_[X, np.ones(len(X))]
HOLED = np.where(X > 5, np.nan, X)


@pytest.mark.parametrize(
    ("data", "order", "options", "error", "message"),
    [
        (HOLED, 3, {}, DataError, "X contains NaN"),
        (X[:, 0], 3, {}, ShapeError, r"X has shape \(40,\); expected 2 axes"),
        (X[:1], 3, {}, ShapeError, "one sample has no moments"),
        (X[:0], 3, {}, ShapeError, "it is empty"),
        (X[:, :0], 3, {}, ShapeError, "it is empty"),
        (X * 1j, 3, {}, DataError, "X has dtype complex128"),
        (X.astype(object), 3, {}, DataError, "X has dtype object"),
        (X, 2, {}, DataError, "order must be 3 or 4, got 2; for order 2 use Quadratic"),
        (X, 5, {}, DataError, "order must be 3 or 4, got 5"),
        (X, True, {}, DataError, "order must be 3 or 4, got True"),
        (X, 4, {"cumulant": True, "centered": False}, DataError, "cumulant=True needs centered"),
        (X, 4, {"whiten": True, "centered": False}, DataError, "whiten needs centered"),
        (X, 4, {"whiten": 6}, DataError, "components from 1 to 5, got 6"),
        (X, 4, {"whiten": 0}, DataError, "components from 1 to 5, got 0"),
        (X, 4, {"whiten": "pca"}, DataError, "got 'pca'"),
        (CONSTANT, 4, {"whiten": True}, DataError, r"columns \[5\]\); say whiten=5"),
        (X[:3], 4, {"whiten": True}, DataError, "rank 2; say whiten=2"),
        (X * 1e80, 4, {}, DataError, "products of 4 overflow"),
        (X, 4, {"sign": 2.0}, DataError, "sign must be"),
        (X, 4, {"tied": (0, 0, 0)}, ShapeError, "tied has 3 entries"),
    ],
)
def test_bad_input(data, order, options, error, message):
    with pytest.raises(error, match=message):
        rp.smooth.MomentTensor(data, order, **options)


def test_sparse_matrices_are_refused_with_advice():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(CapabilityError, match="toarray"):
        rp.smooth.MomentTensor(sparse.csr_array(X), 3)


def test_lists_and_integers_are_taken():
    f = rp.smooth.MomentTensor([[1, 0], [-1, 0], [0, 2], [0, -2]], 4, sign=1.0)
    assert float(f.value((np.array([1.0, 0.0]),) * 4)) == 0.5


@pytest.mark.parametrize("n", [4, 5, 64, 67, 130])
@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_products_with_the_covariance_cover_every_row(n, count):
    rng = np.random.default_rng(n)
    half = rng.standard_normal((n, n))
    matrix, y = half + half.T, rng.standard_normal((count, n))
    found = _moment_reads.products(matrix, y)
    np.testing.assert_allclose(found, y @ matrix, rtol=0, atol=1e-13 * n * np.max(np.abs(matrix)))
