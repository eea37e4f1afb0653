"""The lab's certificates: made at start, for its addresses and for its calls to other servers."""

import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography.x509 import ObjectIdentifier

from trimtab.serving.certificates import CLIENT, SERVER, issue, make_authority

#: A lab runs for hours; a certificate that is valid much longer is only a risk.
VALID = timedelta(days=30)


@dataclass(frozen=True)
class Certificate:
    """A key pair in PEM, and the authority that signed it."""

    ca_pem: bytes
    certificate_pem: bytes
    key_pem: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the certificate into a TLS context, through a temporary file of mode 0600."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.certificate_pem + self.key_pem)
            file.flush()
            context.load_cert_chain(file.name)


def make_certificate(names: list[str], now: datetime) -> Certificate:
    """Make a certificate for a server with these names and addresses."""
    return _make("trimtab-lab", SERVER, names, now)


def make_client_certificate(name: str, now: datetime) -> Certificate:
    """Make a certificate that names a client."""
    return _make(name, CLIENT, [name], now)


def _make(common_name: str, use: ObjectIdentifier, names: list[str], now: datetime) -> Certificate:
    # The key of the authority is not kept: it signs this certificate only.
    authority = make_authority(f"{common_name}-ca", now, VALID)
    leaf = issue(authority, common_name, names, now, VALID, use)
    return Certificate(authority.certificate_pem, leaf.certificate_pem, leaf.key_pem)
