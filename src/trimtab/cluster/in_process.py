"""A transport that calls a server object in the same process, such as the lab.

The same client code runs on it under the virtual clock, deterministically and at the cost of a function call. Any
object with the interface `InProcessServer` works.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urlencode

from trimtab.cluster.errors import Fenced, TransportError
from trimtab.cluster.transport import Request, Response


class InProcessAnswer(Protocol):
    """The response of a server object: a whole body, or a stream of chunks."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        ...

    @property
    def body(self) -> bytes:
        """Return the body, if it is not streamed."""
        ...

    @property
    def stream(self) -> AsyncIterator[bytes] | None:
        """Return the chunks of a watch."""
        ...


class InProcessServer(Protocol):
    """A server without a socket."""

    async def request(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> InProcessAnswer:
        """Answer a request."""
        ...


class InProcessTransport:
    """Calls `server` for each request. `headers` are added to every request."""

    def __init__(self, server: InProcessServer, *, headers: Mapping[str, str] | None = None) -> None:
        self._server = server
        self._headers = {"accept": "application/json", **(headers or {})}

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response."""
        try:
            async with asyncio.timeout(request.deadlines.total):
                answer = await self._ask(request)
                body = (
                    answer.body if answer.stream is None else b"".join([part async for part in answer.stream])
                )
        except TimeoutError as error:
            raise TransportError(f"{request}: not answered within {request.deadlines.total:g} s") from error
        return Response(answer.status, _lower(answer.headers), body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["_Stream"]:
        """Send a request and yield the response once its headers have arrived."""
        try:
            async with asyncio.timeout(request.deadlines.first_byte):
                answer = await self._ask(request)
        except TimeoutError as error:
            raise TransportError(f"{request}: no answer in time") from error
        try:
            yield _Stream(answer)
        finally:
            close = getattr(answer.stream, "aclose", None)
            if close is not None:
                await close()

    async def close(self) -> None:
        """Do nothing, since there is no connection."""

    async def _ask(self, request: Request) -> InProcessAnswer:
        if request.may_send is not None and not request.may_send():
            raise Fenced(f"{request}: not sent, the lease may be lost")
        headers = {**self._headers, **request.headers}
        query = urlencode(request.query)
        return await self._server.request(request.method, request.path, query, headers, request.body or b"")


class _Stream:
    """A running watch, or the response in its place."""

    def __init__(self, answer: InProcessAnswer) -> None:
        self.status = answer.status
        self.headers = _lower(answer.headers)
        self._answer = answer

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as the server produces them."""
        if self._answer.stream is None:
            yield self._answer.body
            return
        async for chunk in self._answer.stream:
            yield chunk


def _lower(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers.items()}
