"""Errors of a connection. The transport turns them into a TransportError.

HttpProblem
├── DeadlineError     a deadline passed
├── EndedError        the connection ended before the response; `untouched` if no byte of it had arrived
├── BadAnswerError    the response is invalid
├── TooBigError       the response is longer than allowed
└── CannotConnectError  no connection was made, so nothing was sent
"""


class HttpProblem(Exception):  # noqa: N818 - the root of the tree; its leaves are errors
    """The base class of the internal errors of this package."""


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


class CannotConnectError(HttpProblem):
    """No connection could be made. The cause says why."""
