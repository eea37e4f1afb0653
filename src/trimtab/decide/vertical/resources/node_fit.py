"""Whether a node could hold a pod of a given size.

Checked are schedulable nodes, node selector and required node affinity, taints and tolerations, and requests against
allocatable resources. Affinity between pods, topology spread and volumes are not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.decide.vertical.resources.pod_rules import SIZED, scheduler_requests
from trimtab.decide.vertical.resources.proportional import units_of
from trimtab.model.core.objects import Node, Taint
from trimtab.model.core.pod import NodeSelectorRequirement, NodeSelectorTerm, PodSpec, ResourceList
from trimtab.model.json.wire import Wire

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
_NAME_FIELD = "metadata.name"


class Toleration(Wire):
    """A taint that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the pod may run on a node with the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


class PlacedSpec(PodSpec, frozen=True):
    """A pod's spec with the fields that restrict its nodes."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class PlacedPod(Wire):
    """A pod that is not scheduled yet."""

    spec: PlacedSpec = PlacedSpec()


@dataclass(frozen=True)
class NodeRoom:
    """A node and the requests of its pods."""

    node: Node
    used: Mapping[str, int]
    """In units of the resource: millicores, bytes."""

    def free(self, resource: str) -> int:
        """Return the unrequested amount of a resource."""
        count, _ = units_of(resource)
        offered = self.node.status.allocatable.get(resource)
        return max((count(offered) if offered is not None else 0) - self.used.get(resource, 0), 0)


@dataclass(frozen=True)
class NoNodeFits:
    """Why no node could hold a size, and the largest size that fits."""

    message: str
    largest: ResourceList


def no_node_fits(spec: PlacedSpec, rooms: Sequence[NodeRoom]) -> NoNodeFits | None:
    """Return why no node could hold the pod, or None if one could.

    Without any node the result is None, too.
    """
    if not rooms:
        return None
    fitting = [room for room in rooms if can_schedule(room.node, spec)]
    if not fitting:
        return NoNodeFits(
            f"none of {len(rooms)} nodes takes the pod: see its node selector and tolerations", {}
        )
    return no_room(scheduler_requests(spec), fitting)


def no_room(size: ResourceList, rooms: Sequence[NodeRoom]) -> NoNodeFits | None:
    """Return why no node has room for a size, or None if one has.

    Without any node the result is None, too.
    """
    wanted = {name: units_of(name)[0](size[name]) for name in SIZED if name in size}
    if not rooms or any(all(room.free(name) >= wanted[name] for name in wanted) for room in rooms):
        return None
    # The message names the node that comes nearest.
    best = max(rooms, key=lambda room: (_share(room, wanted), room.node.metadata.name))
    largest = {
        name: units_of(name)[1](min(best.free(name), amount), size[name].format)
        for name, amount in wanted.items()
    }
    message = (
        f"no node has room for {_text(size)}; the largest size that would fit is {_text(largest)}, "
        f"on node {best.node.metadata.name}"
    )
    return NoNodeFits(message, largest)


def _share(room: NodeRoom, wanted: Mapping[str, int]) -> float:
    return min((room.free(name) / amount for name, amount in wanted.items() if amount), default=1.0)


def _text(amounts: ResourceList) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in SIZED if name in amounts)


def can_schedule(node: Node, spec: PlacedSpec) -> bool:
    """Return whether the scheduler would consider the node for the pod at all."""
    if node.spec.unschedulable:
        return False
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    wanted = terms.node_selector_terms if terms is not None else ()
    if wanted and not any(_meets(node, term) for term in wanted):
        return False
    return all(
        any(toleration.tolerates(taint) for toleration in spec.tolerations)
        for taint in node.spec.taints
        if taint.effect in _REPELLING_EFFECTS
    )


def _meets(node: Node, term: NodeSelectorTerm) -> bool:
    fields = {_NAME_FIELD: node.metadata.name}
    requirements = (
        *((requirement, node.metadata.labels) for requirement in term.match_expressions),
        *((requirement, fields) for requirement in term.match_fields),
    )
    return bool(requirements) and all(_holds(requirement, values) for requirement, values in requirements)


def _holds(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value = values.get(requirement.key)
    if requirement.operator in ("In", "Exists", "Gt", "Lt") and value is None:
        return False
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value or "")
        case _:
            return requirement.operator == "Exists"


def _compares(requirement: NodeSelectorRequirement, value: str) -> bool:
    try:
        number, bound = int(value), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def node_rooms(nodes: Iterable[Node], used: Mapping[str, Mapping[str, int]] | None = None) -> list[NodeRoom]:
    """Return the nodes with allocatable resources, and the requests on each."""
    return [
        NodeRoom(node, (used or {}).get(node.metadata.name, {})) for node in nodes if node.status.allocatable
    ]
