"""The fields of a kubeconfig file that are used. Their names are the file's own."""

from typing import Any

import msgspec

field = msgspec.field


class ExecEnv(msgspec.Struct, frozen=True):
    """An environment variable of an exec plugin."""

    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The command of a program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        """Return the name of the type alone, because the fields hold credentials."""
        return f"{type(self).__name__}(...)"


class AuthProvider(msgspec.Struct, frozen=True):
    """The older kind of renewed credentials, of which only OpenID Connect is supported."""

    name: str = ""
    config: dict[str, str] | None = None

    def __repr__(self) -> str:
        """Return the name of the type alone, because the fields hold credentials."""
        return f"{type(self).__name__}(...)"


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    """The credentials of a user."""

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

    def __repr__(self) -> str:
        """Return the name of the type alone, because the fields hold credentials."""
        return f"{type(self).__name__}(...)"


class Extension(msgspec.Struct, frozen=True):
    """An extension of the file. Exec plugins may request theirs."""

    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The address of a cluster."""

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
    """A whole file. Every part may be missing, since files are merged."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
