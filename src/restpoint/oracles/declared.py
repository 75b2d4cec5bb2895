"""What a researcher brings: an oracle written as plain functions, taken at its word but checked at the door.

``restpoint.testing.check_oracle`` tries to refute the declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from restpoint.array import (
    Array,
    inner,
    namespace,
    norm,
    power_sum,
    to_host,
    truth,
    whole_number,
)
from restpoint.errors import CapabilityError, EvaluationError, described
from restpoint.oracles._user_code import UserFunction, nonnegative
from restpoint.oracles.base import Answer, Oracle
from restpoint.oracles.multiplier import curvature_scale, power_gradient
from restpoint.penalties import Penalty, Zero
from restpoint.sets import Set

# What each function is a function of.
ARGUMENTS = {
    "linear": "g",
    "prox": "(g, z, weight, p)",
    "diameter": "p",
    "violation": "x",
    "lower_bound": "g",
    "value": "x",
    "sample": "(rng, shape)",
    "project": "x",
}
# A bound above the value of a point disproves one of the two. By less than this, relative to the numbers that were
# added up, the point may be a little outside, as those of iterative solvers are: then the lower of the two counts.
TOLERATED, NEGLIGIBLE = 1e-3, 1e-8


@dataclass(frozen=True)
class DeclaredSet(Set):
    """A compact convex set known by its linear oracle and its diameter alone.

    Bounds that the set's own functions would give are made from one point y0 = linear(1, ..., 1) and the diameter:
    S lies in the ball of that radius around y0.
    """

    linear: UserFunction
    diameter_of: float | UserFunction
    plain: bool = True  # whether h = 0, so that ``linear`` is the linear oracle of the set itself
    violation_of: UserFunction | None = None
    lower_bound_of: UserFunction | None = None
    sample_of: UserFunction | None = None
    project_of: UserFunction | None = None
    event_ndim: int = 1

    @property
    def declares_violation(self) -> bool:
        """Whether feasibility can be checked at all."""
        return self.violation_of is not None or self.project_of is not None

    def support(self, g: Array) -> Array:
        """max g'y by the linear oracle, or its bound; g'y0 + diam ||g|| if the oracle holds a penalty too."""
        if not self.plain:
            reach = self._diameter(2.0) * norm(g, self.event_ndim)
            return inner(g, self._anchor(g), self.event_ndim) + reach
        if self.lower_bound_of is not None:
            return -self.lower_bound_of.numbers(-g)
        return inner(g, self.linear.events(-g), self.event_ndim)

    def extreme(self, g: Array) -> Array:
        if not self.plain:
            raise CapabilityError(
                "this declared oracle minimises g'y + h(y), so the set alone has no linear oracle"
            )
        return self.linear.events(g)

    def absolute_support(self, a: Array) -> Array:
        return norm(a, self.event_ndim) * self._size(self._anchor(a))

    def project(self, x: Array) -> Array:
        if self.project_of is None:
            raise CapabilityError(
                "this declared set has no projection; give declared(..., project=...)"
            )
        return self.project_of.events(x)

    def diameter(self, p: float, shape: tuple[int, ...]) -> Array:
        del shape
        return self._diameter(p)

    def reach(self, z: Array, p: float) -> Array:
        return self._diameter(p) + 0.0 * power_sum(z, 2.0, self.event_ndim)

    def norm_bound(self, shape: tuple[int, ...]) -> Array:
        return self._size(self._anchor(np.zeros(shape)))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """The user's sampler; without one, the oracle's answer to a random direction."""
        if self.sample_of is None:
            return np.asarray(self.linear.events(rng.standard_normal(shape)))
        return self.sample_of.event(rng, shape)

    def violation(self, x: Array) -> Array:
        """Where nothing was declared (``declares_violation``), what the diameter shows: ||x - y0||_2 - diam_2."""
        if self.violation_of is not None:
            return self.violation_of.numbers(x)
        if self.project_of is not None:
            return super().violation(x)
        far = norm(x - self._anchor(x), self.event_ndim) - self._diameter(2.0)
        return namespace(x).maximum(far, 0.0)

    def _diameter(self, p: float) -> float:
        found = self.diameter_of
        return found.number(p) if isinstance(found, UserFunction) else found

    def _anchor(self, like: Array) -> Array:
        # Not at 0, where an oracle such as -g/||g|| has no answer.
        return self.linear.events(namespace(like).ones_like(like))

    def _size(self, anchor: Array) -> Array:
        """max ||y||_2 over S, at most ||y0||_2 + diam_2."""
        return norm(anchor, self.event_ndim) + self._diameter(2.0)


@dataclass(frozen=True)
class DeclaredPenalty(Penalty):
    """A convex h known by its values alone."""

    lower_bound: ClassVar[float] = -math.inf  # unknown

    value_of: UserFunction
    event_ndim: int = 1

    def value(self, x: Array) -> Array:
        return self.value_of.numbers(x)

    def prox(self, v: Array, step: Array) -> Array:
        raise CapabilityError(
            "this declared penalty has no prox of its own; the block's oracle may have one"
        )

    def magnitude(self, x: Array) -> Array:
        value = self.value(x)
        return namespace(value).abs(value)


@dataclass(frozen=True)
class DeclaredOracle(Oracle):
    """The user's functions as the oracle of a block; built by ``declared``."""

    linear_of: UserFunction
    prox_of: UserFunction | None = None
    lower_bound_of: UserFunction | None = None

    @property
    def kind(self) -> str:
        return "declared oracle" if self.lower_bound_of is None else "dual bound"

    @property
    def assumptions(self) -> tuple[str, ...]:
        exact = "linear(g) is a minimiser"
        bounded = "lower_bound(g) is the minimum, not only below it"
        return (exact,) if self.lower_bound_of is None else (exact, bounded)

    def linear(self, g: Array) -> Answer:
        point = self.linear_of.events(g)
        value = self.linear_value(g, point)
        return Answer(point, value, self._bounded(value, g, point))

    def prox(self, g: Array, z: Array, weight: Array, p: float = 2.0) -> Answer:
        if self.prox_of is None:
            return super().prox(g, z, weight, p)
        point = self.prox_of.events(g, z, numbers=(weight,), options=(p,))
        value = self.prox_value(g, z, weight, p, point)
        if self.lower_bound_of is None:
            return Answer(point, value, value)
        # Fenchel for the power term: (w/2)|d|^p >= v'd - (w/2)(p-1)|step|^p, v its gradient at the step.
        step, ndim = point - z, self.set.event_ndim
        slope = g + power_gradient(curvature_scale(weight, p, ndim), step, p)
        conjugate = 0.5 * (p - 1.0) * weight * power_sum(step, p, ndim)
        lower = self.lower_bound_of.numbers(slope) - inner(slope, z, ndim) - conjugate
        return Answer(point, value, namespace(value).minimum(value, lower))

    def can_prox(self, p: float) -> bool:
        return self.prox_of is not None and p > 1.0

    def _bounded(self, value: Array, g: Array, point: Array) -> Array:
        """The declared bound, where it is not disproved by the value of a point."""
        if self.lower_bound_of is None:
            return value
        xp, lower = namespace(value), self.lower_bound_of.numbers(g)
        size = norm(g, self.set.event_ndim) * norm(point, self.set.event_ndim)
        size = size + self.penalty.magnitude(point)
        false = to_host((lower > value + TOLERATED * size + NEGLIGIBLE) & xp.isfinite(size))
        if np.any(false):  # user code runs eagerly, so its answers may be looked at
            bound, found = (np.asarray(to_host(v))[false][0] for v in (lower, value))
            raise EvaluationError(
                f"your function linear found a point of value {found:.6g}, which is below lower_bound(g) = "
                f"{bound:.6g}: the bound is too high, or the point is outside of the set"
            )
        return xp.minimum(value, lower)


