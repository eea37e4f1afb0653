"""Key pairs: authorities and the certificates they sign, with EC P-256, and what a server presents of them.

A pair is in files, in a Secret (the webhook's), or made here. The lab, the adapter and the webhooks decide how long their
pairs live and where they are stored.
"""

import ipaddress
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trimtab.clock import Clock
from trimtab.serving.tls import WatchedFile, load_pair, server_context

log = logging.getLogger(__name__)

CLOCK_SKEW = timedelta(minutes=5)
"""How long before its creation a certificate is valid, since the clocks of callers may lag."""

RENEW_BEFORE = timedelta(days=30)
"""How long before its end a pair that is made here is replaced."""

CHECK_SECONDS = 20.0
"""Seconds between two looks for a newer pair."""

SERVER = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


class CertificateError(ValueError):
    """A certificate is invalid. The message says which, and why."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate chain and its key as PEM, and the authority that signed it, if it is known."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    authority_pem: bytes = field(default=b"", compare=False)

    @property
    def certificate(self) -> x509.Certificate:
        """Return the first certificate of the chain. Raise CertificateError if it is invalid."""
        try:
            return x509.load_pem_x509_certificate(self.certificate_pem)
        except ValueError as error:
            raise CertificateError(f"not a PEM certificate: {error}") from error

    @property
    def not_after(self) -> datetime:
        """Return when the certificate expires."""
        return self.certificate.not_valid_after_utc

    @property
    def created_at(self) -> datetime:
        """Return when the certificate was created, if it was created here."""
        return self.certificate.not_valid_before_utc + CLOCK_SKEW


@dataclass(frozen=True)
class PairOrigin:
    """Which server a pair belongs to, and the files that hold it, for messages."""

    server: str
    """The server with its article, as `the webhook`."""
    certificate: Path | None = None
    key: Path | None = None

    def read(self) -> KeyPair:
        """Return the pair in the files. Raise CertificateError if it is unreadable or does not belong together."""
        assert self.certificate is not None, "a pair without files is not read"
        assert self.key is not None, "a certificate has its key beside it"
        try:
            pair = KeyPair(self.certificate.read_bytes(), self.key.read_bytes())
        except OSError as error:
            raise CertificateError(
                f"cannot read {self.server}'s certificate or key: {error.filename}: {error.strerror}; "
                "put a certificate and its key there"
            ) from error
        self.check(pair)
        return pair

    def check(self, pair: KeyPair, now: datetime | None = None) -> None:
        """Raise CertificateError if a pair does not belong together, or has expired."""
        try:
            certificate = pair.certificate
            key = serialization.load_pem_private_key(pair.key_pem, None)
        except CertificateError as error:
            raise CertificateError(
                f"{self.server}'s certificate is {error}{_in(self.certificate)}; put a PEM certificate there"
            ) from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it is encrypted
            raise CertificateError(
                f"{self.server}'s key cannot be read: {error}{_in(self.key)}; put a PEM key without a password there"
            ) from error
        serial = f"serial {certificate.serial_number:x}"
        if key.public_key() != certificate.public_key():
            where = f"; {self.key}, {self.certificate}" if self.key else ""
            raise CertificateError(
                f"{self.server}'s key does not belong to its certificate ({serial}{where}); "
                "put both of one pair in their place"
            )
        if now is not None and now >= pair.not_after:
            where = f"; {self.certificate}" if self.certificate else ""
            raise CertificateError(
                f"{self.server}'s certificate ({serial}{where}) expired on {pair.not_after:%Y-%m-%d %H:%M:%S} UTC; "
                "put a valid pair in its place"
            )


class PairSource(Protocol):
    """Where a server's pair comes from."""

    def newer(self) -> KeyPair | None:
        """Return a pair, or None if the last one is the newest. Raise CertificateError if it cannot be used."""
        ...


