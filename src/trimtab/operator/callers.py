"""Decides what a caller of the health port may read: everything, or nothing that names an object.

With a token the token decides. Without a token only callers on this host are trusted: a developer's own machine, or
`kubectl port-forward`, which needs a right of its own and ends on the pod's loopback.
"""

import hmac
from enum import Enum
from typing import Any, Final

from trimtab.serving.hosts import LOOPBACK_HOSTS, host_name

LOOPBACK_PEERS: Final = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
"""Not all of 127.0.0.0/8: a sidecar proxy connects from 127.0.0.6 for callers of other pods."""


class CallerTrust(Enum):
    """What a caller may read."""

    FULL = "everything"
    ANONYMOUS = "nothing that names an object"
    MISDIRECTED = "nothing: the request was meant for another host"


def trust_of(scope: Any, token: str) -> CallerTrust:
    """Return what the caller of a request may read."""
    if token and hmac.compare_digest(_header(scope, b"authorization"), f"Bearer {token}".encode()):
        return CallerTrust.FULL
    if not _is_local(scope):
        return CallerTrust.ANONYMOUS
    if host_name(_header(scope, b"host").decode("latin-1")) not in LOOPBACK_HOSTS:
        # DNS rebinding: a page of evil.example that resolves to 127.0.0.1 still sends Host: evil.example.
        return CallerTrust.MISDIRECTED
    return CallerTrust.ANONYMOUS if token else CallerTrust.FULL


def _is_local(scope: Any) -> bool:
    client = scope.get("client")
    return bool(client) and client[0] in LOOPBACK_PEERS


def _header(scope: Any, name: bytes) -> bytes:
    """Return the only value of a header. A header that is missing or doubled is empty."""
    values = [value for key, value in scope["headers"] if key.lower() == name]
    return bytes(values[0]) if len(values) == 1 else b""
