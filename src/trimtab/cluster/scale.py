"""The scale of any kind: from a cached object whose shape we know, else through the scale subresource.

A cached Deployment already says everything that its Scale would, so a thousand autoscalers cost no GET. Writes always
go through the subresource, with the resourceVersion that the decision was based on: a user's change in between is a
Conflict, never overwritten (fault F15).
"""

from typing import Protocol

from trimtab.cluster.cache.codec import Meta
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.discovery import Served
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.labels.selector import LabelSelector, Selector

SCALABLE_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})


class _Spec(Protocol):
    @property
    def replicas(self) -> int | None: ...

    @property
    def selector(self) -> LabelSelector | dict[str, str] | None: ...


class _Status(Protocol):
    @property
    def replicas(self) -> int: ...


class Scalable(Protocol):
    """An object whose shape says its scale: a workload, whole or reduced to what a cache keeps of it."""

    @property
    def metadata(self) -> Meta:
        """Return the metadata."""
        ...

    @property
    def spec(self) -> _Spec:
        """Return how many replicas are wanted, and which pods are meant."""
        ...

    @property
    def status(self) -> _Status:
        """Return how many replicas there are."""
        ...


def scale_of(thing: Scalable) -> Scale:
    """Return the Scale that the API server would make of a cached object."""
    # The API server defaults an absent replica count to 1 before it stores the object.
    wanted = 1 if thing.spec.replicas is None else thing.spec.replicas
    meta = thing.metadata
    return Scale(
        metadata=ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        ),
        spec=ScaleSpec(replicas=wanted),
        status=ScaleStatus(replicas=thing.status.replicas, selector=_selector_text(thing.spec.selector)),
    )


async def read_scale(client: Client, served: Served, name: str, namespace: str) -> Scale:
    """Read the scale of any kind that has one."""
    resource = served.resource()
    act = f"reading scale of {served.kind} {namespace}/{name}"
    return await client.read(act, resource.path(namespace, name, "scale"), Scale)


async def write_scale(
    client: Client, served: Served, name: str, namespace: str, replicas: int, *, preconditions: Preconditions
) -> Scale:
    """Set the replicas of any kind that has a scale; Conflict means that the object changed: decide again."""
    resource: Resource[Scale] = served.resource().into(Scale)
    body = {"spec": {"replicas": replicas}}
    return await client.patch(
        resource, name, namespace, body, preconditions=preconditions, subresource="scale"
    )


def _selector_text(selector: LabelSelector | dict[str, str] | None) -> str:
    """Return the label query as text; a ReplicationController's is a plain map."""
    if isinstance(selector, dict):
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return str(Selector.from_label_selector(selector))
