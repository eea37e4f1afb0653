"""Where a cluster is and how to prove who we are: the values that every way of configuring ends in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.config.tls import ClientCertificate, TlsSettings


@dataclass(frozen=True, slots=True)
class Credential:
    """What goes with a request: the value of the Authorization header, a client certificate, both or neither."""

    authorization: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """A source of credentials that may change while we run."""

    async def current(self) -> Credential:
        """Return what to use now, renewed if it is about to expire."""
        ...

    def reject(self) -> None:
        """Take note that the server refused the last one, so that the next is read afresh."""
        ...


class StaticCredentials:
    """Credentials that never change: a token, a password, or none."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Return the one credential."""
        return self._credential

    def reject(self) -> None:
        """Do nothing: there is no other."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything needed to talk to one API server."""

    server: str
    credentials: Credentials = field(default_factory=StaticCredentials)
    tls: TlsSettings = field(default_factory=TlsSettings)
    proxy: str | None = None
    namespace: str = "default"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request: impersonation, as the kubeconfig says."""
