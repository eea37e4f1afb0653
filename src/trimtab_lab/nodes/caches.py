"""The caches that nodes, scheduler and elections share. Each already shows our own writes.

A scheduler whose cache lags behind its bindings would fill a node twice. So each write leaves a correction that holds until
the cache has caught up.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import KeyIndex, is_older
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client, PatchType, Preconditions
from trimtab.cluster.resource import LEASES, Json, Resource
from trimtab_lab.controllers.kinds import NODES, PODS, LabPod
from trimtab_lab.controllers.objects import Key, LabObject

T = TypeVar("T", bound=LabObject)


class WriteThroughCache(Generic[T]):
    """The objects of one resource, from the cache or our own writes, whichever is newer."""

    def __init__(self, client: Client, resource: Resource[T], pace: WatchPace | None = None) -> None:
        self.resource = resource
        self.client = client
        self.informer: Informer[T] = Informer(client, resource, pace=pace)
        self.subscribe = self.informer.subscribe
        #: Objects after our writes, each until the cached one is current, by its version or another sign.
        self._corrections: dict[Key, tuple[T, Callable[[T], bool]]] = {}

    def get(self, name: str, namespace: str = "") -> T | None:
        cached = self.informer.store.get(name, namespace)
        return self._corrected((namespace, name), cached)

    def all(self, namespace: str | None = None) -> list[T]:
        """Return the objects of one or all namespaces, sorted by name."""
        store = self.informer.store
        cached = store if namespace is None else store.in_namespace(namespace).values()
        return self._with_corrections(cached, lambda obj: namespace in (None, obj.metadata.namespace))

    def indexed(self, index: KeyIndex[T, Any], key: Any, belongs: Callable[[T], bool]) -> list[T]:
        """Return the objects under a key of an index, with our writes applied."""
        return self._with_corrections(index.get(key).values(), belongs)

    async def create(self, body: Json, namespace: str | None = None) -> T:
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

    def assume(self, obj: T, is_current: Callable[[T], bool]) -> None:
        """Return `obj` in place of the cached object until that passes `is_current` or is another one."""
        self._corrections[key_of(obj)] = (obj, is_current)

    def _wrote(self, written: T) -> T:
        version = written.metadata.resource_version
        self.assume(written, lambda cached: not is_older(cached.metadata.resource_version, version))
        return written

    def _corrected(self, key: Key, cached: T | None) -> T | None:
        """Return an object after our write, or the cached one if that has caught up."""
        if key not in self._corrections:
            return cached
        ours, is_current = self._corrections[key]
        version = ours.metadata.resource_version
        if cached is None:
            is_behind = is_older(self.informer.resource_version, version)
        elif cached.metadata.uid == ours.metadata.uid:
            is_behind = not is_current(cached)
        else:
            # The cache may still show an older object whose name is used again.
            is_behind = is_older(cached.metadata.resource_version, version)
        if is_behind:
            return ours
        del self._corrections[key]
        return cached

    def _with_corrections(self, cached: Iterable[T], belongs: Callable[[T], bool]) -> list[T]:
        objects = {key_of(obj): obj for obj in cached}
        for key in list(self._corrections):
            obj = self.get(key[1], key[0])
            objects.pop(key, None)
            if obj is not None and belongs(obj):
                objects[key] = obj
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

    def assume_bound(self, pod: LabPod, node: str) -> None:
        """Count a pod on its node until the cache shows the binding."""
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        self.pods.assume(bound, lambda cached: bool(cached.spec.node_name))
