"""What the catalogue can do, as the page docs/catalogue.md: made from the pieces themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from restpoint.errors import CapabilityError
from restpoint.oracles import Oracle, find
from restpoint.testing.catalogue import PENALTIES, SETS, Draw, PenaltyCase, SetCase

# Powers that stand for all others.
OTHER_POWERS = (1.3, 3.0)
HEAD = """# The catalogue

Made from the code by `make catalogue`; a test fails where it is out of date. "exact" answers are minimisers up to
rounding; a "bound" is proved from the dual side whatever the solver did, so that certificates stay sound (theory A2).
Pairs that are not here have no rule: bring your own with `Block.from_oracle`, or leave the penalty to f.
"""


class Row(NamedTuple):
    """What one rule does for one set, and with which penalties."""

    set: str
    rule: str
    linear: str
    prox: str
    other: str


def catalogue_page() -> str:
    """The page as text.

    >>> catalogue_page().splitlines()[0]
    '# The catalogue'
    """
    parts = [
        HEAD,
        "## Sets\n\n" + _table(("set", "", "projection"), _sets()),
        "## Penalties\n\n" + _table(("penalty", ""), _penalties()),
        "## Pairs\n\n" + _table((*Row._fields[:1], "penalties", *Row._fields[1:]), _pairs()),
        "## Rules\n\n" + _table(("rule", ""), _rules()),
    ]
    return "\n".join(parts)


def _pieces(cases: Iterable) -> dict[str, tuple[type, list]]:
    """The cases of every kind, by its name."""
    kinds: dict[str, tuple[type, list]] = {}
    for case in cases:
        kinds.setdefault(case.kind.__name__, (case.kind, []))[1].append(case)
    return dict(sorted(kinds.items(), key=lambda item: item[0].lower()))


def _sets() -> Iterable[tuple[str, ...]]:
    for name, (kind, cases) in _pieces(SETS).items():
        exact = cases[0].make(Draw(np.random.default_rng(0), cases[0].shape)).projects
        yield f"`{name}`", _first_line(kind), "exact" if exact else "by the linear oracle"


def _penalties() -> Iterable[tuple[str, ...]]:
    for name, (kind, _) in _pieces(PENALTIES).items():
        yield f"`{name}`", _first_line(kind)


def _rules() -> Iterable[tuple[str, ...]]:
    from restpoint.oracles import RULES

    for rule in RULES:
        yield f"`{rule.__name__}`", _first_line(rule)


def _pairs() -> Iterable[tuple[str, ...]]:
    found: dict[Row, list[str]] = {}
    for set_case in SETS:
        for penalty_case in PENALTIES:
            oracle = _oracle(set_case, penalty_case)
            if oracle is None:
                continue
            words = f"`{set_case.kind.__name__}`" + _note(set_case.name, "with centre", "matrix")
            row = Row(words, f"`{type(oracle).__name__}`", *_abilities(oracle))
            penalties = found.setdefault(row, [])
            if penalty_case.kind.__name__ not in penalties:
                penalties.append(penalty_case.kind.__name__)
    for row, penalties in sorted(found.items(), key=lambda item: item[0][0].lower()):
        yield row[0], ", ".join(f"`{name}`" for name in sorted(penalties)), *row[1:]


def _oracle(set_case: SetCase, penalty_case: PenaltyCase) -> Oracle | None:
    if len(set_case.shape) != len(penalty_case.shape):
        return None
    draw = Draw(np.random.default_rng(0), set_case.shape)
    try:
        return find(set_case.make(draw), penalty_case.make(draw))
    except CapabilityError:
        return None


def _abilities(oracle: Oracle) -> tuple[str, str, str]:
    """Of the linear oracle, of the prox for p = 2, and for the other p."""
    others = all(oracle.can_prox(p) for p in OTHER_POWERS)
    return (
        _strength(oracle.kind),
        _strength(oracle.prox_kind(2.0)) if oracle.can_prox(2.0) else "none",
        _strength(oracle.prox_kind(OTHER_POWERS[0])) if others else "none",
    )


def _strength(kind: str) -> str:
    return "exact" if kind == "exact oracle" else "bound"


def _note(name: str, *words: str) -> str:
    """What tells cases of one kind apart, where a rule does."""
    told = [word for word in words if word in name]
    return f" ({told[0]})" if told else ""


def _first_line(kind: type) -> str:
    """The first line of a docstring, fit for a table."""
    text = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(row) for row in (head, ("---",) * len(head), *rows)]
    return "".join(f"| {line} |\n" for line in lines)
