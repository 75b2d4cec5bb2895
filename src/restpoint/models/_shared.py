"""What all models need: seeds from a ``random_state``, and packages that may not be installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from restpoint.array import whole_number
from restpoint.errors import CapabilityError


def seed_of(random_state: Any) -> int:
    """A whole number; a generator or None draws one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return whole_number("random_state", random_state, 0)


class MissingPackageError(CapabilityError, ImportError):
    """A package that restpoint can do without is needed here."""


def needed(package: str, caller: str, extra: str | None = None) -> ModuleType:
    """An optional package, or the line that installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        line = f'pip install "restpoint[{extra}]"' if extra else f"pip install {package}"
        raise MissingPackageError(
            f"{caller} needs {package}, which is not installed: {line}"
        ) from error
