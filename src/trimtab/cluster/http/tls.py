"""TLS between a socket and a connection, on any event loop.

A request and its response are one TLS record each, so that ssl's memory buffers need no queues and no state machine
around them. Layers stack, for a server behind a proxy with TLS. See
docs/decisions/trimtab-has-its-own-http-client-and-few-dependencies.md.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Protocol

from trimtab.clock import Clock
from trimtab.cluster.config.connection import ClientCertificate, Connection

_RECORD = 16 * 1024
"""Maximum bytes of a TLS record, which is what a read can return."""


class ByteSink(Protocol):
    """Sends bytes: a socket's transport, or TLS above another sink."""

    def set_protocol(self, protocol: asyncio.Protocol, /) -> None:
        """Set the receiver of arriving bytes."""
        ...

    def write(self, data: bytes) -> None:
        """Send bytes."""
        ...

    def is_closing(self) -> bool:
        """Return whether the sink is closing or closed."""
        ...

    def close(self) -> None:
        """Send buffered bytes, then close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def pause_reading(self) -> None:
        """Pause reading from the server."""
        ...

    def resume_reading(self) -> None:
        """Resume reading."""
        ...


class TlsWire(asyncio.Protocol):
    """TLS above `below`. `above` receives the decrypted bytes."""

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
        """Perform the handshake. Raise ssl.SSLError if it fails."""
        self._shake()
        await self._shaken

    def data_received(self, data: bytes) -> None:
        """Decrypt bytes and pass them on."""
        self._incoming.write(data)
        if not self._shaken.done():
            self._shake()
            if not self._incoming.pending:
                return
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the loss of the connection. Without a TLS close_notify it is not an end of stream."""
        if not self._shaken.done():
            self._shaken.set_exception(exc or ConnectionResetError("ended during the TLS handshake"))
        self._above.connection_lost(self._failure or exc)

    def set_protocol(self, protocol: asyncio.Protocol, /) -> None:
        """Set another receiver, such as another layer of TLS."""
        self._above = protocol

    def write(self, data: bytes) -> None:
        """Encrypt and send bytes."""
        sent = self._tls.write(data)
        if sent < len(data):
            view = memoryview(data)
            while sent < len(data):
                sent += self._tls.write(view[sent:])
        self._below.write(self._outgoing.read())

    def is_closing(self) -> bool:
        """Return whether the sink is closing or closed."""
        return self._below.is_closing()

    def close(self) -> None:
        """Send close_notify and close, without waiting for the peer's."""
        # close_notify is written although unwrap raises, because the peer has not answered it.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._below.abort()

    def pause_reading(self) -> None:
        """Pause reading from the server."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        self._below.resume_reading()

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # sends the alert
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
        """Append the readable bytes to `parts`. Return whether the server sent close_notify."""
        # Asking whether there is more is cheaper than the exception that says that there is not.
        while self._incoming.pending or self._tls.pending():
            try:
                part = self._tls.read(_RECORD)
            except ssl.SSLWantReadError:
                return False
            except ssl.SSLError as error:
                self._failure = error.with_traceback(None)  # its frames refer to this object
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
    """The TLS context of a server, or None without TLS."""

    def __init__(self, clock: Clock, connection: Connection) -> None:
        self._clock = clock
        self._settings = connection.tls
        self._secure = connection.server.startswith("https:")
        self._built: tuple[ClientCertificate | None, ssl.SSLContext] | None = None
        self._version: tuple[tuple[int, int], ...] = ()
        self._checked = 0.0

    def current(self, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
        """Return the current context."""
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
