"""All three gradients of a sparse form of order 3, n = 1000, with 1e6 and 1e7 nonzeros, in ns per nonzero.

Peers do the same work on their own arrays, converted beforehand: pyttb by ttv and by mttkrp, pydata/sparse by tensordot
and by products of its compressed unfoldings, SciPy by one CSR unfolding and its transpose, NumPy by gathering and
bincount. Two contractions are shared where a library lets that be said.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyttb
import scipy.sparse
import sparse
from timing import interleaved, judged, missed, write

import restpoint as rp
from restpoint.kernels import threads

N = 1000
Vectors = tuple[np.ndarray, ...]
Candidates = dict[str, Callable[[], object]]


def nonzeros(count: int) -> tuple[Vectors, np.ndarray]:
    rng = np.random.default_rng(0)
    index = np.unique(rng.integers(0, N**3, count))
    rng.shuffle(index)
    return np.unravel_index(index, (N, N, N)), rng.standard_normal(index.size)


def points(density: float, starts: tuple[int, ...] = ()) -> Vectors:
    rng = np.random.default_rng(1)
    return tuple(
        rng.standard_normal((*starts, N)) * (rng.random((*starts, N)) < density) for _ in range(3)
    )


def on_threads(count: int, call: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        with threads.use_threads(count):
            return call()

    return run


def own(f: rp.smooth.SparseTensor) -> Candidates:
    kernel, dense, thin = f.kernel, points(1.0), points(0.1)
    raw = [
        kernel.values,
        *(index[: index.size // 4 * 4].view(np.uint64) for index in kernel.indices),
    ]
    found = {
        f"{name}, {count} thread(s)": on_threads(count, lambda xs=xs: f.gradient(xs))
        for name, xs in (("dense x", dense), ("density .1", thin))
        for count in (1, 2)
    }
    found["one partial after another"] = on_threads(
        1, lambda: [kernel.partial(dense, i) for i in range(3)]
    )
    for starts in (8, 64):
        xs = points(1.0, (starts,))
        found[f"{starts} starts, 1 thread(s)"] = on_threads(1, lambda xs=xs: f.gradient(xs))
    found["read of the stored bytes"] = lambda: [np.add.reduce(part) for part in raw]
    return found


def peers(coordinates: Vectors, values: np.ndarray) -> Candidates:
    x, y, z = points(1.0)
    i, j, k = coordinates
    size = (N, N, N)
    unfolding = scipy.sparse.csr_array((values, (i, j * N + k)), shape=(N, N * N))
    turned = unfolding.T

    def scipy_csr() -> object:
        matrix = (turned @ x).reshape(N, N)
        return unfolding @ np.outer(y, z).ravel(), matrix @ z, y @ matrix

    sptensor = pyttb.sptensor(np.stack(coordinates, axis=1), values[:, None], size)
    columns = [vector[:, None] for vector in (x, y, z)]

    def numpy_bincount() -> object:
        a, b, c = x[i], y[j], z[k]
        t = values * c
        return (
            np.bincount(i, t * b, N),
            np.bincount(j, t * a, N),
            np.bincount(k, values * a * b, N),
        )

    found: Candidates = {
        "SciPy CSR unfolding": scipy_csr,
        "NumPy gather and bincount": numpy_bincount,
        "pyttb mttkrp": lambda: [sptensor.mttkrp(columns, m) for m in range(3)],
        "pyttb ttv": lambda: [
            sptensor.ttv([x, y, z], exclude_dims=np.array([m])) for m in range(3)
        ],
    }
    coo = sparse.COO(np.stack(coordinates), values, shape=size)
    compressed = sparse.GCXS(coo.reshape((N, N * N)), compressed_axes=(0,))
    transposed = sparse.GCXS(coo.reshape((N, N * N)).T, compressed_axes=(1,))

    def by_unfoldings() -> object:
        matrix = (transposed @ x).reshape(N, N)
        return compressed @ np.outer(y, z).ravel(), matrix @ z, y @ matrix

    def by_tensordot() -> object:
        matrix = sparse.tensordot(coo, x, axes=([0], [0]))
        first = sparse.tensordot(sparse.tensordot(coo, z, axes=([2], [0])), y, axes=([1], [0]))
        return first, matrix @ z, y @ matrix

    return found | {
        "pydata/sparse unfoldings": by_unfoldings,
        "pydata/sparse tensordot": by_tensordot,
    }


def agree(candidates: Candidates, wanted: Vectors) -> None:
    """Every candidate that answers with three gradients gives the same ones."""
    for name, call in candidates.items():
        for a, b in zip(call(), wanted, strict=True):  # type: ignore[call-overload]
            full = a.double() if isinstance(a, (pyttb.tensor, pyttb.sptensor)) else np.asarray(a)
            assert np.allclose(np.ravel(full), b, rtol=1e-9, atol=1e-9 * np.max(np.abs(b))), name


def measured(count: int) -> dict[str, Any]:
    coordinates, values = nonzeros(count)
    nnz, builds = values.size, []
    rp.smooth.SparseTensor(tuple(c[:10] for c in coordinates), values[:10], (N, N, N))  # compiled
    for _ in range(3):
        began = time.perf_counter()
        f = rp.smooth.SparseTensor(coordinates, values, (N, N, N), sign=1.0)
        builds.append(time.perf_counter() - began)
    candidates = own(f)
    seconds = interleaved(candidates, rounds=9, repeats=3)
    others = {"restpoint": candidates["dense x, 1 thread(s)"]}
    others |= peers(coordinates, values)
    agree(others, f.gradient(points(1.0)))
    against = interleaved(others, rounds=9, repeats=10 if count <= 10**6 else 1)
    mine = against["restpoint"]["median"]

    def fastest(library: str) -> float:
        return min(times["median"] for name, times in against.items() if library in name) / mine

    return {
        "ns per nonzero": {
            name: {key: 1e9 * value / nnz for key, value in times.items()}
            for name, times in (seconds | {f"peer: {n}": t for n, t in against.items()}).items()
        },
        "8 starts / 1 start": seconds["8 starts, 1 thread(s)"]["median"]
        / seconds["dense x, 1 thread(s)"]["median"],
        "64 starts / 1 start": seconds["64 starts, 1 thread(s)"]["median"]
        / seconds["dense x, 1 thread(s)"]["median"],
        "build seconds": min(builds),
        "build in gradients": min(builds) / mine,
        "times faster": {
            library: fastest(library)
            for library in (
                "pyttb",
                "pydata/sparse tensordot",
                "pydata/sparse unfoldings",
                "SciPy",
                "NumPy",
            )
        },
        "bytes per nonzero": f.kernel.nbytes / nnz,
    }


# Per nonzero, in ns on one thread, and against peers; pydata/sparse by its own tensordot (its unfoldings by hand, which
# no user writes, are reported too).
FLOORS = {
    "dense x": ("<=", 1.6),
    "density .1": ("<=", 0.8),
    "pyttb": (">=", 15.0),
    "pydata/sparse": (">=", 50.0),
}


def main() -> int:
    figures = {"nnz = 1e6": measured(10**6), "nnz = 1e7": measured(10**7)}
    found, asked = {}, {}
    for size, figure in figures.items():
        ns, times = figure["ns per nonzero"], figure["times faster"]
        own = {
            "dense x": ns["dense x, 1 thread(s)"]["median"],
            "density .1": ns["density .1, 1 thread(s)"]["median"],
            "pyttb": times["pyttb"],
            "pydata/sparse": times["pydata/sparse tensordot"],
        }
        found |= {f"{size}: {name}": value for name, value in own.items()}
        asked |= {f"{size}: {name}": floor for name, floor in FLOORS.items()}
    verdicts = judged(found, asked)
    write(figures | {"floors": verdicts})
    return missed(verdicts)


if __name__ == "__main__":
    sys.exit(main())
