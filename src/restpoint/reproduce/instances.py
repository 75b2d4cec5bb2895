"""The instances of an experiment, one after the other or on several processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

from restpoint.array import whole_number
from restpoint.errors import DataError

Row = TypeVar("Row")


def run(
    rows: Callable[..., list[Row]],
    sizes: Sequence[int],
    instances: int,
    *,
    seed: int = 0,
    workers: int = 1,
) -> Generator[list[Row], None, None]:
    """``rows(n, number, seed=seed)`` of every instance, size by size; the same whatever the number of workers."""
    sizes = [whole_number("sizes", n, 1) for n in sizes]
    if len(set(sizes)) < len(sizes) or not sizes:
        raise DataError(f"sizes must be different numbers, at least one, got {sizes}")
    instances = whole_number("instances", instances, 1)
    seed, workers = whole_number("seed", seed, 0), whole_number("workers", workers, 1)
    jobs = [(n, k) for n in sizes for k in range(instances)]
    return _spread(partial(_rows_of, rows=rows, seed=seed), jobs, workers)


def _spread(
    work: partial[list[Row]], jobs: list[tuple[int, int]], workers: int
) -> Generator[list[Row], None, None]:
    if workers == 1:
        yield from map(work, jobs)
        return
    # Spawned, not forked: a fork copies the locks of threads that it does not copy.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _rows_of(job: tuple[int, int], rows: Callable[..., list[Row]], seed: int) -> list[Row]:
    return rows(*job, seed=seed)
