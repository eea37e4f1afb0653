"""The scale of any kind: from a cached object whose shape we know, else through the scale subresource.

A cached Deployment already says everything that its Scale would, so a thousand autoscalers cost no GET. Writes always
go through the subresource, with the resourceVersion that the decision was based on: a user's change in between is a
Conflict, never overwritten (fault F15).
"""

from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Served
from trimtab.cluster.patching import Preconditions
from trimtab.cluster.resource import Resource
from trimtab.model.scale import Scale, ScaleSpec, ScaleStatus
from trimtab.model.selector import Selector
from trimtab.model.workloads import ReplicationController, Workload

SCALABLE_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})


def scale_of(thing: Workload | ReplicationController) -> Scale:
    """Return the Scale that the API server would make of a cached object."""
    # The API server defaults an absent replica count to 1 before it stores the object.
    wanted = 1 if thing.spec.replicas is None else thing.spec.replicas
    status = ScaleStatus(replicas=thing.status.replicas, selector=_selector_text(thing))
    return Scale(metadata=thing.metadata, spec=ScaleSpec(replicas=wanted), status=status)


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


def _selector_text(thing: Workload | ReplicationController) -> str:
    if isinstance(thing, ReplicationController):
        return ",".join(f"{key}={value}" for key, value in sorted(thing.spec.selector.items()))
    return str(Selector.from_label_selector(thing.spec.selector))
