"""The entries of a tensor, one by one and less some components: what a search looks at before it contracts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from restpoint.smooth import Multilinear, SparseTensor
from restpoint.smooth.multilinear import MultilinearForm

# Entries that are looked at together: temporaries stay in cache.
PIECE = 1_000_000

Component = tuple[float, tuple[np.ndarray, ...]]  # weight, one vector a mode


@dataclass(frozen=True)
class Entries:
    """A - sum_r w_r x_1r o ... o x_dr, never formed: ``tensor`` is dense, or ``index`` and ``values`` hold nonzeros."""

    sizes: tuple[int, ...]
    tensor: np.ndarray | None = None
    index: tuple[np.ndarray, ...] = ()
    values: np.ndarray | None = None
    less: tuple[Component, ...] = ()

    @classmethod
    def dense(cls, tensor: np.ndarray) -> Entries:
        """Those of an array without holes."""
        return cls(tensor.shape, tensor)

    @classmethod
    def of(cls, form: MultilinearForm) -> Entries | None:
        """Those of a form that has them at hand."""
        if isinstance(form, Multilinear):
            return cls.dense(form.A) if isinstance(form.A, np.ndarray) else None
        if isinstance(form, SparseTensor):
            kernel = form.kernel
            own = np.repeat(np.arange(kernel.sizes[kernel.own]), np.diff(kernel.pointers))
            modes = {kernel.own: own, **dict(zip(kernel.rest, kernel.indices, strict=True))}
            index = tuple(modes[m].astype(np.int64) for m in range(len(kernel.sizes)))
            return cls(kernel.sizes, None, index, kernel.values)
        return None

    def without(self, component: Component) -> Entries:
        """The same less one more component."""
        return replace(self, less=(*self.less, component))

    def norm2(self) -> float:
        """The sum of squares of the tensor itself."""
        return squared_norm(self.values if self.tensor is None else self.tensor)

    def at(self, index: tuple[np.ndarray, ...]) -> np.ndarray:
        """The entries at broadcast indices, of a dense tensor."""
        found = self.tensor[index].astype(np.float64)  # type: ignore[index]
        for weight, xs in self.less:
            model = weight * xs[0][index[0]]
            for x, i in zip(xs[1:], index[1:], strict=True):
                model = model * x[i]
            found -= model
        return found

    def fibres(self, index: tuple[np.ndarray, ...], mode: int) -> np.ndarray:
        """The fibres of ``mode`` through the entries at ``index``, one a row."""
        whole = np.arange(self.sizes[mode])[None, :]
        return self.at(tuple(whole if m == mode else i[:, None] for m, i in enumerate(index)))

    def strongest(self, count: int) -> tuple[np.ndarray, ...]:
        """Where the ``count`` entries of largest modulus are, or nearly so many, largest first."""
        if self.tensor is None:
            return self._strongest_nonzeros(count)
        rows = max(1, PIECE // max(1, self.tensor[0].size))
        least = self._probable(count)
        places, sizes = [], []
        for begin in range(0, self.sizes[0], rows):
            piece = np.abs(self._piece(begin, begin + rows)).ravel()
            kept = np.flatnonzero(piece >= least)
            if len(kept) > count:
                kept = kept[np.argpartition(piece[kept], -count)[-count:]]
            places.append(kept + begin * self.tensor[0].size)
            sizes.append(piece[kept])
        flat, size = np.concatenate(places), np.concatenate(sizes)
        order = np.argsort(-size, kind="stable")[:count]
        return tuple(np.unravel_index(flat[order], self.sizes))

    def _piece(self, begin: int, end: int) -> np.ndarray:
        piece = self.tensor[begin:end]  # type: ignore[index]
        for weight, xs in self.less:
            rows = np.flatnonzero(xs[0][begin:end])
            if not len(rows):
                continue
            others = [np.flatnonzero(x) for x in xs[1:]]
            block = weight * xs[0][begin:end][rows]
            for x, own in zip(xs[1:], others, strict=True):
                block = np.multiply.outer(block, x[own])
            piece = piece.astype(np.float64) if piece.base is not None else piece
            piece[np.ix_(rows, *others)] -= block
        return piece

    def _probable(self, count: int) -> float:
        """A modulus that about twice ``count`` entries reach, judged from a sample."""
        total = math.prod(self.sizes)
        if total <= PIECE or 4 * count >= total:
            return 0.0
        rng = np.random.default_rng(0)
        index = tuple(rng.integers(n, size=200_000) for n in self.sizes)
        sample = np.abs(self.at(index))
        return 0.9 * float(np.quantile(sample, 1.0 - min(1.0, 2.0 * count / total)))

    def _strongest_nonzeros(self, count: int) -> tuple[np.ndarray, ...]:
        left = self.values.astype(np.float64)  # type: ignore[union-attr]
        for weight, xs in self.less:
            model = np.full(left.shape, weight)
            for x, i in zip(xs, self.index, strict=True):
                model *= x[i]
            left = left - model
        size = np.abs(left)
        kept = (
            np.arange(size.size) if size.size <= count else np.argpartition(size, -count)[-count:]
        )
        order = kept[np.argsort(-size[kept], kind="stable")]
        return tuple(i[order] for i in self.index)

    @property
    def constant(self) -> bool:
        """Whether all entries of a dense tensor are one number other than 0."""
        if self.tensor is None or self.tensor.size == 1:
            return False
        first = self.tensor.flat[0]
        return bool(first != 0 and self.tensor.flat[-1] == first and np.all(self.tensor == first))


def squared_norm(array: np.ndarray | None) -> float:
    """The sum of squares in float64, read in pieces."""
    if array is None or array.size == 0:
        return 0.0
    if array.size <= PIECE or array.flags.c_contiguous or array.flags.f_contiguous:
        flat = array.ravel(order="K")
        pieces = (flat[i : i + PIECE] for i in range(0, flat.size, PIECE))
    else:
        step = max(1, PIECE // max(1, array[0].size))
        pieces = (array[i : i + step].ravel() for i in range(0, len(array), step))
    return math.fsum(float(np.vdot(p, p)) for p in (np.asarray(q, np.float64) for q in pieces))
