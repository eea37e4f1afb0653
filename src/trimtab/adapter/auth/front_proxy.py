"""Whom the adapter believes: the front proxy that the cluster publishes, followed as it changes.

kube-apiserver writes into ConfigMap kube-system/extension-apiserver-authentication which authority signs its front
proxy, which names that proxy may have, and in which headers it says who asks.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from trimtab.adapter.auth.certificate_chains import MOST_CERTIFICATES, is_client_of
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"


class ConfigMap(Wire):
    """A ConfigMap's text fields."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificates speak for the front proxy, and where it writes who asks."""

    authorities: tuple[x509.Certificate, ...] = ()
    allowed_names: frozenset[str] = frozenset()
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    client_authorities: tuple[x509.Certificate, ...] = ()
    """Authorities of the cluster's users: known so that their certificates get a 401, not a broken connection."""

    def authorities_pem(self) -> str:
        """Return every authority whose certificates are let through the handshake."""
        return "".join(
            one.public_bytes(Encoding.PEM).decode("ascii")
            for one in (*self.authorities, *self.client_authorities)
        )

    def vouches_for(self, chain_der: Sequence[bytes], now: datetime) -> bool:
        """Return whether a client's certificates are the front proxy's: its own, and those that lead to a root.

        The handshake has already verified the chain against some authority; which one, and whether it is still
        believed, is checked here on every request, because connections live longer than the trust.
        """
        try:
            chain = [x509.load_der_x509_certificate(der) for der in chain_der[:MOST_CERTIFICATES]]
        except ValueError:
            return False
        if not chain or (self.allowed_names and not self.allowed_names & set(_common_names(chain[0]))):
            return False
        return is_client_of(chain, self.authorities, now)


def read_trust(data: Mapping[str, str]) -> Trust:
    """Read the ConfigMap's fields; raise ValueError where they make no sense."""
    return Trust(
        authorities=_certificates(data.get("requestheader-client-ca-file", "")),
        allowed_names=frozenset(_texts(data, "requestheader-allowed-names")),
        user_headers=_headers(data, "requestheader-username-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
        client_authorities=_certificates(data.get("client-ca-file", "")),
    )


class FrontProxyTrust:
    """Follows the ConfigMap; `current` is None until it was read once."""

    def __init__(self, client: Client, changed: Callable[[Trust], None]) -> None:
        selection = ListOptions(NAMESPACE, fields=f"metadata.name={NAME}")
        self._informer: Informer[ConfigMap] = Informer(client, CONFIG_MAPS, selection)
        self._changed = changed
        self.current: Trust | None = None
        self._informer.subscribe(self._take)

    async def run(self) -> None:
        """Follow the ConfigMap until cancelled."""
        await self._informer.run()

    @property
    def problem(self) -> str:
        """Return why the trust is not known, or nothing."""
        if self.current is not None:
            return ""
        return self._informer.last_error or f"ConfigMap {NAMESPACE}/{NAME} is not there or not read yet"

    def _take(self, delta: Delta[ConfigMap]) -> None:
        config_map = delta.new
        if delta.change is CacheEvent.DELETED or config_map is None or config_map.metadata.name != NAME:
            return
        try:
            trust = read_trust(config_map.data)
        except ValueError as error:
            log.warning(
                "ConfigMap %s/%s is not used, the last one stays in force: %s", NAMESPACE, NAME, error
            )
            return
        if trust != self.current:
            self.current = trust
            log.info("front proxy trust read: %d authorities", len(trust.authorities))
            self._changed(trust)


def _certificates(pem: str) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else ()


def _headers(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _texts(data, key))


def _texts(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"{key}: {error}") from error


def _common_names(certificate: x509.Certificate) -> "Iterator[str]":
    for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(attribute.value)
