"""The address of a cluster, the way to it, and the credentials for it.

TLS is verified unless the user's file disables it, and follows its files. The proxy is the kubeconfig's, else the
environment's, else none.
"""

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from trimtab.cluster.errors import ConfigError


def split_address(url: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None if its host, port or scheme is invalid."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracketed host that is no IPv6 address, or a port above 65535
        return None
    return parts if is_valid else None


def proxy_for(server: str, written: str, environ: Mapping[str, str], where: str) -> str | None:
    """Return the proxy's address, or None for a direct connection."""
    if written:
        if split_address(written) is None:
            raise ConfigError(f"{where}: proxy-url {written!r} is not supported; use an http or https proxy")
        return written
    address = split_address(server)
    host = address.hostname or "" if address is not None else ""
    variable = "HTTPS_PROXY" if address is not None and address.scheme == "https" else "HTTP_PROXY"
    proxy = environ.get(variable) or environ.get(variable.lower())
    if not proxy or is_excluded(host, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_excluded(host: str, no_proxy: str) -> bool:
    """Return whether NO_PROXY covers the host: by name, domain, address, network, or `*`."""
    # Loopback never goes through a proxy, as in Go's rules; a proxy could not reach ours.
    if host == "localhost" or _in_network(host, "127.0.0.0/8") or host == "::1":
        return True
    return any(
        _names_host(entry.strip().lower(), host.lower()) for entry in no_proxy.split(",") if entry.strip()
    )


def _names_host(entry: str, host: str) -> bool:
    if entry in {"*", host}:
        return True
    if "/" in entry:
        return _in_network(host, entry)
    return host.endswith("." + entry.removeprefix("*").lstrip("."))


def _in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


def check_address(url: str, *, carries_secret: bool) -> None:
    """Reject an invalid address, and one to which a secret would be sent without TLS."""
    parts = split_address(url)
    if parts is None or parts.query or parts.fragment or parts.username:
        raise ConfigError(f"{url.rpartition('@')[2]!r} is not the address of a server such as https://host")
    if carries_secret and parts.scheme == "http" and parts.hostname not in _HERE:
        raise ConfigError(f"{url}: a token or password is not sent in clear over the network; use https")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its key, as PEM text."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to verify the server, and the client certificate. Files stay paths, so that they can rotate."""

    ca_file: Path | None = None
    ca_data: bytes | None = None
    server_name: str | None = None
    insecure: bool = False
    certificate_file: Path | None = None
    certificate_data: bytes | None = None
    key_file: Path | None = None
    key_data: bytes | None = field(default=None, repr=False)

    def version(self) -> tuple[tuple[int, int], ...]:
        """Return a value that changes when one of the files does."""
        stats = [
            path.stat()
            for path in (self.ca_file, self.certificate_file, self.key_file)
            if path and path.exists()
        ]
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)

    def context(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """Build the TLS context. A certificate of the credentials precedes the configured one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._trust(context)
        certificate = certificate or self._certificate()
        if certificate:
            _load_chain(context, certificate)
        return context

    def _trust(self, context: ssl.SSLContext) -> None:
        if self.insecure:
            # Only ever reached through insecure-skip-tls-verify, written by the user.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return
        authority = self.ca_data or (_read(self.ca_file, "certificate-authority") if self.ca_file else None)
        if authority is None:
            context.load_default_certs()
            return
        try:
            context.load_verify_locations(cadata=authority.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError) as error:
            source = self.ca_file or "certificate-authority-data"
            raise ConfigError(f"{source}: not a PEM certificate: {error}") from error

    def _certificate(self) -> ClientCertificate | None:
        certificate = self.certificate_data or (
            _read(self.certificate_file, "client-certificate") if self.certificate_file else None
        )
        key = self.key_data or (_read(self.key_file, "client-key") if self.key_file else None)
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            missing = "client-certificate" if certificate is None else "client-key"
            raise ConfigError(
                f"user has one half of a key pair; {missing} is missing: set it or remove the other"
            )
        return ClientCertificate(certificate, key)


def _load_chain(context: ssl.SSLContext, pair: ClientCertificate) -> None:
    # The ssl module reads key pairs from files only: a private directory that lives for this one call.
    with tempfile.TemporaryDirectory(prefix="trimtab-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        try:
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            raise ConfigError(
                f"client certificate and key do not load ({reason}): check that they belong together"
            ) from error


def _read(path: Path, field_name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{field_name}: cannot read {path}: {error.strerror}") from error


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
