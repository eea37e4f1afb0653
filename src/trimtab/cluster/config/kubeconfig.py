"""Reads kubeconfig files, merged in the order of $KUBECONFIG, into a connection.

Of two entries with the same name the first file's is used, as kubectl does. Paths in a file are relative to that file.
Every mistake is a `ConfigError` of one line that names the file and the entry.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.config import schema
from trimtab.cluster.config.connection import Connection, TlsSettings, proxy_for, split_address
from trimtab.cluster.config.credentials import credentials_of, impersonation_of
from trimtab.cluster.errors import ConfigError

DEFAULT_PATH = "~/.kube/config"


@dataclass(slots=True)
class Kubeconfig:
    """The merged entries of all files, each with the directory of its relative paths."""

    sources: Sequence[Path]
    current_context: str = ""
    clusters: dict[str, tuple[schema.Cluster, Path]] = field(default_factory=dict)
    users: dict[str, tuple[schema.KubeconfigUser, Path]] = field(default_factory=dict)
    contexts: dict[str, schema.Context] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Return the files, for messages."""
        return ":".join(str(source) for source in self.sources)

    def add(self, content: schema.ConfigFile, base: Path) -> None:
        """Merge another file. Existing entries stay."""
        self.current_context = self.current_context or content.current_context or ""
        for cluster in content.clusters or ():
            self.clusters.setdefault(cluster.name, (cluster.cluster or schema.Cluster(), base))
        for user in content.users or ():
            self.users.setdefault(user.name, (user.user or schema.KubeconfigUser(), base))
        for context in content.contexts or ():
            self.contexts.setdefault(context.name, context.context or schema.Context())


def load_kubeconfig(
    clock: Clock,
    path: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Return the connection of a context, by default the current one, of the user's kubeconfig."""
    environ = os.environ if environ is None else environ
    config = read_kubeconfig(_paths(path, environ), must_exist=path is not None)
    return connect(clock, config, context, environ)


def read_kubeconfig(paths: Sequence[Path], *, must_exist: bool = True) -> Kubeconfig:
    """Read and merge files. Missing files are skipped unless they are required."""
    config = Kubeconfig(paths)
    found = False
    for path in paths:
        if not must_exist and not path.exists():
            continue
        config.add(_read(path), path.parent.absolute())
        found = True
    if not found:
        raise ConfigError(f"no kubeconfig at {config.origin}: set KUBECONFIG, or pass --kubeconfig")
    return config


def connect(clock: Clock, config: Kubeconfig, context: str | None, environ: Mapping[str, str]) -> Connection:
    """Return the connection of a context."""
    if not config.contexts:
        raise ConfigError(
            f"{config.origin}: the kubeconfig has no contexts; set KUBECONFIG, or pass --kubeconfig, for another"
        )
    name = context or config.current_context
    if not name:
        raise ConfigError(f"{config.origin}: no current-context; name one of: {_names(config.contexts)}")
    chosen = config.contexts.get(name)
    if chosen is None:
        raise ConfigError(f"{config.origin}: no context {name!r}; there are: {_names(config.contexts)}")
    if chosen.cluster not in config.clusters:
        raise ConfigError(
            f"{config.origin}: context {name!r} names the cluster {chosen.cluster!r}, which is not there"
        )
    if chosen.user and chosen.user not in config.users:
        raise ConfigError(
            f"{config.origin}: context {name!r} names the user {chosen.user!r}, which is not there"
        )
    cluster, cluster_base = config.clusters[chosen.cluster]
    user, user_base = config.users.get(chosen.user, (schema.KubeconfigUser(), cluster_base))
    where = f"{config.origin}: cluster {chosen.cluster!r}"
    _check_cluster(cluster, where)
    return Connection(
        server=cluster.server,
        credentials=credentials_of(clock, user, user_base, cluster, f"{config.origin}: user {chosen.user!r}"),
        tls=_tls(cluster, cluster_base, user, user_base, config.origin),
        proxy=proxy_for(cluster.server, cluster.proxy_url, environ, where),
        namespace=chosen.namespace or "default",
        headers=impersonation_of(user),
    )


def _paths(path: str | None, environ: Mapping[str, str]) -> list[Path]:
    if path is not None:
        return [Path(path).expanduser()]
    listed = [entry for entry in environ.get("KUBECONFIG", "").split(os.pathsep) if entry]
    return [Path(entry).expanduser() for entry in listed or [DEFAULT_PATH]]


def _read(path: Path) -> schema.ConfigFile:
    import yaml  # noqa: PLC0415 - a program in the cluster has no kubeconfig, and needs no YAML

    try:
        content: Any = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the kubeconfig: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: not YAML: {reason}") from error
    if not isinstance(content, dict | None):
        raise ConfigError(f"{path}: a kubeconfig is a mapping, this is a {type(content).__name__}")
    try:
        return msgspec.convert(content or {}, schema.ConfigFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error


def _check_cluster(cluster: schema.Cluster, where: str) -> None:
    if split_address(cluster.server) is None:
        raise ConfigError(f"{where}: server {cluster.server!r} is not an http or https address")
    has_authority = cluster.certificate_authority or cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and has_authority:
        raise ConfigError(
            f"{where}: insecure-skip-tls-verify and a certificate authority contradict each other; keep one"
        )


def _tls(
    cluster: schema.Cluster, cluster_base: Path, user: schema.KubeconfigUser, user_base: Path, origin: str
) -> TlsSettings:
    # Data goes before a file of the same meaning, as everywhere in kubeconfig.
    authority = _decode(cluster.certificate_authority_data, "certificate-authority-data", origin)
    certificate = _decode(user.client_certificate_data, "client-certificate-data", origin)
    key = _decode(user.client_key_data, "client-key-data", origin)
    return TlsSettings(
        ca_file=_file(cluster.certificate_authority, cluster_base),
        ca_data=authority,
        server_name=cluster.tls_server_name or None,
        insecure=cluster.insecure_skip_tls_verify,
        certificate_file=_file(user.client_certificate, user_base),
        certificate_data=certificate,
        key_file=_file(user.client_key, user_base),
        key_data=key,
    )


def _decode(text: str, name: str, origin: str) -> bytes | None:
    if not text:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"{origin}: {name} is not base64: {error}") from error


def _file(text: str, base: Path) -> Path | None:
    return base / Path(text).expanduser() if text else None


def _names(entries: Mapping[str, object]) -> str:
    return ", ".join(sorted(entries))
