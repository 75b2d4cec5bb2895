"""Multilinear forms: one tensor, a vector for each of its modes."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.array import Array, gamma, inner, namespace, product_up, real_number, whole_number
from restpoint.errors import DataError, ShapeError, described
from restpoint.kernels import Kept, Kernel, Vectors, dense
from restpoint.smooth import _bounds, _checks
from restpoint.smooth._rounding import SLACK, underflow
from restpoint.smooth.base import Blocks, Curvature, Facts, Smooth, Sweep

if TYPE_CHECKING:
    from restpoint.sets import Set


# What tensors that are not dense can be told by, in the libraries in use, and the form for them.
OTHER_FORMS = {
    "toarray": "SparseTensor",
    "todense": "SparseTensor",
    "subs": "SparseTensor",
    "factors": "FactoredTensor",
    "factor_matrices": "FactoredTensor",
}


class MultilinearForm(Smooth):
    r"""f(x) = sign A(x_{b(1)}, ..., x_{b(d)}) for a tensor that a kernel contracts; b(m) is the block of mode m.

    Untied (every mode has its own block) f is linear in every block: blockwise constants 0, block-concave (theory A6).
    With size = sigma prod_m R_{b(m)}, R_k the largest norm in set k and sigma >= the spectral norm of A, the Hessian
    satisfies |v'H v| <= size sum over modes a != b of t_a t_b, t_m = ||v_{b(m)}|| / R_{b(m)}. Hence, p = 2, with m_k
    the number of modes of block k: joint constants (d - 1) m_k size / R_k^2 (theory E31 for m_k = 1 and R_k = 1),
    blockwise (m_k - 1) m_k size / R_k^2, across blocks (theory A7) the root of sum over j != k of
    (m_k m_j size / (R_k R_j))^2, and f >= -size.
    """

    def __init__(self, kernel: Kernel, sign: float = -1.0, tied: Sequence[int] | None = None):
        expected = "-1.0 or 1.0 (scale the tensor for other factors)"
        self.kernel, self.sign = kernel, real_number("sign", sign, expected)
        if self.sign not in (-1.0, 1.0):
            raise DataError(f"sign must be {expected}, got {sign!r}")
        self.block_of = _blocks_of_modes(kernel.sizes, tied)
        self.modes_of = tuple(
            tuple(m for m, k in enumerate(self.block_of) if k == block)
            for block in range(max(self.block_of) + 1)
        )
        self.shapes = tuple((kernel.sizes[modes[0]],) for modes in self.modes_of)
        self.untied = len(self.shapes) == len(kernel.sizes)

    @property
    def like(self) -> Array:
        return self.kernel.like

    @property
    def numbers_a_start(self) -> int:
        return self.kernel.numbers_a_start

    def converted(self, like: Array) -> MultilinearForm:
        kernel = self.kernel.converted(like)
        if kernel is self.kernel:
            return self
        twin = copy.copy(self)
        twin.kernel = kernel
        return twin

    def value(self, xs: Blocks) -> Array:
        return self.sign * self.kernel.value(self._vectors(xs))

    def value_and_gradient(self, xs: Blocks) -> tuple[Array, Blocks]:
        partials = self._signed(self.kernel.all_partials(self._vectors(xs)))
        return inner(xs[0], partials[0]), self._collected(partials)

    def gradient(self, xs: Blocks) -> Blocks:
        return self._collected(self._signed(self.kernel.all_partials(self._vectors(xs))))

    def partial(self, xs: Blocks, i: int) -> Array:
        return _FormSweep(self, xs).partial(i)

    def sweep(self, xs: Blocks, carried: Any = None) -> Sweep:
        """Keeps what the kernel keeps: for dense tensors one read for each half of the modes."""
        return _FormSweep(self, xs, carried)

    def engine(self, xs: Blocks) -> str:
        return f"{self.kernel.name}: {self.kernel.describe(self._vectors(xs))}"

    def facts(self, sets: Sequence[Set]) -> Facts:
        d = len(self.block_of)
        radii = [_bounds.largest_norm(s, n) for s, n in zip(sets, self.shapes, strict=True)]
        counts = [len(modes) for modes in self.modes_of]
        sigma = self.kernel.spectral_bound()
        of_modes = [radii[k] for k in self.block_of]
        joint, blockwise = (
            tuple(
                product_up(factor, m, sigma, *of_modes, over=(r, r)) if factor else 0.0
                for factor, m, r in zip(factors, counts, radii, strict=True)
            )
            for factors in ([d - 1] * len(counts), [m - 1 for m in counts])
        )
        size = product_up(sigma, *of_modes)
        return Facts(
            joint=_finite(joint),
            blockwise=_finite(blockwise),
            cross=_finite(self._cross(sigma, radii)),
            block_concave=self.untied,
            odd_block=next((k for k, m in enumerate(self.modes_of) if len(m) % 2), None),
            lower_bound=-size if math.isfinite(size) else None,
        )

    def _cross(self, sigma: float, radii: Sequence[float]) -> tuple[float, ...]:
        """||H_ij|| <= m_i m_j size / (R_i R_j) for blocks i != j; all together the root of the sum of their squares."""
        of_modes = [radii[k] for k in self.block_of]
        counts = [len(modes) for modes in self.modes_of]
        found = []
        for i, m in enumerate(counts):
            parts = [
                product_up(m, n, sigma, *of_modes, over=(radii[i], radii[j]))
                for j, n in enumerate(counts)
                if j != i
            ]
            found.append(math.hypot(*parts) * (1.0 + 1e-14))
        return tuple(found)

    def rounding(self, xs: Blocks) -> tuple[Array, Blocks] | None:
        """gamma_k |A|(|x|) per entry, k the summation depth that the kernel declares, plus the sum over tied modes."""
        if not self.kernel.in_double(xs):
            return None
        xp = namespace(*xs)
        vectors = tuple(xp.abs(x) for x in self._vectors(xs))
        terms = self.kernel.magnitudes(vectors)
        tiny = self._underflow(vectors)
        entries = tuple(
            SLACK * gamma(self.kernel.depth(m) + len(self.modes_of[self.block_of[m]])) * term
            + tiny[..., None]
            for m, term in enumerate(terms)
        )
        depth = self.kernel.depth(0) + self.kernel.sizes[0]
        value = SLACK * gamma(depth) * inner(vectors[0], terms[0])
        return value + tiny * (1.0 + xp.sum(vectors[0], axis=-1)), self._collected(entries)

    def _vectors(self, xs: Blocks) -> Vectors:
        """One vector for each mode."""
        return xs if self.untied else tuple(xs[k] for k in self.block_of)

    def _signed(self, partials: Vectors) -> Vectors:
        return partials if self.sign == 1.0 else tuple(-partial for partial in partials)

    def _collected(self, partials: Vectors) -> Blocks:
        """The gradient of each block: the sum over its modes."""
        if self.untied:
            return partials
        return tuple(reduce(_add, (partials[m] for m in modes)) for modes in self.modes_of)

    def _underflow(self, magnitudes: Vectors) -> Array:
        """What underflowing products can lose in any gradient entry, however large the other factors are."""
        xp = namespace(*magnitudes)
        growth = reduce(
            lambda a, b: a * b, (1.0 + xp.sum(magnitude, axis=-1) for magnitude in magnitudes)
        )
        operations = 8 * sum(self.kernel.depth(m) + n for m, n in enumerate(self.kernel.sizes))
        return underflow(magnitudes[0], operations) * self.kernel.amplification() * growth


class Multilinear(MultilinearForm):
    r"""f(x_1, ..., x_d) = sign A(x_1, ..., x_d) of a dense tensor, d >= 2, sign = -1 (maximise the form) or 1.

    ``tied=(0, 0, 1)`` gives modes 0 and 1 the same vector x_0 and mode 2 the vector x_1. Constants and bounds: see
    ``MultilinearForm``; the spectral norm of A is bounded by that of its unfoldings, when first asked for.

    A is not copied, whatever its strides; float32 stays float32, and float64 vectors are contracted with it in float64.
    A name of a .npy file is mapped into memory: it is read piece by piece and may be larger than memory. All gradients
    together cost one read of A, a sweep over the blocks two, and less where the blocks are sparse: see
    ``restpoint.kernels.Dense``. Arrays of other libraries go through matrix products, ``restpoint.kernels.Reference``.

    >>> import numpy as np
    >>> f = Multilinear([[1.0, 0.0], [0.0, 2.0]])
    >>> value, (first, second) = f.value_and_gradient((np.array([1.0, 1.0]), np.array([3.0, 4.0])))
    >>> float(value), first, second
    (-11.0, array([-3., -8.]), array([-1., -2.]))
    >>> quadratic = Multilinear([[1.0, 0.0], [0.0, 2.0]], sign=1.0, tied=(0, 0))
    >>> float(quadratic.value((np.array([3.0, 1.0]),)))
    11.0
    """

    def __init__(self, A: Any, sign: float = -1.0, *, tied: Sequence[int] | None = None) -> None:
        if isinstance(A, (str, Path)):
            A = _checks.memory_mapped("A", A)
        for attribute, form in OTHER_FORMS.items():
            if hasattr(A, attribute):
                raise DataError(
                    f"A is not dense ({described(A)}); expected an array of all entries: give {form}(A) instead"
                )
        super().__init__(dense(_checks.tensor("A", A, min_order=2)), sign, tied)

    @property
    def A(self) -> Array:
        """The tensor."""
        return self.kernel.tensor  # type: ignore[attr-defined]


class _FormSweep(Sweep):
    """Partial gradients through the kernel's kept products."""

    smooth: MultilinearForm

    def __init__(self, smooth: MultilinearForm, xs: Blocks, carried: Any = None) -> None:
        super().__init__(smooth, xs)
        self._kept: Kept = smooth.kernel.keep(smooth._vectors(xs), carried)
        self._newest: tuple[int, Array] | None = None  # a block and its gradient, while it is true

    def partial(self, i: int) -> Array:
        form = self.smooth
        partial = form.sign * reduce(_add, (self._kept.partial(m) for m in form.modes_of[i]))
        self.spent = self._kept.spent
        self._newest = (i, partial)
        return partial

    def value(self) -> Array | None:
        """x_i'grad_i f, f being linear in block i."""
        if self._newest is None or not self.smooth.untied:
            return None
        i, partial = self._newest
        return inner(self.xs[i], partial)

    def value_and_gradient(self) -> tuple[Array, Blocks]:
        form = self.smooth
        partials = form._signed(self._kept.all_partials())
        self.spent = self._kept.spent
        return inner(self.xs[0], partials[0]), form._collected(partials)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return self._kept.groups if self.smooth.untied else super().groups

    @property
    def carried(self) -> Any:
        return self._kept.carried

    def update(self, i: int, x: Array) -> None:
        if self._newest is not None and self._newest[0] != i and x is not self.xs[i]:
            self._newest = None
        super().update(i, x)
        for m in self.smooth.modes_of[i]:
            self._kept.update(m, x)


