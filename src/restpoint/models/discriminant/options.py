"""What a user asked for, checked: parameters of the estimators in, a plan out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight

from restpoint.array import real_number, truth, whole_number
from restpoint.errors import DataError, ShapeError, described
from restpoint.models._shared import seed_of
from restpoint.models.discriminant.bases import basis_of
from restpoint.models.discriminant.directions import AUTO, Budget, Wish
from restpoint.models.discriminant.fitting import Plan

# Entries beyond these have squares that leave the range of numbers.
SMALLEST, LARGEST = 1e-140, 1e140


class Deadline:
    """Seconds left until a moment; a value that processes can be handed."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def __call__(self) -> float:
        return max(1e-3, self.end - time.monotonic())


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The classes, the number of each sample's class, and how many samples each class has."""
    classes, code = np.unique(y, return_inverse=True)
    counts = np.bincount(code)
    if len(classes) < 2:
        raise DataError(
            f"y holds one class, {classes.tolist()[0]!r}; a discriminant needs samples of at least 2 classes"
        )
    if len(classes) == len(y):
        raise DataError(
            f"y holds {len(classes)} classes for {len(y)} samples, so that nothing varies within a class; "
            "a discriminant needs more samples than classes"
        )
    return classes, code, counts


def refuse_scale(X: Any) -> None:
    """Refuse entries so large or small that their squares leave the range of numbers."""
    entries = X.data if sparse.issparse(X) else X
    largest = max(float(np.max(entries, initial=0.0)), -float(np.min(entries, initial=0.0)))
    if largest > LARGEST or 0.0 < largest < SMALLEST:
        raise DataError(
            f"X has {largest:.1e} for its largest entry, so that squares "
            f"{'overflow' if largest > 1.0 else 'underflow'}; divide X by that entry"
        )


def plan_of(params: dict[str, Any], X: Any, classes: int) -> Plan:
    """Everything that a fit needs to know beside samples."""
    size = X.shape[1]
    basis = basis_of(params["basis"], size)
    if sparse.issparse(X) and not basis.identity:
        raise DataError(
            f"basis={basis.name!r} mixes all features, which would make X dense; give X.toarray(), or basis=None"
        )
    budget = Budget(
        whole_number("starts", params["starts"], 1),
        positive("tol", params["tol"]),
        seed_of(params["random_state"]),
        None
        if params["max_seconds"] is None
        else Deadline(positive("max_seconds", params["max_seconds"])),
    )
    return Plan(
        wishes=_wishes(params, components_of(params["n_components"], size, classes), size),
        standardize=truth("standardize", params["standardize"]),
        basis=basis,
        sigma=_sigma(params["sigma"], size),
        shrinkage=_shrinkage(params["shrinkage"]),
        orthogonal_to=_columns(params["orthogonal_to"], size),
        budget=budget,
    )


def positive(name: str, given: Any) -> float:
    """A number > 0."""
    found = real_number(name, given, "a number > 0")
    if not found > 0:
        raise DataError(f"{name} must be a number > 0, got {found}")
    return found


def components_of(given: Any, size: int, classes: int) -> int:
    """How many components; as many as there can be by default."""
    most = min(classes - 1, size)
    count = most if given is None else whole_number("n_components", given, 1)
    if count > most:
        raise DataError(
            f"n_components={count}, but {classes} classes and {size} features have at most {most} discriminants"
        )
    return count


def _wishes(params: dict[str, Any], count: int, size: int) -> tuple[Wish, ...]:
    gamma, features = params["gamma"], params["n_features"]
    automatic = isinstance(gamma, str) and gamma == "auto"
    if features is not None:
        if not automatic:
            raise DataError(
                f"n_features and gamma={gamma!r} both decide about sparsity; give one of them"
            )
        numbers = [whole_number("n_features", k, 1) for k in _each("n_features", features, count)]
        if max(numbers) > size:
            raise DataError(f"n_features={max(numbers)}, but X has {size} features")
        return tuple(Wish(features=number) for number in numbers)
    if automatic:
        return (Wish(AUTO),) * count
    shares = [
        real_number("gamma", g, '"auto", or shares >= 0') for g in _each("gamma", gamma, count)
    ]
    if not all(g >= 0.0 for g in shares):
        raise DataError(
            f'gamma must be "auto", or shares >= 0 of the largest penalty, got {gamma!r}'
        )
    return tuple(Wish(g) for g in shares)


