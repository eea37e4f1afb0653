"""An informer's cache that already shows our own writes.

A controller that reads a cache which lags behind its writes creates pods twice. Upstream counts expectations. Here every
write leaves a correction that holds until the cache has caught up, so a controller reads its own writes and a lost
expectation cannot block it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import KeyIndex, is_older
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client, DeleteOptions, PatchType, Preconditions
from trimtab.cluster.resource import LEASES, Json, Resource
from trimtab_lab.controllers.kinds import NODES, PODS, LabPod
from trimtab_lab.controllers.objects import Key, LabObject

T = TypeVar("T", bound=LabObject)


@dataclass(frozen=True, slots=True)
class _Correction(Generic[T]):
    """An object after our write. It replaces the cached one until that passes `is_current`."""

    obj: T
    is_current: Callable[[T], bool]
    version: str = ""
    """The version that we wrote. Until the cache is this new, absence from it means nothing."""


class WriteThroughCache(Generic[T]):
    """The objects of one resource, from the cache or our own writes, whichever is newer."""

    def __init__(self, client: Client, resource: Resource[T], pace: WatchPace | None = None) -> None:
        self.resource = resource
        self.client = client
        self.informer: Informer[T] = Informer(client, resource, pace=pace)
        self._corrections: dict[Key, _Correction[T]] = {}

    def subscribe(self, handler: Callable[[Delta[T]], None]) -> None:
        """Call `handler` with every change of the cache."""
        self.informer.subscribe(handler)

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None."""
        cached = self.informer.store.get(name, namespace)
        correction = self._correction((namespace, name), cached)
        return cached if correction is None else correction.obj

    def all(self, namespace: str | None = None) -> list[T]:
        """Return the objects of one or all namespaces, sorted by name."""
        store = self.informer.store
        cached = list(store) if namespace is None else list(store.in_namespace(namespace).values())
        return self._corrected(cached, lambda obj: namespace in (None, obj.metadata.namespace))

    def indexed(self, index: KeyIndex[T, Any], key: Any, belongs: Callable[[T], bool]) -> list[T]:
        """Return the objects under a key of an index, with our writes applied."""
        return self._corrected(list(index.get(key).values()), belongs)

    async def create(self, body: Json, namespace: str | None = None) -> T:
        """Create an object."""
        return self._wrote(await self.client.create(self.resource, body, namespace))

    async def patch(self, obj: T, body: Any, *, subresource: str | None = None) -> T:
        """Merge `body` into an object, with its uid as precondition."""
        meta = obj.metadata
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

    async def delete(self, obj: T, now: datetime, *, grace_seconds: int | None = None) -> None:
        """Delete an object. Until the cache catches up, it counts as terminating since `now`."""
        meta = obj.metadata
        options = DeleteOptions(Preconditions(uid=meta.uid), grace_seconds, "Background")
        with suppress(errors.NotFound):
            await self.client.delete(self.resource, meta.name, meta.namespace or None, options=options)
        deleted_meta = msgspec.structs.replace(meta, deletion_timestamp=meta.deletion_timestamp or now)
        deleted = msgspec.structs.replace(cast("Any", obj), metadata=deleted_meta)
        self.assume(deleted, lambda cached: cached.metadata.deletion_timestamp is not None)

    def assume(self, obj: T, is_current: Callable[[T], bool]) -> None:
        """Return `obj` in place of the cached object until that passes `is_current` or is deleted."""
        self._corrections[key_of(obj)] = _Correction(obj, is_current)

    def _wrote(self, written: T) -> T:
        version = written.metadata.resource_version
        self._corrections[key_of(written)] = _Correction(
            written, lambda cached: not is_older(cached.metadata.resource_version, version), version
        )
        return written

    def _correction(self, key: Key, cached: T | None) -> _Correction[T] | None:
        """Return the correction of an object, or drop it if the cache has caught up."""
        correction = self._corrections.get(key)
        if correction is None:
            return None
        if cached is None:
            holds = bool(correction.version) and is_older(self.informer.resource_version, correction.version)
        elif cached.metadata.uid == correction.obj.metadata.uid:
            holds = not correction.is_current(cached)
        else:
            # The cache may still show an older object whose name we have used again.
            holds = is_older(cached.metadata.resource_version, correction.version)
        if not holds:
            del self._corrections[key]
            return None
        return correction

    def _corrected(self, cached: list[T], belongs: Callable[[T], bool]) -> list[T]:
        if not self._corrections:
            return sorted(cached, key=key_of)
        objects = {key_of(obj): obj for obj in cached}
        for key in list(self._corrections):
            namespace, name = key
            correction = self._correction(key, self.informer.store.get(name, namespace))
            if correction is None:
                continue
            objects.pop(key, None)
            if belongs(correction.obj):
                objects[key] = correction.obj
        return [objects[key] for key in sorted(objects)]


def key_of(obj: LabObject) -> Key:
    """Return namespace and name."""
    return (obj.metadata.namespace, obj.metadata.name)


class Caches:
    """A write-through cache of every resource that the data plane reads."""

    def __init__(self, client: Client, pace: WatchPace | None = None) -> None:
        self.client = client
        self.pods = WriteThroughCache(client, PODS, pace)
        self.nodes = WriteThroughCache(client, NODES, pace)
        self.leases = WriteThroughCache(client, LEASES, pace)
        self._pods_by_node: KeyIndex[LabPod, str] = KeyIndex(
            lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ()
        )
        self.pods.informer.add_index(self._pods_by_node)

    @property
    def clock(self) -> Clock:
        return self.client.clock

    @property
    def all(self) -> tuple[WriteThroughCache[Any], ...]:
        return self.pods, self.nodes, self.leases

    def pods_on(self, node: str) -> list[LabPod]:
        """Return the pods that are bound to a node, our latest bindings included."""
        return self.pods.indexed(self._pods_by_node, node, lambda pod: pod.spec.node_name == node)
