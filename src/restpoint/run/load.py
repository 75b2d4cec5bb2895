"""Results in files."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NoReturn, cast

from restpoint.array import to_host
from restpoint.errors import CapabilityError, DataError, described
from restpoint.methods import Key, Method, State
from restpoint.problem import Blocks, Problem
from restpoint.run.archive import checked_path, read, write
from restpoint.run.identity import Identity, differences, listed
from restpoint.run.result import Loaded, Result
from restpoint.run.tree import Reader, Writer

KIND = "result"
# What is written in words or digests, and not as it is.
NOT_AS_IT_IS = ("problem", "method", "xs", "last", "loaded")


def save(result: Result, path: Any) -> None:
    """Write a result; see ``Result.save``."""
    target, writer, loaded = checked_path(path), Writer(), result.loaded
    content = {
        field.name: getattr(result, field.name)
        for field in fields(result)
        if field.name not in NOT_AS_IT_IS
    }
    content["xs"], content["last"] = (
        tuple(map(to_host, blocks)) for blocks in (result.xs, result.last)
    )
    words = {
        "method": repr(result.method),
        "exact": result.method.exact,
        "engine": result.engine,
        "identity": Identity(result.problem).parts if loaded is None else loaded.identity,
        "result": writer.words(content, "the result"),
    }
    write(target, KIND, words, writer.arrays)


def load(path: Any, problem: Problem | None = None) -> Result:
    """Read a result that ``result.save(path)`` wrote.

    Blocks come back as NumPy arrays, the method by its name. The problem is not in the file: give it, and it is
    checked to be the one of the result (functions by their names), or prove the points anew with
    ``certify(problem, result.xs)``, which believes nothing else. Nothing in the file is executed.

    >>> import numpy as np, restpoint as rp, tempfile
    >>> problem = rp.Problem(rp.smooth.Quadratic(-np.eye(2)), rp.Block(rp.sets.L2Ball()))
    >>> file = tempfile.NamedTemporaryFile()
    >>> rp.solve(problem, starts=3).save(file.name)
    >>> rp.load(file.name).status
    array([CERTIFIED, CERTIFIED, CERTIFIED], dtype=object)
    """
    if problem is not None and not isinstance(problem, Problem):
        raise DataError(f"problem must be a restpoint.Problem or None, got {described(problem)}")
    archive = read(path, KIND)
    words = archive.words
    if problem is not None:
        found = differences(Identity(problem).parts, words["identity"])
        if found:
            raise DataError(
                f"problem is not the one of the result in {str(archive.path)!r}: {listed(found)}; leave it out to read "
                "the result alone"
            )
    loaded = Loaded(str(archive.path), archive.written_by, words["engine"], words["identity"])
    return Result(
        problem=cast(Problem, Absent()) if problem is None else problem,
        method=Named(words["method"], words["exact"]),
        loaded=loaded,
        **Reader(archive.arrays).tree(words["result"]),
    )


class Absent:
    """In the place of a problem that is not in the file."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python asks of every object
            raise AttributeError(name)
        raise CapabilityError(
            "this result was loaded without its problem; give it: restpoint.load(path, problem)"
        )


@dataclass(frozen=True, repr=False)
class Named(Method):
    """A method of which the name alone is known."""

    name: str
    is_exact: bool

    def __repr__(self) -> str:
        return self.name

    @property
    def exact(self) -> bool:
        return self.is_exact

    def check(self, problem: Problem) -> None:
        raise CapabilityError(
            f"of the method of a loaded result the name alone is known; make it anew: {self.name}"
        )

    def init(self, problem: Problem, xs: Blocks, key: Key) -> State:
        raise NotImplementedError  # never comes here: check is asked first

    def step(self, problem: Problem, state: State) -> State:
        raise NotImplementedError
