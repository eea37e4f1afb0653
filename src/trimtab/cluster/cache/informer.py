"""A cache of one resource that follows the server by list and watch.

The cache never goes back in time, unless lists stay older for a minute, as those of a restored server do. A partial list is never used as a whole one. A silent watch is detected within a
minute. Requests to a failing server back off, and start over from a short delay after each success.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.parts import Part
from trimtab.cluster.cache.store import Cache, CacheEvent, Delta, Index, Store, is_older, later
from trimtab.cluster.cache.watch import Watch, WatchBrokenError, WatchPace
from trimtab.cluster.client import EVERYTHING, PAGE_SIZE, Client, ListOptions
from trimtab.cluster.codec.objects import ListPage, Meta, Object, Unreadable, WatchEvent
from trimtab.cluster.resource import Resource, TransformedResource, resource_of
from trimtab.model.json.wire import WireError
from trimtab.pacing import Backoff, Breaker


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """What the cache keeps of an object that could not be decoded."""

    uid: str
    resource_version: str
    why: str


@dataclass(slots=True)
class InformerCounts:
    """Counters of an informer. Each is a metric."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    stale_events: int = 0
    received: int = 0
    """Bytes of lists and watch events."""
    dropped: int = 0
    """Objects of other shards that arrived in lists and watches."""
    stale_lists: int = 0
    failures: int = 0
    unreadable: dict[tuple[str, str], UnreadableObject] = field(default_factory=dict)
    """Objects on the server that could not be decoded, by namespace and name."""


class Refusals:
    """The informers of each namespace, and whether the server refuses them."""

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, bool]] = {}

    def note(self, namespace: str, resource: str, *, is_refused: bool) -> None:
        """Record the last answer of the server to one informer."""
        self._refused.setdefault(namespace, {})[resource] = is_refused

    def covers(self, namespace: str) -> bool:
        """Return whether every informer of the namespace is refused."""
        return all(self._refused.get(namespace, {}).values())


T = TypeVar("T", bound=Object)


class ListedObjects(Generic[T]):
    """A list under construction."""

    def __init__(self, known: Callable[[T], T]) -> None:
        self.objects: Store[T] = Store()
        self.unreadable: list[Unreadable] = []
        self.version = ""
        self.known = known
        """Returns the cached object of the same version, if there is one."""

    def add(self, page: ListPage[Any], unreadable: list[Unreadable]) -> tuple[list[T], list[Unreadable]]:
        """Add a page and objects that cannot be read, and return its objects and those that cannot be read."""
        arrived: list[T] = []
        for obj in page.items:
            if isinstance(obj, Unreadable):
                unreadable.append(obj)
            else:
                arrived.append(self.known(obj))
                self.objects.put(arrived[-1])
        self.unreadable += unreadable
        self.version = page.resource_version
        return arrived, unreadable


class ListProgress:
    """How far a list in pages has come."""

    def __init__(self) -> None:
        self._last = ""
        self._is_usable = True
        self._incomplete: set[str] = set()
        self._left_over: set[str] = set()

    def add(self, arrived: Iterable[Object], unreadable: Iterable[Unreadable] = ()) -> None:
        """Add the objects of a page, and those that cannot be read."""
        self._incomplete.update(obj.metadata.namespace for obj in unreadable)
        for obj in arrived:
            key = f"{obj.metadata.namespace}/{obj.metadata.name}"
            self._is_usable &= key > self._last
            self._last = key

    def begin_again(self, cached: Iterable[str]) -> None:
        """Count no namespace as complete, because the list failed. `cached` are those with objects of that list."""
        self._last, self._is_usable, self._incomplete = "", True, set()
        self._left_over.update(cached)

    def take_left_over(self) -> list[str]:
        """Return the namespaces that are complete now and may have objects of a failed list, each once."""
        complete = [namespace for namespace in self._left_over if self.covers(namespace)]
        self._left_over.difference_update(complete)
        return complete

    def covers(self, namespace: str) -> bool:
        """Return whether all objects of a namespace have arrived."""
        prefix = f"{namespace}/"
        return (
            self._is_usable
            and prefix < self._last
            and not self._last.startswith(prefix)
            and namespace not in self._incomplete
        )


