"""Informers that the components of a process share, as client-go's SharedInformerFactory does."""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from trimtab import tasks
from trimtab.cluster.cache.informer import outage_breaker
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.cache.refusals import Refusals
from trimtab.cluster.cache.share import ShardedShare, Share
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import Object
from trimtab.cluster.resource import Resource, TransformedResource, resource_of

T = TypeVar("T", bound=Object)


class InformerFactory:
    """Starts at most one informer per resource and type that it is decoded into."""

    def __init__(self, client: Client, share: Share | Sequence[str] = ()) -> None:
        """Cache the objects of a share, or those of the given namespaces. No namespace means all."""
        self._client = client
        self.share = share if isinstance(share, Share) else Share(share)
        self.namespaces = self.share.namespaces
        """The watched namespaces; none means all."""
        self._breaker = outage_breaker(client.clock)
        self._refusals = Refusals()
        self._informers: dict[Resource[Any], NamespacedInformer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def informer(self, what: Resource[T] | TransformedResource[T]) -> NamespacedInformer[T]:
        """Return the informer of a resource, which starts on first use."""
        resource = resource_of(what)
        informer: NamespacedInformer[T] | None = self._informers.get(resource)
        if informer is None:
            informer = self._informers[resource] = NamespacedInformer(
                self._client, what, self.share, self._breaker, self._refusals
            )
            self._tasks.append(tasks.keep_running(f"the cache of {resource.plural}", informer.run))
        return informer

    def __iter__(self) -> Iterator[NamespacedInformer[Any]]:
        yield from self._informers.values()

    def has(self, resource: Resource[Any]) -> bool:
        """Return whether the informer of a resource, decoded into this type, runs."""
        return resource in self._informers

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class SharedInformers:
    """The informers that one component uses, so that its health depends on no others."""

    def __init__(self, factory: InformerFactory) -> None:
        self._factory = factory
        self.share = factory.share
        self._informers: dict[tuple[str, str], NamespacedInformer[Any]] = {}

    def get(self, what: Resource[T] | TransformedResource[T]) -> NamespacedInformer[T]:
        """Return the informer of a resource, which starts on first use."""
        resource = resource_of(what)
        key = (resource.group, resource.kind)
        if key not in self._informers:
            self._informers[key] = self._factory.informer(what)
        return self._informers[key]

    def has(self, resource: Resource[Any]) -> bool:
        """Return whether any component uses the informer of a resource, decoded into this type."""
        return self._factory.has(resource)

    def running(self, group: str, kind: str, namespace: str = "") -> NamespacedInformer[Any] | None:
        """Return the informer of a kind if this component uses it and has its first list of a namespace."""
        informers = self._informers.get((group, kind))
        informer = None if informers is None else informers.informer_of(namespace)
        return informers if informer is not None and informer.has_synced else None

    def has_listed(self, group: str, kind: str, namespace: str) -> bool:
        """Return whether all objects of a kind and namespace are cached, although the list may go on."""
        informers = self._informers.get((group, kind))
        return informers is not None and informers.has_listed(namespace)

    def stale_reasons(self) -> dict[tuple[str, str], dict[str, str]]:
        """Return why caches may lack recent changes, by group and kind, then by namespace."""
        found = {key: informer.stale_reasons() for key, informer in self._informers.items()}
        return {key: reasons for key, reasons in found.items() if reasons}

    def __iter__(self) -> Iterator[NamespacedInformer[Any]]:
        yield from self._informers.values()

    async def wait_settled(self, *, without: Collection[tuple[str, str]] = ()) -> None:
        """Wait until the first lists of all informers in use are complete, or refused.

        `without` names kinds by group and kind that are not waited for.
        """
        for kind, informer in list(self._informers.items()):
            if kind not in without:
                await informer.wait_settled()

    def has_shard(self, shard: int) -> bool:
        """Return whether the first lists of a shard are complete, or refused. True unless shards are watched."""
        share = self.share
        if not isinstance(share, ShardedShare):
            return True
        parts = share.parts_of(shard)
        return share.is_watched(shard) and all(informer.have_settled(parts) for informer in self)

    async def wait_shard(self, shard: int) -> None:
        """Wait until the first lists of a shard are complete, or refused. Return at once unless shards are watched."""
        if isinstance(self.share, ShardedShare):
            await self.wait_parts(self.share.parts_of(shard))

    async def wait_parts(
        self, names: Collection[str], *, without: NamespacedInformer[Any] | None = None
    ) -> None:
        """Wait until the first lists of these parts are complete, or refused, except those of one informer."""
        for informer in list(self._informers.values()):
            if informer is not without:
                await informer.wait_parts(names)
