"""The adapter's configuration file: where to listen, how to prove itself, and which sources give values.

Only this file, written by the administrator, says where a source is; nothing in the cluster can (S13).
"""

from pathlib import Path

from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import ConfigSection, below, convert, read_document
from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection, Credentials, StaticCredentials
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.config.proxies import check_address
from trimtab.cluster.config.tls import TlsSettings
from trimtab.cluster.errors import ConfigError

KIND = "AdapterConfiguration"


class Listen(ConfigSection):
    """Where the API is served."""

    address: str = "127.0.0.1"
    """Address to bind; loopback unless the file says otherwise. In a pod: 0.0.0.0."""
    port: int = 6443
    """Port to bind; 0 takes a free one."""


class ServingTls(ConfigSection):
    """The server's certificate: two files, or one that the adapter makes for itself."""

    certificate_file: str = ""
    key_file: str = ""
    authority_file: str = "adapter-ca.crt"
    """Where the authority of a self-made certificate is written, for `caBundle` of the APIService."""
    names: tuple[str, ...] = ("localhost", "127.0.0.1")
    """Names of a self-made certificate; in a cluster SERVICE.NAMESPACE.svc."""


class Admin(ConfigSection):
    """The port on which values are set; always on loopback, always with a token."""

    port: int = 0
    token_file: str = "adapter-admin.token"  # noqa: S105 - a file's name
    """Holds the token; made with mode 0600 if it is not there."""


class TestingSettings(ConfigSection):
    """Values set by hand."""

    file: str = ""
    admin: Admin | None = None


class ServerAddress(ConfigSection):
    """Where another server is, and how to prove ourselves to it."""

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
    """How often the names of existing series are looked up."""


class ForwardSettings(ConfigSection):
    """Another adapter, for the metrics whose names match."""

    server: ServerAddress
    metrics: tuple[str, ...] = ()
    """Regular expressions over whole metric names; none means all that no earlier source serves."""
    groups: tuple[str, ...] = ("custom", "external")


class SourceSettings(ConfigSection):
    """One source; exactly one of the three kinds."""

    name: str
    testing: TestingSettings | None = None
    prometheus: PrometheusSettings | None = None
    forward: ForwardSettings | None = None


class AdapterConfiguration(ConfigSection):
    """The whole file."""

    listen: Listen = Listen()
    tls: ServingTls = ServingTls()
    sources: tuple[SourceSettings, ...] = ()
    """Asked in this order; the first that serves a metric answers."""
    source_deadline: str = "5s"
    """How long a source may take; then the request is answered with 503."""
    review_cache: str = "10s"
    """How long an answer of TokenReview or SubjectAccessReview is believed; 10 s at most."""


def load_configuration(path: Path) -> AdapterConfiguration:
    """Read and check the configuration file."""
    configuration = convert(read_document(path, KIND), AdapterConfiguration, str(path))
    names = [source.name for source in configuration.sources]
    if not names or len(set(names)) != len(names) or "" in names:
        raise ConfigurationError(f"{path}: sources: at least one is needed, each with a name of its own")
    for source in configuration.sources:
        kinds = [kind for kind in (source.testing, source.prometheus, source.forward) if kind is not None]
        if len(kinds) != 1:
            raise ConfigurationError(
                f"{path}: sources: {source.name}: has {len(kinds)} of testing, prometheus, forward; needs exactly one"
            )
    return configuration


def connection_to(clock: Clock, address: ServerAddress, root: Path) -> Connection:
    """Return the connection to a source; its token goes to that address and nowhere else."""
    try:
        check_address(address.url, carries_secret=bool(address.token_file))
    except ConfigError as error:
        raise ConfigurationError(str(error)) from error
    credentials: Credentials = StaticCredentials()
    if address.token_file:
        credentials = TokenFileCredentials(clock, below(root, address.token_file))
    tls = TlsSettings(
        ca_file=_file(root, address.authority_file),
        server_name=address.server_name or None,
        insecure=address.insecure_skip_verify,
        certificate_file=_file(root, address.certificate_file),
        key_file=_file(root, address.key_file),
    )
    return Connection(address.url, credentials, tls)


def _file(root: Path, name: str) -> Path | None:
    return below(root, name) if name else None
