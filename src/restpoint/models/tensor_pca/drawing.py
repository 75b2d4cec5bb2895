"""Path, starts and convergence as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from restpoint.models import _plotting as pieces
from restpoint.models._loadings import in_print, name_of
from restpoint.models.tensor_pca.convergence import Convergence
from restpoint.models.tensor_pca.starts import Solution, Starts

if TYPE_CHECKING:
    from restpoint.models.tensor_pca.component import TensorPath

# Differences below this, relative to a value, are rounding.
ROUNDING = 1e-15
# Gaps below this, in units of eps, are drawn there.
NO_GAP = 1e-12
# Distinct ends of starts with a line of their own, and entries of a mode that are named beside a path.
LISTED, NAMED = 12, 6


def draw_starts(starts: Starts, axes: Any) -> np.ndarray:
    """Distinct ends, best first: their values on the left, how many starts ended there on the right."""
    most = LISTED if len(starts) > LISTED + 1 else len(starts)
    listed, others = starts.solutions[:most], starts.solutions[most:]
    lines = len(listed) + bool(others)
    size = (6.4, max(1.9, 1.2 + 0.24 * lines))
    with pieces.canvas(axes, (1, 2), size, "values, and how often") as made:
        left, right = made[0]
        _values_of_ends(left, listed, others)
        _counts_of_ends(right, listed, others)
        for axis in (left, right):
            axis.set_ylim(lines - 0.4, -0.6)
            axis.tick_params(axis="y", length=0.0)
        ends = "1 distinct end" if len(starts) == 1 else f"{len(starts)} distinct ends"
        pieces.headline(left, f"{starts.starts} starts, {ends}")
        pieces.headline(right, f"chance of an unseen end: {starts.unseen:.0%}")
        return made[0]


def _paint(listed: Sequence[Solution]) -> list[str]:
    """The best in colour."""
    return [pieces.COLOURS[0]] + [pieces.GREY] * (len(listed) - 1)


def _values_of_ends(axis: Any, listed: Sequence[Solution], others: Sequence[Solution]) -> None:
    pieces.plain(axis, grid="both")
    values = [s.value for s in listed]
    axis.axvline(values[0], color=pieces.COLOURS[0], lw=0.8, ls=":")
    axis.scatter(values, range(len(listed)), c=_paint(listed), s=26, zorder=3)
    names = [str(k + 1) for k in range(len(listed))]
    if others:
        rest = [s.value for s in others]
        axis.plot(rest, [len(listed)] * len(rest), "|", color=pieces.GREY, ms=7)
        names.append("others")
    axis.set_yticks(range(len(names)), names)
    axis.set_ylabel("best first", fontsize=pieces.SMALL)
    axis.set_xlabel("value", fontsize=pieces.SMALL)
    axis.locator_params(axis="x", nbins=4)
    axis.margins(x=0.1)


def _counts_of_ends(axis: Any, listed: Sequence[Solution], others: Sequence[Solution]) -> None:
    pieces.plain(axis, grid="x")
    counts = [s.count for s in listed]
    notes = [f"gap {s.gap:.0e}" if np.isfinite(s.gap) else "given up" for s in listed]
    paint = _paint(listed)
    if others:
        counts.append(sum(s.count for s in others))
        notes.append(f"{len(others)} more ends")
        paint.append(pieces.LIGHT)
    axis.barh(range(len(counts)), counts, 0.7, color=paint)
    for y, (count, note) in enumerate(zip(counts, notes, strict=True)):
        axis.annotate(
            f"{count} · {note}",
            (count, y),
            xytext=(3.0, 0.0),
            textcoords="offset points",
            va="center",
            fontsize=pieces.SMALL,
        )
    axis.set_xlim(0, 1.75 * max(counts))
    axis.set_yticks(range(len(counts)), [""] * len(counts))
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axis.set_xlabel("starts that ended there", fontsize=pieces.SMALL)


def draw_convergence(
    solves: Sequence[Convergence], axes: Any, names: Sequence[str] = ()
) -> np.ndarray:
    """Values above the last one, and gaps, with what they had to come down to."""
    names = names or [""] * len(solves)
    with pieces.canvas(axes, (1, 2), (7.2, 2.9), "values, and gaps") as made:
        left, right = made[0]
        for k, (one, name) in enumerate(zip(solves, names, strict=True)):
            few = len(one.sweeps) <= 30
            style = {"marker": pieces.mark(k) if few else "", "color": pieces.colour(k)}
            above = one.value - one.value[-1]
            above = np.where(above > ROUNDING * abs(float(one.value[-1])), above, np.nan)
            words = f"{name + ': ' if name else ''}{one.value[-1]:.6g}"
            left.plot(one.sweeps, above, label=words, ms=3.5, lw=1.2, **style)
        _gaps(right, solves, names)
        longest = max(1.0, *(float(one.sweeps[-1]) for one in solves))
        for axis in made[0]:
            pieces.plain(axis, grid="both")
            axis.set_xlabel("sweeps", fontsize=pieces.SMALL)
            axis.set_xlim(-0.5, 1.05 * longest + 0.2)
            axis.xaxis.get_major_locator().set_params(integer=True)
            seen = [np.asarray(line.get_ydata(), dtype=float) for line in axis.lines]
            if any(np.any(y > 0) for y in seen):
                pieces.log_range(axis, np.concatenate(seen))
            else:
                axis.set_yticks([])
                axis.text(0.5, 0.4, "began where it ended", ha="center", transform=axis.transAxes)
        left.set_ylabel("value above that of the end", fontsize=pieces.SMALL)
        pieces.legend(left, title="value at the end", title_fontsize=pieces.SMALL)
        pieces.legend(right)
        return made[0]


def _gaps(axis: Any, solves: Sequence[Convergence], names: Sequence[str]) -> None:
    """Gaps, a star for what is certified, and a line at eps: one for what all share, else one each in its colour."""
    eps = [one.eps for one in solves]
    floor = NO_GAP * min(eps)
    for k, (one, name) in enumerate(zip(solves, names, strict=True)):
        seen, paint = np.isfinite(one.gap), pieces.colour(k)
        marker = pieces.mark(k) if len(one.sweeps) <= 30 else ""
        gaps = np.maximum(one.gap[seen], floor)
        style: dict[str, Any] = {"ms": 3.5, "lw": 1.2, "label": name or None}
        axis.plot(one.sweeps[seen], gaps, marker=marker, color=paint, **style)
        star: dict[str, Any] = {"ms": 11, "mec": "white", "mew": 0.6, "zorder": 4}
        axis.plot(one.sweeps[-1:], [max(one.proved, floor)], "*", color=paint, **star)
    if max(eps) <= 1.001 * min(eps):
        axis.axhline(eps[0], color=pieces.ink(axis), ls="--", lw=1.0, label=f"eps = {eps[0]:.2g}")
    else:
        for k, own in enumerate(eps):
            axis.axhline(own, color=pieces.colour(k), ls="--", lw=1.0)
        axis.plot([], [], "--", color=pieces.GREY, lw=1.0, label="eps")
    axis.plot([], [], "*", color=pieces.GREY, ms=9, label="certified")
    tiny = any(one.proved < floor for one in solves)
    axis.set_ylabel(f"gap ({floor:.0e} or less)" if tiny else "gap", fontsize=pieces.SMALL)


def draw_path(path: TensorPath, axes: Any, chosen: float | None = None) -> np.ndarray:
    """Nonzeros, BIC, and the loadings of every mode, over rho."""
    count = len(path.xs) + 2
    tall = [1.2, 1.2] + [1.5] * len(path.xs)
    more = {"sharex": True, "height_ratios": tall} if axes is None else {}
    what = f"nonzeros, BIC, and {len(path.xs)} of loadings"
    with pieces.canvas(axes, (count, 1), (6.0, sum(tall) + 1.0), what, **more) as made:
        places, best = pieces.rho_places(path.rho), path.best
        rows = np.arange(len(path.rho))
        for k, name in enumerate(_blocks(path)):
            made[0, 0].plot(
                places,
                path.counts[rows, best, k],
                color=pieces.colour(k),
                marker=pieces.mark(k),
                ms=3.5,
                lw=1.2,
                label=name,
            )
        made[0, 0].set_ylabel("nonzeros", fontsize=pieces.SMALL)
        made[0, 0].set_ylim(bottom=0.0)
        pieces.legend_beside(made[0, 0])
        _criterion(made[1, 0], path, places)
        for i, axis in enumerate(made[2:, 0]):
            _entries_along(axis, path, i, places)
        for axis in made[:, 0]:
            pieces.plain(axis, grid="both")
            pieces.rho_axis(axis, path.rho)
            if chosen is not None:
                axis.axvline(
                    chosen if chosen > 0 else places.min(), color=pieces.GREY, ls=":", lw=1.2
                )
            if axis is not made[-1, 0]:
                axis.set_xlabel("")
                axis.tick_params(labelbottom=False)
        return made[:, 0]


def _blocks(path: TensorPath) -> list[str]:
    return [name_of([path.names[m] for m in modes]) for modes in path.modes]


def _criterion(axis: Any, path: TensorPath, places: np.ndarray) -> None:
    """BIC where it is known, else the weight; hollow where a point is not certified."""
    known = bool(np.isfinite(path.bic).any())
    table = path.bic if known else path.weights
    rows = np.arange(len(places))
    y, sure = table[rows, path.best], path.certified[rows, path.best]
    paint = pieces.COLOURS[0]
    axis.plot(places, y, color=paint, lw=1.2)
    axis.plot(places[sure], y[sure], "o", color=paint, ms=4, label="certified")
    if not sure.all():
        label = "not certified"
        axis.plot(places[~sure], y[~sure], "o", color=paint, mfc="white", ms=4, label=label)
    axis.set_ylabel("BIC" if known else "weight", fontsize=pieces.SMALL)
    if known:
        low, high = axis.get_ylim()
        axis.axhline(path.zero_bic, color=pieces.GREY, ls="--", lw=1.0, label="no component")
        if not low - (high - low) < path.zero_bic < high + (high - low):
            axis.set_ylim(low, high)  # far away: the path itself matters more
            axis.lines[-1].set_label(f"no component: {path.zero_bic:.5g}")
        alive = np.where(path.counts.min(axis=-1) > 0, table, np.inf)
        least = np.nanmin(
            alive
        )  # of equal ones, which have one support, that with the smallest rho
        g, k = np.argwhere(alive <= least + 1e-9 * (1.0 + abs(least)))[-1]
        star: dict[str, Any] = {"ms": 12, "mec": "white", "mew": 0.6, "label": "least"}
        axis.plot(places[g], table[g, k], "*", color=pieces.COLOURS[1], zorder=4, **star)
    pieces.legend_beside(axis)


def _entries_along(axis: Any, path: TensorPath, i: int, places: np.ndarray) -> None:
    """The loadings of one mode, those of the strongest entries named and in colour."""
    x = path.followed[i]
    strength = np.abs(x).max(axis=0)
    order = [j for j in np.argsort(-strength, kind="stable") if strength[j] > 0]
    labels = path.labels[path.modes[i][0]]
    words = [str(j) for j in range(x.shape[1])] if labels is None else in_print(labels)
    last = int(np.argmin(places))  # the smallest rho is at the right edge
    axis.axhline(0.0, color=pieces.GREY, lw=0.8)
    style = {"marker": "." if len(places) == 1 else ""}
    if order[NAMED:]:
        axis.plot(places, x[:, order[NAMED:]], color=pieces.LIGHT, lw=0.7, **style)
    for k, j in enumerate(order[:NAMED]):
        axis.plot(places, x[:, j], color=pieces.colour(k), lw=1.3, **style)
    axis.set_ylabel(_blocks(path)[i], fontsize=pieces.SMALL)
    first = order[:NAMED]
    ends, paint = [float(x[last, j]) for j in first], list(map(pieces.colour, range(len(first))))
    pieces.beside(axis, ends, [words[j] for j in first], paint, "right")
