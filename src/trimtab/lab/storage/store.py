"""The lab's storage: encoded objects in memory, one version counter, and an index of who owns whom.

An object is kept as the bytes that a read sends; decoding gives each caller a copy of its own, so nothing in here can
be changed by accident. All writes pass `commit` and `remove`, which number them, record them for watches and tell the
listeners (garbage collection, custom definitions, namespaces).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trimtab.lab.storage.codec import JsonObject, decode, encode
from trimtab.lab.storage.watch_cache import HISTORY, Action, WatchCache, WatchCacheEvent

FieldsOf = Callable[[JsonObject], Mapping[str, str]]


class Entry:
    """One version of one object: its bytes and what selectors and the collector ask about it."""

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
    """All objects of one resource, in key order."""

    def __init__(self, resource: str, keep: int) -> None:
        self.resource = resource
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.history = WatchCache(keep)

    def range(self, namespace: str) -> list[Entry]:
        """Return the objects of a namespace, or all, in key order."""
        if not namespace:
            return [self.entries[key] for key in self.keys]
        prefix = namespace + "/"
        low = bisect_left(self.keys, prefix)
        high = bisect_left(self.keys, namespace + "0")  # "0" follows "/" in ASCII
        return [self.entries[key] for key in self.keys[low:high]]

    def at(self, version: int, namespace: str) -> list[Entry]:
        """Return the objects as they were at `version`, by undoing what came later."""
        later = self.history.since(version)
        if not later:
            return self.range(namespace)
        past = dict(self.entries)
        for change in reversed(later):
            if change.previous is None:
                past.pop(change.entry.key, None)
            else:
                past[change.entry.key] = change.previous
        return [past[key] for key in sorted(past) if not namespace or past[key].namespace == namespace]


class ObjectStore:
    """Every resource's objects under one version counter."""

    def __init__(self, keep: int = HISTORY) -> None:
        self.version = 1
        self._keep = keep
        self._shelves: dict[str, ResourceStore] = {}
        self._listeners: list[Callable[[str, WatchCacheEvent], None]] = []
        self._by_uid: dict[str, tuple[str, str]] = {}
        self._dependents: dict[str, set[tuple[str, str]]] = {}

    def shelf(self, resource: str) -> ResourceStore:
        """Return the objects of a resource (`deployments.apps`), starting an empty shelf when new."""
        found = self._shelves.get(resource)
        if found is None:
            found = self._shelves[resource] = ResourceStore(resource, self._keep)
        return found

    def shelves(self) -> Iterator[ResourceStore]:
        """Yield every shelf."""
        yield from list(self._shelves.values())

    def get(self, resource: str, key: str) -> Entry | None:
        """Return the current version of an object."""
        return self.shelf(resource).entries.get(key)

    def by_uid(self, uid: str) -> tuple[str, Entry] | None:
        """Return the resource and the object with this uid."""
        place = self._by_uid.get(uid)
        if place is None:
            return None
        entry = self.get(*place)
        return (place[0], entry) if entry is not None else None

    def dependents(self, uid: str) -> list[tuple[str, Entry]]:
        """Return the objects that name `uid` as an owner, in a stable order."""
        found = [
            (resource, self.get(resource, key)) for resource, key in sorted(self._dependents.get(uid, ()))
        ]
        return [(resource, entry) for resource, entry in found if entry is not None]

    def listen(self, listener: Callable[[str, WatchCacheEvent], None]) -> None:
        """Call `listener(resource, change)` after each write."""
        self._listeners.append(listener)

    def commit(self, resource: str, obj: JsonObject, fields: Mapping[str, str]) -> Entry:
        """Write an object, giving it the next version."""
        shelf = self.shelf(resource)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(obj, fields, self.version)
        previous = shelf.entries.get(entry.key)
        shelf.entries[entry.key] = entry
        if previous is None:
            insort(shelf.keys, entry.key)
            self._by_uid[entry.uid] = (resource, entry.key)
        self._index_owners(resource, entry, previous)
        self._record(shelf, "ADDED" if previous is None else "MODIFIED", entry, previous)
        return entry

    def remove(self, resource: str, key: str, last: JsonObject | None = None) -> Entry:
        """Remove an object; its last event carries the version of the removal, as upstream's does."""
        shelf = self.shelf(resource)
        previous = shelf.entries.pop(key)
        shelf.keys.pop(bisect_left(shelf.keys, key))
        self._by_uid.pop(previous.uid, None)
        self.version += 1
        obj = last if last is not None else previous.decoded()
        obj["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(obj, previous.fields, self.version)
        self._index_owners(resource, None, previous)
        self._record(shelf, "DELETED", entry, previous)
        return entry

    def _record(self, shelf: ResourceStore, action: Action, entry: Entry, previous: Entry | None) -> None:
        change = WatchCacheEvent(action, entry, previous, self.version)
        shelf.history.record(change)
        for listener in self._listeners:
            listener(shelf.resource, change)

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

    def snapshot(self) -> dict[str, Any]:
        """Return everything stored, for tests that compare whole clusters."""
        return {shelf.resource: [entry.decoded() for entry in shelf.range("")] for shelf in self.shelves()}
