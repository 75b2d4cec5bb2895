"""Fail if a lock holds an address, a path or a package without a hash.

A lock says what to install, not where from: that is each machine's own affair.
"""

import re
import sys
from pathlib import Path

LOCKS = Path(__file__).resolve().parent.parent / "requirements"

FORBIDDEN = {
    "an address": re.compile(r"://|\bfile:|\bgit\+|\s@\s"),
    "a host name": re.compile(r"\b[a-z0-9-]+\.(?:com|dev|io|net|org)\b", re.IGNORECASE),
    "an absolute path": re.compile(r"(?:^|[\s='\"])(?:/|~|[A-Za-z]:\\)"),
    "an option about where to look": re.compile(
        r"--(?:index-url|extra-index-url|find-links|trusted-host|no-index)"
    ),
}


def complaints(path: Path) -> list[str]:
    """What is wrong with one lock, one line each."""
    text = path.read_text(encoding="utf-8")
    found = [
        f"{path.name}:{number}: {what}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]
    # A requirement and its hashes are one logical line, continued by backslashes.
    logical = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    requirements = [line for line in logical if not line.lstrip().startswith("#")]
    if not requirements:
        found.append(f"{path.name}: holds no requirement")
    found += [
        f"{path.name}: not an exact version with a hash: {line.split()[0]}"
        for line in requirements
        if "==" not in line or "--hash=sha256:" not in line
    ]
    return found


def main() -> int:
    """Check every lock; 0 if all are clean."""
    locks = sorted(LOCKS.glob("*.txt"))
    found = [complaint for lock in locks for complaint in complaints(lock)]
    if not locks:
        found.append("requirements/ holds no lock: run make lock")
    for complaint in found:
        print(complaint, file=sys.stderr)
    if not found:
        print(f"{len(locks)} locks hold names, versions and hashes only")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
