"""Components in the forms of other libraries, with the names of modes and of their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from restpoint.errors import DataError
from restpoint.models._shared import needed


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """The vectors of one mode: ``rows`` of shape (n_components, n), and a label for each of the n entries.

    Entries that came without labels are labelled 0, 1, ..., n - 1; ``named`` tells which.

    >>> import numpy as np
    >>> Factor("gene", np.array([[0.6, 0.0, -0.8]]), ("a", "b", "c"))
    gene, component 1: c -0.8, a 0.6
    """

    mode: str
    rows: np.ndarray
    labels: tuple[Any, ...]
    named: bool = True

    def nonzero(self, component: int = 0) -> dict[Any, float]:
        """The entries that are not 0, largest first.

        >>> import numpy as np
        >>> Factor("gene", np.array([[0.6, 0.0, -0.8]]), ("a", "b", "c")).nonzero()
        {'c': -0.8, 'a': 0.6}
        """
        row = self.rows[component]
        order = np.argsort(-np.abs(row), kind="stable")
        return {self.labels[j]: float(row[j]) for j in order if row[j] != 0}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        lines = []
        for r in range(len(self.rows)):
            own = list(self.nonzero(r).items())
            shown = ", ".join(f"{label} {value:.3g}" for label, value in own[:8])
            more = f", and {len(own) - 8} more" if len(own) > 8 else ""
            lines.append(f"{self.mode}, component {r + 1}: {shown or 'nothing'}{more}")
        return "\n".join(lines)


class CPPair(tuple[np.ndarray, list[np.ndarray]]):
    """(weights, factors) as tensorly takes them, with the names that belong to them."""

    mode_names: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]


def labelled(
    rows: Sequence[np.ndarray], names: Sequence[str], labels: Sequence[Any]
) -> dict[str, Factor]:
    """One ``Factor`` for each mode, in the order of the modes."""
    found = {}
    for x, name, own in zip(rows, names, labels, strict=True):
        given = tuple(range(x.shape[1]) if own is None else np.asarray(own).tolist())
        found[name] = Factor(name, x, given, own is not None)
    return found


class Conversions:
    """What a fitted estimator gives to other libraries. Components are counted from 1 where they have labels."""

    components_: list[np.ndarray]
    weights_: np.ndarray
    mode_names_: tuple[str, ...]
    labels_: tuple[Any, ...]
    explained_variance_ratio_: np.ndarray

    @property
    def factors_(self) -> dict[str, Factor]:
        """The vectors of every mode by its name, with the labels of the entries.

        >>> import numpy as np
        >>> from restpoint.models import SparseTensorPCA
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3])
        >>> SparseTensorPCA(rho=1.0, mode_names=["who", "what", "when"]).fit(A).factors_["what"]
        what, component 1: 1 1
        """
        check_is_fitted(self)
        return labelled(self.components_, self.mode_names_, self.labels_)

    def to_tensorly(self) -> Any:
        """The ``CPTensor`` (weights, [one array (n_mode, n_components) a mode]) of tensorly.

        A pair of the same content where tensorly is not installed. Either has ``mode_names`` and ``labels``, one tuple
        a mode.
        """
        factors = self.factors_
        arrays = [np.ascontiguousarray(x.T) for x in self.components_]
        pair: Any
        try:
            tensorly, module = import_module("tensorly"), import_module("tensorly.cp_tensor")
        except ImportError:
            pair = CPPair((self.weights_.copy(), arrays))
        else:  # in the arrays of the backend that tensorly is set to
            whole = (tensorly.tensor(self.weights_), [tensorly.tensor(x) for x in arrays])
            pair = module.CPTensor(whole)
        pair.mode_names = tuple(factors)
        pair.labels = tuple(factor.labels for factor in factors.values())
        return pair

    def to_pyttb(self) -> Any:
        """The ``ktensor`` of pyttb: weights, and one array (n_mode, n_components) a mode."""
        check_is_fitted(self)
        pyttb = needed("pyttb", "to_pyttb()")
        return pyttb.ktensor([np.asfortranarray(x.T) for x in self.components_], self.weights_)

    def to_xarray(self) -> Any:
        """A ``Dataset`` of the loadings of every mode, the weights and the explained variance, with named coordinates.

        The loadings of a mode ``gene`` are the variable ``gene_loadings``, of dimensions (component, gene).
        """
        factors = self.factors_
        xarray = needed("xarray", "to_xarray()", extra="frames")
        if "component" in factors:
            raise DataError(
                'to_xarray() calls the dimension of components "component", which is the name of a mode here; '
                "choose another with mode_names"
            )
        rank = len(self.weights_)
        variables: dict[str, Any] = {
            f"{name}_loadings": (("component", name), np.array(factor.rows))
            for name, factor in factors.items()
        }
        variables["weights"] = ("component", self.weights_.copy())
        variables["explained_variance_ratio"] = ("component", self.explained_variance_ratio_.copy())
        coordinates: dict[str, Any] = {"component": np.arange(1, rank + 1)}
        coordinates |= {
            name: list(factor.labels) for name, factor in factors.items() if factor.named
        }
        return xarray.Dataset(variables, coords=coordinates)

    def loadings_frame(self, mode: str | int | None = None) -> Any:
        """A pandas table: of one mode, entries x components; of all, one line for each loading.

        The long table has the columns mode, label, component, loading; zeros are in it.
        """
        factors = self.factors_
        pandas = needed("pandas", "loadings_frame()", extra="frames")
        components = range(1, len(self.weights_) + 1)
        if mode is not None:
            factor = _chosen(factors, mode)
            columns = pandas.Index(components, name="component")
            index = pandas.Index(factor.labels, name=factor.mode, tupleize_cols=False)
            return pandas.DataFrame(factor.rows.T.copy(), index=index, columns=columns)
        lines = [
            (name, label, r, float(value))
            for name, factor in factors.items()
            for r, row in zip(components, factor.rows, strict=True)
            for label, value in zip(factor.labels, row, strict=True)
        ]
        return pandas.DataFrame(lines, columns=["mode", "label", "component", "loading"])


def _chosen(factors: dict[str, Factor], mode: str | int) -> Factor:
    """The factor of a mode, by its name or its number."""
    names = list(factors)
    if isinstance(mode, str) and mode in factors:
        return factors[mode]
    if (
        isinstance(mode, (int, np.integer))
        and not isinstance(mode, bool)
        and 0 <= mode < len(names)
    ):
        return factors[names[mode]]
    raise DataError(
        f"mode must be one of {', '.join(map(repr, names))}, or a number from 0 to {len(names) - 1}, got {mode!r}"
    )
