"""Records events about objects in the background.

`EventRecorder.event` only queues; `EventBroadcaster.run` writes. A repeated event becomes a series with a count. So do
many events that differ only in their notes. An object with too many events is rate-limited. Namespaces take turns. While the server fails, events wait, and one at a time is tried with
back-off. An event that the server rejects is dropped and counted. Events go to events.k8s.io/v1, or to core/v1 if the
former is not served.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import CORE_EVENTS, EVENTS, Json, Resource
from trimtab.cluster.turns import take_turns
from trimtab.model.core.objects import ObjectReference
from trimtab.model.json import wire
from trimtab.model.times import format_micro_time, format_time
from trimtab.pacing import Backoff, TokenBucket

COMBINED = "(combined from similar events): "
"""How the note of a combined event begins, as in client-go."""


@dataclass(slots=True)
class _Group:
    last_at: float
    notes: set[str] = field(default_factory=set)


class SimilarEvents:
    """Counts the different notes of events with the same object, type, reason and action."""

    def __init__(self, most: int, seconds: float, remembered: int) -> None:
        self._most = most
        self._seconds = seconds
        self._remembered = remembered
        self._groups: OrderedDict[Hashable, _Group] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def must_combine(self, similar: Hashable, note: str, now: float) -> bool:
        """Note an event, and return whether too many different notes were recorded without a long pause."""
        group = self._groups.pop(similar, None)
        if group is None or now - group.last_at > self._seconds:
            group = _Group(now)
        self._groups[similar] = group
        group.last_at = now
        if len(group.notes) < self._most:
            group.notes.add(note)
        self._forget_old(now)
        return len(group.notes) >= self._most

    def _forget_old(self, now: float) -> None:
        while self._groups:
            oldest = next(iter(self._groups.values()))
            if len(self._groups) <= self._remembered and now - oldest.last_at <= self._seconds:
                return
            self._groups.popitem(last=False)


_MAX_NOTE = 1024
_MAX_WORD = 128

Subject = tuple[str, str, str, str, str, str]
Identity = tuple[str, Subject, str, str, str, str]
Similar = tuple[str, Subject, str, str, str]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The content of an event and its object."""

    controller: str
    about: ObjectReference
    kind: str
    reason: str
    note: str
    action: str
    is_combined: bool = False
    """Whether it stands for events with other notes, too."""

    @property
    def namespace(self) -> str:
        """Return the namespace of the event: that of its object, or `default` for a cluster-scoped object."""
        return self.about.namespace or "default"

    @property
    def subject(self) -> Subject:
        """Return a key of the object that does not depend on its version, as client-go's keys do."""
        about = self.about
        return about.api_version, about.kind, about.namespace, about.name, about.uid, about.field_path

    @property
    def identity(self) -> Identity:
        """Return the key of a series of equal events."""
        note = COMBINED if self.is_combined else self.note
        return self.controller, self.subject, self.kind, self.reason, note, self.action

    @property
    def similar(self) -> Similar:
        """Return the key of events that differ only in their notes."""
        return self.controller, self.subject, self.kind, self.reason, self.action

    def combined(self) -> "Occurrence":
        """Return the event that stands for all with other notes."""
        return replace(self, note=_cut(COMBINED + self.note, _MAX_NOTE), is_combined=True)


@dataclass(frozen=True, slots=True)
class EventFormat:
    """Builds the object of an event, in one of the two groups."""

    resource: Resource[Json]
    new: Callable[[Occurrence, str, datetime, str], Json]
    repeated: Callable[[int, datetime], Json]


def _new_v1(occurrence: Occurrence, name: str, moment: datetime, instance: str) -> Json:
    return {
        **_shared(occurrence, name, moment, instance),
        "apiVersion": EVENTS.api_version,
        "reportingController": occurrence.controller,
        "regarding": wire.to_builtins(occurrence.about),
        "note": _cut(occurrence.note, _MAX_NOTE),
    }


def _repeated_v1(count: int, moment: datetime) -> Json:
    return {"series": {"count": count, "lastObservedTime": format_micro_time(moment)}}


