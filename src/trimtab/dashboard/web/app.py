"""The dashboard's ASGI application: static files, JSON, live updates, and the what-if.

GET changes nothing, and the what-if only computes. Only a load of the lab can be changed, which needs the session's CSRF
token in a header and our own Origin.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import msgspec

from trimtab.clock import Clock, FastClock
from trimtab.dashboard.auth import sessions
from trimtab.dashboard.auth.access import Access, OneToken
from trimtab.dashboard.auth.request_checks import RequestChecks, security_headers
from trimtab.dashboard.auth.rights import (
    AUTOSCALERS,
    HPAS,
    NATIVE_HPAS,
    NATIVE_VPAS,
    PODS,
    VPAS,
    Kind,
    NamespaceRights,
    visible_to,
)
from trimtab.dashboard.auth.sessions import Session, Sessions
from trimtab.dashboard.pages.decision import without_pods
from trimtab.dashboard.pages.patches import patch_command
from trimtab.dashboard.pages.views import StoryView, WhatIfView
from trimtab.dashboard.pages.what_if import Edits, RefusedEditsError, what_if
from trimtab.dashboard.sources import Controls, Sources
from trimtab.dashboard.web.event_stream import Streams
from trimtab.dashboard.web.http import (
    Header,
    RefusedError,
    Reply,
    WebRequest,
    decode_body,
    json_reply,
    message_reply,
    parse_request,
    receive_body,
    send_reply,
)
from trimtab.dashboard.web.overview import OverviewCache
from trimtab.dashboard.web.static_files import StaticFiles
from trimtab.dashboard.web.workers import Workers
from trimtab.serving.asgi import Message, Receive, Send

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 1.0
"""Time between two refreshes."""
MAX_FACTOR: Final = 100.0

_IDENTITY: Final = re.compile(rf"({'|'.join(AUTOSCALERS)})/([a-z0-9-]{{1,63}})/([^/]{{1,253}})")
"""The id of an autoscaler. Reviews of other namespaces would only fill caches."""

_NO_STORE: Final[Header] = ("cache-control", "no-store")


class _Login(msgspec.Struct, frozen=True):
    token: str

    def __repr__(self) -> str:
        """Return no token, which log lines and tracebacks would hold."""
        return "_Login()"


class _WhatIf(msgspec.Struct, frozen=True):
    id: str
    edits: Edits = Edits()


class _SetLoad(msgspec.Struct, frozen=True):
    name: str
    factor: float


T = TypeVar("T")
GetHandler = Callable[[WebRequest, Session], Awaitable[Reply]]
PostHandler = Callable[[bytes, Session], Awaitable[Reply]]


class DashboardApp:
    """Serves the dashboard. `run` keeps it up to date."""

    def __init__(
        self,
        clock: Clock,
        sources: Sources,
        *,
        access: Access | None = None,
        controls: Controls | None = None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        if access is not None and controls is not None:
            raise ValueError(
                "loads can be changed by the owner of the program only, not by users of a cluster"
            )
        self.token = secrets.token_urlsafe(24)
        """The token that logs in, unless another `access` is given."""
        self._has_own_token = access is None
        self._sources = sources
        self._controls = controls
        self.stories: Sequence[StoryView] = ()
        """Examples that the first page shows."""
        self._checks = RequestChecks(hosts)
        self._files = StaticFiles()
        self._speed = clock_speed(clock)
        self._sessions = Sessions(clock, access or OneToken(self.token), self._speed)
        self._cache = OverviewCache(sources)
        self._streams = Streams(self._cache, self._speed)
        self._workers = Workers()
        self._get_handlers: dict[str, GetHandler] = {
            "/api/session": self._session,
            "/api/overview": self._overview,
            "/api/hpa": self._hpa,
            "/api/vpa": self._vpa,
            "/api/loads": self._loads,
            "/api/stories": self._tell_stories,
        }
        self._post_handlers: dict[str, PostHandler] = {
            "/api/whatif": self._what_if,
            "/api/loads": self._set_load,
        }

    def url(self, port: int, host: str = "127.0.0.1", *, is_https: bool = False) -> str:
        """Return the address to open. The token follows `#`, which browsers do not send to servers."""
        address = f"{'https' if is_https else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"
        return f"{address}#token={self.token}" if self._has_own_token else address

    def refresh(self) -> None:
        """Record new decisions, and refresh the overview while streams are open."""
        self._sources.horizontal.refresh()
        if self._streams.are_open:
            self._cache.refresh()

    async def run(self) -> None:
        """Refresh once a second until cancelled."""
        try:
            while True:
                try:
                    self.refresh()
                except Exception:
                    # The page must not end the operator in the same process.
                    log.exception("refreshing the dashboard failed")
                await asyncio.sleep(REFRESH_SECONDS * self._speed)
        finally:
            self._streams.close()
            self._workers.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = parse_request(scope)
        security = security_headers(request)
        try:
            self._checks.check(request)
            if request.path == "/events" and request.method == "GET":
                await self._stream(request, (receive, send), security)
                return
            reply = await self._reply(request, receive)
        except RefusedError as refusal:
            reply = message_reply(refusal.status, str(refusal))
        except Exception:
            # The border: one page that fails must not affect the others.
            log.exception("dashboard request %r failed", request.path)
            reply = message_reply(500, "the dashboard failed on this request; the program's log says more")
        if not any(name == "cache-control" for name, _ in reply.headers):
            reply = Reply(reply.status, reply.body, reply.content_type, (*reply.headers, _NO_STORE))
        await send_reply(send, reply, security, is_head=request.method == "HEAD")

    async def _reply(self, request: WebRequest, receive: Receive) -> Reply:
        if request.method in {"GET", "HEAD"}:
            return self._files.find(request) or await self._get(request)
        if request.method == "POST":
            return await self._post(request, await receive_body(receive))
        raise RefusedError(405, "only GET, HEAD and POST are answered here")

    async def _get(self, request: WebRequest) -> Reply:
        session = await self._sessions.find(request)
        handler = self._get_handlers.get(request.path)
        if handler is None:
            raise RefusedError(404, "nothing is served here")
        return await handler(request, session)

    async def _post(self, request: WebRequest, body: bytes) -> Reply:
        if request.path == "/api/login":
            self._checks.check_change(request)
            session = await self._sessions.login(request, decode_body(body, _Login).token)
            seconds = self._sessions.seconds_left(session)
            return Reply(204, headers=(sessions.login_cookie(request, session, seconds),))
        session = await self._sessions.find(request)
        if self._sessions.is_from_cookie(session):
            # Another site cannot set a bearer token, but browsers add the cookie to its requests.
            self._checks.check_change(request)
            sessions.check_csrf(request, session)
        if request.path == "/api/logout":
            self._sessions.logout(session)
            return Reply(204, headers=(sessions.logout_cookie(request),))
        handler = self._post_handlers.get(request.path)
        if handler is None:
            raise RefusedError(404, "nothing is served here")
        return await handler(body, session)

    async def _stream(
        self, request: WebRequest, channel: tuple[Receive, Send], security: tuple[Header, ...]
    ) -> None:
        session = await self._sessions.by_cookie(request)
        if session is None:
            raise self._sessions.not_logged_in()
        await self._streams.serve(session, self._sessions.is_open, channel, security)

    async def _session(self, _request: WebRequest, session: Session) -> Reply:
        return json_reply(
            {
                "user": session.viewer.name,
                "csrf": session.csrf,
                "title": "Trimtab",
                "hasLoads": self._controls is not None,
            }
        )

    async def _overview(self, _request: WebRequest, session: Session) -> Reply:
        if not self._streams.are_open:
            self._cache.refresh()
        return json_reply(self._cache.overview(await visible_to(session.viewer, self._cache.listings())))

    async def _hpa(self, request: WebRequest, session: Session) -> Reply:
        identity = request.parameter("id")
        rights = await _rights_to(identity, session, HPAS, NATIVE_HPAS)
        return json_reply(_require(await self._sources.horizontal.page(identity, rights), identity))

    async def _vpa(self, request: WebRequest, session: Session) -> Reply:
        identity = request.parameter("id")
        rights = await _rights_to(identity, session, VPAS, NATIVE_VPAS)
        return json_reply(_require(await self._sources.vertical.page(identity, rights), identity))

    async def _what_if(self, body: bytes, session: Session) -> Reply:
        request = decode_body(body, _WhatIf)
        rights = await _rights_to(request.id, session, HPAS, NATIVE_HPAS)
        try:
            record = _require(await self._sources.horizontal.record(request.id), request.id)
            decision = await self._workers.run(session.viewer.name, lambda: what_if(record, request.edits))
        except RefusedEditsError as refusal:
            raise RefusedError(422, str(refusal)) from refusal
        is_native = request.id.startswith("native/")
        return json_reply(
            WhatIfView(
                decision=decision if await rights.allowed([PODS]) else without_pods(decision),
                patch=patch_command(record, request.edits, is_native=is_native),
            )
        )

    async def _tell_stories(self, _request: WebRequest, _session: Session) -> Reply:
        return json_reply({"stories": self.stories})

    async def _loads(self, _request: WebRequest, _session: Session) -> Reply:
        return self._loads_reply()

    def _loads_reply(self) -> Reply:
        return json_reply({"loads": list(self._controls.loads()) if self._controls else []})

    async def _set_load(self, body: bytes, _session: Session) -> Reply:
        request = decode_body(body, _SetLoad)
        if self._controls is None:
            raise RefusedError(404, "there is no load here that could be changed")
        if not 0 <= request.factor <= MAX_FACTOR:
            raise RefusedError(422, f"the factor must be from 0 to {MAX_FACTOR:g}")
        try:
            await self._controls.set_factor(request.name, request.factor)
        except KeyError as error:
            raise RefusedError(404, f"there is no load {request.name!r}") from error
        log.info("load changed", extra={"facts": {"load": request.name, "factor": request.factor}})
        return self._loads_reply()


def clock_speed(clock: Clock) -> float:
    """Return how many of the clock's seconds pass in one real second."""
    return clock.speed if isinstance(clock, FastClock) else 1.0


async def _rights_to(identity: str, session: Session, *kinds: Kind) -> NamespaceRights:
    """Return the viewer's rights in the namespace of an id. Raise 404 without the right to its kind.

    An object that a viewer may not see does not exist for that viewer.
    """
    match = _IDENTITY.fullmatch(identity)
    if match is not None:
        kind, rights = AUTOSCALERS[match[1]], NamespaceRights(session.viewer, match[2])
        if kind in kinds and await rights.allowed([kind]):
            return rights
    raise _not_found(identity)


def _require(page: T | None, identity: str) -> T:
    if page is None:
        raise _not_found(identity)
    return page


def _not_found(identity: str) -> RefusedError:
    return RefusedError(
        404, f"there is no {identity[:400]!r}, or you may not list objects of its kind in its namespace"
    )