def _each(name: str, given: Any, count: int) -> list[Any]:
    """One entry for each component."""
    if np.ndim(given) == 0:
        return [given] * count
    found = list(given)
    if len(found) != count:
        raise ShapeError(
            f"{name} has {len(found)} entries; expected one number, or {count}: one for each component"
        )
    return found


def _sigma(given: Any, size: int) -> np.ndarray | None:
    if isinstance(given, str) and given == "within":
        return None
    if given is None:
        return np.ones(size)
    if isinstance(given, str):
        raise DataError(f'sigma must be "within", None, or an array ({size},), got {given!r}')
    found = _numbers("sigma", given)
    if found.shape != (size,):
        raise ShapeError(
            f'sigma has shape {found.shape}; expected ({size},), one weight for each feature, "within" or None'
        )
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise DataError(
            "sigma must hold positive finite weights; give a feature that is free a small one"
        )
    return found


def _shrinkage(given: Any) -> float | None:
    if isinstance(given, str) and given == "auto":
        return None
    found = real_number("shrinkage", given, 'a number in (0, 1], or "auto"')
    if not 0.0 < found <= 1.0:
        raise DataError(f'shrinkage must be a number in (0, 1], or "auto", got {found}')
    return found


def _numbers(name: str, given: Any) -> np.ndarray:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers, got {described(given)}") from error


def _columns(given: Any, size: int) -> np.ndarray | None:
    if given is None:
        return None
    found = _numbers("orthogonal_to", given)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != size:
        raise ShapeError(
            f"orthogonal_to has shape {found.shape}; expected ({size}, k), one column for each vector"
        )
    if not np.isfinite(found).all():
        raise DataError("orthogonal_to contains NaN or infinity; expected finite columns")
    return found


def folds_of(name: str, given: Any, counts: np.ndarray, classes: np.ndarray) -> int:
    """How many folds, no more than the rarest class has samples; 0 for none."""
    folds, least = whole_number(name, given, 0 if name == "oof" else 2), int(counts.min())
    if folds == 1:
        raise DataError(f"{name}=1 leaves nothing to fit; give at least 2 folds")
    if folds and least < 2:
        rare = classes.tolist()[int(np.argmin(counts))]
        raise DataError(
            f"class {rare!r} has one sample, so that no fold can hold one out and keep one; drop the class"
            + (", or say oof=0 (then there are no probabilities)" if name == "oof" else "")
        )
    return min(folds, least)


def shares_of(class_weight: Any, code: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """What each class counts for; they sum to 1."""
    if isinstance(class_weight, dict):
        unknown = [c for c in class_weight if c not in classes.tolist()]
        if unknown:
            raise DataError(
                f"class_weight names {unknown[0]!r}, but the classes are {classes.tolist()}"
            )
        each = np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    elif class_weight in (None, "balanced"):
        each = compute_class_weight(class_weight, classes=np.arange(len(classes)), y=code)
    else:
        raise DataError(f'class_weight must be None, "balanced" or a dict, got {class_weight!r}')
    shares = np.bincount(code) * each
    if not (np.isfinite(shares).all() and (shares > 0).all()):
        raise DataError(f"class_weight must be positive for every class, got {class_weight!r}")
    return np.asarray(shares / shares.sum())


def priors_of(given: Any, shares: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Probabilities of the classes."""
    if given is None:
        return shares
    found = _numbers("priors", given)
    right = found.shape == shares.shape and np.isfinite(found).all() and (found >= 0).all()
    if not (right and found.sum() > 0):
        raise DataError(
            f"priors must be {len(shares)} numbers >= 0, one for each of {classes.tolist()}, got {given!r}"
        )
    return np.asarray(found / found.sum())
