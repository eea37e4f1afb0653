"""Key pairs of the webhook and the authority that signs them: made here, pure functions of the time.

The API server trusts the authority that stands in the webhook configuration. A new authority is therefore published
first and used later: in between both are trusted, and no call is ever refused (S8).
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=5 * 365)
LEAF_LIFETIME = timedelta(days=30)
PUBLISHED_BEFORE_USE = timedelta(minutes=2)
"""How long a new authority is in the webhook configurations before anything is signed with it."""
_CLOCK_SKEW = timedelta(minutes=5)


class CertificateError(Exception):
    """A certificate cannot be used; the message says which, why, and until when it was valid."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate with its key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes

    @property
    def certificate(self) -> x509.Certificate:
        """Return the first certificate; raise CertificateError if it is none."""
        try:
            return x509.load_pem_x509_certificate(self.certificate_pem)
        except ValueError as error:
            raise CertificateError(f"not a PEM certificate: {error}") from error

    @property
    def serial(self) -> int:
        """Return the serial number, which tells one certificate from another."""
        return self.certificate.serial_number

    @property
    def not_after(self) -> datetime:
        """Return when it ends."""
        return self.certificate.not_valid_after_utc

    @property
    def made_at(self) -> datetime:
        """Return when it was made."""
        return self.certificate.not_valid_before_utc + _CLOCK_SKEW

    def is_due(self, now: datetime) -> bool:
        """Return whether two thirds of its life are over, or it cannot be read at all."""
        try:
            life = self.not_after - self.made_at
        except CertificateError:
            return True
        return now >= self.made_at + life * 2 / 3

    def check(self, now: datetime) -> None:
        """Raise if it cannot be used now."""
        if now >= self.not_after:
            raise CertificateError(
                f"the webhook's certificate (serial {self.serial:x}) expired on {self.not_after:%Y-%m-%d %H:%M:%S} UTC; "
                "put a valid pair in its place"
            )


@dataclass(frozen=True)
class Material:
    """All that is kept of certificates: the pair in use and up to three authorities."""

    leaf: KeyPair
    authority: KeyPair
    next_authority: KeyPair | None = None
    """Published, not used yet."""
    old_authority_pem: bytes = b""
    """Not used any more, still trusted."""

    @property
    def bundle(self) -> bytes:
        """Return everything that the API server should trust."""
        following = self.next_authority.certificate_pem if self.next_authority else b""
        return self.authority.certificate_pem + following + self.old_authority_pem


def make_material(names: tuple[str, ...], now: datetime) -> Material:
    """Make an authority and a first pair."""
    authority = make_authority(now)
    return Material(issue(authority, names, now), authority)


def renewed(material: Material, names: tuple[str, ...], now: datetime) -> Material:
    """Return the material with whatever is due made anew; the same object if nothing is."""
    following = material.next_authority
    if following is None and material.authority.is_due(now):
        return Material(material.leaf, material.authority, make_authority(now), material.old_authority_pem)
    if following is not None and now >= following.made_at + PUBLISHED_BEFORE_USE:
        return Material(
            issue(following, names, now), following, old_authority_pem=material.authority.certificate_pem
        )
    if material.leaf.is_due(now) or names_of(material.leaf) != frozenset(names):
        leaf = issue(material.authority, names, now)
        return Material(leaf, material.authority, following, material.old_authority_pem)
    return material


def names_of(pair: KeyPair) -> frozenset[str]:
    """Return the names and addresses that a certificate is for."""
    try:
        found = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (CertificateError, x509.ExtensionNotFound):
        return frozenset()
    return frozenset(
        [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]
    )


def make_authority(now: datetime) -> KeyPair:
    """Make an authority that signs for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial is in the name: two authorities in one bundle must not be mistaken for each other.
    name = _name(f"trimtab-webhook-ca-{x509.random_serial_number() % 2**32:08x}")
    certificate = (
        _builder(name, name, key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(authority: KeyPair, names: tuple[str, ...], now: datetime) -> KeyPair:
    """Make a server's pair for some names and addresses."""
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("trimtab-webhook"), authority.certificate.subject, key, now, LEAF_LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return _pair(certificate, key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(certificate.public_bytes(pem), key_pem)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


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
