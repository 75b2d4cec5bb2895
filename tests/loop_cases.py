"""What the tests of the loop share: problems, methods and functions that fail on purpose."""

import numpy as np

import restpoint as rp
from method_cases import FULL_STEPS, METHODS

SHAPES = ((3,), (4,), (2,))
ALL_METHODS = METHODS + FULL_STEPS


def ill_conditioned(weight=0.01):
    """A convex quadratic on which proximal steps need some hundred iterations."""
    spectrum = np.diag([1.0, 0.05, 0.01])
    block = rp.Block(rp.sets.L2Ball(3.0), rp.penalties.L1(weight))
    return rp.Problem(rp.smooth.Quadratic(spectrum, [-0.3, 0.1, 0.02]), block)


class Faulty:
    """cos(2x) whose gradient does ``fault`` at its ``when``-th call (and ever after, if ``forever``)."""

    def __init__(self, fault, when, *, forever=False):
        self.fault, self.when, self.forever, self.calls = fault, when, forever, 0

    def problem(self, size=3):
        f = rp.smooth.Function(
            lambda x: float(np.sum(np.cos(2 * x))),
            self.gradient,
            shapes=size,
            constant=4.0,
        )
        return rp.Problem(f, rp.Block(rp.sets.L2Ball(2.0), rp.penalties.L1(0.01)))

    def gradient(self, x):
        self.calls += 1
        if self.calls == self.when or (self.forever and self.calls > self.when):
            self.fault()
        return -2 * np.sin(2 * x)


def press_ctrl_c():
    raise KeyboardInterrupt


def divide():
    raise ZeroDivisionError("no such luck")
