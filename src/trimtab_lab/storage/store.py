"""Encoded objects in memory, with one version counter and an index of owners.

An object is stored as the bytes that a read sends. Decoding gives each caller its own copy, so a stored object cannot be
changed by accident. All writes pass `commit` and `remove`, which number them, add them to the watch cache and call the
listeners (garbage collection, disruption budgets, custom resource definitions).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping

from trimtab_lab.storage.codec import JsonObject, decode, encode
from trimtab_lab.storage.watch_cache import HISTORY, Action, WatchCache, WatchCacheEvent

Listener = Callable[[str, WatchCacheEvent], None]


def key_of(obj: JsonObject) -> str:
    """Return the storage key of an object."""
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
        """Return the objects of every resource."""
        return list(self._resources.values())

    def get(self, resource: str, key: str) -> Entry | None:
        """Return the current version of an object."""
        return self.resource(resource).entries.get(key)

    def by_uid(self, uid: str) -> tuple[str, Entry] | None:
        """Return the resource and the object with this uid."""
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
