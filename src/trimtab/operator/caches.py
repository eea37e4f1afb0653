"""Caches of whole kinds, in all namespaces or in some, started when they are first needed.

`--watch-namespaces` means one watch per namespace instead of one for all; whoever reads a `KindCache` need not know.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache import Delta
from trimtab.cluster.client import Client, Selection
from trimtab.cluster.codec import Object
from trimtab.cluster.informer import Informer
from trimtab.cluster.resource import Kept, Resource

T = TypeVar("T", bound=Object)


class KindCache(Generic[T]):
    """The objects of one kind in the namespaces that we look at."""

    def __init__(self, client: Client, what: Resource[T] | Kept[T], namespaces: Sequence[str]) -> None:
        self.resource: Resource[Any] = _resource(what)
        self._informers = {
            namespace: Informer(client, what, Selection(namespace=namespace or None))
            for namespace in (namespaces if self.resource.namespaced and namespaces else [""])
        }
        self._has_synced = False

    @property
    def has_synced(self) -> bool:
        """Return whether every first list is complete; once it is, it stays so."""
        if not self._has_synced:
            self._has_synced = all(informer.has_synced for informer in self._informers.values())
        return self._has_synced

    def staleness(self) -> float:
        """Return the age of the oldest part, in seconds."""
        return max(informer.staleness() for informer in self._informers.values())

    def last_error(self) -> str | None:
        """Return what a watch last complained about, if it has not recovered since."""
        return next((one.last_error for one in self._informers.values() if one.last_error), None)

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None."""
        informer = self._informers.get("") or self._informers.get(namespace)
        return informer.store.get(name, namespace) if informer else None

    def __iter__(self) -> Iterator[T]:
        for informer in self._informers.values():
            yield from informer.store

    def __len__(self) -> int:
        return sum(len(informer.store) for informer in self._informers.values())

    def count_in(self, namespace: str) -> int:
        """Return how many objects a namespace has."""
        informer = self._informers.get("") or self._informers.get(namespace)
        return len(informer.store.in_namespace(namespace)) if informer else 0

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Tell `subscriber` of every change."""
        for informer in self._informers.values():
            informer.subscribe(subscriber)

    def note_written(self, namespace: str, resource_version: str) -> None:
        """Believe no list that is older than one of our own writes."""
        informer = self._informers.get("") or self._informers.get(namespace)
        if informer is not None:
            informer.note_written(resource_version)

    async def wait_synced(self) -> None:
        """Wait for the first lists."""
        for informer in self._informers.values():
            await informer.wait_synced()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await asyncio.gather(*(informer.run() for informer in self._informers.values()))


class Caches:
    """All caches of a program; each kind is watched once, from the moment somebody wants it."""

    def __init__(self, client: Client, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self._caches: dict[tuple[str, str], KindCache[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def want(self, what: Resource[T] | Kept[T]) -> KindCache[T]:
        """Return the cache of a kind, started now if it was not running."""
        resource = _resource(what)
        key = (resource.group, resource.kind)
        cache: KindCache[T] | None = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = KindCache(self._client, what, self._namespaces)
            self._tasks.append(asyncio.ensure_future(cache.run()))
        return cache

    def running(self, group: str, kind: str) -> KindCache[Any] | None:
        """Return the cache of a kind if it is being watched and complete."""
        cache = self._caches.get((group, kind))
        return cache if cache is not None and cache.has_synced else None

    def __iter__(self) -> Iterator[KindCache[Any]]:
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


def _resource(what: Resource[T] | Kept[T]) -> Resource[Any]:
    return what.resource if isinstance(what, Kept) else what
