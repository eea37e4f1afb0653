"""The server's certificate: from files that may be replaced while it runs, or made here, with its own authority."""

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from trimtab.adapter.errors import ConfigurationError
from trimtab.serving.certificates import issue, make_authority

LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain and its key, as PEM; `authority` is the one that signed a self-made pair."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes = b""

    @property
    def expires(self) -> datetime:
        """Return when the certificate ends."""
        return x509.load_pem_x509_certificates(self.certificate)[0].not_valid_after_utc


def make_pair(names: Sequence[str], now: datetime) -> KeyPair:
    """Make an authority that signs this one certificate; its own key is forgotten at once."""
    authority = make_authority("trimtab adapter authority", now, LIFETIME)
    leaf = issue(authority, "trimtab adapter", names, now, LIFETIME)
    return KeyPair(leaf.certificate_pem, leaf.key_pem, authority.certificate_pem)


def read_pair(certificate_file: Path, key_file: Path, now: datetime) -> KeyPair:
    """Read a pair from files; refuse one that has expired."""
    try:
        pair = KeyPair(certificate_file.read_bytes(), key_file.read_bytes())
        expires = pair.expires
    except OSError as error:
        raise ConfigurationError(f"tls: cannot read {error.filename}: {error.strerror}") from error
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f"tls: {certificate_file} is not a PEM certificate: {error}") from error
    if expires < now:
        raise ConfigurationError(f"tls: {certificate_file} expired on {expires:%Y-%m-%d %H:%M} UTC; renew it")
    return pair


def server_context(pair: KeyPair, client_authorities: str) -> ssl.SSLContext:
    """Return a context that shows `pair` and asks clients for a certificate of one of the authorities.

    A client without a certificate is let in and has to show a token; one whose certificate no authority signed does
    not get through the handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would skip the check of the client's certificate.
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    # The ssl module reads key pairs from files only: a private directory that lives for this one call.
    with tempfile.TemporaryDirectory(prefix="trimtab-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        try:
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"tls: certificate and key do not load: {error.reason or error}"
            ) from error
    context.verify_mode = ssl.CERT_OPTIONAL
    # An intermediate authority in the cluster's bundle is an anchor of its own, as in Go.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if client_authorities:
        context.load_verify_locations(cadata=client_authorities)
    return context
