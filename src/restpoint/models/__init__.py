"""Problems people have, as estimators. scikit-learn is imported when one of them is asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restpoint.models.tensor_pca import SparseTensorPCA, SparseTensorPCACV

__all__ = ["SparseTensorPCA", "SparseTensorPCACV"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from restpoint.models import tensor_pca

        return getattr(tensor_pca, name)
    raise AttributeError(f"module 'restpoint.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
