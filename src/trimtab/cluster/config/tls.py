"""TLS contexts for the API server, verified unless the user's file disables it, and renewed with their files."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.cluster.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its key, as PEM text."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to verify the server, and the client certificate. Files stay paths, so that they can rotate."""

    ca_file: Path | None = None
    ca_data: bytes | None = None
    server_name: str | None = None
    insecure: bool = False
    certificate_file: Path | None = None
    certificate_data: bytes | None = None
    key_file: Path | None = None
    key_data: bytes | None = field(default=None, repr=False)

    def version(self) -> tuple[tuple[int, int], ...]:
        """Return a value that changes when one of the files does."""
        stats = [
            path.stat()
            for path in (self.ca_file, self.certificate_file, self.key_file)
            if path and path.exists()
        ]
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)

    def context(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """Build the TLS context. A certificate of the credentials precedes the configured one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._trust(context)
        certificate = certificate or self._certificate()
        if certificate:
            _load_chain(context, certificate)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        if self.insecure:
            # Only ever reached through insecure-skip-tls-verify, written by the user.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return
        authority = self.ca_data or (_read(self.ca_file, "certificate-authority") if self.ca_file else None)
        if authority is None:
            context.load_default_certs()
            return
        try:
            context.load_verify_locations(cadata=authority.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError) as error:
            source = self.ca_file or "certificate-authority-data"
            raise ConfigError(f"{source}: not a PEM certificate: {error}") from error

    def _certificate(self) -> ClientCertificate | None:
        certificate = self.certificate_data or (
            _read(self.certificate_file, "client-certificate") if self.certificate_file else None
        )
        key = self.key_data or (_read(self.key_file, "client-key") if self.key_file else None)
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            missing = "client-certificate" if certificate is None else "client-key"
            raise ConfigError(
                f"user has one half of a key pair; {missing} is missing: set it or remove the other"
            )
        return ClientCertificate(certificate, key)


def _load_chain(context: ssl.SSLContext, pair: ClientCertificate) -> None:
    # The ssl module reads key pairs from files only: a private directory that lives for this one call.
    with tempfile.TemporaryDirectory(prefix="trimtab-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        try:
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            raise ConfigError(
                f"client certificate and key do not load ({reason}): check that they belong together"
            ) from error


def _read(path: Path, field_name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{field_name}: cannot read {path}: {error.strerror}") from error