class PairFiles:
    """A pair in files. It is read again when one of them changes, and after a failure."""

    def __init__(self, origin: PairOrigin, clock: Clock | None = None) -> None:
        """Read the files of `origin`. With a clock an expired pair is refused."""
        self._origin = origin
        self._clock = clock
        self._files = [WatchedFile(path) for path in (origin.certificate, origin.key) if path]
        self._is_read = False

    def newer(self) -> KeyPair | None:
        """Return the pair in the files if they changed."""
        changed = [file.has_changed() for file in self._files]  # checks each, so that each remembers
        if self._is_read and not any(changed):
            return None
        self._is_read = False
        pair = self._origin.read()
        if self._clock is not None:
            self._origin.check(pair, self._clock.now())
        self._is_read = True
        return pair


class MadePair:
    """A pair that is made here, and made again before it expires."""

    def __init__(self, clock: Clock, make: Callable[[], KeyPair]) -> None:
        self._clock = clock
        self._make = make
        self._pair: KeyPair | None = None

    def newer(self) -> KeyPair | None:
        """Return a new pair if the last one expires soon."""
        if self._pair is not None and self._pair.not_after - self._clock.now() >= RENEW_BEFORE:
            return None
        self._pair = self._make()
        return self._pair


class ServedTls:
    """The TLS of a server that presents the newest usable pair. A pair that cannot be used leaves the last one in place.

    asyncio's server keeps the context that it was started with, which is `base`. Its SNI callback runs at the start of every
    handshake, with or without a server name, and sets the current context. So a new pair or another kind of context
    needs no restart and drops no connection.
    """

    def __init__(
        self,
        origin: PairOrigin,
        source: PairSource,
        new_context: Callable[[], ssl.SSLContext] = server_context,
    ) -> None:
        """Raise CertificateError if there is no usable pair."""
        self._origin = origin
        self._source = source
        self._new_context = new_context
        pair = source.newer()
        assert pair is not None, "the first pair is new"
        self.pair = pair
        self.base = self._current = self._built(pair)
        self.base.sni_callback = self._use_current

    def use(self, new_context: Callable[[], ssl.SSLContext]) -> None:
        """Serve with contexts of another kind from the next handshake on."""
        self._new_context = new_context
        self._current = self._built(self.pair)

    def refresh(self) -> None:
        """Present a newer pair. Raise CertificateError if it cannot be used."""
        pair = self._source.newer()
        if pair is not None:
            self._current, self.pair = self._built(pair), pair
            log.info("%s serves another certificate; it expires on %s", self._origin.server, pair.not_after)

    async def run(self, clock: Clock) -> None:
        """Follow the source until cancelled."""
        while True:
            await clock.sleep(CHECK_SECONDS)
            try:
                self.refresh()
            except CertificateError as error:
                log.warning("%s keeps its last certificate: %s", self._origin.server, error)

    def _built(self, pair: KeyPair) -> ssl.SSLContext:
        context = self._new_context()
        try:
            load_pair(context, pair.certificate_pem, pair.key_pem)
        except OSError as error:  # ssl.SSLError is one
            raise CertificateError(
                f"the certificate of {self._origin.server} cannot be used: {error}{_in(self._origin.certificate)}"
            ) from error
        return context

    def _use_current(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext
    ) -> None:
        connection.context = self._current


def _in(path: Path | None) -> str:
    return f" ({path})" if path else ""


def make_authority(common_name: str, now: datetime, lifetime: timedelta) -> KeyPair:
    """Create a self-signed authority that may sign leaf certificates only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    certificate = (
        _builder(name, name, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def issue(
    authority: KeyPair,
    common_name: str,
    names: Sequence[str],
    now: datetime,
    lifetime: timedelta,
    use: x509.ObjectIdentifier = SERVER,
) -> KeyPair:
    """Create a pair for some names and addresses, signed by the authority."""
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem).subject
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(common_name), issuer, key, now, lifetime)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return _pem(certificate, key, authority.certificate_pem)


def issue_with_own_authority(
    common_name: str,
    names: Sequence[str],
    now: datetime,
    lifetime: timedelta,
    use: x509.ObjectIdentifier = SERVER,
) -> KeyPair:
    """Create a pair and an authority for it alone. The authority's key is dropped."""
    authority = make_authority(f"{common_name} authority", now, lifetime)
    return issue(authority, common_name, names, now, lifetime, use)


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
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _pem(
    certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, authority_pem: bytes = b""
) -> KeyPair:
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(certificate.public_bytes(pem), key_pem, authority_pem)


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
