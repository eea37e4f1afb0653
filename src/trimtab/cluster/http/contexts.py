"""The TLS settings to use now: built once, and again when a file or the client certificate changed (fault F20)."""

import ssl

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection
from trimtab.cluster.config.tls import ClientCertificate

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
