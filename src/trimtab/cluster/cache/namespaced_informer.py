"""Caches the objects of one kind, in all namespaces or in the watched ones.

`--watch-namespaces` means one informer per namespace instead of one for all.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache.codec import Object
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.recovery import Recovery
from trimtab.cluster.cache.refusals import Refusals
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import Resource, TransformedResource

T = TypeVar("T", bound=Object)


class NamespacedInformer(Generic[T]):
    """The cached objects of one kind in the watched namespaces."""

    def __init__(
        self,
        client: Client,
        what: Resource[T] | TransformedResource[T],
        namespaces: Sequence[str],
        recovery: Recovery | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self.resource: Resource[Any] = resource_of(what)
        self._informers = {
            namespace: Informer(
                client,
                what,
                ListOptions(namespace=namespace or None),
                recovery=recovery,
                refusals=refusals,
            )
            for namespace in (namespaces if self.resource.namespaced and namespaces else [""])
        }
        self._has_synced = False

    @property
    def has_synced(self) -> bool:
        """Return whether every first list is complete."""
        if not self._has_synced:
            self._has_synced = all(informer.has_synced for informer in self._informers.values())
        return self._has_synced

    @property
    def is_settled(self) -> bool:
        """Return whether every first list is complete, or was refused."""
        return self._has_synced or all(informer.is_settled for informer in self._informers.values())

    @property
    def is_read(self) -> bool:
        """Return whether the objects of some namespace are cached, or the server does not serve the kind."""
        return any(informer.has_synced or informer.is_absent for informer in self._informers.values())

    def forbidden(self) -> tuple[str, ...]:
        """Return the namespaces that this client may not list or watch.

        An empty name means all.
        """
        return tuple(namespace for namespace, informer in self._informers.items() if informer.is_forbidden)

    def has_listed(self, namespace: str) -> bool:
        """Return whether all objects of a namespace are cached."""
        informer = self.informer_of(namespace)
        return informer is not None and informer.has_listed(namespace)

    def publish_pages(self, on_page: Callable[[], None]) -> None:
        """Cache the objects of the first list page by page, and call `on_page` after each."""
        for informer in self._informers.values():
            informer.on_page = on_page

    def staleness(self) -> float:
        """Return the staleness of the oldest informer that the server does not refuse, in seconds."""
        followed = [informer for informer in self._informers.values() if not informer.is_refused]
        return max((informer.staleness() for informer in followed), default=0.0)

    def last_error(self) -> str | None:
        """Return the last error of an informer that has not recovered since."""
        return next(
            (informer.last_error for informer in self._informers.values() if informer.last_error), None
        )

    def failure(self) -> str:
        """Return the last error of an informer that may recover, or "" if there is none."""
        followed = [informer for informer in self._informers.values() if not informer.is_refused]
        return next((informer.last_error for informer in followed if informer.last_error), "")

    def refusals(self) -> dict[str, str]:
        """Return the server's answer for each namespace that it refuses.

        An empty name means all.
        """
        return {
            namespace: informer.last_error or ""
            for namespace, informer in self._informers.items()
            if informer.is_refused
        }

    def stale_reasons(self) -> dict[str, str]:
        """Return why the cache may lack recent changes, by namespace.

        An empty name means all.
        """
        reasons = {namespace: informer.stale_reason() for namespace, informer in self._informers.items()}
        return {namespace: reason for namespace, reason in reasons.items() if reason}

    def incomplete(self) -> dict[str, str]:
        """Return why objects may be missing or outdated, by namespace, for kinds that the server serves."""
        return {
            namespace: informer.stale_reason()
            for namespace, informer in self._informers.items()
            if not informer.is_absent and informer.stale_reason()
        }

    def doubtful(self) -> frozenset[str]:
        """Return the namespaces whose first list is missing or whose last request failed.

        An empty name means all.
        """
        return frozenset(
            namespace
            for namespace, informer in self._informers.items()
            if not informer.has_synced or informer.last_error
        )

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None."""
        informer = self.informer_of(namespace)
        return informer.store.get(name, namespace) if informer else None

    def __iter__(self) -> Iterator[T]:
        for informer in self._informers.values():
            yield from informer.store

    def __len__(self) -> int:
        return sum(len(informer.store) for informer in self._informers.values())

    def informer_of(self, namespace: str) -> Informer[T] | None:
        """Return the informer of a namespace. None if it is not watched."""
        return self._informers.get("") or self._informers.get(namespace)

    def count_in(self, namespace: str) -> int:
        """Return the number of objects in a namespace."""
        informer = self.informer_of(namespace)
        return len(informer.store.in_namespace(namespace)) if informer else 0

    def informers(self) -> Iterator[tuple[str, Informer[T]]]:
        """Yield each informer with its namespace. An empty name means all."""
        yield from self._informers.items()

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Call `subscriber` with every change."""
        for informer in self._informers.values():
            informer.subscribe(subscriber)

    def note_written(self, namespace: str, resource_version: str) -> None:
        """Reject lists that are older than a write of this process."""
        informer = self.informer_of(namespace)
        if informer is not None:
            informer.note_written(resource_version)

    async def wait_synced(self) -> None:
        """Wait for the first lists."""
        for informer in self._informers.values():
            await informer.wait_synced()

    async def wait_settled(self) -> None:
        """Wait for the first lists, except for those that are refused."""
        for informer in self._informers.values():
            await informer.wait_settled()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await asyncio.gather(*(informer.run() for informer in self._informers.values()))


def resource_of(what: Resource[T] | TransformedResource[T]) -> Resource[Any]:
    """Return the resource, with or without a transform."""
    return what.resource if isinstance(what, TransformedResource) else what
