"""The Leases that give roles away: watched in namespaces where a role is declared, asked for when the watch is silent."""

import asyncio
from collections.abc import Callable

from trimtab import tasks
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import LEASES
from trimtab.decide.vertical.control.lease_holder import SeenLease, Tenure, see_lease
from trimtab.model.core.objects import Lease


class RoleLeases:
    """Follows Leases by namespace; `on_news` is called when a holder changes."""

    def __init__(self, client: Client, on_news: Callable[[], None]) -> None:
        self._client = client
        self._clock = client.clock
        self._on_news = on_news
        self._seen: dict[tuple[str, str], SeenLease] = {}
        self._informers: dict[str, Informer[Lease]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def follow(self, namespace: str) -> None:
        """Watch the Leases of a namespace from now on, and wait for the first list."""
        informer = self._informers.get(namespace)
        if informer is None:
            informer = Informer(self._client, LEASES, ListOptions(namespace=namespace))
            informer.subscribe(self._on_lease)
            self._informers[namespace] = informer
            self._tasks.append(tasks.keep_running(f"the watch of Leases in {namespace}", informer.run))
        await informer.wait_synced()

    def seen(self, namespace: str, name: str) -> SeenLease | None:
        """Return a Lease as it was last seen; None if it is not there."""
        return self._seen.get((namespace, name))

    def tenure(self, namespace: str, name: str) -> Tenure:
        """Return what watching a Lease says about its holder."""
        seen = self._seen.get((namespace, name))
        return Tenure.FREE if seen is None else seen.tenure(self._clock.monotonic())

    async def ask(self, namespace: str, name: str) -> Tenure:
        """Ask the server about a Lease that seems to be silent: perhaps only our watch is.

        Raises ClusterError if the server does not say.
        """
        # A list of one, because the right to list is there for the watch and the right to get is not.
        listing = await self._client.list(LEASES, ListOptions(namespace, fields=f"metadata.name={name}"))
        if not listing.items:
            self._seen.pop((namespace, name), None)
            return Tenure.FREE
        self._take(listing.items[0])
        tenure = self.tenure(namespace, name)
        return Tenure.FREE if tenure is Tenure.SILENT else tenure

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_lease(self, delta: Delta[Lease]) -> None:
        if delta.new is not None:
            self._take(delta.new)
        elif delta.old is not None:
            self._seen.pop((delta.old.metadata.namespace, delta.old.metadata.name), None)
            self._on_news()

    def _take(self, lease: Lease) -> None:
        key = lease.metadata.namespace, lease.metadata.name
        before = self._seen.get(key)
        seen = see_lease(before, lease, self._clock.now(), self._clock.monotonic())
        self._seen[key] = seen
        if before is None or (before.holder, before.is_proved) != (seen.holder, seen.is_proved):
            self._on_news()
