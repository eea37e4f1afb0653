"""The objects of one kind, followed in all namespaces or in some.

`--watch-namespaces` means one watch per namespace instead of one for all. Readers of a `NamespacedInformer` see no difference.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache.codec import Object
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import Resource, TransformedResource

T = TypeVar("T", bound=Object)


class NamespacedInformer(Generic[T]):
    """The objects of one kind in the namespaces that we look at."""

    def __init__(
        self, client: Client, what: Resource[T] | TransformedResource[T], namespaces: Sequence[str]
    ) -> None:
        self.resource: Resource[Any] = resource_of(what)
        self._informers = {
            namespace: Informer(client, what, ListOptions(namespace=namespace or None))
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
        watch = self.watch_of(namespace)
        return watch.store.get(name, namespace) if watch else None

    def __iter__(self) -> Iterator[T]:
        for informer in self._informers.values():
            yield from informer.store

    def __len__(self) -> int:
        return sum(len(informer.store) for informer in self._informers.values())

    def watch_of(self, namespace: str) -> Informer[T] | None:
        """Return the watch that follows a namespace; None if it is not among ours."""
        return self._informers.get("") or self._informers.get(namespace)

    def count_in(self, namespace: str) -> int:
        """Return how many objects a namespace has."""
        watch = self.watch_of(namespace)
        return len(watch.store.in_namespace(namespace)) if watch else 0

    def watches(self) -> Iterator[tuple[str, Informer[T]]]:
        """Yield each watch with its namespace; the empty one stands for all."""
        yield from self._informers.items()

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Tell `subscriber` of every change."""
        for informer in self._informers.values():
            informer.subscribe(subscriber)

    def note_written(self, namespace: str, resource_version: str) -> None:
        """Believe no list that is older than one of our own writes."""
        watch = self.watch_of(namespace)
        if watch is not None:
            watch.note_written(resource_version)

    async def wait_synced(self) -> None:
        """Wait for the first lists."""
        for informer in self._informers.values():
            await informer.wait_synced()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await asyncio.gather(*(informer.run() for informer in self._informers.values()))


def resource_of(what: Resource[T] | TransformedResource[T]) -> Resource[Any]:
    """Return the resource itself, however its objects are kept."""
    return what.resource if isinstance(what, TransformedResource) else what
