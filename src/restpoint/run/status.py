"""How a start ended."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Only a certificate says CERTIFIED; everything else says why the loop let go without one."""

    CERTIFIED = "stationary to eps, proved at the point returned"
    ITERATION_LIMIT = "the budget of iterations, gradients or oracle calls is used up"
    TIME_LIMIT = "max_seconds is over"
    STALLED = (
        "no further progress: a value-change rule, no movement, or eps below the rounding floor"
    )
    TARGET_REACHED = "target_value is reached"
    RETIRED = "given up in favour of better starts (a heuristic)"
    NON_FINITE = "NaN or an infinite value appeared; the point returned is the best one before"
    INTERRUPTED = "stopped by Ctrl-C or by an observer"
    ORACLE_FAILED = "code outside the library raised; the point returned is the best one before"

    def __repr__(self) -> str:
        return self.name
