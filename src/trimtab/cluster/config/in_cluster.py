"""Chooses the connection: the pod's service account, or a kubeconfig."""

import os
from collections.abc import Mapping
from pathlib import Path

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection, TlsSettings
from trimtab.cluster.config.credentials import TokenFileCredentials
from trimtab.cluster.config.kubeconfig import load_kubeconfig
from trimtab.cluster.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(environ: Mapping[str, str], mount: Path = SERVICE_ACCOUNT) -> bool:
    """Return whether this process seems to run in a pod with a service account."""
    return "KUBERNETES_SERVICE_HOST" in environ and (mount / "token").exists()


def load_in_cluster(
    clock: Clock, environ: Mapping[str, str] | None = None, mount: Path = SERVICE_ACCOUNT
) -> Connection:
    """Return the connection of the pod's service account. Rotated tokens and authorities are read again."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    for name in ("token", "ca.crt"):
        if not (mount / name).exists():
            raise ConfigError(f"{mount / name} is missing: does the pod mount its service account token?")
    namespace = mount / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credentials=TokenFileCredentials(clock, mount / "token"),
        tls=TlsSettings(ca_file=mount / "ca.crt"),
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.exists() else "default",
    )


def load_connection(
    clock: Clock,
    path: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    mount: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Return the connection of the named kubeconfig, else $KUBECONFIG, else the pod, else the home file."""
    environ = os.environ if environ is None else environ
    if path is None and context is None and not environ.get("KUBECONFIG") and is_in_cluster(environ, mount):
        return load_in_cluster(clock, environ, mount)
    return load_kubeconfig(clock, path, context, environ)
