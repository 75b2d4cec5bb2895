"""The one loop and what surrounds it."""

from restpoint.run.checkpoint import Checkpoint
from restpoint.run.explain import Explanation, explain
from restpoint.run.load import load
from restpoint.run.observers import Observer, Progress, Trace, View
from restpoint.run.result import Result
from restpoint.run.resume import resume
from restpoint.run.retire import Retire
from restpoint.run.solve import iterate, solve
from restpoint.run.status import Status
from restpoint.run.stop import Relative, Stop

__all__ = [
    "Checkpoint",
    "Explanation",
    "Observer",
    "Progress",
    "Relative",
    "Result",
    "Retire",
    "Status",
    "Stop",
    "Trace",
    "View",
    "explain",
    "iterate",
    "load",
    "resume",
    "solve",
]
