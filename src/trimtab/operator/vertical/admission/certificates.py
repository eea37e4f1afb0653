"""Key pairs of the webhook and the authority that signs them: made here, pure functions of the time.

The API server trusts the authority that stands in the webhook configuration. A new authority is therefore published
first and used later: in between both are trusted, and no call is ever refused (S8).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509

from trimtab.serving import certificates
from trimtab.serving.certificates import CLOCK_SKEW

AUTHORITY_LIFETIME = timedelta(days=5 * 365)
LEAF_LIFETIME = timedelta(days=30)
PUBLISHED_BEFORE_USE = timedelta(minutes=2)
"""How long a new authority is in the webhook configurations before anything is signed with it."""


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
        return self.certificate.not_valid_before_utc + CLOCK_SKEW

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
    # The number is in the name: two authorities in one bundle must not be mistaken for each other.
    name = f"trimtab-webhook-ca-{x509.random_serial_number() % 2**32:08x}"
    return _pair(certificates.make_authority(name, now, AUTHORITY_LIFETIME))


def issue(authority: KeyPair, names: tuple[str, ...], now: datetime) -> KeyPair:
    """Make a server's pair for some names and addresses."""
    signer = certificates.Signed(authority.certificate_pem, authority.key_pem)
    return _pair(certificates.issue(signer, "trimtab-webhook", names, now, LEAF_LIFETIME))


def _pair(signed: certificates.Signed) -> KeyPair:
    return KeyPair(signed.certificate_pem, signed.key_pem)
