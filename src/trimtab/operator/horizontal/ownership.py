"""Which HPAs this process decides about, and the fence of the writes for each.

One copy of the program owns all of them while it leads; several copies with `--shards` own what their shards hold.
"""

from typing import Protocol

from trimtab.cluster.client import Client
from trimtab.cluster.fence import Fence
from trimtab.cluster.sharding import Shards, shard_of

_SILENT_AFTER = 30.0
"""Seconds without a look at the Leases after which a copy is not ready: it could not take over from another."""


class Ownership(Protocol):
    """Who decides about what."""

    def may_write(self) -> bool:
        """Return whether there is anything that we own."""
        ...

    def owns(self, key: str) -> bool:
        """Return whether the HPA `namespace/name` is ours to decide."""
        ...

    def client_for(self, key: str) -> Client:
        """Return the client whose writes stop when the HPA is no longer ours."""
        ...

    def elsewhere(self, key: str) -> str:
        """Return who decides about an HPA that is not ours, in words; empty if we do."""
        ...


class Sole:
    """All or nothing: one lease, or none at all."""

    def __init__(self, client: Client, fence: Fence) -> None:
        self._fence = fence
        self._client = client.fenced(fence)

    def may_write(self) -> bool:
        """Return whether we lead."""
        return self._fence.may_write()

    def owns(self, key: str) -> bool:
        """Return whether we lead; what is decided all the same is stopped at the fence."""
        return True

    def client_for(self, key: str) -> Client:
        """Return the one client."""
        return self._client

    def elsewhere(self, key: str) -> str:
        """Return nothing: whoever is asked may have decided."""
        return ""


class Shared:
    """A share: the shards that we hold."""

    def __init__(self, client: Client, shards: Shards) -> None:
        self._shards = shards
        self._clients = [client.fenced(shards[number]) for number in range(shards.count)]
        self._known: dict[str, int] = {}

    def may_write(self) -> bool:
        """Return whether we hold any shard."""
        return self._shards.may_write()

    def owns(self, key: str) -> bool:
        """Return whether we hold its shard."""
        return self._shards[self.shard(key)].may_write()

    def client_for(self, key: str) -> Client:
        """Return the client that its shard fences."""
        return self._clients[self.shard(key)]

    def elsewhere(self, key: str) -> str:
        """Return the shard and its holder, for those who ask the wrong copy."""
        if self.owns(key):
            return ""
        number = self.shard(key)
        holder = self._shards[number].elector.holder or "nobody at the moment"
        return f"{key} is in shard {number} of {self._shards.count}, held by {holder}: ask that copy"

    def shard(self, key: str) -> int:
        """Return the shard of an HPA; worked out once, because it is asked for all of them in every round."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = shard_of(key, self._shards.count)
        return number

    def problem(self) -> str:
        """Return what is wrong with the shards; empty when all is well."""
        silence = self._shards.silence()
        return f"the Leases could not be read for {silence:.0f} s" if silence > _SILENT_AFTER else ""

    def forget(self, key: str) -> None:
        """Drop what is known of an HPA that is gone."""
        self._known.pop(key, None)