log = logging.getLogger(__name__)


class Intake(Generic[T]):
    """The way of objects into the cache of one resource.

    An object that cannot be read is noted, and the last version of it that could be read stays cached.
    """

    def __init__(self, what: Resource[T] | TransformedResource[T], part: Part, cache: Cache[T]) -> None:
        self.resource = resource_of(what)
        self._reduce: Callable[[Any], T] | None = (
            what.reduce if isinstance(what, TransformedResource) else None
        )
        self._part = part
        self._cache = cache
        self.counts = InformerCounts()

    def drops(self, meta: Meta) -> bool:
        """Return whether an object belongs to another part."""
        if self._part.accepts(meta.namespace):
            return False
        self.counts.dropped += 1
        self._part.note_dropped(meta.namespace)
        return True

    def dropped(self, event: WatchEvent[Any]) -> Meta | None:
        """Return the metadata of an event's object if that belongs to another part."""
        if not self._part.is_filtered:
            return None
        sent = event.object if event.object is not None else event.unreadable
        if sent is None or not self.drops(sent.metadata):
            return None
        meta: Meta = sent.metadata
        return meta

    def read_listed(self, whole: Any) -> T | Unreadable | None:
        """Return what is cached of a listed object, or None for an object of another part."""
        if self._part.is_filtered and self.drops(whole.metadata):
            return None
        return self._transform(whole)

    def read_event(self, event: WatchEvent[Any]) -> T | Unreadable | None:
        """Return what is cached of an event's object, or None if it has none."""
        if event.object is None:
            return event.unreadable
        if event.type == "DELETED":
            # Only its metadata counts, so that an object that cannot be reduced does not outlive its deletion.
            deleted: T = event.object
            return deleted
        return self._transform(event.object)

    def _transform(self, whole: Any) -> T | Unreadable:
        """Apply the transform to an object. A failure affects only this object."""
        if self._reduce is None:
            obj: T = whole
            return obj
        try:
            return self._reduce(whole)
        except WireError as error:
            return Unreadable(whole.metadata, str(error))
        except Exception as error:  # noqa: BLE001 - whatever an object makes it trip over, the others are kept
            return Unreadable(whole.metadata, f"{type(error).__name__}: {error}")

    def replace(self, listed: ListedObjects[T]) -> None:
        """Replace the cached objects by those of a complete list."""
        before, self.counts.unreadable = self.counts.unreadable, {}
        for unreadable in listed.unreadable:
            self._note_unreadable(unreadable, before)
        kept = {key: note.uid for key, note in self.counts.unreadable.items()}
        self._cache.replace(listed.objects, kept)

    def is_stale(self, kind: str, meta: Meta, as_of: str) -> bool:
        """Return whether an event is older than the cached object, or a copy. The cache is as of version `as_of`."""
        version, known = meta.resource_version, self._known(meta)
        if known is not None and known[0] == meta.uid:
            # Some servers send a deletion with the object's last version, so an equal one is no duplicate.
            duplicate = kind != "DELETED" and version == known[1]
            return duplicate or is_older(version, known[1])
        if kind == "DELETED" and known is None:
            return True  # the second copy
        if not is_older(version, as_of):
            return False
        if kind != "DELETED":
            # A late event of a deleted object, or an event out of order. Only a new list can decide.
            raise WatchBrokenError(
                f"{self.resource.plural} {meta.key}: an event as of version {version} came after {as_of}; listing again",
                list_again=True,
            )
        return True

    def _known(self, meta: Meta) -> tuple[str, str] | None:
        """Return uid and version of the object of that name. An unreadable version is newer."""
        note = self.counts.unreadable.get((meta.namespace, meta.name))
        if note is not None:
            return note.uid, note.resource_version
        old = self._cache.store.get(meta.name, meta.namespace)
        return None if old is None else (old.metadata.uid, old.metadata.resource_version)

    def apply(self, kind: str, obj: T | Unreadable) -> None:
        """Apply an event that is not stale."""
        meta: Meta = obj.metadata
        old = self._cache.store.get(meta.name, meta.namespace)
        if kind == "DELETED":
            self.counts.unreadable.pop((meta.namespace, meta.name), None)
        else:
            self._keep(obj)
        if old is not None and (kind == "DELETED" or _is_replaced(old, obj)):
            self._cache.delete(old)

    def _keep(self, obj: T | Unreadable) -> None:
        if isinstance(obj, Unreadable):
            self._note_unreadable(obj, self.counts.unreadable)
        else:
            self.counts.unreadable.pop((obj.metadata.namespace, obj.metadata.name), None)
            self._cache.put(obj)

    def _note_unreadable(
        self, unreadable: Unreadable, before: dict[tuple[str, str], UnreadableObject]
    ) -> None:
        """Keep a note of the object, and log it unless it was already noted for this reason."""
        meta, why = unreadable.metadata, unreadable.why
        key = meta.namespace, meta.name
        known = before.get(key)
        self.counts.unreadable[key] = UnreadableObject(meta.uid, meta.resource_version, why)
        if known is None or (known.uid, known.why) != (meta.uid, why):
            log.warning("%s %s is left out of the cache: %s", self.resource.plural, meta.key, why)


