"""The adapter's configuration file: where to listen, its certificate, and its sources.

Only this file, which the administrator writes, contains addresses of sources. No object of the cluster can set one (S13).
"""

from pathlib import Path
from typing import Any

from trimtab.adapter.files import ConfigSection, ConfigurationError, below, convert, read_document
from trimtab.clock import Clock
from trimtab.cluster.config import Connection, Credentials, StaticCredentials, TlsSettings
from trimtab.cluster.config.connection import check_address
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.errors import ConfigError

KIND = "AdapterConfiguration"


class Listen(ConfigSection):
    """Where the API is served."""

    address: str = "127.0.0.1"
    """Address to bind. Default: loopback. In a pod: 0.0.0.0."""
    port: int = 6443
    """Port to bind. 0 picks a free port."""


class ServingTls(ConfigSection):
    """The server's certificate: two files, or a generated pair."""

    certificate_file: str = ""
    key_file: str = ""
    authority_file: str = "adapter-ca.crt"
    """Where the authority of a generated certificate is written, for `caBundle` of the APIService."""
    names: tuple[str, ...] = ("localhost", "127.0.0.1")
    """Names of a generated certificate. In a cluster: SERVICE.NAMESPACE.svc."""


class Admin(ConfigSection):
    """The port that sets values, always on loopback and with a token."""

    port: int = 0
    token_file: str = "adapter-admin.token"  # noqa: S105 - a file's name
    """The file of the token. It is created with mode 0600 if it is missing."""


class TestingSettings(ConfigSection):
    """Values set by hand."""

    file: str = ""
    admin: Admin | None = None


class ServerAddress(ConfigSection):
    """The address of another server, and the adapter's credentials there."""

    url: str
    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""
    server_name: str = ""
    insecure_skip_verify: bool = False


class PrometheusSettings(ConfigSection):
    """Rules over a Prometheus."""

    server: ServerAddress
    rules_file: str
    discovery_interval: str = "30s"
    """How often the names of existing series are discovered."""


class ForwardSettings(ConfigSection):
    """Another adapter, for metrics with matching names."""

    server: ServerAddress
    metrics: tuple[str, ...] = ()
    """Regular expressions for whole metric names. None means all that no earlier source serves."""
    groups: tuple[str, ...] = ("custom", "external")


class PluginSettings(ConfigSection):
    """A plug-in that answers external metrics."""

    name: str
    """The plug-in's name. It must be loaded by --plugins."""
    metrics: tuple[str, ...]
    """The metrics that it answers."""
    parameters: dict[str, Any] = {}
    """What the plug-in gets with every request. Keep secrets in files or variables that the plug-in reads."""
    timeout: str = "3s"
    """How long one call may take. After that the response is 503."""
    cache_for: str = "5s"
    """How old an answer may be that is returned again, at most 5m. Empty: every request calls the plug-in."""


class SourceSettings(ConfigSection):
    """One source, of exactly one of the four kinds."""

    name: str
    testing: TestingSettings | None = None
    prometheus: PrometheusSettings | None = None
    forward: ForwardSettings | None = None
    plugin: PluginSettings | None = None


class AdapterConfiguration(ConfigSection):
    """The whole configuration file."""

    listen: Listen = Listen()
    tls: ServingTls = ServingTls()
    sources: tuple[SourceSettings, ...] = ()
    """The first source that serves a metric is queried."""
    source_deadline: str = "5s"
    """How long a source may take. After that the response is 503."""
    review_cache: str = "10s"
    """How long the result of a TokenReview or SubjectAccessReview is cached, at most 10 s."""


def load_configuration(path: Path) -> AdapterConfiguration:
    """Load the configuration file and validate it."""
    configuration = convert(read_document(path, KIND), AdapterConfiguration, str(path))
    names = [source.name for source in configuration.sources]
    if not names or len(set(names)) != len(names) or "" in names:
        raise ConfigurationError(f"{path}: sources: at least one is needed, each with a name of its own")
    for source in configuration.sources:
        kinds = (source.testing, source.prometheus, source.forward, source.plugin)
        count = sum(kind is not None for kind in kinds)
        if count != 1:
            raise ConfigurationError(
                f"{path}: sources: {source.name}: has {count} of testing, prometheus, forward, plugin; needs exactly one"
            )
    return configuration


def connection_to(clock: Clock, address: ServerAddress, root: Path) -> Connection:
    """Return the connection to a source. Its token is sent to that address only."""
    try:
        check_address(address.url, carries_secret=bool(address.token_file))
    except ConfigError as error:
        raise ConfigurationError(str(error)) from error
    credentials: Credentials = StaticCredentials()
    if address.token_file:
        credentials = TokenFileCredentials(clock, below(root, address.token_file))
    tls = TlsSettings(
        ca_file=_optional_file(root, address.authority_file),
        server_name=address.server_name or None,
        insecure=address.insecure_skip_verify,
        certificate_file=_optional_file(root, address.certificate_file),
        key_file=_optional_file(root, address.key_file),
    )
    return Connection(address.url, credentials, tls)


def _optional_file(root: Path, name: str) -> Path | None:
    return below(root, name) if name else None
