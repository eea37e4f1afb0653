"""The client of a Kubernetes API server: transport, caches, discovery, writes, leases.

    connection = load_connection(clock)                    address and credentials (`config`)
    client = Client(clock, HttpTransport(clock, connection))
    pods = Informer(client, PODS)                          a cache that follows the server; run `pods.run()`
    writer = client.fenced(elector)                        writes stop when the lease may be lost

Reading order: `resource`, `client`, `errors`, then one request: `sender` (fence, dry run, retries), `lanes` (what cannot
delay each other), `transport` (the interface; `in_process` has no socket), `http` (sockets and TLS), `codec` (responses
and lists). Then `config` (kubeconfig), `cache` (list and watch), `leases` (which replica decides), `discovery`, `scale`,
`events` (with `turns`), `foreign_answers` (a proxy in place of the API server).

`HttpTransport` is not imported here, because most users of this package need no socket. What does not belong here:
decisions. For the behaviour under faults see docs/decisions/caches-reject-older-versions-and-never-block-startup.md and
docs/decisions/retry-reads-and-verify-writes.md.
"""

from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import CacheEvent, Delta
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
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.fence import Fence, NoFence
from trimtab.cluster.leases.lease import LeaseTimes, unique_identity
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale

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
    "Family",
    "Fence",
    "Fenced",
    "GroupUnavailableError",
    "InProcessTransport",
    "Informer",
    "Json",
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
