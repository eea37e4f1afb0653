"""Our nodes on a cluster that others use after us: they go when the test goes, or later pods are bound to nobody."""

from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from trimtab.cluster.client import Client, DeleteOptions
from trimtab.cluster.errors import NotFound
from trimtab.cluster.resource import Resource
from trimtab_lab.controllers.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.nodes.node_pool import NodePool

AT_ONCE = DeleteOptions(grace_seconds=0)
OWNERS_FIRST: tuple[Resource[Any], ...] = (
    JOBS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    PODS,
)


@asynccontextmanager
async def passing_nodes(client: Client, setting: DataPlaneConfig) -> AsyncIterator[DataPlane]:
    """Run the workload side, and take its nodes away at the end."""
    try:
        async with DataPlane(client, setting) as side:
            yield side
    finally:
        await remove_nodes(client, setting.pools)


async def remove_workloads(client: Client) -> None:
    """Delete the workloads that other tests left.

    No controller of namespaces runs here, so their pods wait for a node, and would fill the next test's.
    """
    for resource in OWNERS_FIRST:
        for left in (await client.list(resource)).items:
            meta = left.metadata
            await _gone(client.delete(resource, meta.name, meta.namespace, options=AT_ONCE))


async def remove_nodes(client: Client, pools: Iterable[NodePool]) -> None:
    """Delete the nodes of some pools and the pods on them, which nobody else would let go."""
    names = {name for pool in pools for name in pool.node_names()}
    for pod in (await client.list(PODS)).items:
        if pod.spec.node_name in names:
            await _gone(client.delete(PODS, pod.metadata.name, pod.metadata.namespace, options=AT_ONCE))
    for name in sorted(names):
        await _gone(client.delete(NODES, name))


async def _gone(deletion: Awaitable[None]) -> None:
    with suppress(NotFound):
        await deletion
