"""The line between one operator process and the API server: it keeps count of what is sent, and it breaks on demand.

It works in front of any transport, so the same break happens on the lab in virtual time and on a real server.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum

from trimtab.cluster.errors import TransportError
from trimtab.cluster.resource import Json
from trimtab.cluster.transport import Request, Response, ResponseStream, Transport, lines


class Break(Enum):
    """What happens to one write."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOSE_ANSWER = "answer lost"
    CONFLICT = "409"
    UNAVAILABLE = "503"


@dataclass(frozen=True)
class Written:
    """A write that reached the line, and the status that the server gave it (0: it never got there)."""

    request: Request
    status: int

    @property
    def body(self) -> Json:
        body: Json = json.loads(self.request.body or b"{}")
        return body

    @property
    def is_scale(self) -> bool:
        return self.request.path.endswith("/scale")

    @property
    def is_status(self) -> bool:
        return self.request.path.endswith("/status")


CLUSTER_SCOPED = {
    "nodes",
    "namespaces",
    "customresourcedefinitions",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "tokenreviews",
    "subjectaccessreviews",
}
"""Kinds without a namespace: the chart binds the rights over them in the whole cluster."""

Answer = Response | TransportError | None
Alter = Callable[[bytes], list[bytes]]


def failure(code: int, reason: str) -> bytes:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": reason,
    }
    return json.dumps(body).encode()


def status(code: int, reason: str = "", **headers: str) -> Response:
    """Return an answer that stands for a failure."""
    return Response(code, {"content-type": "application/json", **headers}, failure(code, reason))