def _blocks_of_modes(sizes: tuple[int, ...], tied: Sequence[int] | None) -> tuple[int, ...]:
    """The block of every mode: 0, 1, 2, ... in order of appearance, equal sizes where tied."""
    if tied is None:
        return tuple(range(len(sizes)))
    if not isinstance(tied, (tuple, list, np.ndarray)) or np.ndim(tied) != 1:
        raise DataError(f"tied must be a list of block numbers, one per mode, got {tied!r}")
    blocks = tuple(whole_number(f"tied[{m}]", block, 0) for m, block in enumerate(tied))
    if len(blocks) != len(sizes):
        raise ShapeError(f"tied has {len(blocks)} entries; A has {len(sizes)} modes")
    firsts = list(dict.fromkeys(blocks))
    if firsts != list(range(len(firsts))):
        raise DataError(
            f"tied must number the blocks 0, 1, 2, ... in order of appearance, got {blocks}"
        )
    for block in firsts:
        found = {n for n, k in zip(sizes, blocks, strict=True) if k == block}
        if len(found) > 1:
            raise ShapeError(f"tied modes must have one size; block {block} has {sorted(found)}")
    return blocks


def _finite(constants: tuple[float, ...]) -> Curvature | None:
    return Curvature(constants) if all(map(math.isfinite, constants)) else None


def _add(a: Array, b: Array) -> Array:
    return a + b
