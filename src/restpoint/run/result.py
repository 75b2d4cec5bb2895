"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from restpoint.array import Array, namespace
from restpoint.bounds import Bound
from restpoint.certificates import Certificate
from restpoint.errors import NotCertifiedError, ShapeError
from restpoint.methods import Method
from restpoint.problem import Blocks, Problem
from restpoint.run.observers import Trace
from restpoint.run.status import Status
from restpoint.run.stop import Measure
from restpoint.run.summary import headline, lines


@dataclass(frozen=True)
class Loaded:
    """What a result that was read from a file still knows of where it comes from."""

    path: str
    written_by: str
    engine: str
    identity: dict[str, str]  # of the problem


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The point returned by each start, and what is proved about it.

    Arrays have the batch shape ``(*problem.batch_shape, starts)``, () for a single start.

    xs            the certified point, else the one with the smallest gap seen, a tuple of blocks; ``x`` for one block
    last          the last iterate
    value         Phi(xs), in float64
    certificate   recomputed at ``xs``
    eps           what was asked for, absolute
    status        a ``Status`` (an array of them for several starts)
    iterations    steps taken
    bound         how many iterations theory allows, and why; ``used`` compares
    trace         value and gap over the iterations
    work          gradients, oracle calls and samples spent, per start
    seconds       wall time of the whole run, from the call on
    feasibility   the violation that a certified point may have, in units of the set's radius
    loaded        where it was read from, if it was; such a result has no problem unless ``load`` was given it
    """

    problem: Problem = field(repr=False)
    method: Method
    xs: Blocks
    last: Blocks = field(repr=False)
    certificate: Certificate
    eps: np.ndarray
    status: Any
    iterations: np.ndarray
    bound: Bound
    trace: Trace = field(repr=False)
    work: dict[str, np.ndarray]
    seconds: float
    feasibility: float
    measure: Measure = "max"
    message: str = ""
    error: Exception | None = None
    loaded: Loaded | None = field(default=None, repr=False)

    @property
    def x(self) -> Array:
        """The block, where there is only one."""
        if len(self.xs) != 1:
            raise ShapeError(f"the problem has {len(self.xs)} blocks; use result.xs[i]")
        return self.xs[0]

    @property
    def value(self) -> np.ndarray:
        """Phi at ``xs``."""
        return self.certificate.value

    @property
    def gap(self) -> np.ndarray:
        """The certified bound that ``eps`` was compared with."""
        return self.certificate.max if self.measure == "max" else self.certificate.sum

    @property
    def certified(self) -> np.ndarray:
        """Which starts are certified."""
        return np.asarray(np.asarray(self.status, dtype=object) == Status.CERTIFIED, dtype=bool)

    @property
    def used(self) -> np.ndarray:
        """How many points were looked at, which is what a bound's ``count`` limits."""
        return self.iterations + 1

    @property
    def engine(self) -> str:
        """Which machinery computes the gradient of f at ``xs``, where there is a choice."""
        if self.loaded is not None:
            return self.loaded.engine
        return self.problem.smooth.engine(self.xs)

    def best(self) -> Result:
        """The single start with the lowest value among the certified, else among those that reached ``target_value``.

        Where there are none of either, that with the smallest gap.
        """
        if np.ndim(self.status) == 0:
            return self
        score = self.gap
        for good in (self.certified, self.status == Status.TARGET_REACHED):
            if np.any(good):
                score = np.where(good, self.value, np.inf)
                break
        return self._at(int(np.nanargmin(np.where(np.isnan(score), np.inf, score))))

    def _at(self, flat: int) -> Result:
        shape = np.shape(self.status)
        where = np.unravel_index(flat, shape)
        pick = tuple(int(i) for i in where)

        def block(x: Array, event: tuple[int, ...]) -> Array:
            return namespace(x).reshape(x, (-1, *event))[flat, ...]

        shapes = [tuple(x.shape[len(shape) :]) for x in self.xs]
        problem = self.problem
        if isinstance(problem, Problem) and (own := problem.batch_shape):
            problem = problem.flatten(own).at(int(np.ravel_multi_index(pick[: len(own)], own)))
        return replace(
            self,
            problem=problem,
            xs=tuple(map(block, self.xs, shapes)),
            last=tuple(map(block, self.last, shapes)),
            certificate=self.certificate.at(pick),
            eps=self.eps[pick],
            status=self.status[pick],
            iterations=self.iterations[pick],
            bound=self.bound.at(pick),
            trace=self.trace.at(pick),
            work={name: column[pick] for name, column in self.work.items()},
        )

    def save(self, path: Any) -> None:
        """Write it to a file for ``restpoint.load``: one file, replaced as a whole; of the problem, digests only.

        >>> import numpy as np, restpoint as rp, tempfile
        >>> problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
        >>> result, file = rp.solve(problem), tempfile.NamedTemporaryFile()
        >>> result.save(file.name)
        >>> bool(rp.certify(problem, rp.load(file.name).xs).max == result.gap)
        True
        """
        from restpoint.run.load import save

        save(self, path)

    def raise_for_status(self) -> Result:
        """Itself if every start is certified, else NotCertifiedError with the reasons."""
        if self.certified.all():
            return self
        raise NotCertifiedError(str(self)) from self.error

    def to_dataframe(self) -> Any:
        """One row a start (pandas): value, gap, eps, status, iterations, allowed, violation, work."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_dataframe needs pandas: pip install restpoint[frames]") from error
        shape = np.shape(self.status)
        allowed = self.bound.count if self.bound.count is not None else np.nan
        columns = {
            "value": self.value,
            "gap": self.gap,
            "eps": self.eps,
            "status": np.vectorize(lambda s: s.name, otypes=[object])(self.status),
            "iterations": self.iterations,
            "allowed": np.broadcast_to(allowed, shape),
            "violation": self.certificate.violation,
            **self.work,
        }
        index = pd.MultiIndex.from_tuples(np.ndindex(shape)) if len(shape) > 1 else None
        frame = {name: np.asarray(column).reshape(-1) for name, column in columns.items()}
        return pd.DataFrame(frame, index=index)

    def __repr__(self) -> str:
        return f"<Result of {self.method}: {headline(self)}>"

    def __str__(self) -> str:
        return "\n".join(lines(self))
