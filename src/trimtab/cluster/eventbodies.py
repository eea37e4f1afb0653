"""The two wire forms of an event: events.k8s.io/v1 and, for clusters without it, core/v1."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.resources import CORE_EVENTS, EVENTS
from trimtab.model.core.objects import ObjectReference
from trimtab.model.json import wire
from trimtab.model.times import format_micro_time, format_time

_MAX_NOTE = 1024
_MAX_WORD = 128

Subject = tuple[str, str, str, str, str, str]
Identity = tuple[Subject, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What is said about which object."""

    about: ObjectReference
    kind: str
    reason: str
    note: str
    action: str

    @property
    def namespace(self) -> str:
        """Return where the event is kept: beside its object, or in `default` for a cluster-scoped one."""
        return self.about.namespace or "default"

    @property
    def subject(self) -> Subject:
        """Return what tells the object from any other, in whichever version it is, as client-go's keys do."""
        about = self.about
        return about.api_version, about.kind, about.namespace, about.name, about.uid, about.field_path

    @property
    def identity(self) -> Identity:
        """Return what two occurrences of one event have in common."""
        return self.subject, self.kind, self.reason, self.note, self.action


@dataclass(frozen=True, slots=True)
class EventFormat:
    """How to write an event in one of the two groups."""

    resource: Resource[Json]
    new: Callable[[Occurrence, str, datetime, str, str], Json]
    repeated: Callable[[int, datetime], Json]


def _new_v1(occurrence: Occurrence, name: str, moment: datetime, controller: str, instance: str) -> Json:
    return {
        **_shared(occurrence, name, moment, instance),
        "apiVersion": EVENTS.api_version,
        "reportingController": controller,
        "regarding": wire.to_builtins(occurrence.about),
        "note": _cut(occurrence.note, _MAX_NOTE),
    }


def _repeated_v1(count: int, moment: datetime) -> Json:
    return {"series": {"count": count, "lastObservedTime": format_micro_time(moment)}}


def _new_core(occurrence: Occurrence, name: str, moment: datetime, controller: str, instance: str) -> Json:
    return {
        **_shared(occurrence, name, moment, instance),
        "apiVersion": CORE_EVENTS.api_version,
        "reportingComponent": controller,
        "source": {"component": controller},
        "involvedObject": wire.to_builtins(occurrence.about),
        "message": _cut(occurrence.note, _MAX_NOTE),
        "firstTimestamp": format_time(moment),
        "lastTimestamp": format_time(moment),
        "count": 1,
    }


def _repeated_core(count: int, moment: datetime) -> Json:
    return {"count": count, "lastTimestamp": format_time(moment)}


def _shared(occurrence: Occurrence, name: str, moment: datetime, instance: str) -> Json:
    return {
        "kind": "Event",
        "metadata": {"name": name, "namespace": occurrence.namespace},
        "eventTime": format_micro_time(moment),
        "type": occurrence.kind,
        "reason": _cut(occurrence.reason, _MAX_WORD),
        "action": _cut(occurrence.action, _MAX_WORD),
        "reportingInstance": _cut(instance, _MAX_WORD),
    }


def _cut(text: str, limit: int) -> str:
    """Return the beginning that fits; the API counts bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else encoded[: limit - 3].decode("utf-8", "ignore") + "..."


EVENTS_V1 = EventFormat(EVENTS, _new_v1, _repeated_v1)
CORE = EventFormat(CORE_EVENTS, _new_core, _repeated_core)
