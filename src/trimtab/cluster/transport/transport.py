"""The seam under the client: one request, one answer, or one stream of lines.

`http.HttpTransport` speaks to any API server; `inprocess.InProcessTransport` calls a server object in the same
process. Neither knows what a pod is. Headers of answers have lower-case names. The values are structs and not
dataclasses because thousands are made in a second, and a frozen dataclass takes ten times as long to make.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

Query = Sequence[tuple[str, str]]
NO_HEADERS: Mapping[str, str] = {}

DEFAULT_MAX_BODY = 256 * 1024 * 1024
"""Bytes of one answer; a page of 500 pods has 4 MB, so only a runaway answer comes near."""

DEFAULT_MAX_LINE = 8 * 1024 * 1024
"""Bytes of one watch event; etcd holds objects of 1.5 MB at most."""


class Response(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Deadlines(msgspec.Struct, frozen=True):
    """How long each part of a request may take, in seconds (fault F05)."""

    connect: float = 5.0
    first_byte: float = 10.0
    total: float = 30.0
    overall: float = float("inf")
    """From the call on, with the time that is spent waiting for a turn: how a fence keeps a write from leaving late."""

    def within(self, limit: float) -> "Deadlines":
        """Return the same deadlines, none longer than `limit`."""
        return Deadlines(
            min(self.connect, limit),
            min(self.first_byte, limit),
            min(self.total, limit),
            min(self.overall, limit),
        )


class Request(msgspec.Struct, frozen=True):
    """What is sent: a method, a path (percent-encoded, below the server's address), and what goes with them."""

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    deadlines: Deadlines = Deadlines()
    max_body: int = DEFAULT_MAX_BODY
    max_line: int = DEFAULT_MAX_LINE
    into: Callable[[bytes], None] | None = None
    """Takes the body of a good answer while it arrives; a transport that cannot do that returns it whole, as ever."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ResponseStream(Protocol):
    """An answer that arrives bit by bit."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they come; raise TransportError if they are cut."""
        ...


class Transport(Protocol):
    """A way to one API server."""

    async def request(self, request: Request) -> Response:
        """Send and return the whole answer, whatever its status; raise TransportError if there is none."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """Send and return once the headers are there; leaving the context drops the rest."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class LineTooLongError(Exception):
    """A line passed the limit before it ended."""


async def lines(stream: ResponseStream, limit: int) -> AsyncIterator[bytes]:
    """Yield the complete lines of `stream`; what follows the last line end is half an event and is dropped."""
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
