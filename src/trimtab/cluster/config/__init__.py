"""The configuration of a connection: kubeconfig files, service accounts, exec plugins, TLS.

Reading order: `in_cluster` (which configuration is used), `kubeconfig`, `schema`, `credentials`, and
`connection`, which all of them produce. What does not belong here: sending requests.
"""

from trimtab.cluster.config.connection import (
    ClientCertificate,
    Connection,
    Credential,
    Credentials,
    StaticCredentials,
    TlsSettings,
)
from trimtab.cluster.config.in_cluster import load_connection, load_in_cluster
from trimtab.cluster.config.kubeconfig import load_kubeconfig

__all__ = [
    "ClientCertificate",
    "Connection",
    "Credential",
    "Credentials",
    "StaticCredentials",
    "TlsSettings",
    "load_connection",
    "load_in_cluster",
    "load_kubeconfig",
]