def _new_core(occurrence: Occurrence, name: str, moment: datetime, instance: str) -> Json:
    return {
        **_shared(occurrence, name, moment, instance),
        "apiVersion": CORE_EVENTS.api_version,
        "reportingComponent": occurrence.controller,
        "source": {"component": occurrence.controller},
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
    """Return the longest beginning that fits. The API counts bytes."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else encoded[: limit - 3].decode("utf-8", "ignore") + "..."


EVENTS_V1 = EventFormat(EVENTS, _new_v1, _repeated_v1)
CORE = EventFormat(CORE_EVENTS, _new_core, _repeated_core)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits of the recorder. Times are in seconds."""

    waiting: int = 1000
    """Queued events. Further events are dropped."""
    remembered: int = 4096
    """Written events that are remembered, so that a repetition is counted."""
    series_gap: float = 360.0
    """A repetition after a longer pause is a new event, as in client-go."""
    series_pace: float = 30.0
    """The minimum time between two writes of a series' count."""
    burst: int = 25
    refill: float = 300.0
    """An object may have `burst` events at once and one more per `refill`, as in client-go's spam filter."""
    similar: int = 10
    similar_gap: float = 600.0
    """Of events that differ only in their notes, the one with the last of so many notes and all later ones are
    combined, until none is recorded for the gap, as in client-go."""


@dataclass(slots=True)
class _Series:
    """An event and its count."""

    occurrence: Occurrence
    first: datetime
    last: datetime
    last_at: float
    count: int = 1
    written: int = 0
    tried_at: float | None = None
    name: str = ""


class EventBroadcaster:
    """Writes the events of all controllers of a process in the background."""

    def __init__(self, client: Client, instance: str, *, limits: EventLimits | None = None) -> None:
        self.dropped = 0
        self._client = client
        self._clock = client.clock
        self._instance = instance
        self._limits = limits or EventLimits()
        self._series: OrderedDict[Identity, _Series] = OrderedDict()
        self._waiting: dict[Identity, _Series] = {}
        self._waiting_in: Counter[str] = Counter()
        """How many events wait, by namespace."""
        self._similar = SimilarEvents(self._limits.similar, self._limits.similar_gap, self._limits.remembered)
        self._allowances: OrderedDict[Subject, TokenBucket] = OrderedDict()
        self._format: EventFormat = EVENTS_V1
        self._news = asyncio.Event()
        self._number = 0
        self._backoff = Backoff(self._clock, first=1.0, longest=30.0, jitter=client.sender.random)

    def recorder(self, controller: str) -> "EventRecorder":
        """Return a recorder of events that `controller` reports."""
        return EventRecorder(self, controller)

    def add(self, occurrence: Occurrence) -> None:
        """Queue an event, or count it as a repetition. Never waits and never fails."""
        now = self._clock.monotonic()
        if self._similar.must_combine(occurrence.similar, occurrence.note, now):
            occurrence = occurrence.combined()
        identity = occurrence.identity
        series = self._series.get(identity)
        if series is not None and now - series.last_at <= self._limits.series_gap:
            series.count += 1
            series.last, series.last_at = self._clock.now(), now
            self._series.move_to_end(identity)
        else:
            if not self._is_allowed(occurrence.subject):
                self.dropped += 1
                return
            moment = self._clock.now()
            self._series.pop(identity, None)  # the new series comes last
            series = self._series[identity] = _Series(occurrence, moment, moment, now)
            self._forget_old(now)
        self._enqueue(identity, series)

    async def run(self) -> None:
        """Write queued events until cancelled."""
        while True:
            due = [series for series in self._waiting.values() if self._due_in(series) <= 0]
            for series in take_turns(due, lambda series: series.occurrence.namespace):
                if self._backoff.is_waiting:
                    break
                if not self._dequeue(series.occurrence.identity):
                    continue  # it made room for an event of another namespace
                if not await self._write(series):
                    self._enqueue(series.occurrence.identity, series)
                    self._backoff.failed()
            await self._wait()

    async def flush(self) -> None:
        """Write all queued events, due or not, before the end."""
        while self._waiting:
            identity, series = next(iter(self._waiting.items()))
            self._dequeue(identity)
            if not await self._write(series):
                self.dropped += 1

    def _enqueue(self, identity: Identity, series: _Series) -> None:
        namespace = series.occurrence.namespace
        if identity not in self._waiting:
            if len(self._waiting) >= self._limits.waiting:
                self.dropped += 1
                if not self._make_room(namespace):
                    return
            self._waiting_in[namespace] += 1
        self._waiting[identity] = series
        self._news.set()

    def _dequeue(self, identity: Identity) -> bool:
        """Remove an event from the queue, and return whether it was there."""
        series = self._waiting.pop(identity, None)
        if series is None:
            return False
        namespace = series.occurrence.namespace
        self._waiting_in[namespace] -= 1
        if not self._waiting_in[namespace]:
            del self._waiting_in[namespace]
        return True

    def _make_room(self, namespace: str) -> bool:
        """Drop the last event of the namespace with the most, unless that is this one."""
        ((crowded, most),) = self._waiting_in.most_common(1)
        if most <= self._waiting_in[namespace] + 1:
            return False
        last = next(
            identity
            for identity, series in reversed(self._waiting.items())
            if series.occurrence.namespace == crowded
        )
        return self._dequeue(last)

    def _is_allowed(self, subject: Subject) -> bool:
        allowance = self._allowances.pop(subject, None) or TokenBucket(
            self._clock, self._limits.refill, self._limits.burst
        )
        self._allowances[subject] = allowance
        return allowance.try_take()

    def _forget_old(self, now: float) -> None:
        """Forget series that a repetition would not continue, and allowances that are full again."""
        limits = self._limits
        while self._series:
            oldest = next(iter(self._series.values()))
            if len(self._series) <= limits.remembered and now - oldest.last_at <= limits.series_gap:
                break
            self._series.popitem(last=False)
        while self._allowances:
            is_full = next(iter(self._allowances.values())).is_full
            if len(self._allowances) <= limits.remembered and not is_full:
                break
            self._allowances.popitem(last=False)

    def _due_in(self, series: _Series) -> float:
        if series.tried_at is None:
            return 0.0
        return series.tried_at + self._limits.series_pace - self._clock.monotonic()

    async def _wait(self) -> None:
        """Wait for a new event, or for the first series whose count is due."""
        self._news.clear()
        pause = min((self._due_in(series) for series in self._waiting.values()), default=None)
        if (left := self._backoff.until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
            return
        if pause is not None and pause <= 0:
            return
        try:
            async with asyncio.timeout(pause):
                await self._news.wait()
        except TimeoutError:
            return

    async def _write(self, series: _Series) -> bool:
        """Write a series. Return False if the server failed, so that a later try may succeed."""
        count = series.count
        try:
            await (self._update(series) if series.written else self._create(series))
        except (errors.TransportError, errors.ServerError, errors.TooManyRequests) as error:
            log.debug("event %s waits: %s", series.occurrence.reason, error)
            return False
        except (errors.ClusterError, ValueError) as error:
            self.dropped += 1
            log.debug("event %s not written: %s", series.occurrence.reason, error)
        else:
            series.written = count
            self._backoff.succeeded()
        series.tried_at = self._clock.monotonic()
        return True

    async def _create(self, series: _Series) -> None:
        self._number += 1
        about = series.occurrence.about
        # The name only has to be unlike any other; time and a number make it so.
        stamp = round(series.first.timestamp() * 1_000_000) * 1000 + self._number % 1000
        series.name = f"{about.name[:220]}.{stamp:x}"
        try:
            await self._post(series)
        except errors.NotFound as error:
            if self._format is CORE or error.details.kind == "namespaces":
                raise
            self._format = CORE
            await self._post(series)

    async def _post(self, series: _Series) -> None:
        body = self._format.new(series.occurrence, series.name, series.first, self._instance)
        await self._client.create(self._format.resource, body, series.occurrence.namespace)

    async def _update(self, series: _Series) -> None:
        body = self._format.repeated(series.count, series.last)
        try:
            await self._client.patch(self._format.resource, series.name, series.occurrence.namespace, body)
        except errors.NotFound:
            # Events expire on the server after an hour; a series that goes on starts a new one.
            series.first, series.count = series.last, 1
            await self._create(series)


class EventRecorder:
    """Records the events of one controller."""

    def __init__(self, broadcaster: EventBroadcaster, controller: str) -> None:
        self.broadcaster = broadcaster
        self._controller = controller

    def event(self, about: ObjectReference, kind: str, reason: str, note: str, *, action: str = "") -> None:
        """Record an event. `kind` is Normal or Warning. Never waits and never fails."""
        note = _cut(note, _MAX_NOTE)  # notes are remembered, and may have a server's whole response
        self.broadcaster.add(Occurrence(self._controller, about, kind, reason, note, action or reason))
