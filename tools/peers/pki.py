"""Certificates and tokens for a cluster of our own on loopback."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "10.96.0.1")
"""Loopback, and the Service of the API server, by which pods reach it."""


def make(directory: Path) -> None:
    """Write a CA with a server certificate, a front-proxy CA with a client certificate, and a signing key."""
    for ca, leaf, subject, usage in (
        ("ca", "apiserver", "kube-apiserver", ExtendedKeyUsageOID.SERVER_AUTH),
        ("front-proxy-ca", "front-proxy", "front-proxy-client", ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        issuer_key, issuer = _authority(ca)
        _save(directory, ca, issuer_key, issuer)
        _save(directory, leaf, *_leaf(subject, usage, issuer_key, issuer))
    signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write(directory / "sa.key", _pem(signing))


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _certificate(name, name, key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return key, builder.sign(key, hashes.SHA256())


def _leaf(
    name: str, usage: x509.ObjectIdentifier, issuer_key: ec.EllipticCurvePrivateKey, issuer: x509.Certificate
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_name = issuer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    builder = (
        _certificate(name, str(issuer_name), key.public_key())
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return key, builder.sign(issuer_key, hashes.SHA256())


def _certificate(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=30))
    )


def _save(directory: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    _write(directory / f"{name}.key", _pem(key))
    _write(directory / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
