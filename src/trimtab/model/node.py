"""Nodes: their labels (for VPAScope), how much they can hold, and which pods they take."""

from trimtab.model.meta import ObjectMeta
from trimtab.model.resources import ResourceList
from trimtab.model.wire import Wire


class Taint(Wire):
    """What keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """Which pods a node takes."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire):
    """What a node offers."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}


class Node(Wire):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
