"""Core Events, as far as we read them (OOM evictions) and show them."""

from datetime import datetime

from trimtab.model.meta import ObjectMeta
from trimtab.model.wire import Wire


class ObjectReference(Wire):
    """The object an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Wire):
    """Who reported the event."""

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
