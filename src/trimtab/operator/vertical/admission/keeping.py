"""Where key pairs are kept: in a Secret that all copies of the webhook share, or in files that another tool writes."""

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, decide_again
from trimtab.cluster.resource import Json, Resource
from trimtab.operator.vertical.admission.certificates import (
    CertificateError,
    KeyPair,
    Material,
    make_material,
    renewed,
)

SECRETS: Resource[Json] = Resource("", "v1", "secrets", "Secret", Json)
SECRET_NAME = "trimtab-webhook-tls"  # noqa: S105 - a name, not a secret


@dataclass(frozen=True)
class Serving:
    """What the server presents, and what its callers should trust."""

    pair: KeyPair
    bundle: bytes


class Certificates(Protocol):
    """Whoever keeps the key pair."""

    async def current(self) -> Serving:
        """Return the pair to use now, renewed if that is due."""
        ...


class SecretCertificates:
    """Makes and renews the pair, and shares it through a Secret."""

    def __init__(self, clock: Clock, client: Client, namespace: str, names: tuple[str, ...]) -> None:
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._names = names
        self._unsaved: Material | None = None
        """What a dry run serves where no usable pair is stored."""

    async def current(self) -> Serving:
        """Return the pair that all copies use."""
        material = await decide_again(self._read_and_renew)
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
            # Another copy was faster; what it made is what all of us use.
            return await self._read_and_renew()
        return material


class FileCertificates:
    """Reads the pair from files, each time anew, so that a tool may replace them at any moment."""

    def __init__(self, clock: Clock, certificate: Path, key: Path, authority: Path | None) -> None:
        self._clock = clock
        self._certificate = certificate
        self._key = key
        self._authority = authority

    async def current(self) -> Serving:
        """Return the pair in the files; raise if it is not valid now."""
        try:
            pair = KeyPair(self._certificate.read_bytes(), self._key.read_bytes())
            bundle = self._authority.read_bytes() if self._authority else pair.certificate_pem
        except OSError as error:
            raise CertificateError(f"cannot read the webhook's certificate: {error}") from error
        pair.check(self._clock.now())
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
    """Return what the Secret holds; None if it is not whole, so that it is made anew."""
    data = secret.get("data") or {}
    try:
        parts = {name: base64.b64decode(text, validate=True) for name, text in data.items()}
        leaf = KeyPair(parts["tls.crt"], parts["tls.key"])
        authority = KeyPair(parts["ca.crt"], parts["ca.key"])
        following = KeyPair(parts["ca-next.crt"], parts["ca-next.key"]) if "ca-next.crt" in parts else None
        for pair in (leaf, authority, following):
            if pair is not None:
                pair.certificate  # noqa: B018 - raises if it cannot be read
    except (KeyError, binascii.Error, CertificateError, AttributeError):
        return None
    return Material(leaf, authority, following, parts.get("ca-old.crt", b""))
