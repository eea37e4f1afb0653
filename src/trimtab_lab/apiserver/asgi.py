"""The lab's server as an ASGI app, with the limits of a socket.

It serves only requests for a known Host, so that a web page cannot reach a lab on loopback through its own name (DNS
rebinding). It rejects cross-origin requests of browsers for the same reason.
"""

import asyncio
from collections.abc import Set
from contextlib import suppress

from trimtab.model.status import StatusError, too_large_body
from trimtab.serving.asgi import (
    BodyTooLargeError,
    ClientGoneError,
    Message,
    Receive,
    Send,
    read_body,
    send_response,
)
from trimtab_lab.apiserver.request import MAX_BODY, ApiResponse
from trimtab_lab.apiserver.server import Server

#: Bytes of all headers of a request together.
MAX_HEADERS = 32 * 1024
#: Concurrent requests of one client address, watches included.
MAX_PER_ADDRESS = 2000


class ApiServerApp:
    """The ASGI application."""

    def __init__(self, server: Server, hosts: Set[str]) -> None:
        self._server = server
        self._hosts = hosts
        self._open: dict[str, int] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request, or the events of start-up and shutdown."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._bounded(scope, receive, send)

    async def _bounded(self, scope: Message, receive: Receive, send: Send) -> None:
        address = (scope.get("client") or ("", 0))[0]
        count = self._open.get(address, 0)
        if count >= MAX_PER_ADDRESS:
            problem = StatusError(429, "too many requests at once from this address", retry_after=1)
            await _send_whole(send, ApiResponse.failure(problem))
            return
        self._open[address] = count + 1
        try:
            await self._http(scope, receive, send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            headers = self._headers(scope)
            body = await _read_body(receive, headers)
        except ClientGoneError:
            return
        except StatusError as problem:
            await _send_whole(send, ApiResponse.failure(problem))
            return
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        response = await self._server.request(
            scope["method"], path, scope["query_string"].decode("latin-1"), headers, body
        )
        if response.stream is None:
            await _send_whole(send, response, is_head=scope["method"] == "HEAD")
        else:
            await _send_stream(receive, send, response)

    def _headers(self, scope: Message) -> dict[str, str]:
        """Return the headers after checks of size, Host and Origin."""
        headers: dict[str, str] = {}
        size = 0
        for raw_name, raw_value in scope["headers"]:
            size += len(raw_name) + len(raw_value) + 4
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]},{value}" if name in headers else value
        if size > MAX_HEADERS:
            message = f"the headers are larger than {MAX_HEADERS} bytes"
            raise StatusError(431, message)
        if headers.get("host", "").lower() not in self._hosts:
            raise StatusError(421, "this server does not answer for that Host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() not in self._hosts:
            raise StatusError(403, "requests from other origins are not answered")
        return headers


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _read_body(receive: Receive, headers: dict[str, str]) -> bytes:
    too_large = too_large_body(f"Request entity too large: limit is {MAX_BODY}")
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise too_large
    try:
        return await read_body(receive, MAX_BODY)
    except BodyTooLargeError as problem:
        raise too_large from problem


def _response_headers(response: ApiResponse) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", response.content_type.encode()),
        (b"cache-control", b"no-cache, private"),
        (b"x-content-type-options", b"nosniff"),
        *((name.lower().encode(), value.encode()) for name, value in response.headers.items()),
        *(
            (b"warning", f'299 - "{_quoted(text)}"'.encode("latin-1", "replace"))
            for text in response.warnings
        ),
    ]


def _quoted(text: str) -> str:
    # Control characters would end the header.
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')


async def _send_whole(send: Send, response: ApiResponse, *, is_head: bool = False) -> None:
    headers = _response_headers(response)
    await send_response(send, response.status, headers, response.body, is_head=is_head)


async def _send_stream(receive: Receive, send: Send, response: ApiResponse) -> None:
    """Send chunks until the stream ends or the client disconnects."""
    assert response.stream is not None
    start = {"type": "http.response.start", "status": response.status}
    await send({**start, "headers": _response_headers(response)})
    # A client regards a watch as open when it gets the headers, so they must not wait for the first event.
    await send({"type": "http.response.body", "body": b"", "more_body": True})

    async def pump() -> None:
        assert response.stream is not None
        async for chunk in response.stream:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = {asyncio.ensure_future(pump()), asyncio.ensure_future(until_gone())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        close = getattr(response.stream, "aclose", None)
        if close is not None:
            await close()
    with suppress(OSError):
        await send({"type": "http.response.body", "body": b"", "more_body": False})
