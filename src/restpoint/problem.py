"""The problem: a differentiable function of several blocks, a set and a penalty for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from restpoint.array import (
    Array,
    Parametric,
    asarray,
    convert,
    expand,
    is_array,
    namespace,
    to_host,
    unit_roundoff,
)
from restpoint.errors import CapabilityError, DataError, ShapeError, described
from restpoint.oracles import Oracle, declared, find
from restpoint.penalties import Penalty, Zero
from restpoint.sets import Set
from restpoint.smooth import Facts, Smooth

Blocks = tuple[Array, ...]

# The largest diameter of a set, and one over the smallest. Further out, squares overflow or underflow on the way to a
# step or a constant, and what is said about them would be false.
LARGEST_DIAMETER = {"float64": 1e140, "float32": 1e17}


@dataclass(frozen=True, init=False)
class Block(Parametric):
    """One block of variables: x in ``set``, penalised by ``penalty`` (nothing if None).

    ``oracle`` answers the two convex subproblems of the pair; by default the rule that fits is found.

    >>> import restpoint as rp
    >>> rp.Block(rp.sets.L2Ball(1.0), rp.penalties.L1(0.1)).oracle.kind
    'exact oracle'
    """

    set: Set
    penalty: Penalty
    oracle: Oracle

    def __init__(self, set: Set, penalty: Penalty | None = None, oracle: Oracle | None = None):
        if not isinstance(set, Set):
            raise CapabilityError(
                f"set must be a restpoint.sets.Set, got {described(set)}; "
                "for your own set use Block.from_oracle(...)"
            )
        if penalty is None:
            penalty = _no_penalty(set)
        if not isinstance(penalty, Penalty):
            raise CapabilityError(
                f"penalty must be a restpoint.penalties.Penalty, got {described(penalty)}; "
                "for your own penalty use Block.from_oracle(...)"
            )
        if set.event_ndim != penalty.event_ndim:
            raise ShapeError(
                f"{type(set).__name__} is over {set.event_ndim} axes, {type(penalty).__name__} over "
                f"{penalty.event_ndim}; give both the same event_ndim"
            )
        if oracle is not None and not isinstance(oracle, Oracle):
            raise CapabilityError(
                f"oracle must be a restpoint.oracles.Oracle, got {described(oracle)}; "
                "plain functions go to Block.from_oracle(...)"
            )
        if oracle is not None and (oracle.set != set or oracle.penalty != penalty):
            raise DataError(
                f"oracle answers for {oracle.set} and {oracle.penalty}, but the block is {set} and {penalty}: "
                "its certificates would speak of another problem; build it from the set and penalty of the block"
            )
        object.__setattr__(self, "set", set)
        object.__setattr__(self, "penalty", penalty)
        object.__setattr__(self, "oracle", find(set, penalty) if oracle is None else oracle)

    @classmethod
    def from_oracle(
        cls,
        linear: Callable[..., Any],
        prox: Callable[..., Any] | None = None,
        *,
        diameter: float | Callable[[float], float],
        violation: Callable[..., Any] | None = None,
        lower_bound: Callable[..., Any] | None = None,
        **more: Any,
    ) -> Block:
        """A block from a researcher's own functions of one point.

        ``linear(g)``             a minimiser y of g'y + h(y) over S
        ``prox(g, z, weight, p)`` a minimiser of g'(y - z) + (weight/2) ||y - z||_p^p + h(y) over S
        ``diameter``              diam_p(S) or an upper bound: a number for every p, or a function of p
        ``violation(x)``          how far x is from S; without it feasibility is not checked, but for gross violations
        ``lower_bound(g)``        a lower bound on the minimum of g'y + h(y); without it certificates
                                  rest on your word that ``linear`` is exact ("declared oracle")

        Further: ``value(x)`` = h(x) (default 0), ``sample(rng, shape)``, ``project(x)``, and
        ``batched=True`` if your functions take leading batch axes.
        """
        unknown = [name for name in more if name not in signature(declared).parameters]
        if unknown:
            known = ", ".join(signature(declared).parameters)
            raise CapabilityError(
                f"Block.from_oracle has no argument {unknown[0]!r}; it takes {known}"
            )
        oracle = declared(
            linear,
            prox=prox,
            diameter=diameter,
            violation=violation,
            lower_bound=lower_bound,
            **more,
        )
        return cls(oracle.set, oracle.penalty, oracle)


@dataclass(frozen=True, init=False)
class Problem(Parametric):
    r"""minimise Phi(x) = f(x_1, ..., x_d) + sum_i h_i(x_i) subject to x_i in S_i.

    ``smooth`` is f, ``blocks`` the (set, penalty) of each block; one block may be given without a list.
    ``xs`` is a tuple of blocks of shape ``(*batch, *shapes[i])``; a single array will do for one block.

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> float(problem.value(np.array([0.0, 1.0])))
    -1.0
    """

    smooth: Smooth
    blocks: tuple[Block, ...]

    def __init__(self, smooth: Smooth, blocks: Block | Sequence[Block]):
        if not isinstance(smooth, Smooth):
            raise CapabilityError(
                f"smooth must be a restpoint.smooth.Smooth, got {described(smooth)}; wrap your own "
                "function as restpoint.smooth.Function(value, gradient, shapes=...)"
            )
        if not isinstance(blocks, (Block, tuple, list)):
            raise CapabilityError(
                f"blocks must be a restpoint.Block or a list of them, got {described(blocks)}; "
                "write Block(set, penalty)"
            )
        chosen = (blocks,) if isinstance(blocks, Block) else tuple(blocks)
        for i, block in enumerate(chosen):
            if not isinstance(block, Block):
                raise CapabilityError(
                    f"blocks[{i}] must be a restpoint.Block, got {described(block)}; "
                    "write Block(set, penalty)"
                )
        if len(chosen) != len(smooth.shapes):
            raise ShapeError(
                f"f has {len(smooth.shapes)} blocks of shapes {smooth.shapes}, but {len(chosen)} "
                "blocks were given; give one Block per block of f"
            )
        for i, (block, shape) in enumerate(zip(chosen, smooth.shapes, strict=True)):
            if block.set.event_ndim != len(shape):
                raise ShapeError(
                    f"block {i} of f has shape {shape}, but {type(block.set).__name__} is over "
                    f"{block.set.event_ndim} axes; give the set (and penalty) event_ndim={len(shape)}"
                )
            block.set.check_shape(shape)
            block.penalty.check_shape(shape)
        object.__setattr__(self, "smooth", smooth)
        object.__setattr__(self, "blocks", chosen)
        _ = self.batch_shape  # parameters of different blocks must agree
        self.check_scale("float64")

    def with_blocks(self, blocks: tuple[Block, ...]) -> Problem:
        """The same f with other blocks of the same shapes, which are known to fit: nothing is checked again."""
        copy = object.__new__(Problem)
        object.__setattr__(copy, "smooth", self.smooth)
        object.__setattr__(copy, "blocks", blocks)
        return copy

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The event shape of every block."""
        return self.smooth.shapes

    @property
    def sets(self) -> tuple[Set, ...]:
        """The set of every block."""
        return tuple(block.set for block in self.blocks)

    def check_scale(self, precision: str) -> None:
        """Refuse sets too large or too small to compute with; a single point is neither."""
        most = LARGEST_DIAMETER[precision]
        for i, (s, shape) in enumerate(zip(self.sets, self.shapes, strict=True)):
            with np.errstate(all="ignore"):
                diameter = s.diameter(2.0, shape)
            sizes = np.asarray(to_host(diameter) if is_array(diameter) else diameter)
            wrong = (sizes > most) | ((sizes > 0.0) & (sizes < 1.0 / most))
            if np.any(wrong):
                raise DataError(
                    f"block {i}: {type(s).__name__} has diameter {float(sizes[wrong].flat[0]):.3g}, whose powers "
                    f"{precision} cannot hold; rescale the variables so that it lies between {1.0 / most:.0e} and "
                    f"{most:.0e}"
                    + ("" if precision == "float64" else ", or give float64 data and x0")
                )

    def facts(self) -> Facts:
        """What f declares on these sets; asked once."""
        return self._facts

    @cached_property
    def _facts(self) -> Facts:
        with np.errstate(all="ignore"):  # what overflows is unknown, and said to be
            return self.smooth.facts(self.sets)

    def value(self, xs: Array | Blocks) -> Array:
        """Phi(xs) per start."""
        problem, xs, batch = self.aligned(xs)
        total = problem.smooth.value(xs)
        for block, x in zip(problem.blocks, xs, strict=True):
            total = total + block.penalty.value(x)
        return namespace(xs[0]).reshape(total, batch)

    def violation(self, xs: Array | Blocks) -> Array:
        """The largest distance of a block from its set, per start."""
        problem, xs, batch = self.aligned(xs)
        xp, worst = namespace(xs[0]), 0.0
        for block, x in zip(problem.blocks, xs, strict=True):
            worst = xp.maximum(block.set.violation(x), worst)
        return xp.reshape(worst, batch)

    def project(self, xs: Array | Blocks) -> Blocks:
        """Every block projected onto its set."""
        problem, xs, batch = self.aligned(xs)
        return tuple(
            namespace(x).reshape(s.project(x), (*batch, *shape))
            for s, x, shape in zip(problem.sets, xs, self.shapes, strict=True)
        )

    def mirrored(self, xs: Array | Blocks) -> Blocks:
        """``xs`` itself, or its mirror image in one block, per start: whichever has the lower Phi.

        Where f is odd in a block (a multilinear form is), -x_i in place of x_i turns f into -f. Of the two points the
        better one is taken if its block is in its set; without such a block ``xs`` comes back. Random starts of a
        sparse tensor problem end at zero mostly where f is positive.
        """
        problem, xs, batch = self.aligned(xs)
        k = problem.facts().odd_block
        if k is not None:
            block, x = problem.blocks[k], xs[k]
            f = problem.smooth.value(xs)
            lower = block.penalty.value(-x) - f < block.penalty.value(x) + f
            better = lower & block.set.inside(-x)
            x = namespace(x).where(expand(better, len(self.shapes[k])), -x, x)
            xs = (*xs[:k], x, *xs[k + 1 :])
        return tuple(
            namespace(x).reshape(x, (*batch, *shape))
            for x, shape in zip(xs, self.shapes, strict=True)
        )

    def relative_violations(
        self,
        xs: Blocks,
        given: Blocks | None = None,
        violations: Sequence[np.ndarray] | None = None,
    ) -> tuple[np.ndarray, ...]:
        """The violation of every block in units of its set's radius, diam_2 / 2, on the host.

        Less what rounding the entries of a point of that set may cost: far from the origin, a small set has no
        floating-point numbers nearer than that. A single point allows nothing else. ``given`` shows the dtypes in
        which the points were found, if not those of ``xs``; ``violations`` are those of the sets, if known already.
        """
        found = []
        if violations is None:
            violations = [s.violation(x) for s, x in zip(self.sets, xs, strict=True)]
        for s, shape, point, violation in zip(
            self.sets, self.shapes, given or xs, violations, strict=True
        ):
            far, size, diameter = (
                np.asarray(to_host(v) if is_array(v) else v, dtype=np.float64)
                for v in (violation, s.norm_bound(shape), s.diameter(2.0, shape))
            )
            far = np.maximum(far - 8.0 * unit_roundoff(point) * size, 0.0)  # NaN stays NaN
            alone = np.where(far == 0.0, 0.0, np.inf)
            radius = np.where(diameter > 0.0, 0.5 * diameter, 1.0)
            found.append(np.where(diameter > 0.0, far / radius, alone))
        return tuple(found)

    def as_blocks(self, xs: Any, name: str = "xs") -> Blocks:
        """A user's point at the door: a tuple of floating arrays of the right shapes."""
        if not is_array(xs) and hasattr(xs, "xs"):
            kind = type(xs).__name__
            raise DataError(f"{name} is a {kind}, not a point; pass its point, {kind.lower()}.xs")
        if not isinstance(xs, (tuple, list)) or (len(self.shapes) == 1 and _is_one_block(xs)):
            xs = (xs,)
        if len(xs) != len(self.shapes):
            raise ShapeError(
                f"{name} has {len(xs)} blocks; the problem has {len(self.shapes)}, of shapes "
                f"{list(self.shapes)}: give a tuple with one array per block"
            )
        arrays = []
        for i, (x, shape) in enumerate(zip(xs, self.shapes, strict=True)):
            array = asarray(f"{name}[{i}]", x)
            if tuple(array.shape[max(0, array.ndim - len(shape)) :]) != tuple(shape):
                raise ShapeError(
                    f"{name}[{i}] has shape {tuple(array.shape)}; expected {tuple(shape)}, "
                    "or that with leading axes for several starts"
                )
            arrays.append(array)
        return tuple(arrays)

    def batch_of(self, xs: Blocks, name: str = "xs") -> tuple[int, ...]:
        """The batch shape that the blocks ``xs`` and the parameters stand for: (*own, *starts)."""
        own = self.batch_shape
        leading = [x.shape[: x.ndim - len(s)] for x, s in zip(xs, self.shapes, strict=True)]
        try:
            batch = np.broadcast_shapes(*leading)
        except ValueError as error:
            raise ShapeError(
                f"the blocks of {name} carry different leading axes {leading}; give all of them the same starts"
            ) from error
        if 0 in batch:
            raise DataError(f"{name} holds no point: its batch shape is {batch}; give at least one")
        if own and batch and batch[: len(own)] != own:
            raise ShapeError(
                f"{name} has batch shape {batch}, but the parameters of the sets and penalties carry {own}; "
                f"expected {own}, or {own} followed by starts: one or several points for each problem of the batch"
            )
        return batch or own

    def aligned(
        self, xs: Array | Blocks, name: str = "xs"
    ) -> tuple[Problem, Blocks, tuple[int, ...]]:
        """The problem and a user's point with axes that fit each other, and the batch shape they stand for.

        Parameters of shape (*own) meet points of batch shape (*own, *starts): NumPy would align their last axes,
        so both are laid out over one flat axis where they differ. The problem's data join the library of the points.
        """
        xs = self.as_blocks(xs, name)
        like = common(xs)
        xs, problem = tuple(convert(x, like) for x in xs), self.converted(like)
        own, batch = self.batch_shape, self.batch_of(xs, name)
        same = all(
            x.shape[: x.ndim - len(s)] == batch for x, s in zip(xs, self.shapes, strict=True)
        )
        if same and own in ((), batch):
            return problem, xs, batch
        return problem.laid_out(batch), self.spread(xs, batch), batch

    def laid_out(self, batch: tuple[int, ...]) -> Problem:
        """The problem for every start of ``batch`` = (*own, *starts), parameters on one flat axis."""
        own = self.batch_shape
        if own == ():
            return self
        flat, repeats = self.flatten(own), math.prod(batch[len(own) :])
        return flat if repeats == 1 else flat.take(np.repeat(np.arange(math.prod(own)), repeats))

    def spread(self, xs: Blocks, batch: tuple[int, ...]) -> Blocks:
        """The blocks for every start of ``batch``, on one flat axis."""
        flat = []
        for x, shape in zip(xs, self.shapes, strict=True):
            xp, leading = namespace(x), x.shape[: x.ndim - len(shape)]
            missing = len(batch) - len(leading) if leading else 0
            aligned = xp.reshape(x, (*leading, *(1,) * missing, *shape))
            full = xp.broadcast_to(aligned, (*batch, *shape))
            flat.append(xp.reshape(full, (math.prod(batch), *shape)))
        return tuple(flat)

    def converted(self, like: Array) -> Problem:
        """The same problem with all its arrays in the library, dtype and device of ``like``."""
        other = super().converted(like)
        smooth = self.smooth.converted(like)
        if smooth is self.smooth:
            return other
        copy = other.with_blocks(other.blocks)
        object.__setattr__(copy, "smooth", smooth)
        return copy


def _no_penalty(set: Set) -> Penalty:
    return Zero(event_ndim=set.event_ndim)


def common(xs: Blocks) -> Array:
    """An array that shows the library, device and dtype of all blocks: float64 where they differ."""
    if all(x.dtype == xs[0].dtype for x in xs):
        return xs[0]
    xp = namespace(*xs)
    return next(x for x in xs if x.dtype == xp.float64)


def _is_one_block(xs: Any) -> bool:
    """Whether a list, where one block is expected, is that block written out rather than a list of blocks."""
    return isinstance(xs, list) and not (len(xs) == 1 and is_array(xs[0]))
