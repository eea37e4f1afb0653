"""uvicorn's HTTP/1.1 protocol with limits for slow and greedy clients, and the client's certificate (S23, S24).

A connection is always in one phase. In each phase that waits for the client a deadline runs, which no byte that arrives
extends:

    head        from the connection, or from the first byte of a later request, to the end of the headers
    body        from the headers to the end of the body, also if the application answered before
    working     the application answers; no deadline
    idle        between requests
    closing     the last answer is on its way

Besides, a client has a deadline to read what the server has buffered for it. Requests in advance (pipelining) end the connection,
because each of them takes memory before it is served.
"""

import asyncio
import logging
import ssl
from enum import Enum, auto
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from trimtab.serving.connections import ClientConnection, Connections

log = logging.getLogger(__name__)

CERTIFICATES = "trimtab.client-certificates"
"""The key in the `state` of a request's scope for the certificates (DER) that the client sent, its own first."""

_DER = 2
"""The ssl module's private constant for the DER form of a certificate."""

_PART_BYTES = 16 * 1024
_EMPTY = b"content-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _EMPTY
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + _EMPTY


class Phase(Enum):
    """What a connection waits for."""

    HEAD = auto()
    BODY = auto()
    WORKING = auto()
    IDLE = auto()
    CLOSING = auto()


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
        self, config: Config, state: ServerState, connections: Connections, connection: ClientConnection
    ) -> None:
        super().__init__(config, state, {})
        self._limits = connections.limits
        self.timeout_keep_alive = self._limits.idle_seconds
        self._all = connections
        self._connection = connection
        self._phase = Phase.HEAD
        self._timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._fields = 0
        self._field_bytes = 0
        self._head_bytes = 0
        self._unparsed_bytes = 0
        self._has_parsed = False

    @property
    def is_unused(self) -> bool:
        """Return whether the handshake did not succeed."""
        return self.transport is None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the deadline of the first head."""
        super().connection_made(transport)
        self._connection.end = transport.abort
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        self.app_state = {CERTIFICATES: client_certificates(tls) if tls else ()}
        self._enter(Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._cancel_timers()
        self._all.close(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data in small parts, so that a limit is noticed before much more is parsed."""
        for start in range(0, len(data), _PART_BYTES):
            if self.transport.is_closing():
                break
            self._parse(data[start : start + _PART_BYTES])
        if self.transport.is_closing():
            self._enter(Phase.CLOSING)

    def _parse(self, data: bytes) -> None:
        """Parse data.

        Refuse what does not end: a head, or a trailer or a chunk's extension that calls nothing back.
        """
        before, self._has_parsed = self._phase, False
        self._feed(data)
        if self._phase is Phase.HEAD and before in (Phase.HEAD, Phase.IDLE):
            self._head_bytes += len(data)  # all of it, because there are no requests in advance
        elif not self._has_parsed:
            self._unparsed_bytes += len(data)
        if max(self._head_bytes, self._unparsed_bytes) > self._limits.head_bytes:
            self._refuse(_TOO_LARGE)

    def _feed(self, data: bytes) -> None:
        """Feed the parser. uvicorn's own method logs a line per malformed request, without its address."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # it was parsed, and is answered like any other request
        except httptools.HttpParserError:
            self._all.malformed += 1
            if self._all.malformed_log.is_due(self.loop.time()):
                log.warning(
                    "malformed requests are answered 400; one line per minute",
                    extra={"facts": {"from": self._connection.address, "malformed": self._all.malformed}},
                )
            self.send_400_response("the request is not HTTP/1.1")

    def on_message_begin(self) -> None:
        """Start the deadline for the head of a request. Refuse a request in advance."""
        self._note_progress()
        if self._phase not in (Phase.HEAD, Phase.IDLE):
            self.transport.abort()
        if self.transport.is_closing():
            return
        super().on_message_begin()
        self._fields = self._field_bytes = self._head_bytes = 0
        self._enter(Phase.HEAD)

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the URL."""
        if self._has_room(len(url)):
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body."""
        self._fields += 1
        self._note_progress()
        if self._has_room(len(name) + len(value) + 4) and self._phase is Phase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request and the deadline of its body."""
        self._note_progress()
        if not self.transport.is_closing():
            self._head_bytes = 0
            self._enter(Phase.BODY)
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Forward a part of the body, unless the connection is closing or was answered."""
        self._note_progress()
        if self.transport.is_closing() or self.cycle.response_complete:
            return
        self._all.hold(self._connection, len(body))
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete the request, unless the connection is closing."""
        self._note_progress()
        if self.transport.is_closing():
            return
        self._enter(Phase.IDLE if self.cycle.response_complete else Phase.WORKING)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the deadline until the next request. A body that still arrives keeps its own."""
        super().on_response_complete()
        self._all.release(self._connection)
        if self.transport.is_closing():
            self._enter(Phase.CLOSING)
        elif self._phase is Phase.WORKING:
            self._enter(Phase.IDLE)

    def pause_writing(self) -> None:
        """Start the deadline for a client to read what is buffered for it."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self._limits.send_seconds, self.transport.abort)
        self._note_waiting()

    def resume_writing(self) -> None:
        """End that deadline."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
        self._note_waiting()

    def _enter(self, phase: Phase) -> None:
        """Start the deadline of a phase, unless the connection is in it already."""
        if self._timer is not None and phase is self._phase:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._phase = phase
        limits = self._limits
        seconds = {
            Phase.HEAD: limits.head_seconds,
            Phase.BODY: limits.body_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.CLOSING: limits.send_seconds,
        }.get(phase)
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._expire)
        self._connection.waiting_since = None
        self._note_waiting()

    def _note_waiting(self) -> None:
        if self._phase is Phase.WORKING and self._send_timer is None:
            self._connection.waiting_since = None
        elif self._connection.waiting_since is None:
            self._connection.waiting_since = self.loop.time()

    def _expire(self) -> None:
        self._timer = None
        if self._phase is Phase.BODY and self.flow.read_paused and not self.cycle.response_complete:
            self._enter(Phase.BODY)  # the application did not read yet, which is not the client's fault
        elif self._phase is Phase.BODY and not self.cycle.response_started:
            self._refuse(_TOO_SLOW)
        elif self._phase is Phase.IDLE and not self.transport.get_write_buffer_size():
            self.transport.close()
        else:
            self.transport.abort()

    def _note_progress(self) -> None:
        self._has_parsed = True
        self._unparsed_bytes = 0

    def _has_room(self, size: int) -> bool:
        """Count a part of the head. Refuse the request if the head is too large."""
        self._field_bytes += size
        if self._field_bytes > self._limits.head_bytes or self._fields > self._limits.head_lines:
            self._refuse(_TOO_LARGE)
        return not self.transport.is_closing()

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            is_answering = self._phase is not Phase.HEAD and self.cycle.response_started
            if not is_answering:
                self.transport.write(answer)
            self.transport.close()
            self._enter(Phase.CLOSING)

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._send_timer = None
