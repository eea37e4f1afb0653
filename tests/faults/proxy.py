"""A proxy on loopback that stands between a client and an API server and does what networks and servers do on bad days.

    async with FaultProxy(upstream) as proxy:
        proxy.fault = lambda request: Status(503) if request.verb == "WATCH" else None

`upstream` is any `Transport`, so the same faults happen in front of the embedded cluster and of a real one.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from trimtab.cluster.transport import Request, ResponseStream, Transport, lines

_HOP_BY_HOP = {"content-length", "transfer-encoding", "connection", "content-encoding"}
_NOT_FORWARDED = _HOP_BY_HOP | {"host", "authorization"}


@dataclass(frozen=True)
class Seen:
    """A request that came by."""

    method: str
    path: str
    query: Mapping[str, str]

    @property
    def verb(self) -> str:
        if self.method != "GET":
            return self.method
        if "watch" in self.query:
            return "WATCH"
        return "LIST" if "limit" in self.query or "continue" in self.query else "GET"


@dataclass(frozen=True)
class Status:
    """Answer instead of the server."""

    code: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """Pass some lines of a watch, then half of the next one, then drop the connection; 0 bytes of a whole answer."""

    after_lines: int = 0


@dataclass(frozen=True)
class Silence:
    """Say nothing, with or without headers first, until the client leaves."""

    headers: bool = True


@dataclass(frozen=True)
class Half:
    """Pass half of the answer's body, then drop the connection."""


@dataclass(frozen=True)
class Swallow:
    """Let the server do it, and lose the answer."""


@dataclass(frozen=True)
class Alter:
    """Pass the lines of a watch through a function that may drop, repeat or change them."""

    change: Callable[[bytes], list[bytes]]


Fault = Status | Cut | Silence | Half | Swallow | Alter


class FaultProxy:
    """The proxy; `fault` decides per request, `seen` holds what came by."""

    def __init__(self, upstream: Transport) -> None:
        self.fault: Callable[[Seen], Fault | None] = lambda _: None
        self.seen: list[Seen] = []
        self.answers: list[tuple[Seen, int]] = []
        """What the server answered, with the status; whether that arrived is another matter."""
        self._upstream = upstream
        self._open: dict[int, web.Request] = {}

    async def __aenter__(self) -> "FaultProxy":
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drop_all()
        await self._runner.cleanup()

    def count(self) -> Counter[str]:
        """Return how many requests of each verb came by."""
        return Counter(request.verb for request in self.seen)

    def drop_all(self) -> None:
        """Drop every open connection at once, as a restart does."""
        for request in list(self._open.values()):
            _abort(request)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.path, dict(request.query))
        self.seen.append(seen)
        body = await request.read()
        self._open[id(request)] = request
        try:
            return await self._answer(request, seen, body, self.fault(seen))
        finally:
            del self._open[id(request)]

    async def _answer(
        self, request: web.Request, seen: Seen, body: bytes, fault: Fault | None
    ) -> web.StreamResponse:
        if isinstance(fault, Status):
            return web.Response(status=fault.code, body=fault.body, headers=dict(fault.headers))
        if isinstance(fault, Silence):
            return await self._say_nothing(request, fault)
        outgoing = _outgoing(request, body)
        if seen.verb == "WATCH":
            return await self._watch(request, outgoing, fault)
        answer = await self._upstream.request(outgoing)
        self.answers.append((seen, answer.status))
        if isinstance(fault, Swallow | Cut):
            _abort(request)
        if isinstance(fault, Half):
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Length": str(len(answer.body))}
            )
            await response.prepare(request)
            await response.write(answer.body[: len(answer.body) // 2])
            _abort(request)
        return web.Response(status=answer.status, body=answer.body, headers=_passed(answer.headers))

    async def _say_nothing(self, request: web.Request, fault: Silence) -> web.StreamResponse:
        response = web.StreamResponse()
        if fault.headers:
            await response.prepare(request)
        await asyncio.sleep(3600)
        return response

    async def _watch(
        self, request: web.Request, outgoing: Request, fault: Fault | None
    ) -> web.StreamResponse:
        async with self._upstream.stream(outgoing) as stream:
            response = web.StreamResponse(status=stream.status, headers=_passed(stream.headers))
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                await self._pass_lines(request, response, stream, fault)
            return response

    async def _pass_lines(
        self, request: web.Request, response: web.StreamResponse, stream: ResponseStream, fault: Fault | None
    ) -> None:
        passed = 0
        async for line in lines(stream, 8 * 1024 * 1024):
            if isinstance(fault, Cut) and passed >= fault.after_lines:
                await response.write(line[: len(line) // 2])
                _abort(request)
                return
            for altered in fault.change(line) if isinstance(fault, Alter) else [line]:
                await response.write(altered + b"\n")
            passed += 1


def _outgoing(request: web.Request, body: bytes) -> Request:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED}
    query: Any = list(request.query.items())
    return Request(request.method, request.rel_url.raw_path, query, headers, body or None)


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


def _abort(request: web.Request) -> None:
    transport = request.transport
    if transport is not None:
        transport.abort()
