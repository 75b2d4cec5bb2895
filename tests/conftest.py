"""The array libraries that tests run over.

NumPy and array-api-strict always; torch, jax and others when RESTPOINT_TEST_BACKENDS names them
(``RESTPOINT_TEST_BACKENDS=torch,jax``).
"""

import importlib
import os

import pytest

from figures import figures, pytest_terminal_summary  # noqa: F401 - a fixture and a hook

_OPTIONAL = [name for name in os.environ.get("RESTPOINT_TEST_BACKENDS", "").split(",") if name]
_IMPORTS = {"jax": "jax.numpy"}


def _parameters():
    always = [pytest.param(name, id=name) for name in ("numpy", "array_api_strict")]
    named = [
        pytest.param(name, id=name, marks=pytest.mark.backends)
        for name in _OPTIONAL
        if name not in ("numpy", "array_api_strict")
    ]
    return always + named


@pytest.fixture(params=_parameters())
def xp(request):
    """An array library."""
    name = request.param
    if name == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    return importlib.import_module(_IMPORTS.get(name, name))


@pytest.fixture(params=["float64", "float32"])
def like(request, xp):
    """An array that shows a library and a dtype."""
    return xp.zeros((), dtype=getattr(xp, request.param))
