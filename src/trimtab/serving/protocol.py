"""uvicorn's HTTP/1.1 protocol with limits for slow and greedy clients, and the client's certificate (S23, S24).

Each server sets its own limits: the size and time of a request's head, the idle time of a connection, and the number of
connections in all and per address.
"""

import asyncio
import ssl
from collections import Counter
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

CERTIFICATES = "trimtab.client-certificates"
"""The key in the `state` of a request's scope for the certificates (DER) that the client sent, its own first."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one server's clients."""

    head_bytes: int = 32 * 1024
    """Size of a request's line and headers."""
    head_seconds: float = 10.0
    """Time for them to arrive, also on a new connection (slowloris)."""
    idle_seconds: int = 60
    connections: int = 4096
    """Concurrent connections. Each takes about 10 KiB."""
    per_address: int | None = None
    """Connections of one address. None behind a proxy or on loopback, where all clients share an address."""


_DER = 2
"""The ssl module's private constant for the DER form of a certificate."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def client_certificates(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates that a client sent in the handshake, its own first."""
    own = tls.getpeercert(binary_form=True)
    if own is None:
        return ()
    # Public from Python 3.13 on. Before, only the private object has it, and returns objects instead of bytes.
    ssl_object: Any = tls if hasattr(tls, "get_unverified_chain") else getattr(tls, "_sslobj", None)
    chain = ssl_object.get_unverified_chain() if ssl_object is not None else None
    ders = [item if isinstance(item, bytes) else item.public_bytes(_DER) for item in chain or ()]
    return (own, *(der for der in ders if der != own))


class BoundedProtocol(HttpToolsProtocol):
    """One connection, within its server's limits."""

    def __init__(
        self, config: Config, state: ServerState, addresses: "Counter[str]", limits: ClientLimits
    ) -> None:
        super().__init__(config, state, {})
        self._limits = limits
        self._addresses = addresses
        self._address = ""
        self._head_bytes = 0
        self._field_bytes = 0
        self._in_head = False
        self._began_now = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept the connection, unless its address has too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._addresses[self._address] += 1
        most = self._limits.per_address
        if most is not None and self._addresses[self._address] > most:
            transport.abort()
            return
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        self.app_state = {CERTIFICATES: client_certificates(tls) if tls else ()}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._addresses[self._address] -= 1
        if not self._addresses[self._address]:
            del self._addresses[self._address]
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data. Close the connection if a head exceeds its limit."""
        self._began_now = False
        super().data_received(data)
        if self._in_head:
            self._head_bytes += 0 if self._began_now else len(data)
            if max(self._head_bytes, self._field_bytes) > self._limits.head_bytes:
                self._refuse()

    def on_message_begin(self) -> None:
        """Start the timer for the head of a request."""
        super().on_message_begin()
        self._in_head = self._began_now = True
        self._head_bytes = self._field_bytes = 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the URL."""
        self._field_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._field_bytes += len(name) + len(value) + 4
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is too large."""
        self._head_arrived()
        if self._field_bytes > self._limits.head_bytes:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Forward a part of the body, unless the connection is closing."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete the request, unless the connection is closing."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def _refuse(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self.transport.abort)

    def _head_arrived(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
