"""JSON patches for pods: the operations that give containers their resources and leave a note of it."""

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
class Existing:
    """Which of a container's resource objects exist; `add` into an object that does not would fail."""

    requests: bool
    limits: bool
    resources: bool
    """Whether there is an object to put them into; replacing one would wipe the container's claims."""

    @staticmethod
    def of(container: Container) -> "Existing":
        """Take an empty object for an absent one, which a typed pod cannot tell apart; adding it again is harmless."""
        own = container.resources
        is_there = bool(own.requests or own.limits or own.claims)
        return Existing(bool(own.requests), bool(own.limits), is_there)


def add_empty_annotations() -> Operation:
    """Return the operation that a pod without annotations needs first."""
    return {"op": "add", "path": "/metadata/annotations", "value": {}}


def add_annotation(name: str, value: str) -> Operation:
    """Return the operation that sets one annotation."""
    return {"op": "add", "path": f"/metadata/annotations/{_escaped(name)}", "value": value}


def resource_operations(index: int, existing: Existing, resources: ContainerResources) -> list[Operation]:
    """Return the operations that give one container its resources, missing objects first."""
    operations: list[Operation] = []
    if not existing.resources:
        operations.append({"op": "add", "path": f"/spec/containers/{index}/resources", "value": {}})
    for name, is_there, amounts in (
        ("requests", existing.requests, resources.requests),
        ("limits", existing.limits, resources.limits),
    ):
        path = f"/spec/containers/{index}/resources/{name}"
        if amounts and not is_there:
            operations.append({"op": "add", "path": path, "value": {}})
        operations.extend(
            {"op": "add", "path": f"{path}/{_escaped(resource)}", "value": str(amounts[resource])}
            for resource in sorted(amounts)
        )
    return operations


def words_for(resources: ContainerResources) -> tuple[str, ...]:
    """Return what is set, in the words of the `vpaUpdates` annotation."""
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


def changes(wanted: ContainerResources, current: Container) -> ContainerResources:
    """Return only those amounts that differ from what the container has."""
    return ContainerResources(
        _differing(wanted.requests, current.resources.requests),
        _differing(wanted.limits, current.resources.limits),
    )


def _differing(wanted: ResourceList, current: Mapping[str, object]) -> ResourceList:
    return {resource: amount for resource, amount in wanted.items() if current.get(resource) != amount}


def _escaped(segment: str) -> str:
    return segment.replace("~", "~0").replace("/", "~1")
