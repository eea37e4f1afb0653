"""Trust in the front proxy, as the cluster publishes it and while it changes.

kube-apiserver writes ConfigMap kube-system/extension-apiserver-authentication: which authority signs its front proxy,
which names that proxy may have, and which headers carry the user. Chains are verified as by Go's crypto/x509: kube-apiserver
checks its front proxy with the published roots, the intermediates of the handshake and the key usage `clientAuth`. OpenSSL's own check
of the handshake does not suffice: it also accepts the authorities of users.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json.wire import Wire

MAX_CERTIFICATES = 10
"""Certificates of one client that are verified. A longer chain is a mistake or an attack."""

_CLIENT_USES = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


def is_trusted_client(
    chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], now: datetime
) -> bool:
    """Return whether the chain belongs to a client and ends at one of the roots."""
    if not chain or not roots or len(chain) > MAX_CERTIFICATES:
        return False
    policy = PolicyBuilder().store(Store(list(roots))).time(now)
    verifier = policy.extension_policies(ca_policy=_CA, ee_policy=_LEAF).build_client_verifier()
    try:
        verifier.verify(chain[0], list(chain[1:]))
    except VerificationError:
        return False
    return True


def _check_authority(
    _policy: Policy, _certificate: x509.Certificate, extension: x509.BasicConstraints
) -> None:
    if not extension.ca:
        raise ValueError("not an authority")


def _check_signing(_policy: Policy, _certificate: x509.Certificate, extension: x509.KeyUsage | None) -> None:
    if extension is not None and not extension.key_cert_sign:
        raise ValueError("may not sign certificates")


def _check_client(
    _policy: Policy, _certificate: x509.Certificate, extension: x509.ExtendedKeyUsage | None
) -> None:
    if extension is not None and not _CLIENT_USES & set(extension):
        raise ValueError("not for clients")


# The rules of the public web require an alternative name, which a front proxy's certificate does not have.
_LEAF = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client
)
_CA = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _check_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _check_signing)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _check_client)
)


log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"


class ConfigMap(Wire):
    """The text fields of a ConfigMap."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificates belong to the front proxy, and which headers carry the user."""

    authorities: tuple[x509.Certificate, ...] = ()
    allowed_names: frozenset[str] = frozenset()
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    client_authorities: tuple[x509.Certificate, ...] = ()
    """Authorities of the cluster's users. Their certificates get a 401 instead of a broken connection."""

    def authorities_pem(self) -> str:
        """Return every authority whose certificates pass the handshake."""
        return "".join(
            authority.public_bytes(Encoding.PEM).decode("ascii")
            for authority in (*self.authorities, *self.client_authorities)
        )

    def is_front_proxy(self, chain_der: Sequence[bytes], now: datetime) -> bool:
        """Return whether a client's certificate chain belongs to the front proxy.

        The handshake has already verified the chain against some authority. This checks on every request which authority it is
        and whether it is still trusted, because connections live longer than the trust.
        """
        try:
            chain = [x509.load_der_x509_certificate(der) for der in chain_der[:MAX_CERTIFICATES]]
        except ValueError:
            return False
        if not chain or (self.allowed_names and not self.allowed_names & _common_names(chain[0])):
            return False
        return is_trusted_client(chain, self.authorities, now)


def parse_trust(data: Mapping[str, str]) -> Trust:
    """Parse the ConfigMap's fields. Raise ValueError if they are invalid."""
    return Trust(
        authorities=_certificates(data.get("requestheader-client-ca-file", "")),
        allowed_names=frozenset(_texts(data, "requestheader-allowed-names")),
        user_headers=_headers(data, "requestheader-username-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
        client_authorities=_certificates(data.get("client-ca-file", "")),
    )


class FrontProxyTrust:
    """Watches the ConfigMap. `current` is None until it was read."""

    def __init__(self, client: Client, on_change: Callable[[Trust], None]) -> None:
        selection = ListOptions(NAMESPACE, fields=f"metadata.name={NAME}")
        self._informer: Informer[ConfigMap] = Informer(client, CONFIG_MAPS, selection)
        self._on_change = on_change
        self.current: Trust | None = None
        self._informer.subscribe(self._on_event)

    async def run(self) -> None:
        """Watch the ConfigMap until cancelled."""
        await self._informer.run()

    @property
    def problem(self) -> str:
        """Return why there is no trust yet, or an empty text."""
        if self.current is not None:
            return ""
        return self._informer.last_error or f"ConfigMap {NAMESPACE}/{NAME} is not there or not read yet"

    def _on_event(self, delta: Delta[ConfigMap]) -> None:
        config_map = delta.new
        if delta.change is CacheEvent.DELETED or config_map is None or config_map.metadata.name != NAME:
            return
        try:
            trust = parse_trust(config_map.data)
        except ValueError as error:
            log.warning("ConfigMap %s/%s is invalid, keeping the last trust: %s", NAMESPACE, NAME, error)
            return
        if trust != self.current:
            self.current = trust
            log.info("front-proxy trust loaded", extra={"facts": {"authorities": len(trust.authorities)}})
            self._on_change(trust)


def _certificates(pem: str) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else ()


def _headers(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _texts(data, key))


def _texts(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f"{key}: {error}") from error


def _common_names(certificate: x509.Certificate) -> set[str]:
    return {str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)}
