"""Pictures of a comparison by held-out entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from restpoint.models import _plotting as pieces

# Core consistencies below are drawn at the edge.
WORST_CORE = -25.0
# What is shown beside the error: column, title, and what the axis ends at.
BESIDE = (
    ("fit", "fit\n(explained variance)", None),
    ("core_consistency", "core consistency (%)", 105.0),
    ("replicability", "replicability\n(halves of the samples)", 1.05),
)


class ComparisonPlots:
    """What a fitted comparison shows of itself; every method as in ``SparseTensorPCA``."""

    cv_results_: Any
    by_components_: Any
    best_index_: int | None
    best_params_: dict[str, Any]
    one_se: bool

    def plot_errors(self, *, ax: Any = None) -> Any:
        """Held-out errors with their standard errors over rho, a line for each number of components: the axes.

        A star is at what was chosen; with ``one_se`` the shaded band is what counts as good as the least error. 1 is
        the error of no component at all. With a single rho, errors over the number of components.

        >>> import numpy as np
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(6)[:3])
        >>> A += 0.1 * np.random.default_rng(0).standard_normal(A.shape)
        >>> from restpoint.models import SparseTensorPCACV
        >>> from matplotlib.figure import Figure
        >>> search = SparseTensorPCACV((1, 2), rho=[0.0, 0.5], folds=3).fit(A)
        >>> ax = search.plot_errors(ax=Figure().subplots())
        >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()][-2:]
        ('held-out error', ['1 component', '2 components'])
        """
        check_is_fitted(self)
        table, best = self.cv_results_, self.best_index_
        counts, several = np.unique(table["n_components"]), len(np.unique(table["rho"])) > 1
        error, se = table["error"], np.nan_to_num(table["se"])
        with pieces.canvas(ax, (1, 1), (5.4, 3.6), "one panel") as made:
            axis = made[0, 0]
            pieces.plain(axis, grid="both")
            x, lines = table["n_components"], {"_": np.arange(len(error))}
            if several:  # a little beside each other, or error bars hide each other
                place = np.searchsorted(counts, table["n_components"]) - (len(counts) - 1) / 2.0
                x = pieces.rho_places(table["rho"]) * 0.985**place
                lines = {
                    pieces.counted(n): np.flatnonzero(table["n_components"] == n) for n in counts
                }
            for k, (label, own) in enumerate(lines.items()):
                _errorbars(axis, x[own], error[own], se[own], k, label)
            _error_range(axis, x, error, se)
            pieces.star(axis, x[best], error[best])
            _levels(axis, error, se, self.one_se)
            axis.set_ylabel("held-out error", fontsize=pieces.SMALL + 1)
            if several:
                pieces.rho_axis(axis, table["rho"])
            else:
                pieces.components_axis(axis, counts)
            pieces.legend_beside(axis)
            return axis

    def plot_components(self, *, axes: Any = None) -> np.ndarray:
        """What speaks for each number of components, as in ``by_components_``: four axes.

        The held-out error with its standard error, fit, core consistency and replicability. A star is at the number
        that was chosen, triangles at an edge are values beyond it.

        >>> import numpy as np
        >>> A = 9.0 * np.einsum("a,b,c->abc", *np.eye(6)[:3])
        >>> A += 0.1 * np.random.default_rng(0).standard_normal(A.shape)
        >>> from restpoint.models import SparseTensorPCACV
        >>> search = SparseTensorPCACV((1, 2), rho=[0.0, 0.5], folds=3).fit(A)
        >>> from matplotlib.figure import Figure
        >>> axes = search.plot_components(axes=Figure().subplots(1, 4))
        >>> [axis.get_title(loc="left").split()[0] for axis in axes]
        ['held-out', 'fit', 'core', 'replicability']
        """
        check_is_fitted(self)
        table = self.by_components_
        counts, error, se = table["n_components"], table["error"], np.nan_to_num(table["se"])
        chosen = int(np.flatnonzero(counts == self.best_params_["n_components"])[0])
        with pieces.canvas(axes, (1, 4), (9.6, 2.6), "error, fit, core, replicability") as made:
            first = made[0, 0]
            _errorbars(first, counts, error, se, 0, "_")
            _error_range(first, counts, error, se)
            pieces.star(first, counts[chosen], error[chosen])
            pieces.headline(first, "held-out error", "(standard error)")
            for axis, (column, title, high) in zip(made[0, 1:], BESIDE, strict=True):
                y = table[column]
                axis.plot(counts, y, "o-", color=pieces.COLOURS[0], ms=4, lw=1.2)
                if np.isfinite(y).any():
                    low = min(0.0, max(WORST_CORE, 1.05 * float(np.nanmin(y))))
                    axis.set_ylim(low, high or 1.1 * max(float(np.nanmax(y)), 1e-300))
                    _beyond(axis, counts, y)
                    pieces.star(axis, counts[chosen], y[chosen])
                else:
                    axis.set_yticks([])
                    axis.text(0.5, 0.5, "not known", ha="center", transform=axis.transAxes)
                pieces.headline(axis, *title.split("\n"))
            for axis in made[0]:
                pieces.plain(axis)
                pieces.components_axis(axis, counts)
            return made[0]


def _errorbars(axis: Any, x: Any, y: np.ndarray, se: np.ndarray, k: int, label: str) -> None:
    axis.errorbar(
        x,
        y,
        yerr=se,
        color=pieces.colour(k),
        marker=pieces.mark(k),
        ls=pieces.dash(k),
        ms=4,
        lw=1.2,
        elinewidth=1.0,
        capsize=2.0,
        label=label,
    )


def _levels(axis: Any, error: np.ndarray, se: np.ndarray, one_se: bool) -> None:
    """The error of no component, and what is within one standard error of the least."""
    low, high = axis.get_ylim()
    if low < 1.0 < high:
        axis.axhline(1.0, color=pieces.GREY, ls=":", lw=1.0, label="no component")
    least = int(np.nanargmin(error))
    if one_se and se[least] > 0:
        band = (error[least], error[least] + se[least])
        axis.axhspan(*band, color=pieces.GREY, alpha=0.18, lw=0, label="least + standard error")


def _error_range(axis: Any, x: np.ndarray, error: np.ndarray, se: np.ndarray) -> None:
    """From the least error to beyond that of no component, as far as what is between can still be seen."""
    least, most = float(np.nanmin(error)), float(np.nanmax(error + se))
    top = min(most, max(1.2 * least, float(np.clip(1.0 + 2.0 * (1.0 - least), 1.05, 1.5))))
    low = max(0.0, float(np.nanmin((error - se)[error <= top])))
    margin = 0.06 * (top - low) or 0.1
    axis.set_ylim(low - margin, top + margin)
    _beyond(axis, x, error)


def _beyond(axis: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Triangles at the edge for what is beyond it."""
    low, high = axis.get_ylim()
    for outside, edge, shape in ((y < low, low, "v"), (y > high, high, "^")):
        style: dict[str, Any] = {"color": pieces.GREY, "ms": 7, "clip_on": False, "zorder": 4}
        if outside.any():
            axis.plot(x[outside], np.full(int(outside.sum()), edge), shape, **style)
