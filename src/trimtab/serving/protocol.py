"""uvicorn's HTTP/1.1 protocol with limits for slow and greedy clients, and the client's certificate (S23, S24).

Each server says its own limits: how large and how slow a request's head may be, how long a connection may idle, how
many there may be, in all and from one address.
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
"""Where a request's scope carries what the client sent (DER), its own certificate first, in `state`."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What a client may take."""

    head_bytes: int = 32 * 1024
    """Of a request's line and headers."""
    head_seconds: float = 10.0
    """Until they have arrived, the connection's first ones included (slowloris)."""
    idle_seconds: int = 60
    connections: int = 4096
    """At once; each costs about 10 KiB."""
    per_address: int | None = None
    """Connections of one address; None where one address is everybody, as behind a proxy or on loopback."""


_DER = 2
"""How the ssl module's own certificates are asked for bytes; its name is private."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def client_certificates(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates that a client sent in the handshake, its own first."""
    own = tls.getpeercert(binary_form=True)
    if own is None:
        return ()
    # Public from Python 3.13 on; before, the object inside has it, in another form.
    has_it: Any = tls if hasattr(tls, "get_unverified_chain") else getattr(tls, "_sslobj", None)
    sent = has_it.get_unverified_chain() if has_it is not None else None
    chain = [one if isinstance(one, bytes) else one.public_bytes(_DER) for one in sent or ()]
    return (own, *(certificate for certificate in chain if certificate != own))


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

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
        """Take the connection, unless its address has too many."""
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
        """Forget the connection."""
        self._addresses[self._address] -= 1
        if not self._addresses[self._address]:
            del self._addresses[self._address]
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; a head that goes on beyond its limit ends the connection."""
        self._began_now = False
        super().data_received(data)
        if self._in_head:
            self._head_bytes += 0 if self._began_now else len(data)
            if max(self._head_bytes, self._field_bytes) > self._limits.head_bytes:
                self._refuse()

    def on_message_begin(self) -> None:
        """Start a request: its head must arrive in time."""
        super().on_message_begin()
        self._in_head = self._began_now = True
        self._head_bytes = self._field_bytes = 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """Count the address."""
        self._field_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a field."""
        self._field_bytes += len(name) + len(value) + 4
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request over, unless its head is too large."""
        self._head_arrived()
        if self._field_bytes > self._limits.head_bytes:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body of a request that was handed over."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request that was handed over."""
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
