"""What the adapter has to know of the cluster's objects: which ones a label query means, and what their kind is.

Pods are asked for by every HPA in every period, so they are followed by a watch per namespace of `--watch-namespaces`,
or by one for all. It starts with the first such question. Other objects are listed when asked for.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from trimtab import tasks
from trimtab.adapter.api.health import Health, State
from trimtab.adapter.errors import NotFound, Unavailable
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.errors import ClusterError
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import Selector

SYNC_SECONDS = 4.0
"""How long the first question about pods waits for the cache; shorter than a source's deadline."""

STALE_SECONDS = 60.0

_KINDS: Mapping[str, tuple[str, str]] = {
    "pods": ("v1", "Pod"),
    "services": ("v1", "Service"),
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "replicationcontrollers": ("v1", "ReplicationController"),
    "deployments.apps": ("apps/v1", "Deployment"),
    "replicasets.apps": ("apps/v1", "ReplicaSet"),
    "statefulsets.apps": ("apps/v1", "StatefulSet"),
    "daemonsets.apps": ("apps/v1", "DaemonSet"),
    "jobs.batch": ("batch/v1", "Job"),
    "cronjobs.batch": ("batch/v1", "CronJob"),
    "ingresses.networking.k8s.io": ("networking.k8s.io/v1", "Ingress"),
}


class NamedObject(Wire):
    """Any object, as far as its name and labels go."""

    metadata: ObjectMeta = ObjectMeta()


PODS = Resource("", "v1", "pods", "Pod", NamedObject)


class _Version(Wire):
    version: str = ""


class _Group(Wire):
    preferred_version: _Version = _Version()


class Objects(Protocol):
    """What sources ask about objects."""

    async def names(self, resource: str, namespace: str, selector: Selector) -> frozenset[str]:
        """Return the names of the objects that a label query means."""
        ...

    async def kind_of(self, resource: str) -> tuple[str, str]:
        """Return the apiVersion and kind of a resource."""
        ...

    def health(self) -> Iterable[Health]:
        """Return the state of each watch."""
        ...


class ClusterObjects:
    """Objects as the API server knows them."""

    def __init__(self, client: Client, namespaces: Sequence[str]) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._pods: NamespacedInformer[NamedObject] = NamespacedInformer(client, PODS, namespaces)
        self._following: asyncio.Task[None] | None = None

    async def names(self, resource: str, namespace: str, selector: Selector) -> frozenset[str]:
        """Return the names of the objects that a label query means."""
        if resource == "pods" and namespace:
            return await self._pod_names(namespace, selector)
        try:
            served = await self._served(resource)
            if served.namespaced != bool(namespace):
                raise NotFound(f"{resource} are {'not ' if namespace else ''}namespaced")
            listing = await self._client.list(
                served.resource().into(NamedObject), ListOptions(namespace or None, str(selector))
            )
        except ClusterError as error:
            raise Unavailable(f"listing {resource}: {error}") from error
        return frozenset(one.metadata.name for one in listing.items)

    async def kind_of(self, resource: str) -> tuple[str, str]:
        """Return the apiVersion and kind of a resource."""
        known = _KINDS.get(resource)
        if known is not None:
            return known
        try:
            served = await self._served(resource)
        except ClusterError as error:
            raise Unavailable(f"looking up {resource}: {error}") from error
        return served.resource().api_version, served.kind

    async def close(self) -> None:
        """Stop following pods."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def health(self) -> Iterator[Health]:
        """Yield the state of each watch of pods, with the reason where it fails."""
        for namespace, watch in self._pods.watches():
            reason = (watch.last_error or "") if self._following is not None else ""
            where = f"pods in namespace {namespace}" if namespace else "pods"
            yield Health(where, State.FAILING if reason else State.OK, reason)

    async def _pod_names(self, namespace: str, selector: Selector) -> frozenset[str]:
        watch = self._pods.watch_of(namespace)
        if watch is None:
            raise NotFound(f"namespace {namespace} is not among those of --watch-namespaces")
        if self._following is None:
            self._following = tasks.keep_running("the watch of pods", self._pods.run)
        await _wait_for(watch)
        if watch.staleness() > STALE_SECONDS and watch.last_error:
            # Values for pods that are gone, and none for new ones, would scale the wrong way.
            raise Unavailable(f"the list of pods is {watch.staleness():.0f} s old: {watch.last_error}")
        pods = watch.store.in_namespace(namespace)
        return frozenset(name for name, pod in pods.items() if selector.matches(pod.metadata.labels))

    async def _served(self, resource: str) -> Served:
        plural, _, group = resource.partition(".")
        version = "v1"
        if group:
            found = await self._client.read(f"discovering {group}", f"/apis/{group}", _Group)
            version = found.preferred_version.version
        served = await self._discovery.served(group, version, plural)
        if served is None:
            raise NotFound(f"the cluster serves no {resource}")
        return served


async def _wait_for(watch: Informer[NamedObject]) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            await watch.wait_synced()
    except TimeoutError:
        raise Unavailable(f"the pods cannot be listed: {watch.last_error or 'no answer yet'}") from None
