"""What an informer has learnt: the store, the indexes over it, and those who want to hear of changes.

Subscribers and indexes are called in the order of the changes, before the next event is read, so that whoever looks
at an index inside a subscriber sees the state that the delta speaks of.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from trimtab.cluster.cache.codec import Object
from trimtab.cluster.cache.store import Index, Store

T = TypeVar("T", bound=Object)
Key = tuple[str, str]
log = logging.getLogger(__name__)


class CacheEvent(Enum):
    """What happened to a cached object."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"
    SYNCED = "synced"


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """A change of the cache; `SYNCED` closes the first list and carries no object."""

    change: CacheEvent
    old: T | None = None
    new: T | None = None

    @property
    def object(self) -> T:
        """Return the object as it is, or as it last was."""
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
        """Keep `index` up to date from now on; it takes in what is stored already."""
        for thing in self.store:
            index.add(thing)
        self._indexes.append(index)

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Tell `subscriber` of every change; what is stored already comes first, as added."""
        for thing in self.store:
            subscriber(Delta(CacheEvent.ADDED, new=thing))
        self._subscribers.append(subscriber)

    def put(self, new: T) -> None:
        """Take in an object, new or changed."""
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
        self.tell(Delta(CacheEvent.ADDED if old is None else CacheEvent.UPDATED, old, new))

    def delete(self, old: T) -> None:
        """Forget an object."""
        self.store.take(old.metadata.name, old.metadata.namespace)
        self._removed(old)

    def replace(self, objects: Store[T], keep: Collection[Key]) -> None:
        """Make the store hold `objects`, and what it has under the keys to `keep`; deletions come first."""
        gone = [
            old
            for old in self.store
            if objects.get(old.metadata.name, old.metadata.namespace) is None
            and (old.metadata.namespace, old.metadata.name) not in keep
        ]
        for old in gone:
            self.delete(old)
        for thing in objects:
            if self.store.get(thing.metadata.name, thing.metadata.namespace) is not thing:
                self.put(thing)

    def known(self, thing: T) -> T:
        """Return the stored copy if it is the same version, so that a relist holds no object twice."""
        meta = thing.metadata
        old = self.store.get(meta.name, meta.namespace)
        if (
            old is None
            or old.metadata.uid != meta.uid
            or old.metadata.resource_version != meta.resource_version
        ):
            return thing
        return old

    def tell(self, delta: Delta[T]) -> None:
        """Call the subscribers; one that fails disturbs neither the others nor the cache."""
        for subscriber in self._subscribers:
            try:
                subscriber(delta)
            except Exception:
                log.exception("a subscriber failed on %s", delta.change.value)

    def _removed(self, old: T) -> None:
        for index in self._indexes:
            index.remove(old)
        self.tell(Delta(CacheEvent.DELETED, old=old))
