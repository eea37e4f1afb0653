"""Encoded objects in memory, with one version counter, an index of owners, and the recent changes that watches follow.

An object is stored as the bytes that a read sends. Decoding gives each caller its own copy, so a stored object cannot be
changed by accident. All writes pass `commit` and `remove`, which number them, add them to the watch cache and call the
listeners (controllers, garbage collection, disruption budgets, custom resource definitions).

A stream has a bounded queue. A stream that does not keep up ends with 410, like a client of a real server whose watch
cache moved on. Each event is encoded once per form, however many streams carry it.
"""

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from trimtab_lab.storage.codec import JsonObject, decode, encode

Action = Literal["ADDED", "MODIFIED", "DELETED"]
#: Events kept per resource for watches that resume and for lists at an older version.
HISTORY = 8192
#: Events a stream may lag behind before it expires.
BACKLOG = 16384


class WatchCacheEvent:
    """A stored write: the object after it (or last, when deleted) and before it."""

    __slots__ = ("_lines", "action", "entry", "previous", "version")

    def __init__(self, action: Action, entry: "Entry", previous: "Entry | None", version: int) -> None:
        self.action = action
        self.entry = entry
        self.previous = previous
        self.version = version
        self._lines: dict[str, bytes] = {}

    def line(self, action: str, form: str | None, render: Callable[["Entry"], bytes]) -> bytes:
        """Return this change as a line of a watch stream, encoded once per form."""
        if form is None:
            return event_line(action, render(self.entry))
        key = action + form
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = event_line(action, render(self.entry))
        return line


def event_line(action: str, raw: bytes) -> bytes:
    """Return an encoded object as a line of a watch stream."""
    return b'{"type":"' + action.encode() + b'","object":' + raw + b"}\n"


