"""The dashboard as an ASGI application: static files, JSON, live updates, and the what-if.

Looking changes nothing: GET never does, the what-if only computes, and the one thing that can be changed (a load of
the lab, where there is one) needs the session's secret in a header and our own Origin.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from trimtab.clock import Clock, FastClock
from trimtab.dashboard.auth import sessions
from trimtab.dashboard.auth.access import Access, OneToken
from trimtab.dashboard.auth.request_checks import Guard, headers_for
from trimtab.dashboard.auth.sessions import Session, Sessions
from trimtab.dashboard.pages.what_if import Edits, RefusedEditsError, what_if
from trimtab.dashboard.sources import Controls, Sources
from trimtab.dashboard.web.event_stream import Streams
from trimtab.dashboard.web.http import (
    Header,
    RefusedError,
    Reply,
    WebRequest,
    body_of,
    decoded,
    request_of,
    said,
    send_reply,
    shown,
)
from trimtab.dashboard.web.overview import Board
from trimtab.dashboard.web.static_files import Files
from trimtab.serving.asgi import Message, Receive, Send

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""Between two looks at the program; the page needs nothing faster."""
MOST_FACTOR: Final = 100.0

_NO_STORE: Final[Header] = ("cache-control", "no-store")


class _Login(msgspec.Struct, frozen=True):
    token: str


class _WhatIf(msgspec.Struct, frozen=True):
    id: str
    edits: Edits = Edits()


class _SetLoad(msgspec.Struct, frozen=True):
    name: str
    factor: float


T = TypeVar("T")
Page = Callable[[WebRequest, Session], Awaitable[Reply]]
Act = Callable[[bytes, Session], Awaitable[Reply]]


