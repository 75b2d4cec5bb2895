"""What ``print(result)`` says: the status, the numbers behind it, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restpoint.run.status import Status

if TYPE_CHECKING:
    from restpoint.run.result import Result

NEXT_STEP = {
    Status.CERTIFIED: "use result.xs; other starts may end lower: solve(..., starts=20, rng=1)",
    Status.ITERATION_LIMIT: "raise Stop(max_iterations=...), or go on with solve(..., x0=result.xs)",
    Status.TIME_LIMIT: "raise Stop(max_seconds=...), or go on with solve(..., x0=result.xs)",
    Status.STALLED: "loosen eps (the rounding allowance of the certificate says how far), or drop the value rule",
    Status.TARGET_REACHED: "drop Stop(target_value=...) to go on to a certificate",
    Status.RETIRED: "nothing: better starts were found",
    Status.NON_FINITE: "look at f and its gradient near result.last",
    Status.INTERRUPTED: "go on with solve(..., x0=result.xs)",
    Status.ORACLE_FAILED: "mend the code that raised (result.error), then go on with solve(..., x0=result.xs)",
}
SAMPLED = "the iteration drawn as the output (theory E15), or a budget, is reached"
SAMPLED_NEXT = (
    "more samples m and a larger Stop(max_iterations=...) lower the expected gap; or go on with Exact() gradients "
    "from x0=result.xs"
)
WITHDRAWN = "see bound; if something was declared, correct it: a larger constant, a true lower bound, no concave=True"
OUTSIDE = (
    "the point lies outside its set: mend x0, or the linear, prox or project of that block, or allow it with "
    "Stop(feasibility=...)"
)
UNMEASURED = "the violation is NaN: mend the violation or project of that block"


def headline(result: Result) -> str:
    """How it ended: the status, or how many starts ended with which."""
    statuses = np.asarray(result.status, dtype=object).reshape(-1)
    if len(statuses) == 1:
        return f"{statuses[0].name}: {_meaning(statuses[0], result)}"
    counts = {s.name: int(np.sum(statuses == s)) for s in Status if np.any(statuses == s)}
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{len(statuses)} starts: {said}"


def lines(result: Result) -> list[str]:
    """The whole report, about the best start where there are several."""
    best, said = result.best(), [headline(result)]
    if np.size(result.status) > 1:
        said[0] += "; the best:"
        said.append(headline(best))
    blocks = f"{result.measure} of {len(result.xs)} block{'s' * (len(result.xs) > 1)}"
    certificate = best.certificate
    said += [
        f"  value      {float(best.value):.10g}",
        f"  gap        {_gap(best)} ({blocks}, {certificate.kind})",
        f"  rounding   {float(np.max(certificate.floor)):.1e} of that ({certificate.floor_kind})",
        f"  violation  {_violation(best)}",
        f"  iterations {int(best.iterations)}",
        f"  bound      {best.bound.brief(int(best.used))}",
        f"  seconds    {result.seconds:.3g}",
    ]
    if best.engine:
        said.append(f"  engine     {best.engine}")
    if result.loaded is not None:
        said.append(
            f"  loaded     from {result.loaded.path}, written by {result.loaded.written_by}; "
            "certify(problem, result.xs) proves it anew"
        )
    if result.message:
        said.append(f"  message    {result.message}")
    return said + [f"  next       {hint}" for hint in _hints(result)]


def _meaning(status: Status, result: Result) -> str:
    sampled = status is Status.ITERATION_LIMIT and not result.method.exact
    return SAMPLED if sampled else status.value


def _gap(best: Result) -> str:
    """How the two numbers compare, whatever else is true of the point."""
    relation = "<=" if best.gap <= best.eps else "> " if best.gap > best.eps else "against"
    return f"{float(best.gap):.3e} {relation} eps {float(best.eps):.3e}"


def _violation(best: Result) -> str:
    certificate = best.certificate
    if not certificate.feasibility_checked and certificate.violation == 0.0:
        return "not checked"
    said = f"{float(certificate.violation):.1e}"
    if certificate.relative_violation <= best.feasibility:
        return said
    if np.isnan(certificate.relative_violation):
        return "not known (nan)"
    return (
        f"{said}, {float(certificate.relative_violation):.1e} of the set's radius: not feasible, "
        f"which means at most {best.feasibility:.0e}"
    )


def _hints(result: Result) -> list[str]:
    """The next steps: what is wrong first, then what each status suggests where nothing is."""
    statuses = np.asarray(result.status, dtype=object).reshape(-1)
    far = np.asarray(result.certificate.relative_violation).reshape(-1)
    outside = far > result.feasibility
    unmeasured = np.isnan(far) & ~np.isin(
        [s.name for s in statuses], [Status.ORACLE_FAILED.name, Status.NON_FINITE.name]
    )
    hints = [WITHDRAWN] if result.bound.withdrawn is not None else []
    hints += [OUTSIDE] * bool(outside.any()) + [UNMEASURED] * bool(unmeasured.any())
    explained = (outside | unmeasured) & (statuses == Status.STALLED)
    left = set(statuses[~explained])
    if left != {Status.CERTIFIED}:
        left.discard(Status.CERTIFIED)
    for status in (s for s in Status if s in left):
        sampled = status is Status.ITERATION_LIMIT and not result.method.exact
        hints.append(SAMPLED_NEXT if sampled else NEXT_STEP[status])
    return hints
