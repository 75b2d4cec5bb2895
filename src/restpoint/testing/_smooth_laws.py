"""What every smooth function must obey: yours too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import Array, convert, whole_number
from restpoint.errors import CapabilityError, ShapeError
from restpoint.sets import Set
from restpoint.smooth import Curvature, Facts, Smooth
from restpoint.testing import _door
from restpoint.testing._report import Inputs, at_most, equal, host, same_kind, unit

Point = list[np.ndarray]


def check_smooth(
    smooth: Any,
    sets: Sequence[Set] | Set,
    *,
    rng: np.random.Generator | int | None = None,
    pairs: int = 30,
) -> None:
    """Raise ``LawBroken`` if values, gradients and declared facts contradict each other on the sets.

    Gradients are compared with finite differences; the curvature inequality (paper, Assumption 1.1; theory E27),
    concavity and convexity are tried on random pairs and on pairs found by a search for large curvature; the lower
    bound is tried along conditional gradient steps. What is true passes, up to rounding; what is wrong is found only
    where the samples and the search look, so passing is evidence and not a proof.

    Parameters
    ----------
    smooth
        A ``Smooth``.
    sets
        One set per block, with parameters that carry no batch.
    pairs
        How many random pairs to try.

    >>> import numpy as np
    >>> from restpoint.sets import L2Ball
    >>> from restpoint.smooth import Quadratic
    >>> check_smooth(Quadratic(np.diag([1.0, -2.0])), L2Ball())
    """
    _door.piece(smooth, Smooth, "a Smooth")
    chosen = tuple(sets) if isinstance(sets, (tuple, list)) else (sets,)
    for s in chosen:
        _door.piece(s, Set, "a Set for each block (of a Block, its .set)")
    if len(chosen) != len(smooth.shapes):
        raise ShapeError(f"{len(smooth.shapes)} blocks, but {len(chosen)} sets; give one for each")
    for s, shape in zip(chosen, smooth.shapes, strict=True):
        s.check_shape(_door.shape_of(shape, s.event_ndim, type(s).__name__))
    rng, pairs = _door.stream(rng), whole_number("pairs", pairs, 1)
    laws = _SmoothLaws(smooth, chosen, rng)
    laws.kinds()
    laws.batches()
    if laws.facts.differentiable and smooth.differentiable:
        laws.derivatives()
    tried = [laws.random_pair() for _ in range(pairs)]
    tried += laws.curved_pairs()
    for x, y in tried:
        laws.inequalities(x, y)
    for _ in range(pairs):
        laws.cross()
    laws.lower_bound()
    laws.finite_sum()


@dataclass
class _SmoothLaws:
    """One function on one product of sets; everything is compared in NumPy float64."""

    smooth: Smooth
    sets: tuple[Set, ...]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.like: Array = np.zeros(()) if self.smooth.like is None else self.smooth.like
        self.facts: Facts = self.smooth.facts(self.sets)
        self.name = type(self.smooth).__name__
        self.blocks = range(len(self.sets))
        self.scale = max(
            1e-300, *(abs(self.value(self.point()) - self.value(self.point())) for _ in range(5))
        )

    def point(self) -> Point:
        """A random point of the product of the sets."""
        return [s.sample(self.rng, n) for s, n in zip(self.sets, self.smooth.shapes, strict=True)]

    def interior(self) -> Point:
        """A point away from the boundary: the mean of a few."""
        several = [self.point() for _ in range(6)]
        return [np.mean([x[i] for x in several], axis=0) for i in self.blocks]

    def value(self, xs: Point) -> float:
        """f as a number."""
        return float(host(self.smooth.value(tuple(convert(x, self.like) for x in xs))))

    def gradient(self, xs: Point) -> Point:
        """The gradient blocks as NumPy."""
        blocks = tuple(convert(x, self.like) for x in xs)
        return [host(g) for g in self.smooth.value_and_gradient(blocks)[1]]

    def tolerance(self, *values: float) -> float:
        """Rounding of a few evaluations."""
        size = sum(abs(v) for v in values) + self.scale
        return 1e3 * unit(self.like) * size * np.sqrt(sum(np.prod(n) for n in self.smooth.shapes))

    def kinds(self) -> None:
        """Library, dtype and shape; the several roads to a gradient agree; inputs stay as they are."""
        given, xs = Inputs(self.like), self.point()
        blocks = tuple(given.give(x) for x in xs)
        value, gradient = self.smooth.value_and_gradient(blocks)
        near = self.tolerance(float(host(value)))
        equal(self.smooth.value(blocks), value, near, f"{self.name}: value and value_and_gradient")
        same_kind(value, self.like, (), f"{self.name}.value")
        sweep = self.smooth.sweep(blocks)
        for i in self.blocks:
            same_kind(gradient[i], self.like, self.smooth.shapes[i], f"{self.name}: gradient {i}")
            close = (
                1e3 * unit(self.like) * (1e-300 + np.max(np.abs(host(gradient[i]))) + self.scale)
            )
            text = f"{self.name}: gradient of block {i}: "
            equal(self.smooth.partial(blocks, i), gradient[i], close, text + "partial differs")
            equal(sweep.partial(i), gradient[i], close, text + "sweep differs")
        self._check_rounding(blocks)
        given.check_untouched(self.name)

    def _check_rounding(self, blocks: tuple[Array, ...]) -> None:
        bounds = self.smooth.rounding(blocks)
        if bounds is None:
            return
        at_most(-host(bounds[0]), 0.0, 0.0, f"{self.name}.rounding of the value is negative")
        for i in self.blocks:
            text = f"{self.name}.rounding of gradient {i} is negative"
            at_most(-host(bounds[1][i]), 0.0, 0.0, text)

    def batches(self) -> None:
        """Leading axes give what the starts give one by one."""
        points = [self.point() for _ in range(4)]
        for batch in ((4,), (2, 2)):
            given = Inputs(self.like)
            blocks = tuple(
                given.give(np.stack([x[i] for x in points]).reshape(*batch, *self.smooth.shapes[i]))
                for i in self.blocks
            )
            value, gradient = self.smooth.value_and_gradient(blocks)
            same_kind(value, self.like, batch, f"{self.name}.value of a batch")
            given.check_untouched(f"{self.name} of a batch")
            for k, x in enumerate(points):
                text, alone = f"{self.name}: a batch differs from its starts", self.value(x)
                equal(host(value).ravel()[k], alone, self.tolerance(alone), text)
                for i, g in enumerate(self.gradient(x)):
                    flat = host(gradient[i]).reshape(4, *self.smooth.shapes[i])
                    close = 1e3 * unit(self.like) * (np.max(np.abs(g)) + self.scale)
                    equal(flat[k], g, close, text)

    def derivatives(self) -> None:
        """Central differences of fourth order along segments of S; the best of several widths counts."""
        for _ in range(5):
            x, y = self.random_pair()
            middle = [0.5 * (a + b) for a, b in zip(x, y, strict=True)]
            for moving in (None, *self.blocks):
                d = [
                    (b - a) if moving in (None, i) else 0.0 * a
                    for i, (a, b) in enumerate(zip(x, y, strict=True))
                ]
                slope = sum(
                    float(np.vdot(g, e)) for g, e in zip(self.gradient(middle), d, strict=True)
                )
                widths = (1e-1, 1e-2, 1e-3, 1e-4) if unit(self.like) < 1e-10 else (1e-1, 3e-2)
                error = min(abs(self._difference(middle, d, t) - slope) for t in widths)
                allowed = max(1e-6, 1e4 * unit(self.like)) * (abs(slope) + self.scale)
                allowed += self._declared_error(d)
                block = "" if moving is None else f" of block {moving}"
                at_most(error, 0.0, allowed, f"{self.name}: gradient{block} and finite differences")

    def _difference(self, x: Point, d: Point, t: float) -> float:
        def along(s: float) -> float:
            return self.value([a + s * b for a, b in zip(x, d, strict=True)])

        return (8 * (along(t) - along(-t)) - along(2 * t) + along(-2 * t)) / (12 * t)

    def random_pair(self) -> tuple[Point, Point]:
        """Two points of S, at a random distance."""
        x, y, t = self.point(), self.point(), self.rng.choice([1.0, 0.5, 0.1, 1e-2])
        if self.rng.random() < 0.5:
            x = self.interior()
        return x, [a + t * (b - a) for a, b in zip(x, y, strict=True)]

    def curved_pairs(self) -> list[tuple[Point, Point]]:
        """Pairs where f bends upwards most: the power method on differences of gradients, shifted."""
        found = []
        for moving in (None, *self.blocks):
            for _ in range(3):
                x = self.interior() if self.rng.random() < 0.7 else self.point()
                found += self._climb(x, moving)
        return found

    def _climb(self, x: Point, moving: int | None) -> list[tuple[Point, Point]]:
        free = [moving in (None, i) for i in self.blocks]
        start = [self.rng.standard_normal(a.shape) * f for a, f in zip(x, free, strict=True)]
        y = self._moved(x, start)
        base, shift, found = self.gradient(x), 0.0, []
        for _ in range(60):
            d = [b - a for a, b in zip(x, y, strict=True)]
            length = np.sqrt(sum(np.sum(e**2) for e in d))
            if not length > 0:
                break
            change = [g - h for g, h in zip(self.gradient(y), base, strict=True)]
            # A shift by the largest bend seen makes the upward direction the dominant one.
            shift = max(shift, np.sqrt(sum(np.sum(e**2) for e in change)) / length)
            y = self._moved(
                x, [(c + shift * e) * f for c, e, f in zip(change, d, free, strict=True)]
            )
            found = [(x, y), (y, x)]
        return found

    def _moved(self, x: Point, d: Point) -> Point:
        """The point of S in direction d from x: a step of a tenth of the diameter, put back into S."""
        size = np.sqrt(sum(np.sum(e**2) for e in d))
        y = []
        for a, e, s in zip(x, d, self.sets, strict=True):
            step = 0.1 * float(host(s.diameter(2.0, a.shape))) * e / (size if size > 0 else 1.0)
            try:
                y.append(host(s.project(a + step)))
            except CapabilityError:
                vertex = host(s.sample(self.rng, a.shape))
                y.append(a + 0.1 * (vertex - a) * bool(np.any(e)))
        return y

    def inequalities(self, x: Point, y: Point) -> None:
        """Every declared inequality between two points, jointly and with one block moving."""
        facts = self.facts
        self._between(x, y, facts.joint, concave=facts.concave, convex=facts.convex, law="joint")
        for i in self.blocks:
            alone = [y[j] if j == i else x[j] for j in self.blocks]
            law = f"blockwise ({i})"
            bent = facts.concave or facts.block_concave
            self._between(x, alone, facts.blockwise, concave=bent, convex=facts.convex, law=law)

    def _between(
        self,
        x: Point,
        y: Point,
        curvature: Curvature | None,
        *,
        concave: bool,
        convex: bool,
        law: str,
    ) -> None:
        before, after, gradient = self.value(x), self.value(y), self.gradient(x)
        d = [b - a for a, b in zip(x, y, strict=True)]
        linear = before + sum(float(np.vdot(g, e)) for g, e in zip(gradient, d, strict=True))
        sizes = [float(np.vdot(np.abs(g), np.abs(e))) for g, e in zip(gradient, d, strict=True)]
        near = self.tolerance(before, after, *sizes) + self._declared_error(d)
        if concave:
            at_most(after, linear, near, f"{self.name}: {law}: not concave")
        if convex:
            at_most(linear, after, near, f"{self.name}: {law}: not convex")
        if curvature is not None:
            room = sum(
                0.5 * constant * float(np.sum(np.abs(e) ** curvature.p))
                for constant, e in zip(curvature.constants, d, strict=True)
            )
            text = f"{self.name}: {law} curvature constant {curvature.constants} is too small"
            at_most(after - linear, room, near + 1e-9 * room, text)

    def _declared_error(self, d: Point) -> float:
        """What declared errors of the gradient can do to a slope along d (theory A5)."""
        errors = self.smooth.gradient_errors or (0.0,) * len(d)
        return sum(eta * float(np.linalg.norm(e)) for eta, e in zip(errors, d, strict=True))

    def cross(self) -> None:
        """The gradient of a block changes no faster than declared while that block stays (theory A7)."""
        declared = self.facts.cross
        if declared is None:
            return
        x, y = self.random_pair()
        p, q = declared.p, declared.p / (declared.p - 1.0)
        errors = self.smooth.gradient_errors or (0.0,) * len(x)
        for i, constant in enumerate(declared.constants):
            moved = [x[j] if j == i else y[j] for j in self.blocks]
            before, after = self.gradient(x)[i], self.gradient(moved)[i]
            change = float(np.sum(np.abs(after - before) ** q) ** (1.0 / q))
            far = sum(float(np.sum(np.abs(b - a) ** p)) for a, b in zip(x, moved, strict=True))
            near = 1e3 * unit(self.like) * (float(np.max(np.abs(before))) + self.scale)
            text = f"{self.name}: cross constant {declared.constants} is too small for block {i}"
            at_most(change, constant * far ** (1.0 / q), near + 2.0 * errors[i], text)

    def lower_bound(self) -> None:
        """No sample, and no point of a few descents, lies below the declared bound."""
        bound = self.facts.lower_bound
        if bound is None:
            return
        for _ in range(4):
            x = self.point()
            for k in range(25):
                value = self.value(x)
                text = f"{self.name}: f is below its declared lower bound"
                at_most(bound, value, self.tolerance(value, bound), text)
                try:
                    y = [
                        host(s.extreme(g)) for s, g in zip(self.sets, self.gradient(x), strict=True)
                    ]
                except CapabilityError:
                    break
                x = [a + 2.0 / (k + 2.0) * (b - a) for a, b in zip(x, y, strict=True)]

    def finite_sum(self) -> None:
        """All summands together give the gradient."""
        terms = self.smooth.terms
        if terms is None:
            return
        x = self.point()
        blocks = tuple(convert(a, self.like) for a in x)
        whole = self.smooth.batch_gradient(blocks, np.arange(terms))
        for have, want in zip(whole, self.gradient(x), strict=True):
            close = 1e3 * unit(self.like) * terms * (np.max(np.abs(want)) + self.scale)
            equal(
                have, want, close, f"{self.name}.batch_gradient over all terms is not the gradient"
            )
