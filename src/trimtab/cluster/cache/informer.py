"""A cache of one resource that follows the server by list and watch.

The cache never goes back in time. A partial list is never used as a whole one. A silent watch is detected within a
minute. Requests to a failing server back off.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from trimtab.cluster import errors
from trimtab.cluster.cache.codec import ListPage, Object, Unreadable, WatchEvent
from trimtab.cluster.cache.store import Index, Store, is_older, later
from trimtab.cluster.cache.subscriptions import Cache, CacheEvent, Delta
from trimtab.cluster.cache.watch import Watch, WatchBrokenError, WatchPace
from trimtab.cluster.client import EVERYTHING, PAGE_SIZE, Client, ListOptions
from trimtab.cluster.resource import Resource, TransformedResource
from trimtab.cluster.transport.rate_limits import Backoff

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class InformerCounts:
    """Counters of an informer. Each is a metric."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    stale_events: int = 0
    stale_lists: int = 0
    failures: int = 0
    unreadable: dict[tuple[str, str], str] = field(default_factory=dict)
    """Objects that could not be decoded, by namespace and name, with the reason."""


class StaleListError(errors.ClusterError):
    """A list is older than the cache, because the server lags."""


class Informer(Generic[T]):
    """The cache of a resource. `run` keeps it up to date until cancelled."""

    def __init__(
        self,
        client: Client,
        what: Resource[T] | TransformedResource[T],
        selection: ListOptions = EVERYTHING,
        *,
        pace: WatchPace | None = None,
        page_size: int = PAGE_SIZE,
    ) -> None:
        resource: Resource[Any] = what.resource if isinstance(what, TransformedResource) else what
        self.resource = resource
        self._reduce = what.reduce if isinstance(what, TransformedResource) else None
        self.counts = InformerCounts()
        self.last_error: str | None = None
        self._client = client
        self._clock = client.clock
        self._selection = selection
        self._page_size = page_size
        self._watch = Watch(client, resource, selection, pace or WatchPace())
        self._backoff = Backoff(client.clock, client.sender.random)
        self._cache: Cache[T] = Cache()
        self._version: str | None = None
        self._highest = ""
        self._fresh_at = client.clock.monotonic()
        self._synced = asyncio.Event()

    @property
    def store(self) -> Store[T]:
        """Return the cached objects."""
        return self._cache.store

    @property
    def has_synced(self) -> bool:
        """Return whether the first list is complete."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """Return the resourceVersion of the cache. It is empty before the first list."""
        return self._version or self._highest

    async def wait_synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    def staleness(self) -> float:
        """Return the seconds since the cache was last verified to be up to date."""
        return self._clock.monotonic() - self._fresh_at

    def add_index(self, index: Index[T]) -> None:
        """Add an index and fill it with the cached objects."""
        self._cache.add_index(index)

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Call `subscriber` for every change. Cached objects come first, as added."""
        self._cache.subscribe(subscriber)
        if self.has_synced:
            subscriber(Delta(CacheEvent.SYNCED))

    def note_written(self, resource_version: str) -> None:
        """Record the resourceVersion of one of our own writes. Older lists are then rejected."""
        self._highest = later(self._highest, resource_version)

    async def run(self) -> None:
        """Follow the server until cancelled. Failures are retried and never raised."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._follow()
            except (errors.ClusterError, WatchBrokenError) as error:
                await self._wait_out(error)
            except Exception as error:
                # Nothing a server sends may end the cache: start over from a list, at the usual pace.
                log.exception("%s: unexpected; listing again", self.resource.plural)
                self._version = None
                await self._wait_out(error)

    async def _wait_out(self, error: Exception) -> None:
        self.counts.failures += 1
        self.last_error = str(error)
        if isinstance(error, errors.Gone) or (isinstance(error, WatchBrokenError) and error.list_again):
            self._version = None
        delay = self._backoff.delay()
        if isinstance(error, errors.ApiError) and error.retry_after:
            delay = max(delay, error.retry_after)
        log.debug("%s: %s; trying again in %.1f s", self.resource.plural, error, delay)
        await self._clock.sleep(delay)

    async def _list(self) -> None:
        self.counts.lists += 1
        try:
            listing = await self._read_pages(self._page_size)
        except errors.Gone:
            # The continue token expired between pages: list again without pages.
            self.counts.lists += 1
            listing = await self._read_pages(0)
        self._replace(listing)

    async def _read_pages(self, limit: int) -> "_Listed[T]":
        listed: _Listed[T] = _Listed()
        asked = self._client.pages(self.resource, self._selection, limit=limit, retry=False)
        async with aclosing(asked) as pages:
            async for page in pages:
                self._add_page(listed, page)
                del page  # its whole objects are not to wait for the next one
        return listed

    def _add_page(self, listed: "_Listed[T]", page: ListPage[Any]) -> None:
        if is_older(page.resource_version, self._highest):
            self.counts.stale_lists += 1
            raise StaleListError(
                f"{self.resource.plural}: the server answered as of version {page.resource_version}, "
                f"we have seen {self._highest}; waiting for it to catch up"
            )
        listed.unreadable += page.unreadable
        for whole in page.items:
            obj = self._transform(whole)
            if isinstance(obj, Unreadable):
                listed.unreadable.append(obj)
            else:
                listed.objects.put(self._cache.known(obj))
        listed.version = page.resource_version

    def _replace(self, listed: "_Listed[T]") -> None:
        self.counts.unreadable.clear()
        for unreadable in listed.unreadable:
            self._skip(unreadable)
        self._cache.replace(listed.objects, self.counts.unreadable)
        self._version = listed.version
        self._highest = later(self._highest, listed.version)
        self._proved_fresh()
        if not self.has_synced:
            self._synced.set()
            self._cache.notify(Delta(CacheEvent.SYNCED))

    async def _follow(self) -> None:
        assert self._version is not None
        self.counts.watches += 1
        is_doubtful = self.last_error is not None
        async with aclosing(self._watch.events(self._version, is_doubtful=is_doubtful)) as events:
            async for event in events:
                self._take(event)
        if self._watch.ran_its_time:
            # The server ended the watch at its timeout.
            self._proved_fresh()

    def _take(self, event: WatchEvent[Any]) -> None:
        obj = event.unreadable if event.object is None else self._transform(event.object)
        if isinstance(obj, Unreadable):
            self._skip(obj)
            self._advance(obj.metadata.resource_version)
        elif obj is not None:
            self._apply(event.type, obj)
        elif event.bookmark:
            self._advance(event.bookmark)
        else:
            log.warning(
                "%s: a watch event of the unknown type %r is ignored", self.resource.plural, event.type
            )

    def _transform(self, whole: Any) -> T | Unreadable:
        """Apply the transform to an object. A failure affects only this object."""
        if self._reduce is None:
            obj: T = whole
            return obj
        try:
            return self._reduce(whole)
        except Exception as error:  # noqa: BLE001 - whatever an object makes it trip over, the others are kept
            return Unreadable(whole.metadata, f"{type(error).__name__}: {error}")

    def _apply(self, kind: str, obj: T) -> None:
        """Apply an event unless it is older than the cached object."""
        meta = obj.metadata
        if not meta.name or not meta.resource_version:
            raise WatchBrokenError(
                f"{self.resource.plural}: an event about an object without name or version", list_again=True
            )
        old = self.store.get(meta.name, meta.namespace)
        if self._is_stale(kind, obj, old):
            self.counts.stale_events += 1
            return
        self.counts.events += 1
        self._watch.progressed()
        self.counts.unreadable.pop((meta.namespace, meta.name), None)
        if kind != "DELETED":
            self._cache.put(obj)
        elif old is not None:
            self._cache.delete(old)
        self._advance(meta.resource_version)

    def _is_stale(self, kind: str, obj: T, old: T | None) -> bool:
        version = obj.metadata.resource_version
        if old is not None and old.metadata.uid == obj.metadata.uid:
            # Some servers send a deletion with the object's last version, so an equal one is no duplicate.
            duplicate = kind != "DELETED" and version == old.metadata.resource_version
            return duplicate or is_older(version, old.metadata.resource_version)
        if kind == "DELETED" and old is None:
            # News only about an object that we could not read; for any other it is the second copy.
            return (obj.metadata.namespace, obj.metadata.name) not in self.counts.unreadable
        if not is_older(version, self._version or ""):
            return False
        if kind != "DELETED":
            # A late event of a deleted object, or an event out of order. Only a new list can decide.
            raise WatchBrokenError(
                f"{self.resource.plural} {obj.metadata.key}: an event as of version {version} came after "
                f"{self._version}; listing again",
                list_again=True,
            )
        return True

    def _advance(self, version: str) -> None:
        self._version = later(self._version or "", version)
        self._highest = later(self._highest, version)
        self._proved_fresh()

    def _proved_fresh(self) -> None:
        self._fresh_at = self._clock.monotonic()
        self.last_error = None

    def _skip(self, unreadable: Unreadable) -> None:
        meta = unreadable.metadata
        self.counts.unreadable[meta.namespace, meta.name] = unreadable.why
        log.warning("%s %s is left out of the cache: %s", self.resource.plural, meta.key, unreadable.why)


class _Listed(Generic[T]):
    """A list under construction."""

    def __init__(self) -> None:
        self.objects: Store[T] = Store()
        self.unreadable: list[Unreadable] = []
        self.version = ""
