"""Which TLS context a new connection gets: the one for the pair and the authorities of this moment.

asyncio's server keeps the context that it was started with. The callback for the server's name runs at the start of
every handshake, with or without a name, and swaps in the current one; so neither a new pair nor a new authority needs
a restart or drops a connection (S8).
"""

import logging
import ssl
from pathlib import Path

from trimtab.adapter.auth.certificates import KeyPair, make_pair, read_pair, server_context
from trimtab.adapter.auth.front_proxy import Trust
from trimtab.adapter.config import ServingTls
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import WatchedFile, below
from trimtab.clock import Clock

log = logging.getLogger(__name__)

CHECK_SECONDS = 20.0
_RENEW_BEFORE_SECONDS = 30 * 86400.0


class ReloadingTls:
    """Holds the pair and the authorities in force; `base` is what a server is started with."""

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
        self.base.sni_callback = self._choose

    def trust_changed(self, trust: Trust) -> None:
        """Ask clients for certificates of the new authorities from the next handshake on."""
        self._authorities = trust.authorities_pem()
        self._current = server_context(self.pair, self._authorities)

    async def run(self) -> None:
        """Take over replaced files, and renew a self-made pair in time, until cancelled."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            try:
                self.check()
            except ConfigurationError as error:
                log.warning("the new certificate is not used, the old one stays: %s", error)

    def check(self) -> None:
        """Replace the pair if its files changed or its end is near."""
        changed = sum(file.has_changed() for file in self._files)  # each is asked, so that each remembers
        left = (self.pair.expires - self._clock.now()).total_seconds()
        if changed or (not self._files and left < _RENEW_BEFORE_SECONDS):
            self.pair = self._new_pair()
            self._current = server_context(self.pair, self._authorities)
            log.info("serving certificate replaced; it ends on %s", self.pair.expires)

    def _new_pair(self) -> KeyPair:
        now = self._clock.now()
        if self._files:
            for file in self._files:
                file.has_changed()
            return read_pair(self._files[0].path, self._files[1].path, now)
        pair = make_pair(self._settings.names, now)
        below(self._root, self._settings.authority_file).write_bytes(pair.authority)
        return pair

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext
    ) -> None:
        connection.context = self._current
