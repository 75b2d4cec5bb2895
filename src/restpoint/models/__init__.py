"""Problems people have, as estimators. scikit-learn is imported when one of them is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restpoint.models.discriminant import ZeroVarianceDiscriminant, ZeroVarianceDiscriminantCV
    from restpoint.models.tensor_pca import SparseTensorPCA, SparseTensorPCACV

_ROOMS = {
    "SparseTensorPCA": "tensor_pca",
    "SparseTensorPCACV": "tensor_pca",
    "ZeroVarianceDiscriminant": "discriminant",
    "ZeroVarianceDiscriminantCV": "discriminant",
}

__all__ = [
    "SparseTensorPCA",
    "SparseTensorPCACV",
    "ZeroVarianceDiscriminant",
    "ZeroVarianceDiscriminantCV",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(f"restpoint.models.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'restpoint.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