def _is_replaced(old: Object, new: Object | Unreadable) -> bool:
    """Return whether `old` was deleted unseen, and an object that cannot be read has its name."""
    return isinstance(new, Unreadable) and old.metadata.uid != new.metadata.uid


STALE_AFTER = 60.0
"""Seconds without a sign from the server after which a cache may lack changes that matter (fault F04)."""

GONE_AFTER = 120.0
"""Seconds after which objects count as gone, if their kind is not served or their whole namespace is refused."""

RESTORED_AFTER = STALE_AFTER
"""Seconds after which a server whose lists are older than the cache counts as restored from a backup, and not as lagging."""

FIRST_LIST = "the first list is not complete"
"""Why a cache is stale before its first list."""

STEADY_SECONDS = 1.0
"""How long a watch after a failure is open before the server counts as back."""

FIRST_DELAY, LONGEST_DELAY, RESET_AFTER = 0.8, 30.0, 120.0
"""Seconds between tries after failures, as in client-go."""

LONGEST_RELIST_DELAY = 5.0
"""The longest delay in seconds before a relist that the server asked for."""

RELIST_SHARE = 5.0
"""Relists that follow each other are apart by this many times the duration of the last list."""

PROBE_SECONDS = 5.0
"""While the server fails one informer of a process tries so often, whichever waits. The first that succeeds ends the
waits of the others, so that the end of an outage is noticed within these seconds."""

SPREAD_SECONDS = 1.0
"""The time over which informers spread their requests after the server is back."""


def outage_breaker(clock: Clock) -> Breaker:
    """Return a breaker for informers that share it."""
    return Breaker(Backoff(clock, first=PROBE_SECONDS, longest=PROBE_SECONDS), trips=1)


class StaleListError(errors.ClusterError):
    """A list is older than the cache, because the server lags or was restored."""