def declared(  # noqa: PLR0913 (one keyword for each thing that may be declared)
    linear: Callable[..., Array],
    *,
    prox: Callable[..., Array] | None = None,
    diameter: float | Callable[[float], float],
    violation: Callable[[Array], Any] | None = None,
    lower_bound: Callable[[Array], Any] | None = None,
    value: Callable[[Array], Any] | None = None,
    sample: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] | None = None,
    project: Callable[[Array], Array] | None = None,
    batched: bool = False,
    event_ndim: int = 1,
) -> DeclaredOracle:
    r"""The oracle of a set and a penalty that you bring as functions.

    Parameters
    ----------
    linear
        ``linear(g) -> y`` minimises g'y + h(y) over S.
    prox
        ``prox(g, z, weight, p) -> y`` minimises g'(y - z) + (weight/2) ||y - z||_p^p + h(y) over S.
    diameter
        diam_p(S) or an upper bound: a number that holds for every p you use and for p = 2 (which certificates
        need), or a function of p.
    violation
        ``violation(x)``: how far x is from S. Without it (and ``project``) feasibility is not checked, and certificates
        say so; only what the diameter, or a gap below 0, shows to be outside is found out.
    lower_bound
        ``lower_bound(g)``: a number that is at most min over S of g'y + h(y). Certificates then rest on it;
        without it they rest on your word that ``linear`` is exact.
    value
        ``value(x)`` = h(x), convex; 0 if not given.
    sample
        ``sample(rng, shape)``: a random start; by default the oracle's answer to a random direction.
    project
        The Euclidean projection onto S.
    batched
        Whether your functions accept leading axes; otherwise they are called once per start.
    event_ndim
        How many axes one block has.

    Arrays arrive read-only; what your code raises, and answers of a wrong shape or type, become
    ``EvaluationError``. Refute your own declarations with ``restpoint.testing.check_oracle``.

    >>> import numpy as np
    >>> corner = declared(lambda g: -np.sign(g), diameter=lambda p: 2.0 * 3 ** (1 / p))
    >>> corner.linear(np.array([1.0, -2.0, 3.0])).point, corner.kind
    (array([-1.,  1., -1.]), 'declared oracle')
    """
    batched = truth("batched", batched)
    event_ndim = whole_number("event_ndim", event_ndim, 1)

    def user(name: str, function: Any) -> UserFunction:
        if not callable(function):
            raise CapabilityError(
                f"{name} must be a function of {ARGUMENTS[name]}, got {described(function)}"
            )
        return UserFunction(name, function, event_ndim, batched)

    def maybe(name: str, function: Any) -> UserFunction | None:
        return None if function is None else user(name, function)

    found, values, bound = (
        user("linear", linear),
        maybe("value", value),
        maybe("lower_bound", lower_bound),
    )
    region = DeclaredSet(
        found,
        user("diameter", diameter) if callable(diameter) else nonnegative("diameter", diameter),
        plain=value is None,
        violation_of=maybe("violation", violation),
        lower_bound_of=bound,
        sample_of=maybe("sample", sample),
        project_of=maybe("project", project),
        event_ndim=event_ndim,
    )
    penalty = Zero(event_ndim) if values is None else DeclaredPenalty(values, event_ndim)
    return DeclaredOracle(region, penalty, found, maybe("prox", prox), bound)
