"""The past decisions of each HPA, longer than the operator's record history and smaller.

A record contains every pod; a point contains about 12 numbers. All points share one limit: 100 HPAs keep hours,
10,000 HPAs keep minutes.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from trimtab.dashboard.pages.decision import numbers_of, unit_of
from trimtab.dashboard.pages.views import EventView, MetricTrack, Track
from trimtab.decide.horizontal import Decision
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.operator.horizontal.hpa_state import RecordHistory

MAX_POINTS: Final = 200_000
"""Points of all HPAs together, at about 300 bytes each."""
MAX_PER_HPA: Final = 960
"""4 hours of decisions every 15 s, more than a chart of 1,000 pixels can show."""
MIN_PER_HPA: Final = 20
MAX_EVENTS: Final = 50

_NO_NUMBERS: Final = (None, None, None, None)


class HistoryPoint(msgspec.Struct, frozen=True, gc=False):
    """The numbers of one decision."""

    at: float
    current: int | None
    desired: int | None
    asked: int | None
    low: int
    high: int
    metrics: tuple[tuple[float | None, ...], ...]
    """Per metric: value, target, upper and lower edge."""


class HpaHistory:
    """One HPA's points and events, oldest first."""

    def __init__(self) -> None:
        self.points: deque[HistoryPoint] = deque()
        self.events: deque[EventView] = deque(maxlen=MAX_EVENTS)
        self._units: tuple[str, ...] = ()

    def add(self, records: RecordHistory, max_points: int) -> None:
        """Add the records that are newer than the last point."""
        last = self.points[-1].at if self.points else float("-inf")
        for record in records.newer_than(last):
            decision = record.decision
            self.points.append(_point(decision))
            self.events.extend(_events(decision))
            self._units = _units(decision) or self._units
        while len(self.points) > max_points:
            self.points.popleft()

    def extend_last(self, at: float) -> None:
        """Extend the last point to a time until which nothing changed. A flat stretch has 2 points."""
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
            at=tuple(point.at for point in points),
            current=tuple(point.current for point in points),
            desired=tuple(point.desired for point in points),
            asked=tuple(point.asked for point in points),
            low=tuple(point.low for point in points),
            high=tuple(point.high for point in points),
            metrics=tuple(self._metric(index) for index in range(len(self._units))),
        )

    def _metric(self, index: int) -> MetricTrack:
        rows = [point.metrics[index] if index < len(point.metrics) else _NO_NUMBERS for point in self.points]
        value, target, up, down = zip(*rows, strict=True) if rows else ((), (), (), ())
        return MetricTrack(unit=self._units[index], value=value, target=target, up=up, down=down)


class PointHistory:
    """The history of every HPA, by uid."""

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._histories: dict[str, HpaHistory] = {}

    def refresh(self, records: Mapping[str, RecordHistory]) -> None:
        """Add new records, and drop the HPAs that were deleted."""
        max_points = min(max(self._max_points // max(len(records), 1), MIN_PER_HPA), MAX_PER_HPA)
        for uid in self._histories.keys() - records.keys():
            del self._histories[uid]
        for uid, hpa_records in records.items():
            self._histories.setdefault(uid, HpaHistory()).add(hpa_records, max_points)

    def get(self, uid: str) -> HpaHistory:
        """Return the history of an HPA, empty if there is none."""
        return self._histories.get(uid) or HpaHistory()


def _point(decision: Decision) -> HistoryPoint:
    trace = decision.trace
    is_known = decision.knows_replicas
    return HistoryPoint(
        at=decision.now,
        current=decision.current if is_known else None,
        desired=decision.desired if is_known else None,
        asked=trace.recommended,
        low=trace.min_replicas,
        high=trace.max_replicas,
        metrics=tuple(
            numbers_of(result, decision) if isinstance(result, Proposal) else _NO_NUMBERS
            for result in trace.proposals
        ),
    )


def _units(decision: Decision) -> tuple[str, ...]:
    return tuple(
        unit_of(result) if isinstance(result, Proposal) else "" for result in decision.trace.proposals
    )


def _events(decision: Decision) -> Iterable[EventView]:
    return (
        EventView(at=decision.now, type=event.type, reason=event.reason, message=event.message)
        for event in decision.events
    )
