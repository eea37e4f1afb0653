"""Decides which HPAs and VPAs this replica of Trimtab owns, and fences the writes for each.

Without `--shards` the leader owns all of them. With `--shards` a replica owns the objects of the shards that it holds.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.client import Client
from trimtab.cluster.leases.election import LeaderElector
from trimtab.cluster.leases.epoch import UNSHARED, Epoch
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.leases.shards import Shard, Shards

_SILENT_AFTER = 30.0
"""Seconds without reading the Leases after which a replica is not ready, because it could not take over."""

MOST_KNOWN = 100_000
"""Maximum objects whose shards are remembered. Objects come and go, and most replicas decide about a few thousand."""


class SingleOwner:
    """Owns everything while the fence is open. There is one shard, number 0."""

    def __init__(self, client: Client, fence: Fence) -> None:
        self._fence = fence
        self._client = client.fenced(fence)

    def may_write(self) -> bool:
        """Return whether this replica may write for any object."""
        return self._fence.may_write()

    def held(self) -> tuple[int, ...]:
        """Return the numbers of the shards of this replica. Without the Lease, the fence stops the writes."""
        return (0,)

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch in which this replica owns `namespace/name`. None if it does not."""
        if not self._fence.may_write():
            return None
        return self._fence.epoch if isinstance(self._fence, LeaderElector) else UNSHARED

    def transitions_for(self, key: str) -> int | None:
        """Return how often the Lease for `namespace/name` changed its holder.

        None without a Lease.
        """
        return transitions_of(self._fence)

    def share(self, key: str) -> int:
        """Return the shard of `namespace/name`, whichever replica holds it."""
        return 0

    def owns(self, key: str) -> bool:
        """Return whether this replica decides about `namespace/name`."""
        return True

    def client_for(self, key: str) -> Client:
        """Return the client whose writes stop when the object changes its owner."""
        return self._client

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the client of a shard for one write.

        The last writes are allowed while the shard is handed over.
        """
        yield self._client

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the client of the shard of `namespace/name` for one write."""
        return self.writing(self.share(key))

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way that its hand-over must wait for."""
        return False

    def describe_owner(self, key: str) -> str:
        """Return a sentence that names the replica that decides about an object.

        It is empty if it is this one.
        """
        if self._fence.may_write() or not isinstance(self._fence, LeaderElector):
            return ""
        holder = self._fence.holder or "nobody at the moment"
        return f"{key} is decided by the leader, {holder}, and this replica stands by: ask the leader"

    def problem(self) -> str:
        """Return what keeps this replica from taking over. It is empty if nothing does."""
        return ""


class ShardedOwner:
    """Owns the objects of the shards that this replica holds. Its methods are those of `SingleOwner`."""

    def __init__(self, client: Client, shards: Shards) -> None:
        self._shards = shards
        self._clients = [client.fenced(shards[number]) for number in range(shards.count)]
        # A shard that is being handed over is closed to decisions, but its Lease is still ours.
        self._last = [client.fenced(shards[number].elector) for number in range(shards.count)]
        # Every sync needs the shard of every object.
        self._shard_of = lru_cache(MOST_KNOWN)(shards.layout.shard_of)
        self._under_way: Counter[int] = Counter()

    def may_write(self) -> bool:
        """Return whether this replica holds any shard."""
        return self._shards.may_write()

    def held(self) -> tuple[int, ...]:
        """Return the shards for which this replica may write."""
        return self._shards.held()

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch of the object's shard, if this replica may write for it."""
        return self._shards[self.share(key)].epoch

    def transitions_for(self, key: str) -> int | None:
        """Return how often the Lease of the object's shard changed its holder."""
        return transitions_of(self._shards[self.share(key)])

    def share(self, key: str) -> int:
        """Return the shard of an object."""
        return self._shard_of(key)

    def owns(self, key: str) -> bool:
        """Return whether this replica holds the object's shard."""
        return self._shards[self.share(key)].may_write()

    def client_for(self, key: str) -> Client:
        """Return the client that the object's shard fences."""
        return self._clients[self.share(key)]

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the client that a shard fences. The shard `is_busy` until the client is returned."""
        self._under_way[share] += 1
        try:
            yield (self._last if is_last else self._clients)[share]
        finally:
            self._under_way[share] -= 1

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the client of the object's shard."""
        return self.writing(self.share(key))

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way."""
        return self._under_way[shard] > 0

    def describe_owner(self, key: str) -> str:
        """Return a sentence that names the object's shard and its holder.

        It is empty if it is this replica.
        """
        if self.owns(key):
            return ""
        number = self.share(key)
        holder = self._shards[number].elector.holder or "nobody at the moment"
        return f"{key} is in shard {number} of {self._shards.count}, held by {holder}: ask that replica"

    def problem(self) -> str:
        """Return what is wrong with the Leases. It is empty if nothing is."""
        silence = self._shards.silence()
        return f"the Leases could not be read for {silence:.0f} s" if silence > _SILENT_AFTER else ""


Ownership = SingleOwner | ShardedOwner


def transitions_of(fence: Fence) -> int | None:
    """Return how often the Lease behind a fence changed its holder, or None if there is no Lease."""
    if isinstance(fence, Shard):
        return fence.elector.transitions
    return fence.transitions if isinstance(fence, LeaderElector) else None


def ownership_of(client: Client, fence: Fence) -> Ownership:
    """Return the ownership behind a fence."""
    return ShardedOwner(client, fence) if isinstance(fence, Shards) else SingleOwner(client, fence)


def shards_gauge(registry: CollectorRegistry) -> Gauge:
    """Return the metric of the shards of this process. Create it once per registry."""
    return Gauge(
        "trimtab_shards_held", "Shards that this replica holds; 0 without --shards.", registry=registry
    )
