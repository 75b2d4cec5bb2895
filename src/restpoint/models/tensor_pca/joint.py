"""Several components refined together, with one certificate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from restpoint.array import generator, real_number
from restpoint.bounds import Bound
from restpoint.certificates import Certificate
from restpoint.models.tensor_pca._components import Terms, mode_step, smooth_part
from restpoint.models.tensor_pca._joint_bound import refused
from restpoint.models.tensor_pca._joint_door import checked_factors, start
from restpoint.models.tensor_pca._joint_state import (
    State,
    blocks,
    distance,
    extrapolated,
    merged,
)
from restpoint.models.tensor_pca._joint_task import Proof, Task, task_of
from restpoint.models.tensor_pca._weights import Gram, best_weights
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.run.status import Status
from restpoint.sets import NonnegativeBall, Set
from restpoint.smooth import CanonicalPolyadic
from restpoint.smooth.base import Blocks
from restpoint.smooth.canonical_polyadic import ModeTerms, PolyadicSweep

# What rounding may add to F, in units of ||A||^2: below, two values are the same.
NOISE = 1e-14
# A rise of F that an extrapolated step is forgiven: near the end, F tells nothing more.
LAST_DIGITS = 2.5e-16
# No certificate is asked for before a sweep moves every vector by less than this times the root of eps: gaps are
# quadratic in the distance on the sphere. Each refusal divides it by four.
FIRST_ASKED, SOONER = 0.03, 0.25
# Sweeps for which a component of weight 0 may look for a place before the point counts as settled.
SEARCH = 20
# It is asked for, too, after so many sweeps in which F fell by less than eps: valleys may be long.
FLAT = 25
# After so many sweeps in which F stayed the same up to rounding, the run is given up.
PATIENCE = 500
# Where eps is certified, up to so many times the sweeps until then may be spent on the aim.
MORE = 1.5
# A sweep that moves no vector by more than this has nothing left to give.
STILL = 2e-16


@dataclass(frozen=True, eq=False)
class JointFit:
    """Components that were refined together, and what is proved about exactly these.

    weights       (R,), >= 0
    factors       one array (R, n_i) for each mode; rows of length 1, or 0 where the weight is 0
    certificate   of the frozen problem at ``factors``: one block for each mode and component, mode by mode
    weights_gap   an upper bound on max over 0 <= v <= ``limit`` of dF/dw'(weights - v)
    eps           what both were compared with, absolute
    status        CERTIFIED, or why the run ended without
    value         F
    iterations    sweeps over all modes that were kept
    refusals      certificates that were asked for on the way and refused; ``heaviest``: the largest weight then
    trace         F at the start and after each of them
    gaps          the larger gap there, certified; NaN where none was asked for
    """

    weights: np.ndarray
    factors: tuple[np.ndarray, ...] = field(repr=False)
    certificate: Certificate
    weights_gap: float
    limit: float
    eps: float
    status: Status
    iterations: int
    refusals: int
    heaviest: float
    seconds: float
    trace: np.ndarray = field(repr=False)
    gaps: np.ndarray = field(repr=False)

    @property
    def value(self) -> float:
        """F at (weights, factors)."""
        return float(self.certificate.value)

    @property
    def certified(self) -> bool:
        """Whether both gaps are proved to be at most eps."""
        return self.status is Status.CERTIFIED

    @property
    def xs(self) -> Blocks:
        """The blocks of the frozen problem."""
        return blocks(self.factors)

    @property
    def convergence(self) -> Convergence:
        """F and the gaps over the sweeps."""
        sweeps = np.arange(len(self.trace))
        return Convergence(sweeps, self.trace, self.gaps, float(self.gaps[-1]), self.eps)

    @property
    def bound(self) -> Bound:
        """How often a certificate can be refused: see ``_joint_bound.refused``."""
        return refused(self.eps, max(0.0, float(self.trace[0])), self.heaviest)


def refine(
    A: Any,
    weights: Any,
    factors: Sequence[Any],
    *,
    rho: Any = 0.0,
    sets: Sequence[Set] | None = None,
    eps: float = 1e-8,
    max_outer: int = 2000,
    max_seconds: float | None = None,
    aim: float | None = None,
) -> JointFit:
    r"""Refine all components together: lower F, and prove where that ends.

        F(w, x) = 1/2 || A - sum_r w_r x_1r o ... o x_dr ||^2 + sum_r w_r sum_i rho_i ||x_ir||_1,
        w >= 0, ||x_ir|| <= 1 (and x_ir >= 0 where asked for), the norm over the observed entries of A.

    A        an array (NaN or masked entries are missing), a multilinear form, or a ``CanonicalPolyadic``
    weights  (R,) and factors, one (R, n_i) for each mode: where to start; any scale, any sign
    rho      one number, or one for each mode: in units of A, as in the rank-one problem
    sets     one set for each mode, L2Ball() or NonnegativeBall(); default: balls
    eps      relative, in units of ||A||^2 / 2 over the observed entries
    aim      a smaller one, gone on to for half as many sweeps as eps took

    The scale of rho. For one component and no missing entries, at ||x_i|| = 1, F = ||A||^2/2 + w^2/2 - w t with
    t = A(x) - sum_i rho_i ||x_i||_1. Its minimum over w >= 0 is ||A||^2/2 - max(0, t)^2/2, which never rises with t:
    minimising F is minimising the rank-one objective -A(x) + sum_i rho_i ||x_i||_1.

    Certified. For w fixed, F is f + h of ``Problem(CanonicalPolyadic(A, w), blocks L2Ball x L1(w_r rho_i))``, the
    frozen problem, so that its block gaps are those of F; for x fixed, F is a convex quadratic in w, with its own gap.
    Both are bounded at the point returned. Shorter vectors with larger weights gain nothing: with s = prod_i ||x_ir||,
    the same fit by unit vectors costs w_r s sum_i rho_i ||x_ir||_1 / ||x_ir||, which is not more, as s <= ||x_ir||.

    Method. Mode after mode, the vectors w_r x_ir of all components are renewed from one contraction of A
    (``mode_step``), then all weights (``best_weights``): F never rises. A sweep may start from a point extrapolated
    along the last two by Nesterov's factors; what does not lower F is dropped, and the factors start anew.

    Ctrl-C and the limits return the best point so far, with its certificate.

    >>> import numpy as np
    >>> A = 3.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3])
    >>> fit = refine(A, [1.0], [np.ones((1, 4)) / 2] * 3, rho=0.1)
    >>> fit.status, fit.weights
    (CERTIFIED, array([2.7]))
    """
    begun = time.monotonic()
    task = task_of(_data(A), rho, sets, eps, max_outer, aim)
    if max_seconds is not None:
        task = replace(task, deadline=begun + real_number("max_seconds", max_seconds, "a number"))
    run = _Run(task, *start(task.sets, task.data.sizes, weights, factors))
    try:
        status = run.go()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    try:
        proof = task.proof(run.best)
    except KeyboardInterrupt:  # while the end is certified: it is certified all the same
        status, proof = Status.INTERRUPTED, task.proof(run.best)
    return JointFit(
        weights=run.best.weights,
        factors=proof.factors,
        certificate=proof.certificate,
        weights_gap=proof.gap,
        limit=proof.limit,
        eps=task.absolute,
        status=Status.CERTIFIED if proof.holds(task.absolute) else status,
        iterations=len(run.trace) - 1,
        refusals=run.refusals,
        heaviest=max(run.heaviest, float(np.max(run.best.weights))),
        seconds=time.monotonic() - begun,
        trace=np.array(run.trace),
        gaps=run.gaps(proof),
    )


def rearranged(
    fit: JointFit, A: Any, weights: np.ndarray, factors: Sequence[np.ndarray], **asked: Any
) -> JointFit:
    """``fit`` with its components in another order, their signs in pairs elsewhere: proved anew at these very vectors.

    ``asked`` is rho, sets and eps as in ``refine``.
    """
    task = task_of(_data(A), asked["rho"], asked["sets"], asked["eps"])
    proof = task.proof(State(weights, tuple(factors), np.nan))
    ended = Status.STALLED if fit.certified else fit.status
    return replace(
        fit,
        weights=weights,
        factors=proof.factors,
        certificate=proof.certificate,
        weights_gap=proof.gap,
        limit=proof.limit,
        eps=task.absolute,
        status=Status.CERTIFIED if proof.holds(task.absolute) else ended,
    )


def observed_gram(A: Any, factors: Sequence[Any]) -> Gram:
    """The inner products of the components with each other and with A, over the observed entries.

    >>> import numpy as np
    >>> gram = observed_gram(
    ...     [[1.0, np.nan], [3.0, 4.0]], [np.array([[0.6, 0.8]]), np.array([[0.0, 1.0]])]
    ... )
    >>> np.round(gram.pairs, 12), np.round(gram.data, 12)
    (array([[0.64]]), array([3.2]))
    """
    data, X = _with_rank(A, factors)
    return _gram(data.sweep(blocks(X)).mode(0), X[0])


def explained(A: Any, weights: Any, factors: Sequence[Any]) -> float:
    """1 - ||A - fit||^2 / ||A||^2 over the observed entries; 0 where A is 0 there.

    >>> import numpy as np
    >>> explained(
    ...     [[1.0, np.nan], [0.0, 3.0]], [2.0], [np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]])]
    ... )
    0.8
    """
    data, X = _with_rank(A, factors)
    total = data.observed.squared_norm.value
    rest = 2.0 * float(data.reweighted(weights).value(blocks(X)))
    return 1.0 - rest / total if total > 0.0 else 0.0


class _Run:
    """The iteration: ``best`` is the point with the lowest F so far, up to rounding."""

    def __init__(self, task: Task, weights: np.ndarray, factors: tuple[np.ndarray, ...]) -> None:
        self.task = task
        data = task.data.reweighted(weights)
        self.sweep: PolyadicSweep = data.sweep(blocks(factors))
        self.order = tuple(
            dict.fromkeys(k // len(weights) for group in self.sweep.groups for k in group)
        )
        self.noise, self.last_digits = (
            units * data.observed.squared_norm.value for units in (NOISE, LAST_DIGITS)
        )
        gram = _gram(self.sweep.mode(0), factors[0])
        weights = best_weights(gram, task.penalties(factors).sum(axis=0), weights)
        self.best = self._valued(weights, factors, 0)  # whatever units the weights came in
        self.trace = [self.best.value]
        self.proved: dict[int, float] = {}  # gaps by sweeps
        self.since = 0  # when a weight last became 0, or ceased to be
        self.merges = 2 * len(weights)  # how many are left
        self.last_asked = 0
        self.lead: tuple[int, int] | None = None
        self.refusals, self.heaviest = 0, 0.0
        self.most = task.max_outer
        self.asked = FIRST_ASKED * np.sqrt(task.eps)

    def go(self) -> Status:
        """Sweep until certified, or until a limit ends it."""
        before, momentum = self.best, 1.0
        while len(self.trace) <= self.most:
            if self.task.deadline is not None and time.monotonic() > self.task.deadline:
                return Status.TIME_LIMIT
            heavier = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            lead, self.lead = self.lead, None
            push = 0.0 if lead else (momentum - 1.0) / heavier
            now = self.best
            first = extrapolated(before, now, push, self.task.sets) if push else now
            new = self._swept(first, lead)
            if push and not new.value <= now.value + self.last_digits:
                before, momentum = now, 1.0  # the next sweep starts from the best point itself
                continue
            if not new.value <= now.value + self.noise:
                return Status.STALLED if np.isfinite(new.value) else Status.NON_FINITE
            before, momentum = now, heavier
            self._keep(new)
            moved = distance(now, new)
            if moved > self.asked and not self._flat():
                continue
            if self._searching():
                continue
            if self._merge():
                before, momentum = self.best, 1.0
                continue
            proof = self.task.proof(new)
            self.proved[len(self.trace) - 1] = proof.largest
            if proof.holds(self.task.aimed):
                return Status.CERTIFIED
            if proof.holds(self.task.absolute):
                self.most = min(self.most, int(MORE * len(self.trace)))
            else:
                self._refused(proof, new)
            if (
                moved <= STILL
                or proof.exhausted(self.task.aimed)
                or self._unmoved(PATIENCE, self.noise)
            ):
                return Status.STALLED
            self.asked *= SOONER if moved <= self.asked else 1.0
            self.last_asked = len(self.trace)
        return Status.ITERATION_LIMIT

    def gaps(self, last: Proof) -> np.ndarray:
        """What was proved after each sweep, NaN where nothing was; ``last`` is about the best point."""
        found = np.full(len(self.trace), np.nan)
        found[list(self.proved)] = list(self.proved.values())
        found[-1] = last.largest
        return found

    def _refused(self, proof: Proof, at: State) -> None:
        """The next sweep begins where the gap is largest: see ``JointFit.bound``."""
        largest = int(np.argmax(proof.certificate.per_block))
        self.lead = divmod(largest, len(at.weights))
        self.refusals += 1
        self.heaviest = max(self.heaviest, float(np.max(at.weights)))

    def _flat(self) -> bool:
        """Whether F fell by no more than eps since a certificate was last asked for, a while ago."""
        a_while = len(self.trace) - self.last_asked >= FLAT
        return a_while and self._unmoved(FLAT, self.task.absolute)

    def _unmoved(self, sweeps: int, by: float) -> bool:
        """Whether F fell by at most ``by`` in the last sweeps."""
        return len(self.trace) > sweeps and self.trace[-1 - sweeps] - self.trace[-1] <= by

    def _keep(self, new: State) -> None:
        if np.count_nonzero(new.weights) != np.count_nonzero(self.best.weights):
            self.since = len(self.trace)
        self.best = new
        self.trace.append(new.value)

    def _searching(self) -> bool:
        """Whether a component of weight 0 may still find a place."""
        return bool(np.any(self.best.weights == 0.0)) and len(self.trace) - self.since <= SEARCH

    def _merge(self) -> bool:
        """Join components that have become the same, if that costs nothing."""
        rng = generator(0, "start", 0, self.merges)
        together = merged(self.best, self.task.sets, rng) if self.merges else None
        if together is None:
            return False
        self.merges -= 1
        new = self._swept(together)
        if not new.value <= self.best.value + self.noise:
            return False
        self._keep(new)
        self.since = len(self.trace)
        return True

    def _swept(self, first: State, lead: tuple[int, int] | None = None) -> State:
        """One sweep over the modes, then all weights; it begins with mode and component ``lead``."""
        w, factors = first.weights, list(first.factors)
        for i, X in enumerate(factors):
            if X is not self.sweep.factors[i]:
                self.sweep.replace(i, X)
        order = self.order if lead is None else tuple(dict.fromkeys((lead[0], *self.order)))
        for i in order:
            quadratic = self.sweep.mode(i)
            penalties = self.task.penalties(factors)
            taus = penalties.sum(axis=0) - penalties[i]
            nonnegative = isinstance(self.task.sets[i], NonnegativeBall)
            own = Terms(float(self.task.rho[i]), taus, nonnegative)
            begin = lead[1] if lead and i == lead[0] else 0
            a, factors[i] = mode_step(quadratic, w[:, None] * factors[i], factors[i], own, begin)
            w = np.linalg.norm(a, axis=1)
            self.sweep.replace(i, factors[i])
        last = order[-1]
        gram = _gram(self.sweep.mode(last), factors[last])
        w = best_weights(gram, self.task.penalties(factors).sum(axis=0), w)
        return self._valued(w, tuple(factors), last)

    def _valued(self, w: np.ndarray, factors: tuple[np.ndarray, ...], i: int) -> State:
        """F, from the contractions of mode i at these very vectors."""
        fit = smooth_part(self.sweep.mode(i), w[:, None] * factors[i])
        value = 0.5 * self.task.data.observed.squared_norm.value + fit
        return State(w, factors, value + float(w @ self.task.penalties(factors).sum(axis=0)))


def _gram(quadratic: ModeTerms, X: np.ndarray) -> Gram:
    """From the contractions of one mode: <component r, component s> = x_r'(pairs_rs o x_s)."""
    pairs = np.einsum("rj,rsj,sj->rs", X, quadratic.pairs, X)
    return Gram(pairs, np.einsum("rj,rj->r", X, quadratic.linear))


def _data(A: Any) -> CanonicalPolyadic:
    """The data, for NumPy vectors in float64; float32 entries stay what they are."""
    data = A if isinstance(A, CanonicalPolyadic) else CanonicalPolyadic(A, [1.0])
    return data.converted(np.zeros(()))


def _with_rank(A: Any, factors: Sequence[Any]) -> tuple[CanonicalPolyadic, tuple[np.ndarray, ...]]:
    """The data with as many components as the factors have, all of weight 1."""
    data = _data(A)
    X = checked_factors(factors, data.sizes)
    return data.reweighted(np.ones(len(X[0]))), X
