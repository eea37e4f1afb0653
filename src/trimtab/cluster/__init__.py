"""The port to a Kubernetes API server: transport, caches, discovery, writes, leases. No decisions.

    connection = load_connection(clock)                    where, and who we are (`config`)
    client = Client(clock, HttpTransport(clock, connection))
    pods = Informer(client, PODS)                          a cache that follows the server; run `pods.run()`
    writer = client.fenced(elector)                        writes stop when the lease may be lost

`HttpTransport` is in `trimtab.cluster.http` and not here, because most users of this package need no socket.
Only this package talks to an API server. Its errors are drawn in `errors`; what it promises under faults is in
docs/decisions/0030 to 0035.
"""

from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import (
    Client,
    DeleteOptions,
    Listing,
    ListOptions,
    PatchType,
    Preconditions,
    retry_on_conflict,
)
from trimtab.cluster.config import Connection, load_connection, load_in_cluster, load_kubeconfig
from trimtab.cluster.discovery import Discovery, GroupUnavailableError, Served, UnknownKindError
from trimtab.cluster.errors import ApiError, ClusterError, ConfigError, Fenced, TransportError
from trimtab.cluster.events import EventBroadcaster, EventRecorder
from trimtab.cluster.leases.election import LeaderElector, LeaseTimes, unique_identity
from trimtab.cluster.leases.fence import Fence, NoFence
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale
from trimtab.cluster.transport.in_process import InProcessTransport

__all__ = [
    "ApiError",
    "CacheEvent",
    "Client",
    "ClusterError",
    "ConfigError",
    "Connection",
    "DeleteOptions",
    "Delta",
    "Discovery",
    "EventBroadcaster",
    "EventRecorder",
    "Fence",
    "Fenced",
    "GroupUnavailableError",
    "InProcessTransport",
    "Informer",
    "Json",
    "LeaderElector",
    "LeaseTimes",
    "ListOptions",
    "Listing",
    "NoFence",
    "PatchType",
    "Preconditions",
    "Resource",
    "Served",
    "TransportError",
    "UnknownKindError",
    "WatchPace",
    "load_connection",
    "load_in_cluster",
    "load_kubeconfig",
    "read_scale",
    "retry_on_conflict",
    "scale_of",
    "unique_identity",
    "write_scale",
]
