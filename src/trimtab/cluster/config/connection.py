"""The address of a cluster and the credentials for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.config.tls import ClientCertificate, TlsSettings


@dataclass(frozen=True, slots=True)
class Credential:
    """The credentials of a request: an Authorization header, a client certificate, both or neither."""

    authorization: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """A source of credentials that may change."""

    async def current(self) -> Credential:
        """Return the current credentials, renewed if they are about to expire."""
        ...

    def reject(self, credential: Credential) -> None:
        """Drop the credentials after the server rejected them."""
        ...


class StaticCredentials:
    """Credentials that do not change: a token, a password, or none."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Return the credentials."""
        return self._credential

    def reject(self, credential: Credential) -> None:
        """Do nothing, since they cannot be renewed."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What a transport needs to connect to an API server."""

    server: str
    credentials: Credentials = field(default_factory=StaticCredentials)
    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy: str | None = None
    namespace: str = "default"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request, for the kubeconfig's impersonation."""
