"""How many threads the compiled kernels use, and the pool that runs them.

The compiled loops release the interpreter's lock, so plain threads will do: nothing has to be compiled for them, and
who does what depends on the thread count alone, which makes results repeat bit by bit for a fixed count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from restpoint.errors import DataError

# Handing work to another thread costs some 20 microseconds: the time to read so many bytes.
BYTES_PER_THREAD = 2_000_000

_chosen: int | None = None
_pool: tuple[int, int, ThreadPoolExecutor] | None = None  # process, threads, pool


def count() -> int:
    """The threads in use: ``set_threads``, else RESTPOINT_THREADS, else NUMBA_NUM_THREADS, else all cores allowed."""
    if _chosen is not None:
        return _chosen
    for name in ("RESTPOINT_THREADS", "NUMBA_NUM_THREADS"):
        if os.environ.get(name):
            return _checked(name, os.environ[name])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int | None) -> None:
    """Use ``n`` threads from now on; None goes back to the environment's word."""
    global _chosen  # noqa: PLW0603 - the one setting of the process
    _chosen = None if n is None else _checked("n", n)


@contextmanager
def use_threads(n: int) -> Iterator[None]:
    """Use ``n`` threads inside a ``with`` block."""
    before = _chosen
    set_threads(n)
    try:
        yield
    finally:
        set_threads(before)


def useful(size: int) -> int:
    """How many threads pay for themselves where ``size`` bytes are read."""
    return max(1, min(count(), size // BYTES_PER_THREAD))


def run(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run the tasks at the same time, one a thread, the first in this one; their answers in order."""
    if len(tasks) == 1:
        return [tasks[0]()]
    pool = _the_pool(len(tasks) - 1)
    others = [pool.submit(task) for task in tasks[1:]]
    try:
        first = tasks[0]()
    finally:
        rest = [other.result() for other in others]  # nobody may still write when this returns
    return [first, *rest]


def _the_pool(size: int) -> ThreadPoolExecutor:
    """A pool of at least ``size`` threads of this process (a forked child has none of its parent's)."""
    global _pool  # noqa: PLW0603 - threads are a resource of the process
    if _pool is None or _pool[0] != os.getpid() or _pool[1] < size:
        _pool = (os.getpid(), size, ThreadPoolExecutor(size, thread_name_prefix="restpoint"))
    return _pool[2]


def _checked(name: str, value: object) -> int:
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(value, bool) or (isinstance(value, float) and value != number):
        raise DataError(f"{name} must be a whole number of threads >= 1, got {value!r}")
    return number
