"""Pictures of a fitted estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from restpoint.array import whole_number
from restpoint.errors import DataError, ShapeError
from restpoint.models._loadings import Mode, draw_loadings, has_order, name_of
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.models.tensor_pca.data import chosen_mode, per_mode
from restpoint.models.tensor_pca.drawing import draw_convergence, draw_path
from restpoint.models.tensor_pca.starts import Starts


class Plots:
    """What a fitted estimator shows of itself.

    Every method draws into the matplotlib axes that it is given, or into those of a new figure, and returns them; the
    figure is ``axes[0].figure``. Nothing is shown, saved or printed, and no setting of matplotlib is changed. pyplot is
    asked for a new figure and for nothing else; with the axes of a ``matplotlib.figure.Figure`` it is not imported.
    """

    components_: list[np.ndarray]
    weights_: np.ndarray
    explained_variance_ratio_: np.ndarray
    mode_names_: tuple[str, ...]
    labels_: tuple[Any, ...]
    starts_: Starts
    convergence_: tuple[Convergence, ...]
    path_: Any
    rho_: np.ndarray
    _modes_of: tuple[tuple[int, ...], ...]

    def plot_loadings(
        self,
        modes: Any = None,
        components: Any = None,
        *,
        kind: str = "auto",
        labels: Any = None,
        ordered: Any = None,
        most: int = 30,
        axes: Any = None,
    ) -> np.ndarray:
        """The loadings, entry by entry; modes with numbers or dates for labels as lines, others as bars with names.

        Parameters
        ----------
        modes : one mode or several, by name or number; default all. Tied modes, which share a vector, are one
        components : one row of ``components_`` or several, counted from 0; default all
        kind : "grid" (a row a mode, a column a component), "overlay" (one axes a mode, a colour a component) or
            "heatmap" (one axes a mode, entries x components). "auto": the grid for up to 7 components, then heat maps;
            where axes are given, what their number asks for
        labels : names of the entries by mode, in place of those that came with the data: {"hours": [1, 2, 4]}
        ordered : the modes that are drawn as lines, in place of those with numbers or dates for labels
        most : so many entries of a mode have a name each. Of more, those that are 0 in all components are left out;
            if that does not suffice, the entries become thin stems and the strongest are named
        axes : one for each panel, row by row

        Returns
        -------
        array of axes, of shape (modes, components) for a grid, else (modes,)

        >>> import numpy as np
        >>> from restpoint.models import SparseTensorPCA
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3])
        >>> model = SparseTensorPCA(rho=1.0, mode_names=["who", "what", "when"]).fit(A)
        >>> axes = model.plot_loadings(["who", "when"], ordered="when")
        >>> axes.shape, axes[0, 0].get_ylabel(), axes[1, 0].get_xlabel()
        ((2, 1), 'who', 'when')
        >>> axes[0, 0].figure.savefig("loadings.pdf")  # doctest: +SKIP
        >>> from matplotlib import pyplot as plt
        >>> plt.close(axes[0, 0].figure)
        """
        check_is_fitted(self)
        rank = len(self.weights_)
        rows = _listed(components, rank)
        found = self._drawn(modes, rows, labels, ordered, whole_number("most", most, 1))
        titles = {}
        for r in rows:
            share = self.explained_variance_ratio_[r]
            more = f", {share:.1%}" if np.isfinite(share) else ""
            titles[r] = f"component {r + 1}\nweight {self.weights_[r]:.3g}{more}"
        return draw_loadings(found, titles, kind, axes)

    def plot_path(self, *, axes: Any = None) -> np.ndarray:
        """The path that rho="auto" chose the first component from, as ``TensorPath.plot`` draws it.

        A dotted line is at the rho of the fit, where there is one component.

        >>> import numpy as np
        >>> from restpoint.models import SparseTensorPCA
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3])
        >>> A += 0.1 * np.random.default_rng(0).standard_normal(A.shape)
        >>> from matplotlib.figure import Figure
        >>> axes = SparseTensorPCA().fit(A).plot_path(axes=Figure(figsize=(6, 9)).subplots(5))
        >>> [axis.get_ylabel() for axis in axes]
        ['nonzeros', 'BIC', 'mode0', 'mode1', 'mode2']
        """
        check_is_fitted(self)
        if self.path_ is None:
            raise DataError(
                'the fit followed no path: it does where rho="auto". model.path(X).plot() draws one for any rho'
            )
        chosen = float(np.max(self.rho_)) if len(self.rho_) == 1 else None
        return draw_path(self.path_, axes, chosen)

    def plot_starts(self, *, axes: Any = None) -> np.ndarray:
        """Where the random starts of the first component ended: values, how often, gaps, and what may be unseen.

        Two axes: the values of the distinct ends, best first; and how many starts ended there.

        >>> import numpy as np
        >>> from restpoint.models import SparseTensorPCA
        >>> model = SparseTensorPCA(rho=1.0).fit(9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3]))
        >>> from matplotlib.figure import Figure
        >>> model.plot_starts(axes=Figure().subplots(1, 2))[0].get_title(loc="left")
        '20 starts, 1 distinct end'
        """
        check_is_fitted(self)
        return self.starts_.plot(axes)

    def plot_convergence(self, *, axes: Any = None) -> np.ndarray:
        """How the solves went that ended in the certificates: one curve for each.

        Two axes over the sweeps: the value above that of the end, and the gap with the eps that it had to come down to;
        a star is the certified gap of what is returned. Where components were refined together, gaps are known
        only where a certificate was asked for.

        >>> import numpy as np
        >>> from restpoint.models import SparseTensorPCA
        >>> model = SparseTensorPCA(rho=1.0).fit(9.0 * np.einsum("a,b,c->abc", *np.eye(4)[:3]))
        >>> from matplotlib.figure import Figure
        >>> [axis.get_ylabel() for axis in model.plot_convergence(axes=Figure().subplots(1, 2))]
        ['value above that of the end', 'gap']
        """
        check_is_fitted(self)
        count = len(self.convergence_)
        names = [f"component {r + 1}" for r in range(count)] if count > 1 else [""]
        return draw_convergence(self.convergence_, axes, names)

    def _drawn(
        self, modes: Any, rows: Sequence[int], labels: Any, ordered: Any, most: int
    ) -> list[Mode]:
        """What is drawn of every mode that is asked for."""
        names = self.mode_names_
        listed = range(len(names)) if modes is None else _words(modes)
        wanted = [chosen_mode(word, "modes", names) for word in listed]
        lines = (
            None if ordered is None else {chosen_mode(m, "ordered", names) for m in _words(ordered)}
        )
        given = per_mode(labels or {}, "labels", names)
        found, seen = [], set()
        for m in wanted:
            block = next(own for own in self._modes_of if m in own)
            if block in seen:
                continue
            seen.add(block)
            own = next(
                (np.asarray(given[k]) for k in block if given[k] is not None), self.labels_[m]
            )
            size = self.components_[m].shape[1]
            if own is not None and own.shape != (size,):
                raise ShapeError(
                    f"labels of mode {names[m]!r} have shape {own.shape}; expected one for each of the {size} entries"
                )
            order = has_order(own) if lines is None else any(k in lines for k in block)
            name = name_of([names[k] for k in block])
            found.append(Mode(name, self.components_[m][list(rows)], own, order, most))
        return found


def _words(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _listed(components: Any, rank: int) -> list[int]:
    """Rows of components, counted from 0."""
    if components is None:
        return list(range(rank))
    listed = (
        components if isinstance(components, (list, tuple, range, np.ndarray)) else [components]
    )
    found = list(dict.fromkeys(whole_number("components", r, 0) for r in listed))
    if not found or max(found) >= rank:
        raise DataError(
            f"components must be numbers from 0 to {rank - 1}, rows of components_, got {components!r}"
        )
    return found