class Informer(Generic[T]):
    """The cache of a resource. `run` keeps it up to date until cancelled."""

    def __init__(
        self,
        client: Client,
        what: Resource[T] | TransformedResource[T],
        selection: ListOptions | Part = EVERYTHING,
        *,
        pace: WatchPace | None = None,
        page_size: int = PAGE_SIZE,
        breaker: Breaker | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self.last_error: str | None = None
        self._refusal: errors.ApiError | None = None
        self._refusals = refusals or Refusals()
        self._client = client
        self._clock = client.clock
        self._part = selection if isinstance(selection, Part) else Part("")
        if isinstance(selection, Part):
            selection = ListOptions(namespace=selection.namespace or None)
        self._cache: Cache[T] = Cache()
        self._intake = Intake(what, self._part, self._cache)
        self.resource, self.counts = self._intake.resource, self._intake.counts
        # No cached type has managedFields.
        self._selection = selection = replace(selection, drops_managed_fields=True)
        self._asked_fields = ""
        self._namespace = selection.namespace or ""
        self._page_size = page_size
        self._watch = Watch(client, self.resource, selection, pace or WatchPace(), self._on_open)
        self._steady: asyncio.TimerHandle | None = None
        self._breaker = breaker or outage_breaker(self._clock)
        self._failures = self._backoff(LONGEST_DELAY)
        self._relists = self._backoff(LONGEST_RELIST_DELAY)
        self._may_relist_at_once = True
        self._list_seconds = 0.0
        """The duration of the last list."""
        self._version: str | None = None
        self._highest = ""
        self._older_since: float | None = None
        """Since when the server lists older versions than it did."""
        self._fresh_at = client.clock.monotonic()
        self._synced = asyncio.Event()
        self._settled = asyncio.Event()
        self._progress = ListProgress()
        self.on_page: Callable[[], None] | None = None
        """Called after each page of the first list. The objects of a page are then cached when it arrives."""
        self._is_emptied = False
        self._is_reported = False
        self._note_refusal(None)

    @property
    def store(self) -> Store[T]:
        """Return the cached objects."""
        return self._cache.store

    @property
    def has_synced(self) -> bool:
        """Return whether the first list is complete."""
        return self._synced.is_set()

    def has_listed(self, namespace: str) -> bool:
        """Return whether all objects of a namespace are cached. With `on_page` the list may still go on."""
        return self.has_synced or self._progress.covers(namespace)

    @property
    def is_refused(self) -> bool:
        """Return whether the server refuses the list, so that there is nothing to wait for.

        A kind that the server does not serve has no objects. A namespace that may not be listed was deleted together
        with its RoleBindings, or is not to be acted on. A right that is missing in all namespaces is a mistake instead.
        """
        is_scoped = bool(self._namespace)
        return isinstance(self._refusal, errors.NotFound) or (is_scoped and self._refusal is not None)

    @property
    def is_absent(self) -> bool:
        """Return whether the server does not serve the kind, so that the empty cache is complete."""
        return isinstance(self._refusal, errors.NotFound) and (self._is_emptied or not self.has_synced)

    @property
    def is_forbidden(self) -> bool:
        """Return whether this client may not list or watch the kind."""
        return isinstance(self._refusal, errors.Forbidden)

    @property
    def is_settled(self) -> bool:
        """Return whether the first list is complete, or was refused."""
        return self._settled.is_set()

    @property
    def resource_version(self) -> str:
        """Return the resourceVersion of the cache. It is empty before the first list."""
        return self._version or self._highest

    async def wait_synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    async def wait_settled(self) -> None:
        """Wait for the first list, or until it is refused."""
        await self._settled.wait()

    def stale_reason(self) -> str:
        """Return why the cache may lack recent changes, or "" if it is complete and fresh.

        The text stays the same for as long as the cause does.
        """
        if self.has_synced and not self._is_emptied and self.staleness() <= STALE_AFTER:
            return ""
        if self._refusal is not None:
            return self._refusal.message or str(self._refusal)
        if not self.has_synced:
            return FIRST_LIST
        return f"no sign from the server for more than {STALE_AFTER:.0f} s"

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

    def clear(self) -> None:
        """Drop all objects, as deleted, and end all waits. Cancel `run` first."""
        self._settled.set()
        self._cache.replace(Store(), {})

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
                await self._wait_out(WatchBrokenError(str(error), list_again=True))

    async def _wait_out(self, error: Exception) -> None:
        self.counts.failures += 1
        self._begin_again()
        self.last_error = str(error)
        self._part.note_failure(error, self._asked_fields)
        self._note_refusal(error if isinstance(error, errors.Forbidden | errors.NotFound) else None)
        self._report_stale()
        if self.is_refused:
            self._take_refusal()
        delay = self._delay_after(error)
        log.debug("%s: %s; trying again in %.1f s", self.resource.plural, error, delay)
        if isinstance(error, errors.TransportError | errors.ServerError | errors.Unauthorized):
            await self._wait_for_server(delay)
        else:
            await self._clock.sleep(delay)

    async def _wait_for_server(self, delay: float) -> None:
        """Wait, but at most until another informer reaches the server, or until this one may probe it."""
        breaker = self._breaker
        breaker.failed()
        until = self._clock.monotonic() + delay
        while (now := self._clock.monotonic()) < until and not breaker.admit():
            with suppress(TimeoutError):
                async with asyncio.timeout(min(until, breaker.backoff.until) - now):
                    await breaker.closed.wait()
            if not breaker.is_open:
                await self._clock.sleep(SPREAD_SECONDS * self._client.sender.random.random())
                return

    def _report_stale(self) -> None:
        """Log once that the server refuses the kind, or that the cache is stale."""
        if not self._is_reported and (self._refusal is not None or self.staleness() > STALE_AFTER):
            self._is_reported = True
            log.warning("%s: the cache may lack changes: %s", self._name, self.last_error)

    @property
    def _name(self) -> str:
        where = f" of {self._namespace}" if self._namespace else ""
        return f"{self.resource.plural}{where}"

    def _take_refusal(self) -> None:
        """End the wait for the first list. Drop the objects once they count as gone."""
        self._settled.set()
        is_gone = isinstance(self._refusal, errors.NotFound) or self._refusals.covers(self._namespace)
        if is_gone and self.has_synced and not self._is_emptied and self.staleness() > GONE_AFTER:
            log.warning("%s are no longer served here: %s", self.resource.plural, self.last_error)
            self._is_emptied, self._version, self.counts.unreadable = True, None, {}
            self._cache.replace(Store(), {})

    def _note_refusal(self, refusal: errors.ApiError | None) -> None:
        self._refusal = refusal
        name = f"{self.resource.plural}.{self.resource.group}"
        self._refusals.note(self._namespace, name, is_refused=refusal is not None)

    def _delay_after(self, error: Exception) -> float:
        is_broken = isinstance(error, WatchBrokenError) and error.list_again
        if isinstance(error, errors.ServerTimeout) and error.is_too_large_version:
            self._version = None  # a list tells whether the server lags or was restored
        if is_broken or isinstance(error, errors.Gone):
            self._version = None
            # What broke a watch may come again with every event, so such a relist always waits.
            is_at_once = self._may_relist_at_once and not is_broken
            self._may_relist_at_once = False
            return 0.0 if is_at_once else max(self._relists.failed(), RELIST_SHARE * self._list_seconds)
        delay = self._failures.failed()
        retry_after = error.retry_after if isinstance(error, errors.ApiError) else None
        return max(delay, retry_after or 0.0)

    def _backoff(self, longest: float) -> Backoff:
        jitter = self._client.sender.random
        return Backoff(
            self._clock, first=FIRST_DELAY, longest=longest, jitter=jitter, reset_after=RESET_AFTER
        )

    async def _list(self) -> None:
        self.counts.lists += 1
        started_at = self._clock.monotonic()
        try:
            listing = await self._read_pages(self._page_size)
        except errors.Gone:
            # The continue token expired between pages: list again without pages.
            self.counts.lists += 1
            self._begin_again()
            listing = await self._read_pages(0)
        self._list_seconds = self._clock.monotonic() - started_at
        self._replace(listing)

    async def _read_pages(self, limit: int) -> ListedObjects[T]:
        listed: ListedObjects[T] = ListedObjects(self._cache.known)
        asked = self._client.pages(
            self.resource, self._options(), limit=limit, retry=False, reduce=self._intake.read_listed
        )
        async with aclosing(asked) as pages:
            async for page in pages:
                self._add_page(listed, page)
                del page  # its objects are not to wait for the next one
        return listed

    def _options(self) -> ListOptions:
        """Return what to select now. Which namespaces are left out changes while an informer runs."""
        self._asked_fields = self._part.fields()
        fields = ",".join(filter(None, (self._selection.fields, self._asked_fields)))
        return (
            self._selection if fields == self._selection.fields else replace(self._selection, fields=fields)
        )

    def _add_page(self, listed: ListedObjects[T], page: ListPage[Any]) -> None:
        if is_older(page.resource_version, self._highest):
            self._accept_older(page.resource_version)
            listed.known = lambda obj: obj  # the server may have given the same version to another state
        self.counts.received += page.size
        unreadable = [obj for obj in page.unreadable if not self._intake.drops(obj.metadata)]
        arrived, unreadable = listed.add(page, unreadable)
        if self.on_page is not None and not self.has_synced:
            for obj in arrived:
                self._cache.put(obj)
            self._progress.add(arrived, unreadable)
            self._drop_left_over(listed)
            self.on_page()

    def _accept_older(self, version: str) -> None:
        """Go back to an older version of a restored server. Raise StaleListError if the server may only lag."""
        self.counts.stale_lists += 1
        now = self._clock.monotonic()
        self._older_since = now if self._older_since is None else self._older_since
        seen = f"the server answered as of version {version}, we have seen {self._highest}"
        if now - self._older_since < RESTORED_AFTER:
            raise StaleListError(f"{self.resource.plural}: {seen}; waiting for it to catch up")
        log.warning("%s: %s for a minute; it counts as restored from a backup", self._name, seen)
        self._highest = version

    def _begin_again(self) -> None:
        """Wait for the next list, if the first one failed. What it left stays cached until that list covers it."""
        if not self.has_synced:
            self._progress.begin_again(self.store.namespaces())

    def _drop_left_over(self, listed: ListedObjects[T]) -> None:
        """Drop objects of a failed list that are gone, in the namespaces that are complete now."""
        for namespace in self._progress.take_left_over():
            there = listed.objects.in_namespace(namespace)
            for old in list(self.store.in_namespace(namespace).values()):
                if old.metadata.name not in there:
                    self._cache.delete(old)

    def _replace(self, listed: ListedObjects[T]) -> None:
        self._intake.replace(listed)
        self._version = listed.version
        self._older_since = None
        self._highest = later(self._highest, listed.version)
        self._failures.succeeded()
        self._is_emptied = False
        self._proved_fresh()
        self._settled.set()
        if not self.has_synced:
            self._synced.set()
            self._cache.notify(Delta(CacheEvent.SYNCED))

    async def _follow(self) -> None:
        assert self._version is not None
        self.counts.watches += 1
        is_doubtful = self.last_error is not None
        try:
            self._watch.selection = self._options()
            async with aclosing(self._watch.events(self._version, is_doubtful=is_doubtful)) as events:
                async for event in events:
                    self._take(event)
        finally:
            if self._steady is not None:
                self._steady.cancel()
            if self._watch.worked:
                self._failures.succeeded()
                self._relists.succeeded()
                self._may_relist_at_once = True
        if self._watch.ran_its_time:
            # The server ended the watch at its timeout.
            self._proved_fresh()

    def _on_open(self) -> None:
        """Let the other informers try again too, if a watch after a failure stays open."""
        if self.last_error is not None:
            self._steady = asyncio.get_running_loop().call_later(STEADY_SECONDS, self._breaker.passed)

    def _take(self, event: WatchEvent[Any]) -> None:
        self.counts.received += event.size
        dropped = self._intake.dropped(event)
        if dropped is not None:
            # It still shows how far the watch is.
            self._note_progress()
            self._advance(dropped.resource_version)
            return
        obj = self._intake.read_event(event)
        if obj is not None:
            self._apply(event.type, obj)
        elif is_older(event.bookmark, self._version or ""):
            raise WatchBrokenError(
                f"{self.resource.plural}: the server went back to version {event.bookmark}", list_again=True
            )
        elif event.bookmark:
            self._advance(event.bookmark)
        else:
            log.warning(
                "%s: a watch event of the unknown type %r is ignored", self.resource.plural, event.type
            )

    def _apply(self, kind: str, obj: T | Unreadable) -> None:
        """Apply an event unless it is older than the cached object."""
        meta: Meta = obj.metadata
        if not meta.name or not meta.resource_version:
            raise WatchBrokenError(
                f"{self.resource.plural}: an event about an object without name or version", list_again=True
            )
        if self._intake.is_stale(kind, meta, self._version or ""):
            self.counts.stale_events += 1
            return
        self.counts.events += 1
        self._note_progress()
        self._intake.apply(kind, obj)
        self._advance(meta.resource_version)

    def _note_progress(self) -> None:
        self._watch.progressed()
        self._failures.succeeded()

    def _advance(self, version: str) -> None:
        before, self._version = self._version, later(self._version or "", version)
        self._highest = self._version if self._highest == before else later(self._highest, version)
        self._proved_fresh()

    def _proved_fresh(self) -> None:
        self._fresh_at = self._clock.monotonic()
        if self._is_reported:
            self._is_reported = False
            log.info("%s: the cache is up to date again", self._name)
        if self.last_error is not None:
            self.last_error = None
            self._note_refusal(None)
            self._breaker.passed()
