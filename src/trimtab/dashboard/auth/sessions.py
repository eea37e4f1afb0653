"""Who is logged in: sessions in memory, a cookie in the browser, an end after twelve hours (S17)."""

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from trimtab.clock import Clock
from trimtab.dashboard.auth.access import Access, Viewer
from trimtab.dashboard.auth.request_checks import CSRF_HEADER
from trimtab.dashboard.web.http import Header, RefusedError, WebRequest

LIFETIME_SECONDS: Final = 12 * 3600
MOST_SESSIONS: Final = 256
"""Beyond it the oldest ends: a bound for memory, far above what a team needs."""
COOKIE: Final = "trimtab-session"


@dataclass(frozen=True, eq=False)
class Session:
    """One login."""

    viewer: Viewer
    ends: float
    identity: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class Sessions:
    """Every login of this process; a restart ends them all."""

    def __init__(self, clock: Clock, access: Access, pace: float = 1.0) -> None:
        self._clock = clock
        self._access = access
        self._lifetime = LIFETIME_SECONDS * pace
        self._open: OrderedDict[str, Session] = OrderedDict()

    async def login(self, token: str) -> Session:
        """Open a session; raise RefusedError if the token is nobody's."""
        viewer = await self._access.viewer(token)
        if viewer is None:
            raise RefusedError(401, "this token is not known here; use the one that the program printed")
        session = Session(viewer, self._clock.monotonic() + self._lifetime)
        self._open[session.identity] = session
        while len(self._open) > MOST_SESSIONS:
            self._open.popitem(last=False)
        return session

    def logout(self, session: Session) -> None:
        """End a session; its streams end too."""
        self._open.pop(session.identity, None)

    def is_open(self, session: Session) -> bool:
        """Return whether a session still counts; one made for a single request is never in the book."""
        return session.identity in self._open and self._clock.monotonic() < session.ends

    def by_cookie(self, request: WebRequest) -> Session | None:
        """Return the session that the request's cookie names."""
        found = self._open.get(request.cookie(cookie_name(request)))
        return found if found is not None and self.is_open(found) else None

    async def of(self, request: WebRequest) -> Session:
        """Return the session of a request, by cookie or by `Authorization: Bearer`; raise RefusedError without one."""
        found = self.by_cookie(request)
        if found is not None:
            return found
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        viewer = await self._access.viewer(token.strip()) if scheme.lower() == "bearer" else None
        if viewer is None:
            raise RefusedError(401, "log in with the token that the program printed")
        return Session(viewer, self._clock.monotonic())


def check_csrf(request: WebRequest, session: Session) -> None:
    """Raise RefusedError unless the request repeats the session's secret, which only our own page can read."""
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise RefusedError(403, f"the header {CSRF_HEADER} is missing or wrong; load the page again")


def cookie_name(request: WebRequest) -> str:
    """Return the cookie's name; `__Host-` binds it to this very host, which browsers accept over HTTPS only.

    Cookies know no ports, so the name does: two dashboards on one machine do not log each other out.
    """
    port = request.host.rpartition(":")[2]
    name = f"{COOKIE}-{port}" if port.isdigit() else COOKIE
    return f"__Host-{name}" if request.is_https else name


def login_cookie(request: WebRequest, session: Session) -> Header:
    """Return the header that hands the session to the browser."""
    return _cookie(request, session.identity, LIFETIME_SECONDS)


def logout_cookie(request: WebRequest) -> Header:
    """Return the header that takes it away again."""
    return _cookie(request, "", 0)


def _cookie(request: WebRequest, value: str, seconds: int) -> Header:
    secure = "; Secure" if request.is_https else ""
    text = f"{cookie_name(request)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", text
