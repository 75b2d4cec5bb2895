"""What this installation consists of, for reports and for bug reports."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from restpoint.kernels import choice, threads

PACKAGES = ("restpoint", "numpy", "scipy", "numba", "array-api-compat", "scikit-learn")
OPTIONAL = ("torch", "jax", "cvxpy", "pandas", "tensorly", "pyttb", "sparse")


class Info(dict[str, Any]):
    """A dictionary that prints itself."""

    def __str__(self) -> str:
        rows = [(name, value) for name, value in self.items() if not isinstance(value, dict)]
        for title, part in self.items():
            if isinstance(part, dict):
                rows += [(title, "")] + [(f"  {name}", value) for name, value in part.items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}".rstrip() for name, value in rows)


def info() -> Info:
    """Versions, threads, BLAS, and how tensors are read.

    >>> info()["kernels"]["named by RESTPOINT_KERNEL"]
    'nothing: chosen by size, dtype, starts and zeros'
    """
    from threadpoolctl import threadpool_info

    versions = {name: _version(name) for name in (*PACKAGES, *OPTIONAL)}
    return Info(
        {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "versions": {name: found for name, found in versions.items() if found},
            "linear algebra": {
                f"{pool['internal_api']} {pool.get('version')}": f"{pool['num_threads']} threads, "
                f"{pool.get('architecture', 'unknown architecture')}"
                for pool in threadpool_info()
            },
            "kernels": {
                "threads": threads.count(),
                f"named by {choice.VARIABLE}": choice.named()
                or "nothing: chosen by size, dtype, starts and zeros",
                **{f"{name}, in reads": str(costs) for name, costs in choice.TABLE.items()},
                "on supports, per read": f"{choice.SUPPORT_BOTH} both ways, {choice.SUPPORT_ROWS} one way",
            },
        }
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
