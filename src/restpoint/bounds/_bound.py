"""What a theorem promises, and how it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from restpoint.array import Array

_NONE_LEFT = "it overflows, or errors may hide what a step gains"


@dataclass(frozen=True, eq=False)
class Bound:
    """What a theorem promises: at most ``count`` of what ``counts`` says, under ``assumptions``.

    Attributes
    ----------
    count : float, array or None
        The sharp N, a number or one per start; infinite where nothing is promised or the number overflows, NaN
        where delta is NaN, None when something is missing or the bound was withdrawn.
    paper_bound : float, array or None
        What the paper prints, for comparison only; None (NaN at a start) where its own condition
        fails, None where it makes no statement.
    statement : str
        The theorem, and the form of it.
    counts : str
        What is counted: "iterations", "block updates", "sweeps", "trials" or "samples"; for ``lemma_2_2`` and
        ``theorem_4_3``, which bound a gap and not a number of steps, which one.
    assumptions : tuple of str
        What must hold for it.
    constants : dict
        The numbers that went in, D, and the decrease that every step guarantees.
    missing : tuple of str
        What is not known, so that there is no count.
    rate : str
        The count as a function of eps.
    withdrawn : str or None
        Why the bound no longer holds.

    Examples
    --------
    >>> from restpoint.bounds import corollary_3_2
    >>> print(corollary_3_2(eps=0.25, delta=1.0))
    Corollary 3.2: at most 4 iterations, O(1/eps)
      the paper's own figure: 4
      with eps = 0.25, delta = 1
      assuming that f is concave on S (any supergradients will do)
      assuming that S is nonempty, convex and compact; h is convex, closed and finite on S
      assuming that every subproblem is solved exactly
    """

    count: Array | None
    paper_bound: Array | None = None
    statement: str = ""
    counts: str = "iterations"
    assumptions: tuple[str, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    rate: str = ""
    withdrawn: str | None = None

    @classmethod
    def none(cls, reason: str) -> Bound:
        """No theorem applies, and why.

        >>> print(Bound.none("exact Jacobi block minimisation may cycle (theory E26)"))
        no bound: exact Jacobi block minimisation may cycle (theory E26)
        """
        return cls(count=None, missing=(reason,))

    def withdraw(self, reason: str) -> Bound:
        """The same bound without its count: an assumption turned out to be false.

        >>> from restpoint.bounds import corollary_3_2
        >>> corollary_3_2(eps=0.5, delta=2.0).withdraw("f is not concave").count is None
        True
        """
        return dataclasses.replace(self, count=None, withdrawn=reason)

    def assuming(self, *more: str) -> Bound:
        """The same bound with further assumptions named."""
        if not self.statement:
            return self
        return dataclasses.replace(self, assumptions=(*self.assumptions, *dict.fromkeys(more)))

    def later(self, iterations: int, why: str) -> Bound:
        """The same after so many iterations that it does not speak of.

        >>> from restpoint.bounds import corollary_3_2
        >>> corollary_3_2(eps=0.25, delta=1.0).later(20, "after continuation").count
        24.0
        """
        if not self.statement:
            return self
        count = None if self.count is None else self.count + float(iterations)
        return dataclasses.replace(
            self, count=count, paper_bound=None, statement=f"{self.statement}, {why}"
        )

    def with_trials(self, growth: Array) -> Bound:
        """The same in looks at points, when every step is found by trial and some trials are refused (theory A3).

        A refusal at least doubles what an acceptance at most halves, and that never grows by more than the factor
        2^``growth``: after A accepted trials at most A + growth were refused. With A <= N - 1 and the look at the
        start, 2 N - 1 + growth looks are enough.

        >>> from restpoint.bounds import corollary_3_2
        >>> corollary_3_2(eps=0.25, delta=1.0).with_trials(3.0).count
        10.0
        """
        if not self.statement:
            return self
        looks = None if self.count is None else 2.0 * self.count - 1.0 + np.ceil(growth)
        return dataclasses.replace(
            self,
            count=float(looks) if looks is not None and np.ndim(looks) == 0 else looks,
            paper_bound=None,
            counts="trials",
        )

    def reshape(self, batch_shape: tuple[int, ...]) -> Bound:
        """The same bound with its one axis of starts spread over ``batch_shape``."""
        return self._each(lambda array: array.reshape(batch_shape))

    def at(self, index: tuple[int, ...]) -> Bound:
        """The bound of one start."""
        return self._each(lambda array: array[index])

    def brief(self, used: int) -> str:
        """One line: used against allowed, or why nothing is known.

        >>> from restpoint.bounds import corollary_3_2
        >>> corollary_3_2(eps=0.25, delta=1.0).brief(3)
        '3 of at most 4 iterations used (Corollary 3.2)'
        """
        if self.count is not None and np.isinf(self.count):
            return f"{used} used, no finite count: {_NONE_LEFT} ({self.statement})"
        if self.count is not None:
            allowed = f"at most {float(self.count):.6g} {self.counts}"
            if used > self.count:
                return (
                    f"{used} used, {allowed} if rounding were small beside eps ({self.statement})"
                )
            return f"{used} of {allowed} used ({self.statement})"
        if self.withdrawn is not None:
            return f"bound withdrawn: {self.withdrawn}"
        return "no bound: " + "; ".join(self.missing)

    def _each(self, change: Callable[[np.ndarray], Any]) -> Bound:
        """Apply ``change`` to whatever differs between starts."""

        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, np.ndarray) and value.ndim else value

        return dataclasses.replace(
            self,
            count=changed(self.count),
            paper_bound=changed(self.paper_bound),
            constants={name: changed(value) for name, value in self.constants.items()},
        )

    def __str__(self) -> str:
        if not self.statement:
            return "no bound: " + "; ".join(self.missing or (self.withdrawn or "no reason given",))
        if self.withdrawn is not None:
            promise = f"withdrawn: {self.withdrawn}"
        elif self.count is None:
            promise = "no count without " + ", ".join(self.missing)
        elif np.all(np.isinf(self.count)):
            promise = f"no finite count ({_NONE_LEFT})"
        else:
            promise = f"at most {shown(self.count)} {self.counts}"
            promise += f", {self.rate}" if self.rate else ""
        lines = [f"{self.statement}: {promise}"]
        if self.paper_bound is not None:
            lines.append(f"  the paper's own figure: {shown(self.paper_bound)}")
        if self.constants:
            known = (f"{name} = {shown(value)}" for name, value in self.constants.items())
            lines.append("  with " + ", ".join(known))
        lines += [f"  assuming that {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def shown(value: Any) -> str:
    """A number, or the range of an array.

    >>> shown(1600.0), shown(1 / 3), shown([2.0, 5.0, 3.0])
    ('1600', '0.333333', '2 to 5 (3 starts)')
    """
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        number = float(array)
        whole = number.is_integer() and abs(number) < 1e15
        return f"{number:.0f}" if whole else f"{number:.6g}"
    known = array[~np.isnan(array)]
    if known.size == 0:
        return f"nan ({array.size} starts)"
    low, high = shown(known.min()), shown(known.max())
    return f"{low if low == high else f'{low} to {high}'} ({array.size} starts)"
