"""Sessions of logged-in viewers: in memory, with a cookie, for at most 12 hours (S17)."""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from trimtab.clock import Clock
from trimtab.dashboard.auth.access import Access
from trimtab.dashboard.auth.request_checks import CSRF_HEADER
from trimtab.dashboard.auth.rights import Viewer
from trimtab.dashboard.web.http import Header, RefusedError, WebRequest

LIFETIME_SECONDS: Final = 12 * 3600
MAX_SESSIONS: Final = 256
"""Limits memory, far above the needs of a team. The oldest session ends first."""
COOKIE: Final = "trimtab-session"


@dataclass(frozen=True, eq=False)
class Session:
    """One login."""

    viewer: Viewer
    expires_at: float
    identity: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class Sessions:
    """All sessions of this process. A restart ends them."""

    def __init__(self, clock: Clock, access: Access, clock_speed: float = 1.0) -> None:
        self._clock = clock
        self._access = access
        self._lifetime = LIFETIME_SECONDS * clock_speed
        self._open: OrderedDict[str, Session] = OrderedDict()

    async def login(self, token: str) -> Session:
        """Open a session. Raise RefusedError if the token is invalid."""
        viewer = await self._access.viewer(token)
        if viewer is None:
            raise RefusedError(401, "this token is not known here; use the one that the program printed")
        session = Session(viewer, self._clock.monotonic() + self._lifetime)
        self._open[session.identity] = session
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)
        return session

    def logout(self, session: Session) -> None:
        """End a session and its streams."""
        self._open.pop(session.identity, None)

    def is_open(self, session: Session) -> bool:
        """Return whether a session is open. A session of a single bearer request never is."""
        return session.identity in self._open and self._clock.monotonic() < session.expires_at

    def by_cookie(self, request: WebRequest) -> Session | None:
        """Return the session of the request's cookie, or None."""
        session = self._open.get(request.cookie(cookie_name(request)))
        return session if session is not None and self.is_open(session) else None

    async def find(self, request: WebRequest) -> Session:
        """Return the session of a request's cookie or bearer token. Raise RefusedError without them."""
        session = self.by_cookie(request)
        if session is not None:
            return session
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        viewer = await self._access.viewer(token.strip()) if scheme.lower() == "bearer" else None
        if viewer is None:
            raise RefusedError(401, "log in with the token that the program printed")
        return Session(viewer, self._clock.monotonic())


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


def login_cookie(request: WebRequest, session: Session) -> Header:
    """Return the header that sets the session cookie."""
    return _cookie(request, session.identity, LIFETIME_SECONDS)


def logout_cookie(request: WebRequest) -> Header:
    """Return the header that deletes the session cookie."""
    return _cookie(request, "", 0)


def _cookie(request: WebRequest, value: str, seconds: int) -> Header:
    secure = "; Secure" if request.is_https else ""
    text = f"{cookie_name(request)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", text
