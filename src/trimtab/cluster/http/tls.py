"""TLS between a socket and a connection, on any event loop.

A request and its answer are one TLS record each, so little is needed around ssl's memory buffers: no queues, no state
machine. It stacks, which is how a server is reached through a proxy that speaks TLS itself (decision 0035).
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Protocol

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection
from trimtab.cluster.config.tls import ClientCertificate

_RECORD = 16 * 1024
"""Bytes of one TLS record at most: what one read can return."""


class ByteSink(Protocol):
    """Where bytes are sent: a socket's transport, or TLS on top of another wire."""

    def set_protocol(self, protocol: asyncio.Protocol, /) -> None:
        """Say who is told what arrives."""
        ...

    def write(self, data: bytes) -> None:
        """Send."""
        ...

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any more."""
        ...

    def close(self) -> None:
        """Send what is waiting, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def pause_reading(self) -> None:
        """Let the other side wait."""
        ...

    def resume_reading(self) -> None:
        """Read on."""
        ...


class TlsWire(asyncio.Protocol):
    """TLS on top of `below`, which hands it what arrives there; `above` gets the plain bytes."""

    def __init__(
        self, below: ByteSink, above: asyncio.Protocol, context: ssl.SSLContext, server_name: str
    ) -> None:
        self._below = below
        self._above = above
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._shaken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure: ssl.SSLError | None = None

    async def handshake(self) -> None:
        """Agree on keys and check the server; raise ssl.SSLError if that fails."""
        self._shake()
        await self._shaken

    def data_received(self, data: bytes) -> None:
        """Decrypt and hand on."""
        self._incoming.write(data)
        if not self._shaken.done():
            self._shake()
            if not self._incoming.pending:
                return
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end; without TLS's own farewell it does not count as the server's (no `eof_received`)."""
        if not self._shaken.done():
            self._shaken.set_exception(exc or ConnectionResetError("ended during the TLS handshake"))
        self._above.connection_lost(self._failure or exc)

    def set_protocol(self, protocol: asyncio.Protocol, /) -> None:
        """Hand on to somebody else, such as another layer of TLS."""
        self._above = protocol

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        sent = self._tls.write(data)
        if sent < len(data):
            view = memoryview(data)
            while sent < len(data):
                sent += self._tls.write(view[sent:])
        self._below.write(self._outgoing.read())

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any more."""
        return self._below.is_closing()

    def close(self) -> None:
        """Say farewell, without waiting for the other side's, and close."""
        # The farewell is written all the same; the error says that its echo is missing, or that nobody listens.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._below.abort()

    def pause_reading(self) -> None:
        """Let the other side wait."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._below.resume_reading()

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert tells the other side why
            self._shaken.set_exception(error)
            self._below.close()
        else:
            self._flush()
            self._shaken.set_result(None)

    def _read(self) -> None:
        parts: list[bytes] = []
        has_ended = self._decrypt(parts)
        if self._outgoing.pending:
            self._flush()  # an answer to a change of keys, or an alert
        if parts:
            self._above.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if has_ended:
            self._above.eof_received()
        if has_ended or self._failure is not None:
            self._below.close()

    def _decrypt(self, parts: list[bytes]) -> bool:
        """Add what can be read to `parts`; return whether the server said farewell."""
        # Asking whether there is more is cheaper than the exception that says that there is not.
        while self._incoming.pending or self._tls.pending():
            try:
                part = self._tls.read(_RECORD)
            except ssl.SSLWantReadError:
                return False
            except ssl.SSLError as error:
                self._failure = error
                return False
            if not part:
                return True
            parts.append(part)
        return False

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and not self._below.is_closing():
            self._below.write(data)


_CHECK_SECONDS = 60.0


class TlsContexts:
    """The TLS context of one server; None if it is reached without TLS."""

    def __init__(self, clock: Clock, connection: Connection) -> None:
        self._clock = clock
        self._settings = connection.tls
        self._secure = connection.server.startswith("https:")
        self._built: tuple[ClientCertificate | None, ssl.SSLContext] | None = None
        self._version: tuple[tuple[int, int], ...] = ()
        self._checked = 0.0

    def current(self, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
        """Return the context to use now."""
        if not self._secure:
            return None
        now = self._clock.monotonic()
        if self._built is None or self._built[0] is not certificate or now - self._checked >= _CHECK_SECONDS:
            self._refresh(certificate, now)
            assert self._built is not None
        return self._built[1]

    def forget(self) -> None:
        """Read the files again at the next request."""
        self._built = None

    def _refresh(self, certificate: ClientCertificate | None, now: float) -> None:
        version = self._settings.version()
        if self._built is None or self._built[0] is not certificate or version != self._version:
            self._built = (certificate, self._settings.context(certificate))
        self._version = version
        self._checked = now
