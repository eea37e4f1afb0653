"""Parses responses from the bytes of a connection, without a socket.

httptools parses. This module handles interim responses, responses that end with the connection, limits, and unexpected
bytes.
"""

from collections.abc import Callable, Iterator, Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from trimtab.cluster.http.errors import BadAnswerError, TooBigError

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
