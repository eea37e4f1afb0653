"""The interface of transports: a request with a response, or with a stream of bytes.

`http.HttpTransport` talks to any API server. `in_process.InProcessTransport` calls a server object in the same process.
Headers of responses have lower-case names. Values are structs, because thousands are created per second and a frozen
dataclass takes ten times as long.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

Query = Sequence[tuple[str, str]]
NO_HEADERS: Mapping[str, str] = {}

DEFAULT_MAX_BODY = 256 * 1024 * 1024
"""Maximum bytes of a response. A page of 500 pods has 4 MB."""

DEFAULT_MAX_LINE = 8 * 1024 * 1024
"""Maximum bytes of a watch event. etcd limits objects to 1.5 MB."""


class Response(msgspec.Struct, frozen=True):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Deadlines(msgspec.Struct, frozen=True):
    """The deadlines of the parts of a request, in seconds."""

    connect: float = 5.0
    first_byte: float = 10.0
    total: float = 30.0
    overall: float = float("inf")
    """The deadline of the whole call, waiting included. A fence uses it to stop late writes."""

    def within(self, limit: float) -> "Deadlines":
        """Return the deadlines, each limited to `limit`."""
        return Deadlines(
            min(self.connect, limit),
            min(self.first_byte, limit),
            min(self.total, limit),
            min(self.overall, limit),
        )


class Request(msgspec.Struct, frozen=True):
    """A request: method, percent-encoded path, query, headers and body."""

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    deadlines: Deadlines = Deadlines()
    max_body: int = DEFAULT_MAX_BODY
    max_line: int = DEFAULT_MAX_LINE
    into: Callable[[bytes], None] | None = None
    """Receives the body of a successful response while it arrives. Transports may ignore it and return the body."""
    lane: str = ""
    """The lane whose connections carry the request."""
    may_send: Callable[[], bool] | None = None
    """The fence of a write. Transports call it after every wait, right before the first byte is sent."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ResponseStream(Protocol):
    """A response that arrives in chunks."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks as they arrive. Raise TransportError if the connection breaks."""
        ...


class Transport(Protocol):
    """Sends requests to an API server."""

    async def request(self, request: Request) -> Response:
        """Send a request and return the response of any status. Raise TransportError if there is none."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a request and yield the response once its headers have arrived. Leaving the context drops the rest."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class LineTooLongError(Exception):
    """A line exceeds the limit."""


async def lines(stream: ResponseStream, limit: int) -> AsyncIterator[bytes]:
    """Yield the complete lines of `stream`. An incomplete last line is dropped."""
    rest = b""
    async for chunk in stream.chunks():
        if not rest and chunk.find(b"\n") == len(chunk) - 1:
            # A server sends each event in a chunk of its own, so this is nearly always a line by itself.
            if len(chunk) > 1:
                yield chunk[:-1]
            continue
        first, *others = chunk.split(b"\n")
        rest += first
        for other in others:
            if rest:
                yield rest
            rest = other
        if len(rest) > limit:
            raise LineTooLongError(f"a line has more than {limit} bytes")
