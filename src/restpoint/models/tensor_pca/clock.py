"""The time that a fit may take, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass
class Clock:
    """The time left to the whole fit; Ctrl-C ends it.

    max_seconds  None for no limit
    interrupted  whether Ctrl-C was heard
    running      whether a run is on that ends with its best point at a KeyboardInterrupt
    """

    max_seconds: float | None = None
    began: float = field(default_factory=time.monotonic)
    interrupted: bool = False
    running: bool = False

    @property
    def left(self) -> float | None:
        """Seconds left, None for no limit."""
        if self.interrupted:
            return 0.0
        if self.max_seconds is None:
            return None
        return max(0.0, self.max_seconds - (time.monotonic() - self.began))

    @property
    def over(self) -> bool:
        """Whether to come to an end with what there is."""
        return self.left is not None and self.left <= 0.0

    @property
    def reason(self) -> str:
        """Why it came to an end, in words."""
        if self.interrupted:
            return "Ctrl-C came first"
        return f"max_seconds = {self.max_seconds:g} was over" if self.over else ""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ctrl-C is heard, not raised: what is going on comes to its end. A second one is raised.

        In the main thread alone, and where nobody else handles the signal; elsewhere it is raised as ever.
        """
        own = threading.current_thread() is threading.main_thread()
        if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def interruptible(self, run: Callable[[], Answer]) -> Answer:
        """``run``, which ends at a KeyboardInterrupt with its best point; before it can, it is asked once more."""
        self.running = True
        try:
            return run()
        except KeyboardInterrupt:
            self.interrupted, self.running = True, False
            return run()
        finally:
            self.running = False

    def _hear(self, *_: Any) -> None:
        again, self.interrupted = self.interrupted, True
        if again or self.running:
            raise KeyboardInterrupt
