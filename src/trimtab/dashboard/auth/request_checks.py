"""Checks of every request, and security headers of every reply (S15, S17, S18)."""

from collections.abc import Iterable
from typing import Final

from trimtab.dashboard.web.http import Header, RefusedError, WebRequest
from trimtab.serving.hosts import LOOPBACK_HOSTS, host_name

CSRF_HEADER: Final = "x-trimtab-csrf"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)

_SECURITY: Final[tuple[Header, ...]] = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
)

_HTTPS_ONLY: Final[tuple[Header, ...]] = (("strict-transport-security", "max-age=31536000"),)


class RequestChecks:
    """Rejects requests that another site made a browser send."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK_HOSTS | {host.lower() for host in hosts}

    def check(self, request: WebRequest) -> None:
        """Raise RefusedError if the request is for another host or from another site's page."""
        if "," in request.host:
            raise RefusedError(400, "a request must have one Host header")
        if host_name(request.host) not in self._hosts:
            # DNS rebinding: a page of evil.example that resolves to 127.0.0.1 still sends Host: evil.example.
            raise RefusedError(421, "this server does not answer for that host; see --dashboard-host")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise RefusedError(403, "requests from other sites are refused")
        origin = request.headers.get("origin")
        if origin is not None and not _is_same_origin(origin, request):
            raise RefusedError(403, "requests from other origins are refused")

    def check_change(self, request: WebRequest) -> None:
        """Raise RefusedError unless a request that changes state comes from our own page."""
        if "origin" not in request.headers:
            raise RefusedError(403, "a request that changes something must say its Origin")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(415, "the body must be application/json")


def security_headers(request: WebRequest) -> tuple[Header, ...]:
    """Return the security headers of a reply."""
    return _SECURITY + _HTTPS_ONLY if request.is_https else _SECURITY


def _is_same_origin(origin: str, request: WebRequest) -> bool:
    scheme = "https" if request.is_https else "http"
    return origin.lower() == f"{scheme}://{request.host}".lower()
