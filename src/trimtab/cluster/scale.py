"""Reads and writes the scale of any kind.

A cached Deployment contains everything that its Scale does, so that 1,000 HPAs need no GET. Other kinds are read
through the scale subresource. Writes always use the subresource, with the resourceVersion of the decision, so that a
user's change in between is a Conflict and never overwritten.
"""

from typing import Protocol

from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.codec.objects import Meta
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
    """An object that contains its scale: a workload, whole or reduced by a transform."""

    @property
    def metadata(self) -> Meta:
        """Return the metadata."""
        ...

    @property
    def spec(self) -> _Spec:
        """Return the desired replicas and the selector."""
        ...

    @property
    def status(self) -> _Status:
        """Return the current replicas."""
        ...


def scale_of(obj: Scalable) -> Scale:
    """Return the Scale of a cached object, as the API server would."""
    # The API server defaults an absent replica count to 1 before it stores the object.
    wanted = 1 if obj.spec.replicas is None else obj.spec.replicas
    meta = obj.metadata
    return Scale(
        metadata=ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        ),
        spec=ScaleSpec(replicas=wanted),
        status=ScaleStatus(replicas=obj.status.replicas, selector=_selector_text(obj.spec.selector)),
    )


async def read_scale(client: Client, served: Served, name: str, namespace: str) -> Scale:
    """Read the scale of any kind that has one."""
    resource = served.resource()
    act = f"reading scale of {served.kind} {namespace}/{name}"
    return await client.read(act, resource.path(namespace, name, "scale"), Scale)


async def write_scale(
    client: Client, served: Served, name: str, namespace: str, replicas: int, *, preconditions: Preconditions
) -> Scale:
    """Set the replicas of any kind that has a scale. Conflict means that the object changed."""
    resource: Resource[Scale] = served.resource().into(Scale)
    body = {"spec": {"replicas": replicas}}
    return await client.patch(
        resource, name, namespace, body, preconditions=preconditions, subresource="scale"
    )


def _selector_text(selector: LabelSelector | dict[str, str] | None) -> str:
    """Return the selector as text. A ReplicationController's selector is a plain map."""
    if isinstance(selector, dict):
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return str(Selector.from_label_selector(selector))
