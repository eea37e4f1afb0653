"""Requests and replies of the dashboard."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import parse_qs

import msgspec

from trimtab.model.json import wire
from trimtab.serving.asgi import (
    BodyTooLargeError,
    ClientGoneError,
    Message,
    Receive,
    Send,
    read_body,
    send_response,
)

Header = tuple[str, str]
T = TypeVar("T")

MAX_BODY: Final = 64 * 1024
"""Bytes of a request's body. A whole `behavior` has less than 2,000."""
MAX_PARAMETERS: Final = 20

HTML: Final = "text/html; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


class RefusedError(Exception):
    """A request that gets an error status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class WebRequest:
    """One request without its body."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    """By lower-case name. A repeated header is joined by a comma, so that it matches no expected value."""
    is_https: bool
    address: str = ""
    """The client's address."""

    @property
    def host(self) -> str:
        """Return the Host header."""
        return self.headers.get("host", "")

    def parameter(self, name: str) -> str:
        """Return a parameter of the query, or an empty text. Raise RefusedError if there are too many."""
        try:
            return parse_qs(self.query, max_num_fields=MAX_PARAMETERS).get(name, [""])[0]
        except ValueError as error:
            raise RefusedError(400, f"the query has more than {MAX_PARAMETERS} parameters") from error

    def cookie(self, name: str) -> str:
        """Return a cookie, or an empty text if it is missing.

        Values are not unquoted: our own have no quotes, and `http.cookies` takes quadratic time before Python 3.11.10
        and 3.12.6 (CVE-2024-7592).
        """
        for pair in self.headers.get("cookie", "").split(";"):
            key, _, value = pair.partition("=")
            if key.strip() == name:
                return value.strip()
        return ""


@dataclass(frozen=True)
class Reply:
    """One whole reply."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[Header, ...] = ()


def parse_request(scope: Message) -> WebRequest:
    """Return the head of an ASGI request."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return WebRequest(
        method=scope["method"],
        path=scope["path"],
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=headers,
        is_https=scope.get("scheme") == "https",
        address=(scope.get("client") or ("", 0))[0],
    )


async def receive_body(receive: Receive) -> bytes:
    """Read the body. Raise RefusedError if it is too long or incomplete."""
    try:
        return await read_body(receive, MAX_BODY)
    except ClientGoneError as error:
        raise RefusedError(400, "the request ended early") from error
    except BodyTooLargeError as error:
        raise RefusedError(413, f"the body is longer than {MAX_BODY} bytes") from error


def decode_body(body: bytes, kind: type[T]) -> T:
    """Decode a JSON body. Raise RefusedError if it has another shape."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RefusedError(422, f"the body cannot be read: {error}") from error


def json_reply(value: object, status: int = 200) -> Reply:
    """Return a reply with a value as JSON."""
    return Reply(status, encode_json(value))


def encode_json(value: object) -> bytes:
    """Encode a value as JSON, with characters that hide or reorder text escaped.

    Messages of events and conditions may contain text of any user.
    """
    return _HIDDEN.sub(_escape, wire.encode(value))


# Escape sequences are matched whole, so that an escaped backslash before a "u" does not start one.
_HIDDEN: Final = re.compile(
    rb"\\(?:u00[01][0-9a-f]|.)|\x7f|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)


def _escape(match: re.Match[bytes]) -> bytes:
    text = match[0]
    if text[:1] == b"\\":
        return b"\\" + text if text[1:2] == b"u" else text
    return b"\\\\u%04x" % ord(text.decode())


def message_reply(status: int, message: str) -> Reply:
    """Return a reply with a message as JSON, which no browser renders as a page."""
    return json_reply({"message": message}, status)


async def send_reply(send: Send, reply: Reply, security: Iterable[Header], *, is_head: bool = False) -> None:
    """Send a whole reply with the security headers."""
    headers = [("content-type", reply.content_type), *security, *reply.headers]
    await send_response(send, reply.status, encode_headers(headers), reply.body, is_head=is_head)


def encode_headers(headers: Iterable[Header]) -> list[tuple[bytes, bytes]]:
    """Encode headers for ASGI."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
