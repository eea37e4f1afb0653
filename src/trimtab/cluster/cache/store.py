"""The objects of an informer by namespace and name, their indexes, and their event handlers.

The resourceVersions of a resource are comparable integers (KEP-5504). If a server uses other texts, only equal versions
of an object are detected as duplicates. Indexes and handlers are called in the order of the changes, before the next
event is read. A handler therefore sees indexes in the state of its event.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from trimtab.cluster.codec.objects import Object
from trimtab.model.core.pod import Pod

T = TypeVar("T", bound=Object)
T_contra = TypeVar("T_contra", bound=Object, contravariant=True)
_NONE: Mapping[str, object] = {}


class Index(Protocol[T_contra]):
    """An index that follows a store, such as a lookup by owner or by label selector."""

    def add(self, new: T_contra) -> None:
        """Add an object."""
        ...

    def update(self, old: T_contra, new: T_contra) -> None:
        """Replace an object by a newer version."""
        ...

    def remove(self, old: T_contra) -> None:
        """Remove an object."""
        ...


class Store(Generic[T]):
    """Objects by namespace and name. Cluster-scoped objects have the empty namespace."""

    def __init__(self) -> None:
        # Two levels instead of a tuple per object: less memory, and the objects of a namespace come for free.
        self._namespaces: dict[str, dict[str, T]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for objects in self._namespaces.values():
            yield from objects.values()

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None."""
        objects = self._namespaces.get(namespace)
        return objects.get(name) if objects else None

    def in_namespace(self, namespace: str) -> Mapping[str, T]:
        """Return a view of the objects of a namespace by name. Do not keep it across an await."""
        return self._namespaces.get(namespace, {})

    def namespaces(self) -> list[str]:
        """Return the namespaces with objects, sorted."""
        return sorted(self._namespaces)

    def put(self, new: T) -> T | None:
        """Store an object and return the one it replaces."""
        meta = new.metadata
        objects = self._namespaces.setdefault(meta.namespace, {})
        old = objects.get(meta.name)
        objects[meta.name] = new
        self._count += old is None
        return old

    def remove(self, name: str, namespace: str) -> T | None:
        """Remove an object and return it."""
        objects = self._namespaces.get(namespace)
        old = objects.pop(name, None) if objects else None
        if old is not None:
            self._count -= 1
            if not objects:
                del self._namespaces[namespace]
        return old


def version_number(resource_version: str) -> int | None:
    """Return a resourceVersion as a number, or None."""
    if resource_version.isascii() and resource_version.isdigit() and len(resource_version) < 40:
        return int(resource_version)
    return None


def is_older(version: str, than: str) -> bool:
    """Return whether `version` is certainly older than `than`."""
    if version == than:
        return False
    left, right = version_number(version), version_number(than)
    return left is not None and right is not None and left < right


def later(version: str, other: str) -> str:
    """Return the newer of two versions, or the second if they cannot be compared."""
    return version if is_older(other, version) else other


K = TypeVar("K", bound=Hashable)


class KeyIndex(Generic[T, K]):
    """Objects by key. An object may have several keys or none."""

    def __init__(self, keys: Callable[[T], Iterable[K]]) -> None:
        self._keys = keys
        self._objects: dict[K, dict[str, T]] = {}

    def get(self, key: K) -> Mapping[str, T]:
        """Return a view of the objects under `key` by uid. Do not keep it across an await."""
        return self._objects.get(key, {})

    def keys(self) -> Iterable[K]:
        """Return the keys that have objects."""
        return self._objects.keys()

    def add(self, new: T) -> None:
        """Add an object."""
        for key in self._keys(new):
            self._objects.setdefault(key, {})[new.metadata.uid] = new

    def update(self, old: T, new: T) -> None:
        """Replace an object by a newer version."""
        self.remove(old)
        self.add(new)

    def remove(self, old: T) -> None:
        """Remove an object."""
        for key in self._keys(old):
            objects = self._objects.get(key)
            if objects is not None:
                objects.pop(old.metadata.uid, None)
                if not objects:
                    del self._objects[key]


