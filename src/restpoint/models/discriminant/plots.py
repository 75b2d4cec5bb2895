"""What the fitted discriminants show of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from restpoint.array import whole_number
from restpoint.errors import CapabilityError, DataError, ShapeError
from restpoint.models.discriminant.drawing import (
    Cloud,
    Lane,
    Lines,
    draw_cloud,
    draw_lanes,
    draw_lines,
)
from restpoint.models.discriminant.rule import Rule

# Given samples whose scores differ by less than this share from those of training samples are training samples, ...
SAME = 1e-9
# ... if that holds for more than this share of them: a new sample may well be a copy of an old one.
MOST = 0.5


class DiscriminantPlots:
    """Plots of one fit.

    Every method draws into the matplotlib axes that it is given, or into those of a new figure, and returns them; the
    figure is ``axes[0].figure``. Nothing is shown, saved or printed, and no setting of matplotlib is changed. pyplot is
    asked for a new figure and for nothing else; with the axes of a ``matplotlib.figure.Figure`` it is not imported.
    """

    components_: np.ndarray
    support_: np.ndarray
    classes_: np.ndarray
    means_: np.ndarray
    certified_: bool
    oof_scores_: np.ndarray | None
    oof_covariance_: np.ndarray | None
    selection_frequency_: np.ndarray | None
    basis: Any
    transform: Any
    _rule: Rule
    _code: np.ndarray
    _seen: np.ndarray

    def plot_projections(
        self, X: Any = None, y: Any = None, *, components: Any = None, ax: Any = None
    ) -> Any:
        r"""Samples along one or two of the directions: the axes.

        Without X the training samples, each along directions that were found without it (``oof_scores_``). Along the
        directions of all samples they lie on their class means, whatever the labels: of these only the means are drawn.
        Outlines hold 90 % of what ``predict_proba`` takes a class to be: all in one place where nothing was learned.

        Parameters
        ----------
        X, y : new samples in place of these, and their classes (grey without); training samples are refused
        components : one row of ``components_`` or two, counted from 0; default the first two, if there are two
        ax : where to draw

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from restpoint.models import ZeroVarianceDiscriminant
        >>> y = np.repeat(["a", "b", "c"], 20)
        >>> X = np.random.default_rng(0).standard_normal((60, 200))
        >>> X[:, :6] += 3.0 * np.eye(3)[np.repeat([0, 1, 2], 20)].repeat(2, axis=1)
        >>> model = ZeroVarianceDiscriminant().fit(X, y)
        >>> ax = model.plot_projections(ax=Figure().subplots())
        >>> ax.get_title(loc="left")
        '60 samples, each along\ndirections found without it'
        >>> model.plot_projections(X, y)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        restpoint.errors.DataError: X holds training samples, ...
        """
        check_is_fitted(self)
        rows = _rows(components, len(self.components_), most=2)
        rows = rows[:2] if components is None else rows
        if X is None and y is not None:
            raise DataError("y was given without X; give both, or neither for the training samples")
        scores, code, title = self._held_out() if X is None else self._new(X, y)
        covariance = self.oof_covariance_
        cloud = Cloud(
            scores=scores[:, rows],
            code=code,
            classes=self.classes_.tolist(),
            centroids=self.means_[:, rows],
            means=None if covariance is None else self._rule.means[:, rows],
            covariance=None if covariance is None else covariance[np.ix_(rows, rows)],
            title=title,
            axes=tuple(f"component {r + 1}" for r in rows),
        )
        return draw_cloud(cloud, ax)

    def plot_pattern(
        self, components: Any = None, *, labels: Any = None, most: int = 12, axes: Any = None
    ) -> np.ndarray:
        """Which features the directions use: a stem for each coefficient that is not 0, an axes for each component.

        Dark stems are used in all folds, light ones in few. Where a basis was asked for, coefficients are those in it.

        Parameters
        ----------
        components : one row of ``components_`` or several, counted from 0; default all
        labels : of the features, in place of ``feature_names_in_``: names, or numbers where they lie (wavelengths)
        most : so many of the strongest in each axes have their name, as far as there is room; 0 for none
        axes : one for each component

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from restpoint.models import ZeroVarianceDiscriminant
        >>> y = np.repeat(["a", "b", "c"], 10)
        >>> X = np.random.default_rng(0).standard_normal((30, 100))
        >>> X[:, :6] += 3.0 * np.eye(3)[np.repeat([0, 1, 2], 10)].repeat(2, axis=1)
        >>> model = ZeroVarianceDiscriminant(gamma=0.9).fit(X, y)
        >>> axes = model.plot_pattern(axes=Figure().subplots(2))
        >>> axes[0].get_title(loc="left").split(":")[0]
        'component 1'
        """
        check_is_fitted(self)
        rows = _rows(components, len(self.components_))
        named = labels if labels is not None or self.basis is not None else self._names()
        given = None if named is None else np.asarray(named)
        size = self.components_.shape[1]
        if given is not None and given.shape != (size,):
            raise ShapeError(
                f"labels have shape {given.shape}; expected ({size},), one for each feature"
            )
        frequency = self.selection_frequency_
        lanes = [
            Lane(
                coefficients=self.components_[r],
                frequency=None if frequency is None else frequency[r],
                title=f"component {r + 1}: {int(self.support_[r].sum())} of {size} coefficients are not 0"
                + ("" if self.certified_ else " (the fit is not certified)"),
            )
            for r in rows
        ]
        what = "feature" if self.basis is None else "number in the basis"
        return draw_lanes(lanes, given, (what, whole_number("most", most, 0)), axes)

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _held_out(self) -> tuple[np.ndarray, np.ndarray, str]:
        if self.oof_scores_ is None:
            raise CapabilityError(
                "training samples lie on their class means along these directions, whatever the labels; a picture of "
                "them would say nothing. Fit with oof=5, say, or give new samples: plot_projections(X, y)"
            )
        title = f"{len(self.oof_scores_)} samples, each along\ndirections found without it"
        return self.oof_scores_, self._code, title

    def _new(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, str]:
        scores = self.transform(X)
        if y is None:
            code = np.full(len(scores), -1)
        else:
            given = np.asarray(y)
            if given.shape != (len(scores),):
                raise ShapeError(
                    f"y has shape {given.shape}; expected ({len(scores)},), one entry for each sample"
                )
            strange = np.flatnonzero(~np.isin(given, self.classes_))
            if len(strange):
                raise DataError(
                    f"y names {given.tolist()[strange[0]]!r}, but the classes are {self.classes_.tolist()}"
                )
            code = np.searchsorted(self.classes_, given)
        if self._are_training(scores):
            raise DataError(
                "X holds training samples, which the directions separate by construction, whatever the labels. "
                "Without X, plot_projections() draws them along directions found without them"
            )
        return scores, code, f"{len(scores)} new sample{'s' if len(scores) != 1 else ''}"

    def _are_training(self, scores: np.ndarray) -> bool:
        """Whether most samples have the scores of training samples; nobody knows, where all scores are the same."""
        size = float(np.ptp(self._seen, axis=0).max(initial=0.0))
        if size == 0.0:
            return False
        apart = np.abs(scores[:, None, :] - self._seen).max(axis=2).min(axis=1)
        return bool(np.mean(apart <= SAME * size) > MOST)


class DiscriminantSearchPlots:
    """Plots of a comparison by held-out samples; in every other way like ``DiscriminantPlots``."""

    cv_results_: dict[str, np.ndarray]
    best_index_: int
    one_se: bool
    scoring: Any
    classes_: np.ndarray

    def plot_path(self, *, axes: Any = None) -> np.ndarray:
        """Held-out scores and numbers of features over gamma, a line for each number of components: two axes.

        Bands are one standard error to either side of a mean score; a star is at what was chosen. Above the grey line
        are the scores that count as good as the best (``one_se``). With one gamma, over the number of components.

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from restpoint.models import ZeroVarianceDiscriminantCV
        >>> y = np.repeat([0, 1, 2], 10)
        >>> X = np.random.default_rng(0).standard_normal((30, 100))
        >>> X[:, :6] += 3.0 * np.eye(3)[y].repeat(2, axis=1)
        >>> search = ZeroVarianceDiscriminantCV(gamma=(0.5, 0.9), cv=2, refit=False).fit(X, y)
        >>> [axis.get_ylabel() for axis in search.plot_path(axes=Figure().subplots(1, 2))]
        ['balanced accuracy, held out', 'features in use']
        """
        check_is_fitted(self)
        table = self.cv_results_
        named = self.scoring if isinstance(self.scoring, str) else None
        name = named or getattr(self.scoring, "__name__", "score").replace("<lambda>", "score")
        least = None
        if self.one_se:
            best = int(np.argmax(table["score"]))
            least = float(table["score"][best] - np.nan_to_num(table["se"][best]))
        lines = Lines(
            table,
            chosen=self.best_index_,
            least=least,
            name=f"{name.replace('_', ' ')}, held out",
            chance=1.0 / len(self.classes_) if named == "balanced_accuracy" else None,
            most=1.0 if named else None,
        )
        return draw_lines(lines, axes)


def _rows(components: Any, rank: int, most: int | None = None) -> list[int]:
    """Rows of components_, counted from 0."""
    if components is None:
        return list(range(rank))
    several = isinstance(components, (list, tuple, range, np.ndarray))
    listed = components if several else [components]
    found = list(dict.fromkeys(whole_number("components", r, 0) for r in listed))
    if not found or max(found) >= rank:
        raise DataError(
            f"components must be numbers from 0 to {rank - 1}, rows of components_, got {components!r}"
        )
    if most is not None and len(found) > most:
        raise DataError(f"components must be one or two numbers, got {components!r}")
    return found
