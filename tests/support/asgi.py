"""A transport that calls an ASGI application in the same process.

Adapters and small test servers run this way under the virtual clock.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote, urlencode

from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request, Response

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class AsgiTransport:
    """Calls `app` for each request. `headers` are added to every request."""

    def __init__(self, app: Application, *, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._headers = dict(headers or {})

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response."""
        try:
            async with asyncio.timeout(request.deadlines.total), self.stream(request) as stream:
                parts = [chunk async for chunk in stream.chunks()]
                return Response(stream.status, stream.headers, b"".join(parts))
        except TimeoutError as error:
            raise TransportError(f"{request}: no answer within {request.deadlines.total:g} s") from error

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["_Exchange"]:
        """Send a request and yield the response once its headers have arrived."""
        exchange = _Exchange(request)
        task = asyncio.ensure_future(self._serve(exchange, request))
        try:
            await exchange.started()
            yield exchange
        finally:
            exchange.disconnect()
            task.cancel()
            # The exchange already holds the error of a cancelled application.
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def close(self) -> None:
        """Do nothing, since there is no connection."""

    async def _serve(self, exchange: "_Exchange", request: Request) -> None:
        try:
            await self._app(_scope(request, self._headers), exchange.receive, exchange.send)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a failing server is a failed request, whatever it raised
            exchange.fail(error)
        else:
            exchange.fail(None)


class _Exchange:
    """A request and its response, between the application's task and the caller's."""

    def __init__(self, request: Request) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._request = request
        self._body_sent = False
        self._started = asyncio.Event()
        self._gone = asyncio.Event()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._error: BaseException | None = None
        self._complete = False

    async def started(self) -> None:
        """Wait for the headers."""
        await self._started.wait()
        if not self.status:
            raise TransportError(f"{self._request}: the server failed: {self._error!r}") from self._error

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as the application sends them."""
        while (chunk := await self._queue.get()) is not None:
            yield chunk
        if not self._complete:
            raise TransportError(f"{self._request}: the answer was cut: {self._error!r}") from self._error

    async def receive(self) -> Message:
        """Return the request's body once, then a disconnect message."""
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": self._request.body or b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Process an ASGI message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
                for name, value in message.get("headers", ())
            }
            self._started.set()
        elif message["type"] == "http.response.body":
            if chunk := message.get("body", b""):
                self._queue.put_nowait(bytes(chunk))
            if not message.get("more_body", False):
                self._complete = True
                self._queue.put_nowait(None)

    def fail(self, error: BaseException | None) -> None:
        """End the response after the application returned or raised."""
        self._error = error
        self._started.set()
        self._queue.put_nowait(None)

    def disconnect(self) -> None:
        """Send the application a disconnect."""
        self._gone.set()


def _scope(request: Request, headers: Mapping[str, str]) -> Message:
    everything = {"host": "in-process", **headers, **request.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(request.path),
        "raw_path": request.path.encode("ascii"),
        "query_string": urlencode(request.query).encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in everything.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": ("in-process", 0),
        "state": {},
    }
