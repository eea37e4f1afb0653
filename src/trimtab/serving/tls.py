"""TLS contexts of servers, and files that may be replaced while a server runs."""

import os
import ssl
import tempfile
from errno import ENOTDIR
from pathlib import Path

from trimtab.serving.files import replace_file


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
