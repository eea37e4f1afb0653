"""Caches of whole kinds, in all namespaces or in some, started when they are first needed."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from trimtab import tasks
from trimtab.cluster.cache.codec import Object
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer, resource_of
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Resource, TransformedResource

T = TypeVar("T", bound=Object)


class SharedInformers:
    """All caches of a program; each kind is watched once, from the moment somebody wants it."""

    def __init__(self, client: Client, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self.namespaces = tuple(namespaces)
        """The watched namespaces; none means all."""
        self._caches: dict[tuple[str, str], NamespacedInformer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def want(self, what: Resource[T] | TransformedResource[T]) -> NamespacedInformer[T]:
        """Return the cache of a kind, started now if it was not running."""
        resource = resource_of(what)
        key = (resource.group, resource.kind)
        cache: NamespacedInformer[T] | None = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = NamespacedInformer(self._client, what, self.namespaces)
            self._tasks.append(tasks.keep_running(f"the cache of {cache.resource.plural}", cache.run))
        return cache

    def running(self, group: str, kind: str) -> NamespacedInformer[Any] | None:
        """Return the cache of a kind if it is being watched and complete."""
        cache = self._caches.get((group, kind))
        return cache if cache is not None and cache.has_synced else None

    def __iter__(self) -> Iterator[NamespacedInformer[Any]]:
        yield from self._caches.values()

    async def wait_synced(self) -> None:
        """Wait until every cache that is running now is complete."""
        for cache in list(self._caches.values()):
            await cache.wait_synced()

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
