"""What can go wrong on a connection; the transport puts it into the words of a TransportError.

HttpProblem
├── DeadlineError     the time was up
├── EndedError        the connection ended before the answer did; `untouched` if not a byte of one had come
├── BadAnswerError    what came is not an answer that we can read
├── TooBigError       the answer is longer than allowed
└── CannotConnectError  no connection in the first place: nothing was sent
"""


class HttpProblem(Exception):  # noqa: N818 - the root of the tree; its leaves are errors
    """The root of what this package raises inside."""


class DeadlineError(HttpProblem):
    """A deadline passed."""

    def __init__(self, message: str, *, had_begun: bool = False) -> None:
        super().__init__(message)
        self.had_begun = had_begun


class EndedError(HttpProblem):
    """The other side, or the network, ended the connection."""

    def __init__(self, message: str, *, untouched: bool) -> None:
        super().__init__(message)
        self.untouched = untouched


class BadAnswerError(HttpProblem):
    """The answer breaks the rules of HTTP, or uses what we did not ask for."""


class TooBigError(HttpProblem):
    """The answer is longer than the request allows."""


class CannotConnectError(HttpProblem):
    """There is no connection; the cause tells why."""
