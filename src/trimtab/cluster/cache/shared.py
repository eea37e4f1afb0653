"""Informers that the components of a process share, as client-go's SharedInformerFactory does.

`--watch-namespaces` means one informer per namespace instead of one for all, and `--shards` one per shard that is held.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from trimtab.clock import keep_running
from trimtab.cluster.cache.informer import Informer, Refusals, outage_breaker
from trimtab.cluster.cache.parts import Part, ShardedShare, Share
from trimtab.cluster.cache.store import Delta
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import Object
from trimtab.cluster.resource import Resource, TransformedResource, resource_of
from trimtab.pacing import Breaker

T = TypeVar("T", bound=Object)


class NamespacedInformer(Generic[T]):
    """The cached objects of one kind in the watched namespaces."""

    def __init__(
        self,
        client: Client,
        what: Resource[T] | TransformedResource[T],
        share: Share | Sequence[str],
        breaker: Breaker | None = None,
        refusals: Refusals | None = None,
        fields: str = "",
    ) -> None:
        """Cache the objects of a share, or those of the given namespaces, that `fields` select.

        No namespace means all.
        """
        self.resource: Resource[Any] = resource_of(what)
        share = share if isinstance(share, Share) else Share(share)
        self._share = share if self.resource.namespaced else Share()
        self._client = client
        self._what = what
        self._breaker = breaker
        self._refusals = refusals
        self._fields = fields
        self._subscribers: list[Callable[[Delta[T]], None]] = []
        self._on_page: Callable[[], None] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_running = False
        self._received_before = self._dropped_before = 0
        """What parts received and dropped that are no longer watched."""
        self._informers = {name: self._make(part) for name, part in self._share.parts.items()}
        self._has_synced = False
        if isinstance(self._share, ShardedShare):
            self._share.listen(self._change_part)

    def _make(self, part: Part) -> Informer[T]:
        selected = part.selecting(self._fields) if self._fields else part
        return Informer(self._client, self._what, selected, breaker=self._breaker, refusals=self._refusals)

    def _change_part(self, part: Part, is_added: bool) -> None:
        """Start to watch a part, or stop and drop its objects."""
        if not is_added:
            if task := self._tasks.pop(part.name, None):
                task.cancel()
            gone = self._informers.pop(part.name)
            self._received_before += gone.counts.received
            self._dropped_before += gone.counts.dropped
            gone.clear()
            return
        informer = self._informers[part.name] = self._make(part)
        informer.on_page = self._on_page
        for subscriber in self._subscribers:
            informer.subscribe(subscriber)
        if self._is_running:
            self._start(part.name)

    def _start(self, name: str) -> None:
        informer = self._informers[name]

        async def follow() -> None:
            await self._share.prepare()
            await informer.run()

        self._tasks[name] = keep_running(f"the cache of {self.resource.plural}", follow)

    @property
    def has_synced(self) -> bool:
        """Return whether every first list is complete."""
        if not self._has_synced or not self._share.is_fixed:
            self._has_synced = all(informer.has_synced for informer in self._informers.values())
        return self._has_synced

    @property
    def is_settled(self) -> bool:
        """Return whether every first list is complete, or was refused."""
        return self.has_synced or all(informer.is_settled for informer in self._informers.values())

    def has_settled(self, namespace: str) -> bool:
        """Return whether the first list of a namespace is complete, or was refused."""
        informer = self.informer_of(namespace)
        return informer is not None and informer.is_settled

    def have_settled(self, parts: Iterable[str]) -> bool:
        """Return whether the first lists of these parts are complete, or were refused."""
        informers = [self._informers.get(name) or self._informers.get("") for name in parts]
        return all(informer is not None and informer.is_settled for informer in informers)

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
        self._on_page = on_page
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

        An empty name means all. With shards they are named by their part.
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
        for informer in list(self._informers.values()):
            yield from informer.store

    def __len__(self) -> int:
        return sum(len(informer.store) for informer in self._informers.values())

    def informer_of(self, namespace: str) -> Informer[T] | None:
        """Return the informer of a namespace. None if it is not watched."""
        return self._informers.get("") or self._informers.get(self._share.part_of(namespace))

    def received(self) -> int:
        """Return the bytes of lists and watch events so far."""
        return self._received_before + sum(informer.counts.received for informer in self._informers.values())

    def dropped(self) -> int:
        """Return how many objects of other shards arrived so far."""
        return self._dropped_before + sum(informer.counts.dropped for informer in self._informers.values())

    def count_in(self, namespace: str) -> int:
        """Return the number of objects in a namespace."""
        informer = self.informer_of(namespace)
        return len(informer.store.in_namespace(namespace)) if informer else 0

    def informers(self) -> Iterator[tuple[str, Informer[T]]]:
        """Yield each informer with its namespace. An empty name means all."""
        yield from self._informers.items()

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Call `subscriber` with every change."""
        self._subscribers.append(subscriber)
        for informer in self._informers.values():
            informer.subscribe(subscriber)

    def note_written(self, namespace: str, resource_version: str) -> None:
        """Reject lists that are older than a write of this process."""
        informer = self.informer_of(namespace)
        if informer is not None:
            informer.note_written(resource_version)

    async def wait_synced(self) -> None:
        """Wait for the first lists."""
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    async def wait_settled(self) -> None:
        """Wait for the first lists, except for those that are refused."""
        for informer in list(self._informers.values()):
            await informer.wait_settled()

    async def wait_parts(self, names: Iterable[str]) -> None:
        """Wait for the first lists of these parts, as far as they are watched, except for refused ones."""
        for name in names:
            informer = self._informers.get(name) or self._informers.get("")
            if informer is not None:
                await informer.wait_settled()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        self._is_running = True
        try:
            for name in self._informers:
                self._start(name)
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            running, self._tasks = list(self._tasks.values()), {}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


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
            self._tasks.append(keep_running(f"the cache of {resource.plural}", informer.run))
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