class Line:
    """A transport that passes on what it is given unless it was told otherwise.

    `within` gives it the rights of an installation with `watchNamespaces`: lists of the whole cluster are forbidden. A test
    that narrows only the setting cannot see a list that forgot its namespace.
    """

    def __init__(self, inner: Transport, *, within: Iterable[str] | None = None) -> None:
        self._inner = inner
        self._allowed = None if within is None else {"", *within}
        self.forbidden: list[Request] = []
        """What was refused because of `within`."""
        self.sent: list[Request] = []
        self.writes: list[Written] = []
        self.break_write: Callable[[int, Request], Break | None] = lambda _number, _request: None
        self.answer: Callable[[Request], Answer] = lambda _: None
        """Called for every request; what it returns is answered instead of the server."""
        self.alter: Callable[[Request], Alter | None] = lambda _: None
        """Called for every watch; what it returns sees each line and gives those that arrive."""
        self.is_silent: Callable[[Request], bool] = lambda _: False
        """Called for every watch and every line of it: a silent one stays open and says nothing."""
        self.is_hanging: Callable[[Request], bool] = lambda _: False
        """Called for every request: one that hangs is given up by its own deadline."""
        self.loses_answer: Callable[[Request], bool] = lambda _: False
        """Called for every request that was answered, Leases and events included: a lost answer never arrives."""
        self.answers_after: Callable[[Request], float] = lambda _: 0.0
        """Called for every request: the seconds that the answer takes, after the server has done its part."""
        self.crashed = asyncio.Event()
        self._dropped = asyncio.Event()
        self._number = 0

    async def request(self, request: Request) -> Response:
        self.sent.append(request)
        self._refuse_the_dead()
        instead = self._instead(request)
        if isinstance(instead, TransportError):
            raise instead
        if instead is not None:
            return self._said(request, instead)
        if self.is_hanging(request):
            await asyncio.sleep(request.deadlines.total)
            raise TransportError(f"{request}: not answered within {request.deadlines.total:g} s")
        answer = await self._passed_on(request)
        if (seconds := self.answers_after(request)) > 0:
            await asyncio.sleep(seconds)
        if self.loses_answer(request):
            raise TransportError(f"{request}: the answer got lost")
        return answer

    def _instead(self, request: Request) -> Answer:
        instead = self.answer(request)
        if instead is None and self._allowed is not None and _namespace_of(request.path) not in self._allowed:
            self.forbidden.append(request)
            return status(403, "Forbidden")
        return instead

    async def _passed_on(self, request: Request) -> Response:
        if not _is_counted(request):
            return await self._inner.request(request)
        number, self._number = self._number, self._number + 1
        return await self._write(request, self.break_write(number, request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        self.sent.append(request)
        self._refuse_the_dead()
        instead = self._instead(request)
        if isinstance(instead, TransportError):
            raise instead
        if instead is not None:
            yield _Said(instead)
            return
        async with self._inner.stream(request) as stream:
            yield _Altered(stream, request, self.alter(request), self.is_silent, self._dropped)

    def drop_all(self) -> None:
        """Drop every open watch at once, as the restart of a server does."""
        self._dropped.set()
        self._dropped = asyncio.Event()

    async def close(self) -> None:
        """Do nothing: the connections belong to the stage."""

    async def _write(self, request: Request, broken: Break | None) -> Response:
        if broken is Break.CONFLICT:
            return self._said(request, status(409, "Conflict"))
        if broken is Break.UNAVAILABLE:
            return self._said(request, status(503, "ServiceUnavailable"))
        if broken is Break.CRASH_BEFORE:
            self.crashed.set()
            self._note(request, 0)
            self._refuse_the_dead()
        answer = await self._inner.request(request)
        self._note(request, answer.status)
        if broken is Break.CRASH_AFTER:
            self.crashed.set()
            self._refuse_the_dead()
        if broken is Break.LOSE_ANSWER:
            raise TransportError(f"{request}: the answer got lost")
        return answer

    def _said(self, request: Request, answer: Response) -> Response:
        self._note(request, answer.status)
        return answer

    def _note(self, request: Request, code: int) -> None:
        if _is_counted(request):
            self.writes.append(Written(request, code))

    def _refuse_the_dead(self) -> None:
        if self.crashed.is_set():
            raise TransportError("the process is dead")


def _is_counted(request: Request) -> bool:
    """Events and leases are told beside the work; losing one changes no workload."""
    return request.method != "GET" and not any(
        part in request.path for part in ("/events", "/leases", "accessreviews", "tokenreviews")
    )


def _namespace_of(path: str) -> str | None:
    """Return the namespace that a request is about; None for a whole cluster's namespaced objects."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        return rest[1]
    return "" if not rest or rest[0] in CLUSTER_SCOPED or parts[0] not in {"api", "apis"} else None


class _Said:
    """A whole answer where a stream was asked for."""

    def __init__(self, answer: Response) -> None:
        self.status, self.headers, self._body = answer.status, answer.headers, answer.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


class _Altered:
    """A watch whose lines pass through the test's hands."""

    def __init__(
        self,
        inner: ResponseStream,
        request: Request,
        alter: Alter | None,
        is_silent: Callable[[Request], bool],
        dropped: asyncio.Event,
    ) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._request, self._alter, self._is_silent = inner, request, alter, is_silent
        self._dropped = dropped

    async def chunks(self) -> AsyncIterator[bytes]:
        incoming = lines(self._inner, self._request.max_line)
        while (line := await self._next(incoming)) is not None:
            for passed in self._alter(line) if self._alter else [line]:
                yield passed + b"\n"

    async def _next(self, incoming: AsyncIterator[bytes]) -> bytes | None:
        """Return the next line, or None at the end; a silent watch never comes to it, a dropped one raises."""
        dropped = asyncio.ensure_future(self._dropped.wait())
        line = asyncio.ensure_future(self._heard(incoming))
        try:
            await asyncio.wait([line, dropped], return_when=asyncio.FIRST_COMPLETED)
            if self._dropped.is_set():
                raise TransportError(f"{self._request}: the connection was dropped")
            return line.result()
        finally:
            line.cancel()
            dropped.cancel()
            await asyncio.gather(line, dropped, return_exceptions=True)

    async def _heard(self, incoming: AsyncIterator[bytes]) -> bytes | None:
        line = None if self._is_silent(self._request) else await anext(incoming, None)
        if self._is_silent(self._request):
            await asyncio.Event().wait()
        return line
