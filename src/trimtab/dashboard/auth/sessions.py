"""Sessions of logged-in viewers: in memory, with a cookie, for at most 12 hours (S17).

A session ends with its token: at the time at which the token expires, and soon after the cluster revokes it.
"""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from trimtab.clock import Clock
from trimtab.dashboard.auth.access import Access
from trimtab.dashboard.auth.request_checks import CSRF_HEADER
from trimtab.dashboard.auth.rights import Viewer
from trimtab.dashboard.auth.tokens import FailureLimit, expiry_of
from trimtab.dashboard.web.http import Header, RefusedError, WebRequest

LIFETIME_SECONDS: Final = 12 * 3600
REVIEW_SECONDS: Final = 30
"""How often the token of a session is reviewed again."""
MAX_SESSIONS: Final = 256
"""Limits memory, far above the needs of a team. The oldest session ends first."""
MAX_VIEWER_SESSIONS: Final = 16
"""Sessions of one viewer, so that one viewer's logins do not end the sessions of others."""
COOKIE: Final = "trimtab-session"


@dataclass(eq=False)
class Session:
    """One login."""

    viewer: Viewer
    expires_at: float
    token: str = field(default="", repr=False)
    """The token of the login, kept in memory to review it again."""
    reviewed_at: float = 0.0
    identity: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


class Sessions:
    """All sessions of this process. A restart ends them."""

    def __init__(self, clock: Clock, access: Access, clock_speed: float = 1.0) -> None:
        self._clock = clock
        self._access = access
        self._speed = clock_speed
        self._failures = FailureLimit(clock, clock_speed)
        self._open: OrderedDict[str, Session] = OrderedDict()

    async def login(self, request: WebRequest, token: str) -> Session:
        """Open a session. Raise RefusedError if the token is invalid."""
        viewer = await self._authenticate(request, token)
        now = self._clock.monotonic()
        session = Session(viewer, self._end_of(token), token, now)
        if not now < session.expires_at:
            raise RefusedError(401, f"this token has expired; use {self._access.login_token}")
        self._open[session.identity] = session
        self._drop_oldest(viewer.name)
        return session

    def logout(self, session: Session) -> None:
        """End a session and its streams."""
        self._open.pop(session.identity, None)

    def seconds_left(self, session: Session) -> int:
        """Return how long a session can last, in real seconds."""
        return max(ceil((session.expires_at - self._clock.monotonic()) / self._speed), 0)

    def is_from_cookie(self, session: Session) -> bool:
        """Return whether a session is stored. A session of a single bearer request never is."""
        return session.identity in self._open

    async def is_open(self, session: Session) -> bool:
        """Return whether a session is open and its token valid. Raise RefusedError if that cannot be reviewed."""
        now = self._clock.monotonic()
        if session.identity not in self._open:
            return False
        if now >= session.expires_at:
            self.logout(session)
            return False
        if now - session.reviewed_at >= REVIEW_SECONDS * self._speed:
            viewer = await self._access.viewer(session.token)
            if viewer is None or viewer.name != session.viewer.name:
                self.logout(session)
                return False
            session.viewer, session.reviewed_at = viewer, now
        return session.identity in self._open

    async def by_cookie(self, request: WebRequest) -> Session | None:
        """Return the session of the request's cookie, or None."""
        session = self._open.get(request.cookie(cookie_name(request)))
        return session if session is not None and await self.is_open(session) else None

    async def find(self, request: WebRequest) -> Session:
        """Return the session of a request's cookie or bearer token. Raise RefusedError without them."""
        session = await self.by_cookie(request)
        if session is not None:
            return session
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise self.not_logged_in()
        viewer = await self._authenticate(request, token.strip())
        return Session(viewer, self._clock.monotonic())

    def not_logged_in(self) -> RefusedError:
        """Return the error of a request without an open session."""
        return RefusedError(401, f"log in with {self._access.login_token}")

    async def _authenticate(self, request: WebRequest, token: str) -> Viewer:
        viewer = await self._failures.authenticate(request.address, token, self._access.viewer)
        if viewer is None:
            raise RefusedError(401, f"this token is not known here; use {self._access.login_token}")
        return viewer

    def _end_of(self, token: str) -> float:
        now, expiry = self._clock.monotonic(), expiry_of(token)
        end = now + LIFETIME_SECONDS * self._speed
        return end if expiry is None else min(end, now + expiry - self._clock.now().timestamp())

    def _drop_oldest(self, name: str) -> None:
        of_viewer = [session for session in self._open.values() if session.viewer.name == name]
        for session in of_viewer[:-MAX_VIEWER_SESSIONS]:
            self.logout(session)
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)


def check_csrf(request: WebRequest, session: Session) -> None:
    """Raise RefusedError unless the request contains the session's CSRF token, which only our own page can read."""
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise RefusedError(403, f"the header {CSRF_HEADER} is missing or wrong; load the page again")


def cookie_name(request: WebRequest) -> str:
    """Return the name of the session cookie.

    Browsers accept the prefix `__Host-` over HTTPS only, and send such a cookie to this host only. Cookies ignore ports, so
    the name contains the port: two dashboards on one machine do not log each other out.
    """
    port = request.host.rpartition(":")[2]
    name = f"{COOKIE}-{port}" if port.isdigit() else COOKIE
    return f"__Host-{name}" if request.is_https else name


def login_cookie(request: WebRequest, session: Session, seconds: int) -> Header:
    """Return the header that sets the session cookie."""
    return _cookie(request, session.identity, seconds)


def logout_cookie(request: WebRequest) -> Header:
    """Return the header that deletes the session cookie."""
    return _cookie(request, "", 0)


def _cookie(request: WebRequest, value: str, seconds: int) -> Header:
    secure = "; Secure" if request.is_https else ""
    text = f"{cookie_name(request)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", text
