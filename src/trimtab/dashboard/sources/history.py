"""What was decided about each HPA over time, longer than the operator's ring of records and far smaller.

A record holds every pod; a point holds a dozen numbers. All points together have one bound, shared by the HPAs there
are: a hundred keep hours, ten thousand keep minutes.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from trimtab.dashboard.pages.decision import numbers_of, unit_of
from trimtab.dashboard.pages.views import EventView, MetricTrack, Track
from trimtab.decide.horizontal import Decision
from trimtab.decide.horizontal.metrics.proposal import Proposal
from trimtab.operator.horizontal.inputs.hpa_state import RecordHistory

MOST_POINTS: Final = 200_000
"""Points of all HPAs together; about 300 bytes each."""
MOST_PER_HPA: Final = 960
"""Four hours of decisions every 15 s: more than a chart of a thousand pixels can show."""
LEAST_PER_HPA: Final = 20
MOST_EVENTS: Final = 50

_NO_NUMBERS: Final = (None, None, None, None)


class HistoryPoint(msgspec.Struct, frozen=True, gc=False):
    """The numbers of one decision."""

    at: float
    current: int
    desired: int
    asked: int | None
    low: int
    high: int
    metrics: tuple[tuple[float | None, ...], ...]
    """Per metric: value, target, upper and lower edge."""


class HpaHistory:
    """One HPA's points and events, oldest first."""

    def __init__(self) -> None:
        self.points: deque[HistoryPoint] = deque()
        self.events: deque[EventView] = deque(maxlen=MOST_EVENTS)
        self._units: tuple[str, ...] = ()

    def take(self, records: RecordHistory, most: int) -> None:
        """Note the records that are newer than the last point."""
        last = self.points[-1].at if self.points else float("-inf")
        for record in records.newer_than(last):
            decision = record.decision
            self.points.append(_point(decision))
            self.events.extend(_events(decision))
            self._units = _units(decision) or self._units
        while len(self.points) > most:
            self.points.popleft()

    def lasts(self, at: float) -> None:
        """Draw the last point out to a moment up to which nothing changed; a flat stretch has two points."""
        if not self.points or at <= self.points[-1].at:
            return
        last = msgspec.structs.replace(self.points[-1], at=at)
        if len(self.points) > 1 and msgspec.structs.replace(self.points[-2], at=at) == last:
            self.points.pop()
        self.points.append(last)

    def track(self) -> Track:
        """Return the points as columns."""
        points = self.points
        return Track(
            at=tuple(one.at for one in points),
            current=tuple(one.current for one in points),
            desired=tuple(one.desired for one in points),
            asked=tuple(one.asked for one in points),
            low=tuple(one.low for one in points),
            high=tuple(one.high for one in points),
            metrics=tuple(self._metric(place) for place in range(len(self._units))),
        )

    def _metric(self, place: int) -> MetricTrack:
        rows = [one.metrics[place] if place < len(one.metrics) else _NO_NUMBERS for one in self.points]
        value, target, up, down = zip(*rows, strict=True) if rows else ((), (), (), ())
        return MetricTrack(unit=self._units[place], value=value, target=target, up=up, down=down)


class PointHistory:
    """The past of every HPA, by uid."""

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most_points = most_points
        self._pasts: dict[str, HpaHistory] = {}

    def take(self, records: Mapping[str, RecordHistory]) -> None:
        """Note what is new, and forget the HPAs that are gone."""
        most = min(max(self._most_points // max(len(records), 1), LEAST_PER_HPA), MOST_PER_HPA)
        for gone in self._pasts.keys() - records.keys():
            del self._pasts[gone]
        for uid, ring in records.items():
            self._pasts.setdefault(uid, HpaHistory()).take(ring, most)

    def of(self, uid: str) -> HpaHistory:
        """Return the past of an HPA; an empty one if there is none."""
        return self._pasts.get(uid) or HpaHistory()


def _point(decision: Decision) -> HistoryPoint:
    trace = decision.trace
    return HistoryPoint(
        at=decision.now,
        current=decision.current,
        desired=decision.desired,
        asked=trace.recommended,
        low=trace.min_replicas,
        high=trace.max_replicas,
        metrics=tuple(
            numbers_of(one, decision) if isinstance(one, Proposal) else _NO_NUMBERS for one in trace.proposals
        ),
    )


def _units(decision: Decision) -> tuple[str, ...]:
    """Return each metric's unit; a metric that failed has none to tell."""
    return tuple(unit_of(one) if isinstance(one, Proposal) else "" for one in decision.trace.proposals)


def _events(decision: Decision) -> Iterable[EventView]:
    return (
        EventView(at=decision.now, type=one.type, reason=one.reason, message=one.message)
        for one in decision.events
    )
