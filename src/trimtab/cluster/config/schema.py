"""The shape of a kubeconfig file, as far as we use it. Field names are the file's own, which mix two spellings."""

from typing import Any

import msgspec

field = msgspec.field


class ExecEnv(msgspec.Struct, frozen=True):
    """One environment variable for an exec plugin."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How to run a program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct, frozen=True):
    """The older way to have credentials renewed; only OpenID Connect is left of it."""

    name: str = ""
    config: dict[str, str] | None = None


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    """Who we are."""

    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: AuthProvider | None = None
    as_: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class Extension(msgspec.Struct, frozen=True):
    """Something that other programs left in the file; exec plugins may ask for theirs."""

    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """Where a cluster is."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] | None = None


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace under one name."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    """A cluster and its name."""

    name: str
    cluster: Cluster | None = None


class NamedUser(msgspec.Struct, frozen=True):
    """A user and its name."""

    name: str
    user: KubeconfigUser | None = None


class NamedContext(msgspec.Struct, frozen=True):
    """A context and its name."""

    name: str
    context: Context | None = None


class ConfigFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A whole file; every part may be missing, for files are merged."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
