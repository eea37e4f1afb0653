"""Decides which HPAs and VPAs this replica of Trimtab owns, and fences the writes for each.

A replica owns the objects of the shards that it holds. Without `--shards` there is one, number 0, and the leader holds it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.client import Client
from trimtab.cluster.leases.epoch import UNSHARED, Epoch
from trimtab.cluster.leases.family import Family, Shard
from trimtab.cluster.leases.fence import Fence

MOST_KNOWN = 100_000
"""Maximum objects whose shards are remembered. Objects come and go, and most replicas decide about a few thousand."""


class Ownership:
    """Owns the objects of the held shards, or all of them while a fence without Leases is open."""

    def __init__(self, client: Client, fence: Fence) -> None:
        self._family = fence if isinstance(fence, Family) else None
        self.count = count = 1 if self._family is None else self._family.count
        """The number of shards."""
        self._fences = [fence] if self._family is None else [self._family[number] for number in range(count)]
        self._clients = [client.fenced(shard) for shard in self._fences]
        # A shard that is being handed over is closed to decisions, but its Lease is still ours.
        self._last = [
            client.fenced(shard.lock if isinstance(shard, Shard) else shard) for shard in self._fences
        ]
        # Every sync needs the shard of every object.
        self._shard_of = lru_cache(MOST_KNOWN)(self._family.shard_of if self._family else lambda _key: 0)
        self._under_way: Counter[int] = Counter()

    def may_write(self) -> bool:
        """Return whether this replica may write for any object."""
        return any(fence.may_write() for fence in self._fences)

    def held(self) -> tuple[int, ...]:
        """Return the numbers of the shards for which this replica may write."""
        if self._family is None:
            return (0,)  # the fence stops the writes
        return self._family.held()

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch in which this replica owns `namespace/name`. None if it does not."""
        fence = self._fences[self.share(key)]
        if isinstance(fence, Shard):
            return fence.epoch
        return UNSHARED if fence.may_write() else None

    def transitions_for(self, key: str) -> int | None:
        """Return how often the Lease for `namespace/name` changed its holder. None without Leases."""
        return transitions_of(self._fences[self.share(key)])

    def share(self, key: str) -> int:
        """Return the shard of `namespace/name`, whichever replica holds it."""
        return self._shard_of(key)

    def owns(self, key: str) -> bool:
        """Return whether this replica decides about `namespace/name`."""
        return self._family is None or self._fences[self.share(key)].may_write()

    def client_for(self, key: str) -> Client:
        """Return the client whose writes stop when the object changes its owner."""
        return self._clients[self.share(key)]

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the client of a shard for one write. The shard `is_busy` until the client is returned.

        The last writes are allowed while the shard is handed over.
        """
        self._under_way[share] += 1
        try:
            yield (self._last if is_last else self._clients)[share]
        finally:
            self._under_way[share] -= 1

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the client of the shard of `namespace/name` for one write."""
        return self.writing(self.share(key))

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way that its hand-over must wait for."""
        return self._under_way[shard] > 0

    def describe_owner(self, key: str) -> str:
        """Return a sentence that names the replica that decides about an object.

        It is empty if it is this one.
        """
        if self._family is None or self.owns(key):
            return ""
        if other := self._family.waits_for:
            return f"{key} waits for a replica with another --shards, {other}, to stop: ask that replica"
        number = self.share(key)
        holder = self._family[number].lock.holder or "nobody at the moment"
        if self.count == 1:
            return f"{key} is decided by the leader, {holder}, and this replica stands by: ask the leader"
        return f"{key} is in shard {number} of {self.count}, held by {holder}: ask that replica"


def transitions_of(fence: Fence) -> int | None:
    """Return how often the Lease behind a fence changed its holder, or None if there is no Lease."""
    return fence.lock.transitions if isinstance(fence, Shard) else None


def shards_gauge(registry: CollectorRegistry) -> Gauge:
    """Return the metric of the shards of this process. Create it once per registry."""
    return Gauge(
        "trimtab_shards_held",
        "Shards that this replica holds. Without --shards the leader holds 1.",
        registry=registry,
    )
