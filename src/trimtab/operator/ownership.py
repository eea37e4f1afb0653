"""Which HPAs and VPAs this process decides about, and the fence of the writes for each.

One copy of the program owns all of them while it leads; several copies with `--shards` own what their shards hold.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.client import Client
from trimtab.cluster.leases.election import LeaderElector
from trimtab.cluster.leases.epoch import UNSHARED, Epoch
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.leases.shards import Shards, shard_of

_SILENT_AFTER = 30.0
"""Seconds without a look at the Leases after which a copy is not ready: it could not take over from another."""


class Ownership(Protocol):
    """Who decides about what."""

    def may_write(self) -> bool:
        """Return whether there is anything that we own."""
        ...

    def held(self) -> tuple[int, ...]:
        """Return the shares that are ours, by number."""
        ...

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch in which `namespace/name` is ours; None if it is not ours now."""
        ...

    def share(self, key: str) -> int:
        """Return the share that `namespace/name` belongs to, whoever has it."""
        ...

    def owns(self, key: str) -> bool:
        """Return whether `namespace/name` is ours to decide."""
        ...

    def client_for(self, key: str) -> Client:
        """Return the client whose writes stop when the object is no longer ours."""
        ...

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the client of a share for one write; the last writes go on while the share is handed over."""
        ...

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the client of the shard that `namespace/name` belongs to, for one write."""
        ...

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way."""
        ...

    def elsewhere(self, key: str) -> str:
        """Return who decides about an object that is not ours, in words; empty if we do."""
        ...

    def problem(self) -> str:
        """Return what keeps us from taking over from others; empty when all is well."""
        ...


class SingleOwner:
    """All or nothing: one lease, or none at all."""

    def __init__(self, client: Client, fence: Fence) -> None:
        self._fence = fence
        self._client = client.fenced(fence)

    def may_write(self) -> bool:
        """Return whether we lead."""
        return self._fence.may_write()

    def held(self) -> tuple[int, ...]:
        """Return the one share there is; what is decided without the lease is stopped at the fence."""
        return (0,)

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch in which we lead, if we do."""
        if not self._fence.may_write():
            return None
        return self._fence.epoch if isinstance(self._fence, LeaderElector) else UNSHARED

    def share(self, key: str) -> int:
        """Return the one share there is."""
        return 0

    def owns(self, key: str) -> bool:
        """Return whether we lead; what is decided all the same is stopped at the fence."""
        return True

    def client_for(self, key: str) -> Client:
        """Return the one client."""
        return self._client

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the one client."""
        yield self._client

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the one client."""
        return self.writing(0)

    def is_busy(self, shard: int) -> bool:
        """Return False: the one share is never handed over."""
        return False

    def elsewhere(self, key: str) -> str:
        """Return who leads, for those who ask a copy that stands by."""
        if self._fence.may_write() or not isinstance(self._fence, LeaderElector):
            return ""
        holder = self._fence.holder or "nobody at the moment"
        return f"{key} is decided by the copy that leads, {holder}, and this copy stands by: ask that copy"

    def problem(self) -> str:
        """Return nothing: the election speaks for itself."""
        return ""


class ShardedOwner:
    """A share: the shards that we hold."""

    def __init__(self, client: Client, shards: Shards) -> None:
        self._shards = shards
        self._clients = [client.fenced(shards[number]) for number in range(shards.count)]
        # A shard that is being handed over is closed to decisions, but its Lease is still ours.
        self._last = [client.fenced(shards[number].elector) for number in range(shards.count)]
        self._known: dict[str, int] = {}
        self._under_way: Counter[int] = Counter()

    def may_write(self) -> bool:
        """Return whether we hold any shard."""
        return self._shards.may_write()

    def held(self) -> tuple[int, ...]:
        """Return the shards that we may write for."""
        return self._shards.held()

    def epoch_for(self, key: str) -> Epoch | None:
        """Return the epoch of its shard, if we may write for it."""
        return self._shards[self.share(key)].epoch

    def owns(self, key: str) -> bool:
        """Return whether we hold its shard."""
        return self._shards[self.share(key)].may_write()

    def client_for(self, key: str) -> Client:
        """Return the client that its shard fences."""
        return self._clients[self.share(key)]

    @contextmanager
    def writing(self, share: int, *, is_last: bool = False) -> Iterator[Client]:
        """Lend the client that a shard fences; it `is_busy` until the client is given back."""
        self._under_way[share] += 1
        try:
            yield (self._last if is_last else self._clients)[share]
        finally:
            self._under_way[share] -= 1

    def writing_for(self, key: str) -> AbstractContextManager[Client]:
        """Lend the client of an object's shard."""
        return self.writing(self.share(key))

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way."""
        return self._under_way[shard] > 0

    def elsewhere(self, key: str) -> str:
        """Return the shard and its holder, for those who ask the wrong copy."""
        if self.owns(key):
            return ""
        number = self.share(key)
        holder = self._shards[number].elector.holder or "nobody at the moment"
        return f"{key} is in shard {number} of {self._shards.count}, held by {holder}: ask that copy"

    def share(self, key: str) -> int:
        """Return the shard of an object; worked out once, because it is asked for all of them in every round."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = shard_of(key, self._shards.count)
        return number

    def problem(self) -> str:
        """Return what is wrong with the shards; empty when all is well."""
        silence = self._shards.silence()
        return f"the Leases could not be read for {silence:.0f} s" if silence > _SILENT_AFTER else ""

    def forget(self, key: str) -> None:
        """Drop what is known of an object that is gone."""
        self._known.pop(key, None)


def ownership_of(client: Client, fence: Fence) -> SingleOwner | ShardedOwner:
    """Return who owns what behind a fence."""
    return ShardedOwner(client, fence) if isinstance(fence, Shards) else SingleOwner(client, fence)


def shards_gauge(registry: CollectorRegistry) -> Gauge:
    """Return the metric that counts the shards of this process; one per registry."""
    return Gauge(
        "trimtab_shards_held", "Shards that this copy decides about; 0 without --shards.", registry=registry
    )
