"""Where the cluster is and who we are: kubeconfig files, service accounts, exec plugins, TLS.

Everything ends in a `Connection`. Talking to the server is the transport's work.
"""

from trimtab.cluster.config.connection import Connection, Credential, Credentials, StaticCredentials
from trimtab.cluster.config.in_cluster import load_connection, load_in_cluster
from trimtab.cluster.config.kubeconfig import load_kubeconfig
from trimtab.cluster.config.tls import ClientCertificate, TlsSettings

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
