"""Issues and renews the webhook's key pair and its authority.

The API server trusts the authority in the webhook configuration. A new authority is therefore published before it
signs, and in between both are trusted, so that no call fails.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from cryptography import x509

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, retry_on_conflict
from trimtab.cluster.resource import Json, Resource
from trimtab.serving import certificates
from trimtab.serving.certificates import CertificateError, KeyPair, PairOrigin

AUTHORITY_LIFETIME = timedelta(days=5 * 365)
LEAF_LIFETIME = timedelta(days=30)
PUBLISHED_BEFORE_USE = timedelta(minutes=2)
"""How long a new authority is in the webhook configurations before it signs."""
ORIGIN = PairOrigin("the webhook")


def is_due(pair: KeyPair, now: datetime) -> bool:
    """Return whether two thirds of a pair's life are over, or it is invalid."""
    try:
        ORIGIN.check(pair)
        life = pair.not_after - pair.created_at
    except CertificateError:
        return True
    return now >= pair.created_at + life * 2 / 3


@dataclass(frozen=True)
class Material:
    """The pair in use and up to three authorities, as stored in the Secret."""

    leaf: KeyPair
    authority: KeyPair
    next_authority: KeyPair | None = None
    """Published, and does not sign yet."""
    old_authority_pem: bytes = b""
    """Does not sign any more, and is still trusted."""

    @property
    def bundle(self) -> bytes:
        """Return all authorities that the API server should trust."""
        following = self.next_authority.certificate_pem if self.next_authority else b""
        return self.authority.certificate_pem + following + self.old_authority_pem


def make_material(names: tuple[str, ...], now: datetime) -> Material:
    """Issue an authority and its first pair."""
    authority = make_authority(now)
    return Material(issue(authority, names, now), authority)


def renewed(material: Material, names: tuple[str, ...], now: datetime) -> Material:
    """Return the material with due parts renewed, or the same object if nothing is due."""
    following = material.next_authority
    if following is None and is_due(material.authority, now):
        return Material(material.leaf, material.authority, make_authority(now), material.old_authority_pem)
    if following is not None and now >= following.created_at + PUBLISHED_BEFORE_USE:
        return Material(
            issue(following, names, now), following, old_authority_pem=material.authority.certificate_pem
        )
    if is_due(material.leaf, now) or names_of(material.leaf) != frozenset(names):
        leaf = issue(material.authority, names, now)
        return Material(leaf, material.authority, following, material.old_authority_pem)
    return material


def names_of(pair: KeyPair) -> frozenset[str]:
    """Return the names and addresses of a certificate."""
    try:
        found = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (CertificateError, x509.ExtensionNotFound):
        return frozenset()
    return frozenset(
        [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]
    )


def make_authority(now: datetime) -> KeyPair:
    """Issue a self-signed authority."""
    # A number in the name distinguishes two authorities in one bundle.
    name = f"trimtab-webhook-ca-{x509.random_serial_number() % 2**32:08x}"
    return certificates.make_authority(name, now, AUTHORITY_LIFETIME)


def issue(authority: KeyPair, names: tuple[str, ...], now: datetime) -> KeyPair:
    """Issue a server's pair for some names and addresses."""
    return certificates.issue(authority, "trimtab-webhook", names, now, LEAF_LIFETIME)


SECRETS: Resource[Json] = Resource("", "v1", "secrets", "Secret", Json)
SECRET_NAME = "trimtab-webhook-tls"  # noqa: S105 - a name, not a secret


@dataclass(frozen=True)
class Serving:
    """The pair that the server presents, and the authorities that its callers trust."""

    pair: KeyPair
    bundle: bytes


class Certificates(Protocol):
    """A source of the webhook's key pair."""

    async def current(self) -> Serving:
        """Return the pair to serve now, renewed if that is due."""
        ...


class SecretCertificates:
    """Issues and renews the pair, and shares it through a Secret."""

    def __init__(self, clock: Clock, client: Client, namespace: str, names: tuple[str, ...]) -> None:
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._names = names
        self._unsaved: Material | None = None
        """The pair of a dry run, which stores none."""

    async def current(self) -> Serving:
        """Return the pair that all replicas serve."""
        material = await retry_on_conflict(self._read_and_renew)
        return Serving(material.leaf, material.bundle)

    async def _read_and_renew(self) -> Material:
        now = self._clock.now()
        try:
            secret = await self._client.get(SECRETS, SECRET_NAME, self._namespace)
        except errors.NotFound:
            secret = None
        stored = _read(secret) if secret is not None else None
        material = renewed(stored, self._names, now) if stored else make_material(self._names, now)
        if material is stored:
            return material
        if self._client.is_dry_run:
            self._unsaved = renewed(self._unsaved, self._names, now) if self._unsaved else material
            return self._unsaved
        if secret is None:
            return await self._create(material)
        body = {**secret, "type": secret.get("type", "Opaque"), "data": _data(material)}
        await self._client.update(SECRETS, SECRET_NAME, self._namespace, body)
        return material

    async def _create(self, material: Material) -> Material:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET_NAME},
            "type": "Opaque",
            "data": _data(material),
        }
        try:
            await self._client.create(SECRETS, body, self._namespace)
        except errors.AlreadyExists:
            # Another replica was faster, and all replicas use its pair.
            return await self._read_and_renew()
        return material


class FileCertificates:
    """Reads the pair from files on each call, so that a tool may replace them at any time."""

    def __init__(self, clock: Clock, certificate: Path, key: Path, authority: Path | None) -> None:
        self._clock = clock
        self._origin = PairOrigin("the webhook", certificate, key)
        self._authority = authority

    async def current(self) -> Serving:
        """Return the pair in the files, or raise CertificateError if it is invalid."""
        pair = self._origin.read()
        self._origin.check(pair, self._clock.now())
        try:
            bundle = self._authority.read_bytes() if self._authority else pair.certificate_pem
        except OSError as error:
            raise CertificateError(
                f"cannot read the authority of the webhook's certificate: {error}"
            ) from error
        return Serving(pair, bundle)


def _data(material: Material) -> dict[str, str]:
    following = material.next_authority
    parts = {
        "tls.crt": material.leaf.certificate_pem,
        "tls.key": material.leaf.key_pem,
        "ca.crt": material.authority.certificate_pem,
        "ca.key": material.authority.key_pem,
        "ca-next.crt": following.certificate_pem if following else b"",
        "ca-next.key": following.key_pem if following else b"",
        "ca-old.crt": material.old_authority_pem,
    }
    return {name: base64.b64encode(part).decode() for name, part in parts.items() if part}


def _read(secret: Json) -> Material | None:
    """Return the material of a Secret, or None if it is incomplete and has to be issued anew."""
    data = secret.get("data") or {}
    try:
        parts = {name: base64.b64decode(text, validate=True) for name, text in data.items()}
        # An invalid leaf is due, and the authority signs another one.
        leaf = KeyPair(parts["tls.crt"], parts["tls.key"])
        authority = KeyPair(parts["ca.crt"], parts["ca.key"])
        following = KeyPair(parts["ca-next.crt"], parts["ca-next.key"]) if "ca-next.crt" in parts else None
        for pair in (authority, following):
            if pair is not None:
                ORIGIN.check(pair)
    except (KeyError, binascii.Error, CertificateError, AttributeError):
        return None
    return Material(leaf, authority, following, parts.get("ca-old.crt", b""))
