"""A store with its indexes and event handlers.

Indexes and handlers are called in the order of the changes, before the next event is read. A handler therefore sees
indexes in the state of its event.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from trimtab.cluster.cache.store import Index, Store
from trimtab.cluster.codec.objects import Object

T = TypeVar("T", bound=Object)
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
