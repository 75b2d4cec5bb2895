"""The entry points: ``solve``, and ``iterate`` for those who want to watch every step."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from restpoint.array import real_number
from restpoint.errors import CapabilityError, DataError, described
from restpoint.methods import Method
from restpoint.problem import Problem
from restpoint.run.checkpoint import Checkpoint
from restpoint.run.choose import settle
from restpoint.run.door import enter, mirrored
from restpoint.run.loop import Loop
from restpoint.run.observers import Observer, View
from restpoint.run.result import Result
from restpoint.run.stop import Relative, Stop

CTRL_C = "stopped by Ctrl-C"


def solve(
    problem: Problem,
    method: Method | None = None,
    *,
    eps: float | Relative = 1e-6,
    starts: int | None = None,
    x0: Any = None,
    rng: int = 0,
    stop: Stop = Stop(),
    observers: Sequence[Observer] = (),
) -> Result:
    """Find an eps-stationary point from every start, and prove it.

    method     default: chosen from what f and the blocks declare (``explain`` tells which, and why)
    eps        absolute, in the units of Phi; or ``Relative(1e-8)``
    starts     how many random starting points; None draws one and gives results without a batch axis
    x0         starting points instead: a block or a tuple of blocks, with leading axes for several starts
    rng        a seed: it names every random draw, so the same seed gives the same run
    stop       further stopping rules, see ``Stop``
    observers  functions of a ``View``, called at every iteration; returning True ends the run

    Ctrl-C ends the run with the best point so far, certified for what it is.

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.diag([1.0, -2.0])), rp.Block(rp.sets.L2Ball()))
    >>> rp.solve(problem, starts=5).best().status.name
    'CERTIFIED'
    """
    observers = checked_observers(observers)
    loop = _prepare(
        problem, method, eps=eps, starts=starts, x0=x0, rng=rng, stop=stop, observers=observers
    )
    return driven(problem, loop)


def iterate(
    problem: Problem,
    method: Method | None = None,
    *,
    eps: float | Relative = 1e-6,
    starts: int | None = None,
    x0: Any = None,
    rng: int = 0,
    stop: Stop = Stop(),
    observers: Sequence[Observer] = (),
) -> Generator[View, None, Result]:
    """The same loop as ``solve``, one ``View`` at a time; the generator's return value is the ``Result``.

    Also after Ctrl-C in the middle of an iteration; between iterations Ctrl-C is the caller's.

    >>> import numpy as np, restpoint as rp
    >>> problem = rp.Problem(rp.smooth.Quadratic(np.eye(2)), rp.Block(rp.sets.Box(-1.0, 1.0)))
    >>> [view.iteration for view in rp.iterate(problem, x0=np.array([1.0, 0.5]))]
    [0, 1]
    """
    observers = checked_observers(observers)
    loop = _prepare(
        problem, method, eps=eps, starts=starts, x0=x0, rng=rng, stop=stop, observers=observers
    )
    return _views(problem, loop)


def _views(problem: Problem, loop: Loop) -> Generator[View, None, Result]:
    try:
        loop.watch()
        yield loop.view()
        while loop.running:
            loop.advance()
            loop.watch()
            yield loop.view()
    except KeyboardInterrupt:
        loop.interrupt(CTRL_C)
    finally:
        loop.close()
    return _concluded(problem, loop)


def driven(problem: Problem, loop: Loop) -> Result:
    """What comes of a loop, to its end."""
    try:
        loop.watch()
        while loop.running:
            loop.advance()
            loop.watch()
    except KeyboardInterrupt:
        loop.interrupt(CTRL_C)
    finally:
        loop.close()
    return _concluded(problem, loop)


def _prepare(
    problem: Problem,
    method: Method | None,
    *,
    eps: float | Relative,
    starts: int | None,
    x0: Any,
    rng: int,
    stop: Stop,
    observers: Sequence[Observer],
) -> Loop:
    stop, eps = checked_stop(Stop() if stop is None else stop), checked_eps(eps)
    entrance = enter(problem, starts, x0, rng, stop.feasibility)
    method, _ = settle(problem, method)
    check_sampled(method, eps, stop)
    if x0 is None and method.moves_together:
        entrance = mirrored(entrance)
    return Loop(entrance, method, eps=eps, stop=stop, seed=int(rng), observers=observers)


def checked_eps(eps: float | Relative) -> float | Relative:
    """eps is a positive number or Relative(...)."""
    if isinstance(eps, Relative):
        return eps
    expected = "a finite number > 0 or restpoint.Relative(...)"
    number = real_number("eps", eps, expected)
    if not number > 0:
        raise DataError(f"eps must be {expected}, got {number}")
    return number


def checked_stop(stop: Stop) -> Stop:
    """Stop(...), and nothing else."""
    if not isinstance(stop, Stop):
        raise DataError(
            f"stop must be a restpoint.Stop such as Stop(max_iterations=100), got {described(stop)}"
        )
    return stop


def check_sampled(method: Method, eps: float | Relative, stop: Stop) -> None:
    """Refuse rules that look at Phi where nobody does."""
    if not method.exact and (isinstance(eps, Relative) or stop.watches_value):
        raise CapabilityError(
            "sampled gradients come without the value of Phi: give an absolute eps, and no value rule in Stop"
        )


def checked_observers(observers: Sequence[Observer]) -> tuple[Observer, ...]:
    """Functions of a View; checkpoints first, so that they see an iteration before an observer ends the run there."""
    if not isinstance(observers, (tuple, list)):
        raise DataError(
            f"observers must be a list of functions, got {described(observers)}; write observers=[...]"
        )
    for i, observer in enumerate(observers):
        if isinstance(observer, type) or not callable(observer):
            raise DataError(
                f"observers[{i}] must be a function of a View, got {described(observer)}"
            )
    return tuple(sorted(observers, key=lambda observer: not isinstance(observer, Checkpoint)))


def _concluded(problem: Problem, loop: Loop) -> Result:
    try:
        return _result(problem, loop)
    except (
        KeyboardInterrupt
    ):  # while the end is certified: what was reached is certified all the same
        loop.interrupt(CTRL_C)
        return _result(problem, loop)


def _result(problem: Problem, loop: Loop) -> Result:
    best, last, certificate, bound = loop.conclude()
    shape, ledger = loop.entrance.batch_shape, loop.ledger
    status = ledger.status.reshape(shape)
    return Result(
        problem=problem,
        method=loop.method,
        xs=best,
        last=last,
        certificate=certificate.reshape(shape),
        eps=loop.eps.reshape(shape),
        status=status if shape else status[()],
        iterations=ledger.iterations.reshape(shape),
        bound=bound.reshape(shape),
        trace=loop.trace,
        work={name: column.reshape(shape) for name, column in ledger.work.items()},
        seconds=loop.seconds,
        feasibility=loop.entrance.feasibility,
        measure=loop.stop.measure,
        message=loop.message,
        error=loop.error,
    )
