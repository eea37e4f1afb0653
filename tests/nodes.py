"""Our nodes on a cluster that others use after us: they go when the test goes, or later pods are bound to nobody."""

from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress

from trimtab.cluster.client import Client, DeleteOptions
from trimtab.cluster.errors import NotFound
from trimtab.lab.controllers.base.kinds import NODES, PODS
from trimtab.lab.data_plane import DataPlane, DataPlaneConfig
from trimtab.lab.nodes.node_pool import NodePool

AT_ONCE = DeleteOptions(grace_seconds=0)


@asynccontextmanager
async def passing_nodes(client: Client, setting: DataPlaneConfig) -> AsyncIterator[DataPlane]:
    """Run the workload side, and take its nodes away at the end."""
    try:
        async with DataPlane(client, setting) as side:
            yield side
    finally:
        await remove_nodes(client, setting.pools)


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
