"""The bytes of requests and of responses, without a socket.

HttpProblem: why there is no response. The transport turns it into a TransportError.
├── DeadlineError     a deadline passed
├── EndedError        the connection ended before the response; `untouched` if no byte of it had arrived
├── BadAnswerError    the response is invalid
├── TooBigError       the response is longer than allowed
├── FenceClosedError  the lease may be lost, so nothing was sent
└── CannotConnectError  no connection was made, so nothing was sent

The parts that all requests share are encoded once. httptools parses responses. This module handles interim responses,
responses that end with the connection, limits, and unexpected bytes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Self
from urllib.parse import urlencode

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from trimtab.cluster.transport import Query, Request


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


_TARGET = re.compile(r"/[!-~]*")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class HeadWriter:
    """Encodes the heads of requests to a server. `fixed` headers are part of each."""

    def __init__(self, host: str, prefix: str, fixed: Iterable[tuple[str, str]]) -> None:
        self._prefix = prefix
        """The prefix of every target: the server's base path, or its whole address for a proxy."""
        self._fixed = [("Host", host), *fixed]
        self._lines = "".join(header_line(*pair) for pair in self._fixed)
        self._names = frozenset(name.lower() for name, _ in self._fixed)

    def write(self, request: Request) -> bytes:
        """Return the bytes of a request. Its own headers replace fixed ones of the same name."""
        return self.write_parts(
            request.method,
            request.path + query_text(request.query),
            request.headers.items(),
            request.body,
        )

    def write_parts(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None
    ) -> bytes:
        """Return the bytes of a request whose headers may repeat."""
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is not a path that can be asked for")
        own = ""
        fixed = self._lines
        for name, value in headers:
            own += header_line(name, value)
            if name.lower() in self._names:
                fixed = self._without(name.lower(), fixed)
        if body:
            own += f"Content-Length: {len(body)}\r\n"
        elif method in _WITH_BODY:
            own += "Content-Length: 0\r\n"
        head = f"{method} {self._prefix}{target} HTTP/1.1\r\n{fixed}{own}\r\n".encode("latin-1")
        return head + body if body else head

    def _without(self, name: str, lines: str) -> str:
        kept = [line for line in lines.splitlines(keepends=True) if line.partition(":")[0].lower() != name]
        return "".join(kept)


@lru_cache(maxsize=256)
def header_line(name: str, value: str) -> str:
    """Return a header line. Reject a value that would start another line."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise ValueError(f"the header {name!r} cannot be sent: it holds a character that HTTP does not allow")
    return f"{name}: {value}\r\n"


def query_text(query: Query) -> str:
    """Return the query with its question mark."""
    return _encoded(tuple(query)) if query else ""


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return f"?{urlencode(query)}"


_MAX_HEAD = 256 * 1024
"""Maximum bytes before the body. API servers send less than 1 KB."""

_NO_LIMIT = 1 << 62


class Headers(Mapping[str, str]):
    """The headers of a response, with lower-case names, decoded on first use."""

    __slots__ = ("_raw", "_read")

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._raw = raw
        self._read: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        if self._read is None:
            read: dict[str, str] = {}
            for raw_name, raw_value in self._raw:
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                # A repeated header means a list (RFC 9110, 5.3).
                read[name] = f"{read[name]}, {value}" if name in read else value
            self._read = read
        return self._read


class ResponseParser:
    """Parses a response.

    `status` is 0 until its head is complete. `parts` are the chunks of its body.
    """

    def __init__(self) -> None:
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self.expect(with_body=True, max_body=_NO_LIMIT)

    def expect(
        self, *, with_body: bool, max_body: int | None, into: Callable[[bytes], None] | None = None
    ) -> None:
        """Reset for the next response. `into` receives the body of a successful one instead of `parts`."""
        self.status = 0
        self.parts: list[bytes] = []
        self.size = 0
        self.has_begun = False
        self.is_complete = False
        self.keeps_alive = False
        self.encoding = ""
        self._raw: list[tuple[bytes, bytes]] = []
        self._with_body = with_body
        self._into = into
        self._limit = _NO_LIMIT if max_body is None else max_body
        self._head_size = 0
        self._framed = False
        self._is_too_big = False

    @property
    def headers(self) -> Headers:
        """Return the headers of the response."""
        return Headers(self._raw)

    def feed(self, data: bytes) -> None:
        """Parse bytes. Raise if they are not a response, or longer than allowed."""
        self.has_begun = True
        if not self.status:
            self._head_size += len(data)
        assert self._parser is not None, "the connection is lost"
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as error:
            raise BadAnswerError("the server switches to another protocol, which nobody asked for") from error
        except HttpParserError as error:
            if not self.is_complete:
                self._check_size()
                raise BadAnswerError(f"not an HTTP answer: {error}") from error
            self.keeps_alive = False
        self._check_size()
        if not self.status and self._head_size > _MAX_HEAD:
            raise BadAnswerError(f"the head of the answer has more than {_MAX_HEAD} bytes")

    def end(self) -> bool:
        """Handle the end of the connection. Return whether the response is complete."""
        if self.status and not self._framed:
            self.is_complete = True
        return self.is_complete

    def _check_size(self) -> None:
        if self._is_too_big:
            raise TooBigError

    def detach(self) -> None:
        """End parsing. What was parsed stays."""
        self._parser = None

    def drop_incomplete(self) -> None:
        """Drop the chunks of a response that will not be complete, and the receiver of its body."""
        if not self.is_complete:
            self.parts = []
            self._into = None

    def take_body(self) -> bytes:
        """Return the chunks of the body since the last call."""
        parts = self.parts
        self.parts = []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # What httptools calls, by its names.

    def on_message_begin(self) -> None:
        """Reject bytes of a second, unrequested response."""
        if self.is_complete:
            self.keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header, and evaluate the three that define the body."""
        if self.is_complete:
            return
        self._raw.append((name, value))
        if len(name) in {14, 16, 17}:
            self._frame(name.lower(), value)

    def _frame(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._framed = True
            if value.isdigit() and int(value) > self._limit and self._with_body:
                self._is_too_big = True
        elif name == b"transfer-encoding":
            self._framed = True
            if value.strip().lower() != b"chunked":
                self.encoding = value.decode("latin-1")
        elif name == b"content-encoding" and value.strip().lower() != b"identity":
            self.encoding = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the status. An interim response (1xx) is skipped."""
        if self.is_complete:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._raw = []
            self._framed = False
            return
        self.status = status
        if not self._with_body:
            # The parser has no way to skip the body, so it cannot parse another response.
            self.is_complete = True
        elif status in {204, 304}:
            self._framed = True

    def on_body(self, data: bytes) -> None:
        """Store a chunk of the body."""
        self.size += len(data)
        if self.size > self._limit:
            self._is_too_big = True
        elif self.is_complete:
            return
        elif self._into is not None and self.status < 300:
            self._into(data)
        else:
            self.parts.append(data)

    def on_message_complete(self) -> None:
        """Mark the response as complete."""
        if self.status and not self.is_complete:
            self.is_complete = True
            self._into = None  # a connection may be idle for long, and is not to hold on to what it brought
            self.keeps_alive = self._parser is not None and self._parser.should_keep_alive()
