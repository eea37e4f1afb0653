"""Takes objects of lists and watches into a cache: reduces them, drops those of other shards, and rejects older versions."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache.counts import InformerCounts, UnreadableObject
from trimtab.cluster.cache.list_progress import ListedObjects
from trimtab.cluster.cache.share import Part
from trimtab.cluster.cache.store import is_older
from trimtab.cluster.cache.subscriptions import Cache
from trimtab.cluster.cache.watch import WatchBrokenError
from trimtab.cluster.codec.objects import Meta, Object, Unreadable, WatchEvent
from trimtab.cluster.resource import Resource, TransformedResource, resource_of
from trimtab.model.json.wire import WireError

T = TypeVar("T", bound=Object)
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
