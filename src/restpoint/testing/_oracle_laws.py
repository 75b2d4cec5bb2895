"""What every oracle must obey: yours too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from restpoint.array import Array, real_number, truth
from restpoint.errors import DataError, EvaluationError
from restpoint.oracles import Answer, DeclaredOracle, Oracle
from restpoint.testing import _door
from restpoint.testing._pieces import (
    leading_shapes,
    neighbours,
    on_host,
    p_norm,
    pool,
    samples,
)
from restpoint.testing._report import (
    Inputs,
    LawBroken,
    at_most,
    equal,
    gradients,
    host,
    same_kind,
    unit,
)


def check_oracle(
    oracle: Any,
    shape: tuple[int, ...],
    *,
    p: float | Sequence[float] = (2.0,),
    rng: np.random.Generator | int | None = None,
    like: Array | None = None,
    scale: float = 1.0,
    exact: bool | None = None,
) -> None:
    """Raise ``LawBroken`` if an oracle (or the oracle of a block) can be refuted.

    Its points must lie in the set and have the values claimed; no sample, vertex, mixture, neighbour or other
    answer of its own may lie below the lower bound, or have a smaller value if the oracle is exact, or be
    further away than the diameter; batches must equal their starts one by one; weight 0 must be the linear oracle.

    Parameters
    ----------
    oracle
        An ``Oracle``, or anything with one as ``.oracle``, such as a ``Block``.
    shape
        The shape of one block.
    p
        The powers to check ``prox`` for, where the oracle says that it can.
    like
        An array that shows the library and dtype to check with; NumPy float64 by default.
    scale
        The size of the gradients.
    exact
        Whether values must be minimal; by default for all kinds but "dual bound", whose points may be
        inexact as long as their bound is sound.

    >>> import numpy as np
    >>> from restpoint.oracles import declared
    >>> wrong = declared(lambda g: np.sign(g), diameter=lambda p: 2.0 * 3 ** (1 / p))
    >>> check_oracle(wrong, (3,))
    Traceback (most recent call last):
    ...
    restpoint.testing...LawBroken: DeclaredSet x Zero: linear: a point of the set has a smaller value ...
    """
    oracle = _door.piece(getattr(oracle, "oracle", oracle), Oracle, "an Oracle or a Block")
    shape = _door.shape_of(shape, oracle.set.event_ndim, oracle.name)
    oracle.set.check_shape(shape)
    oracle.penalty.check_shape(shape)
    rng, like, asked = _door.stream(rng), _door.example(like), _door.powers(p)
    scale = real_number("scale", scale, "a finite number > 0")
    if not scale > 0:
        raise DataError(f"scale must be a finite number > 0, got {scale}")
    minimal = None if exact is None else truth("exact", exact)
    powers = [power for power in asked if oracle.can_prox(power)]
    try:
        for batch in leading_shapes(oracle.batch_shape):
            laws = _OracleLaws(oracle, shape, batch, like, rng, minimal)
            for g in gradients(rng, batch, shape):
                laws.linear(g * scale)
                for power in powers:
                    laws.prox(g * scale, power, scale)
            laws.diameter({2.0, *asked})
            laws.one_by_one(scale, powers)
    except EvaluationError as error:  # an oracle has an answer to every gradient
        raise LawBroken(f"{oracle.name}: {error}") from error


@dataclass
class _OracleLaws:
    """One oracle with one number of leading axes."""

    oracle: Oracle
    shape: tuple[int, ...]
    batch: tuple[int, ...]
    like: Array
    rng: np.random.Generator
    minimal: bool | None

    def __post_init__(self) -> None:
        self.moved = self.oracle.converted(self.like)
        self.exact = on_host(self.oracle)
        self.ndim = self.oracle.set.event_ndim
        self.slack = 64 * (3.0 + float(np.prod(self.shape))) * unit(self.like)
        self.name = self.oracle.name
        rounded = Inputs(self.like)
        directions = [self.rng.standard_normal((*self.batch, *self.shape)) for _ in range(3)]
        self.known = np.stack(
            [
                host(self.moved.linear(rounded.give(sign * g)).point)
                for g in directions
                for sign in (1.0, -1.0)
            ]
        )
        self.pool = pool(self.exact.set, self.rng, self.batch, self.shape, self.known)
        self.penalty = np.max(self._penalty_size(self.pool), axis=0)
        self.size = host(self.moved.set.norm_bound(self.shape))

    def linear(self, g: np.ndarray) -> None:
        """Every law of ``linear`` at one gradient."""
        given = Inputs(self.like)
        array = given.give(g)
        answer = self.moved.linear(array)
        given.check_untouched(f"{self.name}: linear")
        self._check_answer(answer, "linear")
        g, point = host(array), host(answer.point)
        magnitude = p_norm(g, 2.0, self.ndim) * self.size + self.penalty
        value = host(self.exact.linear_value(g, point))
        equal(answer.value, value, self.slack * magnitude, f"{self.name}: linear: value")
        values = host(self.exact.linear_value(g, self._competitors(point)))
        self._check_against(answer, values, self.slack * magnitude, "linear", self._linear_exact)
        if isinstance(self.exact, DeclaredOracle) and self.exact.lower_bound_of is not None:
            # The answer's bound is cut at its value, which would hide a wrong declaration.
            bound = self.exact.lower_bound_of.numbers(g)
            text = f"{self.name}: a point of the set has a value below the declared lower bound"
            at_most(bound, values, self.slack * magnitude, text)

    def prox(self, g: np.ndarray, p: float, scale: float) -> None:
        """Every law of ``prox`` at one gradient, for small, middling and large weights."""
        z = samples(self.exact.set, self.rng, self.batch, self.shape)
        z = np.where(
            self.rng.random(self.batch)[(..., *([None] * self.ndim))] < 0.3, self.known[0], z
        )
        weights: list[Any] = [0.0, scale, 1e-6 * scale, 1e4 * scale]
        if self.batch:
            weights.append(scale * (0.1 + self.rng.random(self.batch)))
        for weight in weights:
            self._prox_once(g, z, weight, p)

    def _prox_once(self, g: np.ndarray, z: np.ndarray, weight: Any, p: float) -> None:
        given, law = Inputs(self.like), f"prox (p = {p})"
        arrays = given.give(g), given.give(z)
        given_weight = weight if isinstance(weight, float) else given.give(np.asarray(weight))
        answer = self.moved.prox(*arrays, given_weight, p)
        given.check_untouched(f"{self.name}: {law}")
        self._check_answer(answer, law)
        g, z, weight, point = (host(part) for part in (*arrays, given_weight, answer.point))
        value = host(self.exact.prox_value(g, z, weight, p, point))
        reach = p_norm(z, p, self.ndim) + self.size * max(
            1.0, float(np.prod(self.shape)) ** (1 / p)
        )
        magnitude = p_norm(g, 2.0, self.ndim) * (self.size + p_norm(z, 2.0, self.ndim))
        magnitude = magnitude + weight * reach**p / (p - 1.0) + self.penalty
        equal(answer.value, value, self.slack * magnitude, f"{self.name}: {law}: value")
        others = np.concatenate([self._competitors(point), z[None]])
        values = host(self.exact.prox_value(g, z, weight, p, others))
        minimal = self.oracle.prox_kind(p) != "dual bound" if self.minimal is None else self.minimal
        self._check_against(answer, values, self.slack * magnitude, law, minimal)
        if p == 2.0 and minimal:
            apart = 0.5 * weight * p_norm(others - point, 2.0, self.ndim) ** 2
            text = f"{self.name}: {law}: the three-point inequality fails"
            at_most(host(answer.value) + apart, values, self.slack * magnitude, text)
        if np.all(weight == 0.0) and minimal:
            linear = host(self.moved.linear(arrays[0]).value)
            shifted = linear - np.sum(g * z, axis=tuple(range(-self.ndim, 0)))
            text = f"{self.name}: {law}: weight 0 is not the linear oracle"
            equal(answer.value, shifted, self.slack * magnitude, text)

    def diameter(self, powers: set[float]) -> None:
        """No two points that the oracle or the set gave are further apart than declared."""
        for p in sorted(powers):
            declared = host(self.exact.set.diameter(p, self.shape))
            reach = host(self.exact.set.reach(self.pool, p))
            tolerance = self.slack * (declared + self.size)
            for x, far in zip(self.pool, reach, strict=True):
                apart = p_norm(self.pool - x, p, self.ndim)
                text = f"{self.name}: two points are further apart than the diameter for p = {p}"
                at_most(apart, declared, tolerance, text)
                at_most(apart, far, tolerance, f"{self.name}: a point is out of reach for p = {p}")

    def one_by_one(self, scale: float, powers: Sequence[float]) -> None:
        """A batch, a gathered batch, and single starts give the same answers."""
        if not self.batch:
            return
        count = int(np.prod(self.batch))
        given = Inputs(self.like)
        g = scale * self.rng.standard_normal((count, *self.shape))
        z = np.reshape(
            samples(self.exact.set, self.rng, self.batch, self.shape), (count, *self.shape)
        )
        flat, index = self.moved.flatten(self.batch), np.asarray([count - 1, 0, 0])
        tolerance = 4500 * unit(self.like) * np.max(self.size)  # 1e-12 in float64
        calls: list[tuple[str, Any]] = [("linear", lambda oracle, g, z: oracle.linear(g))]
        calls += [
            ("prox", lambda oracle, g, z, p=p: oracle.prox(g, z, 0.7 * scale, p)) for p in powers
        ]
        for law, call in calls:
            whole = host(call(flat, given.give(g), given.give(z)).point)
            some = given.give(g[index]), given.give(z[index])
            together = host(call(flat.take(index), *some).point)
            text = f"{self.name}: {law}: "
            equal(together, whole[index], tolerance, text + "take changes the answer")
            for i in range(count):
                alone = host(call(flat.at(i), given.give(g[i]), given.give(z[i])).point)
                equal(alone, whole[i], tolerance, text + "a batch differs from its starts")

    def _check_answer(self, answer: Answer, law: str) -> None:
        """Kinds, shapes, feasibility, and the order of the bound and the value."""
        text = f"{self.name}: {law}"
        same_kind(answer.point, self.like, (*self.batch, *self.shape), f"{text}: point")
        same_kind(answer.value, self.like, self.batch, f"{text}: value")
        same_kind(answer.lower, self.like, self.batch, f"{text}: lower")
        violation = self.exact.set.violation(host(answer.point))
        tolerance = self.slack * self.size
        at_most(violation, 0.0, tolerance, f"{text}: the point is outside of the set")
        at_most(answer.lower, answer.value, 0.0, f"{text}: the lower bound is above the value")

    def _check_against(
        self, answer: Answer, other: np.ndarray, tolerance: np.ndarray, law: str, minimal: bool
    ) -> None:
        if minimal:
            text = f"{self.name}: {law}: a point of the set has a smaller value than the answer"
            at_most(answer.value, other, tolerance, text)
            text = f"{self.name}: {law}: an exact answer has a loose bound"
            at_most(answer.value, answer.lower, tolerance, text)
        text = f"{self.name}: {law}: a point of the set has a value below the lower bound"
        at_most(answer.lower, other, tolerance, text)

    @property
    def _linear_exact(self) -> bool:
        return self.oracle.kind != "dual bound" if self.minimal is None else self.minimal

    def _competitors(self, point: np.ndarray) -> np.ndarray:
        return np.concatenate([self.pool, neighbours(self.exact.set, self.rng, point)])

    def _penalty_size(self, y: np.ndarray) -> np.ndarray:
        return host(self.exact.penalty.magnitude(y))
