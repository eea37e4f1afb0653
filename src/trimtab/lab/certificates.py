"""Certificates of a lab: made at start, for the addresses it listens on and for its calls to other servers."""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: A lab lives for hours; a certificate that outlives it by far is only a risk.
VALID = timedelta(days=30)


@dataclass(frozen=True)
class Certificate:
    """A key pair in PEM, and the authority that signed it."""

    ca_pem: bytes
    certificate_pem: bytes
    key_pem: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let a context show this certificate; it reads files only, so one exists for a moment (mode 0600)."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.certificate_pem + self.key_pem)
            file.flush()
            context.load_cert_chain(file.name)


def make_certificate(names: list[str], now: datetime) -> Certificate:
    """Make a certificate for a server with these names and addresses."""
    return _make("trimtab-lab", ExtendedKeyUsageOID.SERVER_AUTH, names, now)


def make_client_certificate(name: str, now: datetime) -> Certificate:
    """Make a certificate that names a client."""
    return _make(name, ExtendedKeyUsageOID.CLIENT_AUTH, [name], now)


def _make(common_name: str, use: x509.ObjectIdentifier, names: list[str], now: datetime) -> Certificate:
    """Make an authority and the one certificate that it signs; the authority's key is forgotten."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{common_name}-ca")])
    ca = (
        _builder(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    leaf = (
        _builder(subject, ca_name, key, now)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(ca.public_bytes(pem), leaf.public_bytes(pem), key_pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks of clients may lag a little
        .not_valid_after(now + VALID)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
