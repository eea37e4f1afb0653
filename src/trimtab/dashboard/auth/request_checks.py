"""What every request must pass, whoever sends it, and the headers that every answer carries (S15, S17, S18)."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from trimtab.dashboard.web.http import Header, RefusedError, WebRequest

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

CSRF_HEADER: Final = "x-trimtab-csrf"

POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)

SECURITY: Final[tuple[Header, ...]] = (
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
)

HTTPS_ONLY: Final[tuple[Header, ...]] = (("strict-transport-security", "max-age=31536000"),)


class Guard:
    """Refuses requests that a browser was tricked into sending."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK | {host.lower() for host in hosts}

    def check(self, request: WebRequest) -> None:
        """Raise RefusedError if the request is for another host or comes from another site's page."""
        if _name(request.host) not in self._hosts:
            # A page of evil.example whose name was pointed at 127.0.0.1 still says evil.example here.
            raise RefusedError(421, "this server does not answer for that host; see --dashboard-host")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise RefusedError(403, "requests from other sites are refused")
        origin = request.headers.get("origin")
        if origin is not None and not _is_same(origin, request):
            raise RefusedError(403, "requests from other origins are refused")

    def check_change(self, request: WebRequest) -> None:
        """Raise RefusedError if a request that does something does not prove that our own page sent it."""
        if "origin" not in request.headers:
            raise RefusedError(403, "a request that changes something must say its Origin")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(415, "the body must be application/json")


def headers_for(request: WebRequest) -> tuple[Header, ...]:
    """Return the security headers of an answer."""
    return SECURITY + HTTPS_ONLY if request.is_https else SECURITY


def _name(host: str) -> str:
    """Return a Host header without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_same(origin: str, request: WebRequest) -> bool:
    scheme = "https" if request.is_https else "http"
    return origin.lower() == f"{scheme}://{request.host}".lower()
