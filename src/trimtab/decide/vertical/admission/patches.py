"""JSON patches for pods: the operations that set resources and annotations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.model.core.pod import Container, ResourceList

Operation = dict[str, Any]
"""One operation of a JSON patch (RFC 6902), as it goes over the wire."""

UPDATES_ANNOTATION = "vpaUpdates"
IN_PLACE_ANNOTATION = "vpaInPlaceUpdated"
HELD_BACK_ANNOTATION = "trimtab.dev/held-back"
"""Why a pod has less, or more, than its VPA recommends: the rule of the API server that it would break."""


@dataclass(frozen=True)
class ExistingObjects:
    """Which of a container's resource objects exist. `add` into an absent object would fail."""

    requests: bool
    limits: bool
    resources: bool
    """Whether `resources` itself exists. Replacing it would drop the container's claims."""

    @staticmethod
    def of(container: Container) -> "ExistingObjects":
        """Read a typed container, in which empty objects count as absent. Adding one again is harmless."""
        own = container.resources
        exists = bool(own.requests or own.limits or own.claims)
        return ExistingObjects(bool(own.requests), bool(own.limits), exists)


def add_empty_annotations() -> Operation:
    """Return the operation that a pod without annotations needs first."""
    return {"op": "add", "path": "/metadata/annotations", "value": {}}


def add_annotation(name: str, value: str) -> Operation:
    """Return the operation that sets one annotation."""
    return {"op": "add", "path": f"/metadata/annotations/{_escaped(name)}", "value": value}


def resource_operations(
    index: int, existing: ExistingObjects, resources: ContainerResources
) -> list[Operation]:
    """Return the operations that give one container its resources, missing objects first."""
    operations: list[Operation] = []
    if not existing.resources:
        operations.append({"op": "add", "path": f"/spec/containers/{index}/resources", "value": {}})
    for name, exists, amounts in (
        ("requests", existing.requests, resources.requests),
        ("limits", existing.limits, resources.limits),
    ):
        path = f"/spec/containers/{index}/resources/{name}"
        if amounts and not exists:
            operations.append({"op": "add", "path": path, "value": {}})
        operations.extend(
            {"op": "add", "path": f"{path}/{_escaped(resource)}", "value": str(amounts[resource])}
            for resource in sorted(amounts)
        )
    return operations


def describe_resources(resources: ContainerResources) -> tuple[str, ...]:
    """Return the changed fields, in the words of the `vpaUpdates` annotation."""
    return (
        *(f"{resource} request" for resource in sorted(resources.requests)),
        *(f"{resource} limit" for resource in sorted(resources.limits)),
    )


def updates_text(vpa: str, updates: list[str]) -> str:
    """Return the value of the `vpaUpdates` annotation."""
    return f"Pod resources updated by {vpa}: {'; '.join(updates)}"


def container_text(index: int, words: tuple[str, ...]) -> str:
    """Return one container's part of the `vpaUpdates` annotation."""
    return f"container {index}: {', '.join(words)}"


def differing_resources(wanted: ContainerResources, current: Container) -> ContainerResources:
    """Return only those amounts that differ from what the container has."""
    return ContainerResources(
        _differing(wanted.requests, current.resources.requests),
        _differing(wanted.limits, current.resources.limits),
    )


def _differing(wanted: ResourceList, current: Mapping[str, object]) -> ResourceList:
    return {resource: amount for resource, amount in wanted.items() if current.get(resource) != amount}


def _escaped(segment: str) -> str:
    return segment.replace("~", "~0").replace("/", "~1")
