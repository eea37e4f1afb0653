"""TLS contexts of servers, and files that may be replaced while a server runs."""

import logging
import os
import ssl
import tempfile
from errno import ENOTDIR
from pathlib import Path

from trimtab.clock import Clock
from trimtab.serving.files import replace_file

log = logging.getLogger(__name__)

CHECK_SECONDS = 60.0


def server_context(minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
    """Return a server's context without a certificate, for HTTP/1.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could repeat the costly part for ever
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_pair(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Present a certificate from the next handshake on. Open connections stay.

    The ssl module reads pairs from files only, so the pair is in a private file during this call.
    """
    with tempfile.NamedTemporaryFile(prefix="trimtab-") as file:  # mode 0600
        file.write(certificate_pem + b"\n" + key_pem)
        file.flush()
        context.load_cert_chain(file.name, password="")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read. Replace an older file atomically."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # its text names the file, not what is wrong with it
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path.parent)) from error
    replace_file(path, text.encode(), mode=0o600)


class WatchedFile:
    """A file that is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None

    def has_changed(self) -> bool:
        """Return whether the file changed since the last call. A missing file has not changed."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        version = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        changed = version != self._version
        self._version = version
        return changed


class FileCertificate:
    """A server's context that follows the files of its certificate and key."""

    def __init__(self, certificate: Path, key: Path, server: str) -> None:
        # Imported when needed: cryptography takes 50 ms of a start, and most programs serve no certificate.
        from trimtab.serving.certificates import PairOrigin  # noqa: PLC0415

        self._origin = PairOrigin(server, certificate, key)
        self._files = WatchedFile(certificate), WatchedFile(key)
        self.context = server_context()
        self._is_loaded = False
        self._load()

    def renew(self) -> None:
        """Load the files if they changed. An unusable pair leaves the last one in place."""
        changed = [file.has_changed() for file in self._files]  # checks each, so that each remembers
        if not any(changed) and self._is_loaded:
            return
        try:
            self._load()
        except ValueError as error:
            log.warning("%s keeps its last certificate: %s", self._origin.server, error)

    async def run(self, clock: Clock) -> None:
        """Follow the files until cancelled."""
        while True:
            await clock.sleep(CHECK_SECONDS)
            self.renew()

    def _load(self) -> None:
        from trimtab.serving.certificates import CertificateError  # noqa: PLC0415 - as above

        self._is_loaded = False
        for file in self._files:
            file.has_changed()
        pair = self._origin.read()
        try:
            # A context that rejects a pair may have lost its last one, so a spare context tries first.
            for context in (server_context(), self.context):
                load_pair(context, pair.certificate_pem, pair.key_pem)
            self._is_loaded = True
        except OSError as error:  # ssl.SSLError is one
            raise CertificateError(
                f"the certificate of {self._origin.server} cannot be used: {error} ({self._origin.certificate})"
            ) from error
