"""An informer's cache, corrected by our own writes that it has not seen yet.

A controller that reads only its cache makes pods twice when the cache lags behind its writes. Upstream counts
expectations; here every write leaves its outcome as a correction that holds until the cache has caught up with it,
so whoever reads here reads their own writes and a lost expectation cannot block anyone.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import KeyIndex, by_owner, is_older
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client, DeleteOptions, PatchType, Preconditions
from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.meta import ObjectMeta

Key = tuple[str, str]


class Seen(Protocol):
    """An object of any kind that is read whole enough to be deleted."""

    @property
    def metadata(self) -> ObjectMeta:
        """Return the metadata."""
        ...


T = TypeVar("T", bound=Seen)


@dataclass(frozen=True, slots=True)
class _Correction(Generic[T]):
    """What an object looks like after our write, until `is_seen` holds for the cached one."""

    thing: T
    is_seen: Callable[[T], bool]
    version: str = ""
    """For an object that we made: until the cache is this new, its absence means nothing."""


class WriteThroughCache(Generic[T]):
    """The objects of one resource as of the cache and our own writes, whichever is newer."""

    def __init__(self, client: Client, resource: Resource[T], pace: WatchPace | None = None) -> None:
        self.resource = resource
        self.client = client
        self.informer: Informer[T] = Informer(client, resource, pace=pace)
        self._owned: KeyIndex[T, str] = by_owner()
        self._orphans: KeyIndex[T, str] = KeyIndex(
            lambda thing: () if controller_uid(thing) else (thing.metadata.namespace,)
        )
        self._corrections: dict[Key, _Correction[T]] = {}
        self.informer.add_index(self._owned)
        self.informer.add_index(self._orphans)

    def subscribe(self, subscriber: Callable[[Delta[T]], None]) -> None:
        """Tell `subscriber` of every change of the cache."""
        self.informer.subscribe(subscriber)

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None."""
        cached = self.informer.store.get(name, namespace)
        correction = self._correction((namespace, name), cached)
        return cached if correction is None else correction.thing

    def all(self, namespace: str | None = None) -> list[T]:
        """Return every object, of one namespace or of all, in the order of their names."""
        store = self.informer.store
        cached = list(store) if namespace is None else list(store.in_namespace(namespace).values())
        return self._corrected(cached, lambda thing: namespace in (None, thing.metadata.namespace))

    def owned(self, uid: str) -> list[T]:
        """Return the objects that the owner controls, in the order of their names."""
        return self.indexed(self._owned, uid, lambda thing: uid == controller_uid(thing))

    def orphans(self, namespace: str) -> list[T]:
        """Return the objects of a namespace that nobody controls."""
        return self.indexed(
            self._orphans,
            namespace,
            lambda thing: thing.metadata.namespace == namespace and not controller_uid(thing),
        )

    def indexed(self, index: KeyIndex[T, Any], key: Any, belongs: Callable[[T], bool]) -> list[T]:
        """Return the objects under a key of an index, and those that belong there since our writes."""
        return self._corrected(list(index.get(key).values()), belongs)

    async def create(self, body: Json, namespace: str | None = None) -> T:
        """Create an object."""
        return self._wrote(await self.client.create(self.resource, body, namespace))

    async def patch(self, thing: T, body: Any, *, subresource: str | None = None) -> T:
        """Merge `body` into an object, unless it was replaced by another of the same name."""
        meta = thing.metadata
        written = await self.client.patch(
            self.resource,
            meta.name,
            meta.namespace or None,
            body,
            how=PatchType.MERGE,
            preconditions=Preconditions(uid=meta.uid),
            subresource=subresource,
        )
        return self._wrote(written)

    async def delete(self, thing: T, now: datetime, *, grace_seconds: int | None = None) -> None:
        """Delete an object; until the cache shows it, the object counts as being deleted since `now`."""
        meta = thing.metadata
        options = DeleteOptions(Preconditions(uid=meta.uid), grace_seconds, "Background")
        with suppress(errors.NotFound):
            await self.client.delete(self.resource, meta.name, meta.namespace or None, options=options)
        going = msgspec.structs.replace(meta, deletion_timestamp=meta.deletion_timestamp or now)
        gone = msgspec.structs.replace(cast("Any", thing), metadata=going)
        self.assume(gone, lambda cached: cached.metadata.deletion_timestamp is not None)

    def assume(self, thing: T, is_seen: Callable[[T], bool]) -> None:
        """Read `thing` in place of the cached object until the cached one passes `is_seen`, or is gone."""
        meta = thing.metadata
        self._corrections[meta.namespace, meta.name] = _Correction(thing, is_seen)

    def _wrote(self, written: T) -> T:
        meta = written.metadata
        version = meta.resource_version
        correction = _Correction(
            written, lambda cached: not is_older(cached.metadata.resource_version, version), version
        )
        self._corrections[meta.namespace, meta.name] = correction
        return written

    def _correction(self, key: Key, cached: T | None) -> _Correction[T] | None:
        """Return the correction of an object, or None when the cache knows better by now."""
        correction = self._corrections.get(key)
        if correction is None:
            return None
        if cached is None:
            stands = bool(correction.version) and is_older(self.informer.resource_version, correction.version)
        else:
            same = cached.metadata.uid == correction.thing.metadata.uid
            stands = same and not correction.is_seen(cached)
            # A name that was freed and taken again by us: the cache still shows the one before.
            stands |= not same and is_older(cached.metadata.resource_version, correction.version)
        if not stands:
            del self._corrections[key]
            return None
        return correction

    def _corrected(self, cached: list[T], belongs: Callable[[T], bool]) -> list[T]:
        if not self._corrections:
            return sorted(cached, key=_key)
        found = {_key(thing): thing for thing in cached}
        for key in list(self._corrections):
            namespace, name = key
            correction = self._correction(key, self.informer.store.get(name, namespace))
            if correction is None:
                continue
            found.pop(key, None)
            if belongs(correction.thing):
                found[key] = correction.thing
        return [found[key] for key in sorted(found)]


def _key(thing: Seen) -> Key:
    return (thing.metadata.namespace, thing.metadata.name)


def controller_uid(thing: Seen) -> str:
    """Return the uid of the controlling owner, or nothing."""
    return next((owner.uid for owner in thing.metadata.owner_references if owner.controller), "")
