"""Small built-in kinds: Node, Lease, LimitRange and Event."""

from datetime import datetime

from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import ResourceList
from trimtab.model.json.wire import Wire


class Taint(Wire):
    """A mark of a node that rejects pods without a toleration for it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """The rules by which a node accepts pods."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire):
    """The resources of a node."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}


class Node(Wire):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(Wire):
    """The holder of a lease, and its times."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Wire):
    """A lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class LimitRangeItem(Wire):
    """Bounds and defaults for one type: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Wire):
    """The items of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Wire):
    """A LimitRange."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class ObjectReference(Wire):
    """The object of an event."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Wire):
    """The reporter of an event."""

    component: str = ""
    host: str = ""


class Event(Wire):
    """A core/v1 Event."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
