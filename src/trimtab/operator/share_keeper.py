"""Lets a process with `--shards` watch only the namespaces of the shards that it holds."""

import asyncio

from trimtab.clock import start_task
from trimtab.cluster.cache.parts import ShardedShare, Share
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.fence import Fence
from trimtab.operator.settings.settings import Settings

SHARDED = ("horizontal", "recommender", "roles")
"""The components whose work `--shards` divides. They need only the objects of their shards; others see the cluster."""

KEEP_SECONDS = 30.0
"""How long a lost shard is watched on. A replica that missed its renewals often gets its shard back, and a list is dear."""

_POLL_SECONDS = 0.05


class ShareKeeper:
    """Watches a shard while it is held, and a while longer."""

    def __init__(self, client: Client, family: Family, share: ShardedShare) -> None:
        self._clock = client.clock
        self._family = family
        self._share = share
        self._leaving: dict[int, asyncio.Task[None]] = {}
        family.serve(self)

    def shard_gained(self, shard: int) -> None:
        """Watch the shard."""
        if leaving := self._leaving.pop(shard, None):
            leaving.cancel()
        self._share.enter(shard)

    def shard_lost(self, shard: int) -> None:
        """Drop the shard a while after its last write, unless it comes back."""
        if shard not in self._leaving:
            self._leaving[shard] = start_task(f"the end of shard {shard}", self._leave(shard))

    def is_shard_busy(self, shard: int) -> bool:
        """Return False: watching needs no hand-over."""
        return False

    async def _leave(self, shard: int) -> None:
        await self._clock.sleep(KEEP_SECONDS)
        while self._family.is_busy(shard):
            await self._clock.sleep(_POLL_SECONDS)
        self._leaving.pop(shard, None)
        self._share.leave(shard)


def share_of(client: Client, fence: Fence, settings: Settings) -> Share:
    """Return what a process watches: the namespaces of its shards, or those of the settings."""
    if not isinstance(fence, Family) or fence.count == 1 or set(settings.components) - set(SHARDED):
        return Share(settings.watch_namespaces)
    share = ShardedShare(client, fence.shard_of, settings.watch_namespaces)
    ShareKeeper(client, fence, share)
    return share
