"""The exceptions and warnings that users meet.

Every message names the argument, says what was got, what is expected, and what to do next.
"""


class RestpointError(Exception):
    """The common ancestor: ``except rp.RestpointError`` catches whatever this library refuses."""


class ShapeError(RestpointError, ValueError):
    """An array has the wrong shape."""


class DataError(RestpointError, ValueError):
    """An argument has a value that makes no sense: NaN, a negative radius, a point outside the set."""


class CapabilityError(RestpointError, TypeError):
    """A method, a function or a set lacks what was asked of it; the message lists what is missing."""


class EvaluationError(RestpointError, RuntimeError):
    """Code that the user supplied raised, or returned something of the wrong kind."""


class NotCertifiedError(RestpointError, RuntimeError):
    """Raised by ``Result.raise_for_status`` when a start ended without a certificate."""


class StorageError(RestpointError, OSError):
    """A file cannot be written, or does not hold what is looked for in it."""


class GuaranteeWarning(UserWarning):
    """A guarantee that the user may rely on does not hold, or no longer does."""


def described(value: object) -> str:
    """What was given, in the words of a message: the forgotten parentheses of a class among them.

    >>> described(3.0), described(dict)
    ('float', 'the class dict itself; write dict(...)')
    """
    if isinstance(value, type):
        return f"the class {value.__name__} itself; write {value.__name__}(...)"
    return type(value).__name__
