"""Which observed entries are held out, so that every slice can still be fitted without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from restpoint.errors import DataError


def masks(
    seen: np.ndarray,
    rng: np.random.Generator,
    *,
    folds: int,
    share: float | None = None,
    keep: int = 1,
    centred: Sequence[int] = (),
    sample: int = 0,
) -> list[np.ndarray]:
    """``folds`` sets of held-out entries, as sorted flat indices into ``seen``, the array of what is observed.

    Without ``share`` they are the parts of a random partition of the observed entries; with it, each holds out this
    share of them, anew at random. Afterwards entries are given back until every slice of every mode has ``keep``
    entries left, or all that were ever observed there; so has, with ``keep`` = 1, every fibre along a mode in
    ``centred``, because its mean is taken. ``sample`` is the mode of the samples, for a message.

    >>> import numpy as np
    >>> seen = np.ones((2, 3), dtype=bool)
    >>> [own.tolist() for own in masks(seen, np.random.default_rng(0), folds=3)]
    [[3, 4], [0, 2], [1, 5]]
    """
    places = np.flatnonzero(seen)
    if share is None and folds > len(places):
        raise _too_few(seen, folds, keep, sample)
    groups = [(_slices(seen.shape, places, m), keep) for m in range(seen.ndim)]
    groups += [(_fibres(seen.shape, places, m), 1) for m in centred]
    if share is None:
        part = np.empty(len(places), dtype=np.int64)
        part[rng.permutation(len(places))] = np.arange(len(places)) % folds
        drawn = [part == k for k in range(folds)]
    else:
        count = max(1, round(share * len(places)))
        drawn = []
        for _ in range(folds):
            out = np.zeros(len(places), dtype=bool)
            out[rng.permutation(len(places))[:count]] = True
            drawn.append(out)
    found = [places[_given_back(out, groups, rng)] for out in drawn]
    if not all(len(own) for own in found):
        raise _too_few(seen, folds, keep, sample)
    return found


def _too_few(seen: np.ndarray, folds: int, keep: int, sample: int) -> DataError:
    samples = seen.shape[sample]
    return DataError(
        f"X has {np.count_nonzero(seen)} observed entries in {samples} sample(s) of {seen.size // samples} feature(s), "
        f"too few to hold some out {folds} times and to leave {keep} in every slice; ask for fewer folds or components"
    )


def _given_back(
    out: np.ndarray, groups: Sequence[tuple[np.ndarray, int]], rng: np.random.Generator
) -> np.ndarray:
    """``out`` without the entries that a group cannot spare; giving one back never hurts another group."""
    out = out.copy()
    for group, keep in groups:
        total = np.bincount(group)
        left = total - np.bincount(group[out], minlength=len(total))
        lacking = np.minimum(total, keep) - left
        for g in np.flatnonzero(lacking > 0):
            members = np.flatnonzero(out & (group == g))
            out[rng.permutation(members)[: lacking[g]]] = False
    return out


def _slices(shape: tuple[int, ...], places: np.ndarray, mode: int) -> np.ndarray:
    """The index in ``mode`` of every place."""
    return np.unravel_index(places, shape)[mode]


def _fibres(shape: tuple[int, ...], places: np.ndarray, mode: int) -> np.ndarray:
    """The number of the fibre along ``mode`` that every place lies on."""
    index = list(np.unravel_index(places, shape))
    index[mode] = np.zeros_like(index[mode])
    return np.unique(np.ravel_multi_index(index, shape), return_inverse=True)[1]


def halves(
    seen: np.ndarray, mode: int, rng: np.random.Generator, trials: int = 20
) -> tuple[np.ndarray, np.ndarray] | None:
    """The indices of ``mode`` in two random halves in which no slice of another mode is empty; None if not found."""
    n = seen.shape[mode]
    if n < 2:
        return None
    for _ in range(trials):
        order = rng.permutation(n)
        pair = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        if all(_full(np.take(seen, half, axis=mode)) for half in pair):
            return pair
    return None


def _full(seen: np.ndarray) -> bool:
    axes = range(seen.ndim)
    return all(bool(seen.any(axis=tuple(k for k in axes if k != m)).all()) for m in axes)
