"""How much memory can still be had, and a refusal in words before an attempt that cannot succeed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from restpoint.errors import DataError

PROC, GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Of a control group, versions 2 and 1: the limit, what is used, and how much of that are files that can be dropped.
FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def require_memory(needed: int, what: str) -> None:
    """Refuse what needs more bytes than can be had; where that is not known, nothing is refused.

    >>> require_memory(1000, "a small array")
    >>> require_memory(10**18, "a tensor of 10^17 entries")
    Traceback (most recent call last):
    ...
    restpoint.errors.DataError: a tensor of 10^17 entries needs 1,000,000,000,000,000,000 bytes (1e+09 GB) ...
    """
    available = available_memory()
    if available is not None and needed > available:
        raise DataError(
            f"{what} needs {_shown(needed)} of memory, but {_shown(available)} can be had; "
            "ask for less at a time, or free some memory"
        )


def available_memory() -> int | None:
    """The bytes that the machine, and every control group of this process, still have to give; None if unknown."""
    known = [size for size in (_of_the_machine(), *_of_its_groups()) if size is not None]
    return min(known, default=None)


def _of_the_machine() -> int | None:
    counted = _table(PROC / "meminfo").get("MemAvailable:")
    if counted is not None:
        return 1024 * counted
    try:  # no Linux: all that there is, so that only the impossible is refused
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _of_its_groups() -> Iterator[int]:
    for line in _lines(PROC / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        limit, used, files = FILES[1 if controllers else 0]
        root = GROUPS / controllers
        group = root / path.strip("/")
        for place in (group, *group.parents):
            most, spent = _number(place / limit), _number(place / used)
            if most is not None and spent is not None:
                yield max(0, most - spent + _table(place / "memory.stat").get(files, 0))
            if place == root:
                break


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """The number in a file; None where there is none, as in "max"."""
    words = " ".join(_lines(path)).split()
    return int(words[0]) if words and words[0].isdigit() else None


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    rows = (line.split() for line in _lines(path))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _shown(size: int) -> str:
    return f"{size:,} bytes ({size / 1e9:.3g} GB)"