class DashboardApp:
    """Serves the dashboard; `run` beside it keeps it up to date."""

    def __init__(
        self,
        clock: Clock,
        sources: Sources,
        *,
        access: Access | None = None,
        controls: Controls | None = None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        """The token that opens everything; only if no other `access` is given."""
        self._has_own_token = access is None
        self._sources = sources
        self._controls = controls
        self._guard = Guard(hosts)
        self._files = Files()
        self._pace = pace_of(clock)
        self._sessions = Sessions(clock, access or OneToken(self.token), self._pace)
        self._board = Board(sources)
        self._streams = Streams(self._board)
        self._pages: dict[str, Page] = {
            "/api/session": self._session,
            "/api/overview": self._overview,
            "/api/hpa": self._hpa,
            "/api/vpa": self._vpa,
            "/api/loads": self._loads,
        }
        self._acts: dict[str, Act] = {
            "/api/whatif": self._what_if,
            "/api/loads": self._set_load,
        }

    def url(self, port: int, host: str = "127.0.0.1", *, is_https: bool = False) -> str:
        """Return the address to open; the token stands behind `#`, which browsers send to no server."""
        address = f"{'https' if is_https else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"
        return f"{address}#token={self.token}" if self._has_own_token else address

    def look(self) -> None:
        """Take in what the program did since the last look; the overview is only kept for those who look at it."""
        self._sources.horizontal.take()
        if self._streams.are_open:
            self._board.look()

    async def run(self) -> None:
        """Look once a second until cancelled."""
        try:
            while True:
                try:
                    self.look()
                except Exception:
                    # What cannot be shown must not end the program that is shown.
                    log.exception("the dashboard could not be brought up to date")
                await asyncio.sleep(LOOK_SECONDS * self._pace)
        finally:
            self._streams.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = request_of(scope)
        security = headers_for(request)
        try:
            self._guard.check(request)
            if request.path == "/events" and request.method == "GET":
                await self._stream(request, (receive, send), security)
                return
            reply = await self._reply(request, receive)
        except RefusedError as refusal:
            reply = said(refusal.status, str(refusal))
        except (
            Exception
        ):  # one page that fails is told to its viewer and to the log, and costs nobody else theirs
            log.exception("dashboard request %r", request.path)
            reply = said(500, "the dashboard failed on this request; the program's log says more")
        if not any(name == "cache-control" for name, _ in reply.headers):
            reply = Reply(reply.status, reply.body, reply.kind, (*reply.headers, _NO_STORE))
        await send_reply(send, reply, security, is_head=request.method == "HEAD")

    async def _reply(self, request: WebRequest, receive: Receive) -> Reply:
        if request.method in {"GET", "HEAD"}:
            return self._files.find(request) or await self._page(request)
        if request.method == "POST":
            return await self._post(request, await body_of(receive))
        raise RefusedError(405, "only GET, HEAD and POST are answered here")

    async def _page(self, request: WebRequest) -> Reply:
        session = await self._sessions.of(request)
        page = self._pages.get(request.path)
        if page is None:
            raise RefusedError(404, "nothing is served here")
        return await page(request, session)

    async def _post(self, request: WebRequest, body: bytes) -> Reply:
        if request.path == "/api/login":
            self._guard.check_change(request)
            session = await self._sessions.login(decoded(body, _Login).token)
            return Reply(204, headers=(sessions.login_cookie(request, session),))
        session = await self._sessions.of(request)
        if self._sessions.is_open(session):
            # A bearer token stands in a header that no other site can set; a cookie is sent whoever asks.
            self._guard.check_change(request)
            sessions.check_csrf(request, session)
        if request.path == "/api/logout":
            self._sessions.logout(session)
            return Reply(204, headers=(sessions.logout_cookie(request),))
        act = self._acts.get(request.path)
        if act is None:
            raise RefusedError(404, "nothing is served here")
        return await act(body, session)

    async def _stream(
        self, request: WebRequest, channel: tuple[Receive, Send], security: tuple[Header, ...]
    ) -> None:
        session = self._sessions.by_cookie(request)
        if session is None:
            raise RefusedError(401, "log in with the token that the program printed")
        await self._streams.serve(session.viewer, lambda: self._sessions.is_open(session), channel, security)

    async def _session(self, _request: WebRequest, session: Session) -> Reply:
        return shown(
            {
                "user": session.viewer.name,
                "csrf": session.csrf,
                "title": "Trimtab",
                "hasLoads": self._controls is not None,
            }
        )

    async def _overview(self, _request: WebRequest, session: Session) -> Reply:
        if not self._streams.are_open:
            self._board.look()
        return shown(self._board.overview(await session.viewer.visible(self._board.namespaces())))

    async def _hpa(self, request: WebRequest, session: Session) -> Reply:
        identity = await self._visible(request.parameter("id"), session)
        return shown(_found(await self._sources.horizontal.page(identity), identity))

    async def _vpa(self, request: WebRequest, session: Session) -> Reply:
        identity = await self._visible(request.parameter("id"), session)
        return shown(_found(await self._sources.vertical.page(identity), identity))

    async def _what_if(self, body: bytes, session: Session) -> Reply:
        asked = decoded(body, _WhatIf)
        identity = await self._visible(asked.id, session)
        try:
            record = _found(await self._sources.horizontal.record(identity), identity)
            return shown(what_if(record, asked.edits))
        except RefusedEditsError as refusal:
            raise RefusedError(422, str(refusal)) from refusal

    async def _loads(self, _request: WebRequest, _session: Session) -> Reply:
        return self._told_loads()

    def _told_loads(self) -> Reply:
        return shown({"loads": list(self._controls.loads()) if self._controls else []})

    async def _set_load(self, body: bytes, _session: Session) -> Reply:
        asked = decoded(body, _SetLoad)
        if self._controls is None:
            raise RefusedError(404, "there is no load here that could be changed")
        if not 0 <= asked.factor <= MOST_FACTOR:
            raise RefusedError(422, f"the factor must be from 0 to {MOST_FACTOR:g}")
        try:
            await self._controls.set_factor(asked.name, asked.factor)
        except KeyError as error:
            raise RefusedError(404, f"there is no load {asked.name!r}") from error
        log.info("load changed", extra={"facts": {"load": asked.name, "factor": asked.factor}})
        return self._told_loads()

    async def _visible(self, identity: str, session: Session) -> str:
        """Return the id if the viewer may see its namespace; otherwise it does not exist for them."""
        parts = identity.split("/")
        if len(parts) == 3 and parts[1] in await session.viewer.visible([parts[1]]):
            return identity
        raise _unknown(identity)


def pace_of(clock: Clock) -> float:
    """Return how many of the clock's seconds pass in one of the viewer's.

    Where the clock runs fast every timer does; whoever looks at the page does not.
    """
    return clock.speed if isinstance(clock, FastClock) else 1.0


def _found(page: T | None, identity: str) -> T:
    if page is None:
        raise _unknown(identity)
    return page


def _unknown(identity: str) -> RefusedError:
    return RefusedError(404, f"nothing is known about {identity!r}")
