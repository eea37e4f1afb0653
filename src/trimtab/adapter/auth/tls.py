"""The adapter's TLS: its certificate, and the authorities of client certificates.

asyncio's server keeps the context that it was started with. The SNI callback runs at the start of every handshake, with
or without a server name, and sets the current context. So a new pair or authority needs no restart and drops no
connection.
"""

import logging
import ssl
from datetime import datetime, timedelta
from pathlib import Path

from trimtab.adapter.auth.front_proxy import Trust
from trimtab.adapter.config import ServingTls
from trimtab.adapter.files import ConfigurationError, below
from trimtab.clock import Clock
from trimtab.serving import tls
from trimtab.serving.certificates import CertificateError, KeyPair, PairOrigin, issue_with_own_authority
from trimtab.serving.tls import WatchedFile

log = logging.getLogger(__name__)

CHECK_SECONDS = 20.0
LIFETIME = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)


class ReloadingTls:
    """Holds the current pair and authorities. A server is started with `base`."""

    def __init__(self, clock: Clock, settings: ServingTls, root: Path) -> None:
        self._clock = clock
        self._settings = settings
        self._root = root
        self._authorities = ""
        self._files: tuple[WatchedFile, ...] = ()
        if bool(settings.certificate_file) != bool(settings.key_file):
            raise ConfigurationError("tls: certificateFile and keyFile go together; set both or none")
        if settings.certificate_file:
            self._files = tuple(
                WatchedFile(below(root, name)) for name in (settings.certificate_file, settings.key_file)
            )
        self.pair = self._new_pair()
        self.base = server_context(self.pair, "")
        self._current = self.base
        self.base.sni_callback = self._use_current_context

    def set_authorities(self, trust: Trust) -> None:
        """Request client certificates of the new authorities from the next handshake on."""
        self._authorities = trust.authorities_pem()
        self._current = server_context(self.pair, self._authorities)

    async def run(self) -> None:
        """Load replaced files and renew a generated pair, until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            try:
                self.refresh()
            except ConfigurationError as error:
                log.warning("the new certificate is invalid, keeping the old one: %s", error)

    def refresh(self) -> None:
        """Replace the pair if its files changed, or if a generated pair expires soon."""
        changed = sum(file.has_changed() for file in self._files)  # checks each, so that each remembers
        is_due = self.pair.not_after - self._clock.now() < _RENEW_BEFORE
        if changed or (not self._files and is_due):
            self.pair = self._new_pair()
            self._current = server_context(self.pair, self._authorities)
            log.info("serving certificate replaced; it expires on %s", self.pair.not_after)

    def _new_pair(self) -> KeyPair:
        now = self._clock.now()
        if self._files:
            for file in self._files:
                file.has_changed()
            return read_pair(self._files[0].path, self._files[1].path, now)
        pair = issue_with_own_authority("trimtab adapter", self._settings.names, now, LIFETIME)
        below(self._root, self._settings.authority_file).write_bytes(pair.authority_pem)
        return pair

    def _use_current_context(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext
    ) -> None:
        connection.context = self._current


def read_pair(certificate_file: Path, key_file: Path, now: datetime) -> KeyPair:
    """Read a pair from files. Raise ConfigurationError if it is invalid or expired."""
    origin = PairOrigin("the adapter", certificate_file, key_file)
    try:
        pair = origin.read()
        origin.check(pair, now)
    except CertificateError as error:
        raise ConfigurationError(f"tls: {error}") from error
    return pair


def server_context(pair: KeyPair, client_authorities: str) -> ssl.SSLContext:
    """Return a context that presents `pair` and requests client certificates of the authorities.

    A client without a certificate passes the handshake and must send a token. A client with a certificate of another
    authority fails the handshake.
    """
    context = tls.server_context()
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would skip the check of the client's certificate.
    context.num_tickets = 0
    try:
        tls.load_pair(context, pair.certificate_pem, pair.key_pem)
    except ssl.SSLError as error:
        raise ConfigurationError(f"tls: certificate and key do not load: {error.reason or error}") from error
    context.verify_mode = ssl.CERT_OPTIONAL
    # An intermediate authority in the cluster's bundle is a trust anchor, as in Go.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if client_authorities:
        context.load_verify_locations(cadata=client_authorities)
    return context
