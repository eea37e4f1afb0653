"""Errors of a connection. The transport turns them into a TransportError.

HttpProblem
├── DeadlineError     a deadline passed
├── EndedError        the connection ended before the response; `untouched` if no byte of it had arrived
├── BadAnswerError    the response is invalid
├── TooBigError       the response is longer than allowed
├── FenceClosedError  the lease may be lost, so nothing was sent
└── CannotConnectError  no connection was made, so nothing was sent
"""

from typing import Self


class HttpProblem(Exception):  # noqa: N818 - the root of the tree; its leaves are errors
    """The base class of the internal errors of this package."""

    def again(self) -> Self:
        """Return an equal error without a traceback.

        A traceback refers to frames, and these to the connection and the body. An object that keeps an error keeps one
        that is never raised, so that a failed body is freed at once and not by the garbage collector.
        """
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        cause = self.__cause__
        other.__cause__ = None if cause is None else cause.with_traceback(None)
        return other


class DeadlineError(HttpProblem):
    """A deadline passed."""

    def __init__(self, message: str, *, had_begun: bool = False) -> None:
        super().__init__(message)
        self.had_begun = had_begun


class EndedError(HttpProblem):
    """The server or the network ended the connection."""

    def __init__(self, message: str, *, untouched: bool) -> None:
        super().__init__(message)
        self.untouched = untouched


class BadAnswerError(HttpProblem):
    """The response violates HTTP, or uses a feature that was not requested."""


class TooBigError(HttpProblem):
    """The response is longer than allowed."""


class FenceClosedError(HttpProblem):
    """The fence of a write closed before it was sent."""


class CannotConnectError(HttpProblem):
    """No connection could be made. The cause says why."""