class WatchStream:
    """A queue of changes in one namespace, or in all."""

    def __init__(self, namespace: str, backlog: int) -> None:
        self.namespace = namespace
        self.is_expired = False
        self._backlog = backlog
        self._queue: deque[WatchCacheEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def push(self, change: WatchCacheEvent) -> None:
        """Queue a change, or expire the stream when it lags too far behind."""
        if self.is_expired:
            return
        if len(self._queue) >= self._backlog:
            self._queue.clear()
            self.is_expired = True
        else:
            self._queue.append(change)
        self._wake()

    def expire(self) -> None:
        """End the stream after the changes that are already queued."""
        self.is_expired = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None:
            _finish(self._waiter)

    def drain(self) -> Iterator[WatchCacheEvent]:
        """Yield the queued changes."""
        while self._queue:
            yield self._queue.popleft()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for changes, and return False if the time is up first."""
        if self._queue or self.is_expired:
            return True
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _finish, self._waiter) if seconds is not None else None
        try:
            await self._waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiter = None
        return bool(self._queue) or self.is_expired


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class WatchCache:
    """The recent changes of a resource and its open streams."""

    def __init__(self, keep: int = HISTORY) -> None:
        self._changes: deque[WatchCacheEvent] = deque(maxlen=keep)
        #: All changes after this version are cached.
        self.oldest = 0
        #: In the order of their start, which a set would not keep: the first stream to wake decides what happens next.
        self._streams: dict[str, dict[WatchStream, None]] = {}

    def add(self, change: WatchCacheEvent) -> None:
        """Cache a change and push it to the streams."""
        if len(self._changes) == self._changes.maxlen:
            self.oldest = self._changes[0].version
        self._changes.append(change)
        namespace = change.entry.namespace
        for key in ("", namespace) if namespace else ("",):
            for stream in self._streams.get(key, ()):
                stream.push(change)

    def since(self, version: int) -> list[WatchCacheEvent]:
        """Return the changes after `version`. The caller has compared it with `oldest`."""
        changes: list[WatchCacheEvent] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def watch(self, namespace: str, backlog: int = BACKLOG) -> WatchStream:
        """Start a stream of the changes from now on."""
        stream = WatchStream(namespace, backlog)
        self._streams.setdefault(namespace, {})[stream] = None
        return stream

    def stop(self, stream: WatchStream) -> None:
        streams = self._streams.get(stream.namespace)
        if streams is not None:
            streams.pop(stream, None)
            if not streams:
                del self._streams[stream.namespace]

    def expire_all(self) -> None:
        """End every stream, as when the resource is no longer served."""
        for streams in self._streams.values():
            for stream in streams:
                stream.expire()

    @property
    def stream_count(self) -> int:
        return sum(len(streams) for streams in self._streams.values())


Listener = Callable[[str, WatchCacheEvent], None]


def key_of(obj: JsonObject) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


class Entry:
    """One version of an object: its bytes, and what selectors and the garbage collector read of it."""

    __slots__ = (
        "fields",
        "is_deleting",
        "key",
        "labels",
        "name",
        "namespace",
        "owners",
        "raw",
        "uid",
        "version",
    )

    def __init__(self, obj: JsonObject, fields: Mapping[str, str], version: int) -> None:
        meta = obj["metadata"]
        self.name: str = meta["name"]
        self.namespace: str = meta.get("namespace", "")
        self.key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        self.uid: str = meta.get("uid", "")
        self.labels: Mapping[str, str] = meta.get("labels") or {}
        self.fields = fields
        self.owners: tuple[str, ...] = tuple(ref.get("uid", "") for ref in meta.get("ownerReferences") or ())
        self.is_deleting = "deletionTimestamp" in meta
        self.version = version
        self.raw = encode(obj)

    def decoded(self) -> JsonObject:
        """Return a copy of the object that the caller may change."""
        obj: JsonObject = decode(self.raw)
        return obj


class ResourceStore:
    """All objects of a resource, in key order."""

    def __init__(self, resource: str, keep: int) -> None:
        self.resource = resource
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.watch_cache = WatchCache(keep)

    def all(self, namespace: str = "") -> list[Entry]:
        """Return the objects of a namespace, or all, in key order."""
        if not namespace:
            return [self.entries[key] for key in self.keys]
        low = bisect_left(self.keys, namespace + "/")
        high = bisect_left(self.keys, namespace + "0")  # "0" follows "/" in ASCII
        return [self.entries[key] for key in self.keys[low:high]]

    def list_at(self, version: int, namespace: str) -> list[Entry]:
        """Return the objects as they were at `version`, by undoing later changes."""
        later = self.watch_cache.since(version)
        if not later:
            return self.all(namespace)
        past = dict(self.entries)
        for change in reversed(later):
            if change.previous is None:
                past.pop(change.entry.key, None)
            else:
                past[change.entry.key] = change.previous
        return [past[key] for key in sorted(past) if not namespace or past[key].namespace == namespace]


class ObjectStore:
    """The objects of all resources under one version counter."""

    def __init__(self, keep: int = HISTORY) -> None:
        self.version = 1
        self._keep = keep
        self._resources: dict[str, ResourceStore] = {}
        self._listeners: list[Listener] = []
        self._by_uid: dict[str, tuple[str, str]] = {}
        self._dependents: dict[str, set[tuple[str, str]]] = {}

    def resource(self, name: str) -> ResourceStore:
        """Return the objects of a resource (`deployments.apps`)."""
        objects = self._resources.get(name)
        if objects is None:
            objects = self._resources[name] = ResourceStore(name, self._keep)
        return objects

    def resources(self) -> list[ResourceStore]:
        return list(self._resources.values())

    def get(self, resource: str, key: str) -> Entry | None:
        """Return the current version of an object."""
        return self.resource(resource).entries.get(key)

    def by_uid(self, uid: str) -> tuple[str, Entry] | None:
        place = self._by_uid.get(uid)
        if place is None:
            return None
        entry = self.get(*place)
        return (place[0], entry) if entry is not None else None

    def dependents(self, uid: str) -> list[tuple[str, Entry]]:
        """Return the objects that name `uid` as an owner, in a stable order."""
        places = sorted(self._dependents.get(uid, ()))
        return [
            (resource, entry) for resource, key in places if (entry := self.get(resource, key)) is not None
        ]

    def listen(self, listener: Listener) -> None:
        """Call `listener(resource, change)` after each write."""
        self._listeners.append(listener)

    def commit(self, resource: str, obj: JsonObject, fields: Mapping[str, str]) -> Entry:
        """Write an object with the next version."""
        objects = self.resource(resource)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(obj, fields, self.version)
        previous = objects.entries.get(entry.key)
        objects.entries[entry.key] = entry
        if previous is None:
            insort(objects.keys, entry.key)
            self._by_uid[entry.uid] = (resource, entry.key)
        self._index_owners(resource, entry, previous)
        self._record(objects, "ADDED" if previous is None else "MODIFIED", entry, previous)
        return entry

    def remove(self, resource: str, key: str, last: JsonObject | None = None) -> Entry:
        """Remove an object. Its last event carries the version of the removal, as upstream's does."""
        objects = self.resource(resource)
        previous = objects.entries.pop(key)
        objects.keys.pop(bisect_left(objects.keys, key))
        self._by_uid.pop(previous.uid, None)
        self.version += 1
        obj = last if last is not None else previous.decoded()
        obj["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(obj, previous.fields, self.version)
        self._index_owners(resource, None, previous)
        self._record(objects, "DELETED", entry, previous)
        return entry

    def _record(self, objects: ResourceStore, action: Action, entry: Entry, previous: Entry | None) -> None:
        change = WatchCacheEvent(action, entry, previous, self.version)
        objects.watch_cache.add(change)
        for listener in self._listeners:
            listener(objects.resource, change)

    def _index_owners(self, resource: str, entry: Entry | None, previous: Entry | None) -> None:
        before = previous.owners if previous is not None else ()
        after = entry.owners if entry is not None else ()
        if before == after:
            return
        key = (previous or entry).key  # type: ignore[union-attr]  # one of the two is always there
        for uid in before:
            owned = self._dependents.get(uid)
            if owned is not None:
                owned.discard((resource, key))
                if not owned:
                    del self._dependents[uid]
        for uid in after:
            self._dependents.setdefault(uid, set()).add((resource, key))
