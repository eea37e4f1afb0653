"""Request bodies and whole responses of ASGI applications."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]


class BodyTooLargeError(Exception):
    """The body of a request exceeds the limit."""


class ClientGoneError(Exception):
    """The client disconnected before the body was complete."""


async def read_body(receive: Receive, max_bytes: int) -> bytes:
    """Read the body of a request. Raise BodyTooLargeError or ClientGoneError."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGoneError("the client disconnected")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            raise BodyTooLargeError(f"the body has more than {max_bytes} bytes")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def send_response(
    send: Send, status: int, headers: Headers, body: bytes, *, is_head: bool = False
) -> None:
    """Send a whole response. A response to HEAD has the length of the body and no body."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": b"" if is_head else body})
