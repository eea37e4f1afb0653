"""Whether a node could hold a pod of a given size.

Checked are schedulable nodes, node selector and required node affinity, taints and tolerations, and requests against
allocatable resources. Affinity between pods, topology spread and volumes are not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.decide.vertical.resources.pod_rules import SIZED, scheduler_requests
from trimtab.decide.vertical.resources.proportional import units_of
from trimtab.model.core.objects import Node
from trimtab.model.core.pod import ResourceList
from trimtab.model.core.scheduling import PlacedSpec, find_untolerated_taint, matches_node_affinity
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted


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
            f"none of {counted(len(rooms), 'node')} takes the pod: see its node selector and tolerations", {}
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
    return (
        not node.spec.unschedulable
        and matches_node_affinity(spec, node)
        and find_untolerated_taint(spec.tolerations, node.spec.taints) is None
    )


def node_rooms(nodes: Iterable[Node], used: Mapping[str, Mapping[str, int]] | None = None) -> list[NodeRoom]:
    """Return the nodes with allocatable resources, and the requests on each."""
    return [
        NodeRoom(node, (used or {}).get(node.metadata.name, {})) for node in nodes if node.status.allocatable
    ]
