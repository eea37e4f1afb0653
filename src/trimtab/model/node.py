"""Nodes: their labels (for VPAScope) and how much they can hold."""

from trimtab.model.meta import ObjectMeta
from trimtab.model.resources import ResourceList
from trimtab.model.wire import Wire


class NodeStatus(Wire):
    """What a node offers."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}


class Node(Wire):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeStatus = NodeStatus()