def by_uid() -> KeyIndex[T, str]:
    """Return an index by uid, for walking up owner chains."""
    return KeyIndex(lambda obj: (obj.metadata.uid,))


def by_owner() -> KeyIndex[T, str]:
    """Return an index by the uid of the controller."""
    return KeyIndex(lambda obj: [owner.uid for owner in obj.metadata.owner_references if owner.controller])


def by_node() -> KeyIndex[Pod, str]:
    """Return an index of pods by node."""
    return KeyIndex(lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())


Key = tuple[str, str]
log = logging.getLogger(__name__)


class CacheEvent(Enum):
    """The type of a change."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"
    SYNCED = "synced"


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """A change of the cache. `SYNCED` ends the first list and has no object."""

    change: CacheEvent
    old: T | None = None
    new: T | None = None

    @property
    def object(self) -> T:
        """Return the current object, or the last one if it was deleted."""
        found = self.new if self.new is not None else self.old
        if found is None:
            raise ValueError("a SYNCED delta has no object")
        return found


class Cache(Generic[T]):
    """A store with its indexes and subscribers."""

    def __init__(self) -> None:
        self.store: Store[T] = Store()
        self._indexes: list[Index[T]] = []
        self._subscribers: list[Callable[[Delta[T]], None]] = []

    def add_index(self, index: Index[T]) -> None:
        """Add an index and fill it with the stored objects."""
        for obj in self.store:
            index.add(obj)
        self._indexes.append(index)

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Call `subscriber` for every change. Stored objects come first, as added."""
        for obj in self.store:
            subscriber(Delta(CacheEvent.ADDED, new=obj))
        self._subscribers.append(subscriber)

    def put(self, new: T) -> None:
        """Store an object, new or changed."""
        old = self.store.put(new)
        if old is not None and old.metadata.uid != new.metadata.uid:
            # Deleted and made again under the same name while we did not look: two objects, two changes.
            self._removed(old)
            old = None
        for index in self._indexes:
            if old is None:
                index.add(new)
            else:
                index.update(old, new)
        self.notify(Delta(CacheEvent.ADDED if old is None else CacheEvent.UPDATED, old, new))

    def delete(self, old: T) -> None:
        """Remove an object."""
        self.store.remove(old.metadata.name, old.metadata.namespace)
        self._removed(old)

    def replace(self, objects: Store[T], keep: Mapping[Key, str]) -> None:
        """Replace the store's content by `objects`, except for objects to `keep`, by key with their uid.

        Deletions come first.
        """
        gone = [
            old
            for old in self.store
            if objects.get(old.metadata.name, old.metadata.namespace) is None
            and keep.get((old.metadata.namespace, old.metadata.name)) != old.metadata.uid
        ]
        for old in gone:
            self.delete(old)
        for obj in objects:
            if self.store.get(obj.metadata.name, obj.metadata.namespace) is not obj:
                self.put(obj)

    def known(self, obj: T) -> T:
        """Return the stored object if its version is the same, so that a relist holds no object twice."""
        meta = obj.metadata
        old = self.store.get(meta.name, meta.namespace)
        if (
            old is None
            or old.metadata.uid != meta.uid
            or old.metadata.resource_version != meta.resource_version
        ):
            return obj
        return old

    def notify(self, delta: Delta[T]) -> None:
        """Call the handlers. A failing handler affects neither the cache nor other handlers."""
        for subscriber in self._subscribers:
            try:
                subscriber(delta)
            except Exception:
                log.exception("a subscriber failed on %s", delta.change.value)

    def _removed(self, old: T) -> None:
        for index in self._indexes:
            index.remove(old)
        self.notify(Delta(CacheEvent.DELETED, old=old))
