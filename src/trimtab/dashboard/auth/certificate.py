"""The dashboard's certificate, in files that another tool may replace at any moment."""

import logging
import ssl
from pathlib import Path
from typing import Final

from trimtab.clock import Clock

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 60.0


class FileCertificate:
    """A TLS context that follows its files; connections that are open stay."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._loaded = self._stamp()
        self._load()

    def renew(self) -> None:
        """Load the files again if they changed; a pair that cannot be used leaves the last one in place."""
        try:
            stamp = self._stamp()
            if stamp != self._loaded:
                self._load()
                self._loaded = stamp
        except (OSError, ValueError) as error:
            log.warning("the dashboard keeps its last certificate: %s", error)

    async def run(self, clock: Clock) -> None:
        """Follow the files until cancelled."""
        while True:
            await clock.sleep(LOOK_SECONDS)
            self.renew()

    def _stamp(self) -> tuple[int, ...]:
        try:
            return tuple(file.stat().st_mtime_ns for file in self._files)
        except OSError as error:
            raise ValueError(f"the dashboard's certificate cannot be read: {error}") from error

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            raise ValueError(f"the dashboard's certificate cannot be used: {error}") from error
