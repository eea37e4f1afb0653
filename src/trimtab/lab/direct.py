"""The shortest way from a client to a lab in the same process: a transport that calls the server's one method."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from trimtab.cluster.transport import Request, Response
from trimtab.lab.request import Response as Answer
from trimtab.lab.server import Server


class DirectTransport:
    """A `trimtab.cluster` transport without ASGI, sockets or tasks; every request costs one call."""

    def __init__(self, server: Server, token: str = "") -> None:
        self._server = server
        self._headers = {
            "authorization": f"Bearer {token or server.tokens.admin}",
            "user-agent": "trimtab-lab",
        }

    async def request(self, request: Request) -> Response:
        """Send and return the whole answer."""
        answer = await self._answer(request)
        body = answer.body
        if answer.stream is not None:
            body = b"".join([chunk async for chunk in answer.stream])
        return Response(answer.status, _headers(answer), body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["_Stream"]:
        """Send and yield once the headers are there."""
        stream = _Stream(await self._answer(request))
        try:
            yield stream
        finally:
            await stream.close()

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _answer(self, request: Request) -> Answer:
        headers = {**self._headers, **{name.lower(): value for name, value in request.headers.items()}}
        query = urlencode(request.query)
        return await self._server.request(request.method, request.path, query, headers, request.body or b"")


class _Stream:
    """A watch, or a refusal in one piece."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = _headers(answer)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they come."""
        if self._answer.stream is None:
            yield self._answer.body
            return
        async for chunk in self._answer.stream:
            yield chunk

    async def close(self) -> None:
        """Tell the server that nobody listens any more."""
        close = getattr(self._answer.stream, "aclose", None)
        if close is not None:
            await close()


def _headers(answer: Answer) -> Mapping[str, str]:
    named = {name.lower(): value for name, value in answer.headers.items()}
    return {"content-type": answer.content_type, **named}
