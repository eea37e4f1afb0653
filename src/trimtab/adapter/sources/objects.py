"""The cluster's objects: which names a label selector selects, and the kind of a resource.

Every HPA needs pods in every sync period, so an informer caches them, per namespace of `--watch-namespaces` or for all.
It starts with the first query about pods. Other objects are listed per query.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from trimtab.adapter.api.health import Health, State
from trimtab.clock import keep_running
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.errors import ClusterError
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import Selector
from trimtab.model.status import StatusError

SYNC_SECONDS = 4.0
"""How long the first query about pods waits for the cache. It is shorter than a source's deadline."""

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
    """The name and labels of any object."""

    metadata: ObjectMeta = ObjectMeta()


PODS = Resource("", "v1", "pods", "Pod", NamedObject)


class _Version(Wire):
    version: str = ""


class _Group(Wire):
    preferred_version: _Version = _Version()


class ClusterObjects:
    """Reads objects from the API server."""

    def __init__(self, client: Client, namespaces: Sequence[str]) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._pods: NamespacedInformer[NamedObject] = NamespacedInformer(client, PODS, namespaces)
        self._watching: asyncio.Task[None] | None = None

    async def names(self, resource: str, namespace: str, selector: Selector) -> frozenset[str]:
        """Return the names of the objects that a selector selects."""
        if resource == "pods" and namespace:
            return await self._pod_names(namespace, selector)
        try:
            served = await self._served(resource)
            if served.namespaced != bool(namespace):
                raise StatusError(404, f"{resource} are {'not ' if namespace else ''}namespaced")
            listing = await self._client.list(
                served.resource().into(NamedObject), ListOptions(namespace or None, str(selector))
            )
        except ClusterError as error:
            raise StatusError(503, f"listing {resource}: {error}") from error
        return frozenset(obj.metadata.name for obj in listing.items)

    async def kind_of(self, resource: str) -> tuple[str, str]:
        """Return the apiVersion and kind of a resource."""
        if resource in _KINDS:
            return _KINDS[resource]
        try:
            served = await self._served(resource)
        except ClusterError as error:
            raise StatusError(503, f"looking up {resource}: {error}") from error
        return served.resource().api_version, served.kind

    async def close(self) -> None:
        """Stop the informer of pods."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def health(self) -> Iterator[Health]:
        """Yield the state of each watch of pods, with the reason if it fails."""
        for namespace, watch in self._pods.informers():
            reason = (watch.last_error or "") if self._watching is not None else ""
            where = f"pods in namespace {namespace}" if namespace else "pods"
            yield Health(where, State.FAILING if reason else State.OK, reason)

    async def _pod_names(self, namespace: str, selector: Selector) -> frozenset[str]:
        watch = self._pods.informer_of(namespace)
        if watch is None:
            raise StatusError(404, f"namespace {namespace} is not among those of --watch-namespaces")
        if self._watching is None:
            self._watching = keep_running("the watch of pods", self._pods.run)
        await _wait_synced(watch)
        if watch.staleness() > STALE_SECONDS and watch.last_error:
            # Values of deleted pods, and none of new pods, would scale in the wrong direction.
            raise StatusError(503, f"the list of pods is {watch.staleness():.0f} s old: {watch.last_error}")
        pods = watch.store.in_namespace(namespace)
        return frozenset(name for name, pod in pods.items() if selector.matches(pod.metadata.labels))

    async def _served(self, resource: str) -> Served:
        plural, _, group = resource.partition(".")
        version = "v1"
        if group:
            try:
                api_group = await self._client.read(f"discovering {group}", f"/apis/{group}", _Group)
            except errors.NotFound as error:
                raise StatusError(
                    404, f"the cluster serves no {resource}: it has no API group {group}"
                ) from error
            version = api_group.preferred_version.version
        served = await self._discovery.served(group, version, plural)
        if served is None:
            raise StatusError(404, f"the cluster serves no {resource}")
        return served


async def _wait_synced(watch: Informer[NamedObject]) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            await watch.wait_synced()
    except TimeoutError:
        raise StatusError(503, f"the pods cannot be listed: {watch.last_error or 'no answer yet'}") from None
